"""HTTP: one thread per connection, kept alive, each answer in one write."""

import http.server
import json
import threading
import time
import traceback
import urllib.parse

from standin.calls import Calls
from standin.control import Script, refusal_of
from standin.reply import FATAL, LIMIT, NO_DATA, TRANSIENT, Refusal, of_html, of_json
from standin.services import PATHS, SERVICES, item_of, key_of
from standin.world import World

BODY_MAX = 1 << 20


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port=0, seed="buildrisk", size="small", day=None):
        self.world = World(seed, size, day)
        self.calls = Calls()
        self.script = Script(self.world)
        self._closing = threading.Event()
        super().__init__(("127.0.0.1", port), Handler)

    @property
    def port(self):
        return self.server_address[1]

    def close(self):
        self._closing.set()
        self.shutdown()
        self.server_close()

    def wait(self, ms):
        """As time.sleep, but for the end of the server."""
        if ms > 0:
            self._closing.wait(ms / 1000)

    def answer(self, path, query):
        """The answer of the service that lives at `path`, counted."""
        route = PATHS[path]
        key, good = key_of(route, query)
        day = self.world.today().isoformat()
        began = time.monotonic()
        with self.calls.under_way(day, route.service, key, item_of(route, path, query)) as used:
            rule = self.script.rule_for(route.service, query, used)
            reply, kind = self._answer(route, query, good, rule)
            spent_ms = (time.monotonic() - began) * 1000
            self.wait(self.script.delay_ms + (rule.ms if rule else 0) - spent_ms)
        self.calls.answered(route.service, kind)
        return reply

    def _answer(self, route, query, good, rule):
        try:
            if rule and rule.kind == "html":
                return of_html("점검 중입니다"), rule.kind
            if rule and rule.kind == "status":
                return of_html("Error", int(rule.code or 503)), rule.kind
            if rule and rule.kind in (NO_DATA, LIMIT, FATAL, TRANSIENT):
                raise refusal_of(rule)
            if not good:
                raise Refusal(FATAL, SERVICES[route.service].bad_key)
            reply, kind = route.answer(self.world, query, self.script), "ok"
        except Refusal as refusal:
            reply, kind = route.say_no(refusal), refusal.kind
        reply.cut = bool(rule) and rule.kind == "cut"
        return reply, rule.kind if rule else kind

    def steer(self, body):
        wanted = json.loads(body or b"{}")
        if wanted.get("reset"):
            self.calls.reset()
        self.script.change(wanted)
        return of_json({"ok": True})


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16  # head and body leave together
    disable_nagle_algorithm = True
    timeout = 600

    def do_GET(self):
        path, _, text = self.path.partition("?")
        query = dict(urllib.parse.parse_qsl(text, keep_blank_values=True))
        if path == "/_calls":
            self._send(of_json(self.server.calls.told()))
        elif path == "/_ready":
            self._send(of_json({"ok": True}))
        elif path in PATHS:
            self._send(self._safely(lambda: self.server.answer(path, query)))
        else:
            self._send(of_html("Not Found", 404))

    def do_POST(self):
        length = int(self.headers.get("Content-Length") or 0)
        if self.path != "/_control" or length > BODY_MAX:
            self.close_connection = True
            self._send(of_html("Not Found", 404))
            return
        body = self.rfile.read(length)
        self._send(self._safely(lambda: self.server.steer(body)))

    def _safely(self, answer):
        try:
            return answer()
        except (ValueError, TypeError, KeyError, AttributeError) as problem:
            if not self.path.startswith("/_control"):
                traceback.print_exc()
            return of_json({"error": f"{type(problem).__name__}: {problem}"}, 400)

    def _send(self, reply):
        body = reply.body[:len(reply.body) // 2] if reply.cut else reply.body
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.content_type)
        self.send_header("Content-Length", str(len(reply.body)))
        for name, value in reply.headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = self.close_connection or reply.cut

    def log_message(self, *_):
        """Quiet: /_calls tells more."""

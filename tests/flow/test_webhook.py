"""Webhooks: told once it is over, signed, again until it is heard, whoever dies."""

import base64
import contextlib
import datetime
import hashlib
import hmac
import http.server
import json
import signal
import threading

import flow_jobs as jobs
import pytest
from pawl_env import Site, wait_for

KEY = b"0123456789abcdef01234567"
SECRET = "whsec_" + base64.b64encode(KEY).decode()
OLD = "the-secret-before"
LONG = ("/long", "/gone", "/busy")  # they say much, whatever their status


class Receiver:
    """Answers with what `answers` says for the path, the last of it again and again;
    None: no answer at all until it is closed."""

    def __init__(self, **answers):
        self.calls = []
        self.answers = {f"/{name}": list(codes) for name, codes in answers.items()}
        self.free = threading.Event()
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                codes = receiver.answers[self.path]
                code = codes.pop(0) if len(codes) > 1 else codes[0]
                receiver.calls.append((self.path[1:], dict(self.headers), body))
                if code is None:
                    receiver.free.wait(60)
                    return
                self.send_response(code)
                if code == 302:
                    self.send_header("Location", f"{receiver.url}/good")
                if code == 503:
                    self.send_header("Retry-After", "3000")
                body = b"x" * (1_000_000 if self.path in LONG else 0)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                with contextlib.suppress(OSError):  # nobody reads it to the end
                    self.wfile.write(body)

            def log_message(self, *words):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def of(self, request_id):
        """The calls about a request: path, headers, event."""
        found = []
        for path, headers, body in list(self.calls):
            event = json.loads(body)
            if event["subject"] == str(request_id):
                found.append((path, headers, event))
        return found

    def heard(self, request_id, times=1, seconds=20):
        return wait_for(lambda: len(c := self.of(request_id)) >= times and c,
                        f"request {request_id} is told {times} times", seconds)

    def close(self):
        self.free.set()
        self.server.shutdown()
        self.server.server_close()


def signatures(headers, body, *secrets):
    content = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    return " ".join(
        "v1," + base64.b64encode(hmac.new(s, content, hashlib.sha256).digest()).decode()
        for s in secrets)


def hook_jobs(*names):
    quick = "".join(jobs.variant(jobs.QUICK, n, webhook=n) for n in names)
    return quick + jobs.variant(jobs.SLOW, "slow", webhook="good")


def seconds_of(time):
    return datetime.datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp()


@pytest.fixture
def world(request, cluster, monkeypatch):
    """A receiver, and a site on either database whose jobs are named like the paths."""
    monkeypatch.setenv("HOOK_KEY", f"{SECRET} {OLD}")
    receiver = Receiver(good=[200], fails=[500, 200], moved=[302], gone=[410], hangs=[None, 200],
                        long=[200], busy=[503])
    names = list(receiver.answers)
    hooks = "".join(f"  {n[1:]}: {{url: '{receiver.url}{n}', key: HOOK_KEY, timeout: 500ms}}\n"
                    for n in names)
    site = Site(request.param, cluster, hook_jobs(*(n[1:] for n in names)),
                f"keys: [HOOK_KEY]\nwebhooks:\n{hooks}worker: {{drain: 10s}}\n")
    try:
        yield site, receiver
        site.close()
    finally:
        site.discard()
        receiver.close()


both = pytest.mark.parametrize("world", ["sqlite", "pg"], indirect=True)


@both
def test_a_webhook_is_told_signed_and_again_until_it_is_heard(world):
    site, receiver = world
    site.up()
    ids = {name: site.submit_id(name) for name in ("good", "fails", "moved", "gone", "long", "busy")}
    done = site.wait_done(ids["good"])

    ((path, headers, event),) = receiver.heard(ids["good"])
    body = next(b for _, h, b in receiver.calls if h["webhook-id"] == headers["webhook-id"])
    assert path == "good"
    assert headers["Content-Type"].startswith("application/cloudevents+json")
    assert headers["webhook-signature"] == signatures(headers, body, KEY, OLD.encode())
    assert event["type"] == "pawl.request.completed.v1"
    assert event["specversion"] == "1.0" and event["id"] == headers["webhook-id"]
    assert event["data"]["job"] == "good" and event["data"]["outcome"] == "COMPLETED"
    assert event["data"]["result"] == {k: done["result"][k]
                                       for k in ("name", "bytes", "rows", "sha256")}

    # What the api records is told by the worker.
    later = site.post("good", notBefore="2100-01-01T00:00:00Z").json["requestId"]
    assert site.cancel(later).status == 200
    ((_, _, cancelled),) = receiver.heard(later)
    assert cancelled["type"] == "pawl.request.cancelled.v1"
    assert cancelled["data"]["result"] is None and cancelled["data"]["firstTry"] == later

    # Not heard: kept, and told to people as long as it waits.
    receiver.heard(ids["moved"])
    (waits,) = wait_for(lambda: (w := site.get(ids["moved"])["webhooks"]) and w[0]["lastError"]
                        and w, "it says why it waits")
    assert (waits["name"], waits["attempts"]) == ("moved", 1)
    assert "302" in waits["lastError"] and waits["nextTry"] > done["finishedAt"]
    assert "moved waits; 1 tries, next at" in site.pawl("show", str(ids["moved"])).stdout

    # Later, when the receiver wants it, however long its page is.
    (waits,) = wait_for(lambda: (w := site.get(ids["busy"])["webhooks"]) and w[0]["lastError"]
                        and w, "it says why it waits")
    assert "503" in waits["lastError"]
    wait_s = seconds_of(waits["nextTry"]) - seconds_of(site.get(ids["busy"])["finishedAt"])
    assert 2999 <= wait_s <= 3060

    # Given up by the receiver.
    wait_for(lambda: site.count("audit", "act = 'webhook-given-up'") == 1, "it is given up")
    assert len(receiver.of(ids["gone"])) == 1
    assert [path for path, _, _ in receiver.of(ids["moved"])] == ["moved"]  # not followed
    assert site.get(ids["gone"])["outcome"] == "COMPLETED"

    # The same event once more, under the same id, until it is heard.
    first, second = receiver.heard(ids["fails"], times=2)
    assert first[1]["webhook-id"] == second[1]["webhook-id"] and first[2] == second[2]
    wait_for(lambda: site.count("delivery") == 2, "only those that moved or are busy wait")
    assert site.get(ids["fails"])["webhooks"] == site.get(ids["good"])["webhooks"] == []
    assert [len(receiver.of(ids[n])) for n in ("good", "fails", "long", "busy")] == [1, 2, 1, 1]


@both
def test_A19_A23_what_ends_during_the_drain_is_still_told(world):
    """That the run is STOPPED tells that the drain began first."""
    site, receiver = world
    site.up()
    request_id = site.submit_id("slow", rows=50, ms=100)
    site.wait_running(request_id)
    wait_for(lambda: site.count("step_execution") == 1, "its step has begun")
    worker = site.worker
    worker.signal(signal.SIGTERM)
    assert worker.wait_end(15) == 0
    assert "draining" in worker.log()
    ((_, _, event),) = receiver.of(request_id)
    assert event["type"] == "pawl.request.stopped.v1"
    assert site.count("delivery") == 0


@pytest.mark.parametrize("world", ["sqlite"], indirect=True)
def test_what_was_being_told_when_its_worker_was_killed_is_told_by_the_next_start(world):
    """And what pawl run recorded, which tells nobody itself."""
    site, receiver = world
    site.pawl("run", "good")
    assert receiver.calls == []
    site.up()
    (recorded,) = [r["id"] for r in site.sql("SELECT id FROM pawl.request")]
    request_id = site.submit_id("hangs")
    first = receiver.heard(request_id)
    site.worker.kill()
    site.store_do("UPDATE pawl.delivery SET due_at = 1")  # its lease is over
    site.restart_worker()
    told = receiver.heard(request_id, times=2)
    assert told[1][1]["webhook-id"] == first[0][1]["webhook-id"]
    wait_for(lambda: site.count("delivery") == 0, "it was heard")
    assert len(receiver.of(recorded)) == 1


@pytest.mark.parametrize("world", ["sqlite"], indirect=True)
def test_A21_a_second_signal_does_not_wait_for_a_receiver(world):
    site, receiver = world
    path = site.folder / "pawl.yaml"
    path.write_text(path.read_text().replace("timeout: 500ms", "timeout: 1m"))
    site.up()
    request_id = site.submit_id("hangs")
    receiver.heard(request_id)
    worker = site.worker
    worker.signal(signal.SIGTERM)
    wait_for(lambda: "draining" in worker.log(), "the drain begins")
    worker.signal(signal.SIGTERM)
    assert worker.wait_end(8) == 0
    assert site.count("delivery", f"request_id = {request_id} AND attempts = 0") == 1

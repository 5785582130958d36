"""The API outside, which jobs call: it writes down each call that arrives."""

import re
import select
import socket
import threading
import time

from history import History

CALL = re.compile(rb"^GET /call\?tag=([^&]*)&n=(\d+) ")
ANSWER = b'{"code": "ok", "got": 1}'
TAKES_SECONDS = 0.002  # so that callers die between the call and its answer
WHOLE_SECONDS = 2  # of a caller that sends no whole request


class Outside(threading.Thread):
    """One call after the other, each on a connection of its own."""

    def __init__(self, folder):
        super().__init__(name="outside", daemon=True)
        self.history = History(folder, "outside")
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        self.closing = False

    def run(self):
        while not self.closing:
            if not select.select([self.listener], [], [], 0.2)[0]:
                continue
            caller, _ = self.listener.accept()
            with caller:
                try:
                    self.answer(caller)
                except OSError:
                    pass  # it died

    def answer(self, caller):
        caller.settimeout(WHOLE_SECONDS)
        text = b""
        while b"\r\n\r\n" not in text:
            more = caller.recv(4096)
            if not more:
                return
            text += more
        call = CALL.match(text)
        assert call, text
        self.history.invoke("call", call[1].decode(), number=int(call[2]))
        time.sleep(TAKES_SECONDS)
        self.history.end("call", call[1].decode(), "ok")
        caller.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                       b"Connection: close\r\nContent-Length: %d\r\n\r\n%s"
                       % (len(ANSWER), ANSWER))

    def close(self):
        self.closing = True
        self.join()
        self.listener.close()

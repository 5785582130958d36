"""Those who ask: clients over HTTP, and one who looks at the claims by plain SQL."""

import hashlib
import http.client
import json
import random
import threading

from history import History

OPEN_MOST = 12  # requests that a client has not seen final yet
LOOK_SECONDS = 0.25  # on the average, between two looks when there is enough to do
TRIES = 200  # of one submit; each knows at the end or leaves it open


class Client(threading.Thread):
    """Asks, looks, cancels, downloads, one thing after the other, until told to stop."""

    def __init__(self, storm, name, seed):
        super().__init__(name=name, daemon=True)
        self.storm = storm
        self.random = random.Random(seed)
        self.history = History(storm.folder, name)
        self.twin_history = History(storm.folder, name + "-twin")
        self.open = []
        self.sent = 0
        self.trouble = None

    def call(self, method, path, body=None, headers=None):
        """(status, body), or None when no whole answer came."""
        port = self.random.choice(self.storm.ports)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=3)
        try:
            connection.request(method, path, body=json.dumps(body) if body else None,
                               headers={"Content-Type": "application/json",
                                        **(headers or {})})
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()

    def draft(self):
        """(job, rows, members of the body besides params)."""
        what = self.random.random()
        if what < 0.08:
            return "flaky", 1, {}
        if what < 0.18 and len(self.open) >= 2:
            return "mark", 1, {"after": self.random.sample(self.open, 2)}
        if what < 0.26:
            return "call", self.random.randint(1, self.storm.calls_most), {}
        job = "effect" if what < 0.72 else "export"
        more = {}
        if self.random.random() < 0.25:
            more["next"] = [{"job": "mark", "params": {"tag": "{tag}", "rows": 1}}]
        return job, self.random.randint(1, self.storm.rows_most), more

    def submit(self):
        self.sent += 1
        key = f"{self.name}-{self.sent}"
        job, rows, more = self.draft()
        order = (key, job, rows, more)
        twin = None
        if self.random.random() < 0.2:
            twin = threading.Thread(target=self.ask, args=(*order, self.twin_history, 3))
            twin.start()
        number = self.ask(*order, self.history, TRIES)
        if twin:
            twin.join()
        if number:
            self.open.append(number)

    def ask(self, key, job, rows, more, history, tries):
        """The request's number; None: it may be there or not."""
        for _ in range(tries):
            history.invoke("submit", key, job=job, rows=rows, **more)
            said = self.call("POST", f"/api/v1/jobs/{job}/requests",
                             {"params": {"rows": rows, "tag": key}, **more},
                             {"Idempotency-Key": key})
            if said and said[0] in (200, 202):
                number = json.loads(said[1])["requestId"]
                history.end("submit", key, "ok", id=number)
                return number
            # What is waited for may have failed by now.
            refused = said and 400 <= said[0] < 500 and said[0] != 409
            history.end("submit", key, "fail" if refused else "info",
                        answer=said and said[0])
            if refused and "after" in more:
                return None
            if refused:
                self.trouble = f"a good request was refused: {said}"
                return None
            if self.storm.ending.wait(0.03):
                return None
        return None

    def poll(self, number):
        self.history.invoke("poll", number)
        said = self.call("GET", f"/api/v1/requests/{number}")
        if said and said[0] == 200:
            request = json.loads(said[1])
            self.history.end("poll", number, "ok", status=request["status"],
                             outcome=request["outcome"])
            return request
        self.history.end("poll", number, "info", answer=said and said[0])
        if said and said[0] == 404:
            self.trouble = f"request {number} was not found"
        return None

    def cancel(self, number):
        self.history.invoke("cancel", number)
        said = self.call("POST", f"/api/v1/requests/{number}/cancel")
        kind = "ok" if said and said[0] in (200, 202) else \
            "fail" if said and said[0] == 409 else "info"
        self.history.end("cancel", number, kind, code=said and said[0])

    def download(self, number):
        self.history.invoke("download", number)
        said = self.call("GET", f"/api/v1/requests/{number}/result")
        if said and said[0] == 200:
            self.history.end("download", number, "ok", bytes=len(said[1]),
                             sha256=hashlib.sha256(said[1]).hexdigest())
        else:
            self.history.end("download", number, "info", answer=said and said[0])

    def act(self):
        if len(self.open) < OPEN_MOST and self.random.random() < 0.6 or not self.open:
            self.submit()
            return
        number = self.random.choice(self.open)
        if self.random.random() < 0.04:
            self.cancel(number)
            return
        request = self.poll(number)
        if request and request["outcome"]:
            later = request["attempts"][-1]["requestId"] if request.get("attempts") \
                else number
            self.open.remove(number)
            if later != number:
                self.open.append(later)
        if request and request.get("result"):
            self.download(number)

    def run(self):
        try:
            pause = 0
            while not self.storm.ending.wait(self.random.random() * pause):
                self.act()
                pause = self.storm.client_pause
                if len(self.open) >= OPEN_MOST:
                    pause = 2 * LOOK_SECONDS
        except Exception as trouble:  # seen by the storm, which fails
            self.trouble = repr(trouble)


class Sampler(threading.Thread):
    """Looks at the claims now and then, by plain SQL."""

    def __init__(self, storm):
        super().__init__(name="sampler", daemon=True)
        self.storm = storm
        self.history = History(storm.folder, "sampler")

    def run(self):
        while not self.storm.sampled.wait(self.storm.sample_pause):
            self.history.invoke("sample", None)
            try:
                self.history.end("sample", None, "ok", **self.storm.site.sample())
            except Exception as trouble:  # the store may be away
                self.history.end("sample", None, "info", trouble=str(trouble)[:100])

"""How long a request waits for its start: the real pawl serve, asked over HTTP."""

import http.client
import json
import os
import re
import signal
import subprocess
import time

CONFIG = """
store: {store}
results: ./results
state: ./state
databases: {{tick: "sqlite::memory:"}}
jobs:
  tick:
    title: As little as a job can do
    params: {{n: {{type: integer}}}}
    duplicates: allow
    steps:
      - name: tick
        read: {{database: tick, sql: "SELECT :n AS n"}}
        write: {{file: "tick.csv", format: csv}}
"""

STARTS = "SELECT request_id, started_at FROM pawl.execution"


def start_pawl(command, folder, log, **env):
    """The process and its port (0: it listens on none)."""
    with open(log, "w") as file:
        process = subprocess.Popen(command, cwd=folder, stderr=file,
                                   env={**os.environ, "PAWL_LISTEN": "127.0.0.1:0", **env})
    for _ in range(600):
        ready = re.search(r" ready (?:.*port=(\d+))?", log.read_text())
        if ready:
            return process, int(ready[1] or 0)
        if process.poll() is not None:
            break
        time.sleep(0.05)
    process.kill()
    process.wait()
    raise RuntimeError(f"{command} did not start:\n" + log.read_text()[-2000:])


def ask(connection, method, path, body=None):
    connection.request(method, path, body and json.dumps(body),
                       {"Content-Type": "application/json"} if body else {})
    answer = connection.getresponse()
    text = answer.read()
    if answer.status not in (200, 202):
        raise RuntimeError(f"{method} {path}: {answer.status} {text.decode()}")
    return json.loads(text)


def percentile(values, share):
    """The least value that this share of all is not above."""
    values = sorted(values)
    rank = -int(-share * len(values) // 1)
    return values[max(rank, 1) - 1]


class Server:
    """Started anew for each measure, so that it takes nothing from the others."""

    def __init__(self, pawl, place, folder):
        self.pawl = pawl
        self.place = place
        self.folder = folder / f"serve-{place.name}"
        self.folder.mkdir()
        (self.folder / "pawl.yaml").write_text(CONFIG.format(store=place.serve))
        self.log = self.folder / "log"
        self.numbers = 0

    def measure(self, count):
        process, port = start_pawl([self.pawl, "serve", "-c", "pawl.yaml"], self.folder,
                                   self.log)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        asked = {}
        try:
            for _ in range(count):
                self.numbers += 1
                began = time.time()
                answer = ask(connection, "POST", "/api/v1/jobs/tick/requests",
                                  {"params": {"n": self.numbers}})
                asked[answer["requestId"]] = began
                # The next one finds an idle pool.
                path = f"/api/v1/requests/{answer['requestId']}"
                while not ask(connection, "GET", path + "?wait=30s")["complete"]:
                    pass
        finally:
            connection.close()
            process.send_signal(signal.SIGTERM)
            process.wait(60)
        started = dict(self.place.rows_of(self.place.serve, STARTS))
        waits = [started[number] / 1e3 - began * 1e3 for number, began in asked.items()]
        return {"calls": count, "p50_ms": percentile(waits, 0.5),
                "p95_ms": percentile(waits, 0.95), "max_ms": max(waits)}

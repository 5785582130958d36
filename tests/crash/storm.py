#!/usr/bin/python3
"""A storm: real processes are killed, frozen and ended while clients ask for work.

    storm.py --store sqlite|pg --kills N [--seed S] [--keep FOLDER] [--seconds MOST]

SQLite runs as one `serve`, PostgreSQL (a cluster of its own, which the nemesis stops
too) as two apis and three workers. Every thread here writes a history; when it is
quiet again the store is read by plain SQL and checker.py judges. The nemesis draws
everything from the seed, and still no two storms are the same: the moments are the
machine's. Exit 0: nothing was broken.
"""

import argparse
import collections
import hashlib
import http.client
import json
import os
import pathlib
import random
import re
import shutil
import signal
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "flow")]

import checker  # noqa: E402
from pawl_env import Cluster, Server, Site, free_port, psql, sqlite_rows  # noqa: E402

CHUNK = 10
DEAD_AFTER = 3.0
LANES = {"normal": 3}
CLIENTS = 3
SETTINGS = """\
lanes: {normal: 3}
worker: {heartbeat: 1s, dead_after: 3s, reap: 1s, safety_scan: 1s, poll: 1s, record_retry: 1s, drain: 2s}
"""
TRIES = 100
RETRY = f"{{attempts: {TRIES}, backoff: 50ms, max_backoff: 500ms, on: [ERROR, WORKER_LOST], drained: true}}"
# A little slower than it must be, each row sent at once.
READ = ("SELECT :tag AS tag, i AS n, repeat('x', 9000) AS pad, "
        "cast(pg_sleep(0.004) AS text) AS slept FROM generate_series(1, :rows) i "
        "ORDER BY i")
JOBS = """\
  effect:
    params: {rows: {type: integer}, tag: {type: string}}
    duplicates: allow
    retry: %(retry)s
    steps:
      - name: write
        chunk: %(chunk)d
        read: {database: pg, sql: "%(read)s"}
        write: {database: main, rows: "INSERT INTO effect (tag, n) VALUES (:tag, :n)"}
  export:
    params: {rows: {type: integer}, tag: {type: string}}
    duplicates: allow
    retry: %(retry)s
    steps:
      - name: file
        chunk: %(chunk)d
        read: {database: pg, sql: "%(read)s"}
        write: {file: "export.csv"}
"""
PAUSES = {"sqlite": (0.02, 0.1, 0.3, 0.5), "pg": (0.01, 0.05, 0.1, 0.3)}
FAULTS = {"kill": 90, "term": 6, "freeze": 2, "database": 2}
REACHED = {}  # store: the cells (stage, fault) of its last storm
COLUMNS = {
    "request": "id, job, lane, source, retry_of, first_try, attempt, created_at",
    "outcome": "id, outcome, worker, token, claimed_at, finished_at, detail, execution_id, "
               "result_path, result_name, result_bytes, result_sha256",
    "execution": "id, request_id, token, state, started_at, ended_at, exit_message",
    "claim": "first_id, last_id, worker, token, lane",
    "ready": "first_id, last_id", "later": "first_id, last_id, reason",
    "active": "key, request_id", "flag": "request_id, cancel", "progress": "request_id",
    "idempotency": "key, request_id",
}


class History:
    """The lines of one thread."""

    def __init__(self, folder, name):
        self.name = name
        self.number = 0
        self.file = open(folder / f"{name}.jsonl", "a", encoding="utf-8", buffering=1)

    def _line(self, **event):
        self.file.write(json.dumps({"t": time.monotonic_ns(), "w": time.time_ns() // 1000,
                                    "p": self.name, **event}) + "\n")

    def invoke(self, op, key, **more):
        self.number += 1
        self._line(n=self.number, op=op, key=key, type="invoke", **more)

    def end(self, op, key, kind, **more):
        self._line(n=self.number, op=op, key=key, type=kind, **more)


class Client(threading.Thread):
    """Asks, looks, cancels, downloads, one thing after the other, until told to stop."""

    def __init__(self, storm, name, seed):
        super().__init__(name=name, daemon=True)
        self.storm = storm
        self.random = random.Random(seed)
        self.history = History(storm.folder, name)
        self.ids = []
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

    def submit(self):
        self.sent += 1
        key = f"{self.name}-{self.sent}"
        rows = self.random.randint(1, 100)
        job = self.random.choice(("effect", "effect", "export"))
        for _ in range(200):
            self.history.invoke("submit", key, job=job, rows=rows)
            said = self.call("POST", f"/api/v1/jobs/{job}/requests",
                             {"params": {"rows": rows, "tag": key}},
                             {"Idempotency-Key": key})
            if said and said[0] in (200, 202):
                number = json.loads(said[1])["requestId"]
                self.history.end("submit", key, "ok", id=number)
                self.ids.append(number)
                return
            refused = said and 400 <= said[0] < 500
            self.history.end("submit", key, "fail" if refused else "info",
                             answer=said and said[0])
            if refused:
                self.trouble = f"a good request was refused: {said}"
                return
            if self.storm.ending.wait(0.05):
                return  # it may be there or not

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

    def run(self):
        try:
            while not self.storm.ending.wait(self.random.random() * 0.1):
                what = self.random.random()
                if what < 0.4 or not self.ids:
                    self.submit()
                    continue
                number = self.random.choice(self.ids[-8:])
                if what < 0.45:
                    self.cancel(number)
                    continue
                request = self.poll(number)
                if request and request.get("result"):
                    self.download(number)
        except Exception as trouble:  # seen by the storm, which fails
            self.trouble = repr(trouble)


class Sampler(threading.Thread):
    """Looks at the claims now and then, by plain SQL, and counts how far they are."""

    def __init__(self, storm):
        super().__init__(name="sampler", daemon=True)
        self.storm = storm
        self.history = History(storm.folder, "sampler")

    def run(self):
        while not self.storm.sampled.wait(0.25):
            self.history.invoke("sample", None)
            try:
                self.history.end("sample", None, "ok", claims=self.storm.claims())
            except Exception as trouble:  # the store may be away
                self.history.end("sample", None, "info", trouble=str(trouble)[:100])


class Storm:
    def __init__(self, store, seed, kills, folder):
        self.store, self.seed, self.kills = store, seed, kills
        self.random = random.Random(f"nemesis {seed}")
        self.folder = folder
        self.cluster = Cluster(own=True)
        self.site = None
        self.ending, self.sampled = threading.Event(), threading.Event()
        self.places = []  # [role, name, port]
        self.running = {}  # name: Server
        self.frozen = {}  # name: when it goes on
        self.draining = {}  # name: when it is killed
        self.reach = collections.Counter()
        self.faults = collections.Counter()
        self.trouble = []
        self.last_claims, self.born = [], {}
        self.took = self.quiet_took = 0.0
        self.history = History(folder, "nemesis")

    # --- the site ---

    def prepare(self):
        jobs = JOBS % {"retry": RETRY, "chunk": CHUNK, "read": READ}
        self.site = Site(self.store, self.cluster, jobs, SETTINGS)
        self.site.pawl("migrate")
        self.site.store_do("CREATE TABLE effect (tag text NOT NULL, n integer NOT NULL)")
        roles = [("serve", "serve")] if self.store == "sqlite" else \
            [("api", "api-1"), ("api", "api-2")] + \
            [("worker", f"worker-{i}") for i in (1, 2, 3)]
        self.places = [[role, name, free_port() if role != "worker" else 0]
                       for role, name in roles]
        self.ports = [port for _, _, port in self.places if port]
        for place in self.places:
            self.start(place)
        for server in list(self.running.values()):
            server.await_ready()

    def start(self, place):
        role, name, port = place
        more = {"PAWL_STATE": str(self.site.folder / f"state-{name}")}
        if port:
            more["PAWL_LISTEN"] = f"127.0.0.1:{port}"
        server = Server(self.site, role, name, self.site.environment(**more), "pawl.yaml")
        self.site.servers.append(server)
        self.running[name] = server
        self.born[server.pid] = time.monotonic()

    def keep_up(self, expected=()):
        """Start again what has ended; an end that nobody asked for is noted."""
        now = time.monotonic()
        for name, until in list(self.frozen.items()):
            if now > until:
                self.running[name].signal(signal.SIGCONT)
                del self.frozen[name]
        for place in self.places:
            name = place[1]
            server = self.running[name]
            code = server.process.poll()
            if code is None:
                if now > self.draining.get(name, now):
                    self.trouble.append(f"{name} did not end in time after SIGTERM")
                    server.kill()
                continue
            server.ended = True
            asked = self.draining.pop(name, None) or name in expected
            if not (code == -9 and name in expected or code == 0 and asked):
                self.faults[f"ended with {code}"] += 1
                early = code == -signal.SIGTERM and asked and " ready " not in server.log()
                if (code < 0 and not early) or code == 0:
                    self.trouble.append(f"{name} ended with {code}: {server.log()[-1500:]}")
                time.sleep(0.05)
            self.site.servers.remove(server)
            self.start(place)

    # --- the nemesis ---

    def stage(self, name):
        """How far the work of that process is, for the table of reach."""
        server = self.running[name]
        if server.role == "api":
            return "api"
        if time.monotonic() - self.born.get(server.pid, 0) < 0.05:
            return "starting"
        mine = [c for c in self.last_claims if c["worker"].startswith(f"{server.pid}@")]
        return "running" if mine else "idle"

    def strike(self):
        fault = self.random.choices(list(FAULTS), FAULTS.values())[0]
        if fault == "database" and self.store == "sqlite":
            fault = "kill"
        name = self.random.choice(self.places)[1]
        if name in self.frozen or name in self.draining:
            fault = "kill"
        self.history.invoke("fault", name, fault=fault)
        self.faults[fault] += 1
        if fault == "database":
            self.reach["all", fault] += 1
            self.cluster.pg_ctl("stop", "-m", "immediate")
            time.sleep(self.random.random())
            self.cluster.pg_ctl("start")
        else:
            self.reach[self.stage(name), fault] += 1
            server = self.running[name]
            if fault == "kill":
                server.kill()
                self.frozen.pop(name, None)
                self.draining.pop(name, None)
                self.keep_up((name,))
            elif fault == "term":
                server.signal(signal.SIGTERM)
                self.draining[name] = time.monotonic() + 20
            else:
                server.signal(signal.SIGSTOP)
                self.frozen[name] = time.monotonic() + DEAD_AFTER + 1.5
        self.history.end("fault", name, "ok")

    def blow(self, seconds):
        end = time.monotonic() + seconds
        while self.faults["kill"] < self.kills and time.monotonic() < end:
            # Short lives and longer ones: beginnings are hit, and work gets done.
            time.sleep(self.random.choice(PAUSES[self.store]) * self.random.random())
            self.keep_up()
            self.strike()

    # --- looking, by plain SQL ---

    def rows(self, query):
        if self.store == "pg":
            return json.loads(psql(self.site.store_url, "SELECT coalesce(json_agg(t), "
                                   f"'[]') FROM ({query}) t"))
        return sqlite_rows(self.site.folder / "pawl.db", query.replace("pawl.", ""))

    def claims(self):
        found = self.rows(f"SELECT {COLUMNS['claim']} FROM pawl.claim")
        self.last_claims = found
        return found

    def open_rows(self):
        return self.rows(
            "SELECT (SELECT count(*) FROM pawl.request) - (SELECT count(*) FROM "
            "pawl.outcome) + (SELECT count(*) FROM pawl.claim) AS n")[0]["n"]

    def calm(self, seconds=60):
        """No faults any more: all must come to its end."""
        self.ending.set()
        for name in list(self.frozen):
            self.running[name].signal(signal.SIGCONT)
            del self.frozen[name]
        begin = time.monotonic()
        left = None
        while time.monotonic() < begin + seconds:
            self.keep_up()
            try:
                left = self.open_rows()
            except AssertionError:
                left = None
            if left == 0 and not self.draining and not self.site.parts():
                break
            time.sleep(0.2)
        self.quiet_took = time.monotonic() - begin
        self.sampled.set()
        for name, server in self.running.items():
            server.signal(signal.SIGTERM)
        for name, server in self.running.items():
            code = server.wait_end()
            if code != 0:
                self.trouble.append(f"{name} ended with {code} after the quiet period")

    def dump(self):
        dump = {table: self.rows(f"SELECT {columns} FROM pawl.{table}")
                for table, columns in COLUMNS.items()}
        dump["step"] = self.rows(
            "SELECT e.request_id, s.name, s.state, s.write_count FROM pawl.step_execution s "
            "JOIN pawl.execution e ON e.id = s.execution_id")
        dump["effect"] = self.rows("SELECT tag, n, count(*) AS times FROM effect "
                                   "GROUP BY tag, n")
        dump["files"] = [
            {"request_id": int(path.parent.name), "name": path.name,
             "bytes": path.stat().st_size,
             "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
            for path in (self.site.folder / "results/files").glob("*/*")]
        dump["parts"] = [path.name for path in self.site.parts()]
        dump["lanes"] = LANES
        dump["jobs"] = {"effect": {"attempts": TRIES, "chunk": CHUNK, "effect": True,
                                   "resumes": False},
                        "export": {"attempts": TRIES}}
        (self.folder / "dump.json").write_text(json.dumps(dump))
        return dump

    def run(self, seconds):
        clients = [Client(self, f"client-{i}", f"client {i} {self.seed}")
                   for i in range(CLIENTS)]
        sampler = Sampler(self)
        for thread in [*clients, sampler]:
            thread.start()
        begin = time.monotonic()
        self.blow(seconds)
        self.took = time.monotonic() - begin
        self.calm()
        for thread in [*clients, sampler]:
            thread.join(10)
            assert not thread.is_alive(), f"{thread.name} hangs"
        self.trouble += [f"{c.name}: {c.trouble}" for c in clients if c.trouble]
        self.site.pawl("fsck")  # a second judge
        return self.dump()

    def close(self):
        for name in self.frozen:
            self.running[name].signal(signal.SIGCONT)
        if self.site:
            self.site.discard()
        self.cluster.close()


def tell(storm, case, found):
    print(f"{storm.store}: {sum(storm.faults.values())} faults {dict(storm.faults)} in "
          f"{storm.took:.1f} s ({60 * storm.faults['kill'] / storm.took:.0f} kills a "
          f"minute); quiet after {storm.quiet_took:.1f} s")
    outcomes = collections.Counter(row["outcome"] for row in case.dump["outcome"])
    print(f"  {len(case.requests)} requests {dict(outcomes)}, {len(case.ops)} operations")
    for (stage, fault), count in sorted(storm.reach.items()):
        print(f"  {stage:10} x {fault:10} {count}")
    checker.show(case, found)
    for trouble in storm.trouble:
        print(f"trouble: {trouble}")


def blow(store, kills, seed, seconds, keep=None):
    """One storm; true when nothing was broken."""
    folder = pathlib.Path(keep or tempfile.mkdtemp(prefix="pawl-storm-"))
    folder.mkdir(parents=True, exist_ok=True)
    storm = Storm(store, seed, kills, folder)
    good = False
    try:
        storm.prepare()
        storm.run(seconds)
        ops, bad = checker.read_histories(folder)
        case, found = checker.check(ops, json.loads((folder / "dump.json").read_text()),
                                    bad)
        tell(storm, case, found)
        REACHED[store] = set(storm.reach)
        good = not found and not storm.trouble
        return good
    finally:
        if not good:
            for log in storm.site.folder.glob("*.log") if storm.site else ():
                shutil.copy(log, folder)
            print(f"again: storm.py --store {store} --kills {kills} --seed {seed}; "
                  f"histories and logs are in {folder}")
        storm.close()
        if good and not keep:
            shutil.rmtree(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", choices=("sqlite", "pg"), required=True)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3600, help="most to blow")
    parser.add_argument("--keep", help="folder for histories and the dump")
    given = parser.parse_args()
    return 0 if blow(given.store, given.kills, given.seed, given.seconds,
                     given.keep) else 1


if __name__ == "__main__":
    sys.exit(main())

"""A world that is in order, for the tests of the checker to spoil."""

import json

import pytest

import checker

DIGEST = "ab" * 32


class World:
    """Histories and a dump that are in order: an effect with one lost try, an export,
    a cancelled one, a submit whose answer was lost, one that was refused."""

    def __init__(self):
        self.events = {"client-1": [], "client-2": [], "sampler": []}
        self.clock = 1000
        self.dump = {
            "request": [], "outcome": [], "execution": [], "step": [], "claim": [],
            "ready": [], "later": [], "active": [], "flag": [], "progress": [],
            "idempotency": [], "effect": [], "files": [], "parts": [],
            "schedule_slot": [],
            "lanes": {"normal": 2},
            "jobs": {"effect": {"attempts": 3, "chunk": 10, "effect": True,
                                "resumes": True},
                     "export": {"attempts": 1}},
        }
        self.op("submit", "a", job="effect", rows=25, ok={"id": 1})
        self.op("sample", None, ok={"claims": [self.claim(1, 7, "w1")]})
        self.op("poll", 1, ok={"status": "RUNNING", "outcome": None})
        self.request(1, "a", "effect", 1001)
        self.finish(1, "WORKER_LOST", "FAILED", 7, "w1", 1002, 1008)
        self.request(2, None, "effect", 1008, source="retry", retry_of=1, first_try=1,
                     attempt=2)
        self.clock = 1010
        self.op("sample", None, ok={"claims": [self.claim(2, 8, "w2")]})
        self.finish(2, "COMPLETED", "COMPLETED", 8, "w2", 1010, 1018)
        self.dump["effect"] = [{"tag": "a", "n": n, "times": 1} for n in range(1, 26)]

        self.clock = 1020
        self.op("submit", "b", "client-2", job="export", rows=5, ok={"id": 3})
        self.request(3, "b", "export", 1021)
        self.finish(3, "COMPLETED", "COMPLETED", 9, "w2", 1022, 1028,
                    result_path="files/3/b.csv", result_name="b.csv", result_bytes=50,
                    result_sha256=DIGEST)
        self.dump["files"] = [{"request_id": 3, "name": "b.csv", "bytes": 50,
                               "sha256": DIGEST}]
        self.clock = 1030
        self.op("poll", 3, "client-2", ok={"status": "DONE", "outcome": "COMPLETED"})
        self.op("download", 3, "client-2", ok={"bytes": 50, "sha256": DIGEST})

        self.clock = 1040
        self.op("submit", "c", job="effect", rows=25, ok={"id": 4})
        self.request(4, "c", "effect", 1041)
        self.op("cancel", 4, ok={"code": 200})
        self.finish(4, "CANCELLED", None, None, None, None, 1042)
        self.op("poll", 4, ok={"status": "FAILED", "outcome": "CANCELLED"})

        self.clock = 1050
        self.op("submit", "d", job="export", rows=1)  # the answer was lost
        self.request(5, "d", "export", 1051)
        self.finish(5, "ERROR", "FAILED", 10, "w2", 1052, 1053)
        self.op("submit", "e", job="export", rows=1, fail={"code": 400})
        self.op("submit", "f", job="export", rows=1)  # lost, and never arrived
        self.op("poll", 5, ok={"status": "FAILED", "outcome": "ERROR"})

    def op(self, name, key, process="client-1", ok=None, fail=None, info=None,
           **more):
        if name == "sample":
            process = "sampler"
        events = self.events[process]
        head = {"p": process, "n": len(events), "op": name, "key": key}
        events.append({**head, **self.tick(), "type": "invoke", **more})
        kind = "ok" if ok is not None else "fail" if fail is not None else "info"
        events.append({**head, **self.tick(), "type": kind, **(ok or fail or info or {})})
        return events[-1]

    def tick(self):
        self.clock += 1
        return {"t": self.clock * 1000, "w": self.clock}

    @staticmethod
    def claim(request_id, token, worker, last=None):
        return {"first_id": request_id, "last_id": last or request_id, "token": token,
                "worker": worker, "lane": "normal"}

    def request(self, request_id, key, job, created_at, **more):
        self.dump["request"].append({
            "id": request_id, "job": job, "lane": "normal", "source": "api",
            "retry_of": None, "first_try": None, "attempt": 1, "created_at": created_at,
            **more})
        if key:
            self.dump["idempotency"].append({"key": key, "request_id": request_id})

    def execution(self, request_id, token, state="COMPLETED", **more):
        self.dump["execution"].append({
            "id": len(self.dump["execution"]) + 1, "request_id": request_id,
            "token": token, "state": state, "started_at": 1, "ended_at": 2, **more})
        return self.dump["execution"][-1]["id"]

    def finish(self, request_id, outcome, state, token, worker, claimed_at, finished_at,
               **result):
        execution = self.execution(request_id, token, state) if state else None
        row = dict.fromkeys(("result_path", "result_name", "result_bytes",
                             "result_sha256"))
        self.dump["outcome"].append({
            **row, "id": request_id, "outcome": outcome, "worker": worker,
            "token": token, "claimed_at": claimed_at, "finished_at": finished_at,
            "execution_id": execution, **result})

    def row(self, table, **where):
        (row,) = [r for r in self.dump[table]
                  if all(r[k] == v for k, v in where.items())]
        return row

    def remove(self, table, **where):
        self.dump[table].remove(self.row(table, **where))

    def write(self, folder):
        for name, events in self.events.items():
            (folder / f"{name}.jsonl").write_text(
                "".join(json.dumps(event) + "\n" for event in events))
        (folder / "dump.json").write_text(json.dumps(self.dump))

    def judge(self, folder):
        self.write(folder)
        ops, bad = checker.read_histories(folder)
        return checker.check(ops, self.dump, bad)


BAD = []


def bad(rule, *also):
    """Marks a function that spoils a world. `also`: what that breaks besides."""
    def mark(spoil):
        BAD.append(pytest.param(spoil, {rule}, {rule, *also}, id=spoil.__name__))
        return spoil
    return mark

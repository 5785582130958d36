"""The checker is worth its name only if it refuses what is wrong: each history here is
a good one with one thing spoilt, and must be refused by the rule that names it."""

import copy
import json
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import checker  # noqa: E402

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

    def op(self, name, key, process="client-1", ok=None, fail=None, **more):
        if name == "sample":
            process = "sampler"
        events = self.events[process]
        head = {"p": process, "n": len(events), "op": name, "key": key}
        events.append({**head, **self.tick(), "type": "invoke", **more})
        kind = "ok" if ok is not None else "fail" if fail is not None else "info"
        events.append({**head, **self.tick(), "type": kind, **(ok or fail or {})})
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


# --- taking ---

@bad("accepted-lost")
def an_accepted_request_is_gone(w):
    w.op("submit", "g", job="export", rows=1, ok={"id": 99})


@bad("accepted-lost")
def a_polled_request_is_gone(w):
    w.op("poll", 98, ok={"status": "QUEUED", "outcome": None})


@bad("accepted-lost", "outcome-changed")
def an_accepted_request_is_gone_with_its_key(w):
    w.remove("request", id=4)
    w.remove("outcome", id=4)
    w.remove("idempotency", key="c")


@bad("never-submitted", "not-final")
def a_request_that_nobody_asked_for(w):
    w.request(77, None, "export", 1000)


@bad("never-submitted")
def a_refused_submit_is_there(w):
    w.request(6, "e", "export", 1060)
    w.finish(6, "ERROR", "FAILED", 11, "w2", 1061, 1062)


@bad("never-submitted", "attempts")
def a_try_of_nothing(w):
    w.row("request", id=2)["retry_of"] = 66


@bad("never-submitted")
def rows_of_a_tag_that_nobody_used(w):
    w.dump["effect"].append({"tag": "zz", "n": 1, "times": 1})


@bad("never-submitted")
def an_outcome_without_a_request(w):
    w.finish(55, "ERROR", None, 11, "w3", 1061, 1062)


@bad("never-submitted", "file-stray")
def a_file_without_a_request(w):
    w.dump["files"].append({"request_id": 44, "name": "x", "bytes": 1, "sha256": DIGEST})


@bad("key-two-ids")
def one_key_is_answered_with_two_ids(w):
    w.op("submit", "b", job="export", rows=5, ok={"id": 5})


@bad("key-two-ids")
def one_key_has_two_rows(w):
    w.request(6, "b", "export", 1060)
    w.finish(6, "ERROR", "FAILED", 11, "w2", 1061, 1062)


# --- ending ---

@bad("two-outcomes", "illegal-transition", "file-stray")
def two_outcomes_are_stored(w):
    w.finish(3, "ERROR", None, 9, "w2", 1022, 1029)


@bad("two-outcomes", "attempts")
def two_executions_completed(w):
    w.execution(3, 10)
    w.row("outcome", id=3)["token"] = 10


@bad("outcome-changed")
def the_stored_outcome_is_not_the_answered_one(w):
    w.row("outcome", id=5)["outcome"] = "TIMEOUT"


@bad("outcome-changed")
def two_final_answers_differ(w):
    w.op("poll", 5, ok={"status": "FAILED", "outcome": "WORKER_LOST"})


@bad("outcome-changed")
def a_final_request_runs_again(w):
    w.op("poll", 3, ok={"status": "RUNNING", "outcome": None})


@bad("outcome-changed", "not-final")
def a_final_answer_was_never_stored(w):
    w.remove("outcome", id=5)


@bad("illegal-transition", "outcome-changed")
def done_is_answered_without_an_outcome(w):
    w.op("poll", 3, ok={"status": "DONE", "outcome": None})


@bad("illegal-transition")
def done_is_answered_with_an_error(w):
    w.op("poll", 5, ok={"status": "DONE", "outcome": "ERROR"})


@bad("illegal-transition")
def completed_without_a_completed_execution(w):
    w.row("execution", request_id=3)["state"] = "FAILED"


@bad("illegal-transition")
def an_error_over_a_completed_execution(w):
    w.row("execution", request_id=5)["state"] = "COMPLETED"


@bad("illegal-transition")
def an_outcome_that_does_not_exist(w):
    w.row("outcome", id=1)["outcome"] = "GONE"
    w.row("request", id=2).update(retry_of=1)
    checker.RETRIED.add("GONE")


@bad("illegal-transition")
def expired_with_an_execution(w):
    w.row("outcome", id=5)["outcome"] = "EXPIRED"
    w.events["client-1"] = w.events["client-1"][:-2]


@bad("illegal-transition")
def an_ended_execution_without_its_end(w):
    w.row("execution", request_id=5)["ended_at"] = None


@bad("not-final")
def a_request_is_left_waiting(w):
    w.op("submit", "g", job="export", rows=1, ok={"id": 6})
    w.request(6, "g", "export", 1070)


@bad("not-final")
def an_execution_is_left_running(w):
    w.row("execution", request_id=5).update(state="STARTED", ended_at=None)


@bad("not-final")
def a_step_is_left_running(w):
    w.dump["step"].append({"request_id": 5, "name": "s", "state": "STARTED"})


@bad("not-final")
def a_claim_is_left(w):
    w.dump["claim"].append(w.claim(5, 10, "w2"))


@bad("not-final")
def a_key_is_left(w):
    w.dump["active"].append({"key": "job:export", "request_id": 5})


# --- tokens, attempts, slots ---

@bad("token-order")
def a_token_is_given_to_two_workers(w):
    w.op("sample", None, ok={"claims": [w.claim(5, 9, "w3")]})


@bad("token-order")
def a_token_goes_down(w):
    w.op("sample", None, ok={"claims": [w.claim(5, 12, "w5")]})


@bad("token-order", "attempts")
def a_second_execution_under_a_smaller_token(w):
    w.execution(5, 4, "FAILED")


@bad("stale-write", "attempts")
def recorded_under_a_token_that_was_not_the_last(w):
    w.execution(5, 30, "FAILED")


@bad("attempts")
def the_number_of_a_try_jumps(w):
    w.row("request", id=2)["attempt"] = 3


@bad("attempts")
def one_try_has_two_followers(w):
    w.request(6, None, "effect", 1019, source="retry", retry_of=1, first_try=1, attempt=2)
    w.finish(6, "ERROR", "FAILED", 11, "w2", 1061, 1062)


@bad("attempts")
def more_tries_than_allowed(w):
    w.dump["jobs"]["effect"]["attempts"] = 1


@bad("attempts")
def given_up_before_the_last_try(w):
    for table, where in (("outcome", {"id": 2}), ("execution", {"request_id": 2}),
                         ("request", {"id": 2})):
        w.remove(table, **where)
    w.dump["effect"] = w.dump["effect"][:10]


@bad("attempts")
def a_try_after_success(w):
    w.request(6, None, "effect", 1019, source="retry", retry_of=2, first_try=1, attempt=3)
    w.finish(6, "ERROR", "FAILED", 11, "w2", 1061, 1062)


@bad("after-cancel", "attempts")
def a_try_after_an_acknowledged_cancel(w):
    w.request(6, None, "effect", 1060, source="retry", retry_of=4, first_try=4, attempt=2)
    w.finish(6, "ERROR", "FAILED", 11, "w2", 1061, 1062)


@bad("after-cancel")
def a_cancelled_request_is_begun(w):
    w.row("outcome", id=4).update(claimed_at=1060, finished_at=1061, worker="w2",
                                  token=11)


@bad("over-slots")
def three_run_in_two_slots(w):
    for n in (6, 7):
        w.op("submit", f"x{n}", job="export", rows=1, ok={"id": n})
        w.request(n, f"x{n}", "export", 1060)
        w.finish(n, "ERROR", "FAILED", 20 + n, "w2", 1022 + n - 6, 1027)


@bad("over-slots")
def three_are_claimed_in_two_slots(w):
    w.op("sample", None, ok={"claims": [w.claim(100, 50, "w9", last=102)]})


# --- doing ---

@bad("stale-write")
def a_row_is_written_twice(w):
    w.dump["effect"][12]["times"] = 2


@bad("effect-gap")
def a_row_is_skipped(w):
    del w.dump["effect"][12]


@bad("effect-missing")
def the_last_chunk_is_missing(w):
    w.dump["effect"] = w.dump["effect"][:20]


@bad("stale-write")
def more_rows_than_asked_for(w):
    w.dump["effect"].append({"tag": "a", "n": 26, "times": 1})


@bad("effect-gap")
def half_a_chunk_of_a_cancelled_run(w):
    w.dump["effect"] += [{"tag": "c", "n": n, "times": 1} for n in range(1, 6)]


@bad("file-missing")
def a_result_row_without_a_file(w):
    w.dump["files"] = []


@bad("file-differs")
def a_file_is_shorter(w):
    w.dump["files"][0]["bytes"] = 49


@bad("file-differs")
def a_file_has_other_bytes(w):
    w.dump["files"][0]["sha256"] = "cd" * 32


@bad("file-differs")
def a_download_differs(w):
    w.op("download", 3, ok={"bytes": 50, "sha256": "cd" * 32})


@bad("file-stray")
def a_file_of_a_failed_run(w):
    w.dump["files"].append({"request_id": 5, "name": "d.csv", "bytes": 1,
                            "sha256": DIGEST})


@bad("part-left")
def a_part_is_left(w):
    w.dump["parts"].append("5-1-10.part")


def afresh(w):
    """Tries that begin again: the lost one had committed a chunk of ten."""
    w.dump["jobs"]["effect"]["resumes"] = False
    w.dump["step"] = [
        {"request_id": 1, "name": "s", "state": "FAILED", "write_count": 10},
        {"request_id": 2, "name": "s", "state": "COMPLETED", "write_count": 25}]
    for row in w.dump["effect"][:10]:
        row["times"] = 2
    return w


@bad("stale-write")
def a_lost_try_wrote_after_its_end(w):
    for row in afresh(w).dump["effect"][10:20]:
        row["times"] = 2


@bad("stale-write")
def a_cancelled_request_wrote_rows(w):
    afresh(w).dump["effect"].append({"tag": "c", "n": 1, "times": 1})


@bad("effect-gap")
def a_chunk_is_counted_and_not_written(w):
    for row in afresh(w).dump["effect"][:10]:
        row["times"] = 1


@bad("effect-gap")
def a_step_counts_half_a_chunk(w):
    afresh(w).dump["step"][0]["write_count"] = 7
    for row in w.dump["effect"][7:10]:
        row["times"] = 1


@bad("effect-missing")
def a_completed_step_counts_too_few(w):
    afresh(w).dump["step"][1]["write_count"] = 20
    del w.dump["effect"][20:]


# --- the form ---

@bad("history")
def an_end_without_a_begin(w):
    w.events["client-2"].append({"t": 10**9, "w": 1, "p": "client-2", "n": 99,
                                 "op": "poll", "key": 3, "type": "ok"})


@bad("history")
def a_clock_that_goes_back(w):
    w.op("fault", "worker", "client-2")
    w.events["client-2"][-1]["t"] = 5


@bad("history")
def a_dump_without_a_table(w):
    del w.dump["claim"]


# --- the tests ---

@pytest.fixture(autouse=True)
def rules_stay():
    kept = set(checker.RETRIED)
    yield
    checker.RETRIED.clear()
    checker.RETRIED.update(kept)


def test_good_histories_are_accepted(tmp_path):
    _, found = World().judge(tmp_path)
    assert found == []


def test_an_empty_storm_is_accepted(tmp_path):
    world = World()
    for table in checker.TABLES:
        world.dump[table] = []
    world.events = {"client-1": []}
    assert world.judge(tmp_path)[1] == []


def test_tries_that_begin_again_are_accepted(tmp_path):
    assert afresh(World()).judge(tmp_path)[1] == []


def test_a_handed_back_try_keeps_its_number(tmp_path):
    world = World()
    world.row("outcome", id=1)["outcome"] = "STOPPED"
    world.row("execution", request_id=1)["state"] = "STOPPED"
    world.row("request", id=2)["attempt"] = 1
    assert world.judge(tmp_path)[1] == []


def test_a_poll_that_overlaps_the_end_may_still_see_it_running(tmp_path):
    world = World()
    final = world.events["client-2"][-3]
    assert final["op"] == "poll" and final["type"] == "ok"
    late = world.op("poll", 3, ok={"status": "RUNNING", "outcome": None})
    world.events["client-1"][-2]["t"] = final["t"] - 1
    assert late["t"] > final["t"]
    world.events["client-3"] = world.events["client-1"][-2:]
    world.events["client-1"] = world.events["client-1"][:-2]
    for event in world.events["client-3"]:
        event["p"] = "client-3"
    assert world.judge(tmp_path)[1] == []


def test_an_end_and_a_begin_in_one_microsecond_share_a_slot(tmp_path):
    world = World()
    world.dump["lanes"]["normal"] = 1
    world.row("outcome", id=3)["claimed_at"] = world.row("outcome", id=2)["finished_at"]
    assert world.judge(tmp_path)[1] == []


@pytest.mark.parametrize("spoil, rules, may", BAD)
def test_a_spoilt_history_is_refused(spoil, rules, may, tmp_path):
    world = World()
    spoil(world)
    _, found = world.judge(tmp_path)
    named = {violation.rule for violation in found}
    assert rules <= named <= may, found


def test_there_are_enough_bad_ones_and_each_rule_has_one():
    assert len(BAD) >= 30
    text = (HERE / "checker.py").read_text()
    for rule in {rule for case in BAD for rule in case.values[1]}:
        assert f'"{rule}"' in text


def test_the_command_prints_the_timeline_of_the_smallest(tmp_path):
    world = World()
    world.dump["effect"][12]["times"] = 2
    world.write(tmp_path)
    done = subprocess.run([sys.executable, HERE / "checker.py", tmp_path],
                          stdout=subprocess.PIPE, encoding="utf-8")
    assert done.returncode == 1
    assert "stale-write: 1" in done.stdout and "row 13 is there 2 times" in done.stdout
    assert "client-1 submit ok {'key': 'a', 'id': 1}" in done.stdout
    assert "store outcome {'id': 2, 'outcome': 'COMPLETED'" in done.stdout
    assert "'b'" not in done.stdout  # nothing of the others


def test_a_good_folder_ends_with_zero(tmp_path):
    World().write(tmp_path)
    done = subprocess.run([sys.executable, HERE / "checker.py", tmp_path],
                          stdout=subprocess.PIPE, encoding="utf-8")
    assert done.returncode == 0 and "0 violations" in done.stdout, done.stdout


def test_a_torn_last_line_is_named(tmp_path):
    World().write(tmp_path)
    with open(tmp_path / "client-1.jsonl", "a", encoding="utf-8") as history:
        history.write('{"t": 99')
    _, found = checker.read_histories(tmp_path)
    assert [(v.rule, v.subject) for v in found] == [("history", "client-1.jsonl")]


def test_it_judges_many_requests_in_a_moment(tmp_path):
    """No rule looks at all requests for each request."""
    world = World()
    base = copy.deepcopy(world.row("outcome", id=5))
    for n in range(100, 10100):
        world.request(n, f"k{n}", "export", 2000 + n)
        world.dump["outcome"].append({**base, "id": n, "token": n, "execution_id": None,
                                      "claimed_at": 2000 + 2 * n,
                                      "finished_at": 2001 + 2 * n})
        world.op("submit", f"k{n}", job="export", rows=1, ok={"id": n})
    assert world.judge(tmp_path)[1] == []

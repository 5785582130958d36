"""Cancel: a flag in the database, seen at the next checkpoint; nothing else suffers."""

import time
from concurrent.futures import ThreadPoolExecutor

from pawl_env import FULL, wait_for

CHECKPOINT_MS = 200
LIMIT_S = CHECKPOINT_MS / 1000 + 1.5


def cancelled_cleanly(site, request_id):
    request = site.wait_final(request_id)
    assert (request["status"], request["outcome"]) == ("FAILED", "CANCELLED"), request
    assert request["result"] is None
    assert site.download(request_id).json["code"] == "NO_RESULT"
    wait_for(lambda: site.parts_of(request_id) == [],
             "the part is removed")
    assert site.files(request_id) == []
    return request


def test_B27_a_queued_one_fails_at_once_and_is_never_run(site):
    request_id = site.submit_id("parked")
    answer = site.cancel(request_id)
    assert (answer.status, answer.json["status"]) == (200, "FAILED")
    request = site.get(request_id)
    assert (request["outcome"], request["worker"], request["startedAt"]) == \
        ("CANCELLED", None, None)
    for table in ("ready", "later", "claim"):
        assert site.count(table, f"{request_id} BETWEEN first_id AND last_id") == 0
    assert site.count("execution", f"request_id = {request_id}") == 0
    again = site.cancel(request_id)
    assert (again.status, again.json["code"]) == (409, "ALREADY_FINAL")
    assert site.count("audit", f"subject LIKE '%{request_id}' AND act = 'cancel'") == 1


def test_B27_out_of_the_middle_of_a_span(site):
    answer = site.call("POST", "/api/v1/requests",
                       {"requests": [{"job": "parked"} for _ in range(5)]})
    ids = [one["requestId"] for one in answer.json["requests"]]
    assert site.cancel(ids[2]).status == 200
    assert [site.get(i)["status"] for i in ids] == \
        ["QUEUED", "QUEUED", "FAILED", "QUEUED", "QUEUED"]
    assert {site.cancel(i).status for i in ids[:2] + ids[3:]} == {200}


def test_B25_B28_a_running_one_is_flagged_and_ends_at_its_checkpoint(site):
    request_id = site.submit_id("slow", rows=100, ms=50)
    site.wait_progress(request_id, 30)
    answer = site.cancel(request_id)
    assert (answer.status, answer.json["status"]) == (202, "RUNNING")
    assert answer.json["cancelRequested"] is True
    request = cancelled_cleanly(site, request_id)
    assert request["executionId"]
    (execution,) = site.sql(f"SELECT state, ended_at FROM pawl.execution "
                            f"WHERE request_id = {request_id}")
    assert execution["state"] == "FAILED" and execution["ended_at"]
    assert site.count("flag", f"request_id = {request_id}") == 0
    assert site.cancel(request_id).status == 409


def test_B28_cancel_after_the_end_is_refused_and_the_end_kept(site):
    request_id = site.submit_id("quick")
    site.wait_done(request_id)
    answer = site.cancel(request_id)
    assert (answer.status, answer.json["code"]) == (409, "ALREADY_FINAL")
    assert site.wait_done(request_id)["complete"]
    assert len(site.result(request_id)) > 0


def test_B25_the_flag_is_a_row_that_anybody_may_have_set(site):
    """As another node would do it: no word to the worker but the row."""
    request_id = site.submit_id("slow", rows=400, ms=50)
    site.wait_progress(request_id, 2)
    site.store_do("INSERT INTO pawl.flag (request_id, stop, cancel, asked_by, asked_at) "
                  f"VALUES ({request_id}, 0, 1, 'somebody', 1)")
    cancelled_cleanly(site, request_id)


def test_B26_each_ends_within_one_checkpoint_and_the_pool_stays(site):
    def one(n):
        request_id = site.submit_id("slow", rows=1000, ms=CHECKPOINT_MS)
        site.wait_progress(request_id, 1)
        begin = time.monotonic()
        assert site.cancel(request_id).status == 202
        assert site.get(request_id, wait="20s")["outcome"] == "CANCELLED"
        return time.monotonic() - begin
    with ThreadPoolExecutor(4) as pool:
        took = list(pool.map(one, range(100 if FULL else 12)))
    print(f"cancel to end, checkpoint of {CHECKPOINT_MS} ms: worst {max(took):.3f} s")
    assert max(took) < LIMIT_S, took
    # As many slots as before, each of them usable.
    ids = [site.submit_id("slow", rows=30, ms=50) for _ in range(8)]
    wait_for(lambda: site.count("claim") == 8, "all eight slots are in use")
    for request_id in ids:
        site.wait_done(request_id)


def test_B26_a_reader_that_computes_is_stopped_too(site):
    """The time goes into the query itself: no row comes for long."""
    request_id = site.submit_id("burn")
    site.wait_running(request_id)
    wait_for(lambda: site.count("execution", f"request_id = {request_id}"), "it starts")
    begin = time.monotonic()
    assert site.cancel(request_id).status == 202
    cancelled_cleanly(site, request_id)
    assert time.monotonic() - begin < LIMIT_S


def begin_own(site, job):
    """The execution is there: next comes the statement on the store itself."""
    request_id = site.submit_id(job)
    wait_for(lambda: site.count("step_execution s JOIN pawl.execution e ON "
                                "e.id = s.execution_id", f"e.request_id = {request_id}"),
             "its step begins")
    return request_id


def test_B26_a_statement_on_the_store_itself_is_cut_off(site):
    request_id = begin_own(site, "own")
    begin = time.monotonic()
    assert site.cancel(request_id).status == 202
    cancelled_cleanly(site, request_id)
    assert time.monotonic() - begin < LIMIT_S
    assert site.count("audit", f"subject LIKE '%{request_id}' AND act = 'cancel'") == 1
    site.wait_done(site.submit_id("quick"))


def test_B26_the_timeout_cuts_it_off_and_who_writes_meanwhile_waits_no_longer(site):
    begin = time.monotonic()
    request_id = begin_own(site, "own-limited")
    beside = site.submit_id("quick")
    assert time.monotonic() - begin < 1 + LIMIT_S
    assert site.wait_final(request_id)["outcome"] == "TIMEOUT"
    assert time.monotonic() - begin < 1 + LIMIT_S
    site.wait_done(beside)


def test_A26_stop_ends_it_as_stopped_and_asks_to_come_again(site):
    request_id = site.submit_id("slow", rows=1000, ms=20)
    site.wait_progress(request_id, 3)
    answer = site.call("POST", f"/api/v1/requests/{request_id}/stop")
    assert (answer.status, answer.json["stopRequested"]) == (202, True)
    request = site.wait_final(request_id)
    assert (request["status"], request["outcome"], request["complete"]) == \
        ("DONE", "STOPPED", False)
    assert f"`pawl restart {request_id}` goes on" in request["detail"]
    assert site.download(request_id).json["code"] == "NO_RESULT"

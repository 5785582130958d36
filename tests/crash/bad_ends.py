"""Worlds with one thing spoilt: in what was taken, how it ended, under which tokens."""

import checker
import rules
from world import DIGEST, bad


# --- taking ---

@bad("accepted-lost")
def an_accepted_request_is_gone(w):
    w.op("submit", "g", job="export", rows=1, ok={"id": 99})


@bad("accepted-lost")
def a_polled_request_is_gone(w):
    w.op("poll", 98, ok={"status": "QUEUED", "outcome": None})


@bad("accepted-lost")
def an_accepted_request_is_not_found_for_a_while(w):
    w.op("poll", 3, info={"answer": 404})


@bad("accepted-lost", "key-two-ids")
def two_keys_are_answered_with_one_id(w):
    w.op("submit", "h", job="export", rows=5, ok={"id": 3})


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
    rules.RETRIED.add("GONE")


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

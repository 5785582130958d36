"""Worlds with one thing spoilt: in chains, in waiting, in schedules, in rescues."""

from world import bad


def chain(w):
    """5 is asked for with a next, ends well, and 20 follows."""
    w.op("submit", "g", job="export", rows=1, next=["mark"], ok={"id": 18})
    w.request(18, "g", "export", 1101)
    w.finish(18, "COMPLETED", "COMPLETED", 20, "w2", 1102, 1103)
    w.request(20, None, "mark", 1103, source="chain", requester="chain:#18")
    w.finish(20, "COMPLETED", "COMPLETED", 21, "w2", 1104, 1105)
    return w


def fan_in(w):
    """30 waits for 2 and 3."""
    w.op("submit", "h", job="mark", rows=1, after=[1, 3], ok={"id": 30})
    w.request(30, "h", "mark", 1110)
    w.finish(30, "COMPLETED", "COMPLETED", 30, "w2", 1111, 1112)
    return w


def slots(w):
    """A second's schedule: two fired, three merged into one row."""
    w.dump["schedules"] = {"beat": 1_000_000}
    for number, second in ((40, 1), (41, 2)):
        w.request(number, None, "slot", 1200 + second, source="schedule")
        w.finish(number, "COMPLETED", "COMPLETED", number, "w2", 1210, 1211)
        w.dump["schedule_slot"].append({
            "schedule": "beat", "slot_time": second * 10**6, "last_time": second * 10**6,
            "slots": 1, "state": "fired", "request_id": number})
    w.dump["schedule_slot"].append({
        "schedule": "beat", "slot_time": 3 * 10**6, "last_time": 5 * 10**6, "slots": 3,
        "state": "merged", "request_id": None})
    return w


def rescue(w, hit=True):
    """w1 lost request 1 at 1008; it had beaten shortly before."""
    w.dump["dead_after_us"] = 100
    for row in w.dump["outcome"] + [c for e in w.events["sampler"]
                                    for c in e.get("claims", ())]:
        if row["worker"] == "w1":
            row["worker"] = "77@w1"
    w.events["sampler"][1]["beats"] = [{"id": "77@w1", "beat_at": 1005}]
    w.events["nemesis"] = [
        {"p": "nemesis", "n": 0, "op": "fault", "key": "x", "type": kind, "t": when, "w": 1004,
         "fault": "kill", "pids": [77 if hit else 78]}
        for kind, when in (("invoke", 1), ("ok", 2))]
    return w


@bad("chain")
def a_next_is_released_twice(w):
    chain(w)
    w.request(21, None, "mark", 1103, source="chain", requester="chain:#18")
    w.finish(21, "COMPLETED", "COMPLETED", 22, "w2", 1104, 1105)


@bad("chain")
def a_next_is_never_released(w):
    chain(w)
    for table, column in (("request", "id"), ("outcome", "id"), ("execution", "request_id")):
        w.remove(table, **{column: 20})


@bad("chain")
def a_next_follows_an_error(w):
    chain(w)
    w.row("outcome", id=18)["outcome"] = "ERROR"
    w.row("execution", request_id=18)["state"] = "FAILED"


@bad("chain")
def a_next_that_nobody_asked_for(w):
    chain(w)
    w.row("request", id=20)["requester"] = "chain:#3"
    w.events["client-1"] = [{k: v for k, v in event.items() if k != "next"}
                            for event in w.events["client-1"]]


@bad("never-submitted", "chain")
def a_next_of_nothing(w):
    chain(w)
    w.row("request", id=20)["requester"] = "chain:#99"


@bad("fan-in")
def one_that_waits_runs_too_early(w):
    fan_in(w)
    w.row("outcome", id=30)["claimed_at"] = 1020


@bad("fan-in")
def one_that_waits_runs_over_a_failure(w):
    fan_in(w)
    for event in w.events["client-1"]:
        if event.get("after"):
            event["after"] = [1, 5]


@bad("fan-in")
def one_is_refused_though_all_are_there(w):
    fan_in(w)
    row = w.row("outcome", id=30)
    row.update(outcome="REFUSED", claimed_at=None, token=None, execution_id=None)
    w.remove("execution", request_id=30)


@bad("schedule")
def a_slot_is_decided_twice(w):
    slots(w)
    w.dump["schedule_slot"][1]["slot_time"] = 10**6
    w.dump["schedule_slot"][1]["last_time"] = 2 * 10**6


@bad("schedule")
def a_slot_is_missing(w):
    slots(w)
    w.dump["schedule_slot"][2]["slot_time"] = 4 * 10**6


@bad("schedule")
def a_slot_fired_two_requests(w):
    slots(w)
    w.request(42, None, "slot", 1202, source="schedule")
    w.finish(42, "COMPLETED", "COMPLETED", 42, "w2", 1220, 1221)


@bad("schedule")
def two_slots_fired_one_request(w):
    slots(w)
    w.dump["schedule_slot"][1]["request_id"] = 40


@bad("rescued-alive")
def a_worker_that_beats_is_called_dead(w):
    rescue(w, hit=False)


@bad("attempts")
def what_always_fails_went_well(w):
    w.dump["jobs"]["export"]["fails"] = True


@bad("attempts")
def an_error_is_not_tried_again(w):
    w.dump["jobs"]["export"]["attempts"] = 2


@bad("stale-write")
def a_mark_too_many(w):
    w.dump["marks"] = {"jobs": ["mark"], "rows": 1}


# --- calls outside ---

def calls(w):
    """Three calls arrived, one more was taken and not made; five are allowed."""
    w.dump["calls_per_day"] = {"outside": 5}
    w.dump["budget"] = [{"name": "outside", "day_start": 900, "used": 4}]
    w.events["outside"] = []
    for n in range(1, 4):
        w.op("call", "a", "outside", ok={}, number=n)
    return w


@bad("call-untaken")
def a_call_that_nobody_took(w):
    calls(w).dump["budget"][0]["used"] = 2


@bad("call-untaken")
def calls_without_any_budget(w):
    calls(w).dump["budget"] = []


@bad("over-budget")
def more_calls_than_a_day_has(w):
    calls(w).dump["budget"][0]["used"] = 6


@bad("over-budget")
def more_calls_are_made_than_a_day_has(w):
    calls(w).dump["calls_per_day"]["outside"] = 2

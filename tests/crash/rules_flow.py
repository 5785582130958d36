"""What must hold between requests: chains, those that wait for others, schedules; and
that nobody is closed who lives."""

import collections

# Faults of the store or the way to it: a commit may have happened and not be known.
UNKNOWN_AFTER = {"database", "hang", "bouncer", "cut"}
EXCUSED_US = 15_000_000


def touched_by_cancel(case):
    """First tries of chains that somebody may have cancelled."""
    return {case.first(op.key) for op in case.by_op["cancel"] if op.kind != "fail"}


def completed(case, first):
    """The outcome COMPLETED of any try, or None."""
    for row in case.chains.get(first, []):
        for outcome in case.outcomes[row["id"]]:
            if outcome["outcome"] == "COMPLETED":
                return outcome
    return None


def check_chains(case):
    released = collections.defaultdict(list)
    for row in case.dump["request"]:
        if row["source"] == "chain":
            released[int(row["requester"].rpartition("#")[2])].append(row["id"])
    wanting = {min(case.ids_of_key[key], default=None)
               for key, op in case.invoked.items() if op.invoke.get("next")}
    for before, ids in released.items():
        ended = {o["outcome"] for o in case.outcomes[before]}
        if len(ids) > 1:
            case.report("chain", before, f"its next was released as {ids}")
        if ended != {"COMPLETED"}:
            case.report("chain", before, f"{ids[0]} was released by {ended or 'no end'}")
        if case.first(before) not in wanting:
            case.report("chain", before, f"{ids[0]} follows, nobody asked for that")
    cancelled = touched_by_cancel(case)
    for first in wanting - {None} - cancelled:
        done = completed(case, first)
        if done and not released.get(done["id"]):
            case.report("chain", first, "COMPLETED, and its next was not released")


def check_fan_in(case):
    cancelled = touched_by_cancel(case)
    for key, op in case.invoked.items():
        subject = min(case.ids_of_key[key], default=None)
        if not op.invoke.get("after") or subject is None:
            continue
        waited = [case.first(i) for i in op.invoke["after"]]
        ends = [completed(case, first) for first in waited]
        outcome = (case.outcomes[subject] or [{}])[0]
        begun = outcome.get("claimed_at")
        if begun is not None and not all(e and e["finished_at"] <= begun for e in ends):
            case.report("fan-in", subject, f"it ran before all of {waited} were COMPLETED")
        if outcome.get("outcome") == "REFUSED" and all(ends) \
                and not cancelled & set(waited):
            case.report("fan-in", subject, f"REFUSED, though all of {waited} COMPLETED")


def check_schedules(case):
    periods = case.dump.get("schedules", {})
    fired = collections.Counter()
    before = {}
    for row in sorted(case.dump["schedule_slot"],
                      key=lambda row: (row["schedule"], row["slot_time"])):
        name, period = row["schedule"], periods.get(row["schedule"])
        last = before.get(name)
        if last is not None and row["slot_time"] <= last:
            case.report("schedule", name, f"slot {row['slot_time']} was decided twice")
        elif last is not None and period and row["slot_time"] != last + period:
            case.report("schedule", name, f"no slot between {last} and {row['slot_time']}")
        before[name] = max(last or 0, row["last_time"])
        if row["request_id"] is not None and row["state"] == "fired":
            fired[row["request_id"]] += 1
            if case.requests.get(row["request_id"], {}).get("source") != "schedule":
                case.report("schedule", row["request_id"], "a slot fired what is not there")
    for row in case.dump["request"]:
        if row["source"] == "schedule" and fired[row["id"]] != 1:
            case.report("schedule", row["id"], f"{fired[row['id']]} slots have fired it")


def check_rescues(case):
    """Nobody whose beats arrive is called dead; closed is what a fault has hit."""
    struck, unknown, beats = {}, [], collections.defaultdict(list)
    for op in case.by_op["fault"]:
        for pid in op.pids or ():
            struck[pid] = min(struck.get(pid, op.invoke["w"]), op.invoke["w"])
        if op.fault in UNKNOWN_AFTER:
            unknown.append((op.invoke["w"], (op.end or op.invoke)["w"] + EXCUSED_US))
    for op in case.by_op["sample"]:
        for beat in op.beats or ():
            beats[beat["id"]].append(beat["beat_at"])
    dead_after = case.dump.get("dead_after_us", 0)
    for row in case.dump["outcome"]:
        if row["outcome"] != "WORKER_LOST" or not row["worker"]:
            continue
        when = row["finished_at"]
        pid = row["worker"].partition("@")[0]
        if pid.isdigit() and struck.get(int(pid), when + 1) <= when:
            continue
        if any(begin <= when and (row["claimed_at"] or when) <= end
               for begin, end in unknown):
            continue
        if any(when - dead_after < beat <= when for beat in beats[row["worker"]]):
            case.report("rescued-alive", row["id"], f"closed as lost; {row['worker']} "
                        "had beaten, and no fault had hit it")


def check_marks(case):
    """Rows of jobs that write one row for each step: no more and no fewer."""
    if "marks" not in case.dump:
        return
    counted = sum(step["write_count"] for step in case.dump["step"]
                  if case.requests.get(step["request_id"], {}).get("job")
                  in case.dump["marks"]["jobs"])
    there = case.dump["marks"]["rows"]
    if there != counted:
        case.report("stale-write" if there > counted else "effect-gap", "mark",
                    f"{there} rows, the steps count {counted}")


def check_calls(case):
    """Each call that arrived outside was taken from the budget before, in a transaction
    that is there; one that was taken and not made counts too."""
    budgets = {row["name"]: row for row in case.dump.get("budget", ())}
    made = case.by_op["call"]
    for name, per_day in case.dump.get("calls_per_day", {}).items():
        row = budgets.get(name, {"used": 0, "day_start": 0})
        arrived = sum(1 for op in made if op.invoke["w"] >= row["day_start"])
        if arrived > row["used"]:
            case.report("call-untaken", name,
                        f"{arrived} calls arrived, {row['used']} were taken")
        if row["used"] > per_day or arrived > per_day:
            case.report("over-budget", name,
                        f"{row['used']} taken, {arrived} made, {per_day} are allowed")


RULES = (check_chains, check_fan_in, check_schedules, check_rescues, check_marks,
         check_calls)

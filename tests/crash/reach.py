"""Where was a process when it was hit? Told by the last lines of its log (level debug):
a stage that was begun and not left is the one it died in. Submits have no lines; what
clients saw and what the store holds tells of them.

Stages are those of a request's life:

    S1  submit, before the commit            S8  publishing
    S2  submit, committed, not answered      S9  recording
    S3  claiming                             S10 repairs, or a pass of the schedules
    S4  claimed, not begun                   S12 drain
    S5  inside a chunk                       S13 cleaning up after an earlier death
    S6  committing a chunk                   S11 a call outside, taken from its budget
    S7  a chunk is committed, the next not begun
"""

import collections
import re

OF_WORD = {"preparing": "S4", "working": "S5", "committing": "S6", "copying": "S6",
           "committed": "S7", "reserving": "S11", "calling": "S11",
           "publishing": "S8", "published": "S8", "recording": "S9"}
RUNNING = {"S4", "S5", "S6", "S7", "S8", "S9", "S11"}
ALL = tuple(f"S{number}" for number in range(1, 14))
LINE = re.compile(r"\b(request|stage)=(\S+)")


def must(store):
    """The cells (stage, fault) that a long storm has to hit."""
    cells = {(stage, "kill") for stage in ALL}
    cells |= {("S5", "term"), ("S5", "freeze"), ("all", "disk")}
    if store == "sqlite":
        cells.add(("all", "store_disk"))
    else:
        cells |= {("all", fault) for fault in ("database", "hang", "bouncer", "cut",
                                               "clock")}
    return sorted(cells)


def stages(text):
    """The stages in which the process of this log stands; {"idle"} or {"starting"}."""
    runs, found = {}, set()
    ready = cleaning = claiming = repairing = firing = draining = False
    for line in text.splitlines():
        if " stage " in line:
            of = dict(LINE.findall(line))
            runs[of.get("request")] = OF_WORD.get(of.get("stage"), "S5")
        elif " request running " in line:
            runs[dict(LINE.findall(line)).get("request")] = "S4"
        elif " request over" in line:
            runs.pop(dict(LINE.findall(line)).get("request"), None)
        elif " draining: nothing more is claimed" in line:
            draining = True
        elif " claiming " in line or " claimed " in line:
            claiming = " claiming " in line
        elif " repairing" in line or " repaired" in line:
            repairing, cleaning = " repairing" in line, False
        elif " firing " in line or " fired " in line:
            firing = " firing " in line
        elif " cleaning the seat" in line:
            cleaning = True
        if " ready " in line:
            ready, cleaning = True, False
    found |= set(runs.values())
    found |= {stage for stage, on in (("S3", claiming), ("S10", repairing or firing),
                                      ("S12", draining), ("S13", cleaning)) if on}
    return found or {"idle" if ready else "starting"}


def of_submits(case, strikes):
    """(stage, fault) of submits that were under way when their api was hit. A strike is
    (wall in us, fault, true for an api that was ready)."""
    found = collections.Counter()
    created = {}
    for row in case.dump["request"]:
        key = case.key_of_id.get(row["id"])
        if key:
            created[key] = row["created_at"]
    open_ones = [(op.invoke["w"], op.end["w"] if op.end else op.invoke["w"] + 10**6, op.key)
                 for op in case.by_op["submit"] if op.kind == "info"]
    for wall, fault in strikes:
        for begin, end, key in open_ones:
            if begin < wall < end + 20_000 and wall - begin < 3 * 10**6:
                stage = "S2" if created.get(key, wall + 1) <= wall else "S1"
                found[stage, fault] += 1
    return found

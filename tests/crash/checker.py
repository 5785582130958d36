#!/usr/bin/python3
"""Judges a storm from outside: what clients saw, against what the store holds.

    checker.py FOLDER      FOLDER has *.jsonl (histories) and dump.json

Shares no code with pawl and asks nothing of it. Prints every broken rule with the
smallest timeline among its offenders; exit 1 when there is one.

A history is one append-only file per process, a line per event:

    {"t": ns, "w": us, "p": "client-1", "n": 12, "op": "submit", "key": "c1-7",
     "type": "invoke", ...}

t is the machine's monotonic clock, w its wall clock, n pairs an invoke with its end:
`ok` (it was done), `fail` (it surely was not), `info` (the answer was lost: unknown).

    submit    key = idempotency key; invoke: job, rows; ok: id
    poll      key = id; ok: status, outcome
    cancel    key = id; ok: code (200 or 202)
    download  key = id; ok: bytes, sha256
    sample    a look at the table of claims; ok: claims
    fault     what the nemesis did

dump.json is what plain SQL reads after the quiet period; see TABLES. The key of a
submit is the `tag` of the rows that its request writes, numbered 1…rows. `jobs` tells
what the storm configured: attempts, chunk, effect (it writes rows), resumes (a next try
goes on behind the last committed chunk; otherwise it begins again).
"""

import collections
import json
import pathlib
import sys

OUTCOMES = {"COMPLETED": "DONE", "STOPPED": "DONE", "ERROR": "FAILED",
            "CANCELLED": "FAILED", "TIMEOUT": "FAILED", "WORKER_LOST": "FAILED",
            "EXPIRED": "FAILED", "REFUSED": "FAILED"}
NEVER_RAN = {"EXPIRED", "REFUSED"}
ENDED = {"STOPPED", "COMPLETED", "FAILED"}
TABLES = ("request", "outcome", "execution", "step", "claim", "ready", "later", "active",
          "flag", "progress", "idempotency", "effect", "files")
RETRIED = {"ERROR", "TIMEOUT", "WORKER_LOST", "STOPPED"}

Violation = collections.namedtuple("Violation", "rule subject text")


class Op:
    """One operation of a process: from its invoke to its end."""

    def __init__(self, invoke):
        self.invoke = invoke
        self.end = None

    @property
    def kind(self):
        return self.end["type"] if self.end else "info"

    def __getattr__(self, name):
        if self.end and name in self.end:
            return self.end[name]
        return self.invoke.get(name)


def read_histories(folder):
    """(operations by time of invoke, violations of the form)."""
    ops, bad = [], []
    for path in sorted(pathlib.Path(folder).glob("*.jsonl")):
        open_op, last = {}, -1
        lines = path.read_bytes().split(b"\n")
        if lines[-1]:
            bad.append(Violation("history", path.name, "its last line is torn"))
        for number, line in enumerate(lines[:-1], 1):
            where = f"{path.name}:{number}"
            try:
                event = json.loads(line)
                kind, time, key = event["type"], event["t"], (event["p"], event["n"])
            except (ValueError, KeyError, TypeError):
                bad.append(Violation("history", where, "not an event"))
                continue
            if time < last:
                bad.append(Violation("history", where, "its clock goes back"))
            last = time
            if kind == "invoke" and key not in open_op:
                ops.append(Op(event))
                open_op[key] = ops[-1]
            elif kind in ("ok", "fail", "info") and key in open_op \
                    and not open_op[key].end:
                open_op[key].end = event
            else:
                bad.append(Violation("history", where, f"{kind} without its counterpart"))
    return sorted(ops, key=lambda op: op.invoke["t"]), bad


class Case:
    """Everything that is known, by request."""

    def __init__(self, ops, dump):
        self.ops = ops
        self.dump = dump
        self.found = []
        self.requests = {row["id"]: row for row in dump["request"]}
        self.outcomes = collections.defaultdict(list)
        for row in dump["outcome"]:
            self.outcomes[row["id"]].append(row)
        self.executions = collections.defaultdict(list)
        for row in sorted(dump["execution"], key=lambda row: row["id"]):
            self.executions[row["request_id"]].append(row)
        self.chains = collections.defaultdict(list)
        for row in sorted(dump["request"], key=lambda row: row["id"]):
            self.chains[row["first_try"] or row["id"]].append(row)
        self.by_op = collections.defaultdict(list)
        for op in ops:
            self.by_op[op.op].append(op)
        self.ids_of_key = collections.defaultdict(set)
        self.invoked = {}
        for op in self.by_op["submit"]:
            self.invoked[op.key] = op
            if op.kind == "ok":
                self.ids_of_key[op.key].add(op.id)
        tries = collections.defaultdict(set)
        for op in self.by_op["submit"]:
            tries[op.key].add(op.kind)
        self.failed = {key for key, kinds in tries.items() if kinds == {"fail"}}
        for row in dump["idempotency"]:
            self.ids_of_key[row["key"]].add(row["request_id"])
        self.key_of_id = {i: key for key, ids in self.ids_of_key.items() for i in ids}

    def first(self, request_id):
        row = self.requests.get(request_id)
        return (row["first_try"] or row["id"]) if row else request_id

    def report(self, rule, subject, text):
        self.found.append(Violation(rule, subject, text))


# --- what was taken ---

def check_accepted(case):
    for op in case.by_op["submit"]:
        if op.kind == "ok" and op.id not in case.requests:
            case.report("accepted-lost", op.id, f"{op.key} was accepted, is not there")
    for name in ("poll", "cancel", "download"):
        for op in case.by_op[name]:
            if op.kind == "ok" and op.key not in case.requests:
                case.report("accepted-lost", op.key, f"a {name} saw it, it is not there")


def check_submitted(case):
    for row in case.dump["request"]:
        if row["source"] == "retry":
            if row["retry_of"] not in case.requests:
                case.report("never-submitted", row["id"], "a try of nothing")
            continue
        key = case.key_of_id.get(row["id"])
        if key not in case.invoked:
            case.report("never-submitted", row["id"], "nobody asked for it")
        elif key in case.failed:
            case.report("never-submitted", row["id"], f"{key} had been refused")
    for table, column in (("outcome", "id"), ("execution", "request_id"),
                          ("files", "request_id")):
        for row in case.dump[table]:
            if row[column] not in case.requests:
                case.report("never-submitted", row[column], f"{table} without a request")
    for row in case.dump["effect"]:
        if row["tag"] not in case.invoked:
            case.report("never-submitted", row["tag"], "rows that nobody asked for")


def check_keys(case):
    for key, ids in case.ids_of_key.items():
        if len(ids) > 1:
            case.report("key-two-ids", min(ids), f"{key} has {sorted(ids)}")


# --- how it ended ---

def check_outcomes(case):
    for request_id, rows in case.outcomes.items():
        if len(rows) > 1:
            case.report("two-outcomes", request_id,
                        " and ".join(row["outcome"] for row in rows))
        done = [e for e in case.executions[request_id] if e["state"] == "COMPLETED"]
        if len(done) > 1:
            case.report("two-outcomes", request_id, "two executions are COMPLETED")
        for row in rows:
            if row["outcome"] not in OUTCOMES:
                case.report("illegal-transition", request_id, f"outcome {row['outcome']}")
            elif (row["outcome"] == "COMPLETED") != bool(done):
                case.report("illegal-transition", request_id,
                            f"{row['outcome']}, {len(done)} executions COMPLETED")
            elif row["outcome"] in NEVER_RAN and row["execution_id"]:
                case.report("illegal-transition", request_id,
                            f"{row['outcome']} with an execution")
    for row in case.dump["execution"]:
        if row["state"] in ENDED and row["ended_at"] is None:
            case.report("illegal-transition", row["request_id"],
                        f"execution {row['id']} is {row['state']} and not ended")


def check_seen(case):
    """What pollers saw: a final state never changes and is the one of the store."""
    final = {}
    for op in sorted((op for op in case.by_op["poll"] if op.kind == "ok"),
                     key=lambda op: op.end["t"]):
        if (op.status in ("DONE", "FAILED")) != (op.outcome is not None) or \
                op.outcome and OUTCOMES.get(op.outcome) != op.status:
            case.report("illegal-transition", op.key, f"{op.status} with {op.outcome}")
        elif op.outcome:
            if final.setdefault(op.key, op).outcome != op.outcome:
                case.report("outcome-changed", op.key,
                            f"{final[op.key].outcome}, later {op.outcome}")
    for op in case.by_op["poll"]:
        before = final.get(op.key)
        if op.kind == "ok" and before and not op.outcome \
                and op.invoke["t"] > before.end["t"]:
            case.report("outcome-changed", op.key,
                        f"{before.outcome}, later {op.status}")
    for request_id, op in final.items():
        stored = {row["outcome"] for row in case.outcomes[request_id]}
        if stored and op.outcome not in stored:
            case.report("outcome-changed", request_id,
                        f"{op.outcome} was answered, {stored} is stored")
        elif not stored and request_id in case.requests:
            case.report("outcome-changed", request_id,
                        f"{op.outcome} was answered, none is stored")


def check_final(case):
    for request_id in case.requests:
        if not case.outcomes[request_id]:
            case.report("not-final", request_id, "no outcome after the quiet period")
    for row in case.dump["execution"]:
        if row["state"] not in ENDED:
            case.report("not-final", row["request_id"],
                        f"execution {row['id']} is {row['state']}")
    for row in case.dump["step"]:
        if row["state"] not in ENDED:
            case.report("not-final", row["request_id"],
                        f"step {row['name']} is {row['state']}")
    for table in ("claim", "ready", "later", "active", "flag", "progress"):
        for row in case.dump[table]:
            subject = row.get("request_id", row.get("first_id"))
            case.report("not-final", subject, f"a row is left in {table}")


# --- tokens, attempts, slots ---

def check_tokens(case):
    owner, of_request = {}, {}

    def take(request_id, token, worker, where):
        held = owner.setdefault(token, worker)
        if held and worker and held != worker:
            case.report("token-order", request_id,
                        f"token {token} of {held} and of {worker}")
        if token < of_request.get(request_id, 0):
            case.report("token-order", request_id,
                        f"token {token} {where} after {of_request[request_id]}")
        of_request[request_id] = token

    for op in case.by_op["sample"]:
        if op.kind == "ok":
            for claim in op.claims:
                for request_id in range(claim["first_id"], claim["last_id"] + 1):
                    take(request_id, claim["token"], claim["worker"], "claimed")
    for request_id, rows in case.executions.items():
        for before, row in zip([None] + rows, rows):
            if before and row["token"] <= before["token"]:
                case.report("token-order", request_id,
                            f"execution {row['id']} under token {row['token']} after "
                            f"{before['token']}")
    for row in case.dump["outcome"]:
        if row["token"] is not None:
            take(row["id"], row["token"], row["worker"], "recorded")
            last = case.executions[row["id"]][-1:]
            if last and last[0]["token"] > row["token"]:
                case.report("stale-write", row["id"],
                            f"recorded under token {row['token']}, the execution had "
                            f"{last[0]['token']}")


def check_attempts(case):
    policies = case.dump["jobs"]
    for first, rows in case.chains.items():
        used = 0
        for before, row in zip([None] + rows, rows):
            outcome = (case.outcomes[before["id"]] or [None])[0] if before else None
            drained = outcome and outcome["outcome"] == "STOPPED"
            used = used + (0 if drained else 1)
            if row["attempt"] != used:
                case.report("attempts", first,
                            f"try {row['id']} says attempt {row['attempt']}, it is {used}")
                used = row["attempt"]
            if before and row["retry_of"] != before["id"]:
                case.report("attempts", first, f"{row['id']} follows {row['retry_of']}, "
                            f"not {before['id']}")
            if outcome and outcome["outcome"] not in RETRIED:
                case.report("attempts", first, f"a try after {outcome['outcome']}")
        allowed = policies.get(rows[0]["job"], {}).get("attempts", 1)
        if used > allowed:
            case.report("attempts", first, f"{used} tries, {allowed} are allowed")
        last = (case.outcomes[rows[-1]["id"]] or [None])[0]
        if last and last["outcome"] == "WORKER_LOST" and used < allowed:
            case.report("attempts", first, f"given up after {used} of {allowed} tries")
        for row in rows:
            if len({e["token"] for e in case.executions[row["id"]]}) > 1:
                case.report("attempts", first, f"{row['id']} was executed twice")


def check_cancel(case):
    asked = {}
    for op in case.by_op["cancel"]:
        if op.kind == "ok":
            first = case.first(op.key)
            asked[first] = min(asked.get(first, op.end["w"]), op.end["w"])
    for first, wall in asked.items():
        for row in case.chains.get(first, []):
            outcome = (case.outcomes[row["id"]] or [{}])[0]
            if row["created_at"] > wall:
                case.report("after-cancel", first, f"try {row['id']} came after it")
            elif (outcome.get("claimed_at") or 0) > wall:
                case.report("after-cancel", first, f"{row['id']} was begun after it")


def check_slots(case):
    lanes = case.dump["lanes"]
    edges = collections.defaultdict(list)
    for row in case.dump["outcome"]:
        request = case.requests.get(row["id"])
        if request and row["worker"] and row["claimed_at"] is not None:
            place = (row["worker"], request["lane"])
            edges[place].append((row["claimed_at"], 1, row["id"]))
            edges[place].append((row["finished_at"], -1, row["id"]))
    for (worker, lane), list_ in edges.items():
        running = 0
        for _, step, request_id in sorted(list_):
            running += step
            if running > lanes.get(lane, 0):
                case.report("over-slots", request_id,
                            f"{running} in lane {lane} of {worker}, it has "
                            f"{lanes.get(lane, 0)}")
                break
    for op in case.by_op["sample"]:
        count = collections.Counter()
        for claim in (op.claims or []) if op.kind == "ok" else []:
            place = (claim["worker"], claim["lane"])
            count[place] += claim["last_id"] - claim["first_id"] + 1
            if count[place] > lanes.get(claim["lane"], 0):
                case.report("over-slots", claim["first_id"],
                            f"{count[place]} claimed in lane {place[1]} of {place[0]}")


# --- what it did ---

def check_effects(case):
    """Rows written into the store's own database stand or fall with their chunk."""
    rows = collections.defaultdict(dict)
    for row in case.dump["effect"]:
        numbers = rows[row["tag"]]
        numbers[row["n"]] = numbers.get(row["n"], 0) + row["times"]
    steps = collections.defaultdict(list)
    for row in case.dump["step"]:
        steps[row["request_id"]].append(row)
    for key, op in case.invoked.items():
        policy = case.dump["jobs"].get(op.invoke.get("job"), {})
        if policy.get("effect"):
            subject = min(case.ids_of_key[key], default=key)
            done = [step for row in case.chains.get(subject, [])
                    for step in steps[row["id"]]]
            judge = check_resumed if policy.get("resumes") else check_afresh
            judge(case, subject, op.invoke["rows"], policy["chunk"], rows.get(key, {}),
                  done)


def check_resumed(case, subject, wanted, chunk, numbers, _):
    """All tries together write each row once."""
    twice = [n for n, times in numbers.items() if times > 1]
    if twice:
        case.report("stale-write", subject,
                    f"row {min(twice)} is there {numbers[min(twice)]} times")
    top = max(numbers, default=0)
    if len(numbers) != top or min(numbers, default=1) < 1:
        case.report("effect-gap", subject, f"{len(numbers)} rows up to {top}")
    done = any(o["outcome"] == "COMPLETED" for row in case.chains.get(subject, [])
               for o in case.outcomes[row["id"]])
    if done and top != wanted:
        case.report("effect-missing" if top < wanted else "stale-write", subject,
                    f"COMPLETED with {top} of {wanted} rows")
    elif top > wanted or top < wanted and top % chunk:
        case.report("effect-gap", subject, f"{top} rows of {wanted}, no border of chunks")


def check_afresh(case, subject, wanted, chunk, numbers, steps):
    """Each try begins again: a row is there once for each step that counts it."""
    for step in steps:
        count = step["write_count"]
        if step["state"] == "COMPLETED" and count != wanted:
            case.report("effect-missing", subject,
                        f"a COMPLETED step of {step['request_id']} counts {count} of "
                        f"{wanted} rows")
        elif count > wanted or count < wanted and count % chunk:
            case.report("effect-gap", subject, f"{step['request_id']} counts {count} rows "
                        f"of {wanted}, no border of chunks")
    for n in range(min(numbers, default=1), max([wanted, *numbers]) + 1):
        times = numbers.get(n, 0)
        right = sum(1 for step in steps if step["write_count"] >= n > 0)
        if times != right:
            case.report("stale-write" if times > right else "effect-gap", subject,
                        f"row {n} is there {times} times, {right} steps count it")
            return


def check_files(case):
    files = collections.defaultdict(list)
    for row in case.dump["files"]:
        files[row["request_id"]].append(row)
    published = {}
    for row in case.dump["outcome"]:
        if row["result_path"] is None:
            if files.get(row["id"]):
                case.report("file-stray", row["id"], "a file, the outcome names none")
            continue
        published[row["id"]] = row
        if row["outcome"] != "COMPLETED":
            case.report("file-stray", row["id"], f"a result of {row['outcome']}")
        there = [f for f in files.get(row["id"], []) if f["name"] == row["result_name"]]
        if not there:
            case.report("file-missing", row["id"], f"no file {row['result_name']}")
        elif (there[0]["bytes"], there[0]["sha256"]) != \
                (row["result_bytes"], row["result_sha256"]):
            case.report("file-differs", row["id"], f"{there[0]['bytes']} bytes, the row "
                        f"says {row['result_bytes']}")
    for op in case.by_op["download"]:
        row = published.get(op.key)
        if op.kind == "ok" and (not row or (op.bytes, op.sha256) !=
                                (row["result_bytes"], row["result_sha256"])):
            case.report("file-differs", op.key, "what was downloaded is not the result")
    for name in case.dump["parts"]:
        head = name.split("-")[0]
        case.report("part-left", int(head) if head.isdigit() else name, name)


CHECKS = (check_accepted, check_submitted, check_keys, check_outcomes, check_seen,
          check_final, check_tokens, check_attempts, check_cancel, check_slots,
          check_effects, check_files)


def timeline(case, subject):
    """All that concerns a request and its other tries, by wall clock."""
    first = case.first(subject)
    ids = {row["id"] for row in case.chains.get(first, [])} | {subject}
    keys = {case.key_of_id[i] for i in ids if i in case.key_of_id} | {subject}
    lines = []
    for op in case.ops:
        claims = [c for c in (op.claims or []) if op.op == "sample"
                  and any(c["first_id"] <= i <= c["last_id"]
                          for i in ids if isinstance(i, int))]
        if not claims and op.key not in (keys if op.op == "submit" else ids):
            continue
        if claims:
            lines.append((op.end["w"], f"sample: {claims}"))
            continue
        for event in (op.invoke, op.end):
            if event:
                more = {k: v for k, v in event.items()
                        if k not in ("t", "w", "p", "n", "op", "type")}
                lines.append((event["w"], f"{event['p']} {event['op']} {event['type']} "
                              f"{more}"))
    for table, column, when in (("request", "id", "created_at"),
                                ("execution", "request_id", "started_at"),
                                ("outcome", "id", "finished_at")):
        for row in case.dump[table]:
            if row[column] in ids:
                some = {k: v for k, v in row.items() if v is not None and k != when}
                lines.append((row.get(when) or 0, f"store {table} {some}"))
    lines.sort(key=lambda line: line[0])
    return [f"{wall / 1e6:.6f} {text}" for wall, text in lines]


def check(ops, dump, bad=()):
    """(case, violations) of operations and a dump."""
    missing = [name for name in TABLES + ("parts", "lanes", "jobs") if name not in dump]
    case = Case(ops, {name: [] for name in TABLES} | {"parts": [], "lanes": {},
                                                      "jobs": {}} | dump)
    case.found.extend(bad)
    for name in missing:
        case.report("history", name, "the dump has no such table")
    if not missing:
        for one in CHECKS:
            one(case)
    return case, case.found


def show(case, found, out=print):
    rules = collections.defaultdict(list)
    for violation in found:
        rules[violation.rule].append(violation)
    for rule, list_ in sorted(rules.items()):
        out(f"{rule}: {len(list_)}")
        lines = [(timeline(case, v.subject), v) for v in list_[:200]]
        smallest, violation = min(lines, key=lambda pair: len(pair[0]))
        out(f"  {violation.subject}: {violation.text}")
        for line in smallest[:60]:
            out(f"    {line[:300]}")


def main(arguments):
    if len(arguments) != 1:
        sys.exit(__doc__)
    folder = pathlib.Path(arguments[0])
    ops, bad = read_histories(folder)
    case, found = check(ops, json.loads((folder / "dump.json").read_text()), bad)
    show(case, found)
    print(f"{len(case.requests)} requests, {len(ops)} operations, "
          f"{len(found)} violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

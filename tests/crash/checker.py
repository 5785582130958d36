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

    submit    key = idempotency key; invoke: job, rows, next, after; ok: id
    poll      key = id; ok: status, outcome
    cancel    key = id; ok: code (200 or 202)
    download  key = id; ok: bytes, sha256
    sample    a look at the tables; ok: claims, beats (id and beat_at of workers)
    fault     what the nemesis did: fault, pids (of those that it hit)
    call      what arrived at the API outside: key = tag; invoke: number of the row

dump.json is what plain SQL reads after the quiet period; see TABLES. The key of a
submit is the `tag` of the rows that its request writes, numbered 1…rows. `jobs` tells
what the storm configured: attempts, chunk, effect (it writes rows), resumes (a next try
goes on behind the last committed chunk; otherwise it begins again), fails (it never
ends well). More may be there: dead_after_us, schedules (name: period in us), marks
(jobs whose steps write one row each into one table, and the rows of that) and
calls_per_day (budget: calls that it allows) with the table budget.
"""

import collections
import json
import pathlib
import sys

import rules
import rules_effect
import rules_flow

TABLES = ("request", "outcome", "execution", "step", "claim", "ready", "later", "active",
          "flag", "progress", "idempotency", "effect", "files", "schedule_slot")

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
        for one in rules.RULES + rules_effect.RULES + rules_flow.RULES:
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

"""What must hold of each request: what was taken, how it ended, under which tokens."""

import collections

OUTCOMES = {"COMPLETED": "DONE", "STOPPED": "DONE", "ERROR": "FAILED",
            "CANCELLED": "FAILED", "TIMEOUT": "FAILED", "WORKER_LOST": "FAILED",
            "EXPIRED": "FAILED", "REFUSED": "FAILED"}
NEVER_RAN = {"EXPIRED", "REFUSED"}
ENDED = {"STOPPED", "COMPLETED", "FAILED"}
RETRIED = {"ERROR", "TIMEOUT", "WORKER_LOST", "STOPPED"}


# --- what was taken ---

def check_accepted(case):
    for op in case.by_op["submit"]:
        if op.kind == "ok" and op.id not in case.requests:
            case.report("accepted-lost", op.id, f"{op.key} was accepted, is not there")
    keys = {}
    for op in case.by_op["submit"]:
        if op.kind == "ok" and keys.setdefault(op.id, op.key) != op.key:
            case.report("accepted-lost", op.id, f"it is {keys[op.id]} and {op.key}")
    for op in case.by_op["poll"]:
        if op.answer == 404:
            case.report("accepted-lost", op.key, "a poll was told that it is not there")
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
        if row["source"] == "chain":
            if int(row["requester"].rpartition("#")[2]) not in case.requests:
                case.report("never-submitted", row["id"], "it follows nothing")
            continue
        if row["source"] == "schedule":
            continue  # its slot must name it
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
    cancelled = {case.first(op.key) for op in case.by_op["cancel"] if op.kind != "fail"}
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
        if last and used < allowed and (
                last["outcome"] == "WORKER_LOST"
                or last["outcome"] == "ERROR" and first not in cancelled):
            case.report("attempts", first, f"given up after {used} of {allowed} tries")
        if last and last["outcome"] == "COMPLETED" and \
                policies.get(rows[0]["job"], {}).get("fails"):
            case.report("attempts", first, "COMPLETED, and it cannot be")
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


RULES = (check_accepted, check_submitted, check_keys, check_outcomes, check_seen,
         check_final, check_tokens, check_attempts, check_cancel, check_slots)

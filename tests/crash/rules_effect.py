"""What must hold of what requests did: rows that they wrote, files that they made."""

import collections


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


RULES = (check_effects, check_files)

#!/usr/bin/env python3
"""Check the protocol of pawl.pml with spin: whole, then with each guard removed.

    run.py                everything; exit 1 unless the model has 0 errors in every
                          world, comes to an end (no cycle of states) in the smaller
                          ones, and each variant has at least one error
    run.py WORD...        only worlds and variants whose name contains a WORD
    run.py --list         names and what they are
    run.py --trail NAME   the shortest story that spin finds for a variant

Needs spin and gcc; writes only into a temporary folder.
"""

import concurrent.futures
import dataclasses
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

MODEL = pathlib.Path(__file__).resolve().with_name("pawl.pml")
MEGABYTES = 1900  # and two at once
SECONDS = 600

# Small worlds, each rich in some kind of trouble; one that had all would not fit.
WORLDS = {
    "crash": ("two seats, a crash, a cancel",
              {"LOSSES": 0, "STALES": 0, "PROGRESS": 0}),
    "frozen": ("two seats, a lease that runs out while its worker lives, a cancel",
               {"LOSSES": 0, "CRASHES": 0}),
    "write": ("two seats, writes under the claim, a crash, a lease that runs out",
              {"LOSSES": 0, "CANCELS": 0}),
    "lease": ("one seat, two leases that run out, a lost reply",
              {"SEATS": 1, "STALES": 2, "CRASHES": 0, "CANCELS": 0}),
    "reply": ("two seats, a commit whose reply is lost, a lease, a cancel",
              {"CRASHES": 0, "PROGRESS": 0}),
    "span": ("one span of two, two runs at once, a lost reply, a lease, a cancel",
             {"ORIG": 2, "SEATS": 1, "SLOTS": 2, "MAXATT": 1, "CRASHES": 0,
              "NROW": 6}),
    "cut": ("one span of two requests, two seats with one slot each, a cancel",
            {"ORIG": 2, "MAXATT": 1, "CRASHES": 0, "STALES": 0, "LOSSES": 0,
             "NROW": 6}),
    "rescue": ("one span of two requests rescued while its neighbour finishes, cancel",
               {"ORIG": 2, "SEATS": 1, "SLOTS": 2, "MAXATT": 1, "LOSSES": 0,
                "PROGRESS": 0, "NROW": 6}),
    "spool": ("one seat: no store at the end of a run, a crash, a lost reply",
              {"SEATS": 1, "AWAYS": 1, "STALES": 0, "CANCELS": 0}),
    "drain": ("a drain, a crash, a cancel",
              {"DRAINS": 1, "SEATS": 1, "STALES": 0, "LOSSES": 0}),
    "failover": ("two seats, failover to a replica without the last claim",
                 {"FAILOVERS": 1, "CRASHES": 0, "LOSSES": 0, "CANCELS": 0}),
}

BIG = ("crash", "frozen", "write", "reply")  # worth the compiler's time

ENDS = ("lease", "spool", "rescue", "failover")

# Guard removed: the world in which it must be noticed, and what would go wrong.
VARIANTS = {
    "NO_TOKEN": ("failover", "finish and progress under no token"),
    "TOKEN_NUMBER_ONLY": ("failover", "the token's number without its nonce"),
    "BY_AGE": ("crash", "rescue by the age of the claim"),
    "NO_GATE": ("frozen", "who is dead is not looked at again when it is closed"),
    "ORPHANS_BLIND": ("lease", "the gate says no row, and the claims are taken unseen"),
    "ORPHANS_LEFT": ("crash", "claims of a worker without a row are nobody's"),
    "NO_HELD": ("reply", "the sweep does not look at the held mark"),
    "NO_SWEEP": ("reply", "no sweep"),
    "SWEEP_SHARES": ("reply", "the sweep looks for a cancel while sharing the claim"),
    "NO_CANCEL_CHECK": ("crash", "cancel not looked at when a request is closed"),
    "CANCEL_UNHELD": ("crash", "cancel flags a request without holding its claim"),
    "NO_SKIP": ("crash", "the claim takes its view for granted"),
    "NO_CUT": ("cut", "the claim takes a span as a whole"),
    "KEEP_CLAIM": ("crash", "finish does not delete the claim"),
    "ACK_EARLY": ("reply", "the answer goes out before the commit"),
    "SPOOL_LATE": ("spool", "a start closes earlier boots before it replays the spool"),
    "NO_FRESH_LOOK": ("span", "no row counts as lost without a fresh look"),
}


@dataclasses.dataclass
class Verdict:
    errors: int
    states: int
    depth: int
    seconds: float
    text: str


def spin(folder, args):
    done = subprocess.run(args, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0 or "Error" in done.stdout:
        sys.exit(f"run.py: {' '.join(args)}\n{done.stdout}{done.stderr}")


def number(pattern, text):
    found = re.search(pattern, text)
    if not found:
        sys.exit(f"run.py: pan ended without a verdict:\n{text[-2000:]}")
    return int(float(found.group(1)))


def check(world, variant, keep=None):
    begin = time.monotonic()
    defines = [f"-D{name}={value}" for name, value in WORLDS[world][1].items()]
    if variant in VARIANTS:
        defines.append(f"-D{variant}")
    with tempfile.TemporaryDirectory(prefix="pawl-model-") as folder:
        spin(folder, ["spin", "-a", *defines, str(MODEL)])
        spin(folder, ["gcc", "-O1" if world in BIG and variant == "whole" else "-O0",
                      "-w", "-DNP" if variant == "ends" else "-DSAFETY",
                      "-DVECTORSZ=512", f"-DMEMLIM={MEGABYTES}", "-o", "pan", "pan.c"])
        pan = ["./pan", "-m10000", "-w22"] + (["-i"] if keep else [])
        pan += ["-l"] if variant == "ends" else []
        done = subprocess.run(pan, cwd=folder, capture_output=True, text=True,
                              timeout=SECONDS)
        text = done.stdout + done.stderr
        if keep:
            trail = next(pathlib.Path(folder).glob("*.trail"))
            story = subprocess.run(["spin", "-k", trail.name, "-p", "-g", *defines,
                                    str(MODEL)],
                                   cwd=folder, capture_output=True, text=True)
            keep.write(story.stdout)
    if "max search depth too small" in text or "out of memory" in text:
        sys.exit(f"run.py: {world} {variant}: not searched to its end:\n{text[-2000:]}")
    return Verdict(number(r"errors: (\d+)", text),
                   number(r"([0-9.e+]+) states, stored", text),
                   number(r"depth reached (\d+)", text),
                   time.monotonic() - begin, text)


def reason(text):
    found = re.search(r"^pan:\d+: (.*?)(?: \(at depth|$)", text, re.M)
    return found.group(1) if found else ""


def main(words):
    jobs = [(world, "whole") for world in WORLDS] + [(world, "ends") for world in ENDS]
    jobs += [(world, name) for name, (world, _) in VARIANTS.items()]
    if words[:1] == ["--list"]:
        for world, (what, _) in WORLDS.items():
            print(f"{world:18} {what}")
        for name, (world, what) in VARIANTS.items():
            print(f"{name:18} {world:9} without its guard: {what}")
        return 0
    if words[:1] == ["--trail"] and len(words) == 2 and words[1] in VARIANTS:
        check(VARIANTS[words[1]][0], words[1], sys.stdout)
        return 0
    if any(word.startswith("-") for word in words):
        sys.exit(__doc__)
    jobs = [job for job in jobs
            if not words or any(word in name for word in words for name in job)]
    wrong = 0
    begin = time.monotonic()
    print(f"{'model':18} {'world':9} {'errors':>6} {'states':>9} {'depth':>5} {'s':>6}")
    with concurrent.futures.ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        for (world, name), v in zip(jobs, pool.map(lambda job: check(*job), jobs)):
            good = v.errors > 0 if name in VARIANTS else v.errors == 0
            wrong += not good
            print(f"{name:18} {world:9} {v.errors:6} {v.states:9} {v.depth:5} "
                  f"{v.seconds:6.1f}{'' if good else '  WRONG'} {reason(v.text)}",
                  flush=True)
    print(f"{wrong} wrong, in {time.monotonic() - begin:.0f} s")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

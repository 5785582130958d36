#!/usr/bin/python3
"""The alarm is tested: with a fault planted, storm and checker must raise it.

    plants.py [NAME...]        PAWL_BIN: a build with the meson option plant=true

Each fault breaks one rule on purpose (src/base/plant.h). It is caught when the checker
names one of the rules that it must break, within SECONDS of storm. The build without
any fault chosen must pass. Exit 0: all were caught.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "flow")]

import storm  # noqa: E402
import sweep  # noqa: E402
from pawl_env import ROOT, Cluster  # noqa: E402

SECONDS = 45  # of storm; some need no more than they are given here
SITES = 2  # of those that only kills show
KILLS = {"kill": 95, "term": 5}
FREEZES = {"freeze": 40, "kill": 60}
FEW = {"kill": 50, "clock": 50}
RARE = {"kill": 10, "clock": 90}  # most live long enough to be called dead

# name: (store, faults, kills at most, rules that name it)
STORMS = {
    "none": ("sqlite", KILLS, 80, set()),
    "no_fence": ("pg", FREEZES, 400, {"stale-write", "effect-gap",
                                             "not-final"}),
    "ack_before_commit": ("sqlite", KILLS, 150, {"accepted-lost", "outcome-changed",
                                                 "key-two-ids"}),
    "cursor_apart": ("sqlite", KILLS, 400, {"stale-write"}),
    "finish_alone": ("sqlite", KILLS, 40, {"attempts", "chain"}),
    "rescue_by_age": ("pg", RARE, 60, {"rescued-alive"}),
    "sweep_without_mark": ("sqlite", {"disk": 1}, 1, {"rescued-alive"}),
    "look_then_insert": ("pg", FEW, 60, {"key-two-ids"}),
    "publish_after_outcome": ("sqlite", KILLS, 400, {"file-missing"}),
}


def by_storm(name):
    """What the storm said: the rules that were broken."""
    store, faults, kills, _ = STORMS[name]
    total = storm.blow(store, kills, 7, SECONDS if "kill" in faults else 12,
                       SITES if faults is KILLS else 1, faults=faults)
    return set(total["rules"]) | (set() if total["good"] or total["rules"] else {"trouble"})


def caught_by_storm(name):
    rules = by_storm(name)
    expected = STORMS[name][3]
    return bool(rules & expected) if expected else not rules, sorted(rules)


def caught_by_order():
    """A file is renamed before it is durable: no kill shows that, the calls do."""
    wrong = sweep.order_of_publishing()
    return bool(wrong), wrong


def caught_by_flow():
    """A spool that keeps nothing: the flow test of recovery fails."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
         ROOT / "tests/flow/test_recovery.py", "-k", "kept_in_the_spool_outlives"],
        stdout=subprocess.PIPE, encoding="utf-8")
    return done.returncode == 1, done.stdout.splitlines()[-1:]


OTHERS = {"rename_before_fsync": caught_by_order, "spool_lost": caught_by_flow}


def main(names):
    tempfile.tempdir = str(storm.QUICK_DISK) if storm.QUICK_DISK.is_dir() else None
    failed = 0
    cluster = Cluster()
    os.environ["PAWL_TEST_PG"], os.environ["PAWL_TEST_PG_DIR"] = cluster.url, cluster.folder
    try:
        for name in names or [*STORMS, *OTHERS]:
            os.environ["PAWL_PLANT"] = name
            begin = time.monotonic()
            caught, said = caught_by_storm(name) if name in STORMS else OTHERS[name]()
            failed += not caught
            print(f"{name:24} {'as it must be' if caught else 'NOT CAUGHT'} in "
                  f"{time.monotonic() - begin:.0f} s: {said}", flush=True)
    finally:
        cluster.close()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""A storm on each store: nothing that was promised is broken, a thousand kills each.
PAWL_STORM_SEED chooses another one; with PAWL_FULL it blows for long, in rounds, and the
seed is new each time. A storm that is asked to end tells what it came to."""

import os
import pathlib
import signal
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import reach  # noqa: E402
import storm  # noqa: E402
from pawl_env import Cluster  # noqa: E402

FULL = bool(os.environ.get("PAWL_FULL"))
KILLS = {"sqlite": 18_000, "pg": 7_500} if FULL else {"sqlite": 1_000, "pg": 1_000}
SECONDS = 6_000 if FULL else 240  # at most
ROUND = 1_000  # kills of a site until it begins with a fresh store
SEED = int(os.environ.get("PAWL_STORM_SEED") or (time.time_ns() % 10**6 if FULL else 1))
SITES = {"sqlite": 2, "pg": 2} if FULL else {"sqlite": 3, "pg": 1}
RUNNING_SHARE = 40 if FULL else 20  # %; on a busy machine many die young


def asked_to_end(*_):
    storm.STOP.set()


@pytest.fixture(scope="module")
def storms():
    """Both stores at once: much of a storm is waiting."""
    if not os.environ.get("PAWL_STORM_DISK") and storm.QUICK_DISK.is_dir():
        tempfile.tempdir = str(storm.QUICK_DISK)
    before = [(number, signal.signal(number, asked_to_end))
              for number in (signal.SIGTERM, signal.SIGINT)]
    cluster = Cluster()  # what the SQLite sites read from
    os.environ["PAWL_TEST_PG"] = cluster.url
    os.environ["PAWL_TEST_PG_DIR"] = cluster.folder
    try:
        with ThreadPoolExecutor() as pool:
            yield {store: pool.submit(storm.blow, store, KILLS[store], SEED, SECONDS,
                                      sites, round_=ROUND)
                   for store, sites in SITES.items()}
    finally:
        for number, handler in before:
            signal.signal(number, handler)
        cluster.close()


@pytest.mark.parametrize("store", ["sqlite", "pg"])
def test_nothing_is_lost_or_done_twice_in_a_storm(store, storms):
    total = storms[store].result()
    storm.tell(store, total)
    assert total["good"], total["rules"]
    assert total["faults"]["kill"] >= KILLS[store], "it was stopped, or is too slow a storm"
    # A storm that hits only idle processes shows little.
    assert storm.share(total) >= RUNNING_SHARE
    empty = [cell for cell in reach.must(store) if not total["reach"][cell]]
    assert not FULL or empty == [], "no fault hit these"

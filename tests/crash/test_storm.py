"""A storm on each store: nothing that was promised is broken. PAWL_STORM_SEED chooses
another one; with PAWL_FULL it blows for long and the seed is new each time."""

import os
import pathlib
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
KILLS = 13_000 if FULL else 1_000
SECONDS = 4_500 if FULL else 60  # quick: as many of them as fit
SEED = int(os.environ.get("PAWL_STORM_SEED") or (time.time_ns() % 10**6 if FULL else 1))
SITES = {"sqlite": 2, "pg": 2}
RUNNING_SHARE = 0.4 if FULL else 0.2  # on a busy machine many die young


@pytest.fixture(scope="module")
def storms():
    """Both stores at once: much of a storm is waiting."""
    if not os.environ.get("PAWL_STORM_DISK") and storm.QUICK_DISK.is_dir():
        tempfile.tempdir = str(storm.QUICK_DISK)
    cluster = Cluster()  # what the SQLite sites read from
    os.environ["PAWL_TEST_PG"] = cluster.url
    os.environ["PAWL_TEST_PG_DIR"] = cluster.folder
    try:
        with ThreadPoolExecutor() as pool:
            yield {store: pool.submit(storm.blow, store, KILLS, SEED, SECONDS, sites)
                   for store, sites in SITES.items()}
    finally:
        cluster.close()


@pytest.mark.parametrize("store", ["sqlite", "pg"])
def test_nothing_is_lost_or_done_twice_in_a_storm(store, storms):
    total = storms[store].result()
    storm.tell(store, total)
    assert total["good"], total["rules"]
    # A storm that hits only idle processes shows little.
    running, workers = total["running"]
    assert running >= RUNNING_SHARE * workers
    empty = [cell for cell in reach.must(store) if not total["reach"][cell]]
    assert not FULL or empty == [], "no fault hit these"
    assert not FULL or total["faults"]["kill"] >= KILLS, "too slow a storm"

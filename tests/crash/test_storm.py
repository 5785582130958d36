"""A storm on each store: nothing that was promised is broken. PAWL_STORM_SEED chooses
another one; with PAWL_FULL it blows for long and the seed is new each time."""

import os
import pathlib
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import storm  # noqa: E402

FULL = bool(os.environ.get("PAWL_FULL"))
KILLS = 12_500 if FULL else 120
SECONDS = 2_700 if FULL else 30
SEED = int(os.environ.get("PAWL_STORM_SEED") or (time.time_ns() % 10**6 if FULL else 1))


@pytest.mark.parametrize("store", ["sqlite", "pg"])
def test_nothing_is_lost_or_done_twice_in_a_storm(store):
    assert storm.blow(store, KILLS, SEED, SECONDS)
    # A storm that hits only idle processes shows little.
    kills = {stage for stage, fault in storm.REACHED[store] if fault == "kill"}
    assert not FULL or {"starting", "idle", "running"} <= kills

"""kill -9 at the system calls of a job's life; and results are durable before they are
visible. In --full at every call, else at some, drawn anew each hour."""

import os
import pathlib
import sys
import tempfile
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import sweep  # noqa: E402
from pawl_env import Cluster  # noqa: E402

FULL = bool(os.environ.get("PAWL_FULL"))
SECONDS = 0 if FULL else 8
SEED = int(os.environ.get("PAWL_STORM_SEED") or time.time() // 3600)


@pytest.fixture(autouse=True)
def memory(monkeypatch):
    if pathlib.Path("/dev/shm").is_dir():
        monkeypatch.setattr(tempfile, "tempdir", "/dev/shm")


@pytest.fixture(scope="module")
def cluster():
    cluster = Cluster()
    yield cluster
    cluster.close()


@pytest.mark.parametrize("store", ["sqlite", "pg"])
def test_a_kill_at_any_system_call_leaves_work_that_goes_on(store, cluster):
    good, kills = sweep.run(store, cluster, SEED, SECONDS)
    assert good
    assert kills > 0


def test_a_result_is_durable_before_it_is_renamed():
    assert sweep.order_of_publishing() == []


def test_the_order_is_judged():
    lines = ['1 fsync(5</r/parts/1-a.part>) = 0',
             '1 rename("/r/parts/1-a.part", "/r/files/1/a") = 0',
             '1 fsync(6</r/files/1>) = 0']
    assert sweep.judge_order(lines) == []
    assert "before it was durable" in sweep.judge_order(lines[1:])[0]
    assert "not made durable after" in sweep.judge_order(lines[:2])[0]
    assert sweep.judge_order([]) == ["nothing was published"]

"""The cluster of the tests: it answers, it goes, and a killed run leaves nothing."""

import os
import pathlib
import select
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CLUSTER = ROOT / "tests/harness/pg_cluster.py"


def call(*words):
    return subprocess.run(
        [sys.executable, CLUSTER, *map(str, words)], capture_output=True, text=True
    )


def variables(text):
    return dict(line.split("=", 1) for line in text.split())


def ask(url, sql):
    done = subprocess.run(
        ["psql", "-X", url, "-Atc", sql], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def runs(pid, folder):
    """Not so when it is gone, not yet reaped, or another of that number."""
    try:
        return str(folder) in pathlib.Path(f"/proc/{pid}/cmdline").read_text()
    except FileNotFoundError:
        return False


@pytest.fixture
def note(tmp_path):
    yield tmp_path / "note"
    call("stop", tmp_path / "note")


def test_it_answers_directly_and_through_pgbouncer_and_goes_without_trace(note):
    done = call("start", note)
    assert done.returncode == 0, done.stderr
    env = variables(done.stdout)
    assert env == variables(call("env", note).stdout)
    folder = pathlib.Path(env["PAWL_TEST_PG_DIR"])
    assert folder.stat().st_uid != 0
    assert ask(env["PAWL_TEST_PG"], "SHOW fsync") == "on"
    ask(env["PAWL_TEST_PG"], "CREATE DATABASE other")
    ask(env["PAWL_TEST_PG"], "CREATE ROLE somebody LOGIN")
    through = env["PAWL_TEST_PGBOUNCER"].replace("postgres@", "somebody@")
    through = through.rsplit("/", 1)[0] + "/other"
    assert ask(through, "SELECT current_user, current_database()") == "somebody|other"

    postmaster = int((folder / "data/postmaster.pid").read_text().split()[0])
    bouncer = int((folder / "pgbouncer.pid").read_text())
    assert runs(postmaster, folder) and runs(bouncer, folder)
    assert call("stop", note).returncode == 0
    assert not folder.exists()
    for pid in (postmaster, bouncer):
        assert not runs(pid, folder)
    assert call("env", note).returncode != 0


def test_it_goes_when_its_owner_is_killed(note):
    owner = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    env = variables(call("start", note, "--owner", owner.pid).stdout)
    folder = pathlib.Path(env["PAWL_TEST_PG_DIR"])
    assert ask(env["PAWL_TEST_PG"], "SELECT 1") == "1"
    watcher = os.pidfd_open(int((folder / "watcher.pid").read_text()))
    owner.kill()
    owner.communicate()
    # The watcher has nothing left to do then, and ends.
    assert select.select([watcher], [], [], 20)[0]
    assert not folder.exists()


def test_stopping_what_was_never_started_is_fine(note):
    assert call("stop", note).returncode == 0

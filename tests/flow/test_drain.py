"""Drain: what follows an end is still told, and it ends in time whatever is away."""

import os
import re
import signal
import subprocess
import time

import flow_jobs as jobs
import pytest
from pawl_env import Site, wait_for

FULL = bool(os.environ.get("PAWL_FULL"))
GRACE = 15  # seconds that 45 s of drain leave of the 60


class Listener:
    """psql that listens on one channel; it prints what came with its next answer."""

    def __init__(self, url, channel):
        self.psql = subprocess.Popen(["psql", "-X", "-A", "-t", url],
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     stderr=subprocess.STDOUT, encoding="utf-8")
        self.say(f"LISTEN {channel}; SELECT 'listens';")
        while self.psql.stdout.readline() != "listens\n":
            pass

    def say(self, text):
        self.psql.stdin.write(text + "\n")
        self.psql.stdin.flush()

    def heard(self):
        out, _ = self.psql.communicate("SELECT 'over';\n", timeout=30)
        return re.findall(r'Asynchronous notification "(\w+)"', out)


def name_of(site):
    return site.store_url.rsplit("/", 1)[1]


def close_store(cluster, site):
    """Nobody is let in, and who is in goes out."""
    cluster.psql("postgres", f'ALTER DATABASE "{name_of(site)}" ALLOW_CONNECTIONS false')
    cluster.psql("postgres", "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
                             f"WHERE datname = '{name_of(site)}'")


def open_store(cluster, site):
    cluster.psql("postgres", f'ALTER DATABASE "{name_of(site)}" ALLOW_CONNECTIONS true')


def test_A19_A23_who_listens_hears_of_an_end_during_the_drain(cluster):
    """The row under way takes seconds, so the chunk ends after the drain has begun."""
    site = Site("pg", cluster, jobs.SLOW)
    try:
        site.up()
        request_id = site.submit_id("slow", rows=3, ms=2000)
        site.wait_running(request_id)
        wait_for(lambda: site.count("step_execution") == 1, "its step has begun")
        worker = site.worker
        worker.signal(signal.SIGTERM)
        wait_for(lambda: "draining" in worker.log(), "the drain begins")
        listener = Listener(site.store_url, "pawl_done")
        assert site.count("outcome") == 0
        assert worker.wait_end(30) == 0
        assert "pawl_done" in listener.heard()
        request = site.wait_final(request_id)
        assert (request["status"], request["outcome"]) == ("DONE", "STOPPED")
        # All that it still had to do went through: nothing was closed before its time.
        assert not re.search(r" (warn|error) ", worker.log()), worker.log()
        assert [site.count(t) for t in ("claim", "worker", "progress")] == [0, 0, 0]
        (step,) = site.sql("SELECT state, chunk, read_count FROM pawl.step_execution")
        assert step["state"] == "STOPPED" and 0 < step["chunk"] == step["read_count"]
        site.close()
    finally:
        site.discard()


@pytest.mark.parametrize("kind", ["sqlite", "pg"])
def test_A19_A21_the_end_of_a_drain_cuts_off_a_statement_on_the_store_itself(cluster, kind):
    site = Site(kind, cluster, jobs.own(kind), "worker: {drain: 300ms}\n")
    try:
        site.up()
        request_id = site.submit_id("own")
        wait_for(lambda: site.count("step_execution") == 1, "its step has begun")
        begin = time.monotonic()
        site.worker.signal(signal.SIGTERM)
        assert site.worker.wait_end(10) == 0
        assert time.monotonic() - begin < 3
        assert site.one(f"SELECT outcome FROM pawl.outcome WHERE id = {request_id}") == \
            "STOPPED"
        site.close()
    finally:
        site.discard()


def test_A19_A21_a_drain_ends_in_time_while_the_store_is_away(cluster):
    """By default 45 s and 60 s; --full waits for them."""
    drain = 45 if FULL else 1
    # The job's rows come from another database: only the store goes away.
    site = Site("pg", cluster, jobs.SLOW, f"worker: {{drain: {drain}s}}\n",
                databases={"pg": cluster.url})
    try:
        site.up()
        request_id = site.submit_id("slow", rows=3000, ms=20)
        site.wait_progress(request_id, 5)
        worker = site.worker
        close_store(cluster, site)
        begin = time.monotonic()
        worker.signal(signal.SIGTERM)
        worker.wait_end(drain + GRACE)
        took = time.monotonic() - begin
        print(f"drained in {took:.1f} s without a store")
        assert took < drain + GRACE
        open_store(cluster, site)
        site.restart_worker()
        request = site.wait_final(request_id)
        assert request["outcome"] == "STOPPED", request
        site.close()
    finally:
        site.discard()

"""Several workers on one store."""

import flow_jobs as jobs
import pytest
from pawl_env import Site, wait_for


@pytest.fixture
def two_workers(cluster):
    site = Site("pg", cluster, jobs.SLOW,
                "lanes: {normal: 1, large: 0}\nworker: {safety_scan: 10m}\n")
    try:
        site.pawl("migrate")
        site.start("api")
        for name in ("w1", "w2"):
            site.start_worker(name)
        yield site
        site.close()
    finally:
        site.discard()


def test_a_bulk_is_shared_at_once_though_both_claim_at_the_same_moment(two_workers):
    """The claim of one passes by what the other's claim holds; no wake-up follows."""
    site = two_workers
    for _ in range(6):
        answer = site.call("POST", "/api/v1/requests", {"requests": [{"job": "slow"}] * 2})
        ids = [request["requestId"] for request in answer.json["requests"]]
        wait_for(lambda: all(site.get(i)["status"] == "RUNNING" for i in ids),
                 "both run", seconds=10)
        for request_id in ids:
            assert site.cancel(request_id).status == 202
        for request_id in ids:
            assert site.wait_final(request_id)["outcome"] == "CANCELLED"


def test_every_lane_is_served_however_many_there_are(cluster):
    names = [f"lane-{i}" for i in range(40)]
    site = Site("sqlite", cluster, jobs.variant(jobs.QUICK, "last", lane=names[-1]),
                "lanes: {" + ", ".join(f"{name}: 1" for name in names) + "}\n")
    try:
        site.up()
        site.wait_done(site.submit_id("last"), 10)
        site.close()
    finally:
        site.discard()


@pytest.mark.parametrize("kind", ["sqlite", "pg"])
def test_A14_what_was_claimed_after_a_declaration_of_death_goes_on(kind, cluster):
    """Its row is gone, its claim is not: a worker that woke up has claimed it since."""
    site = Site(kind, cluster, jobs.SLOW, "lanes: {normal: 1}\n"
                "worker: {heartbeat: 1s, dead_after: 3s, reap: 1s}\n")
    try:
        site.up()
        request_id = site.submit_id("slow", rows=60, ms=50)
        site.wait_progress(request_id, 2)
        site.store_do("DELETE FROM pawl.worker")
        wait_for(lambda: "was declared dead" in site.worker.log(), "it comes back")
        assert site.wait_done(request_id)["attempt"] == 1
        assert site.count("execution") == 1 and site.count("worker") == 1
        site.close()
    finally:
        site.discard()

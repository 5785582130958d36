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

"""Pause: what waits stays in line, what runs goes on, and everybody is told who paused."""

import json

import pytest
import flow_jobs as jobs
from pawl_env import Site, wait_for

JOBS = jobs.QUICK + jobs.SLOW


@pytest.fixture(scope="module", params=["sqlite", "pg"])
def site(request, cluster):
    site = Site(request.param, cluster, JOBS)
    try:
        yield site.up()
        site.close()
    finally:
        site.discard()


def listed(site, what, name):
    items = json.loads(site.pawl(what, "--json").stdout)["items"]
    return next(item for item in items if item[what[:-1]] == name)


@pytest.mark.parametrize("kind,name", [("job", "slow"), ("lane", "normal")])
def test_what_waits_stays_and_what_runs_goes_on(site, kind, name):
    running = site.submit_id("slow", rows=6, ms=30)
    site.wait_running(running)
    site.pawl("pause", kind, name)
    waiting = site.submit_id("slow", rows=1, ms=1)
    assert site.wait_done(running)["outcome"] == "COMPLETED"
    reason = site.call("GET", f"/api/v1/requests/{waiting}/why").json["reasons"][0]
    assert reason["code"] == "PAUSED" and reason[kind] == name, reason
    told = listed(site, kind + "s", name)
    assert told["paused"] and told["pausedBy"] == reason["pausedBy"], told
    refused = site.pawl("run", "slow", "-p", "rows=1", "-p", "ms=1", code=3)
    assert f"pawl resume {kind} {name}" in refused.stderr, refused.stderr
    assert site.get(waiting)["status"] == "QUEUED"
    answer = site.call("POST", f"/api/v1/{kind}s/{name}/resume")
    assert answer.status == 200
    assert answer.json == {kind: name, "paused": False, "changed": True}
    assert site.wait_done(waiting)["outcome"] == "COMPLETED"
    assert not listed(site, kind + "s", name)["paused"]


def test_another_job_is_not_held_and_a_restart_does_not_lift_it(site):
    site.pawl("pause", "job", "slow")
    waiting = site.submit_id("slow", rows=1, ms=1)
    site.worker.stop()
    site.restart_worker()
    site.wait_done(site.submit_id("quick", tag="free"))
    assert site.get(waiting)["status"] == "QUEUED"
    assert "was already" in site.pawl("pause", "job", "slow").stdout
    site.pawl("resume", "job", "slow")
    site.wait_done(waiting)


def test_what_is_not_there_cannot_be_paused(site):
    assert "pawl jobs" in site.pawl("pause", "job", "slwo", code=4).stderr
    assert "pawl lanes" in site.pawl("resume", "lane", "nrmal", code=4).stderr
    assert "job NAME" in site.pawl("pause", "jbo", "slow", code=2).stderr
    answer = site.call("POST", "/api/v1/lanes/nrmal/pause")
    assert (answer.status, answer.json["code"]) == (404, "NOT_FOUND")
    assert site.count("paused") == 0

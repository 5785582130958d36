"""What follows a request: the next of its chain, those that wait for it, its next try."""

import json

import pytest
import flow_jobs as jobs
from pawl_env import Site

LINK = jobs.variant(jobs.QUICK, "link")
RETRIED = jobs.variant(jobs.BROKEN, "retried",
                       retry="{attempts: 2, on: [ERROR], backoff: 0s}")
REFUSED = jobs.variant(jobs.SLOW, "one", duplicates=None, retry="{attempts: 3}")
MAPPED = jobs.variant(jobs.QUICK, "mapped",
                      next='[{job: link, params: {rows: "{rows}", tag: plain}}, quick]')
JOBS = jobs.QUICK + LINK + RETRIED + REFUSED + MAPPED


@pytest.fixture(params=["sqlite", "pg"])
def site(request, cluster):
    site = Site(request.param, cluster, JOBS, "lanes: {normal: 4, large: 2}\n")
    site.up()
    try:
        yield site
        site.close()
    finally:
        site.discard()


def follower(site, request_id):
    (row,) = site.sql("SELECT id FROM pawl.request WHERE requester = "
                      f"'chain:#{request_id}'")
    return row["id"]


def test_A12_a_chain_with_parameters_runs_to_its_end(site):
    answer = site.post("quick", {"rows": 5, "tag": "kr"},
                       next=[{"job": "link", "params": {"rows": "{rows}", "tag": "x"}},
                             "quick"])
    assert answer.status == 202, answer
    first = answer.json["requestId"]
    site.wait_done(first)
    second = follower(site, first)
    assert site.wait_done(second)["params"] == {"rows": 5, "tag": "x"}
    assert site.get(second)["next"] == ["quick"]
    third = follower(site, second)
    assert site.wait_done(third)["job"] == "quick"
    assert site.count("request") == 3


def test_A12_the_chain_of_the_file_maps_parameters_too(site):
    first = site.submit_id("mapped", rows=7, tag="kr")
    site.wait_done(first)
    second = follower(site, first)
    assert site.wait_done(second)["params"] == {"rows": 7, "tag": "plain"}
    assert site.wait_done(follower(site, second))["job"] == "quick"


def test_I21_the_command_line_waits_for_others(site):
    a = site.submit_id("quick", tag="a")
    b = site.submit_id("quick", tag="b")
    out = site.pawl("submit", "link", "--after", f"{a},{b}", "--wait", "--json").stdout
    done = json.loads(out)
    assert done["startedAt"] >= max(site.get(a)["finishedAt"], site.get(b)["finishedAt"])
    assert "such as 17,18" in site.pawl("submit", "link", "--after", "1,,2", code=2).stderr
    assert "no request 9999" in site.pawl("submit", "link", "--after", "9999",
                                          code=2).stderr


@pytest.mark.parametrize("member, value, pointer", [
    ("next", ["nothing"], "/next/0"),
    ("next", [{"job": "link", "params": {"q": 1}}], "/next/0/params/q"),
    ("next", [{"job": "link", "params": {"tag": "{q}"}}], "/next/0/params/tag"),
    ("next", [{"job": "link", "lane": "x"}], "/next/0"),
    ("after", 5, "/after"),
    ("after", ["5"], "/after/0"),
    ("after", [99999], "/after/0"),
])
def test_a_wrong_chain_is_refused_with_its_place(site, member, value, pointer):
    answer = site.post("quick", {}, **{member: value})
    assert answer.status == 400 and pointer in json.dumps(answer.json), answer
    assert site.count("request") == 0


def test_I21_a_fan_in_runs_when_both_are_done(site):
    a = site.submit_id("quick", tag="a")
    b = site.submit_id("quick", tag="b")
    c = site.post("link", {}, after=[a, b]).json["requestId"]
    done = site.wait_done(c)
    assert done["startedAt"] >= max(site.get(a)["finishedAt"], site.get(b)["finishedAt"])


def test_I10_a_failure_is_tried_again_and_followed(site):
    done = site.pawl("submit", "retried", "--wait", "-q", code=1)
    tries = site.sql("SELECT id, attempt, retry_of FROM pawl.request ORDER BY id")
    assert [t["attempt"] for t in tries] == [1, 2]
    assert tries[1]["retry_of"] == tries[0]["id"]
    assert f"again as request {tries[1]['id']}" in done.stderr
    shown = site.get(tries[0]["id"])
    assert [t["requestId"] for t in shown["attempts"]] == [t["id"] for t in tries]
    assert [t["outcome"] for t in shown["attempts"]] == ["ERROR", "ERROR"]
    out = site.pawl("show", str(tries[0]["id"]), "--follow", "--json").stdout
    assert json.loads(out)["requestId"] == tries[1]["id"]


def test_I12_after_a_kill_the_next_try_runs_until_it_is_cancelled(site):
    first = site.submit_id("one")
    site.wait_running(first)
    site.worker.kill()
    site.restart_worker()
    assert site.wait_final(first)["outcome"] == "WORKER_LOST"
    second = site.get(first)["attempts"][-1]["requestId"]
    assert second != first
    site.wait_running(second)
    assert site.cancel(first).status == 202  # any try stands for the live one
    assert site.wait_final(second)["outcome"] == "CANCELLED"
    assert site.count("request") == 2

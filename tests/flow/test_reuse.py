"""Duplicates by `reuse`: the same wish, still QUEUED and young, is one request."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest


@pytest.fixture
def tag(request):
    """Parameters of one test only."""
    return request.node.name


def raw(site, text, requester=None):
    answer = site.call("POST", "/api/v1/jobs/report/requests", text,
                       {"Content-Type": "application/json"})
    assert answer.status in (200, 202), answer
    assert answer.json["reused"] == (answer.status == 200)
    return answer.json["requestId"]


def test_B29_twenty_at_once_get_one_id_and_one_row(site, tag):
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: site.post("report", {"tag": tag}), range(20)))
    assert len({a.json["requestId"] for a in answers}) == 1
    assert sorted(a.status for a in answers) == [200] * 19 + [202]
    assert site.count("request", f"job = 'report' AND given LIKE '%{tag}%'") == 1


def test_B29_order_blanks_and_defaults_do_not_matter_values_do(site, tag):
    first = raw(site, json.dumps({"params": {"rows": 3, "tag": tag}}))
    same = [
        '{ "params" : {"tag":%s,\n "rows" : 3 } }' % json.dumps(tag),
        '{"params": {"tag": %s}}' % json.dumps(tag),  # 3 is the default
        '{"params": {"tag": %s, "rows": 3.0}}' % json.dumps(tag),
        '{"params": {"tag": %s, "rows": 3e0}}' % json.dumps(tag).replace("B", "\\u0042"),
    ]
    assert {raw(site, text) for text in same} == {first}
    others = [
        '{"params": {"tag": %s, "rows": 4}}' % json.dumps(tag),
        '{"params": {"tag": %s, "rows": 3}}' % json.dumps(tag + " "),
        '{"params": {"tag": %s, "rows": 3}, "requester": "somebody"}' % json.dumps(tag),
    ]
    ids = [raw(site, text) for text in others]
    assert len({first, *ids}) == 4


def test_B30_only_what_is_queued_is_reused(site, tag):
    first = site.submit_id("slow-report", tag=tag, rows=2000, ms=20)
    site.wait_running(first)
    while_running = site.post("slow-report", {"tag": tag, "rows": 2000, "ms": 20})
    assert while_running.status == 202
    assert while_running.json["requestId"] != first
    for request_id in (first, while_running.json["requestId"]):
        assert site.cancel(request_id).status in (200, 202)
        assert site.wait_final(request_id)["outcome"] == "CANCELLED"
    done = site.submit_id("slow-report", tag=tag, rows=2, ms=0)
    site.wait_done(done)
    after = site.post("slow-report", {"tag": tag, "rows": 2, "ms": 0})
    assert after.status == 202 and after.json["requestId"] != done
    site.wait_done(after.json["requestId"])


def test_B31_older_than_the_window_is_stuck_and_a_new_one_is_made(site, tag):
    first = site.submit_id("report", tag=tag)
    minute = 60_000_000

    def age(minutes):
        site.store_do(f"UPDATE pawl.request SET created_at = created_at - "
                      f"{minutes * minute} WHERE id = {first}")
    age(9)
    assert site.submit_id("report", tag=tag) == first
    age(2)
    second = site.submit_id("report", tag=tag)
    assert second != first
    assert site.submit_id("report", tag=tag) == second
    # Both are settled, each once, and the key of the second outlives the first.
    assert site.cancel(first).status == 200
    assert site.submit_id("report", tag=tag) == second
    assert site.cancel(second).status == 200
    assert site.count("outcome", f"id IN ({first}, {second})") == 2
    assert site.submit_id("report", tag=tag) not in (first, second)


def test_B31_the_window_may_be_nothing_at_all(site, tag):
    ids = [site.submit_id("eager-report", tag=tag) for _ in range(3)]
    assert len(set(ids)) == 3

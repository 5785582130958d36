"""Lanes: routed by size, each with slots of its own, large work never before small."""

import pytest
import flow_jobs as jobs
from pawl_env import Site, wait_for

JOBS = (jobs.QUICK + jobs.SLOW + jobs.SIZED + jobs.variant(jobs.SLOW, "heavy", lane="large"))


@pytest.fixture(scope="module", params=["sqlite", "pg"])
def lanes(request, cluster):
    """A site of its own: its lanes are counted."""
    site = Site(request.param, cluster, JOBS, "lanes: {normal: 4, large: 2}\n")
    try:
        yield site.up()
        site.close()
    finally:
        site.discard()


def running(site):
    rows = site.sql("SELECT lane, count(*) AS n FROM pawl.claim GROUP BY lane")
    return {row["lane"]: row["n"] for row in rows}


def end_all(site, ids):
    for request_id in ids:
        site.cancel(request_id)
    for request_id in ids:
        site.wait_final(request_id)


def test_B15_9999_is_normal_and_10000_is_large(lanes):
    for rows, lane in ((0, "normal"), (9999, "normal"), (10000, "large"), (10001, "large")):
        answer = lanes.submit("sized", rows=rows)
        assert (answer["lane"], answer["estimate"]) == (lane, rows)
        request = lanes.wait_done(answer["requestId"])
        assert (request["lane"], request["estimate"]) == (lane, rows)
        assert lanes.one("SELECT lane FROM pawl.request WHERE id = "
                         f"{answer['requestId']}") == lane


def test_B14_small_ones_do_not_wait_behind_large_ones(lanes):
    heavy = [lanes.submit_id("heavy", rows=2000, ms=50) for _ in range(4)]
    wait_for(lambda: running(lanes) == {"large": 2}, "the large lane is full")
    small = [lanes.submit_id("quick", tag=str(n)) for n in range(20)]
    for request_id in small:
        lanes.wait_done(request_id, 10)
    delays = [row["us"] / 1e6 for row in lanes.sql(
        "SELECT o.claimed_at - r.created_at AS us FROM pawl.outcome o "
        "JOIN pawl.request r ON r.id = o.id "
        f"WHERE r.id BETWEEN {small[0]} AND {small[-1]}")]
    assert len(delays) == 20 and max(delays) < 1, delays
    assert [lanes.get(i)["status"] for i in heavy] == ["RUNNING"] * 2 + ["QUEUED"] * 2
    end_all(lanes, heavy)


def sample_both_lanes(site, normal, large):
    """Fill both; the most that ran at once, over many samples."""
    ids = [site.submit_id("slow", rows=8, ms=50) for _ in range(normal * 2 + 2)]
    ids += [site.submit_id("heavy", rows=8, ms=50) for _ in range(large * 2 + 2)]
    most = {"normal": 0, "large": 0}

    def over():
        for lane, n in running(site).items():
            most[lane] = max(most[lane], n)
        return site.count("outcome", f"id >= {ids[0]}") == len(ids)
    wait_for(over, "all are over")
    return most


def test_B17_each_lane_has_slots_of_its_own(lanes):
    assert sample_both_lanes(lanes, 4, 2) == {"normal": 4, "large": 2}


def restart(site, slots):
    site.down()
    site.configure(JOBS, f"lanes: {slots}\n")
    site.up()


def test_B16_B17_B21_a_restart_keeps_lanes_and_order_and_runs_each_once(lanes):
    restart(lanes, "{normal: 0, large: 0}")
    ids = [lanes.submit_id("sized", rows=rows) for rows in [5, 10000] * 5]
    routed = {i: lanes.get(i)["lane"] for i in ids}
    assert list(routed.values()) == ["normal", "large"] * 5
    for server in list(lanes.servers):
        if not server.ended:
            server.kill()
    lanes.configure(JOBS, "lanes: {normal: 1, large: 3}\n")
    lanes.up()
    for request_id in ids:
        request = lanes.wait_done(request_id)
        assert request["lane"] == routed[request_id]
    executions = lanes.sql("SELECT request_id FROM pawl.execution "
                           f"WHERE request_id BETWEEN {ids[0]} AND {ids[-1]}")
    assert sorted(row["request_id"] for row in executions) == ids
    order = [row["id"] for row in lanes.sql(
        f"SELECT id FROM pawl.outcome WHERE id BETWEEN {ids[0]} AND {ids[-1]} "
        "ORDER BY claimed_at, id")]
    assert [i for i in order if routed[i] == "normal"] == ids[0::2]
    # Another number for each lane: only that lane changes.
    assert sample_both_lanes(lanes, 1, 3) == {"normal": 1, "large": 3}

"""An idle pool starts at once when asked, and asks nothing while nobody asks."""

import os
import pathlib
import re
import statistics
import time

import pytest
import flow_jobs as jobs
from pawl_env import PAWL, Site, wait_for

TRIVIAL = """\
  trivial:
    duplicates: allow
    steps:
      - name: export
        read: {database: shop, sql: "SELECT 1 AS one"}
        write: {file: one.csv}
"""
# Beats are seldom here, so what is seen in the silence is asking, not living.
SETTINGS = "worker: {heartbeat: 60s, dead_after: 180s, safety_scan: %s}\n"
# Whoever could tell a webhook asks nothing either while there is nothing to tell.
WEBHOOK = ("keys: [PICKUP_KEY]\n"
           "webhooks: {nobody: {url: 'http://127.0.0.1:1/', key: PICKUP_KEY}}\n")
SILENCE_S = 8


@pytest.fixture(scope="module", params=["sqlite", "pg"])
def pool(request, cluster):
    site = Site(request.param, cluster, TRIVIAL + jobs.SLOW, SETTINGS % "60s" + WEBHOOK)
    os.environ["PICKUP_KEY"] = "a-secret"
    try:
        if site.kind == "pg":
            name = site.store_url.rsplit("/", 1)[1]
            cluster.psql("postgres", f"ALTER DATABASE \"{name}\" SET log_statement = 'all'")
        yield site.up()
        site.close()
    finally:
        del os.environ["PICKUP_KEY"]
        site.discard()


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def delays_of(site, count):
    ids = []
    connection = site.api.connect()
    for _ in range(count):
        answer = site.api.call("POST", "/api/v1/jobs/trivial/requests", {},
                               connection=connection)
        ids.append(answer.json["requestId"])
        site.api.call("GET", f"/api/v1/requests/{ids[-1]}?wait=20s", connection=connection)
    connection.close()
    rows = site.sql("SELECT o.claimed_at - r.created_at AS us FROM pawl.outcome o "
                    "JOIN pawl.request r ON r.id = o.id "
                    f"WHERE r.id BETWEEN {ids[0]} AND {ids[-1]}")
    assert len(rows) == count
    return [row["us"] / 1000 for row in rows]


def test_B6_a_request_starts_within_50_ms_on_an_idle_pool(pool):
    for attempt in (1, 2):  # the machine may be busy with something else once
        ms = delays_of(pool, 100)
        p95 = percentile(ms, 0.95)
        print(f"submit to start, {pool.kind}: p50 {statistics.median(ms):.1f} ms, "
              f"p95 {p95:.1f} ms, worst {max(ms):.1f} ms")
        if p95 < 50:
            return
    pytest.fail(f"p95 is {p95:.1f} ms, twice")


# --- what is due by the clock ---

def iso_in(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))


def test_a_request_for_later_starts_when_its_time_comes(pool):
    """The safety scan is a minute away: the worker's timer has to know."""
    answer = pool.post("trivial", notBefore=iso_in(2)).json
    request = pool.wait_done(answer["requestId"], 30)
    assert request["notBefore"] <= request["startedAt"]


def test_a_request_expires_in_time_while_all_slots_are_taken(pool):
    slow = [pool.submit_id("slow") for _ in range(4)]
    for number in slow:
        pool.wait_running(number)
    answer = pool.post("trivial", expiresAt=iso_in(2)).json
    request = pool.wait_final(answer["requestId"], 30)
    assert request["outcome"] == "EXPIRED", request
    for number in slow:
        pool.cancel(number)
    for number in slow:
        pool.wait_final(number)


# --- silence ---

def wakeups(server):
    """How often threads of the process were woken, so far."""
    total = 0
    for status in pathlib.Path(f"/proc/{server.pid}/task").glob("*/status"):
        total += int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", status.read_text(),
                               re.M).group(1))
    return total


def statements(cluster, site):
    name = site.store_url.rsplit("/", 1)[1]
    log = pathlib.Path(cluster.folder, "postgres.log").read_text(errors="replace")
    return [line for line in log.splitlines()
            if f" {name} LOG:" in line and re.search(r"(execute|statement)", line)]


def test_B11_idle_means_no_query_per_second(pool, cluster):
    """What is measured is silence, so here a fixed time passes."""
    pool.wait_done(pool.submit_id("trivial"))
    wait_for(lambda: pool.count("claim") == 0, "all is over")
    live = [s for s in pool.servers if not s.ended]
    before = {s.name: wakeups(s) for s in live}
    asked = len(statements(cluster, pool)) if pool.kind == "pg" else 0
    wal = os.stat(pool.folder / "pawl.db-wal") if pool.kind == "sqlite" else None
    time.sleep(SILENCE_S)
    if pool.kind == "pg":
        later = statements(cluster, pool)[asked:]
        assert len(later) <= 2, later  # a beat may fall into the time
    else:
        now = os.stat(pool.folder / "pawl.db-wal")
        assert (now.st_size, now.st_mtime_ns) == (wal.st_size, wal.st_mtime_ns)
    if "tsan" in PAWL:
        return  # a thread of the sanitizer's own wakes up ten times a second
    woken = {s.name: wakeups(s) - before[s.name] for s in live}
    print(f"wake-ups in {SILENCE_S} s, {pool.kind}: {woken}")
    for name, count in woken.items():
        assert count < SILENCE_S, (name, count)


def test_B11_the_statements_of_a_busy_time_are_seen_by_that_measure(pool, cluster):
    """So that the silence above is not that of a deaf ear."""
    if pool.kind == "pg":
        before = len(statements(cluster, pool))
        pool.wait_done(pool.submit_id("trivial"))
        assert len(statements(cluster, pool)) > before + 5
    else:
        before = os.stat(pool.folder / "pawl.db-wal").st_mtime_ns
        pool.wait_done(pool.submit_id("trivial"))
        assert os.stat(pool.folder / "pawl.db-wal").st_mtime_ns > before


def test_B11_a_lost_wake_up_costs_one_safety_scan(cluster):
    """Rows put in behind everybody's back: no NOTIFY tells of them."""
    site = Site("pg", cluster, TRIVIAL, SETTINGS % "1s")
    try:
        site.up()
        site.wait_done(site.submit_id("trivial"))
        site.store_do(
            "BEGIN; INSERT INTO pawl.request (id, job, given, requester, source, lane, "
            "created_at) VALUES (1000, 'trivial', '{}', 'nobody', 'sql', 'normal', "
            "pawl_now()); INSERT INTO pawl.ready (first_id, last_id, job, lane, priority, "
            "seq, ready_since) VALUES (1000, 1000, 'trivial', 'normal', 0, 1000, "
            "pawl_now()); COMMIT;")
        wait_for(lambda: site.get(1000)["outcome"] == "COMPLETED", "it is found", 10)
        site.close()
    finally:
        site.discard()

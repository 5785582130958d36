"""Workers that die, freeze or lose the store: what they held is closed, and only that."""

import contextlib
import signal
import sqlite3
import subprocess
import threading
import time

import flow_jobs as jobs
import pytest
from pawl_env import FULL, PAWL, PSQL, Cluster, Site, read_csv, wait_for

DEAD_AFTER = 6
SETTINGS = f"""\
lanes: {{normal: 1, large: 1}}
worker: {{heartbeat: 1s, dead_after: {DEAD_AFTER}s, reap: 1s, safety_scan: 1s, poll: 1s, record_retry: 1s}}
"""

# Counts on the worker's own processor; `fail_at` overflows there.
LOCAL = """\
  local:
    params: {rows: {type: integer}, fail_at: {type: integer, default: 0}}
    duplicates: allow
    retry: none
    lane: normal
    steps:
      - name: count
        read: {database: local, sql: "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :rows) SELECT count(*) AS n, sum(CASE WHEN i = :fail_at THEN abs(-9223372036854775807 - 1) ELSE 0 END) AS x FROM n"}
        write: {file: count.csv}
"""
SPLIT = """\
  split:
    retry: none
    steps:
      - name: split
        chunk: 5
        partitions: 4
        partition: {key: id}
        read: {database: local, sql: "SELECT id FROM source"}
        write: {database: main, rows: "INSERT INTO copied SELECT CAST(:id AS bigint) FROM pg_sleep(0.005)"}
"""
JOBS = jobs.QUICK + jobs.SLOW + jobs.variant(jobs.SLOW, "single", duplicates="refuse")


def database_away(cluster):
    cluster.pg_ctl("stop", "-m", "immediate")


@pytest.fixture
def two(cluster):
    """An api and two workers with one slot each."""
    site = Site("pg", cluster, JOBS, SETTINGS)
    try:
        site.pawl("migrate")
        site.start("api")
        site.start_worker("one")
        site.start_worker("two")
        yield site
        site.close()
    finally:
        site.discard()


@pytest.fixture
def own():
    """A site on a cluster that the test may stop; its job needs no other database."""
    cluster = Cluster(own=True)
    site = None
    try:
        site = Site("pg", cluster, LOCAL + SPLIT, SETTINGS,
                    databases={"local": "sqlite:./local.db"})
        (site.folder / "local.db").touch()
        site.up()
        yield site
        site.close()
    finally:
        if site:
            site.discard()
        cluster.close()


def server_of(site, request_id):
    """The process that carries the request: the worker's id begins with its pid."""
    pid = int(site.get(request_id)["worker"].split("@")[0])
    (server,) = [s for s in site.servers if s.pid == pid]
    return server


def start_two(site):
    """One request on each worker; (request, its server) twice."""
    ids = [site.submit_id("slow", rows=1000, ms=20) for _ in range(2)]
    for request_id in ids:
        site.wait_progress(request_id, 2)
    pairs = [(i, server_of(site, i)) for i in ids]
    assert pairs[0][1] is not pairs[1][1]
    return pairs


def trusted(site):
    """Nobody is judged before one whole dead_after since the start."""
    start = time.monotonic()
    wait_for(lambda: time.monotonic() - start > DEAD_AFTER + 1, "the judges' time", 30)


def lost(site, request_id):
    request = site.get(request_id)
    return request["outcome"] == "WORKER_LOST" and request


# --- a dead worker ---

def test_A14_a_killed_workers_request_is_closed_in_time_and_the_others_go_on(two):
    (dead, killed), (alive, survivor) = start_two(two)
    trusted(two)
    killed.kill()
    begin = time.monotonic()
    request = wait_for(lambda: lost(two, dead), "the request is closed", DEAD_AFTER + 10)
    took = time.monotonic() - begin
    print(f"closed {took:.2f} s after the kill, dead_after is {DEAD_AFTER} s")
    assert DEAD_AFTER - 1.5 < took < DEAD_AFTER + 3
    assert "ask for it again" in request["detail"].lower()
    assert two.get(alive)["status"] == "RUNNING"
    assert two.count("worker") == 1
    assert not set(two.loose_parts()) & set(two.parts_of(dead))
    assert "a worker is dead" in survivor.log()
    two.wait_done(alive, 120)


def test_A39_who_is_refused_because_of_a_silent_worker_is_told_until_when(two):
    request_id = two.submit_id("single", rows=1000, ms=20)
    two.wait_progress(request_id, 2)
    refused = two.post("single", {"rows": 1, "ms": 1})
    assert (refused.status, refused.json["code"]) == (409, "JOB_ALREADY_RUNNING")
    assert "silent" not in refused.json["detail"]
    server_of(two, request_id).signal(signal.SIGSTOP)
    told = wait_for(lambda: [text for text in [two.post("single", {"rows": 1, "ms": 1}).json["detail"]]
                             if "is silent" in text], "it is told", DEAD_AFTER)[0]
    assert f"request {request_id}" in told and "closes the request in about" in told
    again = two.call("POST", f"/api/v1/requests/{request_id}/restart")
    assert again.status == 409 and "is silent" in again.json["detail"]
    server_of(two, request_id).signal(signal.SIGCONT)
    assert two.cancel(request_id).status == 202
    two.wait_final(request_id)


@pytest.mark.skipif(not FULL, reason="--full; test_service_bury.c is the quick one")
def test_A27_what_a_dead_worker_holds_is_closed_for_who_asks_again(two):
    request_id = two.submit_id("single", rows=1000, ms=20)
    two.wait_progress(request_id, 2)
    trusted(two)
    server_of(two, request_id).kill()
    answers = []
    wait_for(lambda: answers.append(two.post("single", {"rows": 1, "ms": 1}))
             or answers[-1].status != 409, "the way is free", DEAD_AFTER + 5)
    assert answers[-1].status == 202
    assert two.get(request_id)["outcome"] == "WORKER_LOST"
    two.wait_done(answers[-1].json["requestId"])


def test_A27_the_next_owner_of_an_SQLite_store_closes_what_a_killed_run_left(cluster):
    def killed_run():
        run = subprocess.Popen([PAWL, "run", "single", "-p", "rows=1000", "-p", "ms=20"],
                               cwd=site.folder, env=site.environment(),
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            (row,) = wait_for(lambda: site.sql("SELECT first_id AS id FROM pawl.claim"), "it runs")
        finally:
            run.kill()
            run.wait()
        return row["id"]
    site = Site("sqlite", cluster, JOBS, SETTINGS)
    try:
        site.pawl("migrate")
        first = killed_run()
        site.pawl("run", "single", "-p", "rows=1", "-p", "ms=1")
        second = killed_run()
        site.up()
        for request_id in (first, second):
            assert site.get(request_id)["outcome"] == "WORKER_LOST"
        site.wait_done(site.submit_id("single", rows=1, ms=1))
        site.close()
    finally:
        site.discard()


@contextlib.contextmanager
def blocked(site, table, role, n=1):
    """Nobody writes into the table until the end; n of the role have come and wait."""
    psql = subprocess.Popen([PSQL, "-qAtX", site.store_url], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, encoding="utf-8")
    try:
        psql.stdin.write(f"BEGIN; LOCK TABLE pawl.{table} IN EXCLUSIVE MODE; SELECT 1;\n")
        psql.stdin.flush()
        assert psql.stdout.readline() == "1\n"
        yield lambda: wait_for(lambda: site.one(
            "SELECT count(*) AS n FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND "
            f"datname = current_database() AND usename = '{role}'") >= n, "they wait")
    finally:
        psql.stdin.close()
        psql.wait(10)


@pytest.mark.skipif(not FULL, reason="--full; test_stall.c is the quick one")
def test_A14_a_worker_frozen_inside_a_transaction_is_rescued_in_time(two):
    (frozen, server), (other, _) = start_two(two)
    trusted(two)
    with blocked(two, "step_execution", "pawl_worker", 2) as all_wait:
        all_wait()
        server.signal(signal.SIGSTOP)
    begin = time.monotonic()
    wait_for(lambda: lost(two, frozen), "the request is closed", DEAD_AFTER + 10)
    took = time.monotonic() - begin
    print(f"closed {took:.2f} s after the freeze, dead_after is {DEAD_AFTER} s")
    assert took < DEAD_AFTER + 3
    server.signal(signal.SIGCONT)
    wait_for(lambda: "not recorded by us" in server.log(), "it gives its run up")
    two.wait_done(other, 120)


@pytest.mark.skipif(not FULL, reason="--full; test_stall.c is the quick one")
def test_A14_a_pawl_run_frozen_inside_a_transaction_is_rescued_in_time(two):
    trusted(two)
    run = subprocess.Popen([PAWL, "run", "slow", "-p", "rows=1000", "-p", "ms=20"],
                           cwd=two.folder, env=two.environment(), stderr=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL)
    try:
        (row,) = wait_for(lambda: two.sql("SELECT first_id AS id FROM pawl.claim"), "it runs")
        two.wait_progress(row["id"], 2)
        with blocked(two, "step_execution", "pawl_worker") as it_waits:
            it_waits()
            run.send_signal(signal.SIGSTOP)
        begin = time.monotonic()
        wait_for(lambda: lost(two, row["id"]), "the request is closed", DEAD_AFTER + 10)
        assert time.monotonic() - begin < DEAD_AFTER + 3
    finally:
        run.kill()
        run.wait()


def test_A14_an_api_frozen_inside_a_transaction_keeps_nobody_waiting(cluster):
    site = Site("pg", cluster, JOBS, SETTINGS)
    try:
        site.pawl("migrate")
        first = site.start("api", "first")
        site.start("api", "second")
        asked = []
        caller = threading.Thread(target=lambda: asked.append(first.call(
            "POST", "/api/v1/jobs/single/requests", {"params": {"rows": 1, "ms": 1}})))
        with blocked(site, "ready", "pawl_api") as it_waits:
            caller.start()
            it_waits()
            first.signal(signal.SIGSTOP)
        answers = []
        wait_for(lambda: answers.append(site.post("single", {"rows": 1, "ms": 1}))
                 or answers[-1].status == 202, "another one gets through", DEAD_AFTER + 2)
        first.signal(signal.SIGCONT)
        caller.join(20)
        assert asked[0].status in (409, 503), asked
        assert site.count("request") == 1
        site.close()
    finally:
        site.discard()


def test_A14_a_short_freeze_closes_nothing(two):
    (frozen, server), (other, _) = start_two(two)
    trusted(two)
    server.signal(signal.SIGSTOP)
    start = time.monotonic()
    wait_for(lambda: time.monotonic() - start > DEAD_AFTER / 2, "half of dead_after")
    server.signal(signal.SIGCONT)
    two.wait_done(frozen, 120)
    two.wait_done(other, 120)


def test_A14_a_long_frozen_worker_is_fenced_when_it_wakes(two):
    (frozen, server), (other, _) = start_two(two)
    trusted(two)
    server.signal(signal.SIGSTOP)  # wherever it is: its locks do not outlast the rescue
    wait_for(lambda: lost(two, frozen), "the request is closed", DEAD_AFTER + 10)
    before = two.get(frozen)
    rows = two.sql("SELECT state, last_updated FROM pawl.execution ORDER BY id")
    server.signal(signal.SIGCONT)
    wait_for(lambda: "not recorded by us" in server.log(), "it gives its run up")
    wait_for(lambda: two.count("worker") == 2, "it is back")
    assert server.log().count("declared dead") == 1
    after = two.get(frozen)
    assert {k: after[k] for k in ("outcome", "detail", "worker", "execution")
            if k in after} == {k: before[k] for k in ("outcome", "detail", "worker",
                                                      "execution") if k in before}
    now = two.sql("SELECT state, last_updated FROM pawl.execution ORDER BY id")
    assert now[0] == rows[0]  # its chunks after the closing left no trace
    assert two.files(frozen) == []
    assert not set(two.loose_parts()) & set(two.parts_of(frozen))
    again = two.submit_id("quick")
    assert two.get(other)["status"] == "RUNNING"
    two.wait_done(again)  # by the one that woke: the other's slot is taken
    assert server_of(two, again) is server
    two.wait_done(other, 120)


# --- seats ---

def test_B23_two_folders_with_one_seat_name_do_not_kill_each_other(cluster):
    site = Site("pg", cluster, JOBS,
                SETTINGS.replace("worker: {", "worker: {seat: desk, "))
    try:
        site.pawl("migrate")
        site.start("api")
        first = site.start_worker("one")
        running = site.submit_id("slow", rows=400, ms=20)
        site.wait_progress(running, 2)
        second = site.start_worker("two", ready=False)
        assert second.wait_end() == 78
        assert "seat taken" in second.log()
        assert site.get(running)["status"] == "RUNNING"
        first.kill()  # now the seat is free, though the folder is another
        site.start_worker("two")
        assert site.wait_final(running)["outcome"] == "WORKER_LOST"
        site.close()
    finally:
        site.discard()


# --- lanes ---

def test_B24_a_lane_that_nobody_serves_any_more_is_taken_over(cluster):
    site = Site("pg", cluster, jobs.variant(jobs.QUICK, "quick", lane="gone"),
                SETTINGS.replace("lanes: {", "lanes: {gone: 0, "))
    try:
        site.up()
        request_id = site.submit_id("quick")
        hour = 3600 * 10**6
        site.store_do(f"UPDATE pawl.ready SET ready_since = ready_since - {2 * hour} "
                      f"+ {60 * 10**6}")
        wait_for(lambda: site.one("SELECT max(beat_at) - max(started_at) AS n "
                                  "FROM pawl.worker") > 3 * 10**6, "some repairs pass")
        assert site.get(request_id)["status"] == "QUEUED"
        site.store_do(f"UPDATE pawl.ready SET ready_since = ready_since - {120 * 10**6}")
        site.wait_done(request_id, 10)
        assert site.get(request_id)["lane"] == "gone"
        site.close()
    finally:
        site.discard()


# --- the store away ---

def running_on_own(site, **params):
    request_id = site.submit_id("local", **params)
    site.wait_running(request_id)
    wait_for(lambda: site.count("step_execution") == 1, "its step has begun")
    return request_id


def away_for(seconds):
    """As long as the clause says, with --full."""
    begin = time.monotonic()
    wait_for(lambda: not FULL or time.monotonic() - begin > seconds, "time", seconds + 60)


def outcome_in_store(site, request_id):
    rows = site.sql(f"SELECT outcome, detail FROM pawl.outcome WHERE id = {request_id}")
    return rows[0] if rows else None


def test_A34_a_run_that_ends_while_the_store_is_away_is_recorded_when_it_is_back(own):
    request_id = running_on_own(own, rows=4_000_000)
    database_away(own.cluster)
    part = wait_for(lambda: [p for p in own.parts() if p.stat().st_size > 3],
                    "the file is written", 60)
    assert part
    away_for(40)
    own.cluster.pg_ctl("start")
    begin = time.monotonic()
    outcome = wait_for(lambda: outcome_in_store(own, request_id), "it is recorded", 20)
    took = time.monotonic() - begin
    print(f"recorded {took:.2f} s after the store was back")
    assert outcome["outcome"] == "COMPLETED" and took < 5
    assert own.count("execution") == 1
    wait_for(lambda: own.call("GET", "/readyz").status == 200, "the api is back")
    assert read_csv(own.result(request_id))[1][0] == "4000000"


@pytest.mark.skipif(not FULL, reason="--full; test_run_faults.c is the quick one")
def test_A34_a_step_in_partitions_waits_for_the_store(own):
    with contextlib.closing(sqlite3.connect(own.folder / "local.db")) as local:
        local.execute("CREATE TABLE source (id integer PRIMARY KEY)")
        local.executemany("INSERT INTO source VALUES (?)", [(3 * n,) for n in range(600)])
        local.commit()
    own.store_do("CREATE TABLE copied (id bigint)")
    own.store_do("GRANT ALL ON copied TO pawl_worker")
    request_id = own.submit_id("split")
    wait_for(lambda: own.sql("SELECT count(*) AS n FROM copied")[0]["n"] > 50, "begun")
    database_away(own.cluster)
    wait_for(lambda: "heartbeat missed" in own.worker.log(), "it is away")
    own.cluster.pg_ctl("start")
    own.wait_done(request_id)
    assert own.sql("SELECT count(*) AS n, count(DISTINCT id) AS d FROM copied") == [
        {"n": 600, "d": 600}]
    assert own.count("execution") == 1
    wait_for(lambda: own.count("claim") + own.count("ready") == 0, "all hands ended")


def test_A34_A35_an_outcome_kept_in_the_spool_outlives_the_worker(own):
    request_id = running_on_own(own, rows=4_000_000, fail_at=3_999_999)
    database_away(own.cluster)
    spool = own.folder / "state-worker/spool"
    wait_for(lambda: list(spool.glob("*.json")), "the outcome is in the spool", 60)
    wait_for(lambda: "its outcome waits for the store" in own.worker.log(),
             "it is given up for now", 60)
    own.worker.kill()
    own.cluster.pg_ctl("start")
    begin = time.monotonic()
    own.restart_worker()
    outcome = wait_for(lambda: outcome_in_store(own, request_id), "it is recorded", 20)
    print(f"recorded {time.monotonic() - begin:.2f} s after the start")
    assert outcome["outcome"] == "ERROR" and "overflow" in outcome["detail"]
    assert own.count("execution", "state = 'FAILED'") == 1
    assert list(spool.glob("*")) == []


@pytest.mark.skipif(not FULL, reason="--full; the test above and test_worker_spool.c are "
                                     "the quick ones")
def test_A35_an_outcome_kept_in_the_spool_is_recorded_when_the_store_is_back(own):
    request_id = running_on_own(own, rows=4_000_000, fail_at=3_999_999)
    database_away(own.cluster)
    wait_for(lambda: "its outcome waits for the store" in own.worker.log(),
             "it is given up for now", 60)
    away_for(180)
    own.cluster.pg_ctl("start")
    begin = time.monotonic()
    outcome = wait_for(lambda: outcome_in_store(own, request_id), "it is recorded", 20)
    took = time.monotonic() - begin
    print(f"recorded {took:.2f} s after the store was back")
    assert outcome["outcome"] == "ERROR" and took < 5


# --- ending ---

def test_A19_a_second_signal_cuts_off_what_hangs(cluster):
    """Its statement sends no row for minutes, so no chunk border comes."""
    site = Site("pg", cluster, jobs.SLOW, SETTINGS)
    try:
        site.up()
        request_id = site.submit_id("slow", rows=1, ms=120_000)
        site.wait_running(request_id)
        wait_for(lambda: site.count("step_execution") == 1, "its step has begun")
        worker = site.worker
        worker.signal(signal.SIGTERM)
        wait_for(lambda: "draining" in worker.log(), "the drain begins")
        assert site.get(request_id)["status"] == "RUNNING"
        begin = time.monotonic()
        worker.signal(signal.SIGINT)
        assert worker.wait_end(30) == 0
        assert time.monotonic() - begin < 10
        request = site.wait_final(request_id)
        assert (request["status"], request["outcome"]) == ("DONE", "STOPPED")
        site.close()
    finally:
        site.discard()


def test_A13_workers_are_listed_with_what_they_serve(two):
    listed = two.pawl("workers").stdout
    assert listed.count(" live ") == 2 and "normal 0/1" in listed
    running = two.submit_id("slow", rows=1000, ms=20)
    server = None
    try:
        two.wait_progress(running, 1)
        server = server_of(two, running)
        wait_for(lambda: "normal 1/1" in two.pawl("workers").stdout, "the next beat", 10)
    finally:
        two.cancel(running)
    two.wait_final(running)
    assert server

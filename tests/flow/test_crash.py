"""kill -9, SIGTERM, two of everything: nothing is lost, nothing runs twice."""

import fcntl
import itertools
import os
import pathlib
import shutil
import signal
import subprocess
import threading
import time

import pytest
import flow_jobs as jobs
from pawl_env import FULL, Server, Site, read_csv, wait_for

SINGLE = jobs.variant(jobs.SLOW, "single", duplicates=None)
JOBS = jobs.QUICK + jobs.SLOW + SINGLE + jobs.BROKEN
PARKED = "lanes: {normal: 0, large: 0}\n"
OPEN = "lanes: {normal: 4, large: 2}\n"


@pytest.fixture(params=["sqlite", "pg"])
def fresh(request, cluster):
    """A site that the test starts, kills and starts again."""
    site = Site(request.param, cluster, JOBS, OPEN)
    try:
        yield site
        site.close()
    finally:
        site.discard()


@pytest.fixture
def on_pg(cluster):
    site = Site("pg", cluster, JOBS, OPEN)
    try:
        yield site
        site.close()
    finally:
        site.discard()


def kill_all(site):
    for server in site.servers:
        if not server.ended:
            server.kill()


def part_of(site, request_id):
    parts = site.parts_of(request_id)
    return parts[0] if parts else None


def lost_cleanly(site, request_id):
    request = site.wait_final(request_id)
    assert (request["status"], request["outcome"]) == ("FAILED", "WORKER_LOST"), request
    assert "ask for it again" in request["detail"].lower()
    assert not set(site.loose_parts()) & set(site.parts_of(request_id))
    assert site.files(request_id) == []
    (execution,) = site.sql("SELECT state, ended_at, exit_message FROM pawl.execution "
                            f"WHERE request_id = {request_id}")
    assert execution["state"] == "FAILED" and execution["ended_at"]


# --- roles ---

def test_A4_one_binary_plays_each_role_that_the_environment_names(on_pg):
    on_pg.pawl("migrate")
    api = Server(on_pg, "", "api-by-env", on_pg.environment(PAWL_ROLE="api"), "pawl.yaml",
                 words=[])
    on_pg.servers.append(api)
    api.role = "api"
    worker = Server(on_pg, "", "worker-by-env", on_pg.environment(PAWL_ROLE="worker"),
                    "pawl.yaml", words=[])
    on_pg.servers.append(worker)
    worker.role = "worker"
    on_pg.api = api.await_ready()
    worker.await_ready()
    assert worker.port == 0  # a worker answers no HTTP
    on_pg.wait_done(on_pg.submit_id("quick"))
    done = on_pg.pawl("run", "quick", "-q", PAWL_ROLE="cli",
                      PAWL_STATE=str(on_pg.folder / "state-cli"))
    assert done.returncode == 0
    on_pg.pawl(code=2, PAWL_ROLE="boss")


def test_A6_an_api_alone_takes_requests_and_a_later_worker_runs_them(on_pg):
    on_pg.pawl("migrate")
    on_pg.start("api")
    begin = time.monotonic()
    request_id = on_pg.submit_id("quick")
    assert time.monotonic() - begin < 1
    assert on_pg.get(request_id)["status"] == "QUEUED"
    assert on_pg.count("execution") == 0
    on_pg.start_worker("late")
    on_pg.wait_done(request_id)


# --- while QUEUED ---

def test_B4_B10_a_poller_never_gets_404_over_a_kill_and_a_restart(fresh):
    fresh.configure(JOBS, PARKED)
    fresh.up()
    request_id = fresh.submit_id("quick", rows=4, tag="가")
    before = fresh.get(request_id)
    seen, over = [], threading.Event()

    def poll():
        while not over.wait(0.05):
            try:
                seen.append(fresh.call("GET", f"/api/v1/requests/{request_id}").status)
            except OSError:
                seen.append("refused")
    poller = threading.Thread(target=poll)
    poller.start()
    try:
        wait_for(lambda: 200 in seen, "the first poll")
        kill_all(fresh)
        wait_for(lambda: "refused" in seen, "a poll meets nobody")
        fresh.configure(JOBS, PARKED)
        fresh.up()
        assert fresh.get(request_id) == before
        kill_all(fresh)
        fresh.configure(JOBS, OPEN)
        fresh.up()
        fresh.wait_done(request_id)
    finally:
        over.set()
        poller.join()
    assert set(seen) == {200, "refused"}
    assert read_csv(fresh.result(request_id))[-1] == ["4"]


def test_B5_what_was_answered_survives_a_kill_right_after(fresh):
    fresh.configure(JOBS, PARKED)
    fresh.up()
    ids = []
    for _ in range(10):
        ids.append(fresh.submit_id("quick"))
    kill_all(fresh)
    assert fresh.count("request") == len(ids)
    fresh.configure(JOBS, OPEN)
    fresh.up()
    for request_id in ids:
        fresh.wait_done(request_id)
    assert fresh.count("execution") == len(ids)


# --- while RUNNING ---

def test_B20_after_a_kill_the_boot_fails_it_removes_the_part_and_it_can_be_asked_again(
        fresh):
    fresh.up()
    running = fresh.submit_id("single", rows=3000, ms=5)
    fresh.wait_progress(running, 100)
    wait_for(lambda: part_of(fresh, running) and part_of(fresh, running).stat().st_size
             > 500_000, "the part grows")
    fresh.worker.kill()
    assert part_of(fresh, running) is not None
    assert fresh.count("claim") == 1
    boot = time.monotonic()
    fresh.restart_worker()
    lost_cleanly(fresh, running)
    print(f"closed {time.monotonic() - boot:.2f} s after the start")
    assert time.monotonic() - boot < 5
    again = fresh.post("single", {"rows": 3, "ms": 0})
    assert again.status == 202, again
    fresh.wait_done(again.json["requestId"])
    # It asked for something else, so nobody can go on from the part of the first.
    assert fresh.parts() == []


def test_B20_a_cancel_asked_of_a_killed_run_ends_as_cancelled(fresh):
    fresh.up()
    request_id = fresh.submit_id("slow", rows=3000, ms=50)
    fresh.wait_progress(request_id, 2)
    fresh.store_do("INSERT INTO pawl.flag (request_id, stop, cancel, asked_by, asked_at) "
                   f"VALUES ({request_id}, 0, 1, 'somebody', 1)")
    fresh.worker.kill()
    fresh.restart_worker()
    assert fresh.wait_final(request_id)["outcome"] in ("CANCELLED",)


def test_B22_B23_another_workers_run_is_not_touched_though_the_host_is_the_same(on_pg):
    on_pg.pawl("migrate")
    on_pg.start("api")
    on_pg.start_worker("one")
    first = on_pg.submit_id("slow", rows=3000, ms=50)
    on_pg.wait_progress(first, 1)
    on_pg.configure(JOBS, OPEN)
    second_worker = on_pg.start_worker("two")
    # Stop the first from claiming: the second request must be the second worker's.
    one = next(s for s in on_pg.servers if s.name == "one")
    one.signal(19)  # SIGSTOP
    second = on_pg.submit_id("slow", rows=60, ms=50)
    on_pg.wait_progress(second, 1)
    hosts = on_pg.sql("SELECT DISTINCT host FROM pawl.worker")
    assert len(hosts) == 1 and on_pg.count("worker") == 2
    workers = {on_pg.get(i)["worker"] for i in (first, second)}
    assert len(workers) == 2
    one.kill()
    on_pg.start_worker("one")
    lost_cleanly(on_pg, first)
    assert on_pg.get(second)["status"] == "RUNNING"
    assert on_pg.wait_done(second)["result"]["rows"] == 60
    assert second_worker.process.poll() is None


def test_A18_A20_A26_a_clean_stop_leaves_nothing_running_and_what_waits_is_kept(fresh):
    fresh.up()
    running = [fresh.submit_id("slow", rows=3000, ms=20) for _ in range(4)]
    for request_id in running:
        fresh.wait_progress(request_id, 1)
    waiting = [fresh.submit_id("quick") for _ in range(3)]
    begin = time.monotonic()
    fresh.worker.stop()
    print(f"stopped in {time.monotonic() - begin:.2f} s")
    assert fresh.count("claim") == 0 and fresh.count("worker") == 0
    for request_id in running:
        (row,) = fresh.sql("SELECT status, outcome, detail FROM pawl.request_view "
                           f"WHERE id = {request_id}")
        assert (row["status"], row["outcome"]) == ("DONE", "STOPPED")
        assert f"`pawl restart {request_id}` goes on" in row["detail"]
        (execution,) = fresh.sql("SELECT state, ended_at FROM pawl.execution WHERE "
                                 f"request_id = {request_id}")
        assert execution["state"] == "STOPPED" and execution["ended_at"]
    assert fresh.count("ready") == 3
    fresh.restart_worker()
    for request_id in waiting:
        fresh.wait_done(request_id)


# --- many workers ---

def test_A8_B3_B12_two_hundred_requests_three_workers_each_once(on_pg):
    on_pg.pawl("migrate")
    on_pg.start("api")
    for name in ("one", "two", "three"):
        on_pg.start_worker(name)
    items = [{"job": "quick", "params": {"rows": n}} for n in range(100)]
    ids = [r["requestId"] for r in
           on_pg.call("POST", "/api/v1/requests", {"requests": items}).json["requests"]]
    ids += [on_pg.submit_id("quick", rows=n) for n in range(100, 200)]
    wait_for(lambda: on_pg.count("outcome") == 200, "all are over", 120)
    for table, column in (("outcome", "id"), ("execution", "request_id")):
        rows = on_pg.sql(f"SELECT {column} AS id FROM pawl.{table}")
        assert sorted(row["id"] for row in rows) == sorted(ids), table
    outcomes = on_pg.sql("SELECT id, outcome, worker, result_rows FROM pawl.outcome")
    assert {row["outcome"] for row in outcomes} == {"COMPLETED"}
    assert sorted(row["result_rows"] for row in outcomes) == list(range(200))
    assert len({row["worker"] for row in outcomes}) == 3


def test_A8_a_locked_row_is_passed_by(on_pg):
    """Somebody holds the oldest row: the next is claimed without waiting."""
    on_pg.configure(JOBS, OPEN + "worker: {safety_scan: 1s}\n")
    on_pg.pawl("migrate")
    on_pg.start("api")
    oldest, following = on_pg.submit_id("quick"), on_pg.submit_id("quick")
    holder = subprocess.Popen(["psql", "-X", "-q", "-A", "-t", on_pg.store_url],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              encoding="utf-8")
    holder.stdin.write("BEGIN; SELECT first_id FROM pawl.ready WHERE first_id = "
                       f"{oldest} FOR UPDATE;\n")
    holder.stdin.flush()
    assert holder.stdout.readline().strip() == str(oldest)
    on_pg.start_worker("worker")
    on_pg.wait_done(following, 10)
    assert on_pg.get(oldest)["status"] == "QUEUED"
    holder.communicate("COMMIT;\n")
    on_pg.wait_done(oldest, 10)


def test_B21_two_nodes_started_together_run_each_waiting_request_once(on_pg):
    on_pg.pawl("migrate")
    on_pg.start("api")
    ids = [on_pg.submit_id("quick", rows=n) for n in range(30)]
    for name in ("one", "two"):
        on_pg.start_worker(name, ready=False)
    wait_for(lambda: on_pg.count("outcome") == len(ids), "all are over")
    for server in on_pg.servers[1:]:
        server.await_ready()
    rows = on_pg.sql("SELECT request_id AS id FROM pawl.execution")
    assert sorted(row["id"] for row in rows) == ids


def test_B10_what_one_node_took_another_shows(on_pg):
    on_pg.pawl("migrate")
    first = on_pg.start("api", "api-one")
    request_id = on_pg.submit_id("quick", rows=2)
    shown = on_pg.get(request_id)
    on_pg.start("api", "api-two")
    assert on_pg.api is not first and on_pg.get(request_id) == shown
    on_pg.start_worker("worker")
    on_pg.wait_done(request_id)
    assert first.call("GET", f"/api/v1/requests/{request_id}/result").body == \
        on_pg.result(request_id)


def test_A9_of_fifty_over_two_apis_one_is_taken(on_pg):
    on_pg.pawl("migrate")
    apis = [on_pg.start("api", "api-one"), on_pg.start("api", "api-two")]
    answers = []

    def post(api):
        answers.append(api.call("POST", "/api/v1/jobs/single/requests", {}))
    threads = [threading.Thread(target=post, args=(api,))
               for api in itertools.islice(itertools.cycle(apis), 50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(a.status for a in answers) == [202] + [409] * 49
    assert on_pg.count("request") == 1 and on_pg.count("active") == 1
    (taken,) = [a.json["requestId"] for a in answers if a.status == 202]
    assert on_pg.cancel(taken).status == 200
    assert on_pg.count("active") == 0


# --- the record ---

def test_A26_B1_whatever_is_killed_every_request_has_one_end_and_its_record(fresh):
    fresh.up()
    ids = []
    for n in range(20 if FULL else 3):
        ids += [fresh.submit_id("quick", rows=n), fresh.submit_id("broken"),
                fresh.submit_id("slow", rows=6, ms=30), fresh.submit_id("slow", rows=3000)]
        fresh.cancel(ids[-1])
        time.sleep(0.03 * (n % 5))  # another moment of their lives each time
        fresh.worker.kill()
        fresh.restart_worker()
    for request_id in ids:
        fresh.wait_final(request_id)
    rows = fresh.sql("SELECT r.id, r.requester, r.created_at, o.outcome, o.worker, "
                     "o.claimed_at, o.finished_at, o.result_sha256 FROM pawl.request r "
                     "JOIN pawl.outcome o ON o.id = r.id")
    assert sorted(row["id"] for row in rows) == sorted(ids)
    for row in rows:
        assert row["requester"] == "127.0.0.1"
        assert row["created_at"] <= row["finished_at"]
        assert (row["worker"] is None) == (row["claimed_at"] is None)
        assert (row["result_sha256"] is not None) == (row["outcome"] == "COMPLETED")
    for table in ("ready", "later", "claim", "flag", "progress", "active"):
        assert fresh.count(table) == 0, table
    runs = fresh.sql("SELECT request_id, count(*) AS n FROM pawl.execution "
                     "GROUP BY request_id")
    assert {row["n"] for row in runs} == {1}


# --- two servers ---

def test_B23_a_second_server_on_one_sqlite_file_is_told_who_holds_it(cluster):
    site = Site("sqlite", cluster, JOBS, OPEN)
    try:
        site.up()
        request_id = site.submit_id("slow", rows=20, ms=50)
        holder = site.worker
        second = site.pawl("serve", "-c", "pawl.yaml", code=78,
                           PAWL_STATE=str(site.folder / "state-two"))
        assert f"{holder.pid}" in second.stderr, second.stderr
        assert "pawl.db" in second.stderr
        for role in ("api", "worker"):
            refused = site.pawl(role, code=78)
            assert "pawl serve" in refused.stderr
        site.wait_done(request_id)
        site.close()
    finally:
        site.discard()


def test_B23_a_link_to_the_sqlite_file_does_not_hide_its_owner(cluster):
    site = Site("sqlite", cluster, JOBS, OPEN)
    try:
        site.up()
        (site.folder / "link.db").symlink_to(site.folder / "pawl.db")
        linked = f"sqlite:{site.folder}/link.db"
        second = site.pawl("serve", code=78, PAWL_STORE=linked,
                           PAWL_STATE=str(site.folder / "state-two"))
        assert str(site.worker.pid) in second.stderr, second.stderr
        os.link(site.folder / "pawl.db", site.folder / "hard.db")
        hard = site.pawl("serve", code=78, PAWL_STORE=f"sqlite:{site.folder}/hard.db",
                         PAWL_STATE=str(site.folder / "state-two"))
        assert "hard links" in hard.stderr, hard.stderr
        (site.folder / "hard.db").unlink()
        site.close()
    finally:
        site.discard()


def test_a_hangup_does_not_end_a_server(fresh):
    fresh.up()
    fresh.worker.signal(signal.SIGHUP)
    wait_for(lambda: "SIGHUP" in fresh.worker.log(), "the note of the hang-up")
    fresh.wait_done(fresh.submit_id("quick"))


def test_a_server_has_patience_with_a_verb_that_holds_the_store(cluster):
    site = Site("sqlite", cluster, JOBS, OPEN)
    try:
        site.pawl("requests")  # makes the store
        with open(site.folder / "pawl.db.lock", "r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            lock.truncate()
            lock.write("1@here since 2026-11-29T00:00:00Z, requests")
            lock.flush()
            server = site.start("serve", ready=False)
            wait_for(lambda: sleeps(server.pid), "a first try of the lock")
        server.await_ready()
        site.close()
    finally:
        site.discard()


def sleeps(pid):
    """Is its first thread in nanosleep or clock_nanosleep, that is between two tries?"""
    return pathlib.Path(f"/proc/{pid}/syscall").read_text().split()[0] in ("35", "230")


def test_B23_a_second_worker_at_one_seat_is_told_so(on_pg):
    on_pg.up()
    refused = on_pg.pawl("worker", code=78, PAWL_STATE=str(on_pg.folder / "state-worker"))
    assert str(on_pg.worker.pid) in refused.stderr, refused.stderr
    on_pg.wait_done(on_pg.submit_id("quick"))


def test_B20_results_of_another_store_are_not_touched(fresh):
    """The folder proves whose it is before anything in it is removed."""
    fresh.up()
    fresh.wait_done(fresh.submit_id("quick"))
    fresh.down()
    other = pathlib.Path(fresh.folder / "results-other")
    shutil.copytree(fresh.folder / "results", other)
    (other / "pawl-store").write_text("0" * 32 + "\n")
    role = "serve" if fresh.kind == "sqlite" else "worker"
    refused = fresh.pawl(role, code=78, PAWL_RESULTS=str(other))
    assert "results-other" in refused.stderr

"""Roles apart: what an api, a worker and the command line each do, know and leave alone."""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import threading
import time

import flow_jobs as jobs
import pytest
from pawl_env import FULL, PAWL, Site, wait_for

SECRET = "s3cret-value-of-the-key"
KEYED = jobs.variant(jobs.QUICK, "keyed", needs_keys="[SOME_KEY]")
SINGLE = jobs.variant(jobs.SLOW, "single", duplicates=None)
KEPT = jobs.variant(jobs.SLOW, "kept", duplicates=None, retry=None)
TICK = jobs.variant(jobs.QUICK, "tick")
LOAD = """\
  load:
    retry: none
    steps:
      - name: load
        chunk: 1000
        read: {csv: million.csv, columns: {i: integer}}
        write: {database: shop, table: copy}
"""
DEAD_AFTER = 60 if FULL else 3  # --full: nothing but what is the default
BEATS = "" if FULL else f"worker: {{heartbeat: 1s, dead_after: {DEAD_AFTER}s}}\n"


@pytest.fixture
def make(cluster):
    sites = []

    def make(kind, text, settings=""):
        sites.append(Site(kind, cluster, text, settings))
        return sites[-1]
    try:
        yield make
        for site in sites:
            site.close()
    finally:
        for site in sites:
            site.discard()


def elapses(seconds):
    begin = time.monotonic()
    wait_for(lambda: time.monotonic() - begin > seconds, "time", seconds + 30)


# --- keys ---

def memory_of(pid):
    """What a process can write to, its environment included."""
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb") as memory:
        for line in maps:
            first, last, mode = re.match(r"(\w+)-(\w+) (\S+)", line).groups()
            if int(last, 16) - int(first, 16) > 1 << 32:
                continue  # a sanitizer's own map of the memory
            if mode.startswith("rw") and "[v" not in line:
                memory.seek(int(first, 16))
                yield memory.read(int(last, 16) - int(first, 16))


def configured(site):
    listed = site.call("GET", "/api/v1/jobs").json["items"]
    (job,) = [job for job in listed if job["job"] == "keyed"]
    (key,) = job["keys"]
    assert key["name"] == "SOME_KEY"
    assert site.call("GET", "/api/v1/jobs/keyed").json["keys"] == job["keys"]
    return key["configured"]


def test_A3_A13_A15_an_api_does_without_the_key_that_a_worker_holds(make):
    site = make("pg", KEYED + jobs.QUICK, "keys: [SOME_KEY]\n")
    site.pawl("migrate")
    api = site.start("api")
    assert configured(site) is False
    request_id = site.submit_id("keyed")
    why = site.call("GET", f"/api/v1/requests/{request_id}/why").json["reasons"]
    assert why[0]["code"] == "NO_WORKER"
    holder = site.start_worker("holder", SOME_KEY=SECRET)
    site.wait_done(request_id)
    assert configured(site) is True

    # Its name is told, its value to nobody.
    answers = b"".join(api.call("GET", path).body for path in (
        "/api/v1/jobs", "/api/v1/workers", f"/api/v1/requests/{request_id}", "/metrics",
        f"/api/v1/requests/{request_id}/log", f"/api/v1/requests/{request_id}/why"))
    assert b"SOME_KEY" in answers and SECRET.encode() not in answers
    assert any(SECRET.encode() in piece for piece in memory_of(holder.pid))
    assert not any(SECRET.encode() in piece for piece in memory_of(api.pid))
    dump = subprocess.run(["pg_dump", "--data-only", site.store_url], check=True,
                          stdout=subprocess.PIPE, encoding="utf-8").stdout
    assert "SOME_KEY" in dump and SECRET not in dump
    assert SECRET not in api.log() + holder.log()

    # A row whose worker is gone says nothing.
    holder.kill()
    site.store_do("UPDATE pawl.worker SET beat_at = beat_at - 60 * 1000000")
    assert configured(site) is False
    site.start_worker("other")
    assert configured(site) is False
    waits = site.submit_id("keyed")
    why = site.call("GET", f"/api/v1/requests/{waits}/why").json["reasons"]
    assert why[0]["code"] == "KEY_MISSING" and "SOME_KEY" in why[0]["text"]
    site.wait_done(site.submit_id("quick"))  # it takes what came later
    assert site.get(waits)["status"] == "QUEUED"


# --- who claims, who fires, who answers ---

def listening_sockets(pid):
    ours = set()
    for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            if m := re.match(r"socket:\[(\d+)\]", str(fd.readlink())):
                ours.add(m[1])
    tables = "".join(pathlib.Path(f"/proc/{pid}/net/{t}").read_text() for t in ("tcp", "tcp6"))
    rows = [line.split() for line in tables.splitlines()]
    return [row for row in rows if len(row) > 9 and row[3] == "0A" and row[9] in ours]


def test_A2_A5_apis_neither_claim_nor_fire_and_workers_fire_each_slot_once(make):
    site = make("pg", jobs.QUICK + TICK,
                "schedules:\n  each-second: {job: tick, cron: '* * * * * *'}\n")
    site.pawl("migrate")
    apis = [site.start("api", f"api-{n}") for n in range(3)]
    request_id = site.submit_id("quick")
    elapses(10 if FULL else 1.5)
    assert site.get(request_id)["status"] == "QUEUED"
    assert [site.count(t) for t in ("schedule_slot", "claim", "worker", "request")] == [0, 0, 0, 1]
    workers = [site.start_worker(f"worker-{n}") for n in range(2)]
    site.wait_done(request_id, 2 + 10)
    assert [listening_sockets(worker.pid) for worker in workers] == [[], []]
    assert all(listening_sockets(api.pid) for api in apis)
    wait_for(lambda: site.count("schedule_slot", "state = 'fired'") >= (10 if FULL else 3),
             "slots are fired")
    assert site.call("POST", "/api/v1/schedules/each-second/pause").status == 200
    slots = site.sql("SELECT slot_time, last_time, state, request_id FROM pawl.schedule_slot "
                     "WHERE state <> 'skipped' ORDER BY slot_time")
    asked = site.sql("SELECT id FROM pawl.request WHERE requester = 'scheduler'")
    assert {slot["state"] for slot in slots} == {"fired"}
    assert sorted(slot["request_id"] for slot in slots) == sorted(row["id"] for row in asked)
    assert all(a["last_time"] < b["slot_time"] for a, b in zip(slots, slots[1:]))
    for worker in workers:
        worker.signal(signal.SIGINT)  # drains as SIGTERM does
        assert worker.wait_end() == 0 and "draining" in worker.log()


# --- one execution, whoever starts it ---

@pytest.mark.parametrize("kind", ["sqlite", "pg"])
def test_A10_the_command_line_and_a_worker_never_both_start_a_job(make, kind):
    site = make(kind, SINGLE)
    site.up()
    winners = []
    for n in range(1, (20 if FULL else 2) + 1):
        answers = []
        post = threading.Thread(target=lambda: answers.append(site.post("single")))
        run = subprocess.Popen(
            [PAWL, "run", "single", "-q"], cwd=site.folder,
            env=site.environment(PAWL_STATE=str(site.folder / "state-cli")),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            encoding="utf-8")
        if n % 2:  # else it comes too late each time: a process takes its time to start
            wait_for(lambda: site.count("active") or run.poll() is not None, "it has begun")
        post.start()
        post.join(30)
        try:
            if answers[0].status == 202:
                out, _ = run.communicate(timeout=30)
                assert run.returncode == 3, out
                assert f"request {answers[0].json['requestId']}" in out, out
                winners.append("worker")
            else:
                assert answers[0].json["code"] in ("JOB_ALREADY_RUNNING", "JOB_BEING_SUBMITTED")
                winners.append("command line")
            (row,) = wait_for(lambda: site.sql(
                "SELECT request_id AS id FROM pawl.execution WHERE ended_at IS NULL"), "it runs")
            assert site.cancel(row["id"]).status == 202
            run.communicate(timeout=30)
        finally:
            run.kill()
            run.wait()
        assert site.wait_final(row["id"])["outcome"] == "CANCELLED"
        assert site.count("execution") == site.count("request") == n
    assert set(winners) == {"worker", "command line"}


# --- a worker is killed ---

def test_A21_A14_what_a_killed_worker_ran_runs_again_in_time_or_may_be_asked_for_at_once(make):
    site = make("pg", SINGLE + KEPT, BEATS)
    site.pawl("migrate")
    site.start("api")
    one = site.start_worker("one")
    ids = {job: site.submit_id(job, rows=2000, ms=50) for job in ("single", "kept")}
    for request_id in ids.values():
        site.wait_progress(request_id, 1)
    site.start_worker("two")
    one.kill()
    begin = time.monotonic()
    assert {row["state"] for row in site.sql("SELECT state FROM pawl.execution")} == {"STARTED"}
    assert site.post("single").status == 409

    def again():
        return site.sql("SELECT id FROM pawl.request JOIN pawl.claim ON id BETWEEN first_id "
                        f"AND last_id WHERE retry_of = {ids['kept']}")
    (second,) = wait_for(again, "it runs again", DEAD_AFTER + 10)
    took = time.monotonic() - begin
    print(f"runs again {took:.2f} s after the kill, dead_after is {DEAD_AFTER} s")
    assert DEAD_AFTER * 5 / 6 - 1 < took < DEAD_AFTER + 3
    for request_id in ids.values():
        request = site.wait_final(request_id)
        assert (request["status"], request["outcome"]) == ("FAILED", "WORKER_LOST")
        assert "ask for it again" in request["detail"].lower()
    asked = site.post("single", {"rows": 1, "ms": 1})
    assert asked.status == 202, asked
    site.wait_done(asked.json["requestId"])
    assert site.cancel(second["id"]).status == 202
    site.wait_final(second["id"])
    assert json.loads(site.pawl("fsck", "--json").stdout)["findings"] == []


@pytest.mark.skipif(not FULL, reason="a long round: PAWL_FULL=1")
def test_I13_a_chunk_and_a_drain_longer_than_dead_after_are_nobodys_death(make):
    site = make("pg", SINGLE, "worker: {heartbeat: 1s, dead_after: 3s, reap: 1s}\n")
    site.pawl("migrate")
    site.start("api")
    site.start_worker("judge")
    one = site.start_worker("one")
    judge = site.servers[1]
    request_id = site.submit_id("single", rows=3, ms=4500)
    site.wait_running(request_id)
    wait_for(lambda: site.count("step_execution") == 1, "its step has begun")
    worker = site.get(request_id)["worker"]
    carrier, other = (one, judge) if worker.startswith(f"{one.pid}@") else (judge, one)
    carrier.signal(signal.SIGTERM)
    wait_for(lambda: "draining" in carrier.log(), "the drain begins")

    def silence():
        rows = site.sql(f"SELECT pawl.pawl_now() - beat_at AS us FROM pawl.worker WHERE id = '{worker}'")
        return rows[0]["us"] / 1e6 if rows else None
    silences = []
    while carrier.process.poll() is None:
        if (now := silence()) is not None:
            silences.append(now)
        time.sleep(0.1)  # as often as it is looked at
    assert carrier.wait_end() == 0
    assert len(silences) > 20 and max(silences) < 3, silences
    assert site.wait_final(request_id)["outcome"] == "STOPPED"
    assert "is dead" not in other.log()


# --- heavy work beside an api ---

def read_for(api, seconds, request_id):
    """50 clients who read; the milliseconds that each answer took."""
    paths = ["/api/v1/jobs", "/api/v1/requests?limit=30", f"/api/v1/requests/{request_id}"]
    end = time.monotonic() + seconds
    took, bad = [], []

    def client(n):
        connection = api.connect()
        while (begin := time.monotonic()) < end:
            answer = api.call("GET", paths[n % 3], connection=connection)
            took.append((time.monotonic() - begin) * 1000)
            if answer.status != 200:
                bad.append(answer)
            time.sleep(0.25)  # clients think; these share two processors with pawl
    threads = [threading.Thread(target=client, args=(n,)) for n in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not bad, bad[0]
    return sorted(took)


@pytest.mark.skipif(not FULL, reason="a long round: PAWL_FULL=1")
def test_A1_heavy_work_of_a_worker_costs_an_api_no_memory_and_no_answer(make):
    """
    Clients, api, worker and database share the processors here, so times of a busy
    machine say little of the api: a bound is kept, and both are printed.
    """
    site = make("pg", jobs.QUICK + LOAD)
    site.pawl("migrate")
    api = site.start("api")
    worker = site.start_worker("worker")
    os.setpriority(os.PRIO_PROCESS, worker.pid, 19)  # as if it had a machine of its own
    request_id = site.submit_id("quick", rows=1000)
    site.wait_done(request_id)
    source = site.submit_id("quick", rows=1_000_000)
    site.wait_done(source, 120)
    (site.folder / "million.csv").write_bytes(site.result(source))
    site.store_do("CREATE TABLE copy (i bigint); GRANT ALL ON copy TO pawl_worker")
    read_for(api, 5, request_id)
    idle = read_for(api, 15, request_id)
    before = api.memory("VmRSS")
    load = site.submit_id("load")
    exports = [site.submit_id("quick", rows=1_000_000) for _ in range(3)]
    site.wait_running(load)
    busy = read_for(api, 15, request_id)
    after = api.memory("VmRSS")
    for each in [load, *exports]:
        site.wait_done(each, 300)
    assert site.one("SELECT count(*) AS n FROM copy") == 1_000_000
    p95 = [answers[len(answers) * 95 // 100] for answers in (idle, busy)]
    print(f"p95 idle {p95[0]:.1f} ms, busy {p95[1]:.1f} ms; rss {before} -> {after} KiB; "
          f"{len(idle)} and {len(busy)} answers")
    assert after < before * 1.1
    assert p95[1] < 500

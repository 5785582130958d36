"""What goes wrong outside: each ends in a clear message, and disturbs nothing else."""

import contextlib
import os
import pathlib
import socket
import sqlite3
import struct
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import flow_jobs as jobs
from pawl_env import PAWL, Cluster, Site, free_port, read_csv, wait_for

JOBS = jobs.QUICK + jobs.SLOW + jobs.BROKEN


@pytest.fixture
def lone(cluster):
    """An SQLite site of one test's own."""
    site = Site("sqlite", cluster, JOBS)
    try:
        yield site
        site.close()
    finally:
        site.discard()


# --- configuration ---

@pytest.mark.parametrize("text, place, says", [
    ("store: sqlite:./pawl.db\njobs:\n  a:\n   title: x\n  steps: [\n", "6:1", ""),
    ("stoer: sqlite:./pawl.db\n", "1:1", "did you mean"),
    ("store: sqlite:./pawl.db\nlanes: {normal: lots}\n", "2:17", "lots"),
    ("store: mysql://x/y\n", "1:8", "sqlite:"),
    ("store: sqlite:./pawl.db\njobs: {a: {steps: [{name: s, read: {sql: SELECT 1, "
     "database: shop}, write: {file: x.csv}}]}}\n", "2:", "shop"),
])
def test_A4_a_wrong_configuration_is_refused_with_its_place(lone, text, place, says):
    (lone.folder / "bad.yaml").write_text(text)
    for verb in ("serve", "check"):
        done = lone.pawl(verb, "-c", "bad.yaml", code=78)
        assert f"bad.yaml:{place}" in done.stderr + done.stdout, done
        assert says in done.stderr + done.stdout


def test_A4_all_that_is_wrong_is_told_at_once(lone):
    (lone.folder / "bad.yaml").write_text(
        "stoer: sqlite:./pawl.db\nlanes: {normal: lots}\njobs:\n  A b: {title: x}\n")
    done = lone.pawl("check", "-c", "bad.yaml", code=78)
    text = done.stderr + done.stdout
    for place in ("bad.yaml:1:1", "bad.yaml:2:", "bad.yaml:4:"):
        assert place in text, text


def test_A4_a_configuration_that_is_not_there_is_named(lone):
    done = lone.pawl("serve", "-c", "nowhere.yaml", code=78)
    assert "nowhere.yaml" in done.stderr


def test_A4_an_address_that_others_reach_is_refused(lone):
    done = lone.pawl("serve", code=78, PAWL_LISTEN="0.0.0.0:0")
    assert "0.0.0.0" in done.stderr and "use 127.0.0.1" in done.stderr


def test_A4_a_port_that_is_taken_is_named(lone):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        server = lone.start("serve", ready=False, PAWL_LISTEN=f"127.0.0.1:{port}")
        assert server.wait_end() != 0
        assert str(port) in server.log()


# --- databases ---

def test_B7_a_database_that_is_not_there_fails_the_job_and_nothing_else(lone):
    lone.databases["gone"] = f"sqlite:{lone.folder}/nowhere/x.db"
    lone.databases["far"] = f"postgresql://postgres@127.0.0.1:{free_port()}/postgres"
    lone.configure(JOBS + jobs.QUICK.replace("quick", "no-file").replace("shop", "gone")
                   + jobs.SLOW.replace("  slow:", "  no-server:").replace(
                       "database: pg", "database: far").replace("    estimate:", "    #"))
    lone.up()
    for job, name in (("no-file", "gone"), ("no-server", "far")):
        request = lone.wait_final(lone.submit_id(job))
        assert request["outcome"] == "ERROR", request
        assert request["detail"].count(f"database {name}") == 1, request["detail"]
        assert "could not" in request["detail"] or "cannot" in request["detail"] or \
            "unable" in request["detail"] or "refused" in request["detail"]
    lone.wait_done(lone.submit_id("quick"))


def test_a_store_that_takes_a_connection_and_says_nothing_is_given_up_in_time(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql://x@127.0.0.1:{silent.getsockname()[1]}/x"
        (tmp_path / "pawl.yaml").write_text(
            f"store: {{url: '{url}', connect_timeout: 200ms}}\njobs: {{}}\n")
        begin = time.monotonic()
        done = subprocess.run([PAWL, "requests"], cwd=tmp_path, stdin=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, encoding="utf-8", timeout=30)
        assert done.returncode == 69 and "timeout expired" in done.stderr, done.stderr
        assert time.monotonic() - begin < 9  # libpq waits 2 s at least; the default is 10


def test_B15_a_failing_estimate_names_the_job_and_what_to_mend(lone):
    lone.configure(jobs.SIZED.replace("cast(:rows AS bigint)", "no_such(:rows)") + jobs.QUICK)
    lone.up()
    answer = lone.post("sized")
    assert (answer.status, answer.json["code"]) == (500, "ESTIMATE_FAILED")
    assert "estimate of job sized" in answer.json["detail"]
    assert "no_such" not in answer.json["detail"]
    assert "no_such" in lone.api.log() and answer.json["traceId"] in lone.api.log()
    assert lone.call("GET", "/api/v1/requests").json["items"] == []
    lone.wait_done(lone.submit_id("quick"))


def backends(cluster, query_like):
    return cluster.psql("postgres", "SELECT pid FROM pg_stat_activity WHERE query LIKE "
                        f"'%{query_like}%' AND pid <> pg_backend_pid()").split()


def test_B7_a_database_that_vanishes_in_mid_run_fails_it_and_the_part_goes(site, cluster):
    request_id = site.submit_id("slow", rows=2000, ms=21)
    site.wait_progress(request_id, 5)
    pids = [pid for pid in backends(cluster, "pg_sleep")]
    assert len(pids) == 1, pids
    cluster.psql("postgres", f"SELECT pg_terminate_backend({pids[0]})")
    request = site.wait_final(request_id)
    assert (request["status"], request["outcome"]) == ("FAILED", "ERROR")
    assert "step wait" in request["detail"], request["detail"]
    assert "terminat" in request["detail"] or "connection" in request["detail"]
    wait_for(lambda: not set(site.parts_of(request_id)) & set(site.loose_parts()),
             "only a part that can be gone on from stays")
    site.wait_done(site.submit_id("quick"))


def test_A26_a_store_that_vanishes_and_comes_back_gets_every_end_recorded(cluster):
    own = Cluster(own=True)
    site = None
    try:
        # The jobs' own rows come from the other cluster: only the store goes away.
        late = jobs.variant(jobs.SLOW, "late-end", estimate=None).replace("chunk: 1", "chunk: 1000")
        site = Site("pg", own, JOBS + late, databases={"pg": cluster.url, "shop": cluster.url})
        site.up()
        api, worker = site.servers
        finishes = site.submit_id("late-end", rows=60, ms=50)
        cut = site.submit_id("slow", rows=1000, ms=20)
        site.wait_progress(cut, 5)
        site.wait_running(finishes)
        own.pg_ctl("stop", "-m", "immediate")

        answer = site.post("quick")
        assert (answer.status, answer.json["code"]) == (503, "STORE_UNAVAILABLE"), answer
        assert answer.headers["Retry-After"]
        assert "postgres" not in answer.json["detail"].lower()
        # However many wait for the store: it is told soon, and the process lives.
        with ThreadPoolExecutor(8) as pool:
            crowd = [pool.submit(site.post, "quick") for _ in range(8)]
            begin = time.monotonic()
            assert site.call("GET", "/livez").status == 200
            assert time.monotonic() - begin < 1
            assert {one.result().status for one in crowd} == {503}
        assert time.monotonic() - begin < 15
        begin = time.monotonic()
        assert site.call("GET", "/readyz").status == 503
        assert time.monotonic() - begin < 5
        wait_for(lambda: "cannot claim" in worker.log()
                 or "store" in worker.log().lower(), "the worker tells of it")
        assert api.process.poll() is None and worker.process.poll() is None

        own.pg_ctl("start")
        wait_for(lambda: site.call("GET", "/readyz").status == 200, "it answers again", 60)
        for request_id in (finishes, cut):
            print(site.wait_final(request_id, 90)["detail"])
        wait_for(lambda: site.count("claim") == 0, "all are closed", 90)
        assert site.loose_parts() == []
        site.wait_done(site.submit_id("quick"), 60)
        site.close()
    finally:
        if site:
            site.discard()
        own.close()


# --- disk ---

@contextlib.contextmanager
def small_disk(folder, size):
    folder.mkdir(exist_ok=True)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder],
                          stderr=subprocess.PIPE, encoding="utf-8")
    if done.returncode != 0:
        pytest.skip(f"a small disk cannot be mounted here: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.parametrize("form", ["csv", "xlsx"])
def test_B28_a_full_disk_fails_the_export_and_its_part_makes_room_again(lone, form):
    lone.configure(JOBS + f"""\
  wide:
    params: {{rows: {{type: integer, default: 100}}}}
    duplicates: allow
    steps:
      - name: export
        read: {{database: shop, sql: "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :rows) SELECT i, hex(randomblob(200)) AS noise FROM n"}}
        write: {{file: "wide.{form}"}}
""")
    with small_disk(lone.folder / "results", "2m"):
        lone.up()
        fits = lone.submit_id("wide", rows=100)
        lone.wait_done(fits)
        before = os.statvfs(lone.folder / "results").f_bfree
        too_much = lone.submit_id("wide", rows=100000)
        request = lone.wait_final(too_much)
        assert (request["status"], request["outcome"]) == ("FAILED", "ERROR"), request
        assert "space" in request["detail"].lower() or "full" in request["detail"].lower()
        assert "step export" in request["detail"] or "results" in request["detail"]
        wait_for(lambda: os.statvfs(lone.folder / "results").f_bfree >= before - 2,
                 "the part's room is free again")
        assert lone.parts() == [] and lone.files(too_much) == []
        assert len(lone.result(fits)) > 0
        lone.wait_done(lone.submit_id("wide", rows=50))
        lone.down()


# --- clients ---

def held_for_clients(server):
    """Connections that the server has not closed, and results that it has open."""
    ours = f":{server.port:04X}"
    established = [line for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()
                   if line.split()[1].endswith(ours) and line.split()[3] in ("01", "08")]
    folder = f"/proc/{server.pid}/fd"
    files = []
    for name in os.listdir(folder):
        with contextlib.suppress(FileNotFoundError):
            files.append(os.readlink(f"{folder}/{name}"))
    return established + [name for name in files if "/results/files/" in name]


def raw(server, text):
    """A connection that has sent this; closing it resets instead of saying goodbye."""
    connection = socket.create_connection(("127.0.0.1", server.port))
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.sendall(text.encode())
    return connection


def get(path):
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"


def test_B8_clients_that_leave_in_mid_answer_cost_nothing(site):
    api = site.api
    big = site.submit_id("quick", rows=1_000_000)
    size = site.wait_done(big)["result"]["bytes"]
    assert size > 5_000_000
    waited = site.submit_id("parked")
    for _ in range(5):
        leaving = [raw(api, get(f"/api/v1/requests/{big}/result")),
                   raw(api, get(f"/api/v1/requests/{waited}?wait=50s")),
                   raw(api, get(f"/api/v1/requests/{waited}/events")),
                   raw(api, "POST /api/v1/jobs/quick/requests HTTP/1.1\r\nHost: localhost"
                            "\r\nContent-Length: 900\r\n\r\n{")]
        assert b" 200 OK" in leaving[0].recv(1000)
        assert b" 200 OK" in leaving[2].recv(1000)
        for connection in leaving:
            connection.close()
    wait_for(lambda: held_for_clients(api) == [], "their files and sockets are closed")
    assert len(site.result(big)) == size
    assert site.get(waited)["status"] == "QUEUED"
    assert site.cancel(waited).status == 200


@pytest.mark.parametrize("text, status", [
    ("NONSENSE\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\n\r\n", 400),  # no Host
    ("GET /api/v1/nothing HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
    ("DELETE /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
    ("GET /api/v1/jobs HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421),
    ("GET /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nX: " + "x" * 100000 + "\r\n\r\n", 431),
    ("POST /api/v1/jobs/quick/requests HTTP/1.1\r\nHost: localhost\r\n"
     "Content-Type: application/json\r\nContent-Length: 99999999\r\n\r\n", 413),
    ("POST /api/v1/jobs/quick/requests HTTP/1.1\r\nHost: localhost\r\n"
     "Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}", 415),
])
def test_A7_what_is_no_request_of_ours_is_refused_by_number(site, text, status):
    with raw(site.api, text) as connection:
        connection.settimeout(20)
        assert connection.recv(1000).split()[1] == str(status).encode()
    assert site.call("GET", "/livez").status == 200


def test_B8_a_damaged_result_is_not_served(site):
    request_id = site.submit_id("quick", rows=100)
    site.wait_done(request_id)
    (path,) = site.files(request_id)
    pathlib.Path(path).chmod(0o600)
    os.truncate(path, 10)
    answer = site.download(request_id)
    assert answer.status == 500 and str(path) not in answer.body.decode()
    pathlib.Path(path).unlink()
    assert site.download(request_id).status == 410


# --- a row that the target refuses ---

MOVE = """\
  move:
    duplicates: allow
    retry: none
    steps:
      - name: move
        read: {database: shop, sql: "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) SELECT CASE WHEN i = 1500 THEN 1 ELSE i END AS id FROM n"}
        write: {database: goal, table: copy}
"""


def test_a_refused_row_is_told_with_the_chunk_that_it_stands_in(cluster):
    site = Site("sqlite", cluster, jobs.QUICK)
    try:
        goal = site.folder / "goal.db"
        site.databases["goal"] = f"sqlite:{goal}"
        site.configure(MOVE)
        with contextlib.closing(sqlite3.connect(goal)) as db:
            db.execute("CREATE TABLE copy (id INTEGER PRIMARY KEY)")
            db.commit()
        site.start("serve")
        request = site.wait_final(site.submit_id("move"))
        assert request["outcome"] == "ERROR"
        assert "begins with row 1001" in request["detail"], request
        with contextlib.closing(sqlite3.connect(goal)) as db:
            assert db.execute("SELECT count(*) FROM copy").fetchone() == (1000,)
        site.close()
    finally:
        site.discard()

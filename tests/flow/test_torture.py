"""pawl torture: safe jobs pass, unsafe ones are caught with the right reason, and what
belongs to the user is only read.
"""

import hashlib
import http.server
import json
import os
import pathlib
import signal
import sqlite3
import subprocess
import threading

import pytest

from pawl_env import FULL, PAWL, psql

ROWS = 25
SCHEMA = "CREATE TABLE copied (id integer, name text);\n"
CITY = "SELECT id, name FROM city"
SQLITE = "sqlite:./other.db"
SHM = pathlib.Path("/dev/shm")


def chunk(read, write, name="copy"):
    return f"{{name: {name}, chunk: 10, read: {{database: shop, {read}}}, write: {{{write}}}}}"


IN_ORDER = f'sql: "{CITY} ORDER BY id"'
JOBS = {
    "csv": [chunk(IN_ORDER, "file: made.csv")],
    "xlsx": [chunk(f'sql: "{CITY}", restart: key, key: id', "file: made.xlsx")],
    "main": [chunk(IN_ORDER, "database: main, table: copied")],
    "other": ['{name: prep, sql: "DELETE FROM moved", database: other}',
              chunk(IN_ORDER, "database: other, table: moved")],
    "parts": [f"""{{name: copy, chunk: 5, partitions: 3, partition: {{key: id}}, read: {{
          database: shop, sql: "{CITY}"}}, write: {{database: main, table: copied}}}}"""],
    "unordered": [chunk(f'sql: "{CITY}"', "database: main, table: copied")],
    "again": [chunk(IN_ORDER, "database: other, table: moved, checkpoint: none")],
    "requery": [chunk(f'sql: "{CITY}", restart: requery', "database: main, table: copied")],
    "twice": [chunk(IN_ORDER, "database: main, table: copied"),
              """{name: add, sql: "INSERT INTO moved VALUES (1, 'x')", database: other}"""],
    "broken": [chunk('sql: "SELECT nothing FROM city"', "file: made.csv")],
}


class Place:
    def __init__(self, folder, other=SQLITE):
        self.folder = folder
        self.env = {**os.environ}
        self.temp = folder / "temp"
        if SHM.is_dir():
            self.temp = SHM / f"pawl-test-{os.getpid()}-{folder.name}"
        self.temp.mkdir()
        self.env["TMPDIR"] = str(self.temp)
        (folder / "schema.sql").write_text(SCHEMA)
        self.write_config(other, "".join(
            f"  {job}:\n    steps:\n" + "".join(f"      - {step}\n" for step in steps)
            for job, steps in JOBS.items()))
        with sqlite3.connect(folder / "shop.db") as db:
            db.execute("CREATE TABLE city (id integer PRIMARY KEY, name text)")
            db.executemany("INSERT INTO city VALUES (?, ?)",
                           [(i, f"도시 {i}") for i in range(1, ROWS + 1)])
        with sqlite3.connect(folder / "other.db") as db:
            db.execute("CREATE TABLE moved (id bigint, name text)")
            db.execute("CREATE TABLE kept (v integer PRIMARY KEY)")
            db.execute("INSERT INTO moved VALUES (0, 'was there')")

    def write_config(self, other, jobs):
        (self.folder / "pawl.yaml").write_text(
            f"store: sqlite:./pawl.db\nresults: ./results\nstate: ./state\n"
            f'databases: {{shop: "sqlite:./shop.db", other: "{other}"}}\njobs:\n{jobs}')

    def start(self, *words):
        return subprocess.Popen([PAWL, "torture", *words], cwd=self.folder, env=self.env,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, encoding="utf-8")

    def torture(self, *words):
        process = self.start(*words)
        out, err = process.communicate(timeout=120)
        assert not list(self.temp.iterdir()), "a scratch folder is left"
        return process.returncode, out, err

    def report(self, job, *words, schema=True):
        more = ["--schema", "schema.sql"] if schema else []
        code, out, err = self.torture(job, "-q", "--json", *more, *words)
        report = json.loads(out)
        assert code == (0 if report.get("safe") else 1), err
        return report

    def files(self):
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest()
                for path in self.folder.iterdir() if path.is_file()}


@pytest.fixture
def place(tmp_path):
    place = Place(tmp_path)
    yield place
    place.temp.rmdir()


def step(report, name):
    return next(s for s in report["steps"] if s["name"] == name)


@pytest.mark.parametrize("job", ["csv", "xlsx", "main", "other"])
def test_a_safe_job_passes_and_nothing_of_the_user_is_touched(place, job):
    before = place.files()
    report = place.report(job)
    assert report["safe"], report
    assert report["rounds"] == report["places"] >= 10 and not report["sampled"]
    assert sum(s["kills"] for s in report["steps"]) > report["rounds"]
    assert step(report, "copy")["kills"] >= 8
    if job in ("csv", "xlsx"):
        assert report["result"] == f"made.{job}" and report["resultCompared"]
    else:
        assert [t["rows"] for t in report["tables"] if t["changed"]] == [ROWS]
    assert place.files() == before


@pytest.mark.parametrize("job, name, seen, reason, remedy", [
    ("unordered", "copy", "repeated", "no fixed order", "ORDER BY"),
    ("again", "copy", "10 rows are repeated", "checkpoint: none", "upsert"),
    ("requery", "copy", "10 rows are repeated", "does not leave out", "restart: key"),
    ("twice", "add", "1 row is repeated", "before the store knows", "ON CONFLICT"),
])
def test_an_unsafe_step_is_caught_with_its_reason(place, job, name, seen, reason, remedy):
    report = place.report(job)
    assert not report["safe"]
    found = step(report, name)
    assert seen in found["seen"] and reason in found["reason"] and remedy in found["remedy"]
    assert found["bad"] > 0
    assert all(s["safe"] for s in report["steps"] if s["name"] != name), report


def test_a_step_in_partitions_is_killed_in_each_of_them(place):
    report = place.report("parts", "--rounds", "100" if FULL else "7")
    assert report["safe"], report
    assert step(report, "copy")["kills"] >= 7


def test_many_places_are_sampled_and_it_is_said(place):
    code, out, _ = place.torture("csv", "-q", "--rounds", "4")
    assert code == 0
    assert "restart-safe; killed at 4 of " in out and "evenly spread" in out


def test_what_cannot_be_tortured_is_refused_with_what_helps(place):
    place.write_config("postgresql://nobody@127.0.0.1:1/live", """\
  pg: {steps: [{name: a, sql: "DELETE FROM moved", database: other}]}
  call: {steps: [{name: a, http: {url: "http://127.0.0.1:1/"}}]}
  sure:
    params: {yes: {type: boolean, confirm: true}}
    steps: [{name: a, sql: "SELECT 1"}]
""")
    for words, text in (
            (["pg"], "--database other=postgresql://"),
            (["pg", "--database", "other=postgresql://nobody@127.0.0.1:1/live"], "scratch"),
            (["pg", "--database", "others=sqlite:./x.db"], "no database of that name"),
            (["call"], "--allow-calls"),
            (["sure", "-p", "yes=true"], "confirm"),
            (["sure", "--rounds", "0"], "--rounds")):
        code, out, err = place.torture(*words)
        assert code == 2 and text in err and not out, (words, err)


def test_a_job_that_fails_without_a_kill_is_no_matter_of_kills(place):
    code, _, err = place.torture("broken", "-q")
    assert code == 2 and "fails without any kill" in err and "nothing" in err
    code, _, err = place.torture("main", "-q")
    assert code == 2 and "--schema FILE.sql" in err


def test_a_job_that_does_nothing_is_not_praised(place):
    with sqlite3.connect(place.folder / "shop.db") as db:
        db.execute("DELETE FROM city")
    report = place.report("main")
    assert report["idle"] and not report["tables"][0]["changed"]
    assert "read no row" in step(report, "copy")["note"]


def test_ctrl_c_leaves_nothing_behind(place):
    process = place.start("main", "--schema", "schema.sql", "--rounds", "1000")
    assert "kills" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 130
    assert not list(place.temp.iterdir())


def test_a_target_on_postgresql_is_copied_from_the_scratch_database(place, cluster):
    name = f"torture_{os.getpid()}"
    first, second = JOBS["other"][-1], JOBS["again"][-1].replace("name: copy", "name: add")
    cluster.psql("postgres", f"CREATE DATABASE {name}")
    try:
        cluster.psql(name, "CREATE TABLE moved (id bigint, name text, nr bigserial, "
                           "at timestamptz DEFAULT clock_timestamp())")
        place.write_config("postgresql://nobody@127.0.0.1:1/live",
                           f"  both:\n    steps:\n      - {first}\n      - {second}\n")
        report = place.report("both", "--database", f"other={cluster.database(name)}",
                              "--rounds", "40" if FULL else "3")
        assert step(report, "copy")["safe"] and step(report, "copy")["kills"] > 0
        assert "checkpoint: none" in step(report, "add")["reason"]
        assert report["tables"] == [{"database": "other", "table": "public.moved",
                                     "rows": 2 * ROWS, "changed": True, "leftOut": "at"}]
        assert cluster.psql(name, "SELECT count(*) FROM moved").strip() == "0"
        assert "pawl_torture" not in cluster.psql(
            name, "SELECT string_agg(datname, ' ') FROM pg_database")
    finally:
        cluster.psql("postgres", f"DROP DATABASE {name} WITH (FORCE)")


class Api(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.calls += 1
        body = b'{"items": [{"v": 1}, {"v": 2}]}'
        if self.path == "/lines":
            body = b"".join(b'{"v": %d}\n' % i for i in range(5))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture
def api():
    api = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Api)
    api.calls = 0
    api.url = f"http://127.0.0.1:{api.server_port}"
    threading.Thread(target=api.serve_forever, daemon=True).start()
    yield api
    api.shutdown()
    api.server_close()


def test_calls_are_made_for_real_where_they_are_allowed(place, api):
    place.write_config(SQLITE, f"""\
  collect:
    steps:
      - name: collect
        chunk: 2
        read: {{items: {{n: [1, 2, 3]}}}}
        process: {{http: {{url: "{api.url}/x", rows: {{json: items}}, fields: {{v: v}}}}}}
        write: {{database: other, rows: "INSERT INTO moved VALUES (:n, :v)"}}
""")
    report = place.report("collect", "--allow-calls", "--rounds", "4", schema=False)
    assert report["safe"], report
    assert "calls of the chunk under way" in step(report, "collect")["note"]
    assert api.calls > 3 * 4


def test_a_file_is_fetched_once_and_read_again_from_its_beginning(place, api):
    place.write_config(SQLITE, f"""\
  load:
    steps:
      - {{name: get, fetch: {{url: "{api.url}/lines", file: x.jsonl}}}}
      - name: load
        chunk: 2
        read: {{jsonl: "run:x.jsonl", restart: beginning}}
        write: {{database: other, table: kept, mode: upsert, key: [v]}}
""")
    report = place.report("load", "--allow-calls", "--rounds", "8", schema=False)
    assert report["safe"], report
    assert {t["table"]: t["rows"] for t in report["tables"] if t["changed"]} == {"kept": 5}

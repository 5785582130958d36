"""Drives the real binary: a Site is a folder with pawl.yaml, a store and what runs on it.

    site = Site("pg", jobs=...)       # or "sqlite"; see Site
    site.up()                         # serve on SQLite; api and worker on PostgreSQL
    answer = site.submit("quick", n=3)
    site.wait_final(answer["requestId"])
    site.close()                      # stops all, asserts that the end was clean

Nothing here sleeps for a fixed time: wait_for polls a condition against a deadline.
The cluster is the one of script/test (PAWL_TEST_PG); without one, one is started.
"""

import contextlib
import csv
import http.client
import io
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.parse
import zipfile
from xml.etree import ElementTree

ROOT = pathlib.Path(os.environ.get("PAWL_SOURCE_ROOT",
                                   pathlib.Path(__file__).resolve().parents[2]))
PAWL = os.environ.get("PAWL_BIN") or str(
    pathlib.Path(os.environ.get("PAWL_BUILD_ROOT", ROOT / "build")) / "src/pawl")
FULL = bool(os.environ.get("PAWL_FULL"))
# Debian's psql is a Perl script that looks for this one, which takes longer than most
# statements here.
PSQL = next((str(p) for p in pathlib.Path("/usr/lib/postgresql").glob("*/bin/psql")), "psql")
SITES = []  # those alive: conftest prints their logs when a test fails
STOP_SECONDS = 25  # nothing here has chunks of more than a second


def wait_for(condition, what, seconds=30.0, every=0.02):
    """The first true value of condition(); fails with `what` after so many seconds."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(every)


# --- PostgreSQL ---

class Cluster:
    """A PostgreSQL for tests: the one of script/test, or one of our own."""

    def __init__(self, own=False):
        self.note = None
        self.url = None if own else os.environ.get("PAWL_TEST_PG")
        self.folder = None if own else os.environ.get("PAWL_TEST_PG_DIR")
        if self.url:
            return
        self.note = pathlib.Path(tempfile.mkdtemp(prefix="pawl-flow-pg-"))
        said = self._call("start", "--owner", str(os.getpid()))
        env = dict(line.split("=", 1) for line in said.split())
        self.url = env["PAWL_TEST_PG"]
        self.folder = env["PAWL_TEST_PG_DIR"]

    def _call(self, verb, *more):
        return subprocess.run(
            [sys.executable, ROOT / "tests/harness/pg_cluster.py", verb, self.note, *more],
            check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout

    def database(self, name):
        return self.url.rsplit("/", 1)[0] + "/" + name

    def psql(self, name, sql):
        return psql(self.database(name), sql)

    def pg_ctl(self, *words):
        """Stop or start the servers of our own cluster."""
        assert self.note, "the shared cluster stays up"
        who = {"user": "postgres", "group": "postgres", "extra_groups": []} \
            if os.geteuid() == 0 else {}
        subprocess.run(["/usr/lib/postgresql/15/bin/pg_ctl", "-D", f"{self.folder}/data",
                        "-w", "-s", "-l", f"{self.folder}/postgres.log", *words],
                       check=True, stdin=subprocess.DEVNULL, cwd=self.folder, **who)

    def close(self):
        if self.note:
            self._call("stop")
            shutil.rmtree(self.note, ignore_errors=True)


def psql(url, sql):
    done = subprocess.run(
        [PSQL, "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-f", "-", url],
        input=sql, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    return done.stdout


# --- HTTP ---

class Answer:
    def __init__(self, response, head_only=False):
        self.status = response.status
        self.headers = response.headers
        self.body = b"" if head_only else response.read()

    @property
    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"{self.status} {self.body[:400]!r}"


class Server:
    """One process of pawl: `pawl serve`, `pawl api` or `pawl worker`."""

    def __init__(self, site, role, name, environment, config, words=None):
        """Starts `pawl ROLE`, or with `words` what they say."""
        self.site = site
        self.role = role
        self.name = name
        self.port = None
        self.ended = False
        self.log_path = site.folder / f"{name}.log"
        self.start_offset = self.log_path.stat().st_size if self.log_path.exists() else 0
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [PAWL, *([role, "-c", config] if words is None else words)],
                cwd=site.folder, env=environment,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    @property
    def pid(self):
        return self.process.pid

    def log(self):
        with open(self.log_path, "rb") as log:
            log.seek(self.start_offset)
            return log.read().decode(errors="replace")

    def await_ready(self, seconds=60):
        """Ready is what the log tells, and for an api what /readyz answers."""
        def ready():
            assert self.process.poll() is None, f"{self.name} ended:\n{self.log()}"
            return re.search(r" ready .*port=(\d+)", self.log())
        self.port = int(wait_for(ready, f"{self.name} is ready", seconds).group(1))
        if self.role != "worker":
            wait_for(lambda: self.call("GET", "/readyz").status == 200,
                     f"{self.name} answers /readyz", seconds)
        return self

    def connect(self, timeout=60):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def call(self, method, path, body=None, headers=None, connection=None):
        own = connection or self.connect()
        headers = dict(headers or {})
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
            headers.setdefault("Content-Type", "application/json")
        try:
            own.request(method, path, body=body, headers=headers)
            return Answer(own.getresponse(), head_only=method == "HEAD")
        finally:
            if not connection:
                own.close()

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        """kill -9, as a power cut does it."""
        self.process.kill()
        self.process.wait()
        self.ended = True

    def wait_end(self, seconds=STOP_SECONDS):
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"{self.name} did not end in {seconds} s:\n{self.log()}")
        self.ended = True
        return code

    def stop(self, seconds=STOP_SECONDS):
        self.signal(signal.SIGTERM)
        code = self.wait_end(seconds)
        assert code == 0, f"{self.name} ended with {code}:\n{self.log()}"

    def memory(self, field):
        """A line of /proc/PID/status, in KiB: VmRSS, VmHWM."""
        text = pathlib.Path(f"/proc/{self.pid}/status").read_text()
        return int(re.search(rf"^{field}:\s+(\d+) kB", text, re.M).group(1))

    def forget_peak(self):
        pathlib.Path(f"/proc/{self.pid}/clear_refs").write_text("5")


# --- a site ---

class Site:
    """
    kind "sqlite": an SQLite store, `shop` is an SQLite file; runs as `pawl serve`.
    kind "pg":     a PostgreSQL store, `shop` is the same database by another connection;
                   runs as api and worker, connected as pawl_api and pawl_worker,
                   which have no more rights than they need.
    Both have `pg`, a database on PostgreSQL with nothing in it, whatever the store is.
    Databases stay until the cluster goes: to drop one costs a checkpoint.
    """

    def __init__(self, kind, cluster, jobs, settings="", databases=None, roles=True):
        self.kind = kind
        self.cluster = cluster
        self.roles = roles and kind == "pg"
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=f"pawl-flow-{kind}-"))
        self.servers = []
        self.left_running = False  # a test that means it sets this
        self.api = None
        SITES.append(self)
        self.pg_url = cluster.url
        self.store_path = self.folder / "pawl.db"  # on SQLite
        if kind == "pg":
            self.store_url = self._make_database()
            self.shop_url = self.store_url
        else:
            self.store_url = f"sqlite:{self.folder}/pawl.db"
            self.shop_url = f"sqlite:{self.folder}/shop.db"
            self.shop("CREATE TABLE made_by_the_test (x)")
        self.listen_url = self.store_url
        self.databases = {"shop": self.shop_url, "pg": self.pg_url, **(databases or {})}
        self.configure(jobs, settings)

    def _make_database(self):
        name = self.folder.name.replace("-", "_").lower()
        self.cluster.psql("postgres", f'CREATE DATABASE "{name}"')
        return self.cluster.database(name)

    def configure(self, jobs, settings="", path="pawl.yaml"):
        """Write the configuration. `settings` and `jobs` are YAML."""
        lines = [f"store: {{{self._store_urls()}}}", "results: ./results",
                 "state: ./state", "api: {listen: '127.0.0.1:0'}"]
        given = set(re.findall(r"^(\w+):", settings, re.M))
        lines = [line for line in lines if line.split(":")[0] not in given]
        lines.append("databases:")
        lines += [f"  {name}: '{url}'" for name, url in self.databases.items()]
        text = "\n".join(lines) + "\n" + settings + "\njobs:\n" + jobs
        (self.folder / path).write_text(text, encoding="utf-8")

    def url_of(self, role, url=None):
        """The store by another role."""
        return (url or self.store_url).replace("//postgres@", f"//{role}@")

    def _store_urls(self):
        if not self.roles:
            return f"url: '{self.store_url}'"
        return (f"api: '{self.url_of('pawl_api')}', worker: '{self.url_of('pawl_worker')}', "
                f"listen: '{self.url_of('pawl_reader', self.listen_url)}'")

    # --- processes ---

    def environment(self, **more):
        clean = {k: v for k, v in os.environ.items()
                 if not k.startswith("PAWL_") or k == "PAWL_PLANT"}
        return {**clean, **more}

    def start(self, role, name=None, ready=True, config="pawl.yaml", **env):
        server = Server(self, role, name or role, self.environment(**env), config)
        self.servers.append(server)
        if role != "worker":
            self.api = server
        return server.await_ready() if ready else server

    def start_worker(self, name, ready=True, **env):
        """One more worker, at a seat of its own."""
        return self.start("worker", name, ready, PAWL_STATE=str(self.folder / f"state-{name}"),
                          **env)

    def up(self):
        if self.kind == "sqlite":
            self.start("serve")
        else:
            self.pawl("migrate")
            self.start("api")
            self.start_worker("worker")
        return self

    @property
    def worker(self):
        """The process that carries work out."""
        return [s for s in self.servers if s.role != "api" and not s.ended][-1]

    def restart_worker(self):
        """The same seat again."""
        old = [s for s in self.servers if s.role != "api"][-1]
        assert old.ended
        if old.role == "serve":
            return self.start("serve", old.name)
        return self.start_worker(old.name)

    def pawl(self, *words, code=0, **env):
        if words[:1] == ("migrate",) and self.kind == "pg":  # as the administrator
            env.setdefault("PAWL_STORE", self.store_url)
        done = subprocess.run([PAWL, *words], cwd=self.folder, env=self.environment(**env),
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, encoding="utf-8", timeout=120)
        assert code in (None, done.returncode), f"pawl {words}: {done.returncode}\n{done.stderr}"
        return done

    # --- asking ---

    def call(self, method, path, body=None, headers=None):
        return self.api.call(method, path, body, headers)

    def get(self, request_id, wait=None):
        answer = self.call("GET", f"/api/v1/requests/{request_id}"
                           + (f"?wait={wait}" if wait else ""))
        assert answer.status == 200, answer
        return answer.json

    def post(self, job, params=None, headers=None, **members):
        return self.call("POST", f"/api/v1/jobs/{job}/requests",
                         {"params": params or {}, **members}, headers)

    def submit(self, job, **params):
        answer = self.post(job, params)
        assert answer.status in (200, 202), answer
        return answer.json

    def submit_id(self, job, **params):
        return self.submit(job, **params)["requestId"]

    def wait_final(self, request_id, seconds=60):
        def final():
            request = self.get(request_id, wait="5s")
            return request if request["status"] in ("DONE", "FAILED") else None
        return wait_for(final, f"request {request_id} is final", seconds)

    def wait_done(self, request_id, seconds=60):
        request = self.wait_final(request_id, seconds)
        assert request["outcome"] == "COMPLETED", request
        return request

    def wait_running(self, request_id, seconds=30):
        return wait_for(lambda: (r := self.get(request_id))["status"] == "RUNNING" and r,
                        f"request {request_id} runs", seconds)

    def wait_progress(self, request_id, rows, seconds=30):
        def reached():
            request = self.get(request_id)
            assert request["status"] in ("QUEUED", "RUNNING"), request
            return request["progress"] and request["progress"]["done"] >= rows and request
        return wait_for(reached, f"request {request_id} has done {rows} rows", seconds)

    def cancel(self, request_id):
        return self.call("POST", f"/api/v1/requests/{request_id}/cancel")

    def download(self, request_id, headers=None, method="GET"):
        return self.call(method, f"/api/v1/requests/{request_id}/result", headers=headers)

    def result(self, request_id):
        answer = self.download(request_id)
        assert answer.status == 200, answer
        return answer.body

    # --- looking ---

    def sql(self, query):
        """Rows of the store as dicts. Tables are called pawl.NAME on both databases."""
        if self.kind == "sqlite":
            return sqlite_rows(self.store_path, query.replace("pawl.", ""))
        text = psql(self.store_url, "SELECT coalesce(json_agg(t), '[]') FROM "
                                    f"({query}) t")
        return json.loads(text)

    def one(self, query):
        rows = self.sql(query)
        assert len(rows) == 1, rows
        (value,) = rows[0].values()
        return value

    def count(self, table, where="true"):
        return self.one(f"SELECT count(*) AS n FROM pawl.{table} WHERE {where}")

    def store_do(self, sql):
        """Change the store behind pawl's back."""
        if self.kind == "sqlite":
            with contextlib.closing(sqlite3.connect(self.store_path, timeout=10)) as db, db:
                db.executescript(sql.replace("pawl.", ""))
        else:
            psql(self.store_url, sql)

    def shop(self, sql):
        """Run statements in the user's database of the site's kind."""
        if self.kind == "sqlite":
            with contextlib.closing(sqlite3.connect(self.folder / "shop.db")) as db, db:
                db.executescript(sql)
        else:
            psql(self.shop_url, sql)

    def shop_rows(self, query):
        if self.kind == "sqlite":
            return sqlite_rows(self.folder / "shop.db", query)
        return json.loads(psql(self.shop_url, "SELECT coalesce(json_agg(t), '[]') FROM "
                                              f"({query}) t"))

    def parts(self):
        """Files still being made."""
        return sorted((self.folder / "results/parts").glob("*"))

    def parts_of(self, request_id):
        instances = [row["instance_id"] for row in self.sql(
            f"SELECT instance_id FROM pawl.execution WHERE request_id = {request_id}")]
        return [p for p in self.parts() if int(p.name.split("-")[0]) in instances]

    def loose_parts(self):
        """Those that nobody could go on from."""
        return [p for p in self.parts() if not self.one(
            "SELECT count(*) AS n FROM pawl.execution e JOIN pawl.step_execution s "
            "ON s.execution_id = e.id WHERE s.chunk > 0 AND e.state IN "
            f"('STOPPED', 'FAILED') AND e.token = {p.stem.rsplit('-', 1)[1]}")]

    def files(self, request_id):
        return sorted((self.folder / f"results/files/{request_id}").glob("*"))

    # --- end ---

    def down(self):
        """Stop everything that runs, cleanly; the store stays."""
        for role in ("worker", "serve", "api"):
            for server in self.servers:
                if server.role == role and not server.ended:
                    server.stop()

    def close(self):
        try:
            self.down()
            if not self.left_running and self._has_store():
                assert self.count("claim") == 0, "RUNNING after a clean stop"
                assert self.loose_parts() == []
        finally:
            self.discard()

    def _has_store(self):
        if self.kind == "sqlite":
            return self.store_path.exists()
        return any(s.role != "api" for s in self.servers)

    def discard(self):
        """Remove everything, however it stands."""
        for server in self.servers:
            if not server.ended:
                server.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
        if self in SITES:
            SITES.remove(self)


def sqlite_rows(path, query):
    # Not read-only: what a killed writer left open is rolled back by the next reader.
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=rw", uri=True,
                                            timeout=10)) as db:
        db.row_factory = sqlite3.Row
        return [dict(row) for row in db.execute(query)]


# --- reading results without pawl ---

def read_csv(body):
    return list(csv.reader(io.StringIO(body.decode("utf-8"), newline="")))


def read_jsonl(body):
    """Numbers stay texts, so that none is rounded by us."""
    return [json.loads(line, parse_float=str, parse_int=str)
            for line in body.decode("utf-8").splitlines()]


MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"


def read_xlsx(body, sheet="xl/worksheets/sheet1.xml"):
    """
    Rows as {column letters: (kind, text)}; a cell of NULL is not there. The kind is n,
    s (text), b, or d (a number with a format of dates).
    """
    with zipfile.ZipFile(io.BytesIO(body)) as book:
        assert book.testzip() is None
        styles = ElementTree.fromstring(book.read("xl/styles.xml"))
        formats = {f.get("numFmtId"): f.get("formatCode")
                   for f in styles.iter(MAIN + "numFmt")}
        cell_formats = [xf.get("numFmtId") for xf in styles.find(MAIN + "cellXfs")]
        rows = []
        with book.open(sheet) as stream:
            for _, node in ElementTree.iterparse(stream):
                if node.tag == MAIN + "row":
                    rows.append({_letters(c.get("r")): _xlsx_cell(c, cell_formats, formats)
                                 for c in node.iter(MAIN + "c")})
                    node.clear()
    return rows


def _letters(reference):
    return reference.rstrip("0123456789")


def _xlsx_cell(cell, cell_formats, formats):
    assert cell.find(MAIN + "f") is None, "a formula"
    kind = cell.get("t", "n")
    if kind == "inlineStr":
        return "s", "".join(t.text or "" for t in cell.iter(MAIN + "t"))
    value = cell.find(MAIN + "v")
    text = value.text if value is not None else None
    if kind == "str":
        return "s", text or ""
    code = cell_formats[int(cell.get("s", "0"))]
    if kind == "n" and ("yy" in formats.get(code, "").lower() or 14 <= int(code) <= 22):
        kind = "d"
    return kind, text


def urlencode(**query):
    return urllib.parse.urlencode(query)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]

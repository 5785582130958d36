"""What the storm does with pawl: its jobs, its places, and what is read afterwards."""

import hashlib
import json

import pawl_env
from pawl_env import Site, free_port, psql, sqlite_rows

CHUNK = 10
LANES = {"normal": 3}
DEAD_AFTER = 3.0
TRIES = 100
FLAKY_TRIES = 3
SETTINGS = """\
log: {level: debug}
lanes: {normal: 3}
worker: {heartbeat: 1s, dead_after: 3s, reap: 1s, safety_scan: 1s, poll: 1s, record_retry: 1s, drain: 2s}
schedules:
  beat: {job: slot, cron: "* * * * * *", missed: {all: 30}}
"""
RETRY = f"{{attempts: {TRIES}, backoff: 30ms, max_backoff: 300ms, on: [ERROR, WORKER_LOST], drained: true}}"
# A little slower than it must be, each row sent at once.
READ = ("SELECT :tag AS tag, i AS n, repeat('x', {pad}) AS pad, "
        "cast(pg_sleep(0.002) AS text) AS slept FROM generate_series(1, :rows) i "
        "ORDER BY i")
PARAMS = "params: {rows: {type: integer}, tag: {type: string}}"
JOBS = f"""\
  effect:
    {PARAMS}
    duplicates: allow
    retry: {RETRY}
    steps:
      - name: write
        chunk: {CHUNK}
        read: {{database: pg, sql: "{READ.format(pad=9000)}"}}
        write: {{database: main, rows: "INSERT INTO effect (tag, n) VALUES (:tag, :n)"}}
  export:
    {PARAMS}
    duplicates: allow
    retry: {RETRY}
    steps:
      - name: file
        chunk: {CHUNK}
        read: {{database: pg, sql: "{READ.format(pad=300)}"}}
        write: {{file: "export.csv"}}
  mark:
    params: {{rows: {{type: integer, default: 1}}, tag: {{type: string}}}}
    duplicates: allow
    retry: {RETRY}
    steps:
      - name: write
        read: {{database: pg, sql: "SELECT :tag AS tag WHERE :rows > 0"}}
        write: {{database: main, rows: "INSERT INTO mark (tag) VALUES (:tag)"}}
  flaky:
    {PARAMS}
    duplicates: allow
    retry: {{attempts: {FLAKY_TRIES}, backoff: 20ms, on: [ERROR, WORKER_LOST]}}
    steps:
      - name: fail
        chunk: 2
        read: {{database: pg, sql: "SELECT :tag AS tag, 1 / (:rows + 4 - i) AS n FROM generate_series(1, 9) i"}}
        write: {{file: "never.csv"}}
  slot:
    duplicates: allow
    retry: {RETRY}
    steps:
      - name: beat
        read: {{database: pg, sql: "SELECT 1 AS n"}}
        write: {{database: main, rows: "INSERT INTO mark (tag) VALUES ('slot')"}}
"""
COLUMNS = {
    "request": "id, job, lane, source, requester, retry_of, first_try, attempt, created_at",
    "outcome": "id, outcome, worker, token, claimed_at, finished_at, detail, execution_id, "
               "result_path, result_name, result_bytes, result_sha256",
    "execution": "id, request_id, token, state, started_at, ended_at, exit_message",
    "claim": "first_id, last_id, worker, token, lane",
    "ready": "first_id, last_id", "later": "first_id, last_id, reason",
    "active": "key, request_id", "flag": "request_id, cancel", "progress": "request_id",
    "idempotency": "key, request_id",
    "schedule_slot": "schedule, slot_time, last_time, slots, state, request_id",
}


class Place:
    """A seat of a process: its role, its port, and how it reaches the store."""

    def __init__(self, role, name, config="pawl.yaml", env=None):
        self.role, self.name, self.config = role, name, config
        self.port = free_port() if role != "worker" else 0
        self.env = env or {}


class StormSite(Site):
    """A store with the tables of the storm, and the places around it."""

    def prepare(self, by, settings=SETTINGS):
        """by: configurations, as (name, store url, more settings)."""
        for name, url, more in by:
            keep, self.store_url = self.store_url, url
            self.configure(JOBS, settings + more, f"{name}.yaml")
            self.store_url = keep
        self.pawl("migrate")
        self.store_do("CREATE TABLE effect (tag text NOT NULL, n integer NOT NULL); "
                      "CREATE TABLE mark (tag text NOT NULL)")
        if self.roles:
            self.store_do("GRANT SELECT, INSERT ON effect, mark TO pawl_worker")

    def start_at(self, place):
        more = {"PAWL_STATE": str(self.folder / f"state-{place.name}"), **place.env}
        if place.port:
            more["PAWL_LISTEN"] = f"127.0.0.1:{place.port}"
        server = pawl_env.Server(self, place.role, place.name, self.environment(**more),
                                 place.config)
        self.servers.append(server)
        return server

    # --- looking, by plain SQL ---

    def rows(self, query):
        if self.kind == "pg":
            return json.loads(psql(self.store_url, "SELECT coalesce(json_agg(t), '[]') "
                                   f"FROM ({query}) t"))
        return sqlite_rows(self.folder / "pawl.db", query.replace("pawl.", ""))

    def claims(self):
        return self.rows(f"SELECT {COLUMNS['claim']} FROM pawl.claim")

    def beats(self):
        return self.rows("SELECT id, beat_at FROM pawl.worker")

    def open_rows(self):
        return self.rows(
            "SELECT (SELECT count(*) FROM pawl.request) - (SELECT count(*) FROM "
            "pawl.outcome) + (SELECT count(*) FROM pawl.claim) AS n")[0]["n"]

    def dump(self, path):
        dump = {table: self.rows(f"SELECT {columns} FROM pawl.{table}")
                for table, columns in COLUMNS.items()}
        dump["step"] = self.rows(
            "SELECT e.request_id, s.name, s.state, s.write_count FROM pawl.step_execution s "
            "JOIN pawl.execution e ON e.id = s.execution_id")
        dump["effect"] = self.rows("SELECT tag, n, count(*) AS times FROM effect "
                                   "GROUP BY tag, n")
        dump["files"] = [
            {"request_id": int(path.parent.name), "name": path.name,
             "bytes": path.stat().st_size,
             "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
            for path in (self.folder / "results/files").glob("*/*")]
        dump["parts"] = [path.name for path in self.loose_parts()]
        dump["lanes"] = LANES
        dump["jobs"] = {
            "effect": {"attempts": TRIES, "chunk": CHUNK, "effect": True,
                       "resumes": True},
            "export": {"attempts": TRIES}, "mark": {"attempts": TRIES},
            "slot": {"attempts": TRIES},
            "flaky": {"attempts": FLAKY_TRIES, "fails": True}}
        dump["schedules"] = {"beat": 1_000_000}
        dump["dead_after_us"] = int(DEAD_AFTER * 1_000_000)
        dump["marks"] = {"jobs": ["mark", "slot"],
                         "rows": self.rows("SELECT count(*) AS n FROM mark")[0]["n"]}
        path.write_text(json.dumps(dump))
        return dump

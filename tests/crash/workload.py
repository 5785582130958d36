"""What the storm does with pawl: its jobs, its places, and what is read afterwards."""

import hashlib
import json
import time

import pawl_env
from pawl_env import Site, free_port, psql, sqlite_rows

CHUNK = 10
# Slots of a worker, and seconds that a row takes: on PostgreSQL work is dearer.
PACE = {"sqlite": (3, 0.002), "pg": (2, 0.004)}
DEAD_AFTER = 3.0
TRIES = 100
FLAKY_TRIES = 3
SETTINGS = """\
log: {level: debug}
lanes: {normal: SLOTS}
worker: {heartbeat: 1s, dead_after: 3s, reap: 1s, safety_scan: 1s, poll: 1s, record_retry: 1s, drain: 2s}
schedules:
  beat: {job: slot, cron: "*/2 * * * * *", missed: {all: 30}}
"""
RETRY = f"{{attempts: {TRIES}, backoff: 30ms, max_backoff: 300ms, on: [ERROR, WORKER_LOST], drained: true}}"
# In the long storm some exports are large, or their publishing would be over before
# anybody could hit it.
WIDE = "CASE WHEN :rows % 5 = 0 THEN 50000 ELSE 300 END" if pawl_env.FULL else "300"
# A little slower than it must be, each row sent at once.
READ = ("SELECT :tag AS tag, i AS n, repeat('x', {pad}) AS pad, "
        "cast(pg_sleep(ROW_SECONDS) AS text) AS slept FROM generate_series(1, :rows) i "
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
        read: {{database: pg, sql: "{READ.format(pad=WIDE)}"}}
        write: {{file: "export.csv"}}
  mark:
    params: {{rows: {{type: integer, default: 1}}, tag: {{type: string}}}}
    duplicates: allow
    retry: {RETRY}
    steps:
      - name: write
        read: {{database: main, sql: "SELECT :tag AS tag WHERE :rows > 0"}}
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
        read: {{database: main, sql: "SELECT 1 AS n"}}
        write: {{database: main, rows: "INSERT INTO mark (tag) VALUES ('slot')"}}
"""
# Calls outside, each taken from a budget that a long storm uses up: then it is STOPPED.
CALLS_PER_DAY = 400
CALL = f"""\
  call:
    {PARAMS}
    duplicates: allow
    retry: {RETRY.replace("drained: true", "drained: false")}
    steps:
      - name: ask
        chunk: 5
        read: {{database: pg, sql: "SELECT :tag AS tag, i AS n FROM generate_series(1, :rows) i ORDER BY i"}}
        process:
          - http: {{url: "http://127.0.0.1:PORT/call", query: {{tag: "{{tag}}", n: "{{n}}"}}, budget: outside}}
        write: {{database: main, rows: "INSERT INTO effect (tag, n) VALUES (:tag, :n)"}}
"""


def noon():
    """A zone where no day ends soon."""
    return f"Etc/GMT{time.gmtime().tm_hour - 12:+d}"


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
    "budget": "name, day_start, used",
}


class Place:
    """A seat of a process: its role, its port, and how it reaches the store."""

    def __init__(self, role, name, config="pawl.yaml", env=None):
        self.role, self.name, self.config = role, name, config
        self.port = free_port() if role != "worker" else 0
        self.env = env or {}


class StormSite(Site):
    """A store with the tables of the storm, and the places around it."""

    def prepare(self, by, settings=SETTINGS, port=None):
        """by: configurations, as (name, store[, who listens there, URL or None[, `pg` to
        read from]]). port: of the API outside, for the job that calls it."""
        calls = CALL.replace("PORT", str(port)) if port else ""
        if port:
            settings = f"budgets: {{outside: {{per_day: {CALLS_PER_DAY}, zone: " \
                       f"{noon()}}}}}\n{settings}"
        direct = self.store_url
        slots, seconds = PACE[self.kind]
        for name, url, *more in by:
            self.store_url = url
            self.listen_url = (more or [None])[0] or url
            self.databases["pg"] = more[1] if len(more) > 1 and more[1] else self.pg_url
            self.configure((JOBS + calls).replace("ROW_SECONDS", str(seconds)),
                           settings.replace("SLOTS", "1" if name == "deaf" else str(slots)),
                           f"{name}.yaml")
        self.store_url = self.listen_url = direct
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
        return sqlite_rows(self.store_path, query.replace("pawl.", ""))

    def sample(self):
        """The claims, and the beats of the workers."""
        looks = {"claims": f"SELECT {COLUMNS['claim']} FROM pawl.claim",
                 "beats": "SELECT id, beat_at FROM pawl.worker"}
        if self.kind == "sqlite":
            return {name: self.rows(query) for name, query in looks.items()}
        return self.rows("SELECT " + ", ".join(  # a psql costs more than its question
            f"coalesce((SELECT json_agg(t) FROM ({query}) t), '[]') AS {name}"
            for name, query in looks.items()))[0]

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
        dump["lanes"] = {"normal": PACE[self.kind][0]}
        dump["jobs"] = {
            "effect": {"attempts": TRIES, "chunk": CHUNK, "effect": True,
                       "resumes": True},
            "export": {"attempts": TRIES}, "mark": {"attempts": TRIES},
            "slot": {"attempts": TRIES},
            # Stopped by the budget it may end anywhere.
            "call": {"attempts": TRIES, "chunk": 1, "effect": True, "resumes": True},
            "flaky": {"attempts": FLAKY_TRIES, "fails": True}}
        dump["calls_per_day"] = {"outside": CALLS_PER_DAY}
        dump["schedules"] = {"beat": 2_000_000}
        dump["dead_after_us"] = int(DEAD_AFTER * 1_000_000)
        dump["marks"] = {"jobs": ["mark", "slot"],
                         "rows": self.rows("SELECT count(*) AS n FROM mark")[0]["n"]}
        path.write_text(json.dumps(dump))
        return dump

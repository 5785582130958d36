"""Where a run measures: fresh databases of each kind, and the table to export."""

import contextlib
import pathlib
import sqlite3
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CLUSTER = ROOT / "tests/harness/pg_cluster.py"

EXPORT_QUERY = "SELECT * FROM sale ORDER BY n_id"

# Ten columns as people export them; the first letter of a name tells the peer what it
# is: n number, d day, t time, s text. The same rows on both databases.
SALE_COLUMNS = """
    n_id bigint PRIMARY KEY, n_quantity bigint, n_price decimal(12, 2),
    n_amount decimal(14, 2), d_sold date, t_paid timestamp, s_code text,
    s_customer text, s_city text, s_memo text"""

SALE_SQLITE = """
    CREATE TABLE sale ({columns});
    INSERT INTO sale
    WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {rows})
    SELECT n, n * 7 % 100 + 1, (n * 7919 % 1000000) / 100.0,
        (n * 7919 % 1000000) * (n * 7 % 100 + 1) / 100.0,
        date('2020-01-01', (n % 2000) || ' days'),
        datetime('2020-01-01', (n % 2000) || ' days', (n * 37 % 86400) || ' seconds'),
        printf('P-%06d', n * 31 % 1000000), '김민수 고객 ' || (n % 5000),
        substr('서울부산대구인천광주', n % 5 * 2 + 1, 2),
        'delivery to the door, 문 앞에 두세요 & call ' || (n * 13 % 9999)
    FROM s;"""

SALE_PG = """
    CREATE TABLE sale ({columns});
    INSERT INTO sale
    SELECT n, n * 7 % 100 + 1, (n * 7919 % 1000000) / 100.0,
        (n * 7919 % 1000000) * (n * 7 % 100 + 1) / 100.0,
        date '2020-01-01' + (n % 2000)::int,
        timestamp '2020-01-01' + (n % 2000) * interval '1 day'
            + (n * 37 % 86400) * interval '1 second',
        'P-' || lpad((n * 31 % 1000000)::text, 6, '0'), '김민수 고객 ' || (n % 5000),
        substr('서울부산대구인천광주', (n % 5 * 2 + 1)::int, 2),
        'delivery to the door, 문 앞에 두세요 & call ' || (n * 13 % 9999)
    FROM generate_series(1::bigint, {rows}) n;
    ANALYZE sale;"""


class Sqlite:
    name = "sqlite"
    csv_tool = "sqlite3 -csv"

    def __init__(self, folder, rows):
        self.ours, self.raw, self.serve, self.data = (
            f"sqlite:{folder}/{name}.db" for name in ("ours", "raw", "serve", "data"))
        with contextlib.closing(sqlite3.connect(folder / "data.db")) as db:
            db.executescript(SALE_SQLITE.format(columns=SALE_COLUMNS, rows=rows))
            db.commit()

    def export_csv(self, query, out):
        with open(out, "wb") as file:
            subprocess.run(["sqlite3", "-csv", "-header", "-readonly",
                            self.data.removeprefix("sqlite:"), query],
                           check=True, stdout=file)

    def rows_of(self, url, query):
        path = url.removeprefix("sqlite:")
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
            return db.execute(query.replace("pawl.", "")).fetchall()


class Postgresql:
    name = "postgresql"
    csv_tool = "psql \\copy"

    def __init__(self, admin, rows):
        self.admin = admin
        self.ours, self.raw, self.serve, self.data = (
            self.create(name) for name in ("ours", "raw", "serve", "data"))
        self.psql(self.data, SALE_PG.format(columns=SALE_COLUMNS, rows=rows))

    def create(self, name):
        self.psql(self.admin, f"CREATE DATABASE bench_{name}")
        return self.admin.rpartition("/")[0] + f"/bench_{name}"

    def psql(self, url, sql):
        done = subprocess.run(["psql", "-X", "-q", "-A", "-t", "-F", "\t",
                               "-v", "ON_ERROR_STOP=1", "-d", url, "-c", sql],
                              check=True, stdout=subprocess.PIPE, text=True)
        return done.stdout

    def export_csv(self, query, out):
        self.psql(self.data, f"\\copy ({query}) to '{out}' csv header")

    def rows_of(self, url, query):
        return [tuple(int(cell) for cell in line.split("\t"))
                for line in self.psql(url, query).splitlines()]


@contextlib.contextmanager
def cluster(folder):
    """The URL of a fresh PostgreSQL; it goes with the run."""
    note = folder / "cluster"
    done = subprocess.run([sys.executable, CLUSTER, "start", note], check=True,
                          stdout=subprocess.PIPE, text=True)
    try:
        names = dict(line.split("=", 1) for line in done.stdout.splitlines())
        yield names["PAWL_TEST_PG"]
    finally:
        subprocess.run([sys.executable, CLUSTER, "stop", note], check=True)


@contextlib.contextmanager
def opened(names, folder, rows):
    unknown = set(names) - {"sqlite", "postgresql"}
    if unknown:
        sys.exit(f"bench/run: no such database: {', '.join(sorted(unknown))}")
    with contextlib.ExitStack() as stack:
        opened_places = []
        if "sqlite" in names:
            opened_places.append(Sqlite(folder, rows))
        if "postgresql" in names:
            opened_places.append(Postgresql(stack.enter_context(cluster(folder)), rows))
        yield opened_places

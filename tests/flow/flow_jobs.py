"""The jobs that flow tests share, as YAML."""

# So many rows, so many milliseconds each, read from PostgreSQL whatever the store is:
# it waits without taking a processor from others. The pad makes the server send
# each row at once instead of collecting a buffer of them.
SLOW = """\
  slow:
    params: {rows: {type: integer, default: 2000}, ms: {type: integer, default: 50}, tag: {type: string, default: ""}}
    duplicates: allow
    retry: none
    estimate: {database: pg, sql: "SELECT cast(:rows AS bigint)"}
    lane: normal
    steps:
      - name: wait
        chunk: 1
        read: {database: pg, sql: "SELECT i, cast(pg_sleep(:ms / 1000.0) AS text) AS slept, repeat('x', 9000) AS pad FROM generate_series(1, :rows) i"}
        write: {file: slow.csv}
"""

# A few rows at once, from the user's database of the store's kind.
QUICK = """\
  quick:
    params: {rows: {type: integer, min: 0, max: 10000000, default: 3}, tag: {type: string, default: ""}}
    duplicates: allow
    retry: none
    lane: normal
    steps:
      - name: export
        read: {database: shop, sql: "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :rows) SELECT i FROM n WHERE :rows > 0"}
        write: {file: quick.csv}
"""

# Routed by size: from 10,000 rows on it is large.
SIZED = """\
  sized:
    params: {rows: {type: integer, min: 0, default: 0}}
    duplicates: allow
    estimate: {database: shop, sql: "SELECT cast(:rows AS bigint)"}
    lane: {large_over: 10000}
    steps:
      - name: export
        read: {database: shop, sql: "SELECT 1 AS one"}
        write: {file: sized.csv}
"""

# Fails in the middle: the tenth row divides by zero or overflows.
BROKEN = """\
  broken:
    duplicates: allow
    retry: none
    steps:
      - name: export
        chunk: 2
        read: {database: pg, sql: "SELECT 100 / (10 - i) AS share FROM generate_series(1, 20) i"}
        write: {file: broken.csv}
  no-table:
    duplicates: allow
    retry: none
    steps:
      - name: export
        read: {database: shop, sql: "SELECT id FROM nowhere"}
        write: {file: nowhere.csv}
"""

# Computes for minutes before its first row.
BURN = """\
  burn:
    duplicates: allow
    retry: none
    steps:
      - name: export
        read: {database: shop, sql: "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000000000) SELECT count(*) AS n FROM n WHERE i % 7 = 3"}
        write: {file: burn.csv}
"""

# A statement on the store itself that takes longer than anybody waits.
_LONG = {"sqlite": "CREATE TABLE never AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL "
                   "SELECT i + 1 FROM n WHERE i < 2000000000) SELECT count(*) AS n FROM n",
         "pg": "SELECT pg_sleep(20)"}


def own(kind):
    """`own` is cut off by whoever asks, `own-limited` by its timeout."""
    text = f"""\
  own:
    duplicates: allow
    retry: none
    steps: [{{name: long, sql: "{_LONG[kind]}"}}]
"""
    return text + variant(text, "own-limited", timeout="1s")


def variant(text, name, **changes):
    """A job of above under another name, with other policies (one line each)."""
    lines = text.splitlines(keepends=True)
    lines[0] = f"  {name}:\n"
    for key, value in changes.items():
        new = [f"    {key}: {value}\n"] if value is not None else []
        at = [i for i, line in enumerate(lines) if line.startswith(f"    {key}:")]
        at = at[0] if at else None
        if at is None:
            lines[1:1] = new
        else:
            lines[at:at + 1] = new
    return "".join(lines)

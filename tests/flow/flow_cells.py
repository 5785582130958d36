"""A table with the cells that go wrong elsewhere, and what each format must say of it."""

# Texts: Korean, emoji beyond 16 bits, what looks like a formula, quotes and line ends,
# blanks at the ends, what XML escapes, leading zeros.
TEXTS = [
    "서울특별시 강남구", "훈민정음 ㅎㅏㄴ글", "👩‍👩‍👧 🇰🇷 😀", "=1+1", "+82-2-123-4567", "-5", "@sum(A1)",
    "\t=tab", 'say "hi", then; go', "line\nbreak", " edges ", "<b>&amp;</b>", "007", "", None,
]
INTEGERS = [0, -1, 9007199254740993, -9223372036854775808, 9223372036854775807, None]
# Up to 15 digits a workbook and SQLite keep as a number.
DECIMALS = ["0.10", "-1234567890123.45", "99999999999999.9", "0.000001", None]
# More digits than a double has: exact on PostgreSQL only.
LONG_DECIMAL = "12345678901234567890.123456789"
DATES = ["2026-02-28", "1999-12-31", "2000-02-29", "1900-03-01", None]
TIMES = ["2026-11-29 20:00:01.250000", "1999-12-31 23:59:59.000000", None]


def rows():
    count = len(TEXTS)
    return [(n + 1, TEXTS[n], INTEGERS[n % len(INTEGERS)], DECIMALS[n % len(DECIMALS)],
             DATES[n % len(DATES)], TIMES[n % len(TIMES)]) for n in range(count)]


def _literal(value):
    if value is None:
        return "NULL"
    if isinstance(value, int):
        # SQLite has no negative literals: -9223372036854775808 would be a double.
        return str(value) if value != -2 ** 63 else "-9223372036854775807 - 1"
    return "'" + value.replace("'", "''") + "'"


def table(kind):
    long = "numeric(40, 20)" if kind == "pg" else "text"
    script = (f"CREATE TABLE cell (id integer PRIMARY KEY, label text, whole bigint, "
              f"amount decimal(20, 6), day date, moment timestamp, long_amount {long});\n")
    for row in rows():
        values = ", ".join(_literal(value) for value in row)
        script += f"INSERT INTO cell VALUES ({values}, '{LONG_DECIMAL}');\n"
    return script


JOB = """\
  cells:
    params:
      format: {type: enum, values: [xlsx, csv, jsonl], default: xlsx}
      raw: {type: boolean, default: false}
    duplicates: allow
    steps:
      - name: export
        chunk: 4
        read: {database: shop, sql: "SELECT id, label, whole, amount, day, moment, long_amount FROM cell ORDER BY id"}
        write: {file: "셀 {format}.{format}", format: "{format}"}
"""

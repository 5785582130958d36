"""Much: constant memory, and half a million rows of ten columns, every cell equal."""

import csv
import io
import os
import shutil
import subprocess
import time

import pytest
from pawl_env import FULL, PAWL, Site, wait_for

ROWS = 500_000 if FULL else 50_000
MEMORY_ROWS = 2_000_000 if FULL else 300_000
MEMORY_LIMIT_KIB = 64 * 1024
SHEET_ROWS = 1_048_576

JOBS = """\
  big:
    params:
      format: {type: enum, values: [xlsx, csv, jsonl], default: xlsx}
    steps:
      - name: export
        read: {database: shop, sql: "SELECT id, small, big, price, ratio, born, until, name, city, note FROM big ORDER BY id"}
        write: {file: "big.{format}", format: "{format}"}
  long:
    retry: none
    params:
      rows: {type: integer}
      format: {type: enum, values: [xlsx, csv, jsonl], default: xlsx}
    steps:
      - name: export
        read: {database: shop, sql: "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :rows) SELECT i, i * 7 AS seven, 'row ' || i AS label, '서울특별시 강남구' AS place FROM n"}
        write: {file: "long.{format}", format: "{format}"}
"""

# id, integers, decimals with two and four places, dates, Korean texts.
ROW = ("{n} AS id, {n} % 1000 - 500 AS small, cast({n} AS bigint) * 987654 AS big, {two} AS price, "
       "{four} AS ratio, {day1} AS born, {day2} AS until, "
       "'김' || {n} || '님' AS name, '서울특별시 ' || ({n} % 25) || '구' AS city, "
       "CASE WHEN {n} % 7 = 0 THEN NULL ELSE '비고, \"' || {n} || '\"' END AS note")


def make_table(site):
    site.shop("CREATE TABLE big (id integer PRIMARY KEY, small integer, big bigint, "
              "price decimal(12, 2), ratio decimal(12, 4), born date, until date, "
              "name text, city text, note text);")
    if site.kind == "pg":
        site.shop("INSERT INTO big SELECT " + ROW.format(
            n="n", two="(n * 37 % 1000000) / 100.0", four="(n * 13 % 1000000) / 10000.0",
            day1="date '1970-01-01' + n % 20000", day2="date '2030-12-31' - n % 3000")
            + f" FROM generate_series(1, {ROWS}) n")
    else:
        site.shop("INSERT INTO big WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 "
                  f"FROM s WHERE n < {ROWS}) SELECT " + ROW.format(
                      n="n", two="(n * 37 % 1000000) / 100.0",
                      four="(n * 13 % 1000000) / 10000.0",
                      day1="date('1970-01-01', '+' || (n % 20000) || ' days')",
                      day2="date('2030-12-31', '-' || (n % 3000) || ' days')") + " FROM s;")


def expected_rows():
    """The same table, made by nobody's database."""
    import datetime
    first, last = datetime.date(1970, 1, 1), datetime.date(2030, 12, 31)
    for n in range(1, ROWS + 1):
        cents, parts = n * 37 % 1000000, n * 13 % 1000000
        yield [str(n), str(n % 1000 - 500), str(n * 987654), plain(cents, 2),
               plain(parts, 4), str(first + datetime.timedelta(n % 20000)),
               str(last - datetime.timedelta(n % 3000)), f"김{n}님",
               f"서울특별시 {n % 25}구", "" if n % 7 == 0 else f'비고, "{n}"']


def plain(units, places):
    """units / 10**places without zeros at its end."""
    text = f"{units // 10 ** places}.{units % 10 ** places:0{places}}"
    return text.rstrip("0").rstrip(".")


def plain_text(text):
    return text.rstrip("0").rstrip(".") if "." in text else text


def compare(rows):
    count = 0
    for got, want in zip(rows, expected_rows(), strict=True):
        got[3], got[4] = plain_text(got[3]), plain_text(got[4])
        assert got == want
        count += 1
    assert count == ROWS


@pytest.fixture(scope="module", params=["sqlite", "pg"])
def big(request, cluster):
    site = Site(request.param, cluster, JOBS)
    try:
        make_table(site)
        yield site.up()
        site.close()
    finally:
        site.discard()


def export(site, job, **params):
    begin = time.monotonic()
    request_id = site.submit_id(job, **params)
    answered = time.monotonic() - begin
    request = site.wait_done(request_id, 600)
    took = time.monotonic() - begin
    rows = request["result"]["rows"]
    print(f"{site.kind} {params}: answered in {answered * 1000:.0f} ms, {rows} rows in "
          f"{took:.1f} s, {rows / took:.0f} rows/s, {request['result']['bytes']} bytes")
    return request, answered


def test_B1_csv_of_much_has_every_cell_and_the_answer_came_at_once(big):
    request, answered = export(big, "big", format="csv")
    assert answered < 0.2 and request["result"]["rows"] == ROWS
    body = big.result(request["requestId"])
    rows = csv.reader(io.StringIO(body.decode("utf-8"), newline=""))
    assert next(rows) == ["id", "small", "big", "price", "ratio", "born", "until", "name",
                          "city", "note"]
    compare(rows)


@pytest.mark.skipif(not FULL, reason="PAWL_FULL only: LibreOffice takes its time")
def test_B1_libreoffice_opens_the_workbook_and_shows_every_cell(big, tmp_path):
    if not shutil.which("soffice"):
        pytest.skip("LibreOffice is not here; script/bootstrap --full installs it")
    request, _ = export(big, "big", format="xlsx")
    book = tmp_path / "big.xlsx"
    book.write_bytes(big.result(request["requestId"]))
    # CSV of all sheets' values as they are shown: UTF-8, quotes where needed.
    done = subprocess.run(
        ["soffice", "--headless", f"-env:UserInstallation=file://{tmp_path}/profile",
         "--convert-to", "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,false,false",
         "--outdir", tmp_path, book],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", timeout=1200)
    assert done.returncode == 0 and (tmp_path / "big.csv").exists(), done.stdout
    with open(tmp_path / "big.csv", encoding="utf-8", newline="") as made:
        rows = csv.reader(made)
        assert next(rows)[0] == "id"
        compare(rows)


def sanitized():
    with open(PAWL, "rb") as program:
        text = program.read()
    return b"__asan_init" in text or b"__tsan_init" in text


@pytest.mark.skipif(sanitized(), reason="a sanitizer keeps memory of its own")
@pytest.mark.parametrize("form", ["xlsx", "csv", "jsonl"] if FULL else ["xlsx", "csv"])
def test_B1_memory_stays_constant_while_much_is_exported(big, form):
    big.wait_done(big.submit_id("long", rows=10, format=form))
    server = big.worker
    idle = server.memory("VmRSS")
    server.forget_peak()
    request, _ = export(big, "long", rows=MEMORY_ROWS, format=form)
    assert request["result"]["rows"] == MEMORY_ROWS
    peak = server.memory("VmHWM") - idle
    print(f"{big.kind} {form}, {MEMORY_ROWS} rows: peak {peak / 1024:.1f} MiB above "
          f"{idle / 1024:.1f} MiB")
    assert peak <= MEMORY_LIMIT_KIB
    # So is what a download takes.
    server = big.api
    idle = server.memory("VmRSS")
    server.forget_peak()
    assert len(big.result(request["requestId"])) == request["result"]["bytes"]
    assert server.memory("VmHWM") - idle <= MEMORY_LIMIT_KIB


def test_B20_a_kill_in_a_big_export_leaves_no_part_that_is_of_no_use(big):
    request_id = big.submit_id("long", rows=3_000_000, format="csv")
    wait_for(lambda: any(p.stat().st_size > 10_000_000 for p in big.parts()),
             "the part has 10 MB", 60)
    big.worker.kill()
    assert big.parts()
    big.restart_worker()
    assert big.wait_final(request_id)["outcome"] == "WORKER_LOST"
    assert big.loose_parts() == []
    big.wait_done(big.submit_id("long", rows=10, format="csv"))  # another instance
    assert big.parts() == [] and os.listdir(big.folder / "results/parts") == []

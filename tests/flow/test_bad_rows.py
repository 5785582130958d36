"""What comes in bad: each is skipped or fails as configured, told with file, line, column or
item; what is good beside it is there, and what was skipped is noted."""

import io
import json
import zipfile

import pytest
from pawl_env import Site

JOB = """\
  {how}-{name}:
    retry: none
    steps:
      - name: load
        chunk: 4
        {skip}
        read: {read}
        write: {write}
"""
FILE = "FOLDER/{name}.in"
CSV = f'{{csv: "{FILE}", columns: {{n: integer}}}}'
JSONL = f'{{jsonl: "{FILE}", columns: {{code: text, n: integer}}}}'
XML = f'{{xml: "{FILE}", item: i, columns: {{code: text, n: integer}}}}'
SQL = 'rows: "INSERT INTO {table} (code, n) VALUES (:code, :n)"'


def half_a_zip():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("a.xml", "<r>" + "".join(
            f"<i><code>c{n}</code><n>{n * n}</n></i>" for n in range(999)) + "</r>")
    return out.getvalue()[:-900]


GOOD = '{"code":"a","n":1}\n%s\n{"code":"d","n":4}\n'
BOMB = ('<?xml version="1.0"?>\n<!DOCTYPE r [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>\n'
        "<r><i><code>&b;</code></i></r>")
# name: what the reader says, the file, what must be told of it, the class that skips it
# (None: nothing does, as the rest of the file cannot be read).
FILES = {
    "width": (CSV, "code,n\na,1\nb\nd,4\n", "width.in:3: 1 fields", "format"),
    "quote": (CSV, 'code,n\na,1\n"b"x,2\nd,4\n', "quote.in:3: field 1: text behind", "parse"),
    "unclosed": (CSV, 'code,n\na,1\n"b,2\nd,4\n', "unclosed.in:3: field 1: the quote is never", None),
    "number": (CSV, "code,n\na,1\nb,2.5\nd,4\n", "number.in:3: column n:", "format"),
    "letters": (CSV, b"code,n\na,1\nb\xb0,2\nd,4\n", "letters.in:3:2: field 1: byte 0xb0", "parse"),
    "nul": (CSV, b"code,n\na,1\nb\0c,2\nd,4\n", "nul.in:3:2: field 1: a NUL byte", "parse"),
    "twice": (JSONL, GOOD % '{"code":"b","code":"c"}', "twice.in:2:19: duplicate object key", "parse"),
    "lone": (JSONL, GOOD % '{"code":"\\ud800"}', "lone.in:2:17: invalid Unicode", "parse"),
    "nested": (JSONL, GOOD % "[1]", "nested.in:2: ", "format"),
    "bomb": (XML, BOMB, "bomb.in:2:13: a document type", None),
    "page": (XML, "<!DOCTYPE html><html>Sorry</html>", "is it an HTML page?", None),
    "half": (XML, half_a_zip(), "half.in is no whole ZIP file", None),
}
ROWS = "code,n\na,1\nb,2\nfifth,3\nd,4\ne,5\n"
# Row 3 is refused by what the table says of its columns, or at the commit.
WRITES = {
    "fit": ("shop, " + SQL, "strict"),
    "fit-table": ("shop, table: {table}", "strict"),
    "fit-upsert": ("shop, table: {table}, mode: upsert, key: [code]", "strict"),
    "fit-alone": ("shop, checkpoint: none, " + SQL, "strict"),
    "fit-main": ("main, " + SQL, "main_strict"),
    "late": ("main, " + SQL, "main_bound"),
    "late-table": ("main, table: {table}", "main_bound"),
}


def table(kind, name, more):
    code = "varchar(4)" if kind == "pg" else "text CHECK (length(code) < 5)"
    code = code if more else "text REFERENCES known DEFERRABLE INITIALLY DEFERRED"
    return f"CREATE TABLE {name} (code {code} PRIMARY KEY, n integer);"


def jobs(folder):
    text = ""
    for name, (read, _, _, kind) in FILES.items():
        write = f'{{database: shop, rows: "INSERT INTO loaded VALUES (\'{{job}}\', :code, :n)"}}'
        text += both(name, read, write, kind or "parse, format")
    for name, (write, where) in WRITES.items():
        text += both(name, CSV, "{database: " + write.format(table=where) + "}", "constraint")
    return text.replace("FOLDER", str(folder))


def both(name, read, write, kinds):
    read = read.replace("{name}", name)
    return "".join(
        JOB.format(how=how, name=name, skip=skip, read=read,
                   write=write.replace("{job}", f"{how}-{name}"))
        for how, skip in (("fail", ""), ("skip", f"skip: {{limit: 1, on: [{kinds}]}}")))


@pytest.fixture(scope="module", params=["sqlite", "pg"])
def site(request, cluster):
    site = Site(request.param, cluster, "")
    try:
        site.configure(jobs(site.folder))
        for name, (_, text, _, _) in FILES.items():
            (site.folder / f"{name}.in").write_bytes(text if isinstance(text, bytes) else text.encode())
        for name in WRITES:
            (site.folder / f"{name}.in").write_text(ROWS)
        site.shop("CREATE TABLE loaded (job text, code text, n integer);"
                  + table(site.kind, "strict", True))
        site.pawl("migrate")
        site.store_do("CREATE TABLE known (code text PRIMARY KEY);"
                      "INSERT INTO known VALUES ('a'), ('b'), ('d'), ('e');"
                      + table(site.kind, "main_strict", True) + table(site.kind, "main_bound", False))
        if site.kind == "pg":
            site.store_do("GRANT ALL ON ALL TABLES IN SCHEMA public TO pawl_worker")
        yield site.up()
        site.close()
    finally:
        site.discard()


def skips(site, request):
    return site.call("GET", f"/api/v1/executions/{request['executionId']}").json["skips"]


@pytest.mark.parametrize("name", FILES)
def test_A38_a_record_that_cannot_be_read_is_skipped_or_fails(site, name):
    _, _, told, kind = FILES[name]
    failed = site.wait_final(site.submit_id(f"fail-{name}"))
    assert failed["outcome"] == "ERROR" and told in failed["detail"], failed
    assert site.shop_rows(f"SELECT code FROM loaded WHERE job = 'fail-{name}'") == []
    ended = site.wait_final(site.submit_id(f"skip-{name}"))
    if not kind:
        assert ended["outcome"] == "ERROR" and told in ended["detail"], ended
        return
    assert ended["outcome"] == "COMPLETED", ended
    assert site.shop_rows(f"SELECT code, n FROM loaded WHERE job = 'skip-{name}' ORDER BY n") == [
        {"code": "a", "n": 1}, {"code": "d", "n": 4}]
    (skip,) = skips(site, ended)
    assert (skip["item"], skip["class"]) == (2, kind) and told in skip["message"], skip


@pytest.mark.parametrize("name", WRITES)
def test_A38_a_row_that_its_table_refuses_is_skipped_or_fails(site, name):
    write, where = WRITES[name]
    look = site.sql if where.startswith("main") else site.shop_rows
    where_sql = f"SELECT code FROM {where} ORDER BY code"
    failed = site.wait_final(site.submit_id(f"fail-{name}"))
    assert failed["outcome"] == "ERROR", failed
    if name.startswith("fit"):
        assert "row 3" in failed["detail"], failed
    elif site.kind == "pg":
        assert "Key (code)=(fifth)" in failed["detail"], failed
    else:
        assert "chunk 1: commit: FOREIGN KEY" in failed["detail"], failed
    assert look(where_sql) == []
    done = site.wait_final(site.submit_id(f"skip-{name}"))
    assert done["outcome"] == "COMPLETED", done
    assert [row["code"] for row in look(where_sql)] == ["a", "b", "d", "e"]
    (skip,) = skips(site, done)
    assert (skip["item"], skip["class"], skip["values"]) == (
        3, "constraint", {"code": "fifth", "n": "3"}), json.dumps(skip)
    (site.store_do if where.startswith("main") else site.shop)(f"DELETE FROM {where}")

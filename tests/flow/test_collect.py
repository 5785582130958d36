"""Collecting from an API: budgets, pages, outcomes, what is left out, and what goes on."""

import collections
import hashlib
import http.server
import io
import json
import os
import textwrap
import threading
import time
import urllib.parse
import zipfile

import pytest

from pawl_env import Site, psql, wait_for

SECRET = "s3cret/key+with=signs"


class Standin:
    """Counts calls by district and month; replies as told."""

    def __init__(self):
        self.calls = collections.Counter()
        self.times = []
        self.queries = []
        self.headers = []
        self.reply = lambda query: (200, {"code": "000", "rows": [{"apt": "A", "amount": "82,500"}]})
        self.delay = 0.0
        standin = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                parts = urllib.parse.urlsplit(self.path)
                query = dict(urllib.parse.parse_qsl(parts.query, keep_blank_values=True))
                length = int(self.headers.get("Content-Length") or 0)
                query["path"] = parts.path
                query["sent"] = self.rfile.read(length).decode() if length else ""
                standin.calls[query.get("district", ""), query.get("month", "")] += 1
                standin.times.append(time.monotonic())
                standin.queries.append(query)
                standin.headers.append(dict(self.headers))
                if standin.delay:
                    time.sleep(standin.delay)
                status, body, *more = standin.reply(query)
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                for name, value in (more[0] if more else {}).items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_POST = do_GET

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def total(self):
        return sum(self.calls.values())

    def close(self):
        self.server.shutdown()
        self.server.server_close()


PENDING = ("SELECT c.district, c.month FROM cell c WHERE NOT EXISTS (SELECT 1 FROM trade t "
           "WHERE t.district = c.district AND t.month = c.month) ORDER BY c.month DESC, c.district")


def collect(url, http="", step="", name="cells", read=None, more="", budget="geo"):
    budget = f"budget: {budget}," if budget else ""
    return f"""\
  {name}:
    needs_keys: [GEO_KEY]
    retry: none
    steps:
      - name: collect
        chunk: 20
        {step}
        read: {{database: main, restart: requery, sql: "{read or PENDING}"}}
        process:
          - http:
              url: "{url}/trades"
              query: {{district: "{{district}}", month: "{{month}}", serviceKey: "{{key:GEO_KEY}}"}}
              {budget if not budget else "budget: geo"}
              rows: {{json: rows}}
              fields: {{apt: apt, amount: amount}}
              outcomes: {{code: code, message: message, codes: {{"000": ok, "013": no-data, "020": limit, "010": fatal}}}}
              {http}
          - map: {{cast: {{amount: integer}}}}
        write: {{database: main, rows: "INSERT INTO trade (district, month, apt, amount) VALUES (:district, :month, :apt, :amount)"}}
{more}"""


# What a provider says in the first minutes of a day closes no day.
ZONE = "Asia/Seoul" if (time.time() + 9 * 3600) % 86400 > 600 else "Europe/Berlin"
SETTINGS = """\
budgets: {{geo: {{per_day: {per_day}, zone: """ + ZONE + """{spacing}}}}}
keys: [GEO_KEY]
"""


@pytest.fixture
def standin():
    standin = Standin()
    yield standin
    standin.close()


# Starting a site takes longer than most of these tests: on PostgreSQL the quick suite
# has those whose statements differ there.
QUICK_ON_PG = ("test_A30_A31_", "test_A38_items", "test_A37_A38_")


@pytest.fixture(params=["sqlite", "pg"])
def place(request, cluster, standin):
    if (request.param == "pg" and not os.environ.get("PAWL_FULL")
            and not request.node.name.startswith(QUICK_ON_PG)):
        pytest.skip("with PAWL_FULL")
    sites = []

    def make(jobs, per_day=1000, spacing="", cells=(3, 24)):
        site = Site(request.param, cluster, jobs,
                    SETTINGS.format(per_day=per_day,
                                    spacing=spacing and f", spacing: {spacing}"))
        sites.append(site)
        site.pawl("migrate")
        if site.kind == "pg":
            site.store_do("ALTER DEFAULT PRIVILEGES IN SCHEMA public "
                          "GRANT ALL ON TABLES TO pawl_worker, pawl_api")
        site.store_do("CREATE TABLE cell (district text, month text)")
        site.store_do("CREATE TABLE trade (district text, month text, apt text, amount bigint CHECK (amount < 1000000))")
        values = ", ".join(f"('d{d}', '2026{m:02}')" for d in range(cells[0]) for m in range(cells[1]))
        site.store_do(f"INSERT INTO cell VALUES {values}")
        if site.kind == "sqlite":
            site.start("serve", GEO_KEY=SECRET)
        else:
            site.start("api")
            site.start_worker("worker", GEO_KEY=SECRET)
        return site

    yield make
    for site in sites:
        site.close()


def each_once(standin, count):
    assert standin.total() == count
    assert set(standin.calls.values()) == {1}


def test_A30_A31_a_budget_stops_the_run_and_asking_again_goes_on(place, standin):
    site = place(collect(standin.url, step="concurrency: 4"), per_day=30)
    first = site.wait_final(site.submit_id("cells"))
    assert first["status"] == "DONE" and first["outcome"] == "STOPPED", first
    assert "geo" in first["detail"] and "30 of 30" in first["detail"]
    each_once(standin, 30)
    assert site.one("SELECT count(*) FROM trade") == 30
    assert site.one("SELECT used FROM pawl.budget") == 30
    site.store_do("DELETE FROM pawl.budget")
    second = site.wait_final(site.submit_id("cells"))
    assert second["outcome"] == "STOPPED"
    site.store_do("DELETE FROM pawl.budget")
    third = site.wait_final(site.submit_id("cells"))
    assert third["outcome"] == "COMPLETED", third
    each_once(standin, 72)
    assert site.one("SELECT count(*) FROM trade") == 72
    assert site.one("SELECT sum(amount) FROM trade") == 72 * 82500


def test_A30_A31_what_a_budget_has_stopped_does_not_go_on_by_itself(place, standin):
    """Not even with `drained`, which is about workers that leave."""
    jobs = collect(standin.url).replace("retry: none", "retry: {drained: true}")
    site = place(jobs, per_day=5)
    first = site.wait_final(site.submit_id("cells"))
    assert first["outcome"] == "STOPPED" and "5 of 5" in first["detail"]
    assert site.count("request") == 1


def test_A31_max_calls_are_exact_under_concurrency(place, standin):
    site = place(collect(standin.url, step="concurrency: 4"))
    standin.delay = 0.02
    answer = site.post("cells", maxCalls=7)
    request = site.wait_final(answer.json["requestId"])
    assert request["outcome"] == "STOPPED" and "maxCalls" in request["detail"]
    each_once(standin, 7)
    assert site.one("SELECT count(*) FROM trade") == 7
    assert site.wait_final(site.submit_id("cells"))["outcome"] == "COMPLETED"
    each_once(standin, 72)


def test_A30_calls_keep_their_distance(place, standin):
    site = place(collect(standin.url, step="concurrency: 8"), spacing="40ms", cells=(1, 12))
    site.wait_done(site.submit_id("cells"))
    each_once(standin, 12)
    assert standin.times[-1] - standin.times[0] >= 11 * 0.040 - 0.02


def test_A13_keys_are_sent_and_never_told(place, standin):
    site = place(collect(standin.url, http="retry: none"), cells=(1, 2))
    standin.reply = lambda query: (200, {"code": "010", "message": f"bad key {SECRET} given"})
    request = site.wait_final(site.submit_id("cells"))
    assert request["outcome"] == "ERROR" and "code 010" in request["detail"], request
    assert standin.queries[0]["serviceKey"] == SECRET
    told = json.dumps(request) + site.worker.log()
    assert "s3cret" not in told
    for body in (f"no right for {SECRET}", "x" * 45 + SECRET, "{" + SECRET,
                 "the key " + SECRET.replace("/", "\\/"), urllib.parse.quote(SECRET, safe="")):
        standin.reply = lambda query, body=body: (200, body.encode())
        request = site.wait_final(site.submit_id("cells"))
        assert request["outcome"] == "ERROR" and "JSON" in request["detail"], request
        assert "s3cret" not in json.dumps(request) + site.worker.log(), body


def test_A22_a_fatal_code_keeps_what_was_done_before(place, standin):
    site = place(collect(standin.url, http="retry: none"), cells=(1, 12))
    bad = {"202600"}
    standin.reply = lambda query: (
        (200, {"code": "010", "message": "no right"}) if query["month"] in bad
        else (200, {"code": "000", "rows": [{"apt": "A", "amount": 1}]}))
    assert site.wait_final(site.submit_id("cells"))["outcome"] == "ERROR"
    assert site.one("SELECT count(*) FROM trade") == 11
    bad.clear()
    assert site.wait_final(site.submit_id("cells"))["outcome"] == "COMPLETED"
    assert standin.calls["d0", "202600"] == 2
    assert standin.total() == 13


def test_A30_the_provider_has_the_last_word(place, standin):
    site = place(collect(standin.url))
    standin.reply = lambda query: (
        (200, {"code": "020"}) if standin.total() > 5
        else (200, {"code": "000", "rows": [{"apt": "A", "amount": 1}]}))
    request = site.wait_final(site.submit_id("cells"))
    assert request["outcome"] == "STOPPED" and "provider" in request["detail"]
    assert site.one("SELECT count(*) FROM trade") == 5
    again = site.wait_final(site.submit_id("cells"))
    assert again["outcome"] == "STOPPED"
    assert standin.total() == 6


def test_A38_items_that_fail_are_left_out_and_noted(place, standin):
    site = place(collect(standin.url, http="retry: none",
                         step="skip: {limit: 5, on: [upstream, parse, constraint]}"), cells=(1, 12))
    replies = {
        "202601": (200, b"<!DOCTYPE html><html>down</html>"),
        "202602": (500, {"code": "999"}),
        "202603": (200, {"code": "000", "rows": [{"apt": "A", "amount": "many"}]}),
        "202604": (200, {"code": "000", "rows": [{"apt": "A", "amount": "9,000,000"}]}),
    }
    standin.reply = lambda query: replies.get(
        query["month"], (200, {"code": "000", "rows": [{"apt": "A", "amount": 1}]}))
    request = site.wait_final(site.submit_id("cells"))
    assert request["outcome"] == "COMPLETED", request
    assert site.one("SELECT count(*) FROM trade") == 8
    by_month = {json.loads(row["item_values"])["month"]: (row["class"], row["message"])
                for row in site.sql("SELECT item_values, class, message FROM pawl.step_skip")}
    assert {month: told[0] for month, told in by_month.items()} == {
        "202601": "upstream", "202602": "upstream", "202603": "parse", "202604": "constraint"}
    assert "HTML" in by_month["202601"][1] and "month=202601" in by_month["202601"][1]
    assert "amount" in by_month["202603"][1]
    told = site.call("GET", f"/api/v1/executions/{request['executionId']}").json["skips"]
    assert sorted(skip["values"]["month"] for skip in told) == sorted(by_month)
    assert site.sql("SELECT read_count, write_count, skip_count FROM pawl.step_execution") == [
        {"read_count": 12, "write_count": 8, "skip_count": 4}]


def test_A38_items_that_fail_are_tried_again_and_a_stop_ends_the_wait(place, standin):
    site = place(collect(standin.url, http="retry: none", name="soon",
                         step="retry: {on: [upstream], attempts: 3, backoff: 10ms}")
                 + collect(standin.url, http="retry: none", name="late",
                           step="retry: {on: [upstream], attempts: 3, backoff: 1h, max_backoff: 1h}"),
                 cells=(1, 12))
    bad = collections.Counter({"202604": 2, "202607": 1, "202609": 2})

    def reply(query):
        bad[query["month"]] -= 1
        return (500, b"busy") if bad[query["month"]] >= 0 else (
            200, {"code": "000", "rows": [{"apt": "A", "amount": 1}]})

    standin.reply = reply
    request = site.wait_final(site.submit_id("soon"))
    assert request["outcome"] == "COMPLETED", request
    assert standin.total() == 12 + 5
    assert site.one("SELECT count(*) FROM trade") == 12
    site.store_do("DELETE FROM trade WHERE month IN ('202603', '202604')")
    bad = collections.Counter({"202603": 99})
    waiting = site.submit_id("late")
    wait_for(lambda: standin.calls["d0", "202603"] == 2, "it is tried, and waits")
    site.pawl("stop", str(waiting))
    stopped = site.wait_final(waiting)
    assert stopped["outcome"] == "STOPPED", stopped
    assert site.one("SELECT count(*) FROM trade") == 11  # what was done is kept
    bad.clear()
    assert site.wait_final(site.submit_id("late"))["outcome"] == "COMPLETED"
    assert standin.calls["d0", "202604"] == 4  # not once more


def test_A30_an_item_that_no_day_has_calls_for_is_told(place, standin):
    pages = "pages: {param: page, size_param: n, size: 2, total: total}"
    told = collect(standin.url, http=pages, name="told", step="skip: {limit: 1, on: [rejected]}")
    untold = collect(standin.url, http=pages.replace(", total: total", ""), name="untold")
    site = place(told + untold, per_day=6, cells=(1, 3))

    def reply(query):
        rows = 13 if query["month"] == "202602" else 4
        first = (int(query["page"]) - 1) * 2
        return 200, {"code": "000", "total": rows, "rows": [
            {"apt": f"A{n}", "amount": 1} for n in range(first, min(rows, first + 2))]}

    standin.reply = reply
    done = site.wait_final(site.submit_id("told"))
    assert done["outcome"] == "COMPLETED", done
    assert standin.total() == 1 + 2 * 2  # the first page told
    message = site.one("SELECT message FROM pawl.step_skip")
    assert "month=202602" in message and "needs 7 calls" in message, message
    assert "budget geo has 6 a day" in message and "fewer rows" in message, message
    site.store_do("DELETE FROM trade")
    site.store_do("DELETE FROM pawl.budget")
    failed = site.wait_final(site.submit_id("untold"))
    assert failed["outcome"] == "ERROR", failed
    assert "needs at least 7 calls" in failed["detail"], failed
    assert standin.total() == 5 + 6


# --- steps without rows ---

def load_job(url, more="", write_check=""):
    return f"""\
  load:
    needs_keys: [GEO_KEY]
    retry: none
    steps:
      - name: download
        fetch:
          url: "{url}/file.zip"
          query: {{key: "{{key:GEO_KEY}}"}}
          file: corp.csv
          unzip: "list.csv"
          retry: {{attempts: 2, wait: 10ms}}
          outcomes: {{code: status, message: message, codes: {{"020": limit}}}}
          {more}
      - name: load
        chunk: 100
        read: {{csv: "run:corp.csv", restart: beginning}}
        write: {{database: main, rows: "INSERT INTO trade (district, month, apt) VALUES (:code, :name, 'x') ON CONFLICT DO NOTHING"}}
      - name: mark
        sql: ["INSERT INTO cell VALUES ('done', 'done')", "INSERT INTO cell VALUES ('again', 'done')"]
"""


def zip_of(text, name="list.csv"):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, text)
    return out.getvalue()


def lines(count, order=1):
    rows = [f"c{n},n{n}" for n in range(count)][::order]
    return "code,name\n" + "\n".join(rows) + "\n"


def test_A37_A38_a_fetched_file_is_used_again_and_made_again(place, standin):
    site = place(load_job(standin.url))
    site.store_do("CREATE UNIQUE INDEX trade_code ON trade (district)")
    # Row 250 does not fit: the run fails in the middle of the second step.
    site.store_do("CREATE TABLE blocked (district text)")
    standin.reply = lambda query: (200, zip_of(lines(300)))
    site.store_do("ALTER TABLE trade RENAME COLUMN apt TO flat")
    assert site.wait_final(site.submit_id("load"))["outcome"] == "ERROR"
    assert standin.total() == 1
    site.store_do("ALTER TABLE trade RENAME COLUMN flat TO apt")
    kept = list((site.folder).glob("state*/tmp-kept/*/corp.csv"))
    assert len(kept) == 1
    standin.reply = lambda query: (200, zip_of(lines(300, order=-1)))
    done = site.wait_final(site.submit_id("load"))
    assert done["outcome"] == "COMPLETED", done
    assert standin.total() == 1  # the file was there
    assert site.one("SELECT count(*) FROM trade") == 300
    assert site.one("SELECT count(*) FROM cell WHERE month = 'done'") == 2
    assert not list(site.folder.glob("state*/tmp-kept/*/corp.csv"))
    # And once more with the file gone between the two.
    site.store_do("ALTER TABLE trade RENAME COLUMN apt TO flat")
    assert site.wait_final(site.submit_id("load"))["outcome"] == "ERROR"
    assert standin.total() == 2
    for path in site.folder.glob("state*/tmp-kept/*/corp.csv"):
        path.unlink()
    site.store_do("ALTER TABLE trade RENAME COLUMN flat TO apt")
    assert site.wait_final(site.submit_id("load"))["outcome"] == "COMPLETED"
    assert standin.total() == 3


def test_A37_what_comes_instead_of_the_file_is_told(place, standin):
    whole = zip_of(lines(300))
    site = place(load_job(standin.url))
    cases = [
        (whole[:len(whole) // 2], "cut off"),
        (b"<html>busy</html>", "not a zip"),
        (zip_of("x", name="other.csv"), "other.csv"),
        (whole.replace(b"PK\x01\x02", b"PK\x01\x03"), "no entry"),
    ]
    for body, told in cases:
        standin.reply = lambda query, body=body: (200, body)
        before = standin.total()
        request = site.wait_final(site.submit_id("load"))
        assert request["outcome"] == "ERROR" and told in request["detail"], (told, request)
        assert standin.total() == before + 2
    standin.reply = lambda query: (200, {"status": "020", "message": "enough"})
    request = site.wait_final(site.submit_id("load"))
    assert request["outcome"] == "STOPPED" and "enough" in request["detail"], request


def test_A37_what_is_fetched_has_a_ceiling(place, standin):
    site = place(load_job(standin.url, more="max_bytes: 20KiB"))
    standin.reply = lambda query: (200, b"x" * 20481)
    request = site.wait_final(site.submit_id("load"))
    assert request["outcome"] == "ERROR" and "20480" in request["detail"], request
    assert "max_bytes" in request["detail"] and standin.total() == 1
    standin.reply = lambda query: (200, f"no zip for {SECRET}".encode())
    request = site.wait_final(site.submit_id("load"))
    assert "not a zip" in request["detail"] and "s3cret" not in json.dumps(request), request


def test_A37_size_and_hash_are_checked(place, standin):
    text = lines(300)
    good = hashlib.sha256(text.encode()).hexdigest()
    site = place(load_job(standin.url, more=f"sha256: {good}\n          min_bytes: 100"))
    standin.reply = lambda query: (200, zip_of(lines(299)))
    assert "SHA-256" in site.wait_final(site.submit_id("load"))["detail"]
    standin.reply = lambda query: (200, zip_of("code,name\n"))
    assert "bytes" in site.wait_final(site.submit_id("load"))["detail"]
    standin.reply = lambda query: (200, zip_of(text))
    assert site.wait_final(site.submit_id("load"))["outcome"] == "COMPLETED"


def test_A30_a_step_makes_one_call(place, standin):
    site = place(f"""\
  notify:
    params: {{who: {{type: string}}}}
    duplicates: allow
    steps:
      - name: tell
        http: {{url: "{standin.url}/tell", json: {{to: "{{who}}", n: [1, true]}}, headers: {{X-Who: "{{who}}"}}, budget: geo, retry: {{attempts: 3, wait: 5ms}}}}
""")
    replies = [(503, b"busy", {"Retry-After": "0"}), (200, b"thanks")]
    standin.reply = lambda query: replies.pop(0)
    assert site.wait_final(site.submit_id("notify", who='a "b" & c'))["outcome"] == "COMPLETED"
    assert json.loads(standin.queries[1]["sent"]) == {"to": 'a "b" & c', "n": [1, True]}
    assert standin.headers[1]["X-Who"] == 'a "b" & c'
    assert site.one("SELECT used FROM pawl.budget") == 2
    bad = site.wait_final(site.submit_id("notify", who="a\nX-Evil: 1"))
    assert bad["outcome"] == "ERROR" and "control character" in bad["detail"]
    assert len(standin.queries) == 2


def test_A7_A30_a_forecast_tells_and_limits_nothing(place, standin):
    job = collect(standin.url).replace("    retry: none\n", f"""    retry: none
    calls: {{budget: geo, per_item: 2}}
    estimate: {{sql: "SELECT count(*) FROM cell"}}
""", 1)
    site = place(job, per_day=30, cells=(1, 20))
    answer = site.post("cells").json
    assert (answer["plannedCalls"], answer["dailyLimitHint"], answer["usedToday"]) == (40, 30, 0)
    assert "30 left" in answer["warning"]
    done = site.wait_final(answer["requestId"])
    assert done["outcome"] == "COMPLETED" and standin.total() == 20
    assert site.one("SELECT max_calls IS NULL AS free FROM pawl.request") in (True, 1)
    assert "10 left" in site.pawl("submit", "cells", "--json").stderr
    budget = site.call("GET", "/api/v1/budgets").json["items"][0]
    assert (budget["budget"], budget["perDay"], budget["usedToday"], budget["left"]) == ("geo", 30, 20, 10)
    assert "Asia/Seoul" in site.pawl("budgets").stdout
    site.store_do("DELETE FROM trade")
    stopped = site.wait_final(site.post("cells").json["requestId"])
    assert stopped["outcome"] == "STOPPED"
    why = site.call("GET", f"/api/v1/requests/{stopped['requestId']}/why").json
    assert "budget geo" in why["reasons"][0]["text"].lower()
    assert "used up until" in why["reasons"][0]["text"]


# --- shapes of replies ---

def api_job(url, http, fields="{v: v}", process_more="", columns="(:district, :month, :v, NULL)"):
    return f"""\
  shapes:
    needs_keys: [GEO_KEY]
    retry: none
    duplicates: allow
    params: {{kinds: {{type: list, items: {{type: string}}, default: [A, B]}}}}
    steps:
      - name: collect
        chunk: 5
        read: {{database: main, restart: requery, sql: "{PENDING}"}}
        process:
          - http:
              url: "{url}/x/{{district}}"
              query: {{district: "{{district}}", month: "{{month}}"}}
              fields: {fields}
{http}
{process_more}
        write: {{database: main, rows: "INSERT INTO trade (district, month, apt, amount) VALUES {columns}"}}
"""


def indent(text):
    return textwrap.indent(textwrap.dedent(text).strip(), " " * 14)


def test_A38_xml_pages_are_read_to_the_last(place, standin):
    site = place(api_job(standin.url, indent("""
        pages: {param: pageNo, size_param: numOfRows, size: 2, total: response/body/totalCount}
        rows: {xml: response/body/items/item}
        outcomes: {code: [response/header/resultCode, cmmMsgHeader/returnReasonCode], codes: {"00": ok, "22": limit}, status: {"429": limit}}
        """)), cells=(1, 2))

    def reply(query):
        page = int(query["pageNo"])
        count = 2 if page < 3 else 1
        items = "".join(f"<item><v> p{page}-{n} </v><blank> </blank></item>" for n in range(count))
        return 200, (f"<?xml version='1.0' encoding='UTF-8'?><response><header><resultCode>00</resultCode>"
                     f"</header><body><items>{items}</items><totalCount>5</totalCount></body></response>").encode()

    standin.reply = reply
    assert site.wait_final(site.submit_id("shapes"))["outcome"] == "COMPLETED"
    assert standin.total() == 6
    assert standin.queries[0]["numOfRows"] == "2" and standin.queries[0]["path"] == "/x/d0"
    got = [row["apt"] for row in site.sql("SELECT apt FROM trade WHERE month = '202600' ORDER BY apt")]
    assert got == ["p1-0", "p1-1", "p2-0", "p2-1", "p3-0"]
    site.store_do("DELETE FROM trade")
    standin.reply = lambda query: (200, b"<OpenAPI_ServiceResponse><cmmMsgHeader><returnReasonCode>22"
                                   b"</returnReasonCode></cmmMsgHeader></OpenAPI_ServiceResponse>")
    stopped = site.wait_final(site.submit_id("shapes"))
    assert stopped["outcome"] == "STOPPED" and "code 22" in stopped["detail"], stopped


def test_A38_single_values_are_told_and_long_integers_keep_their_digits(place, standin):
    long = 123456789012345678901234567890
    site = place(api_job(standin.url, indent("rows: {json: rows}"), columns="(:district, :month, :v, NULL)")
                 + api_job(standin.url, indent("rows: {json: rows}"), fields="{v: .}").replace(
                     "  shapes:", "  values:"), cells=(1, 1))
    standin.reply = lambda query: (200, {"rows": [{"v": long}, {"v": -long}, {"v": 7}]})
    assert site.wait_final(site.submit_id("shapes"))["outcome"] == "COMPLETED"
    assert sorted(row["apt"] for row in site.sql("SELECT apt FROM trade")) == sorted(
        [str(long), str(-long), "7"])
    assert standin.total() == 1
    site.store_do("DELETE FROM trade")
    standin.reply = lambda query: (200, {"rows": [5, 6]})
    failed = site.wait_final(site.submit_id("shapes"))
    assert failed["outcome"] == "ERROR", failed
    for part in ("month=202600", "row 1 at rows", "single value (integer)", 'no field "v"'):
        assert part in failed["detail"], failed
    assert standin.total() == 2  # asking again would give the same
    assert site.wait_final(site.submit_id("values"))["outcome"] == "COMPLETED"
    assert sorted(row["apt"] for row in site.sql("SELECT apt FROM trade")) == ["5", "6"]


def test_A38_rows_that_were_promised_come_or_the_item_fails(place, standin):
    site = place(api_job(standin.url, indent("""
        pages: {param: page, size_param: size, size: 2, total: total}
        rows: {json: rows}
        retry: {attempts: 2, wait: 10ms}
        outcomes: {code: code, codes: {"000": ok, "013": no-data}}
        """)), cells=(1, 1))

    def reply(query):
        rows = {"1": ["a", "b"], "2": ["c", "d"], "3": ["e"]}[query["page"]]
        body = {"code": "000", "total": 5, "rows": [{"v": v} for v in rows]}
        if query["page"] == "2" and standin.total() in bad:
            body = {"code": "013"} if standin.total() % 2 else {**body, "rows": []}
        return 200, body

    standin.reply = reply
    bad = {2, 3}  # both attempts: one without rows, one that says no data
    request = site.wait_final(site.submit_id("shapes"))
    assert request["outcome"] == "ERROR" and "5 rows, but only 2" in request["detail"], request
    assert site.one("SELECT count(*) AS n FROM trade") == 0
    bad = {5}  # only the first
    assert site.wait_final(site.submit_id("shapes"))["outcome"] == "COMPLETED"
    assert [row["apt"] for row in site.sql("SELECT apt FROM trade ORDER BY apt")] == list("abcde")


def test_A38_alternatives_single_objects_and_a_filter(place, standin):
    site = place(api_job(standin.url, indent("""
        alternatives: {kind: "{kinds}"}
        headers: {X-Kind: "{kind}"}
        rows: {json: body/items/item}
        outcomes: {code: status, codes: {"000": ok, "013": no-data}}
        """), process_more="          - filter: {present: [v], not_equal: {v: total}}\n"
                           "          - map: {set: {v: \"{kind}:{v}\"}}"), cells=(1, 3))
    kinds = []

    def reply(query):
        kinds.append(standin.headers[-1]["X-Kind"])
        if query["month"] == "202600":
            return 200, {"status": "000", "body": {"items": {"item": {"v": "one"}}}}
        if query["month"] == "202601" and kinds[-1] == "A":
            return 200, {"status": "013"}
        return 200, {"status": "000", "body": {"items": {"item": [{"v": "x"}, {"v": "total"}, {"v": " "}]}}}

    standin.reply = reply
    assert site.wait_final(site.submit_id("shapes"))["outcome"] == "COMPLETED"
    got = {row["month"]: row["apt"] for row in site.sql("SELECT month, apt FROM trade")}
    assert got == {"202600": "A:one", "202601": "B:x", "202602": "A:x"}
    assert site.one("SELECT filter_count FROM pawl.step_execution") == 4


def test_A38_a_token_is_fetched_once_and_renewed_once(place, standin):
    site = place(api_job(standin.url, indent(f"""
        token: {{url: "{standin.url}/auth", query: {{key: "{{key:GEO_KEY}}"}}, path: result/accessToken}}
        headers: {{X-Token: "{{token}}"}}
        rows: {{json: result}}
        outcomes: {{code: errCd, codes: {{"0": ok, "-401": renew, "-100": no-data}}}}
        """)).replace("        chunk: 5\n", "        chunk: 5\n        concurrency: 3\n"), cells=(1, 6))
    good = ["t1"]

    def reply(query):
        if query["path"] == "/auth":
            return 200, {"errCd": 0, "result": {"accessToken": good[0]}}
        if standin.headers[-1].get("X-Token") != good[0]:
            return 200, {"errCd": -401, "errMsg": "token"}
        if query["month"] == "202603":
            good[0] = "t2"
        return 200, {"errCd": 0, "result": [{"v": query["month"]}]}

    standin.reply = lambda query: reply(query)
    assert site.wait_final(site.submit_id("shapes"))["outcome"] == "COMPLETED"
    assert site.one("SELECT count(*) FROM trade") == 6
    assert sum(query["path"] == "/auth" for query in standin.queries) == 2


def test_A38_a_document_comes_out_of_its_zip(place, standin):
    site = place(api_job(standin.url, indent("""
        content: {as: v, zip: "{month}.xml", encoding: [utf-8, cp949]}
        outcomes: {code: [result/status, status], codes: {"014": no-data}}
        retry: none
        """), fields="{}").replace("        chunk: 5\n",
                                   "        chunk: 5\n        skip: {limit: 2, on: [upstream, parse]}\n"),
        cells=(1, 4))

    def reply(query):
        if query["month"] == "202600":
            return 200, b"<?xml version='1.0'?><result><status>014</status></result>"
        if query["month"] == "202601":
            return 200, zip_of("가나다".encode("cp949"), name="202601.xml")
        if query["month"] == "202602":
            return 200, zip_of("x", name="other.xml")
        return 200, zip_of("<p>라마</p>", name="202603.xml")

    standin.reply = reply
    done = site.wait_final(site.submit_id("shapes"))
    assert done["outcome"] == "COMPLETED", done
    got = {row["month"]: row["apt"] for row in site.sql("SELECT month, apt FROM trade")}
    assert got == {"202601": "가나다", "202603": "<p>라마</p>"}
    assert "other.xml" in site.one("SELECT message FROM pawl.step_skip")


def test_A38_lines_that_cannot_be_read_are_left_out(place, standin):
    job = """\
  lines:
    retry: none
    steps:
      - name: load
        chunk: 4
        skip: {limit: 3, on: [format]}
        read: {csv: "%s/in.csv", columns: {n: integer}}
        write: {database: main, rows: "INSERT INTO trade (district, month, amount) VALUES (:code, 'm', :n)"}
"""
    site = place("")
    (site.folder / "in.csv").write_text("code,n\na,1\nb,x\nc,3,4\nd,4\n" + "e,5\n" * 6)
    site.configure(job % site.folder, SETTINGS.format(per_day=1, spacing=""))
    site.down()
    site.up()
    done = site.wait_final(site.submit_id("lines"))
    assert done["outcome"] == "COMPLETED", done
    assert site.one("SELECT count(*) FROM trade") == 8
    told = [row["message"] for row in site.sql("SELECT message FROM pawl.step_skip ORDER BY item")]
    assert len(told) == 2 and "in.csv:3" in told[0] and "in.csv:4" in told[1], told


def test_A22_the_ledger_commits_with_the_rows(place, standin):
    """72 cells, a call for each and none repeated, whatever stops the run in between."""
    job = f"""\
  ledger:
    needs_keys: [GEO_KEY]
    retry: none
    steps:
      - name: collect
        chunk: 20
        concurrency: 4
        read: {{database: main, restart: requery, sql: "SELECT c.district, c.month FROM cell c WHERE NOT EXISTS (SELECT 1 FROM ledger l WHERE l.district = c.district AND l.month = c.month) ORDER BY c.month DESC, c.district"}}
        process:
          http:
            url: "{standin.url}/trades"
            query: {{district: "{{district}}", month: "{{month}}"}}
            budget: geo
            rows: {{json: rows}}
            fields: [apt, amount]
            outcomes: {{code: code, codes: {{"000": ok, "013": no-data}}}}
        write:
          database: main
          item:
            - "DELETE FROM trade WHERE district = :district AND month = :month"
            - "INSERT INTO ledger (district, month, outcome, code, n) VALUES (:district, :month, :outcome, :code, :row_count)"
          rows: "INSERT INTO trade (district, month, apt, amount) VALUES (:district, :month, :apt, :amount)"
"""
    site = place(job, per_day=1000)
    site.store_do("CREATE TABLE ledger (district text, month text, outcome text, code text, n bigint, PRIMARY KEY (district, month))")
    if site.kind == "pg":
        site.store_do("GRANT ALL ON ledger TO pawl_worker")
    standin.delay = 0.05
    standin.reply = lambda query: (
        (200, {"code": "013"}) if query["month"] == "202605"
        else (200, {"code": "000", "rows": [{"apt": "a", "amount": 1}, {"apt": "b", "amount": 2}]}))
    first = site.submit_id("ledger")
    wait_for(lambda: site.one("SELECT count(*) AS n FROM ledger") >= 20, "a chunk")
    site.call("POST", f"/api/v1/requests/{first}/stop", {})
    assert site.wait_final(first)["outcome"] == "STOPPED"
    done = site.one("SELECT count(*) AS n FROM ledger")
    assert 20 <= done < 72 and standin.total() == done
    assert site.wait_final(site.post("ledger", maxCalls=7).json["requestId"])["outcome"] == "STOPPED"
    assert site.one("SELECT count(*) AS n FROM ledger") == done + 7
    assert site.wait_final(site.submit_id("ledger"))["outcome"] == "COMPLETED"
    each_once(standin, 72)
    assert site.sql("SELECT outcome, code, n, count(*) AS items FROM ledger GROUP BY outcome, code, n ORDER BY n") == [
        {"outcome": "no-data", "code": "013", "n": 0, "items": 3},
        {"outcome": "ok", "code": "000", "n": 2, "items": 69}]
    assert site.one("SELECT count(*) AS n FROM trade") == 138


def by_position(url, step):
    """A reader that keeps a position, so what stands behind a gap must be remembered."""
    return f"""\
  places:
    retry: none
    steps:
      - name: collect
        chunk: 12
        {step}
        read: {{items: {{district: {{from: 1, to: 30}}}}}}
        process:
          http:
            url: "{url}/trades"
            query: {{district: "{{district}}", month: m}}
            rows: {{json: rows}}
            fields: [apt, amount]
            retry: none
            outcomes: {{code: code, codes: {{"000": ok, "020": limit, "010": fatal}}}}
        write:
          database: main
          rows: "INSERT INTO trade (district, month, apt, amount) VALUES (:district, 'm', :apt, :amount)"
"""


def answers(bad, code=None):
    def reply(query):
        if query["district"] in bad:
            time.sleep(0.3)  # the others of the chunk are done by then
            return (200, {"code": code}) if code else (500, {})
        return 200, {"code": "000", "rows": [{"apt": "A", "amount": 1}]}
    return reply


@pytest.mark.parametrize("code", ["010", "020"])
def test_A22_what_was_done_behind_a_gap_is_not_asked_for_again(place, standin, code):
    site = place(by_position(standin.url, "concurrency: 4"))
    bad = {"14", "20"}
    standin.reply = answers(bad, code)
    assert site.wait_final(site.submit_id("places"))["outcome"] in ("ERROR", "STOPPED")
    assert site.one("SELECT count(*) AS n FROM trade") == standin.total() - len(
        [1 for district, _ in standin.calls if district in bad])
    assert standin.total() > 16
    bad.clear()
    assert site.wait_final(site.submit_id("places"))["outcome"] == "COMPLETED"
    assert {key[0] for key, n in standin.calls.items() if n > 1} <= {"14", "20"}
    assert site.one("SELECT count(*) AS n FROM trade") == 30
    assert site.one("SELECT count(DISTINCT district) AS n FROM trade") == 30
    assert site.sql("SELECT read_count, write_count FROM pawl.step_execution ORDER BY id DESC LIMIT 1") == [
        {"read_count": 30, "write_count": 30}]


def test_A38_one_too_many_fails_the_run_and_loses_no_call(place, standin):
    site = place(by_position(standin.url, "skip: {limit: 2, on: [upstream]}"))
    bad = {"2", "4", "6", "9"}
    standin.reply = answers(bad)
    first = site.wait_final(site.submit_id("places"))
    assert first["outcome"] == "ERROR" and "skip.limit" in first["detail"], first
    assert site.one("SELECT count(*) AS n FROM trade") == 8
    second = site.wait_final(site.submit_id("places"))  # a run of its own, with its own limit
    assert second["outcome"] == "COMPLETED", second
    assert site.one("SELECT count(DISTINCT district) AS n FROM trade") == 26
    assert {key[0] for key, n in standin.calls.items() if n > 1} == {"6", "9"}
    assert sorted(row["item"] for row in site.sql("SELECT item FROM pawl.step_skip")) == [2, 4, 6, 9]
    assert site.sql("SELECT read_count, write_count, skip_count FROM pawl.step_execution "
                    "ORDER BY id DESC LIMIT 1") == [
        {"read_count": 30, "write_count": 26, "skip_count": 4}]


def test_A22_a_chunk_that_another_database_refuses_for_now_is_tried_again(place, standin):
    job = by_position(standin.url, "concurrency: 4").replace("database: main", "database: pg")
    site = place(job)
    name = f"trade_{site.kind}_{os.getpid()}"
    job += f"""\
      - name: mark
        database: pg
        sql: "INSERT INTO {name}_mark VALUES (1)"
"""
    site.configure(job.replace("INTO trade ", f"INTO {name} "), SETTINGS.format(per_day=1000, spacing=""))
    site.down()
    psql(site.pg_url, f"""
        CREATE TABLE {name} (district text, month text, apt text, amount bigint);
        CREATE SEQUENCE {name}_tries;
        CREATE FUNCTION {name}_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
        DECLARE n bigint := nextval('{name}_tries');
        BEGIN
            IF n = 1 THEN RAISE EXCEPTION 'dead' USING ERRCODE = '40P01'; END IF;
            IF n = 2 THEN RAISE EXCEPTION 'locked' USING ERRCODE = '55P03'; END IF;
            IF n = 3 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF;
            RETURN new;
        END $$;
        CREATE TRIGGER refuse BEFORE INSERT ON {name} FOR EACH ROW EXECUTE FUNCTION {name}_refuse();
        CREATE TABLE {name}_mark (n int);
        CREATE SEQUENCE {name}_marks;
        CREATE FUNCTION {name}_refuse_once() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF nextval('{name}_marks') = 1 THEN RAISE EXCEPTION 'dead' USING ERRCODE = '40P01'; END IF;
            RETURN new;
        END $$;
        CREATE TRIGGER refuse BEFORE INSERT ON {name}_mark FOR EACH ROW EXECUTE FUNCTION {name}_refuse_once();
    """)
    site.up()
    standin.reply = answers(())
    done = site.wait_final(site.submit_id("places"))
    assert done["outcome"] == "COMPLETED", done
    each_once(standin, 30)
    assert psql(site.pg_url, f"SELECT count(DISTINCT district) FROM {name}").strip() == "30"
    assert psql(site.pg_url, f"SELECT count(*) FROM {name}_mark").strip() == "1"
    assert site.sql("SELECT rollbacks FROM pawl.step_execution ORDER BY ordinal LIMIT 1") == [
        {"rollbacks": 3}]


def test_A13_a_key_that_nobody_named_is_found_by_the_check(cluster, standin):
    jobs = collect(standin.url).replace("    needs_keys: [GEO_KEY]\n", "")
    site = Site("sqlite", cluster, jobs, "budgets: {geo: {per_day: 1}}")
    answer = site.pawl("check", code=78)
    assert "there is no key GEO_KEY; name it under `keys:`" in answer.stdout + answer.stderr
    site.configure(jobs, SETTINGS.format(per_day=1, spacing=""))
    site.pawl("check")
    site.close()

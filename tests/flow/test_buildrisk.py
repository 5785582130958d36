"""
The thirteen jobs of examples/buildrisk against the stand-in, on both stores: what they
collect is what the services have, and no call is made twice whatever happens.
"""

import os
import shutil
import subprocess

import flow_radar as radar
import pytest
from flow_radar import CELLS, CHUNK, MONTHS, prepare
from pawl_env import FULL, PAWL, wait_for
from standin import dart, stats
from standin.datagokr import prices_of
from standin.world import PROVINCES, months_between

DELAY_MS = 60  # of each call, where a run is to be caught in the middle


@pytest.fixture(scope="module", params=["sqlite", "pg"])
def site(request, cluster):
    site = radar.Radar(request.param, cluster)
    try:
        yield site.up()
        site.close()
    finally:
        site.discard()


# --- all thirteen ---

@pytest.fixture(scope="module")
def collected(site):
    """All jobs, in order: {job: (request id, calls that it made)}."""
    site.steer(reset=True)
    done = {}
    before = 0
    for job in prepare.JOBS[:-1]:
        request_id = site.run(job, **({"months": 13} if job == "apt-trade" else {}))
        total = site.calls()["total"]
        done[job] = request_id, total - before
        before = total
    last = wait_for(lambda: site.call(
        "GET", f"/api/v1/requests?job={prepare.JOBS[-1]}").json["items"], "rule-eval is asked for")
    site.wait_done(last[0]["requestId"])
    done[prepare.JOBS[-1]] = last[0]["requestId"], site.calls()["total"] - before
    done["calls"] = site.calls()
    return done


def builders(world):
    """The universe: the listed ones that build."""
    return [n for n in range(world.size.listed) if world.is_builder(n)]


def reports(world):
    """(corporation, year, report) whose day has passed by DAY."""
    return [(n, year, report) for n in builders(world)
            for year in ("2023", "2024", "2025", "2026") for report in dart.REPORTS
            if (year, report) != ("2026", "11011")]


def filings(world):
    first, last = (radar.datetime.date.fromisoformat(day) for day in ("2025-11-27", radar.DAY))
    return [f for n in builders(world) for f in dart.filings_of(world, n, first, last)]


def test_B32_all_thirteen_jobs_make_exactly_the_calls_that_they_need(site, collected):
    world = site.world
    statements = sum(1 if dart.has_statement(world, n, year, "CFS") else 2
                     for n, year, _ in reports(world))
    documents = [f for f in filings(world)
                 if "공급계약" in f["report_nm"] or "채무보증" in f["report_nm"]]
    assert {job: collected[job][1] for job in prepare.JOBS} == {
        "corp-code-sync": 1, "company-profile": world.size.listed,
        "financial-statement": statements, "disclosure-sync": len(builders(world)),
        "filing-parse": len(documents), "boundary-load": 1,
        "sgis-household": 1 + len(PROVINCES), "kosis-unsold": 6, "rone-index": 2 * 37,
        "apt-trade": 13 * world.size.regions, "stock-price": len(builders(world)),
        "standardize-metric": 0, "rule-eval": 0}
    assert documents and set(collected["calls"]["items"].values()) == {1}


def test_B32_what_dart_has_is_there(site, collected):
    world = site.world
    assert site.number("SELECT count(*) AS n FROM br_corp") == world.size.corps
    assert site.number("SELECT count(*) AS n FROM br_corp WHERE stock_code IS NOT NULL") \
        == site.number("SELECT count(*) AS n FROM br_company") == world.size.listed
    assert [row["corp_code"] for row in
            site.rows("SELECT corp_code FROM br_universe ORDER BY corp_code")] \
        == [world.corp_code(n) for n in builders(world)]
    ledger = {(row["corp_code"], row["year"], row["report"]): (row["outcome"], row["accounts"])
              for row in site.rows("SELECT * FROM br_statement_ledger")}
    assert ledger == {
        (world.corp_code(n), year, report):
            ("ok", world.size.accounts) if dart.has_statement(world, n, year, "OFS")
            else ("no-data", 0) for n, year, report in reports(world)}
    assert site.number("SELECT count(*) AS n FROM br_statement WHERE division = 'OFS'") > 0
    assert site.number("SELECT count(*) AS n FROM br_statement") \
        == sum(accounts for _, accounts in ledger.values())


def test_B32_filings_are_sorted_fetched_and_read(site, collected):
    wanted = filings(site.world)
    kinds = {row["rcept_no"]: row["kind"] for row in site.rows("SELECT * FROM br_filing")}
    assert sorted(kinds) == sorted(f["rcept_no"] for f in wanted)
    for filing in wanted:
        assert (kinds[filing["rcept_no"]] == "CONTRACT") == ("공급계약" in filing["report_nm"])
    documents = site.rows("SELECT * FROM br_document")
    assert sorted(d["rcept_no"] for d in documents) == sorted(
        number for number, kind in kinds.items() if kind in ("CONTRACT", "GUARANTEE"))
    for document in documents:
        lost = int(document["rcept_no"][6:8]) % 4 == 0
        assert document["outcome"] == ("no-data" if lost else "ok")
        assert (document["content"] is None) == lost
        # UTF-8 or MS949: the same Korean comes out.
        assert lost or "공사 & 조합" in document["partner"], document
        assert lost or (document["amount"] is None) == (document["parse_error"] is not None)


def test_B32_regions_and_what_hangs_on_them(site, collected):
    world = site.world
    regions = {row["code"]: row["name"] for row in site.rows("SELECT * FROM br_region")}
    assert regions == {code: name for code, name, _, _ in world.regions()}
    assert site.number("SELECT count(*) AS n FROM br_household WHERE year = '2025'") == len(regions)
    months = months_between("202312", "202611")
    told = [row for month in months for row in _unsold(world, month)]
    assert site.number("SELECT count(*) AS n FROM br_unsold") == len(told)
    assert site.number("SELECT sum(homes) AS n FROM br_unsold") == sum(told)
    named = [row for table in ("A_2024_00045", "A_2024_00050")
             for month in months_between("202311", "202611")
             for row in stats.index_rows(world, table, month) if row["CLS_NM"]]
    assert site.number("SELECT count(*) AS n FROM br_index") == len(named)
    site.check_trades()
    assert site.ledger() == 13 * len(regions)
    assert site.number("SELECT max(month) AS n FROM br_trade_month") == "202609"


def _unsold(world, month):
    found = []
    for code, _ in PROVINCES:
        dice = world.dice("unsold", month, code)
        if not (code == "29" and dice.randrange(3) == 0):
            found.append(dice.randrange(20_000))
    return found


def test_B32_prices_figures_and_alerts(site, collected):
    world = site.world
    first, end = (radar.datetime.date.fromisoformat(day) for day in ("2023-11-28", "2026-11-28"))
    wanted = []
    for n in builders(world):
        closes = [int(price["clpr"]) for price in prices_of(world, n, first, end)]
        wanted.append({"stock_code": world.stock_code(n), "n": len(closes), "total": sum(closes)})
    assert site.rows("SELECT stock_code, count(*) AS n, sum(close) AS total FROM br_stock_price "
                     "GROUP BY stock_code ORDER BY stock_code") == wanted
    (found,) = site.rows(
        "SELECT (SELECT count(*) FROM br_statement_ledger WHERE outcome = 'ok') AS statements, "
        "(SELECT count(*) FROM br_standard WHERE assets > 0) AS standards, "
        "(SELECT count(*) FROM br_company_metric) AS metrics, "
        "(SELECT count(*) FROM br_rule_hit) AS hits, "
        "(SELECT count(*) FROM br_alert WHERE seen = 1) AS alerts")
    assert found["statements"] == found["standards"] == found["metrics"] > 0
    assert found["hits"] == found["alerts"] > 0


def test_A12_the_rules_follow_the_figures(site, collected):
    request = site.get(collected["rule-eval"][0])
    assert request["requester"] == f"chain:#{collected['standardize-metric'][0]}"


def test_B32_a_second_round_asks_only_for_what_may_have_changed(site, collected):
    site.steer(reset=True)
    for job in ("company-profile", "financial-statement", "filing-parse", "apt-trade", "stock-price"):
        site.run(job, **({"months": 13} if job == "apt-trade" else {}))
    assert site.calls()["total"] == 0


def test_B32_the_file_as_it_is_has_nothing_wrong(site):
    """With the real addresses, and all schedules."""
    site.pawl("check", "-c", str(prepare.HERE / "pawl.yaml"))


@pytest.mark.skipif(not FULL, reason="the fixture above does the same, by HTTP")
def test_B32_run_is_one_command(tmp_path):
    done = subprocess.run([prepare.HERE / "run", tmp_path / "demo"], stdin=subprocess.DEVNULL,
                          env={**os.environ, "PAWL_BIN": PAWL, "PAWL_STORE": ""},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8")
    assert done.returncode == 0, done.stdout
    assert done.stdout.rstrip().endswith("asked for more than once: nothing")


# --- A22: stopped and asked for again, 72 calls in all ---

def by_stop(site, request_id):
    assert site.call("POST", f"/api/v1/requests/{request_id}/stop").status == 202
    return "STOPPED"


def by_drain(site, _request_id):
    site.worker.stop()
    site.restart_worker()
    return "STOPPED"


@pytest.mark.parametrize("how", [by_stop, by_drain])
def test_A22_a_stopped_run_goes_on_and_makes_72_calls_in_all(site, how):
    site.cells_pending()
    site.steer(delay_ms=DELAY_MS)
    request_id = site.submit_id("apt-trade", months=MONTHS)
    site.await_calls(CHUNK + 1)  # the first chunk is committed
    site.steer(delay_ms=150)  # so that a busy machine too comes in time
    outcome = how(site, request_id)
    request = site.wait_final(request_id)
    assert (request["status"], request["outcome"]) == ("DONE", outcome), request
    committed = site.ledger()
    assert committed % CHUNK == 0 and CHUNK <= committed < CELLS
    assert site.calls()["total"] == committed
    site.steer(delay_ms=0)
    site.run("apt-trade")
    first, second = site.executions("apt-trade")[-2:]
    assert (first["state"], second["state"]) == ("STOPPED", "COMPLETED")
    assert first["instance_id"] == second["instance_id"]
    site.check_cells()


@pytest.mark.parametrize("calls", [1, 19, 20, 33, 40, 60, 61, 71] if FULL else [25])
def test_A22_a_killed_run_repeats_no_committed_call(site, calls):
    site.cells_pending()
    # What comes after those calls waits, so that the run cannot be over before the kill.
    site.steer(answer={"service": "rtms", "kind": "slow", "after": calls, "times": 0,
                       "ms": 60_000})
    request_id = site.submit_id("apt-trade", months=MONTHS)
    wait_for(lambda: site.standin.calls.total() > calls, f"more than {calls} calls")
    site.worker.kill()
    committed = {f"{row['district']} {row['month']}" for row in
                 site.rows("SELECT district, month FROM br_trade_ledger")}
    assert len(committed) % CHUNK == 0
    site.steer(answer=None)
    site.restart_worker()
    assert site.wait_final(request_id)["outcome"] == "WORKER_LOST"
    # The next try follows by itself.
    wait_for(lambda: site.executions("apt-trade")[-1]["state"] == "COMPLETED", "the next try",
             every=0.2)
    assert site.ledger() == CELLS
    for item, n in site.calls()["items"].items():
        words = dict(word.split("=") for word in item.split()[1:])
        cell = f"{words['LAWD_CD']} {words['DEAL_YMD']}"
        assert n == 1 or (n == 2 and cell not in committed), item
    assert site.calls()["total"] <= CELLS + CHUNK
    site.check_trades()


# --- A30, A31: the day's calls ---

def test_A30_the_cap_holds_when_calling_and_is_no_parameter(site):
    site.cells_pending()
    _use_up(site, "rtms", 9000 - 5)
    answer = site.post("apt-trade", {"months": MONTHS})
    assert answer.status == 202, answer
    forecast = answer.json
    assert (forecast["plannedCalls"], forecast["dailyLimitHint"], forecast["usedToday"]) \
        == (CELLS, 9000, 8995)
    assert forecast["warning"]
    request = site.wait_final(forecast["requestId"])
    assert (request["status"], request["outcome"]) == ("DONE", "STOPPED")
    assert "rtms" in request["detail"], request
    assert site.calls()["total"] == site.ledger() == 5
    assert "maxCalls" not in site.executions("apt-trade")[-1]["params"]
    # The next day begins: the count of the day is gone.
    site.store_do("DELETE FROM pawl.budget")
    site.run("apt-trade")
    first, second = site.executions("apt-trade")[-2:]
    assert first["instance_id"] == second["instance_id"]
    assert site.calls()["total"] == CELLS
    site.check_cells()


def _use_up(site, budget, used):
    """As if the day had had so many calls: one is made to have the day's row."""
    site.store_do("INSERT INTO br_district VALUES ('11200')")
    site.ends("apt-trade", "STOPPED", {"months": MONTHS}, maxCalls=1, restart=False)
    site.store_do("DELETE FROM br_district WHERE district = '11200'; "
                  "DELETE FROM br_trade_ledger; "
                  f"UPDATE pawl.budget SET used = {used} WHERE name = '{budget}'")
    site.steer(reset=True)


@pytest.mark.parametrize("calls", [7, 1, 20, 41] if FULL else [7])
def test_A31_max_calls_is_exact_and_binds_no_later_run(site, calls):
    site.cells_pending()
    site.pawl("submit", "apt-trade", "--anew", "--wait", "-p", f"months={MONTHS}",
              "--max-calls", str(calls), code=5)
    assert site.calls()["total"] == site.ledger() == calls
    site.run("apt-trade")
    assert site.calls()["total"] == CELLS
    site.check_cells()


def test_A30_the_services_own_limit_stops_the_run_and_leaves_the_item_pending(site):
    site.cells_pending()
    site.steer(limit={"rtms": 30})
    request = site.ends("apt-trade", "STOPPED", {"months": MONTHS}, restart=False)
    assert request["status"] == "DONE"
    # What was under way beside the one that was refused may have been refused too.
    assert site.ledger() == 30 and 31 <= site.calls()["total"] <= 34
    site.store_do("DELETE FROM pawl.budget")
    site.steer(limit={"rtms": None})
    site.run("apt-trade")
    assert site.ledger() == CELLS
    site.check_trades()


# --- A32, A33: go on or start anew ---

def test_A32_given_values_decide_whether_it_goes_on(site):
    def stopped(**params):
        site.ends("apt-trade", "STOPPED", params, maxCalls=3)
        return site.executions("apt-trade")[-1]["instance_id"]

    site.cells_pending()
    site.ends("apt-trade", "STOPPED", {"months": MONTHS}, maxCalls=3, restart=False)
    first = site.executions("apt-trade")[-1]["instance_id"]
    assert stopped() == first
    assert stopped(months=MONTHS) == first
    answer = site.post("apt-trade", {"months": 36}, maxCalls=3)
    assert answer.json["plannedCalls"] == 108 - 9
    assert site.wait_final(answer.json["requestId"])["outcome"] == "STOPPED"
    second = site.executions("apt-trade")[-1]["instance_id"]
    assert second != first
    assert stopped() == second
    site.ends("apt-trade", "COMPLETED", {"months": MONTHS}, restart=False)
    assert site.executions("apt-trade")[-1]["instance_id"] not in (first, second)


def test_A33_a_confirmation_is_good_for_its_own_request_only(site, collected):
    def sources():
        return {row["source"] for row in site.rows("SELECT source FROM br_region")}

    site.steer(reset=True, answer={"service": "sgis", "kind": "fatal", "times": 0})
    assert sources() == {"VWORLD"}
    site.ends("boundary-load", "ERROR", {"source": "SGIS", "confirmPurge": True})
    assert sources() == {"VWORLD"}
    site.steer(reset=True)
    site.ends("boundary-load", "COMPLETED")
    failed, again = site.executions("boundary-load")[-2:]
    assert failed["instance_id"] != again["instance_id"] and "confirmPurge" not in again["params"]
    assert sources() == {"VWORLD"}
    request = site.ends("boundary-load", "ERROR", {"source": "SGIS"})
    assert "another_source_needs_confirmpurge" in request["detail"].lower()
    assert sources() == {"VWORLD"}
    site.ends("boundary-load", "COMPLETED", {"source": "SGIS", "confirmPurge": True})
    assert sources() == {"SGIS"}
    site.ends("boundary-load", "COMPLETED", {"source": "VWORLD", "confirmPurge": True})


# --- fatal codes, sick services ---

def test_B32_twenty_four_reports_and_a_fatal_code_at_the_last_one(site, collected):
    given = {"years": ["2023", "2024", "2025"], "reprtCodes": ["11012", "11011"]}
    site.store_do("DELETE FROM br_statement_ledger; DELETE FROM br_statement; "
                  "DELETE FROM pawl.budget")
    wanted = [item for item in reports(site.world)
              if item[1] in given["years"] and item[2] in given["reprtCodes"]]
    assert len(wanted) == 24
    calls = [2 if not dart.has_statement(site.world, n, year, "CFS") else 1
             for n, year, _ in wanted]
    last = {"corp_code": site.world.corp_code(builders(site.world)[-1]), "bsns_year": "2023",
            "reprt_code": "11012"}
    site.steer(reset=True, answer={"service": "dart", "match": last, "kind": "fatal", "code": "021"})
    request = site.ends("financial-statement", "ERROR", given)
    assert "021" in request["detail"], request
    # What was had before it is there.
    assert site.number("SELECT count(*) AS n FROM br_statement_ledger") == 23
    site.ends("financial-statement", "COMPLETED", given)
    assert site.number("SELECT count(*) AS n FROM br_statement_ledger") == 24
    assert site.calls()["total"] == sum(calls) + 1


def test_B32_a_sick_service_leaves_items_pending_and_the_run_goes_on(site):
    site.cells_pending()
    one = {"LAWD_CD": "11140", "DEAL_YMD": "202601"}
    other = {"LAWD_CD": "11170", "DEAL_YMD": "202602"}
    site.steer(answer=[{"service": "rtms", "match": one, "kind": "status", "code": 503, "times": 3},
                       {"service": "rtms", "match": other, "kind": "html", "times": 2}])
    request = site.ends("apt-trade", "COMPLETED", {"months": MONTHS}, restart=False)
    assert site.ledger() == CELLS - 1
    assert site.steps(request["requestId"])["trades"]["skip_count"] == 1
    assert site.calls()["total"] == CELLS + 2 + 2
    site.run("apt-trade", months=MONTHS)
    assert site.ledger() == CELLS
    site.check_trades()


def test_B32_a_bad_key_fails_at_once(site):
    site.cells_pending()
    site.steer(answer={"service": "rtms", "kind": "fatal", "times": 0})
    request = site.ends("apt-trade", "ERROR", {"months": MONTHS}, restart=False)
    assert "30" in request["detail"]
    assert site.calls()["total"] <= 4 and site.ledger() == 0
    for key in prepare.KEYS.values():
        assert key not in str(request) and key not in site.worker.log()
    site.steer(reset=True)
    site.run("apt-trade")


def test_B32_pages_of_any_size_come_whole(site, collected):
    site.store_do("DELETE FROM br_region_new; DELETE FROM br_trade_ledger; DELETE FROM br_filing; "
                  "DELETE FROM br_filing_sync")
    site.steer(reset=True, page_max=2)
    site.run("boundary-load")
    site.run("apt-trade", months=13)
    site.run("disclosure-sync")
    site.check_trades()
    assert site.number("SELECT count(*) AS n FROM br_region") == site.world.size.regions
    assert site.number("SELECT count(*) AS n FROM br_filing") == len(filings(site.world))
    assert site.calls()["services"]["vworld"] == site.world.size.regions // 2


# --- A37, A38: files ---

def test_A37_A38_a_file_that_comes_in_another_order_loads_whole(site):
    corps = 10_000 if FULL else 3_500
    site.store_do("DELETE FROM br_corp")
    usual = site.world.size.corps
    site.grow(corps=corps)
    try:
        # More lines than may be skipped: the load fails after its first chunks.
        site.steer(reset=True, broken=150)
        site.ends("corp-code-sync", "ERROR", restart=False)
        loaded = site.number("SELECT count(*) AS n FROM br_corp")
        assert 0 < loaded < corps and site.calls()["total"] == 1
        # The file is there: it is used again, and fails again.
        site.ends("corp-code-sync", "ERROR")
        assert site.calls()["total"] == 1
        forget_files(site)
        site.steer(broken=0, order="reversed")
        site.ends("corp-code-sync", "COMPLETED")
        assert site.calls()["total"] == 2
        assert site.number("SELECT count(*) AS n FROM br_corp") == corps
        assert site.number("SELECT count(DISTINCT corp_code) AS n FROM br_corp") == corps
        assert len({e["instance_id"] for e in site.executions("corp-code-sync")[-3:]}) == 1
    finally:
        site.grow(corps=usual)


def test_B32_half_a_file_and_a_page_of_html_are_no_file(site):
    before = site.number("SELECT count(*) AS n FROM br_corp")
    site.steer(reset=True, answer=[{"service": "dart", "kind": "html"},
                                   {"service": "dart", "kind": "cut"},
                                   {"service": "dart", "kind": "limit"}])
    request = site.ends("corp-code-sync", "ERROR", restart=False)
    assert "corpCode.xml" in request["detail"] and "HTML" in request["detail"]
    assert "corpCode.xml" in site.ends("corp-code-sync", "ERROR")["detail"]
    request = site.ends("corp-code-sync", "STOPPED")
    assert "Budget dart: the provider allows no more calls today" in request["detail"]
    site.store_do("DELETE FROM pawl.budget")
    site.ends("corp-code-sync", "COMPLETED")
    assert site.number("SELECT count(*) AS n FROM br_corp") >= before
    assert site.calls()["total"] == 4


def test_B32_documents_that_cannot_be_read_are_left_pending(site, collected):
    site.store_do("DELETE FROM br_document")
    pending = site.number("SELECT count(*) AS n FROM br_pending_document")
    site.steer(reset=True, answer=[{"service": "dart", "kind": "cut"},
                                   {"service": "dart", "kind": "html"}])
    request = site.ends("filing-parse", "COMPLETED")
    assert site.number("SELECT count(*) AS n FROM br_document") == pending - 2
    assert site.steps(request["requestId"])["documents"]["skip_count"] == 2
    site.run("filing-parse")
    assert site.number("SELECT count(*) AS n FROM br_document") == pending


def forget_files(site):
    """The folder of the instance is gone, as with a worker on another machine."""
    found = [path for path in site.folder.rglob("corp.xml")]
    assert found
    for path in found:
        shutil.rmtree(path.parent)


def test_A38_a_predicate_that_shrinks_misses_none(site):
    """120 profiles, stopped by a limit again and again: all of them come, each once."""
    usual = site.world.size
    site.grow(corps=120, listed=120)
    try:
        site.steer(reset=True)
        site.store_do("DELETE FROM br_corp; DELETE FROM br_company; DELETE FROM pawl.budget")
        site.ends("corp-code-sync", "COMPLETED", restart=False)
        site.ends("company-profile", "STOPPED", maxCalls=37, restart=False)
        site.ends("company-profile", "STOPPED", maxCalls=60)
        site.ends("company-profile", "COMPLETED")
        items = {item: n for item, n in site.calls()["items"].items() if "company" in item}
        assert len(items) == 120 and set(items.values()) == {1}
        assert site.number("SELECT count(*) AS n FROM br_company WHERE outcome = 'ok'") == 120
    finally:
        site.grow(corps=usual.corps, listed=usual.listed)

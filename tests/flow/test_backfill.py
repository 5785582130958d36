"""Backfills: a run for each of many values, as one group."""

import json

import pytest
from pawl_env import Site, wait_for

JOBS = """\
  day-load:
    params: {day: {type: date, required: true}, area: {type: string, default: all}}
    retry: none
    steps:
      - name: load
        read: {database: shop, sql: "SELECT :day AS day, :area AS area, 1 / CASE WHEN :day = '2026-01-03' AND :area = 'bad' THEN 0 ELSE 1 END AS n"}
        write: {database: main, rows: "INSERT INTO loaded (day, area) VALUES (:day, :area)"}
"""
FAILING = JOBS.replace("1 / CASE", "abs(CASE").replace(
    "THEN 0 ELSE 1 END", "THEN -9223372036854775807 - 1 ELSE 1 END)")


@pytest.fixture(scope="module", params=["sqlite", "pg"])
def site(request, cluster):
    site = Site(request.param, cluster, FAILING if request.param == "sqlite" else JOBS)
    try:
        site.pawl("migrate")
        site.store_do("CREATE TABLE loaded (day text, area text)")
        if request.param == "pg":
            site.store_do("GRANT ALL ON loaded TO pawl_worker")
        yield site.up()
        site.down()
        site.pawl("fsck")
        site.close()
    finally:
        site.discard()


def ended(site, backfill_id, state="DONE"):
    def look():
        told = site.call("GET", f"/api/v1/backfills/{backfill_id}").json
        return told if told["state"] == state and not told["open"] else None
    return wait_for(look, f"backfill {backfill_id} {state}")


def loaded(site, area):
    return site.sql(f"SELECT day FROM loaded WHERE area = '{area}' ORDER BY day")


def test_a_range_of_days_is_loaded_once_and_what_is_done_is_passed_over(site):
    said = site.pawl("backfill", "day-load", "-p", "day=2026-02-27..2026-03-02", "--json")
    backfill = json.loads(said.stdout)
    assert backfill["total"] == 4 and backfill["passedOver"] == 0, backfill
    told = ended(site, backfill["backfillId"])
    assert told["completed"] == 4 and told["percent"] == 100, told
    days = [row["day"] for row in loaded(site, "all")]
    assert days == ["2026-02-27", "2026-02-28", "2026-03-01", "2026-03-02"], days
    said = site.pawl("backfill", "day-load", "-p", "day=2026-03-01..2026-03-03")
    assert "1 items, 2 passed over" in said.stdout, said.stdout
    number = int(said.stdout.split()[1].rstrip(":"))
    ended(site, number)
    assert [row["day"] for row in loaded(site, "all")] == [*days, "2026-03-03"]
    shown = site.pawl("show", f"b{number}").stdout
    assert "100 %" in shown and "1 completed" in shown, shown
    assert "day-load" in site.pawl("backfills").stdout


def test_a_failure_holds_the_group_until_it_is_resumed_or_cancelled(site):
    answer = site.call("POST", "/api/v1/jobs/day-load/backfills", {
        "params": {"day": "2026-01-02..2026-01-05", "area": "bad"}, "onFailure": "hold"})
    assert answer.status == 202, answer
    number = answer.json["backfillId"]
    told = ended(site, number, "HELD")
    assert (told["completed"], told["failed"], told["waiting"]) == (1, 1, 2), told
    assert "item 2" in told["why"], told
    assert told["items"][0]["params"] == {"day": "2026-01-03", "area": "bad"}
    site.pawl("resume", "backfill", str(number))
    told = ended(site, number, "HELD")
    assert told["failed"] == 1 and told["waiting"] == 2, told
    site.pawl("cancel", f"b{number}")
    told = ended(site, number, "CANCELLED")
    assert told["cancelled"] == 2, told
    assert len(loaded(site, "bad")) == 1


def test_what_cannot_be_done_is_told_and_nothing_is_stored(site):
    before = site.count("backfill")
    for params, text in [({"day": "2026-03-02..2026-03-01"}, "goes backwards"),
                         ({"day": "1900-01-01..2026-01-01"}, "more values"),
                         ({"day": "2026-01-01", "are": "x"}, "/params/are"),
                         ({}, "at least one parameter")]:
        answer = site.call("POST", "/api/v1/jobs/day-load/backfills", {"params": params})
        assert answer.status == 400 and text in answer.body.decode(), answer
    answer = site.call("POST", "/api/v1/jobs/day-load/backfills",
                       {"params": {"day": "2026-01-01"}, "parallel": 2})
    assert answer.status == 400 and "one after the other" in answer.body.decode(), answer
    assert site.call("GET", "/api/v1/backfills/999").status == 404
    assert site.count("backfill") == before


def test_a_kill_in_the_middle_loses_no_item_and_does_none_twice(site):
    answer = site.call("POST", "/api/v1/jobs/day-load/backfills", {
        "params": {"day": "2026-05-01..2026-05-12", "area": "kill"}})
    wait_for(lambda: len(loaded(site, "kill")) >= 3, "some are loaded")
    site.worker.kill()
    site.restart_worker()
    ended(site, answer.json["backfillId"])
    days = [row["day"] for row in loaded(site, "kill")]
    done = site.call("GET", f"/api/v1/backfills/{answer.json['backfillId']}").json
    assert len(days) == len(set(days)) == done["completed"], (days, done)
    assert done["completed"] + done["failed"] == 12, done

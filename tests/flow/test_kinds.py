"""Three unlike kinds of work, by configuration alone: export, move, load."""

import pytest
import flow_jobs as jobs
from pawl_env import Site, read_csv, wait_for

ROWS = 3000
EXPORTED = 300  # with a checkpoint for each row

# Each is slow by a pause for each row that PostgreSQL makes, and none when ms is 0.
EXPORT = jobs.variant(jobs.SLOW, "export")
MOVE = """\
  move:
    params: {ms: {type: integer, default: 0}}
    duplicates: allow
    retry: none
    steps:
      - name: move
        chunk: 50
        read: {database: pg, sql: "SELECT i AS id, 'row ' || i || ' 한글' AS label, i / 8.0 AS amount, cast(pg_sleep(:ms / 1000.0) AS text) AS slept FROM generate_series(1, 3000) i"}
        write: {database: shop, table: moved, mode: upsert, key: [id]}
"""
LOAD = """\
  load:
    params: {name: {type: string}}
    duplicates: allow
    retry: none
    steps:
      - name: load
        chunk: 50
        read: {csv: "FOLDER/{name}.csv", columns: {id: integer, label: text, amount: decimal, day: date}}
        write: {database: shop, table: loaded, mode: upsert, key: [id]}
"""


@pytest.fixture(scope="module", params=["sqlite", "pg"])
def kinds(request, cluster):
    site = Site(request.param, cluster, jobs.QUICK + EXPORT + MOVE + LOAD)
    try:
        site.configure((jobs.QUICK + EXPORT + MOVE + LOAD)
                       .replace("FOLDER", str(site.folder)))
        site.shop("CREATE TABLE moved (id integer PRIMARY KEY, label text, "
                  "amount decimal(12, 3), slept text);"
                  "CREATE TABLE loaded (id integer PRIMARY KEY, label text, "
                  "amount decimal(12, 3), day date);")
        lines = ["id,label,amount,day"]
        lines += [f'{n},"말 ""{n}"", 줄\n바꿈",{n}.125,2026-11-{n % 28 + 1:02}'
                  for n in range(1, ROWS + 1)]
        (site.folder / "in.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        yield site.up()
        site.close()
    finally:
        site.discard()


def slow_params(job):
    return {"rows": EXPORTED, "ms": 10} if job == "export" else {"ms": 10}


def check_moved(site):
    rows = site.shop_rows("SELECT id, label, amount FROM moved ORDER BY id")
    assert [row["id"] for row in rows] == list(range(1, ROWS + 1))
    assert rows[6] == {"id": 7, "label": "row 7 한글", "amount": 0.875}


def test_B32_B5_an_export(kinds):
    request = kinds.wait_done(kinds.submit_id("export", rows=EXPORTED, ms=0))
    assert request["result"]["rows"] == EXPORTED
    assert len(read_csv(kinds.result(request["requestId"]))) == EXPORTED + 1


def test_B32_B5_a_move_from_database_to_database(kinds):
    kinds.shop("DELETE FROM moved;")
    request = kinds.wait_done(kinds.submit_id("move"))
    assert request["result"] is None
    check_moved(kinds)
    answer = kinds.download(request["requestId"])
    assert answer.status in (404, 409), answer


def test_B32_B5_a_load_of_a_file(kinds):
    kinds.shop("DELETE FROM loaded;")
    kinds.wait_done(kinds.submit_id("load", name="in"))
    rows = kinds.shop_rows("SELECT id, label, amount, day FROM loaded ORDER BY id")
    assert len(rows) == ROWS
    assert rows[27] == {"id": 28, "label": '말 "28", 줄\n바꿈', "amount": 28.125,
                        "day": "2026-11-01"}
    # Again is the same: an upsert.
    kinds.wait_done(kinds.submit_id("load", name="in"))
    assert len(kinds.shop_rows("SELECT id FROM loaded")) == ROWS


def test_B32_B7_a_load_of_bad_input_names_the_place(kinds):
    bad = kinds.folder / "bad.csv"
    bad.write_text("id,label,amount,day\n1,a,1.5,2026-01-01\n2,b,lots,2026-01-01\n")
    request = kinds.wait_final(kinds.submit_id("load", name="bad"))
    assert request["outcome"] == "ERROR"
    assert "amount" in request["detail"] and "3" in request["detail"], request["detail"]
    gone = kinds.wait_final(kinds.submit_id("load", name="no"))
    assert gone["outcome"] == "ERROR" and "no.csv" in gone["detail"]


@pytest.mark.parametrize("job", ["export", "move"])
def test_B32_B28_each_is_cancelled_at_a_checkpoint(kinds, job):
    request_id = kinds.submit_id(job, **slow_params(job))
    kinds.wait_progress(request_id, 50)
    assert kinds.cancel(request_id).status == 202
    assert kinds.wait_final(request_id)["outcome"] == "CANCELLED"
    assert kinds.parts() == []
    kinds.wait_done(kinds.submit_id("quick"))


@pytest.mark.parametrize("job", ["export", "move"])
def test_B32_B20_each_survives_a_kill_and_is_right_when_asked_again(kinds, job):
    if job == "move":
        kinds.shop("DELETE FROM moved;")
    request_id = kinds.submit_id(job, **slow_params(job))
    kinds.wait_progress(request_id, 100)
    kinds.worker.kill()
    kinds.restart_worker()
    assert kinds.wait_final(request_id)["outcome"] == "WORKER_LOST"
    wait_for(lambda: kinds.loose_parts() == [], "the parts are gone")
    if job == "move":  # whole chunks only
        assert len(kinds.shop_rows("SELECT id FROM moved")) % 50 == 0
    again = kinds.submit_id(job, **{**slow_params(job), "ms": 0})
    kinds.wait_done(again)
    if job == "move":
        check_moved(kinds)
    else:
        assert len(read_csv(kinds.result(again))) == EXPORTED + 1

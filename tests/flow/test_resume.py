"""kill -9 while a file is loaded and while a workbook is made: asked for again, the job
goes on where it was, and no row is lost or there twice."""

import os
import time

import pytest
from pawl_env import Site, wait_for

FULL = bool(os.environ.get("PAWL_FULL"))
ROWS = 1_000_000 if FULL else 40_000
CHUNK = 5_000 if FULL else 400

JOBS = """\
  load:
    params: {name: {type: string}}
    retry: none
    steps:
      - name: load
        chunk: CHUNK
        read: {csv: "FOLDER/{name}.csv", columns: {id: integer, amount: decimal}}
        write: {database: shop, table: loaded}
  book:
    params: {copy: {type: integer}}
    retry: none
    steps:
      - name: export
        chunk: CHUNK
        read: {database: shop, restart: key, key: id, sql: "SELECT id, label, amount FROM loaded WHERE :copy > 0"}
        write: {file: "book.xlsx"}
"""


@pytest.fixture(scope="module", params=["sqlite", "pg"])
def killed(request, cluster):
    site = Site(request.param, cluster, JOBS)
    try:
        site.configure(JOBS.replace("FOLDER", str(site.folder)).replace("CHUNK", str(CHUNK)))
        # Without a key: what is written twice is there twice.
        site.shop("CREATE TABLE loaded (id integer, label text, amount decimal(12, 3));"
                  "CREATE INDEX loaded_id ON loaded (id);")
        with open(site.folder / "in.csv", "w", encoding="utf-8") as file:
            file.write("id,label,amount\n")
            file.writelines(f'{n},"말 ""{n}"", 줄\n바꿈",{n}.125\n' for n in range(1, ROWS + 1))
        yield site.up()
        site.close()
    finally:
        site.discard()


def chunks(site, request_id):
    rows = site.sql("SELECT s.chunk FROM pawl.step_execution s JOIN pawl.execution e "
                    f"ON e.id = s.execution_id WHERE e.request_id = {request_id}")
    return rows[0]["chunk"] if rows else 0


def kill_and_ask_again(site, request_id, job, **params):
    site.servers[-1].kill()
    site.restart_worker()
    lost = site.wait_final(request_id)
    if lost["outcome"] == "COMPLETED":  # it was just done
        return request_id
    assert lost["outcome"] == "WORKER_LOST", lost
    return site.submit_id(job, **params)


def until_done(site, job, kills, **params):
    """Kill each time it has come further, or in the long round each second."""
    request_id = site.submit_id(job, **params)
    seen = 0
    for _ in range(kills):
        def further():
            request = site.get(request_id)
            return request["status"] in ("DONE", "FAILED") or chunks(site, request_id) > seen + 3
        if FULL:
            time.sleep(1)
        else:
            wait_for(further, f"{job} has come further", 60)
        if site.get(request_id)["status"] == "DONE":
            break
        seen = chunks(site, request_id)
        request_id = kill_and_ask_again(site, request_id, job, **params)
    return site.wait_done(request_id, 300)


def test_A22_a_load_killed_again_and_again_has_each_row_once(killed):
    until_done(killed, "load", 60 if FULL else 3, name="in")
    (found,) = killed.shop_rows("SELECT count(*) AS n, count(DISTINCT id) AS ids, "
                                "min(id) AS low, max(id) AS high FROM loaded")
    assert found == {"n": ROWS, "ids": ROWS, "low": 1, "high": ROWS}
    assert killed.one("SELECT count(DISTINCT instance_id) AS n FROM pawl.execution") == 1
    assert killed.count("execution") > 1
    (step,) = killed.sql("SELECT read_count, write_count FROM pawl.step_execution "
                         "ORDER BY id DESC LIMIT 1")
    assert step == {"read_count": ROWS, "write_count": ROWS}


def test_B20_a_killed_workbook_goes_on_to_the_same_bytes(killed):
    whole = killed.wait_done(killed.submit_id("book", copy=1), 300)
    again = until_done(killed, "book", 5 if FULL else 2, copy=2)
    assert again["result"]["sha256"] == whole["result"]["sha256"]
    assert again["result"]["rows"] == ROWS
    assert killed.parts() == []


def test_A22_what_another_instance_of_that_number_committed_is_not_taken_for_ours(killed):
    """As after the store was restored from an older backup."""
    (killed.folder / "few.csv").write_text("id,label,amount\n1,a,1.5\n", encoding="utf-8")
    killed.wait_done(killed.submit_id("load", name="few"))
    last = killed.one("SELECT max(id) AS id FROM pawl.instance")
    for number in range(last + 1, last + 10):
        killed.shop("INSERT INTO pawl_checkpoint (store_id, instance, step, token, chunk, "
                    f"updated_at) SELECT store_id, {number}, 'load', 0, 3, max(updated_at) "
                    "FROM pawl_checkpoint GROUP BY store_id;")
    failed = killed.wait_final(killed.submit_id("load", name="few"))
    assert failed["outcome"] == "ERROR"
    assert "restored from an older backup" in failed["detail"]
    assert f"instance {last + 1}" in failed["detail"]

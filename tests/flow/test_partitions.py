"""A step in partitions: carried out by all free slots, each row once, whoever dies."""


import pytest
from pawl_env import Site, wait_for

ROWS = 1200
STEP = """\
  {name}:
    params: {{ms: {{type: integer, default: 0}}, bad: {{type: integer, default: -1}}}}
    retry: {{attempts: {attempts}, on: [ERROR, WORKER_LOST], backoff: 0s}}
    steps:
      - name: copy
        chunk: 25
        partitions: 4
        partition: {{key: id}}
        read: {{database: shop, sql: "SELECT id, {bad} AS two, :ms AS ms FROM source"}}
        write: {{database: {to}, rows: "INSERT INTO {table} (id) SELECT {id} {nap}"}}
"""
ONE_BAD = {"pg": "10 / (CASE WHEN id = :bad THEN 0 ELSE 5 END)",
           "sqlite": "abs(CASE WHEN id = :bad THEN -9223372036854775807 - 1 ELSE 2 END)"}


def job(name, kind, to, attempts=2):
    pg = kind == "pg"
    return STEP.format(
        name=name, attempts=attempts, bad=ONE_BAD[kind], to=to,
        table="copied" if to == "main" else "moved",
        id="CAST(:id AS bigint)" if pg else ":id",
        nap="FROM pg_sleep(CAST(:ms AS bigint) / 1000.0)" if pg else "WHERE :ms >= 0")


ITEMS = """\
  items:
    retry: none
    steps:
      - name: copy
        chunk: 25
        partitions: 3
        read: {items: {tens: {from: 1, to: 120}, ones: {from: 0, to: 9}}}
        write: {database: main, rows: "INSERT INTO copied (id) VALUES (10 * :tens + :ones)"}
"""
JOBS = {kind: ITEMS + job("copy", kind, "main") + job("move", kind, "shop")
        + job("once", kind, "main", attempts=1) for kind in ("sqlite", "pg")}


@pytest.fixture(scope="module", params=["sqlite", "pg"])
def site(request, cluster):
    kind = request.param
    site = Site(kind, cluster, JOBS[kind])
    try:
        site.pawl("migrate")
        site.store_do("CREATE TABLE copied (id bigint)")
        if kind == "pg":
            site.store_do("GRANT ALL ON copied TO pawl_worker")
        if kind == "sqlite":  # read and written at once
            site.shop("PRAGMA journal_mode = WAL")
        site.shop("CREATE TABLE moved (id bigint)")
        site.shop("CREATE TABLE source (id bigint PRIMARY KEY)")
        site.shop("INSERT INTO source (id) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL "
                  f"SELECT i + 1 FROM n WHERE i < {ROWS}) SELECT 3 * i - 2000 FROM n")
        yield site.up()
        site.down()
        site.pawl("fsck")
        site.close()
    finally:
        site.discard()


def assert_each_once(site, table="copied"):
    read = site.sql if table == "copied" else site.shop_rows
    told = read(f"SELECT count(*) AS n, count(DISTINCT id) AS d FROM {table}")[0]
    assert (told["n"], told["d"]) == (ROWS, ROWS), told


def empty(site):
    site.store_do("DELETE FROM copied")
    site.shop("DELETE FROM moved")


def partitions(site, where="true"):
    return site.count("step_partition", where)


def assert_no_hand_is_left(site):
    wait_for(lambda: site.count("claim") + site.count("ready") == 0, "all hands ended")


def test_each_row_is_copied_once_and_the_sums_are_exact(site):
    empty(site)
    request = site.submit_id("copy")
    site.wait_done(request)
    assert_each_once(site)
    execution = site.get(request)["executionId"]
    step = site.call("GET", f"/api/v1/executions/{execution}").json["steps"][0]
    assert (step["state"], step["read"], step["written"]) == ("COMPLETED", ROWS, ROWS)
    hands = site.sql("SELECT count(*) AS n FROM hand" if site.kind == "sqlite"
                     else "SELECT count(*) AS n FROM pawl.hand")[0]["n"]
    assert hands == 3
    assert_no_hand_is_left(site)


def test_items_are_cut_by_their_numbers(site):
    empty(site)
    site.wait_done(site.submit_id("items"))
    assert_each_once(site)
    assert_no_hand_is_left(site)


def test_rows_into_another_database_are_there_once(site):
    empty(site)
    site.wait_done(site.submit_id("move"))
    assert_each_once(site, "moved")
    assert_no_hand_is_left(site)


def test_an_error_in_a_partition_fails_the_step_and_names_it(site):
    empty(site)
    bad = 3 * (ROWS - 5) - 2000
    ended = site.wait_final(site.submit_id("once", bad=bad))
    assert ended["outcome"] == "ERROR", ended
    assert "step copy: partition 4 (" in ended["detail"], ended["detail"]
    assert_no_hand_is_left(site)


def test_a_kill_leaves_each_row_once(site):
    empty(site)
    before = partitions(site)
    request = site.submit_id("copy", ms=1)
    wait_for(lambda: partitions(site) > before and site.sql(
        "SELECT count(*) AS n FROM copied")[0]["n"] > 300, "some are copied")
    site.worker.kill()
    site.restart_worker()
    ended = wait_for(lambda: site.get(request) if site.get(request)["status"] in
                     ("DONE", "FAILED") else None, "the first try has ended")
    last = ended["attempts"][-1]["requestId"]
    site.wait_done(last)
    assert_each_once(site)
    assert_no_hand_is_left(site)


def test_another_worker_goes_on_when_the_one_with_half_of_them_is_killed(site):
    if site.kind == "sqlite":
        pytest.skip("there is one worker")
    empty(site)
    slots = "lanes: {normal: 2, large: 1}\n"
    site.worker.stop()
    site.configure(JOBS["pg"], slots)
    first = site.start_worker("first")
    second = site.start_worker("second")
    request = site.submit_id("copy", ms=3)
    wait_for(lambda: len(site.sql("SELECT DISTINCT worker FROM pawl.claim")) == 2
             and site.sql("SELECT count(*) AS n FROM copied")[0]["n"] > 200, "both work")
    second.kill()
    second = site.start_worker("second")
    wait_for(lambda: site.count("claim") + site.count("ready") == 0, "all ended")
    site.wait_done(site.get(request)["attempts"][-1]["requestId"])
    assert_each_once(site)
    first.stop()
    second.stop()
    site.start_worker("worker")


def test_a_stop_ends_all_and_the_next_request_goes_on(site):
    if site.kind == "sqlite":
        pytest.skip("rows come too fast to be stopped in the middle")
    empty(site)
    request = site.submit_id("copy", ms=8)
    wait_for(lambda: site.sql("SELECT count(*) AS n FROM copied")[0]["n"] > 100, "begun")
    site.pawl("stop", str(request))
    assert site.wait_final(request)["outcome"] == "STOPPED"
    assert_no_hand_is_left(site)
    copied = site.sql("SELECT count(*) AS n FROM copied")[0]["n"]
    assert 0 < copied < ROWS
    site.wait_done(site.submit_id("copy"))
    assert_each_once(site)


def test_A19_a_drain_of_the_run_lets_no_hand_go_on(site):
    """Hands of the other worker stop, those that wait come never, and all goes on later."""
    if site.kind == "sqlite":
        pytest.skip("there is one worker")
    empty(site)
    site.worker.stop()
    site.configure(JOBS["pg"], "lanes: {normal: 1, large: 1}\n")
    first = site.start_worker("first")
    request = site.submit_id("copy", ms=5)
    wait_for(lambda: site.sql("SELECT count(*) AS n FROM copied")[0]["n"] > 0, "begun")
    second = site.start_worker("second")
    wait_for(lambda: len(site.sql("SELECT DISTINCT worker FROM pawl.claim")) == 2, "both work")
    first.stop()
    ended = site.wait_final(request)
    assert ended["outcome"] == "STOPPED", ended
    assert_no_hand_is_left(site)
    copied = site.sql("SELECT count(*) AS n FROM copied")[0]["n"]
    assert 0 < copied < ROWS
    assert site.sql("SELECT count(*) AS n FROM pawl.outcome o JOIN pawl.hand h "
                    f"ON h.request_id = o.id WHERE h.parent_id = {request} "
                    "AND o.outcome = 'CANCELLED'")[0]["n"] >= 1
    site.wait_done(site.submit_id("copy"))
    assert_each_once(site)
    second.stop()
    site.start_worker("worker")

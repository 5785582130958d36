"""Going on where a run stopped: who resumes what, and what stands meanwhile."""

import contextlib
import subprocess
import time

import pytest

import flow_jobs as jobs
import pawl_env
from pawl_env import wait_for

# The third chunk of four waits for as long as the test keeps the gate closed. The pad
# makes the server send each row at once instead of collecting a buffer of them.
READ = ("SELECT i AS n, cast(:tag AS text) AS tag, CASE WHEN i > 10 THEN "
        "cast(pg_advisory_lock_shared(7700) AS text) END AS gate, repeat('x', 9000) AS pad "
        "FROM generate_series(1, :rows) i ORDER BY i")
JOBS = f"""\
  collect:
    params:
      rows: {{type: integer, default: 40}}
      tag: {{type: string, default: ""}}
    steps:
      - name: before
        read: {{database: pg, sql: "SELECT 'before' AS tag, 0 AS n"}}
        write: {{database: main, rows: "INSERT INTO effect (tag, n) VALUES (:tag, :n)"}}
      - name: rows
        chunk: 4
        read: {{database: pg, sql: "{READ}"}}
        write: {{database: main, rows: "INSERT INTO effect (tag, n) VALUES (:tag, :n)"}}
  file:
    params:
      rows: {{type: integer, default: 40}}
      tag: {{type: string, default: ""}}
    steps:
      - name: rows
        chunk: 4
        read: {{database: pg, sql: "{READ}"}}
        write: {{file: "rows.csv"}}
  purge:
    params:
      source: {{type: string, default: A}}
      confirm_purge: {{type: boolean, confirm: true}}
    retry: none
    steps:
      - name: fail
        read: {{database: pg, sql: "SELECT 1 / 0 AS n"}}
        write: {{database: main, rows: "INSERT INTO effect (tag, n) VALUES ('x', :n)"}}
"""
JOBS += jobs.variant(JOBS[:JOBS.index("  file:")], "free", duplicates="allow")


@pytest.fixture(scope="module", params=["sqlite", "pg"])
def site(request, cluster):
    site = pawl_env.Site(request.param, cluster, JOBS)
    try:
        site.pawl("migrate")
        site.store_do("CREATE TABLE effect (tag text NOT NULL, n integer NOT NULL)")
        if site.kind == "pg":
            site.store_do("GRANT SELECT, INSERT ON effect TO pawl_worker")
        site.up()
        yield site
        site.close()
    finally:
        site.discard()


@contextlib.contextmanager
def closed_gate(site):
    with subprocess.Popen(["psql", "-X", "-q", "-A", "-t", site.pg_url],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          encoding="utf-8") as psql:
        psql.stdin.write("SELECT pg_advisory_lock(7700), 'closed';\n")
        psql.stdin.flush()
        assert "closed" in psql.stdout.readline()
        yield
        psql.stdin.close()  # it opens with the session's end


def under_way(site, job, tag, **params):
    """Two chunks are committed, the third waits at the gate."""
    before = len(numbers(site, tag))
    request_id = site.submit_id(job, tag=tag, **params)
    wait_for(lambda: len(numbers(site, tag)) == before + 8, "two chunks are committed")
    return request_id


def stopped(site, job, **params):
    with closed_gate(site):
        request_id = under_way(site, job, **params)
        answer = site.call("POST", f"/api/v1/requests/{request_id}/stop")
        assert answer.status == 202
        wait_for(lambda: site.count("execution", f"request_id = {request_id} AND "
                                    "state = 'STOPPING'"), "STOPPING shows at once")
    request = site.wait_final(request_id)
    assert (request["status"], request["outcome"]) == ("DONE", "STOPPED")
    return request


def execution(site, request):
    return site.call("GET", f"/api/v1/executions/{request['executionId']}").json


def numbers(site, tag):
    return [row["n"] for row in site.sql("SELECT n FROM effect WHERE tag = "
                                         f"'{tag}' ORDER BY n")]


def step(got, name):
    (found,) = [s for s in got["steps"] if s["name"] == name]
    return found


def test_A20_A22_a_stopped_run_goes_on_and_repeats_nothing(site):
    begun = len(numbers(site, "before"))
    first = stopped(site, "collect", tag="a22")
    assert "ask for it again" in first["detail"].lower()
    done = numbers(site, "a22")
    assert done == list(range(1, 13))
    before = execution(site, first)
    assert (before["state"], step(before, "rows")["state"]) == ("STOPPED", "STOPPED")
    assert step(before, "rows")["written"] == len(done)

    why = site.call("GET", f"/api/v1/requests/{first['requestId']}/why").json["reasons"]
    assert [reason["code"] for reason in why] == ["STOPPED", "CAN_GO_ON"]

    # Nothing given: the parameters of the first run.
    second = site.wait_done(site.submit_id("collect"))
    assert numbers(site, "a22") == list(range(1, 41))
    after = execution(site, second)
    assert after["instanceId"] == before["instanceId"]
    assert after["resumedFrom"] == before["executionId"] and before["resumedFrom"] is None
    assert after["params"]["tag"] == "a22"
    why = site.call("GET", f"/api/v1/requests/{first['requestId']}/why").json["reasons"]
    assert f"Request {second['requestId']} went on" in why[1]["text"]
    rows = step(after, "rows")
    assert (rows["read"], rows["written"], rows["effect"]) == (40, 40, "transactional")
    assert rows["executionId"] == after["executionId"]
    # The step that was complete was not done again.
    assert len(numbers(site, "before")) == begun + 1
    assert step(after, "before")["executionId"] == before["executionId"]


def test_A20_a_part_goes_when_the_next_run_has_all_of_it(site):
    for _ in range(3):
        with closed_gate(site):
            request_id = site.submit_id("file", tag="part")
            wait_for(lambda: site.sql("SELECT 1 AS x FROM pawl.step_execution s JOIN "
                                      "pawl.execution e ON e.id = s.execution_id "
                                      f"WHERE e.request_id = {request_id}"), "it runs")
            assert site.call("POST", f"/api/v1/requests/{request_id}/stop").status == 202
            wait_for(lambda: site.count("execution", f"request_id = {request_id} AND "
                                        "state = 'STOPPING'"), "it is asked to stop")
        assert site.wait_final(request_id)["outcome"] == "STOPPED"
        assert len(site.parts_of(request_id)) == 1, site.parts()
    done = site.wait_done(site.submit_id("file"))
    assert done["result"]["rows"] == 40
    assert site.parts_of(done["requestId"]) == []


def test_A32_another_value_or_restart_false_begins_anew(site):
    first = execution(site, stopped(site, "collect", tag="a32"))
    other = execution(site, site.wait_done(site.submit_id("collect", tag="a32", rows=2)))
    assert other["resumedFrom"] is None
    assert other["instanceNumber"] == first["instanceNumber"] + 1
    stopped(site, "collect", tag="a32", rows=30)
    answer = site.post("collect", {"tag": "a32b", "rows": 2}, restart=False)
    last = execution(site, site.wait_done(answer.json["requestId"]))
    assert last["resumedFrom"] is None and numbers(site, "a32b") == [1, 2]


def test_A32_the_same_value_given_again_goes_on(site):
    first = execution(site, stopped(site, "collect", tag="same", rows=30))
    again = site.wait_done(site.submit_id("collect", tag="same", rows=30))
    assert execution(site, again)["instanceId"] == first["instanceId"]
    assert numbers(site, "same") == list(range(1, 31))


def test_A33_a_confirmation_is_good_for_one_request(site):
    def ended(**params):
        request = site.wait_final(site.submit_id("purge", **params))
        assert request["outcome"] == "ERROR"
        return execution(site, request)
    first = ended(source="B", confirm_purge=True)
    plain = ended()
    assert plain["instanceId"] != first["instanceId"]
    assert plain["params"] == {"source": "A"}
    assert ended(source="A")["instanceId"] == plain["instanceId"]
    # After an unconfirmed failure the confirmation is honoured, by a run of its own.
    confirmed = ended(source="A", confirm_purge=True)
    assert confirmed["instanceId"] != plain["instanceId"]
    assert confirmed["params"]["confirm_purge"] is True
    # A restart does not take it along.
    last = site.sql("SELECT max(id) AS id FROM pawl.request WHERE job = 'purge'")[0]["id"]
    answer = site.call("POST", f"/api/v1/requests/{last}/restart")
    assert answer.status == 202, answer
    request = site.wait_final(answer.json["requestId"])
    assert request["params"] == {"source": "A"} and request["restartOf"] == last
    assert execution(site, request)["resumedFrom"] is None


def test_A24_A25_STOPPING_until_it_has_ended_and_no_restart_meanwhile(site):
    def state():
        (row,) = site.sql("SELECT id, state, ended_at FROM pawl.execution "
                          f"WHERE request_id = {request_id}")
        return row
    with closed_gate(site):
        request_id = under_way(site, "collect", "long", rows=14)
        assert site.call("POST", f"/api/v1/requests/{request_id}/stop").status == 202
        wait_for(lambda: state()["state"] == "STOPPING", "STOPPING shows at once")
        assert state()["ended_at"] is None
        assert site.get(request_id)["status"] == "RUNNING"
        answer = site.post("collect", {})
        assert (answer.status, answer.json["code"]) == (409, "JOB_ALREADY_RUNNING")
        answer = site.call("POST", f"/api/v1/requests/{request_id}/restart")
        assert (answer.status, answer.json["code"]) == (409, "JOB_ALREADY_RUNNING")
        # Nor is it for the administrator to end: its worker lives.
        answer = site.call("POST", f"/api/v1/executions/{state()['id']}/recover")
        assert (answer.status, answer.json["code"]) == (409, "JOB_ALREADY_RUNNING")
        assert state()["state"] == "STOPPING" and state()["ended_at"] is None
        assert numbers(site, "long") == list(range(1, 9))
    assert site.wait_final(request_id)["outcome"] == "STOPPED"
    assert state()["state"] == "STOPPED" and state()["ended_at"]
    assert numbers(site, "long") == list(range(1, 13))
    site.wait_done(site.submit_id("collect"))
    assert numbers(site, "long") == list(range(1, 15))


def test_A32_where_several_run_only_a_named_request_is_gone_on_with(site):
    first = stopped(site, "free", tag="named")
    fresh = execution(site, site.wait_done(site.submit_id("free", tag="named", rows=1)))
    assert fresh["resumedFrom"] is None
    said = site.pawl("restart", str(first["requestId"]))
    assert f"goes on with the work of request {first['requestId']}" in said.stdout
    (row,) = site.sql("SELECT max(id) AS id FROM pawl.request")
    again = site.wait_done(row["id"])
    assert again["restartOf"] == first["requestId"]
    assert execution(site, again)["resumedFrom"] == first["executionId"]
    assert sorted(numbers(site, "named"))[1:] == list(range(1, 41))
    answer = site.call("POST", f"/api/v1/requests/{first['requestId']}/restart")
    assert (answer.status, answer.json["code"]) == (409, "ALREADY_FINAL")
    assert site.count("audit", f"act = 'restart' AND subject = 'request "
                               f"{first['requestId']}'") == 1
    assert site.pawl("restart", str(first["requestId"]), code=3)


def test_A32_a_restart_that_never_began_is_restarted_with_the_work_that_it_named(site):
    first = stopped(site, "free", tag="never-began")
    site.pawl("pause", "job", "free")
    never = site.call("POST", f"/api/v1/requests/{first['requestId']}/restart")
    assert site.cancel(never.json["requestId"]).status in (200, 202)
    assert site.wait_final(never.json["requestId"])["outcome"] == "CANCELLED"
    answer = site.call("POST", f"/api/v1/requests/{never.json['requestId']}/restart")
    site.pawl("resume", "job", "free")
    again = site.wait_done(answer.json["requestId"])
    assert again["restartOf"] == first["requestId"]
    assert execution(site, again)["resumedFrom"] == first["executionId"]
    assert numbers(site, "never-began") == list(range(1, 41))


def test_A16_two_jobs_asked_for_together_both_run(site):
    rounds = 100 if pawl_env.FULL else 8
    for n in range(rounds):
        ids = [site.submit_id(job, rows=1, tag=f"a16-{n}") for job in ("collect", "free")]
        for request_id in ids:
            request = site.wait_done(request_id)
            assert request["attempt"] == 1 and not request["detail"], request
    assert "conflict" not in site.worker.log() and "serialize" not in site.worker.log()
    assert site.one("SELECT count(*) AS n FROM effect WHERE tag LIKE 'a16-%'") == 2 * rounds


def test_A17_a_start_that_meets_a_conflict_twice_is_made_once(site):
    """SQLite has one writer, so nothing there can conflict."""
    if site.kind != "pg":
        return
    site.store_do("""
        CREATE SEQUENCE a17;
        CREATE FUNCTION a17_refuse() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
        BEGIN
            IF nextval('public.a17') <= (SELECT n FROM public.a17_until) THEN
                RAISE EXCEPTION 'could not serialize: a17' USING ERRCODE = '40001';
            END IF;
            RETURN new;
        END $$;
        CREATE TABLE a17_until AS SELECT 2 AS n;
        CREATE TRIGGER a17 BEFORE INSERT ON pawl.execution FOR EACH ROW EXECUTE FUNCTION a17_refuse();
    """)
    try:
        request = site.wait_done(site.submit_id("collect", rows=1, tag="a17"))
        assert site.count("execution", f"request_id = {request['requestId']}") == 1
        assert numbers(site, "a17") == [1] and site.one("SELECT last_value AS n FROM a17") == 3
        site.store_do("UPDATE a17_until SET n = 1000")
        begun = time.monotonic()
        failed = site.wait_final(site.submit_id("collect", rows=1, tag="a17b"))
        assert failed["status"] == "FAILED" and "a17" in failed["detail"], failed
        print(f"failed after {time.monotonic() - begun:.1f} s: {failed['detail']}")
        assert site.count("execution", f"request_id = {failed['requestId']}") == 0
    finally:
        site.store_do("DROP TRIGGER a17 ON pawl.execution")
    site.wait_done(site.submit_id("collect", rows=1, tag="a17c"))


def test_a_cancelled_run_is_not_gone_on_with(site):
    with closed_gate(site):
        request_id = under_way(site, "collect", "cancelled")
        assert site.cancel(request_id).status == 202
        first = site.wait_final(request_id)
    assert first["outcome"] == "CANCELLED"
    again = execution(site, site.wait_done(site.submit_id("collect", tag="after", rows=1)))
    assert again["resumedFrom"] is None


def test_a_restart_of_what_was_cancelled_says_that_it_begins_anew(site):
    with closed_gate(site):
        request_id = under_way(site, "free", "given-up")
        assert site.cancel(request_id).status == 202
        assert site.wait_final(request_id)["outcome"] == "CANCELLED"
    said = site.pawl("restart", str(request_id)).stdout
    assert f"begins the work of request {request_id} anew" in said
    again = site.wait_done(int(said.split()[1]))
    assert execution(site, again)["resumedFrom"] is None


def test_an_execution_is_stopped_like_its_request(site):
    with closed_gate(site):
        request_id = under_way(site, "free", "by-execution")
        execution_id = site.one("SELECT id FROM pawl.execution WHERE request_id = "
                                f"{request_id}")
        answer = site.call("POST", f"/api/v1/executions/{execution_id}/stop")
        assert (answer.status, answer.json["stopRequested"]) == (202, True)
        wait_for(lambda: site.count("execution", f"id = {execution_id} AND "
                                    "state = 'STOPPING'"), "it is seen")
    assert site.wait_final(request_id)["outcome"] == "STOPPED"
    answer = site.call("POST", f"/api/v1/executions/{execution_id}/stop")
    assert (answer.status, answer.json["code"]) == (409, "ALREADY_FINAL")


def test_A27_A39_what_nobody_carries_is_ended_when_the_job_is_asked_for(site):
    def orphan():
        site.store_do(
            "INSERT INTO pawl.execution (instance_id, job, request_id, token, state, params,"
            " started_at, last_updated) SELECT max(id), 'collect', 1, 999999, 'STARTED', '{}',"
            " 1, 1 FROM pawl.instance WHERE job = 'collect'")
        return site.sql("SELECT max(id) AS id FROM pawl.execution")[0]["id"]
    def state(execution_id):
        (row,) = site.sql("SELECT state, exit_message FROM pawl.execution WHERE id = "
                          f"{execution_id}")
        return row["state"], row["exit_message"] or ""
    stopped(site, "collect", tag="stale")
    dead = orphan()
    request_id = site.submit_id("collect")  # 202, not 409
    if site.kind == "pg":  # an api may not end executions; the run that begins does
        wait_for(lambda: state(dead)[0] == "FAILED", "it is ended")
    assert state(dead)[0] == "FAILED" and "No worker carried it" in state(dead)[1]
    site.wait_done(request_id)
    dead = orphan()
    answer = site.call("POST", f"/api/v1/executions/{dead}/recover")
    assert (answer.status, answer.json["state"]) == (200, "FAILED")  # on PostgreSQL by a worker
    assert state(dead)[0] == "FAILED" and "administrator" in state(dead)[1]
    assert site.count("audit", f"act = 'recover' AND subject = 'execution {dead}'") == 1
    answer = site.call("POST", f"/api/v1/executions/{dead}/recover")
    assert (answer.status, answer.json["code"]) == (400, "VALIDATION_ERROR")
    assert site.call("POST", "/api/v1/executions/99999999/recover").status == 404
    site.pawl("recover", "99999999", code=4)
    if site.kind == "pg":  # nobody is there who would do it
        site.worker.stop()
        dead = orphan()
        answer = site.call("POST", f"/api/v1/executions/{dead}/recover")
        assert (answer.status, answer.json["code"]) == (503, "NO_LIVE_WORKER")
        assert "start a worker" in answer.json["detail"]
        assert site.count("recovery") == 0 and state(dead)[0] == "STARTED"
        site.pawl("recover", str(dead))
        assert state(dead)[0] == "FAILED"
        site.restart_worker()
    site.wait_done(site.submit_id("collect", rows=1, tag="last"))


# --- what the command line says of work that cannot be gone on with ---

BAD = """\
  load:
    retry: none
    steps:
      - name: fail
        read: {database: shop, sql: "SELECT 1 AS x FROM no_such_table"}
        write: {database: main, rows: "INSERT INTO effect VALUES (:x)"}
"""


@pytest.fixture
def lone(cluster):
    site = pawl_env.Site("sqlite", cluster, BAD)
    try:
        yield site.up()
        site.close()
    finally:
        site.discard()


def test_A32b_anew_on_the_command_line_goes_on_with_nothing(lone):
    first = lone.submit_id("load")
    assert lone.wait_final(first)["outcome"] == "ERROR"
    lone.pawl("submit", "load", "--wait", code=1)
    assert execution(lone, lone.wait_final(first + 1))["resumedFrom"] is not None
    lone.pawl("submit", "load", "--anew", "--wait", code=1)
    assert execution(lone, lone.wait_final(first + 2))["resumedFrom"] is None


def test_A32b_anew_is_for_pawl_run_as_well(lone):
    lone.down()
    for words in ((), (), ("--anew",)):
        lone.pawl("run", "load", *words, code=1)
    got = [row["instance_id"] for row in
           lone.sql("SELECT instance_id FROM pawl.execution ORDER BY id")]
    assert got[0] == got[1] != got[2], got


def test_a_restart_names_the_job_that_is_gone_and_not_the_request(lone):
    first = lone.submit_id("load")
    lone.wait_final(first)
    lone.worker.stop()
    lone.configure(BAD.replace("  load:", "  other:"))
    lone.up()
    told = lone.pawl("restart", str(first), code=4)
    assert "there is no job load any more" in told.stderr


# --- a job that is changed between a stop and going on ---

CHANGED = """\
  load:
    retry: none
    steps:
      - name: first
        read: {items: {n: [1, 2, 3]}}
        write: {database: main, rows: "INSERT INTO effect VALUES ('first', CAST(:n AS integer))"}
      - name: second
        chunk: 2
        read: {items: {n: [1, 2, 3, 4, 5]}}
        write: {database: main, rows: "INSERT INTO effect VALUES ('second', CAST(:n AS integer))"}
      - name: third
        sql: "INSERT INTO effect VALUES ('third', 1)"
"""
SECOND = CHANGED[CHANGED.index("      - name: second"):CHANGED.index("      - name: third")]


@pytest.mark.parametrize("kind", ["sqlite", "pg"] if pawl_env.FULL else ["sqlite"])
def test_A22_A32_a_job_that_was_changed_goes_on_as_it_was_or_not_at_all(kind, cluster):
    site = pawl_env.Site(kind, cluster, CHANGED, roles=False)
    try:
        site.pawl("migrate")
        site.store_do("CREATE TABLE effect (tag text NOT NULL, n integer NOT NULL, "
                      "CHECK (tag <> 'second' OR n < 4))")

        def run(jobs_text, code, *told):
            site.configure(jobs_text)
            answer = site.pawl("run", "load", code=code)
            for part in told:
                assert part in answer.stderr + answer.stdout, answer
            return site.sql("SELECT tag, count(*) AS n FROM effect GROUP BY tag ORDER BY tag")

        there = run(CHANGED, 1, "step second")
        assert there == [{"tag": "first", "n": 3}, {"tag": "second", "n": 2}]
        site.store_do("ALTER TABLE effect RENAME TO checked")
        site.store_do("CREATE TABLE effect (tag text, n integer)")
        site.store_do("INSERT INTO effect SELECT tag, n FROM checked")
        for changed, part in (
                (CHANGED.replace("name: second", "name: renamed"), 'begun step "second"'),
                (CHANGED.replace(SECOND, ""), 'begun step "second"'),
                (CHANGED.replace("name: first", "name: other"), 'done step "first"'),
                (CHANGED.replace(SECOND, SECOND.replace("chunk: 2", "partitions: 2")), "in partitions"),
                (CHANGED.replace(SECOND, '      - name: second\n        sql: "DELETE FROM effect"\n'),
                 'begun step "second" as "chunk from items into main", which is "sql" now')):
            assert run(changed, 1, part, "restart: false") == there
        last = site.sql("SELECT outcome FROM outcome ORDER BY id DESC LIMIT 1" if kind == "sqlite"
                        else "SELECT outcome FROM pawl.outcome ORDER BY id DESC LIMIT 1")
        assert last == [{"outcome": "REFUSED"}]
        # Steps that were not begun may change, and statements and sizes as well.
        changed = CHANGED.replace("name: third", "name: last").replace("'third'", "'last'")
        assert run(changed.replace("chunk: 2", "chunk: 1"), 0) == [
            {"tag": "first", "n": 3}, {"tag": "last", "n": 1}, {"tag": "second", "n": 5}]
    finally:
        site.discard()

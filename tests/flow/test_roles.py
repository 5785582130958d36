"""PostgreSQL with roles: api and worker get on with the rights of pawl_api and
pawl_worker, and whoever may make no roles is told what to do."""

import json
import subprocess

import flow_jobs as jobs
import pytest
from pawl_env import FULL, PAWL, Cluster, Site, psql, read_csv, wait_for

LINK = jobs.variant(jobs.QUICK, "link")
RETRIED = jobs.variant(jobs.BROKEN, "retried",
                       retry="{attempts: 2, on: [ERROR], backoff: 0s}")
LOST = jobs.variant(jobs.SLOW, "lost", retry="{attempts: 2, backoff: 0s}")
ONE = jobs.variant(jobs.SLOW, "one", duplicates=None)
SAME = jobs.variant(jobs.QUICK, "same", lane="parked", duplicates="reuse")
FAR = jobs.variant(jobs.QUICK, "far", lane="far")
COUNTED = """\
  counted:
    estimate: {sql: "SELECT count(*) FROM public.to_do"}
    steps: [{name: none, sql: "SELECT 1"}]
"""
INTO_MAIN = """\
  into-main:
    duplicates: allow
    steps:
      - name: copy
        chunk: 2
        read: {database: main, sql: "SELECT x FROM numbers ORDER BY x"}
        write: {database: main, table: copies}
"""
JOBS = (COUNTED + jobs.QUICK + jobs.SLOW + LINK + RETRIED + LOST + ONE + SAME + FAR
        + jobs.variant(jobs.QUICK, "parked", lane="parked"))
SETTINGS = """\
lanes: {normal: 4, large: 2, parked: 0, far: 0}
worker: {heartbeat: 1s, dead_after: 4s, reap: 1s, poll: 1s}
schedules:
  each-second: {job: link, cron: "* * * * * *", params: {tag: slot}}
"""


@pytest.fixture(scope="module")
def site(cluster):
    site = Site("pg", cluster, JOBS, SETTINGS)
    try:
        site.up()
        yield site
        site.close()
    finally:
        site.discard()


def test_api_and_worker_are_no_more_than_their_roles(site):
    rows = site.sql("SELECT DISTINCT usename FROM pg_stat_activity "
                    "WHERE datname = current_database() AND application_name LIKE 'pawl-%'")
    assert {row["usename"] for row in rows} >= {"pawl_api", "pawl_worker"}
    assert "postgres" not in {row["usename"] for row in rows}


def test_a_request_runs_to_its_result(site):
    request_id = site.submit_id("quick", rows=3)
    site.wait_done(request_id)
    assert len(read_csv(site.result(request_id))) == 4
    assert site.call("GET", "/api/v1/requests?limit=5").status == 200
    assert site.call("GET", "/api/v1/jobs").status == 200
    assert site.call("GET", "/api/v1/workers").status == 200


def test_cancel_of_what_is_queued_waiting_and_running(site):
    queued = site.submit_id("parked")
    waiting = site.post("link", {}, after=[queued]).json["requestId"]
    assert site.call("GET", f"/api/v1/requests/{queued}/why").status == 200
    assert site.cancel(queued).status == 200
    assert site.get(queued)["outcome"] == "CANCELLED"
    assert site.wait_final(waiting)["outcome"] == "REFUSED"
    running = site.submit_id("slow")
    site.wait_progress(running, 1)
    assert site.cancel(running).status == 202
    assert site.wait_final(running)["outcome"] == "CANCELLED"


def test_stop_and_the_duplicates_rules(site):
    first = site.submit_id("one")
    site.wait_progress(first, 1)
    assert site.post("one").status == 409
    assert site.call("POST", f"/api/v1/requests/{first}/stop").status == 202
    assert site.wait_final(first)["outcome"] == "STOPPED"
    key = {"Idempotency-Key": "k-1"}
    same = [site.post("same", {}, headers=key).json["requestId"] for _ in range(2)]
    assert same[0] == same[1] == site.submit("same")["requestId"]
    assert site.cancel(same[0]).status == 200


def test_what_expires_and_what_starts_later(site):
    later = site.post("quick", {}, notBefore="2099-01-01T00:00:00Z").json["requestId"]
    assert site.cancel(later).status == 200
    site.store_do("INSERT INTO pawl.request (id, job, given, requester, source, lane, "
                  "created_at) SELECT nextval('pawl.request_id'), 'parked', '{}', 'x', "
                  "'sql', 'parked', 1;"
                  "INSERT INTO pawl.ready SELECT max(id), max(id), 'parked', 'parked', 0, "
                  "nextval('pawl.ready_seq'), 1, 2 FROM pawl.request")
    expired = site.one("SELECT max(id) AS id FROM pawl.request WHERE source = 'sql'")
    assert site.wait_final(expired)["outcome"] == "EXPIRED"


def test_a_chain_a_next_try_and_a_takeover(site):
    first = site.post("quick", {}, next=["link"]).json["requestId"]
    after = site.post("link", {}, after=[first]).json["requestId"]
    site.wait_done(after)
    wait_for(lambda: site.sql("SELECT 1 FROM pawl.request r JOIN pawl.outcome USING (id) "
                              f"WHERE requester = 'chain:#{first}'"), "the chain ends")
    failed = site.submit_id("retried")
    wait_for(lambda: site.sql("SELECT 1 FROM pawl.request r JOIN pawl.outcome USING (id) "
                              f"WHERE retry_of = {failed}"), "it was tried again")
    far = site.submit_id("far")  # a lane that no worker has, for longer than two hours
    site.store_do("UPDATE pawl.ready SET ready_since = 1 WHERE lane = 'far'")
    site.wait_done(far)


def test_a_schedule_fires_and_is_paused(site):
    wait_for(lambda: site.count("schedule_slot", "state = 'fired'") > 1, "it fires")
    assert site.call("POST", "/api/v1/schedules/each-second/pause").status == 200
    assert site.call("GET", "/api/v1/schedules").status == 200
    assert site.call("POST", "/api/v1/schedules/each-second/resume").status == 200
    assert site.call("POST", "/api/v1/schedules/each-second/pause").status == 200


def test_what_a_killed_worker_held_is_tried_again_by_another(site):
    running = site.submit_id("lost", rows=3000)
    site.wait_progress(running, 1)
    site.worker.kill()
    site.start_worker("heir")
    assert site.wait_final(running)["outcome"] == "WORKER_LOST"
    (again,) = site.sql(f"SELECT id FROM pawl.request WHERE retry_of = {running}")
    site.wait_progress(again["id"], 1)
    assert site.cancel(again["id"]).status == 202
    site.wait_final(again["id"])


def test_the_command_line_as_these_roles(site):
    done = json.loads(site.pawl("submit", "quick", "--wait", "-q", "--json").stdout)
    assert done["outcome"] == "COMPLETED"
    site.pawl("requests")
    site.pawl("jobs")
    site.pawl("schedules")
    site.pawl("run", "quick", "-q")
    found = json.loads(site.pawl("fsck", "--json").stdout)
    assert found["findings"] == [], found


def test_an_application_submits_by_its_own_role(site):
    site.store_do("DO $$ BEGIN CREATE ROLE pawl_flow_app LOGIN; EXCEPTION WHEN "
                  "duplicate_object OR unique_violation THEN NULL; END $$; "
                  "GRANT pawl_submit TO pawl_flow_app")
    request_id = psql(site.url_of("pawl_flow_app"),
                      "SELECT pawl.submit('quick', '{\"rows\": 2}')")
    assert site.wait_done(int(request_id))["requester"] == "pawl_flow_app"


def test_doctor_has_nothing_to_say_of_these_roles(site):
    report = json.loads(site.pawl("doctor", "--json").stdout)
    lines = [c for c in report["lines"] if "is connected as" in c["text"]]
    assert len(lines) == 2 and all(c["level"] == "ok" for c in lines), report

    # A table of a newer schema, and a worker that is only a reader.
    site.store_do("REVOKE ALL ON pawl.budget FROM pawl_worker")
    report = json.loads(site.pawl("doctor", "--json").stdout)
    assert any("pawl_worker has no right on: budget" in c["text"] for c in report["lines"])
    said = json.loads(site.pawl("migrate", "--json").stdout)
    assert said["roles"] == {"made": 0, "missing": 0, "granted": True}
    (site.folder / "reader.yaml").write_text(
        f"store: {{worker: '{site.url_of('pawl_reader')}'}}\nresults: ./results\n")
    report = json.loads(site.pawl("doctor", "-c", "reader.yaml", "--json", code=1).stdout)
    text = "pawl_reader lacks what pawl_worker has: "
    assert any(text in c["text"] and "delete on worker" in c["text"]
               and c["level"] == "error" for c in report["lines"]), report


def test_an_estimate_on_the_store_is_asked_by_who_submits(site):
    site.store_do("CREATE TABLE public.to_do AS SELECT x FROM generate_series(1, 7) x")
    site.store_do("GRANT SELECT ON public.to_do TO pawl_worker")
    assert site.post("counted").status == 500
    assert "to_do" in site.pawl("submit", "counted", code=1).stderr
    site.store_do("REVOKE SELECT ON public.to_do FROM pawl_worker;"
                  "GRANT SELECT ON public.to_do TO pawl_api")
    answer = site.post("counted")
    assert (answer.status, answer.json["estimate"]) == (202, 7)
    site.wait_done(answer.json["requestId"])
    assert "about 7 rows" in site.pawl("submit", "counted").stdout


def test_a_step_into_the_store_needs_a_grant_on_its_tables(site):
    site.configure(INTO_MAIN, "lanes: {normal: 4}\n", "main.yaml")
    site.store_do("CREATE TABLE public.numbers AS SELECT x FROM generate_series(1, 5) x;"
                  "CREATE TABLE public.copies (x integer);"
                  "GRANT SELECT ON public.numbers TO pawl_worker")
    refused = site.pawl("run", "into-main", "-q", "-c", "main.yaml", code=1)
    assert "copies" in refused.stdout + refused.stderr
    site.store_do("GRANT SELECT, INSERT ON public.copies TO pawl_worker")
    again = site.pawl("run", "into-main", "-q", "-c", "main.yaml")
    assert "withdrawn" in refused.stderr and "withdrawn" not in again.stderr
    assert len(site.sql("SELECT * FROM public.copies")) == 5


# --- migrating ---

@pytest.fixture
def bare():
    """A cluster in which nobody has made the roles yet."""
    cluster = Cluster(own=True)
    sites = []

    def make(**more):
        sites.append(Site("pg", cluster, jobs.QUICK, **more))
        return sites[-1]
    try:
        yield make
        for site in sites:
            site.close()
    finally:
        for site in sites:
            site.discard()
        cluster.close()


def test_roles_are_made_by_who_may_and_else_an_administrator_is_told(bare):
    site = bare()
    database = site.store_url.rsplit("/", 1)[1]
    site.store_do(f'CREATE ROLE app LOGIN; ALTER DATABASE "{database}" OWNER TO app')

    # Its owner makes no roles: the store is there, and the remedy is told.
    said = site.pawl("migrate", PAWL_STORE=site.url_of("app"))
    assert "--print-roles" in said.stderr and "0 ->" in said.stdout
    assert not site.sql("SELECT 1 FROM pg_roles WHERE rolname ~ '^pawl_'")

    # The administrator takes it at its word, twice.
    script = site.pawl("migrate", "--print-roles").stdout
    for _ in range(2):
        psql(site.store_url, script)
    owner = site.one("SELECT nspowner::regrole::text AS o FROM pg_namespace "
                     "WHERE nspname = 'pawl'")
    assert owner == "app"  # whose processes may live by that

    # From now on the owner renews the rights.
    site.store_do("REVOKE ALL ON pawl.request FROM pawl_api")
    said = json.loads(site.pawl("migrate", "--json", PAWL_STORE=site.url_of("app")).stdout)
    assert said["roles"] == {"made": 0, "missing": 0, "granted": True}
    site.start("api")
    site.start_worker("worker")
    site.wait_done(site.submit_id("quick"))


@pytest.mark.skipif(not FULL, reason="a long round: PAWL_FULL=1")
def test_a_store_belongs_to_pawl_owner_whoever_migrates(bare):
    # A member of pawl_owner who may do nothing else.
    other = bare()
    psql(other.store_url, other.pawl("migrate", "--print-roles").stdout)
    other.store_do("CREATE ROLE deploy LOGIN IN ROLE pawl_owner")
    other.pawl("migrate", PAWL_STORE=other.url_of("deploy"))
    owners = other.sql("SELECT DISTINCT relowner::regrole::text AS o FROM pg_class "
                       "WHERE relnamespace = 'pawl'::regnamespace")
    assert [row["o"] for row in owners] == ["pawl_owner"]
    other.start("api")
    other.start_worker("worker")
    other.wait_done(other.submit_id("quick"))

    # By a role that may make roles: what it makes goes to pawl_owner, and it goes on
    # migrating.
    for given in ("ALTER DATABASE {} OWNER TO maker",
                  "GRANT CREATE ON DATABASE {} TO maker;"
                  "GRANT CREATE ON SCHEMA public TO maker"):
        third = bare()
        name = '"' + third.store_url.rsplit("/", 1)[1] + '"'
        third.store_do("DO $$ BEGIN CREATE ROLE maker LOGIN CREATEROLE; "
                       "EXCEPTION WHEN duplicate_object THEN NULL; END $$;"
                       "REVOKE pawl_owner FROM maker;" + given.format(name))
        for _ in range(2):
            said = third.pawl("migrate", "--json", PAWL_STORE=third.url_of("maker"))
            assert json.loads(said.stdout)["roles"]["granted"] is True
        assert third.one("SELECT nspowner::regrole::text AS o FROM pg_namespace "
                         "WHERE nspname = 'pawl'") == "pawl_owner"


@pytest.mark.skipif(not FULL, reason="a long round: PAWL_FULL=1")
def test_stores_that_are_migrated_at_once_make_the_roles_once(bare):
    sites = [bare(roles=False) for _ in range(3)]
    running = [subprocess.Popen([PAWL, "migrate", "--json"], cwd=site.folder,
                                env=site.environment(), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
               for site in sites for _ in range(2)]
    for process in running:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        assert json.loads(out)["roles"]["granted"] is True
    for site in sites:
        assert site.one("SELECT has_table_privilege('pawl_worker', 'pawl.claim', "
                        "'INSERT') AS may") is True

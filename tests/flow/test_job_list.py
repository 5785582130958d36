"""The list of jobs: as many statements for 130 jobs as for 13, quick whatever lies in the
store, and it says of each job what the job and its last execution say of themselves."""

import pathlib
import re
import time

import pytest
from pawl_env import FULL, Site

JOB = """\
  job-{n}:
    steps:
      - name: note
        sql: "SELECT 1"
"""
EXECUTIONS = 100_000 if FULL else 2_000
MANY = {
    "pg": f"INSERT INTO pawl.execution (instance_id, job, request_id, token, state, params, started_at, "
          "ended_at, last_updated) SELECT i.id, i.job, 1, 1, 'COMPLETED', '{}', 1, 2, 2 FROM "
          f"generate_series(1, {EXECUTIONS}) n, (SELECT min(id) AS id, job FROM pawl.instance "
          "WHERE job = 'job-{}' GROUP BY job) i",
    "sqlite": "INSERT INTO pawl.execution (instance_id, job, request_id, token, state, params, started_at, "
              "ended_at, last_updated) SELECT i.id, i.job, 1, 1, 'COMPLETED', '{}', 1, 2, 2 FROM "
              "(WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < "
              f"{EXECUTIONS}) SELECT n FROM s) n, (SELECT min(id) AS id, job FROM pawl.instance "
              "WHERE job = 'job-{}' GROUP BY job) i",
}


@pytest.fixture(scope="module", params=["sqlite", "pg"] if FULL else ["pg"])
def site(request, cluster):
    site = Site(request.param, cluster, "".join(JOB.format(n=n) for n in range(13)))
    try:
        if site.kind == "pg":
            name = site.store_url.rsplit("/", 1)[1]
            cluster.psql("postgres", f"ALTER DATABASE \"{name}\" SET log_statement = 'all'")
        yield site.up()
        site.close()
    finally:
        site.discard()


def listed(site):
    return site.call("GET", "/api/v1/jobs").json["items"]


def statements(site):
    """What GET /jobs runs, by the server's log."""
    log = pathlib.Path(site.cluster.folder, "postgres.log")
    name = site.store_url.rsplit("/", 1)[1]
    listed(site)
    before = log.stat().st_size
    listed(site)
    with open(log, "rb") as file:
        file.seek(before)
        lines = file.read().decode(errors="replace").splitlines()
    return [line for line in lines if f" {name} LOG:" in line
            and re.search("(execute|statement)", line) and "definition" in line]


def test_A40_as_many_statements_for_130_jobs_as_for_13(site):
    assert len(listed(site)) == 13
    few = statements(site) if site.kind == "pg" else []
    site.down()
    site.configure("".join(JOB.format(n=n) for n in range(130)))
    site.up()
    assert len(listed(site)) == 130
    if site.kind == "pg":
        assert len(statements(site)) == len(few) == 1, few


def test_A41_the_list_says_what_each_job_and_its_last_execution_say(site):
    for n in range(5):
        for _ in range(n):
            site.wait_done(site.submit_id(f"job-{n}"))
    # Of two instances the newer one counts, though the older one has a newer execution.
    site.store_do(MANY[site.kind].replace("job-{}", "job-3").replace(str(EXECUTIONS), "1"))
    for item in listed(site):
        assert site.call("GET", f"/api/v1/jobs/{item['job']}").json == item
        last = item["lastExecution"]
        if not last:
            assert site.count("execution", f"job = '{item['job']}'") == 0
            continue
        detail = site.call("GET", f"/api/v1/executions/{last['executionId']}").json
        assert (last["instanceId"], last["state"]) == (detail["instanceId"], detail["state"])
        assert last["instanceId"] == site.one(
            f"SELECT max(id) AS id FROM pawl.instance WHERE job = '{item['job']}'")
    assert sum(item["lastExecution"] is not None for item in listed(site)) == 4


def times_ms(site):
    connection = site.api.connect()
    took = []
    for _ in range(40):
        begun = time.monotonic()
        assert site.api.call("GET", "/api/v1/jobs", connection=connection).status == 200
        took.append((time.monotonic() - begun) * 1000)
    connection.close()
    return sorted(took)


def test_A40_it_is_as_quick_with_much_in_the_store(site):
    """All of them of one instance, while most jobs have none: the worst for a plan."""
    before = times_ms(site)
    site.store_do(MANY[site.kind].replace("job-{}", "job-1"))
    if site.kind == "pg":
        site.store_do("ANALYZE")
    assert site.count("execution") > EXECUTIONS
    after = times_ms(site)
    print(f"{site.kind}, {EXECUTIONS} executions: median {before[20]:.1f}, then {after[20]:.1f} ms, "
          f"p95 {after[37]:.1f} ms")
    assert after[20] < 2 * before[20] + 20

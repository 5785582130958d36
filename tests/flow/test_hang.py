"""A database of the user's that falls silent in the middle of a run: it is ended by its
timeout or a cancel nonetheless, and keeps nobody else from working."""

import os
import time

from flow_proxy import Proxy
from pawl_env import Site, psql, wait_for

NAME = f"hang_{os.getpid()}"
JOBS = f"""\
  load:
    timeout: 6s
    retry: none
    steps:
      - name: load
        chunk: 1
        read: {{items: {{n: {{from: 1, to: 1000000}}}}}}
        write: {{database: far, rows: "INSERT INTO {NAME} SELECT CAST(:n AS bigint)"}}
  pull:
    retry: none
    steps:
      - name: pull
        chunk: 10
        read: {{database: far, sql: "SELECT n, pg_sleep(0.001) AS s FROM generate_series(1, 1000000) n"}}
        write: {{file: pulled.csv}}
  fill:
    retry: none
    steps:
      - name: fill
        chunk: 5000
        read: {{items: {{n: {{from: 1, to: 1000000}}}}}}
        process: {{map: {{set: {{pad: "{'x' * 4000}"}}}}}}
        write: {{database: near, table: {NAME}_wide}}
  quick:
    duplicates: allow
    steps:
      - name: quick
        read: {{items: {{n: [1, 2, 3]}}}}
        write: {{file: quick.csv}}
"""


def progress(site, request):
    return (site.get(request).get("progress") or {}).get("done") or 0


def test_A19_a_database_that_hangs_keeps_no_run_from_its_end(cluster, tmp_path):
    proxy = Proxy(cluster.url)
    near = Proxy(cluster.url, tmp_path, silent_after=2_000_000)  # in the midst of a COPY
    psql(cluster.url, f"CREATE TABLE {NAME} (n bigint);"
                      f"CREATE TABLE {NAME}_wide (n bigint, pad text)")
    site = Site("sqlite", cluster, JOBS, databases={"far": proxy.url, "near": near.url})
    try:
        site.up()
        filling = site.submit_id("fill")
        wait_for(near.silent.is_set, "a COPY is under way")
        pulled = site.submit_id("pull")
        wait_for(lambda: progress(site, pulled) > 10, "rows are pulled")
        late = site.submit_id("load")  # last: its time runs
        wait_for(lambda: progress(site, late) > 3, "rows are loaded")
        proxy.silent.set()
        began = time.monotonic()
        for request in (pulled, filling):
            site.pawl("cancel", str(request))
        for request in (pulled, filling):
            ended = site.wait_final(request)
            assert ended["outcome"] == "CANCELLED", ended
        ended = site.wait_final(late)
        assert ended["outcome"] == "TIMEOUT", ended
        assert time.monotonic() - began < 45
        began = time.monotonic()
        site.wait_done(site.submit_id("quick"))
        assert time.monotonic() - began < 3
        # What was committed there is there once; nobody knows about the chunk under way.
        told = psql(cluster.url, f"SELECT count(*) - count(DISTINCT n), max(n) - count(*) FROM {NAME}")
        assert told.strip() == "0|0"
        site.close()
    finally:
        site.discard()
        proxy.close()
        near.close()

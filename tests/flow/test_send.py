"""Rows sent out: a call for each row or chunk, the same key whenever it is sent again."""

import collections
import http.server
import json
import os
import threading

import pytest

from pawl_env import Site

SECRET = "s3nd/key+with=signs"
SETTINGS = "budgets: {out: {per_day: 1000}}\nkeys: [OUT_KEY]\n"


class Receiver:
    """Keeps each call; `reply(call)` says what is answered."""

    def __init__(self):
        self.calls = []
        self.by_key = {}
        self.reply = lambda call: 200
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                length = int(self.headers.get("Content-Length") or 0)
                call = {"method": self.command, "path": self.path,
                        "headers": dict(self.headers),
                        "key": self.headers.get("Idempotency-Key"),
                        "body": self.rfile.read(length).decode()}
                receiver.calls.append(call)
                status = receiver.reply(call)
                if status == 200:
                    receiver.by_key.setdefault(call["key"], call["body"])
                data = b"{}"
                try:
                    self.send_response(status)
                    self.send_header("Content-Length", str(len(data)))
                    self.end_headers()
                    self.wfile.write(data)
                except OSError:
                    self.close_connection = True  # the caller was killed

            do_PUT = do_POST

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def seen(self):
        """How often each row has come, and how often for one that honours the key."""
        every = collections.Counter(json.loads(c["body"])["n"] for c in self.calls)
        kept = collections.Counter(json.loads(b)["n"] for b in self.by_key.values())
        return every, kept

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def job(name, http, chunk=4, rows=10, more=""):
    return f"""\
  {name}:
    needs_keys: [OUT_KEY]
    retry: none
    steps:
      - name: send
        chunk: {chunk}
        {more}
        read: {{database: main, sql: "SELECT n, who FROM outgoing WHERE n <= {rows} ORDER BY n"}}
        write:
          http: {{{http}, retry: {{attempts: 3, wait: 5ms}}}}
"""


# What is sent does not hang on the store; what comes again after a kill might.
QUICK_ON_PG = "test_rows_of_a_run_that_is_killed"


@pytest.fixture(params=["sqlite", "pg"])
def place(request, cluster):
    if (request.param == "pg" and not os.environ.get("PAWL_FULL")
            and not request.node.name.startswith(QUICK_ON_PG)):
        pytest.skip("with PAWL_FULL")
    receiver = Receiver()
    sites = []

    def start(site):
        if site.kind == "sqlite":
            return site.start("serve", OUT_KEY=SECRET)
        return site.start_worker("worker", OUT_KEY=SECRET)

    def make(jobs, settings=SETTINGS):
        site = Site(request.param, cluster, jobs.replace("URL", receiver.url), settings)
        sites.append(site)
        site.pawl("migrate")
        if site.kind == "pg":
            site.store_do("ALTER DEFAULT PRIVILEGES IN SCHEMA public "
                          "GRANT ALL ON TABLES TO pawl_worker, pawl_api")
        site.store_do("CREATE TABLE outgoing (n integer, who text)")
        values = ", ".join(f"""({n}, 'a "{n}" & b/c')""" for n in range(1, 11))
        site.store_do(f"INSERT INTO outgoing VALUES {values}")
        if site.kind == "pg":
            site.start("api")
        return site, receiver, start(site)

    make.start = start
    yield make
    receiver.close()
    for site in sites:
        site.close()


def test_rows_are_sent_one_by_one_or_by_the_chunk(place):
    site, receiver, _ = place(
        job("rows", 'url: "URL/people/{who}", method: PUT, query: {k: "{key:OUT_KEY}"}, '
                    'headers: {X-N: "{n}"}, budget: out')
        + job("own", 'url: "URL/own", json: {name: "{who}"}, idempotency_key: X-Once', rows=1)
        + job("lists", 'url: "URL/bulk", per: chunk')
        + job("lines", 'url: "URL/lines", per: chunk, as: jsonl')
        + job("parts", 'url: "URL/parts"', more="partitions: 3\n        partition: {key: n}")
        + job("fails", 'url: "URL/fail", outcomes: {status: {422: fatal}}'))
    assert site.wait_final(site.submit_id("rows"))["outcome"] == "COMPLETED"
    assert [json.loads(c["body"]) for c in receiver.calls] == [
        {"n": n, "who": f'a "{n}" & b/c'} for n in range(1, 11)]
    first = receiver.calls[0]
    assert first["method"] == "PUT" and first["headers"]["X-N"] == "1"
    assert first["headers"]["Content-Type"] == "application/json"
    assert first["path"] == "/people/a%20%221%22%20%26%20b%2Fc?k=s3nd%2Fkey%2Bwith%3Dsigns"
    assert len({c["key"] for c in receiver.calls}) == 10
    assert site.one("SELECT used FROM pawl.budget") == 10
    assert site.one("SELECT effect FROM pawl.step_execution") == "at-least-once"

    receiver.calls.clear()
    assert site.wait_final(site.submit_id("own"))["outcome"] == "COMPLETED"
    assert json.loads(receiver.calls[0]["body"]) == {"name": 'a "1" & b/c'}
    assert len(receiver.calls[0]["headers"]["X-Once"]) == 64 and not receiver.calls[0]["key"]

    receiver.calls.clear()
    assert site.wait_final(site.submit_id("lists"))["outcome"] == "COMPLETED"
    assert [[row["n"] for row in json.loads(c["body"])] for c in receiver.calls] == [
        [1, 2, 3, 4], [5, 6, 7, 8], [9, 10]]

    receiver.calls.clear()
    assert site.wait_final(site.submit_id("lines"))["outcome"] == "COMPLETED"
    assert [[json.loads(line)["n"] for line in c["body"].splitlines()] for c in receiver.calls] == [
        [1, 2, 3, 4], [5, 6, 7, 8], [9, 10]]
    assert receiver.calls[0]["headers"]["Content-Type"] == "application/jsonl"

    receiver.calls.clear()
    receiver.by_key.clear()
    assert site.wait_final(site.submit_id("parts"))["outcome"] == "COMPLETED"
    assert receiver.seen() == ({n: 1 for n in range(1, 11)},) * 2

    # 500 is tried again with the same key; a fatal one names the row, and gone on with
    # from the last whole chunk the rows before it come again with the keys they had.
    receiver.calls.clear()
    receiver.by_key.clear()
    bad = [500, 500, 200]

    def reply(call):
        row = json.loads(call["body"])["n"]
        return bad.pop(0) if row == 2 and bad else 422 if row == 7 else 200
    receiver.reply = reply
    ended = site.wait_final(site.submit_id("fails"))
    assert ended["outcome"] == "ERROR"
    assert "row 7 (n=7" in ended["detail"] and "422" in ended["detail"], ended
    assert SECRET not in json.dumps(ended)
    assert len({c["key"] for c in receiver.calls if json.loads(c["body"])["n"] == 2}) == 1
    assert receiver.seen()[0] == {1: 1, 2: 3, 3: 1, 4: 1, 5: 1, 6: 1, 7: 1}
    receiver.reply = lambda call: 200
    assert site.wait_final(site.submit_id("fails"))["outcome"] == "COMPLETED"
    every, kept = receiver.seen()
    assert every == {1: 1, 2: 3, 3: 1, 4: 1, 5: 2, 6: 2, 7: 2, 8: 1, 9: 1, 10: 1}
    assert kept == {n: 1 for n in range(1, 11)}


def test_rows_that_are_refused_are_left_out_and_the_others_sent_once(place):
    site, receiver, _ = place(
        job("rows", 'url: "URL/rows", outcomes: {status: {409: skip, 500: transient, 422: fatal}}',
            more="skip: {limit: 3, on: [upstream, rejected]}")
        + job("lists", 'url: "URL/lists", per: chunk, outcomes: {status: {409: skip}}',
              more="skip: {limit: 3, on: [rejected]}"))
    receiver.reply = lambda call: {3: 409, 8: 500}.get(json.loads(call["body"])["n"], 200)
    assert site.wait_final(site.submit_id("rows"))["outcome"] == "COMPLETED"
    assert site.sql("SELECT class AS class, item FROM pawl.step_skip ORDER BY item") == [
        {"class": "rejected", "item": 3}, {"class": "upstream", "item": 8}]
    every, kept = receiver.seen()
    assert every == {n: {3: 2, 8: 6}.get(n, 1) for n in range(1, 11)}
    assert sorted(kept) == [1, 2, 4, 5, 6, 7, 9, 10]
    receiver.calls.clear()
    receiver.reply = lambda call: 409 if '"n":3,' in call["body"] else 200
    assert site.wait_final(site.submit_id("lists"))["outcome"] == "COMPLETED"
    assert [[row["n"] for row in json.loads(c["body"])] for c in receiver.calls] == [
        [1, 2, 3, 4], [1], [2], [3], [4], [5, 6, 7, 8], [9, 10]]


def test_rows_of_a_run_that_is_killed_come_again_with_their_keys(place):
    site, receiver, server = place(job("rows", 'url: "URL/rows", budget: out'))
    held = threading.Event()
    let_go = threading.Event()

    def reply(call):
        if json.loads(call["body"])["n"] == 7 and not held.is_set():
            held.set()
            let_go.wait(30)
        return 200
    receiver.reply = reply
    killed = site.submit_id("rows")
    assert held.wait(30)
    server.kill()
    let_go.set()
    place.start(site)
    assert site.wait_final(killed)["outcome"] == "WORKER_LOST"
    assert site.wait_final(site.submit_id("rows"))["outcome"] == "COMPLETED"
    every, kept = receiver.seen()
    assert kept == {n: 1 for n in range(1, 11)}
    assert every == {n: 2 if n in (5, 6, 7) else 1 for n in range(1, 11)}


def test_a_limit_stops_the_run_behind_the_last_whole_chunk(place):
    site, receiver, _ = place(job("rows", 'url: "URL/rows", budget: out'),
                              "budgets: {out: {per_day: 6}}\nkeys: [OUT_KEY]\n")
    stopped = site.wait_final(site.submit_id("rows"))
    assert stopped["outcome"] == "STOPPED" and "6 of 6" in stopped["detail"], stopped
    assert site.one("SELECT write_count FROM pawl.step_execution") == 4
    site.store_do("DELETE FROM pawl.budget")
    assert site.wait_final(site.submit_id("rows"))["outcome"] == "COMPLETED"
    every, kept = receiver.seen()
    assert kept == {n: 1 for n in range(1, 11)}
    assert every[5] == every[6] == 2 and sum(every.values()) == 12

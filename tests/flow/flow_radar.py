"""The thirteen jobs of examples/buildrisk on a site, with the stand-in for the services."""

import dataclasses
import datetime  # noqa: F401
import pathlib
import sys
import threading

from pawl_env import ROOT, Site, wait_for

sys.path.insert(0, str(pathlib.Path(ROOT) / "examples/buildrisk"))

import prepare  # noqa: E402
from standin.server import Server  # noqa: E402

# A Friday. What is pending hangs on the day, so it is the same one for all: for the
# tables (br_clock) and for the stand-in.
DAY = "2026-11-27"
MONTHS = 24
CELLS = 3 * MONTHS
CHUNK = 20  # of apt-trade


class Radar(Site):
    def __init__(self, kind, cluster, more_settings=""):
        self.standin = Server(day=DAY)
        threading.Thread(target=self.standin.serve_forever, args=(0.05,), daemon=True).start()
        text = prepare.configuration(f"http://127.0.0.1:{self.standin.port}")
        settings = prepare.section(text, "keys") + prepare.section(text, "budgets")
        jobs = prepare.section(text, "jobs").split("\n", 1)[1]
        super().__init__(kind, cluster, jobs, settings + more_settings)

    def environment(self, **more):
        return super().environment(**{**prepare.KEYS, **more})

    def up(self):
        self.pawl("migrate")
        prepare.create_tables(self.store_url)
        self.store_do(f"INSERT INTO br_clock VALUES ('{DAY}')")
        return super().up()

    def discard(self):
        super().discard()
        self.standin.close()

    # --- the stand-in ---

    @property
    def world(self):
        return self.standin.world

    def steer(self, **wanted):
        if wanted.get("reset"):
            self.standin.calls.reset()
        self.standin.script.change(wanted)

    def calls(self):
        return self.standin.calls.told()

    def grow(self, **sizes):
        """More, or fewer, of what the stand-in has."""
        self.world.size = dataclasses.replace(self.world.size, **sizes)

    # --- the tables ---

    def rows(self, query):
        return self.sql(query)

    def number(self, query):
        return self.one(query)

    def cells_pending(self):
        """Three districts of which nothing is known, a fresh budget, no calls so far."""
        self.store_do("DELETE FROM br_district; DELETE FROM br_trade_ledger; "
                      "DELETE FROM br_trade; DELETE FROM pawl.budget; "
                      "INSERT INTO br_district VALUES ('11110'), ('11140'), ('11170')")
        self.steer(reset=True)

    def ledger(self):
        return self.number("SELECT count(*) AS n FROM br_trade_ledger")

    def await_calls(self, least):
        """So many calls have been made, and not yet all of them. A chunk is committed
        before the calls of the next one begin."""
        wait_for(lambda: self.standin.calls.total() >= least, f"{least} calls", every=0.005)
        assert self.standin.calls.total() < CELLS, "it was over before it could be stopped"

    # --- executions ---

    def executions(self, job):
        """Oldest first."""
        return self.rows("SELECT e.id, e.instance_id, e.state, e.params, e.exit_message, "
                         f"e.request_id FROM pawl.execution e WHERE e.job = '{job}' ORDER BY e.id")

    def steps(self, request_id):
        rows = self.rows("SELECT s.* FROM pawl.step_execution s JOIN pawl.execution e "
                         f"ON e.id = s.execution_id WHERE e.request_id = {request_id} "
                         "ORDER BY s.ordinal")
        return {row["name"]: row for row in rows}

    def run(self, job, **params):
        request_id = self.submit_id(job, **params)
        self.wait_done(request_id)
        return request_id

    def ends(self, job, outcome, params=None, **members):
        """Ask for it and give the request at its end."""
        answer = self.post(job, params, **members)
        assert answer.status == 202, answer
        request = self.wait_final(answer.json["requestId"])
        assert request["outcome"] == outcome, request
        return request

    def check_cells(self):
        """Each cell was asked for once, and its trades are there."""
        items = {item: n for item, n in self.calls()["items"].items() if "LAWD_CD" in item}
        assert len(items) == CELLS and set(items.values()) == {1}, items
        assert self.calls()["overlaps"] == 0
        self.check_trades()

    def check_trades(self):
        """What is there is what the service has, for each cell of the ledger."""
        from standin.datagokr import trades_of
        for row in self.rows("SELECT l.district, l.month, l.trades, count(t.day) AS n, "
                             "coalesce(sum(t.amount), 0) AS amount FROM br_trade_ledger l "
                             "LEFT JOIN br_trade t ON t.district = l.district AND t.month = l.month "
                             "GROUP BY l.district, l.month, l.trades"):
            wanted = trades_of(self.world, row["district"], row["month"])
            assert row["trades"] == row["n"] == len(wanted), row
            assert row["amount"] == sum(int(t["dealAmount"].replace(",", "")) for t in wanted)

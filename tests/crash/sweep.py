#!/usr/bin/python3
"""One job's life, killed at every system call that matters, from outside.

    sweep.py --store sqlite|pg [--seconds MOST] [--seed S]

For each of CALLS and each N = 1, 2, … the process starts with two requests waiting,
under `strace -e inject=CALL:signal=KILL:when=N`, until N is more than its life has of
that call in any thread. After each kill it starts again without strace, and both
requests must become final. At the end checker.py judges all of them. With --seconds the
sweep takes each call at some of its N only, drawn from the seed.
"""

import argparse
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "flow")]

import checker  # noqa: E402
import pawl_env  # noqa: E402
from history import History  # noqa: E402
from pawl_env import Cluster, Server, wait_for  # noqa: E402
from workload import StormSite  # noqa: E402

# Those that change something outside of the process, or tell somebody.
CALLS = {
    "sqlite": ("pwrite64", "write", "fsync", "fdatasync", "ftruncate", "rename", "openat",
               "unlink", "mkdir", "close", "sendto"),
    "pg": ("sendto", "write", "fsync", "rename", "openat", "unlink", "mkdir", "close",
           "recvfrom"),
}
SETTINGS = """\
log: {level: debug}
lanes: {normal: 3}
worker: {heartbeat: 1s, dead_after: 3s, reap: 1s, safety_scan: 1s, poll: 1s, record_retry: 1s, drain: 2s}
"""
ROWS = 15
LIFE_SECONDS = 30
# Of a sweep that must be short: N is at most so many, 6 for all others.
SOME = {"pwrite64": 40, "openat": 20, "close": 20, "sendto": 30, "recvfrom": 30}


class Sweep:
    def __init__(self, store, cluster, folder):
        self.site = StormSite(store, cluster, "  x: {steps: []}\n")
        self.site.prepare([("pawl", self.site.store_url)], SETTINGS)
        self.role = "serve" if store == "sqlite" else "worker"
        self.store, self.folder = store, folder
        self.history = History(folder, "client")
        self.ids = []
        self.kills = self.lives = 0
        server = self.start().await_ready()  # the jobs are published
        server.stop()

    def submit(self):
        """Two requests, while nothing runs."""
        number = len(self.ids)
        self.ids = []
        for job in ("effect", "export"):
            key = f"{self.lives}-{number}-{job}"
            self.history.invoke("submit", key, job=job, rows=ROWS)
            done = self.site.pawl("submit", job, "-p", f"rows={ROWS}", "-p", f"tag={key}",
                                  "--idempotency-key", key, "--json", "-q")
            self.ids.append(json.loads(done.stdout)["requestId"])
            self.history.end("submit", key, "ok", id=self.ids[-1])

    def start(self, *strace):
        """The role, under strace if there are words for it."""
        words = [self.role, "-c", "pawl.yaml"]
        if not strace:
            return self.keep(Server(self.site, self.role, self.role, self.environment(),
                                    "pawl.yaml", words))
        log = self.site.folder / f"{self.role}.log"
        with open(log, "ab") as out:
            process = subprocess.Popen(
                ["strace", "-f", "-qq", *strace, "--", pawl_env.PAWL,
                 *words], cwd=self.site.folder, env=self.environment(),
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)
        return process

    def keep(self, server):
        self.site.servers = [server]
        return server

    def environment(self):
        return self.site.environment(PAWL_STATE=str(self.site.folder / "state-sweep"))

    def all_final(self):
        numbers = ", ".join(str(i) for i in self.ids)
        return not self.site.rows(
            "SELECT r.id FROM pawl.request r LEFT JOIN pawl.outcome o ON o.id = r.id "
            f"WHERE (r.id IN ({numbers}) OR r.first_try IN ({numbers})) AND o.id IS NULL")

    def life(self, call, when):
        """True: it ended untouched. False: it was killed, and came back."""
        self.lives += 1
        self.submit()
        traced = self.start("-o", "/dev/null", "-e", f"trace={call}",
                            "-e", f"inject={call}:signal=KILL:when={when}")
        end = time.monotonic() + LIFE_SECONDS
        while traced.poll() is None and time.monotonic() < end:
            if self.all_final():
                break
            time.sleep(0.01)
        untouched = traced.poll() is None
        if untouched:
            os.killpg(traced.pid, signal.SIGKILL)
            traced.wait()
            return True
        self.kills += 1
        server = self.start()
        wait_for(self.all_final, f"{call} {when}: requests {self.ids} are final",
                 LIFE_SECONDS)
        server.kill()
        return False

    def sweep(self, seed, seconds):
        """{call: how many N}. Without seconds: every N."""
        end = time.monotonic() + (seconds or float("inf"))
        chance = random.Random(seed)
        reached = {}
        calls = list(CALLS[self.store])
        if not seconds:
            for call in calls:
                when = 1
                while not self.life(call, when):
                    when += 1
                reached[call] = when - 1
            return reached
        most = {call: SOME.get(call, 6) for call in calls}
        while time.monotonic() < end and calls:
            call = chance.choice(calls)
            when = chance.randint(1, most[call])
            if not self.life(call, when):
                reached[call] = reached.get(call, 0) + 1
            elif when > 1:
                most[call] = when - 1
            else:
                calls.remove(call)
        return reached

    def judge(self):
        server = self.start().await_ready()
        wait_for(lambda: not self.site.open_rows() and not self.site.loose_parts(),
                 "nothing is left", LIFE_SECONDS)
        server.stop()
        self.site.pawl("fsck")
        self.site.dump(self.folder / "dump.json")
        ops, bad = checker.read_histories(self.folder)
        return checker.check(ops, json.loads((self.folder / "dump.json").read_text()), bad)


def run(store, cluster, seed, seconds):
    """(verdict, kills)."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="pawl-sweep-"))
    sweep = Sweep(store, cluster, folder)
    try:
        reached = sweep.sweep(seed, seconds)
        case, found = sweep.judge()
        print(f"{store}: {sweep.kills} kills in {sweep.lives} lives: {reached}")
        checker.show(case, found)
        return not found, sweep.kills
    finally:
        sweep.site.discard()
        shutil.rmtree(folder, ignore_errors=True)


# --- the order of publishing ---

RENAME = re.compile(r'rename\("([^"]*/parts/[^"]*)", "([^"]*)"\)')


def order_of_publishing():
    """What is wrong with the calls that publish a result: [] when it is durable before
    it is renamed, and its folder after that."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="pawl-order-"))
    cluster = Cluster()
    sweep = Sweep("sqlite", cluster, folder)
    trace = sweep.site.folder / "trace"
    try:
        sweep.submit()
        traced = sweep.start("-o", str(trace), "-y", "-e", "trace=fsync,fdatasync,rename")
        wait_for(sweep.all_final, "all is final", LIFE_SECONDS)
        os.killpg(traced.pid, signal.SIGKILL)
        traced.wait()
        return judge_order(trace.read_text().splitlines())
    finally:
        sweep.site.discard()
        cluster.close()
        shutil.rmtree(folder, ignore_errors=True)


def judge_order(lines):
    renames = [(at, RENAME.search(line)) for at, line in enumerate(lines)
               if RENAME.search(line)]
    wrong = [] if renames else ["nothing was published"]
    for at, names in renames:
        part, target = names.groups()
        above = target.rsplit("/", 1)[0]
        if not any("sync(" in line and f"<{part}>" in line for line in lines[:at]):
            wrong.append(f"{part} was renamed before it was durable")
        if not any("sync(" in line and f"<{above}>" in line for line in lines[at:]):
            wrong.append(f"{above} was not made durable after it")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", choices=("sqlite", "pg"), required=True)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if pathlib.Path("/dev/shm").is_dir():
        tempfile.tempdir = "/dev/shm"
    cluster = Cluster()
    try:
        good, _ = run(given.store, cluster, given.seed, given.seconds)
        return 0 if good else 1
    finally:
        cluster.close()


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/python3
"""A storm: real processes are killed, frozen and ended while clients ask for work.

    storm.py --store sqlite|pg --kills N [--sites N] [--seed S] [--seconds MOST]
             [--keep FOLDER] [--faults kill=9,term=1]

On SQLite a site is one `serve`; several sites make several storms at once. PostgreSQL
(a cluster of its own, which the nemesis hurts too) has two apis and five workers, some
of them through PgBouncer, through a proxy that cuts, or with a wrong clock. Every
thread writes a history (client.py); nemesis.py does the harm; when it is quiet again the
store is read by plain SQL and checker.py judges. reach.py tells in which stages of a
request's life processes were hit. Exit 0: nothing was broken.
"""

import argparse
import collections
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "flow")]

import checker  # noqa: E402
import nemesis  # noqa: E402
import reach  # noqa: E402
from client import Client, Sampler  # noqa: E402
from history import History  # noqa: E402
from pawl_env import Cluster  # noqa: E402
from proxy import Proxy  # noqa: E402
from workload import Place, StormSite  # noqa: E402

CLIENTS = {"sqlite": 2, "pg": 3}
QUICK_DISK = pathlib.Path("/dev/shm")  # a kill loses nothing that the kernel has
CALM_SECONDS = 90
SWEPT_SECONDS = 3  # after its start a worker has looked for what others left


class Storm:
    sample_pause = 1.0
    client_pause = 0.08
    rows_most = 60

    def __init__(self, store, seed, kills, folder, faults=None):
        self.store, self.seed, self.kills, self.folder = store, seed, kills, folder
        self.cluster = nemesis.StormCluster() if store == "pg" else Cluster()
        self.site = None
        self.ending, self.sampled = threading.Event(), threading.Event()
        self.places = []
        self.running = {}  # name: Server
        self.trouble = []
        self.started_at = time.monotonic()  # the last process
        self.took = self.quiet_took = 0.0
        self.history = History(folder, "nemesis")
        self.nemesis = nemesis.Nemesis(self, seed, faults)

    # --- the site ---

    def prepare(self):
        self.site = StormSite(self.store, self.cluster, "  x: {steps: []}\n")
        self.small_disk()
        if self.store == "sqlite":
            self.site.prepare([("pawl", self.site.store_url, "")])
            self.places = [Place("serve", "serve")]
        else:
            self.prepare_pg()
        self.ports = [place.port for place in self.places if place.port]
        for place in self.places:
            self.running[place.name] = self.site.start_at(place)
        for server in list(self.running.values()):
            server.await_ready()

    def prepare_pg(self):
        direct = self.site.store_url
        name = direct.rsplit("/", 1)[1]
        proxy = self.nemesis.proxy = Proxy(self.cluster.port)
        cut = direct.replace(f":{self.cluster.port}/", f":{proxy.port}/")
        pooled = self.cluster.bouncer_url.rsplit("/", 1)[0] + "/" + name
        self.site.prepare([("pawl", direct, ""), ("cut", cut, ""), ("pooled", pooled, "")])
        self.places = [Place("api", "api-1"), Place("api", "api-2", "cut.yaml"),
                       Place("worker", "worker-1"), Place("worker", "worker-2"),
                       Place("worker", "worker-cut", "cut.yaml"),
                       Place("worker", "worker-pooled", "pooled.yaml"),
                       Place("worker", "worker-clock", env=self.wrong_clock())]

    def wrong_clock(self):
        shim = nemesis.make_shim(self.site.folder)
        if not shim:
            print("no compiler: no clock is stepped")
            return {}
        clock = self.nemesis.clock_file = self.site.folder / "clock"
        clock.write_bytes(bytes(8))
        return {"LD_PRELOAD": str(shim), "PAWL_TEST_CLOCK": str(clock)}

    def small_disk(self):
        """The results on a disk that can be full."""
        folder = self.site.folder / "results"
        folder.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256m,mode=700", "none", folder],
                          stderr=subprocess.DEVNULL).returncode == 0:
            self.nemesis.small_disk = folder
        else:
            print("may not mount: no disk is full")

    def keep_up(self, expected=()):
        """Start again what has ended; an end that nobody asked for is noted."""
        self.nemesis.thaw()
        for place in self.places:
            name = place.name
            server = self.running[name]
            code = server.process.poll()
            if code is None:
                if self.nemesis.overdue(name):
                    self.trouble.append(f"{name} did not end in time after SIGTERM")
                    server.kill()
                continue
            server.ended = True
            asked = self.nemesis.was_asked(name) or name in expected
            if not (code == -9 and name in expected or code == 0 and asked):
                self.nemesis.faults[f"ended with {code}"] += 1
                early = code == -signal.SIGTERM and asked and " ready " not in server.log()
                if (code < 0 and not early) or code == 0:
                    self.trouble.append(f"{name} ended with {code}: {server.log()[-1500:]}")
                time.sleep(0.05)
            self.site.servers.remove(server)
            self.running[name] = self.site.start_at(place)
            self.started_at = time.monotonic()

    # --- the course of it ---

    def blow(self, seconds):
        end = time.monotonic() + seconds
        while self.nemesis.faults["kill"] < self.kills and time.monotonic() < end:
            self.keep_up()
            self.nemesis.strike()

    def settled(self):
        """Nothing is open, no part is left that nobody could go on from."""
        try:
            return not self.site.open_rows() and not self.site.loose_parts()
        except AssertionError:
            return False  # the store is away

    def calm(self):
        """No faults and no schedule any more: all must come to its end."""
        self.nemesis.thaw(everything=True)
        begin = time.monotonic()
        paused = False
        while time.monotonic() < begin + CALM_SECONDS:
            self.keep_up()
            paused = paused or self.pause()
            swept = time.monotonic() > self.started_at + SWEPT_SECONDS
            if paused and swept and not self.nemesis.draining and self.settled():
                break
            time.sleep(0.2)
        self.quiet_took = time.monotonic() - begin
        self.sampled.set()

    def pause(self):
        try:
            return self.site.pawl("pause", "schedule", "beat")
        except AssertionError:
            return None  # tried again

    def end_all(self):
        for server in self.running.values():
            server.signal(signal.SIGTERM)
        for name, server in self.running.items():
            code = server.wait_end()
            if code != 0:
                self.trouble.append(f"{name} ended with {code} after the quiet period")

    def run(self, seconds):
        clients = [Client(self, f"client-{i}", f"client {i} {self.seed}")
                   for i in range(CLIENTS[self.store])]
        sampler = Sampler(self)
        for thread in [*clients, sampler]:
            thread.start()
        begin = time.monotonic()
        self.blow(seconds)
        self.took = time.monotonic() - begin
        self.ending.set()
        self.calm()
        for thread in [*clients, sampler]:
            thread.join(10)
            assert not thread.is_alive(), f"{thread.name} hangs"
        self.trouble += [f"{c.name}: {c.trouble}" for c in clients if c.trouble]
        self.end_all()
        said = self.site.pawl("fsck", code=None)  # a second judge
        if said.returncode != 0:
            self.trouble.append(f"fsck: {said.stdout}{said.stderr}")
        self.site.dump(self.folder / "dump.json")

    def close(self):
        self.nemesis.thaw(everything=True)
        if self.nemesis.proxy:
            self.nemesis.proxy.close()
        if self.site:
            for server in self.site.servers:
                if not server.ended:
                    server.kill()
            if self.nemesis.small_disk:
                subprocess.run(["umount", "-l", self.nemesis.small_disk])
            self.site.discard()
        self.cluster.close()


def one_storm(store, kills, seed, seconds, keep=None, faults=None):
    """What a storm of one site came to, as a dict; `good` tells the verdict."""
    folder = pathlib.Path(keep or tempfile.mkdtemp(prefix="pawl-storm-", dir="/tmp"))
    folder.mkdir(parents=True, exist_ok=True)
    storm = Storm(store, seed, kills, folder, faults)
    said = {"good": False}
    try:
        storm.prepare()
        storm.run(seconds)
        ops, bad = checker.read_histories(folder)
        case, found = checker.check(ops, json.loads((folder / "dump.json").read_text()),
                                    bad)
        evil = storm.nemesis
        evil.reach.update(reach.of_submits(case, evil.strikes))
        checker.show(case, found)
        for trouble in storm.trouble:
            print(f"trouble: {trouble}")
        said = {
            "good": not found and not storm.trouble,
            "rules": sorted({v.rule for v in found}), "violations": len(found),
            "faults": dict(evil.faults), "took": storm.took, "quiet": storm.quiet_took,
            "reach": [[*cell, n] for cell, n in sorted(evil.reach.items())],
            "running": [evil.kills_running, evil.kills_of_workers],
            "outcomes": collections.Counter(r["outcome"] for r in case.dump["outcome"]),
            "requests": len(case.requests), "operations": len(case.ops)}
        return said
    finally:
        if not said["good"]:
            for file in storm.site.folder.glob("*.*") if storm.site else ():
                if file.is_file():
                    shutil.copy(file, folder)
            print(f"again: storm.py --store {store} --kills {kills} --seed {seed}; "
                  f"histories and logs are in {folder}")
        storm.close()
        if said["good"] and not keep:
            shutil.rmtree(folder)


def add_up(many):
    """The sum of what sites came to."""
    total = {"good": all(s["good"] for s in many), "reach": collections.Counter()}
    for key in ("faults", "outcomes"):
        total[key] = sum((collections.Counter(s.get(key, {})) for s in many),
                         collections.Counter())
    for s in many:
        for stage, fault, n in s.get("reach", ()):
            total["reach"][stage, fault] += n
    for key in ("requests", "operations", "violations"):
        total[key] = sum(s.get(key, 0) for s in many)
    for key in ("took", "quiet"):
        total[key] = max(s.get(key, 0) for s in many)
    total["running"] = [sum(s.get("running", (0, 0))[i] for s in many) for i in (0, 1)]
    total["rules"] = sorted({rule for s in many for rule in s.get("rules", ())})
    return total


def blow(store, kills, seed, seconds, sites=1, keep=None, faults=None):
    """The sum of one storm for each site, all at once; each is a process of its own."""
    words = ["--faults", ",".join(f"{k}={v}" for k, v in faults.items())] if faults else []
    runs = [subprocess.Popen(
        [sys.executable, __file__, "--store", store, "--kills", str(-(-kills // sites)),
         "--seed", str(seed + i), "--seconds", str(seconds), "--json", *words,
         *(["--keep", f"{keep}-{i}"] if keep else [])],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        encoding="utf-8", env=os.environ) for i in range(sites)]
    many = []
    for run in runs:
        out = run.communicate()[0].splitlines()
        try:
            many.append(json.loads(out[-1]))
            del out[-1]
        except (ValueError, IndexError):
            many.append({"good": False})
        print("\n".join(out))
    return add_up(many)


def tell(store, total):
    kills, faults = total["faults"]["kill"], dict(total["faults"])
    print(f"{store}: {kills} kills in {total['took']:.1f} s "
          f"({60 * kills / max(total['took'], 1):.0f} a minute), {faults}; quiet after "
          f"{total['quiet']:.1f} s")
    print(f"  {total['requests']} requests {dict(total['outcomes'])}, "
          f"{total['operations']} operations, {total['violations']} violations")
    print(f"  {100 * total['running'][0] / max(total['running'][1], 1):.0f} % of the kills of "
          "workers hit running work")
    faults = sorted({fault for _, fault in total["reach"]})
    print("  " + " " * 10 + "".join(f"{fault:>10}" for fault in faults))
    stages = sorted({stage for stage, _ in total["reach"]}, key=lambda s: (
        s not in reach.ALL, int(s[1:]) if s in reach.ALL else 0, s))
    for stage in stages:
        print(f"  {stage:10}" + "".join(f"{total['reach'][stage, f]:10}" for f in faults))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", choices=("sqlite", "pg"), required=True)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--sites", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3600, help="most to blow")
    parser.add_argument("--keep", help="folder for histories and the dump")
    parser.add_argument("--faults", help="name=weight,...")
    parser.add_argument("--json", action="store_true", help="one site; end with a line of JSON")
    given = parser.parse_args()
    if not os.environ.get("PAWL_STORM_DISK") and QUICK_DISK.is_dir():
        tempfile.tempdir = str(QUICK_DISK)
    faults = {k: float(v) for k, _, v in (word.partition("=") for word in
                                          given.faults.split(","))} if given.faults else None
    if given.json:
        said = one_storm(given.store, given.kills, given.seed, given.seconds, given.keep,
                         faults)
        print(json.dumps(said))
        return 0 if said["good"] else 1
    total = blow(given.store, given.kills, given.seed, given.seconds, given.sites,
                 given.keep, faults)
    tell(given.store, total)
    return 0 if total["good"] else 1


if __name__ == "__main__":
    sys.exit(main())

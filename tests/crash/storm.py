#!/usr/bin/python3
"""A storm: real processes are killed, frozen and ended while clients ask for work.

    storm.py --store sqlite|pg --kills N [--sites N] [--seed S] [--seconds MOST]
             [--round KILLS] [--keep FOLDER] [--faults kill=9,term=1]

On SQLite a site is one `serve`; several sites make several storms at once. PostgreSQL
(a cluster of its own, which the nemesis hurts too) has two apis and some workers, a part
of them through PgBouncer, through a proxy that cuts, or with a wrong clock. Every
thread writes a history (client.py); nemesis.py does the harm; when it is quiet again the
store is read by plain SQL and checker.py judges. reach.py tells in which stages of a
request's life processes were hit. After --round kills a site begins again with a fresh
store and the next seed. A kill counts when a process of pawl that lived and had begun
its work ended by SIGKILL. Who is asked to end (SIGTERM, SIGINT) ends the blowing, waits for
the quiet and judges what there is; once a minute it is told how far it is. Exit 0:
nothing was broken.
"""

import argparse
import collections
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "flow")]

import checker  # noqa: E402
import nemesis  # noqa: E402
import reach  # noqa: E402
from client import Client, Sampler  # noqa: E402
from history import History  # noqa: E402
from outside import Outside  # noqa: E402
from pawl_env import FULL, Cluster  # noqa: E402
from proxy import Proxy  # noqa: E402
from workload import Place, StormSite  # noqa: E402

CLIENTS = {"sqlite": 2, "pg": 2}
QUICK_DISK = pathlib.Path("/dev/shm")  # a kill loses nothing that the kernel has
CALM_SECONDS = 90
SWEPT_SECONDS = 3  # after its start a worker has looked for what others left
LOOK_SECONDS = 0.003 if FULL else 0.006  # at the logs of the victims
KEEP_SECONDS = 0.02  # at who has ended by himself
AGAIN_SECONDS = 1  # of rest for a seat whose process ended by itself
TELL_SECONDS = 10
TELL_ALL_SECONDS = 60
STORE_MIB, RESULTS_MIB = 96, 512
SEED_STEP = 1000  # from one round of a site to the next
BAD_ROUNDS = 3  # of a site, then it gives up
STOP = threading.Event()


class Storm:
    sample_pause = 1.0
    client_pause = 0.08
    rows_most = 60
    calls_most = 15

    def __init__(self, store, seed, kills, folder, faults=None, telling=False):
        self.telling, self.tell_at = telling, time.monotonic() + TELL_SECONDS
        self.store, self.seed, self.kills, self.folder = store, seed, kills, folder
        self.cluster = nemesis.StormCluster() if store == "pg" else Cluster()
        self.site = None
        self.ending, self.sampled = threading.Event(), threading.Event()
        self.places = []
        self.running = {}  # name: Server
        self.again_at = {}  # name of who has ended: when it is started again
        self.trouble = []
        self.started_at = time.monotonic()  # the last process
        self.began = self.started_at
        self.took = self.quiet_took = 0.0
        self.mounted = []
        self.outside = None
        self.history = History(folder, "nemesis")
        self.nemesis = nemesis.Nemesis(self, seed, faults)
        self.before, self.cost = self.costs(), {}

    # --- the site ---

    def prepare(self):
        self.site = StormSite(self.store, self.cluster, "  x: {steps: []}\n")
        self.outside = Outside(self.folder)
        self.outside.start()
        self.nemesis.small_disk = self.small_disk("results", RESULTS_MIB)
        if self.store == "sqlite":
            self.nemesis.store_folder = self.small_disk("store", STORE_MIB)
            self.site.store_path = self.site.folder / "store/pawl.db"
            self.site.store_url = f"sqlite:{self.site.store_path}"
            self.site.prepare([("pawl", self.site.store_url)], port=self.outside.port)
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
        pooler = self.cluster.bouncer_url
        pooled = pooler.rsplit("/", 1)[0] + "/" + name
        self.site.prepare([("pawl", direct), ("cut", cut), ("deaf", pooled, None, pooler),
                           ("pooled", pooled, direct, pooler)], port=self.outside.port)
        self.places = [Place("api", "api-1", "deaf.yaml"), Place("api", "api-2", "cut.yaml"),
                       Place("worker", "worker-1", "pooled.yaml"),
                       Place("worker", "worker-cut", "cut.yaml"),
                       Place("worker", "worker-2", "deaf.yaml"),
                       Place("worker", "worker-3", "deaf.yaml"),
                       Place("worker", "worker-clock", "deaf.yaml", self.wrong_clock())]

    def wrong_clock(self):
        shim = nemesis.make_shim(self.site.folder)
        if not shim:
            print("no compiler: no clock is stepped")
            return {}
        clock = self.nemesis.clock_file = self.site.folder / "clock"
        clock.write_bytes(bytes(8))
        return {"LD_PRELOAD": str(shim), "PAWL_TEST_CLOCK": str(clock)}

    def small_disk(self, name, mib):
        """A folder on a disk of its own, which can be full; None without the right to."""
        folder = self.site.folder / name
        folder.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={mib}m,mode=700", "none",
                           folder], stderr=subprocess.DEVNULL).returncode == 0:
            self.mounted.append(folder)
            return folder
        print("may not mount: no disk is full")
        return None

    def keep_up(self, expected=()):
        """Start again what has ended; an end that nobody asked for is noted, and its seat
        rests for a moment."""
        for place in self.places:
            name = place.name
            server = self.running[name]
            code = server.process.poll()
            if code is None:
                if self.nemesis.overdue(name):
                    self.trouble.append(f"{name} did not end in time after SIGTERM")
                    server.kill()
                continue
            if name not in self.again_at:
                self.again_at[name] = time.monotonic()
                asked = self.nemesis.was_asked(name) or name in expected
                if not (code == -9 and name in expected or code == 0 and asked):
                    self.note_end(server, code, asked)
            if time.monotonic() >= self.again_at[name]:
                del self.again_at[name]
                server.ended = True
                self.site.servers.remove(server)
                self.running[name] = self.site.start_at(place)
                self.started_at = time.monotonic()

    def keep_pooler(self):
        """PgBouncer 1.18 may end when it is asked to cancel ("bad client state")."""
        if self.store == "pg" and self.cluster.pooler_ended():
            self.nemesis.faults["pooler ended"] += 1
            self.cluster.start_bouncer()

    def note_end(self, server, code, asked):
        self.nemesis.faults[f"ended with {code}"] += 1
        early = code == -signal.SIGTERM and asked and " ready " not in server.log()
        if (code < 0 and not early) or code == 0:
            self.trouble.append(f"{server.name} ended with {code}: {server.log()[-1500:]}")
        self.again_at[server.name] += AGAIN_SECONDS

    # --- the course of it ---

    def blow(self, seconds):
        end = time.monotonic() + seconds
        keep_at = 0
        while self.nemesis.faults["kill"] < self.kills and not STOP.is_set():
            now = time.monotonic()
            if now > end:
                break
            self.nemesis.thaw()
            if now > keep_at:
                self.keep_up()
                self.keep_pooler()
                keep_at = now + KEEP_SECONDS
            self.nemesis.hunt()
            self.tell()
            time.sleep(LOOK_SECONDS)

    def tell(self):
        """To the parent, now and then: what there is if nothing more comes."""
        if self.telling and time.monotonic() > self.tell_at:
            self.tell_at = time.monotonic() + TELL_SECONDS
            print(json.dumps({"so far": self.counts()}), flush=True)

    def counts(self):
        evil = self.nemesis
        return {"faults": dict(evil.faults), "took": time.monotonic() - self.began,
                "running": [evil.kills_running, evil.kills_of_workers],
                "spent": dict(evil.spent),
                "reach": [[*cell, n] for cell, n in sorted(evil.reach.items())]}

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
            self.nemesis.thaw(everything=True)
            self.keep_up()
            self.keep_pooler()
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
        self.began = time.monotonic()
        self.blow(seconds)
        self.took = time.monotonic() - self.began
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
        self.cost = {who: seconds - self.before[who]
                     for who, seconds in self.costs().items()}

    def costs(self):
        """Seconds of CPU: of pawl, of all this in Python, of a database of our own. The
        first two add up over the rounds of a process."""
        ours, its = (resource.getrusage(who) for who in
                     (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return {"storm": ours.ru_utime + ours.ru_stime, "pawl": its.ru_utime + its.ru_stime,
                "database": self.cluster.cpu() if self.store == "pg" else 0}

    def close(self):
        self.nemesis.thaw(everything=True)
        if self.nemesis.proxy:
            self.nemesis.proxy.close()
        if self.site:
            for server in self.site.servers:
                if not server.ended:
                    server.kill()
            for folder in self.mounted:
                subprocess.run(["umount", "-l", folder])
            self.site.discard()
        if self.outside:
            self.outside.close()
        self.cluster.close()


def one_storm(store, kills, seed, seconds, keep=None, faults=None, telling=False):
    """What a storm of one site came to, as a dict; `good` tells the verdict."""
    folder = pathlib.Path(keep or tempfile.mkdtemp(prefix="pawl-storm-", dir="/tmp"))
    folder.mkdir(parents=True, exist_ok=True)
    storm = Storm(store, seed, kills, folder, faults, telling)
    said = {"good": False}
    try:
        storm.prepare()
        storm.run(seconds)
        ops, bad = checker.read_histories(folder)
        case, found = checker.check(ops, json.loads((folder / "dump.json").read_text()),
                                    bad)
        storm.nemesis.reach.update(reach.of_submits(case, storm.nemesis.strikes))
        checker.show(case, found)
        for trouble in storm.trouble:
            print(f"trouble: {trouble}")
        said = {
            **storm.counts(), "took": storm.took, "quiet": storm.quiet_took,
            "good": not found and not storm.trouble, "cost": storm.cost,
            "rules": sorted({v.rule for v in found}), "violations": len(found),
            "outcomes": collections.Counter(r["outcome"] for r in case.dump["outcome"]),
            "requests": len(case.requests), "operations": len(case.ops)}
    except Exception:  # told, with what there was; the next round may go better
        traceback.print_exc(file=sys.stdout)
        said = {**storm.counts(), "good": False}
    finally:
        if not said["good"]:
            for file in storm.site.folder.glob("*.*") if storm.site else ():
                if file.is_file():
                    shutil.copy(file, folder)
            print(f"again: storm.py --store {store} --kills {kills} --seed {seed}; "
                  f"histories and logs are in {folder}", flush=True)
        storm.close()
        if said["good"] and not keep:
            shutil.rmtree(folder)
    return said


def one_site(given, faults):
    """Round after round with a fresh store. Each ends with a line of JSON."""
    end = time.monotonic() + given.seconds
    left, seed, bad = given.kills, given.seed, 0
    while left > 0 and time.monotonic() < end and bad < BAD_ROUNDS and not STOP.is_set():
        said = one_storm(given.store, min(left, given.round), seed,
                         end - time.monotonic(), given.keep, faults, True)
        print(json.dumps({"round": said}), flush=True)
        left -= max(said.get("faults", {}).get("kill", 0), 1)
        seed += SEED_STEP
        bad += not said["good"]
    return 1 if bad else 0


def add_up(many):
    """The sum of what rounds came to."""
    total = {"good": bool(many) and all(s.get("good") for s in many),
             "reach": collections.Counter(), "rounds": len(many)}
    for key in ("faults", "outcomes", "cost", "spent"):
        total[key] = sum((collections.Counter(s.get(key, {})) for s in many),
                         collections.Counter())
    for s in many:
        for stage, fault, n in s.get("reach", ()):
            total["reach"][stage, fault] += n
    for key in ("requests", "operations", "violations"):
        total[key] = sum(s.get(key, 0) for s in many)
    total["quiet"] = max((s.get("quiet", 0) for s in many), default=0)
    total["running"] = [sum(s.get("running", (0, 0))[i] for s in many) for i in (0, 1)]
    total["rules"] = sorted({rule for s in many for rule in s.get("rules", ())})
    return total


class SiteRun(threading.Thread):
    """A site in a process of its own. What it says is passed on, its counts are kept."""

    def __init__(self, words):
        super().__init__(daemon=True)
        # A session of its own: who asks us to end, asks us alone.
        self.process = subprocess.Popen(
            [sys.executable, __file__, *words], stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, encoding="utf-8",
            env=os.environ, start_new_session=True)
        self.rounds = []
        self.so_far = {}
        self.start()

    def run(self):
        for line in self.process.stdout:
            try:
                said = json.loads(line)
                self.so_far = said.get("so far", {})
                if "round" in said:
                    self.rounds.append(said["round"])
            except (ValueError, AttributeError):
                print(line, end="", flush=True)
        if self.process.wait() != 0 and all(r["good"] for r in self.rounds):
            self.rounds.append({"good": False})


def blow(store, kills, seed, seconds, sites=1, keep=None, faults=None, round_=10**9):
    """The sum of the storms of some sites, all at once."""
    words = ["--faults", ",".join(f"{k}={v}" for k, v in faults.items())] if faults else []
    begin = time.monotonic()
    runs = [SiteRun(["--store", store, "--kills", str(-(-kills // sites)), "--seed",
                     str(seed + i), "--seconds", str(seconds), "--json", "--round",
                     str(round_), *words, *(["--keep", f"{keep}-{i}"] if keep else [])])
            for i in range(sites)]
    tell_at, stopped = begin + TELL_ALL_SECONDS, False
    while any(run.is_alive() for run in runs):
        runs[0].join(0.2) if runs[0].is_alive() else time.sleep(0.2)
        if STOP.is_set() and not stopped:
            stopped = True
            for run in runs:
                run.process.terminate()
        if time.monotonic() > tell_at:
            tell_at += TELL_ALL_SECONDS
            many = [said for run in runs for said in (*run.rounds, run.so_far) if said]
            total = add_up(many)
            print(f"{store}, {time.monotonic() - begin:.0f} s: "
                  f"{total['faults']['kill']} kills, {share(total)} % of workers at work, "
                  f"{total['violations']} violations", flush=True)
    total = add_up([said for run in runs for said in run.rounds])
    total["took"] = time.monotonic() - begin
    return total


def share(total):
    return 100 * total["running"][0] // max(total["running"][1], 1)


def tell(store, total):
    kills, faults = total["faults"]["kill"], dict(total["faults"])
    print(f"{store}: {kills} kills in {total['took']:.1f} s "
          f"({60 * kills / max(total['took'], 1):.0f} a minute, {total['rounds']} rounds), "
          f"{faults}; quiet after {total['quiet']:.1f} s at most")
    print(f"  {total['requests']} requests {dict(total['outcomes'])}, "
          f"{total['operations']} operations, {total['violations']} violations")
    print(f"  {share(total)} % of the kills of workers hit running work; CPU a kill: "
          + ", ".join(f"{1000 * seconds / max(kills, 1):.0f} ms {who}"
                      for who, seconds in total["cost"].items()))
    spent = {key: 1000 * seconds / max(total["spent"]["n"], 1)
             for key, seconds in total["spent"].items()}
    print(f"  a victim: {spent.get('start', 0):.0f} ms until it is ready, "
          f"{spent.get('hunt', 0):.0f} until it is hit, {spent.get('blow', 0):.0f} until "
          "the next is started")
    faults = sorted({fault for _, fault in total["reach"]})
    print("  " + " " * 10 + "".join(f"{fault:>11}" for fault in faults))
    stages = sorted({stage for stage, _ in total["reach"]}, key=lambda s: (
        s not in reach.ALL, int(s[1:]) if s in reach.ALL else 0, s))
    for stage in stages:
        print(f"  {stage:10}" + "".join(f"{total['reach'][stage, f]:11}" for f in faults),
              flush=True)


def stop_when_asked(alone=False):
    """SIGTERM and SIGINT end the blowing, not us. alone: so does our parent's end."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: STOP.set())
    parent = os.getppid()

    def watch():
        while os.getppid() == parent:
            time.sleep(1)
        STOP.set()
    if alone:
        threading.Thread(target=watch, daemon=True).start()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", choices=("sqlite", "pg"), required=True)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--sites", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3600, help="most to blow")
    parser.add_argument("--keep", help="folder for histories and the dump")
    parser.add_argument("--faults", help="name=weight,...")
    parser.add_argument("--round", type=int, default=10**9, help="kills, then a fresh store")
    parser.add_argument("--json", action="store_true", help="one site, of another storm.py")
    given = parser.parse_args()
    if not os.environ.get("PAWL_STORM_DISK") and QUICK_DISK.is_dir():
        tempfile.tempdir = str(QUICK_DISK)
    faults = {k: float(v) for k, _, v in (word.partition("=") for word in
                                          given.faults.split(","))} if given.faults else None
    stop_when_asked(given.json)
    if given.json:
        return one_site(given, faults)
    total = blow(given.store, given.kills, given.seed, given.seconds, given.sites,
                 given.keep, faults, given.round)
    tell(given.store, total)
    return 0 if total["good"] else 1


if __name__ == "__main__":
    sys.exit(main())

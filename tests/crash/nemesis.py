"""Does the harm: kills, freezes, ends, takes the database, its answers, the disk and
the time away. All choices come from the seed, the moments are the machine's."""

import collections
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import time

import reach
from pawl_env import Cluster
from workload import DEAD_AFTER

HERE = pathlib.Path(__file__).resolve().parent
# Of each hundred or so; a fault that its store does not know is a kill.
FAULTS = {"kill": 88, "term": 5, "freeze": 2, "database": 0.4, "hang": 0.3,
          "bouncer": 0.5, "cut": 4, "disk": 1, "clock": 1.5}
ONLY_PG = {"database", "hang", "bouncer", "cut", "clock"}
# What to wait for in the log of the victim before it is hit, and how often.
AIMS = {"stage=working": 8, "stage=committing": 12, "stage=committed": 4,
        "stage=publishing": 4, "stage=recording": 6, " request running ": 3,
        " claiming ": 4, " cleaning the seat": 3, " repairing": 2, " firing ": 2,
        None: 5}
AIM_SECONDS = 0.25
READY_SECONDS = 2
KEEPER = "worker-1"
CLOCKS = (0, 3600, -3600, 12 * 365 * 86400, -20 * 365 * 86400)


class StormCluster(Cluster):
    """A PostgreSQL of our own, which may be hurt. No power fails here, so nothing waits
    for the disk."""

    def __init__(self):
        super().__init__(own=True)
        for word in ("fsync = off", "full_page_writes = off", "autovacuum = off"):
            self.psql("postgres", f"ALTER SYSTEM SET {word}")
        self.psql("postgres", "SELECT pg_reload_conf()")
        note = (self.note / "env").read_text()
        self.bouncer_url = dict(line.split("=", 1) for line in note.split()
                                )["PAWL_TEST_PGBOUNCER"]

    @property
    def port(self):
        return int(self.url.rsplit(":", 1)[1].split("/")[0])

    def crash(self, seconds):
        self.pg_ctl("stop", "-m", "immediate")
        time.sleep(seconds)
        self.pg_ctl("start")

    def hang(self, seconds):
        head = int(pathlib.Path(self.folder, "data/postmaster.pid").read_text().split()[0])
        pids = [head] + children(head)
        for pid in pids:
            send(pid, signal.SIGSTOP)
        time.sleep(seconds)
        for pid in pids:
            send(pid, signal.SIGCONT)

    def restart_bouncer(self):
        note = pathlib.Path(self.folder, "pgbouncer.pid")
        send(int(note.read_text()), signal.SIGKILL)
        note.unlink()
        who = {"user": "postgres", "group": "postgres", "extra_groups": []} \
            if os.geteuid() == 0 else {}
        subprocess.run([shutil.which("pgbouncer", path=os.environ["PATH"] + ":/usr/sbin"),
                        "-q", "-d", f"{self.folder}/pgbouncer.ini"], check=True,
                       stdin=subprocess.DEVNULL, cwd=self.folder, **who)


def send(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def children(pid):
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(path.read_text().rsplit(")", 1)[1].split()[1]) == pid:
                found.append(int(path.parent.name))
        except (OSError, ValueError):
            pass
    return found


def make_shim(folder):
    """The library that shifts the wall clock, or None without a compiler."""
    library = folder / "clock_shim.so"
    done = subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library,
                           HERE / "clock_shim.c", "-ldl"], stdin=subprocess.DEVNULL)
    return library if done.returncode == 0 else None


class Nemesis:
    def __init__(self, storm, seed, faults=None):
        self.storm = storm
        self.random = random.Random(f"nemesis {seed}")
        self.weights = faults or FAULTS
        self.frozen = {}  # name: when it goes on
        self.draining = {}  # name: when it is killed
        self.faults = collections.Counter()
        self.reach = collections.Counter()
        self.kills_running = 0
        self.kills_of_workers = 0
        self.strikes = []  # (wall us, fault) of apis that were ready
        self.proxy = self.clock_file = self.small_disk = None

    # --- aiming ---

    def await_line(self, server, word, seconds):
        """Until its log says that from now on. False: it did not."""
        end = time.monotonic() + seconds
        seen = server.start_offset
        while time.monotonic() < end and server.process.poll() is None:
            with open(server.log_path, "rb") as log:
                log.seek(seen)
                new = log.read()
            if word in new:
                return True
            seen += new.rfind(b"\n") + 1
            time.sleep(0.002)
        return False

    def aim(self, name):
        """Wait until the victim does something worth dying in."""
        server = self.storm.running[name]
        word = self.random.choices(list(AIMS), AIMS.values())[0]
        if word is None:
            time.sleep(self.random.random() * 0.04)
            return
        if "seat" not in word:
            self.await_line(server, b" ready ", READY_SECONDS)
        self.await_line(server, word.encode(), AIM_SECONDS)
        if self.random.random() < 0.5:
            time.sleep(self.random.random() * 0.01)

    def note_reach(self, server, fault):
        """Read what the victim had told; after a kill that is its last word."""
        text = server.log()
        self.faults[fault] += 1
        if server.role == "api":
            self.reach["api", fault] += 1
        else:
            found = reach.stages(text)
            for stage in found:
                self.reach[stage, fault] += 1
            if fault == "kill":
                self.kills_of_workers += 1
                self.kills_running += bool(found & reach.RUNNING)
        if server.role != "worker" and " ready " in text:
            self.strikes.append((time.time_ns() // 1000, fault))

    # --- striking ---

    def choose(self):
        fault = self.random.choices(list(self.weights), self.weights.values())[0]
        if fault in ONLY_PG and self.storm.store != "pg" or \
                fault == "disk" and not self.small_disk or \
                fault == "clock" and not self.clock_file:
            fault = "kill"
        apis = [p.name for p in self.storm.places if p.role == "api"]
        name = self.random.choice(apis if apis and self.random.random() < 0.15
                                  else self.victims())
        if name in self.frozen or name in self.draining:
            fault = "kill" if fault in ("term", "freeze") else fault
        return fault, name

    def victims(self):
        """Workers that may be hit. Who sleeps shall mostly sleep until others have
        buried it, and the keeper lives long enough to be the one who does."""
        names = [p.name for p in self.storm.places if p.role != "api"]
        return [name for name in names
                if name not in self.frozen and name != KEEPER
                or self.random.random() < 0.05] or names

    def others(self, name):
        """One to three more workers that work, to die in the same moment."""
        workers = [n for n in self.victims() if n not in (name, "serve")
                   and reach.stages(self.storm.running[n].log()) & reach.RUNNING]
        return self.random.sample(workers, min(len(workers), self.random.randint(1, 3)))

    def strike(self):
        fault, name = self.choose()
        history = self.storm.history
        if fault in ("kill", "term", "freeze"):
            if name not in self.frozen:
                self.aim(name)
            names = [name]
            if fault == "kill" and self.random.random() < 0.8:
                names += self.others(name)
            pids = [self.storm.running[n].pid for n in names]
            history.invoke("fault", name, fault=fault, pids=pids)
            getattr(self, fault)(names)
        else:
            history.invoke("fault", "all", fault=fault, pids=[])
            self.faults[fault] += 1
            self.reach["all", fault] += 1
            getattr(self, fault)()
        history.end("fault", name, "ok")

    def kill(self, names):
        for name in names:
            self.storm.running[name].process.kill()
        for name in names:
            server = self.storm.running[name]
            server.kill()
            self.note_reach(server, "kill")
            self.frozen.pop(name, None)
            self.draining.pop(name, None)
        self.storm.keep_up(names)

    def term(self, names):
        server = self.storm.running[names[0]]
        self.note_reach(server, "term")
        server.signal(signal.SIGTERM)
        self.draining[names[0]] = time.monotonic() + 20
        if self.random.random() < 0.5:  # and in the middle of that
            time.sleep(self.random.random() * 0.02)
            if server.process.poll() is None:
                self.kill(names)

    def freeze(self, names):
        server = self.storm.running[names[0]]
        server.signal(signal.SIGSTOP)
        self.note_reach(server, "freeze")
        self.frozen[names[0]] = time.monotonic() + DEAD_AFTER + 1.5

    def database(self):
        self.storm.cluster.crash(self.random.random())

    def hang(self):
        self.storm.cluster.hang(self.random.random() * 3)

    def bouncer(self):
        self.storm.cluster.restart_bouncer()

    def cut(self):
        self.proxy.cut()

    def disk(self):
        ballast = self.small_disk / "ballast"
        try:
            with open(ballast, "wb", buffering=0) as file:
                while file.write(b"x" * 65536) == 65536:
                    pass
        except OSError:
            pass  # full, as it was meant to be
        time.sleep(self.random.random() * 0.5)
        ballast.unlink()

    def clock(self):
        with open(self.clock_file, "r+b") as file:
            file.write(struct.pack("=q", self.random.choice(CLOCKS)))

    # --- what has ended ---

    def thaw(self, everything=False):
        for name, until in list(self.frozen.items()):
            if everything or time.monotonic() > until:
                self.storm.running[name].signal(signal.SIGCONT)
                del self.frozen[name]

    def was_asked(self, name):
        return self.draining.pop(name, None) is not None

    def overdue(self, name):
        return time.monotonic() > self.draining.get(name, float("inf"))

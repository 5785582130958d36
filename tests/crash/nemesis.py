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
from pawl_env import FULL, Cluster
from workload import DEAD_AFTER

HERE = pathlib.Path(__file__).resolve().parent
# Of each hundred or so; a fault that its store does not know is a kill.
FAULTS = {"kill": 88, "term": 5, "freeze": 2, "database": 0.3, "hang": 0.2,
          "bouncer": 0.5, "cut": 4, "disk": 1, "store_disk": 0.5, "clock": 1.5}
ONLY = {"pg": {"database", "hang", "bouncer", "cut", "clock"}, "sqlite": {"store_disk"}}
# What to wait for in the log of the victim before it is hit, and how often.
SEAT = " cleaning the seat"
AIMS = {"stage=working": 8, "stage=committing": 12, "stage=committed": 4,
        "stage=reserving": 1, "stage=calling": 3, "stage=publishing": 4,
        "stage=recording": 6, " request running ": 3, " claiming ": 4, SEAT: 3,
        " repairing": 2, " firing ": 2, None: 3}
AIM_SECONDS = collections.defaultdict(lambda: 0.2)
if FULL:
    AIM_SECONDS["stage=publishing"] = 1  # that is rare
READY_SECONDS = 2
NOTE_SECONDS = 1  # until a pooler that was started has written its number down
DRAIN_SECONDS = 0.3  # from SIGTERM to the word of it
LEFT_ALONE = 0.12  # so many live for a while first, or nothing would get on
ALONE_SECONDS = (0.1, 1)
API_SECONDS = (0.2, 3)
KEEPER = "worker-1"
KEEPER_SECONDS = (5, 20)
DISK_SECONDS = 1.5  # at most, that a disk is full
CLOCKS = (0, 3600, -3600, 12 * 365 * 86400, -20 * 365 * 86400)


class StormCluster(Cluster):
    """A PostgreSQL of our own, which may be hurt. No power fails here, so nothing waits
    for the disk."""

    def __init__(self):
        super().__init__(own=True)
        self.spent = 0.0  # seconds of CPU, of servers that have ended
        for word in ("fsync = off", "full_page_writes = off", "autovacuum = off"):
            self.psql("postgres", f"ALTER SYSTEM SET {word}")
        self.psql("postgres", "SELECT pg_reload_conf()")
        note = (self.note / "env").read_text()
        self.bouncer_url = dict(line.split("=", 1) for line in note.split()
                                )["PAWL_TEST_PGBOUNCER"]

    @property
    def port(self):
        return int(self.url.rsplit(":", 1)[1].split("/")[0])

    def cpu(self):
        """Seconds of CPU that server and pooler have had, those ended included."""
        ticks = 0
        for note in ("data/postmaster.pid", "pgbouncer.pid"):
            try:
                head = int(pathlib.Path(self.folder, note).read_text().split()[0])
            except OSError:
                continue
            for pid in (head, *children(head)):
                try:
                    text = pathlib.Path(f"/proc/{pid}/stat").read_text()
                    ticks += sum(map(int, text.rsplit(")", 1)[1].split()[11:15]))
                except OSError:
                    pass
        return self.spent + ticks / os.sysconf("SC_CLK_TCK")

    def crash(self, seconds):
        self.spent = self.cpu()
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

    def pooler_ended(self):
        try:
            pid = int(pathlib.Path(self.folder, "pgbouncer.pid").read_text())
            state = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1]
            return state.split()[0] == "Z"
        except (OSError, ValueError):  # it takes its note along
            return True

    def restart_bouncer(self):
        note = pathlib.Path(self.folder, "pgbouncer.pid")
        send(int(note.read_text()), signal.SIGKILL)
        while not self.pooler_ended():
            time.sleep(0.001)
        self.start_bouncer()

    def start_bouncer(self):
        """When its port is still taken it does not start: tried again by who looks."""
        note = pathlib.Path(self.folder, "pgbouncer.pid")
        note.unlink(missing_ok=True)
        who = {"user": "postgres", "group": "postgres", "extra_groups": []} \
            if os.geteuid() == 0 else {}
        subprocess.run([shutil.which("pgbouncer", path=os.environ["PATH"] + ":/usr/sbin"),
                        "-q", "-d", f"{self.folder}/pgbouncer.ini"],
                       stdin=subprocess.DEVNULL, cwd=self.folder, **who)
        end = time.monotonic() + NOTE_SECONDS
        while not note.exists() and time.monotonic() < end:
            time.sleep(0.002)


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


class Hunt:
    """The way to one victim's next blow: it is ready, is left alone for a while, does
    what is waited for; then a moment passes."""

    def __init__(self, server, word, alone, moment):
        self.server = server
        self.word, self.alone, self.moment = word, alone, moment
        self.seen = server.start_offset
        self.ready = word == SEAT
        now = self.born = self.ready_at = time.monotonic()
        self.begin = now if self.ready else None  # of looking for the word
        self.until = now + READY_SECONDS
        self.at = None

    def draining(self):
        """Whether it is ready or not, what it says from now on counts."""
        self.seen = os.stat(self.server.log_path).st_size
        self.ready, self.begin = True, self.born
        self.until = self.born + DRAIN_SECONDS

    def news(self):
        """What its log says since the last look, in whole lines."""
        if os.stat(self.server.log_path).st_size <= self.seen:
            return ""
        with open(self.server.log_path, "rb") as log:
            log.seek(self.seen)
            new = log.read()
        new = new[:new.rfind(b"\n") + 1]
        self.seen += len(new)
        return new.decode(errors="replace")

    def due(self, now):
        if self.at is None:
            self.look(now)
        return self.at is not None and now >= self.at

    def look(self, now):
        new = self.news()
        if not self.ready and " ready " in new:
            self.ready, self.ready_at, self.begin = True, now, now + self.alone
            self.until = self.begin + AIM_SECONDS[self.word]
        if self.ready and now >= self.begin and (self.word is None or self.word in new):
            self.at = now + self.moment
        elif now > self.until:
            self.at = now


class Nemesis:
    def __init__(self, storm, seed, faults=None):
        self.storm = storm
        self.random = random.Random(f"nemesis {seed}")
        self.weights = faults or FAULTS
        self.hunts = {}  # name: Hunt
        self.frozen = {}  # name: when it goes on
        self.draining = {}  # name: when it is killed
        self.full = {}  # ballast: when it is taken away
        self.faults = collections.Counter()
        self.reach = collections.Counter()
        self.spent = collections.Counter()  # seconds of victims, `n` of them
        self.kills_running = 0
        self.kills_of_workers = 0
        self.strikes = []  # (wall us, fault) of apis that were ready
        self.proxy = self.clock_file = self.small_disk = self.store_folder = None

    # --- aiming ---

    def hunt(self):
        """Whoever is due is hit."""
        now = time.monotonic()
        for place in self.storm.places:
            name, server = place.name, self.storm.running[place.name]
            if name in self.frozen or name in self.draining or \
                    server.process.poll() is not None:
                continue
            hunt = self.hunts.get(name)
            if not hunt or hunt.server is not server:
                self.hunts[name] = self.new_hunt(place, server)
            elif hunt.due(now):
                del self.hunts[name]
                self.strike(name)
                self.spent.update({"start": hunt.ready_at - hunt.born, "n": 1,
                                   "hunt": now - hunt.ready_at,
                                   "blow": time.monotonic() - now})

    def new_hunt(self, place, server):
        chance = self.random
        if place.role == "api":
            return Hunt(server, None, chance.uniform(*API_SECONDS), 0)
        word = chance.choices(list(AIMS), AIMS.values())[0]
        moment = chance.random() * 0.01 if chance.random() < 0.5 else 0
        if word == "stage=publishing":  # that is over in a moment
            moment = 0
        alone = 0
        if place.name == KEEPER:  # it lives long enough to bury others
            word, alone = None, chance.uniform(*KEEPER_SECONDS)
        elif word != SEAT and chance.random() < LEFT_ALONE:
            alone = chance.uniform(*ALONE_SECONDS)
        return Hunt(server, word, alone, moment)

    def note_reach(self, server, fault):
        """Read what the victim had told; after a kill that is its last word."""
        text = server.log()
        found = {"api"} if server.role == "api" else reach.stages(text)
        if fault == "kill" and (found == {"starting"} or
                                server.role == "api" and " ready " not in text):
            self.faults["kill of a beginner"] += 1  # it had not begun its work
            return
        self.faults[fault] += 1
        for stage in found:
            self.reach[stage, fault] += 1
        if fault == "kill" and server.role != "api":
            self.kills_of_workers += 1
            self.kills_running += bool(found & reach.RUNNING)
        if server.role != "worker" and " ready " in text:
            self.strikes.append((time.time_ns() // 1000, fault))

    # --- striking ---

    def choose(self):
        fault = self.random.choices(list(self.weights), self.weights.values())[0]
        others = set().union(*(faults for store, faults in ONLY.items()
                               if store != self.storm.store))
        if fault in others or fault == "disk" and not self.small_disk or \
                fault == "store_disk" and not self.store_folder or \
                fault == "clock" and not self.clock_file:
            return "kill"
        return fault

    def others(self, name):
        """One to three more workers that work, to die in the same moment."""
        workers = [p.name for p in self.storm.places
                   if p.role == "worker" and p.name not in (name, KEEPER)
                   and p.name not in self.frozen and p.name not in self.draining
                   and reach.stages(self.storm.running[p.name].log()) & reach.RUNNING]
        return self.random.sample(workers, min(len(workers), self.random.randint(1, 3)))

    def strike(self, name):
        fault = self.choose()
        history = self.storm.history
        if fault in ("kill", "term", "freeze"):
            names = [name]
            if fault == "kill" and self.random.random() < 0.5:
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
            if server.process.returncode == -signal.SIGKILL:  # else it was faster
                self.note_reach(server, "kill")
            self.frozen.pop(name, None)
            self.draining.pop(name, None)
        self.storm.keep_up(names)

    def term(self, names):
        server = self.storm.running[names[0]]
        self.note_reach(server, "term")
        drains = Hunt(server, " draining", 0, self.random.random() * 0.01)
        drains.draining()
        server.signal(signal.SIGTERM)
        self.draining[names[0]] = time.monotonic() + 20
        if self.random.random() < 0.5:  # and in the middle of that
            while server.process.poll() is None and not drains.due(time.monotonic()):
                time.sleep(0.001)
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
        self.fill(self.small_disk)

    def store_disk(self):
        self.fill(self.store_folder)

    def fill(self, folder):
        """No room is left there, and the blows go on meanwhile."""
        ballast = folder / "ballast"
        if ballast in self.full:
            return
        self.full[ballast] = time.monotonic() + self.random.random() * DISK_SECONDS
        try:
            with open(ballast, "wb", buffering=0) as file:
                while file.write(b"x" * 65536) == 65536:
                    pass
        except OSError:
            pass  # full, as it was meant to be

    def clock(self):
        with open(self.clock_file, "r+b") as file:
            file.write(struct.pack("=q", self.random.choice(CLOCKS)))

    # --- what has ended ---

    def thaw(self, everything=False):
        now = time.monotonic()
        for ballast, until in list(self.full.items()):
            if everything or now > until:
                ballast.unlink()
                del self.full[ballast]
        for name, until in list(self.frozen.items()):
            if everything or now > until:
                self.wake(name, everything)

    def wake(self, name, surely):
        if not surely and self.random.random() < 0.2:  # it never wakes
            self.storm.history.invoke("fault", name, fault="kill",
                                      pids=[self.storm.running[name].pid])
            self.kill([name])
            self.storm.history.end("fault", name, "ok")
            return
        self.storm.running[name].signal(signal.SIGCONT)
        del self.frozen[name]

    def was_asked(self, name):
        return self.draining.pop(name, None) is not None

    def overdue(self, name):
        return time.monotonic() > self.draining.get(name, float("inf"))

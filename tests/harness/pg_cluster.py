#!/usr/bin/python3
"""A private PostgreSQL 15 and a PgBouncer before it, for one run of the tests.

    pg_cluster.py start DIR [--owner PID]    prints the variables, as NAME=value lines
    pg_cluster.py env DIR                    prints them again
    pg_cluster.py stop DIR

DIR keeps only a note of where the cluster is. The cluster itself has a folder of
its own under /tmp, because PostgreSQL refuses to run as root, so that root hands it
to the user `postgres`, who may not be able to walk to DIR. Sockets are in that
folder too: a checkout can lie deeper than the 107 bytes that a socket name has.

    PAWL_TEST_PG             postgresql://postgres@127.0.0.1:PORT/postgres
    PAWL_TEST_PGBOUNCER      the same through PgBouncer in transaction mode
    PAWL_TEST_PG_DIR         the folder; its `s` is the socket directory

A test makes its own databases in it. Everybody on this machine may log in while it
runs (no passwords), so it listens on loopback only and holds nothing but test data.

With --owner the cluster belongs to that process: a watcher ends and removes it when its
owner is gone, however that ended, so a killed run leaves nothing.
"""

import os
import pathlib
import pwd
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

PREFIX = "pawl-pg-"
BIN = pathlib.Path("/usr/lib/postgresql/15/bin")
TRIES = 5  # a port found free can be taken before we listen on it

# Durable as in earnest (fsync stays on), small in everything else.
POSTGRES_CONF = """
listen_addresses = '127.0.0.1'
port = {port}
unix_socket_directories = '{folder}/s'
max_connections = 300
shared_buffers = 32MB
max_wal_size = 256MB
min_wal_size = 80MB
fsync = on
synchronous_commit = on
max_prepared_transactions = 0
lc_messages = 'C'
timezone = 'UTC'
log_line_prefix = '%m [%p] %d '
"""

# auth_user lets any role of the cluster in, also one that a test has just made.
PGBOUNCER_INI = """
[databases]
* = host=127.0.0.1 port={pg_port} auth_user=postgres

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = trust
auth_file = {folder}/users.txt
auth_query = SELECT usename, passwd FROM pg_catalog.pg_shadow WHERE usename = $1
pool_mode = transaction
default_pool_size = 20
max_client_conn = 500
server_idle_timeout = 5
server_lifetime = 600
ignore_startup_parameters = extra_float_digits
logfile = {folder}/pgbouncer.log
pidfile = {folder}/pgbouncer.pid
"""


def fail(text):
    sys.exit("pg_cluster: " + text)


def account():
    """The user who runs the servers, as arguments for subprocess; {} when we may."""
    if os.geteuid() != 0:
        return {}
    try:
        user = pwd.getpwnam("postgres")
    except KeyError:
        fail("there is no user postgres; install postgresql-15 (script/bootstrap)")
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def run(who, folder, *command):
    """Run a command as the servers' user. Gives its output on failure, else None."""
    clean = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C.UTF-8"}
    with open(os.path.join(folder, "commands.log"), "ab") as log:
        begin = log.tell()
        done = subprocess.run(
            [str(word) for word in command],
            cwd=folder, env=clean, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            **who,
        )
    if done.returncode == 0:
        return None
    text = pathlib.Path(folder, "commands.log").read_bytes()[begin:]
    return text.decode(errors="replace").strip() or f"exit code {done.returncode}"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def listens(port, seconds):
    """Wait until somebody listens on the port; the attempts are 20 ms apart."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return True
        time.sleep(0.02)
    return False


def pid_in(path):
    try:
        return int(pathlib.Path(path).read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return None


def runs_in(pid, folder):
    """Is this process one of the cluster's? Its number may be another's by now."""
    try:
        command = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return str(folder).encode() in command


def end_process(pid, folder, number):
    if pid is None or not runs_in(pid, folder):
        return
    os.kill(pid, number)
    end = time.monotonic() + 10
    while runs_in(pid, folder) and time.monotonic() < end:
        time.sleep(0.02)
    if runs_in(pid, folder):
        os.kill(pid, signal.SIGKILL)


def remove(folder):
    """End the servers of a cluster and remove its folder. Nothing there is fine."""
    end_process(pid_in(f"{folder}/watcher.pid"), folder, signal.SIGTERM)
    end_process(pid_in(f"{folder}/pgbouncer.pid"), folder, signal.SIGTERM)
    # SIGQUIT: end at once, without a last checkpoint; the data goes anyway.
    end_process(pid_in(f"{folder}/data/postmaster.pid"), folder, signal.SIGQUIT)
    shutil.rmtree(folder, ignore_errors=True)


def start_watcher(owner, folder):
    watcher = subprocess.Popen(
        [sys.executable, __file__, "watch", folder, str(owner)], start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    pathlib.Path(folder, "watcher.pid").write_text(f"{watcher.pid}\n")


def watch(folder, owner):
    """Wait for the owner's end, then remove the cluster."""
    try:
        select.select([os.pidfd_open(owner)], [], [])
    except ProcessLookupError:
        pass  # gone already
    pathlib.Path(folder, "watcher.pid").unlink(missing_ok=True)  # it is we
    remove(folder)


def start_postgres(who, folder):
    trouble = run(who, folder, BIN / "initdb", "-D", "data", "-U", "postgres",
                  "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
    if trouble:
        fail(f"initdb failed: {trouble}")
    conf = pathlib.Path(folder, "data/postgresql.auto.conf")
    for _ in range(TRIES):
        port = free_port()
        conf.write_text(POSTGRES_CONF.format(port=port, folder=folder))
        trouble = run(who, folder, BIN / "pg_ctl", "-D", f"{folder}/data", "-w", "-s",
                      "-t", "60", "-l", f"{folder}/postgres.log", "start")
        if not trouble:
            return port
    log = pathlib.Path(folder, "postgres.log")
    tail = log.read_text(errors="replace")[-1500:] if log.exists() else ""
    fail(f"PostgreSQL did not start: {trouble}\n{tail}")


def start_pgbouncer(who, folder, pg_port):
    binary = shutil.which("pgbouncer", path=os.environ.get("PATH", "") + ":/usr/sbin")
    if not binary:
        fail("pgbouncer is missing (script/bootstrap installs it)")
    pathlib.Path(folder, "users.txt").write_text('"postgres" ""\n')
    ini = pathlib.Path(folder, "pgbouncer.ini")
    for _ in range(TRIES):
        port = free_port()
        ini.write_text(PGBOUNCER_INI.format(port=port, pg_port=pg_port, folder=folder))
        trouble = run(who, folder, binary, "-q", "-d", ini)
        if not trouble and listens(port, 10):
            return port
    log = pathlib.Path(folder, "pgbouncer.log")
    tail = log.read_text(errors="replace")[-1500:] if log.exists() else ""
    fail(f"PgBouncer did not start: {trouble}\n{tail}")


def cmd_start(note, owner):
    cmd_stop(note)  # what an earlier run left under the same name
    if not (BIN / "initdb").exists():
        fail(f"{BIN}/initdb is missing (script/bootstrap installs postgresql-15)")
    who = account()
    folder = tempfile.mkdtemp(prefix=PREFIX, dir="/tmp")
    try:
        os.mkdir(f"{folder}/s")
        if who:
            for path in (folder, f"{folder}/s"):
                os.chown(path, who["user"], who["group"])
        if owner:
            start_watcher(owner, folder)
        pg_port = start_postgres(who, folder)
        bouncer_port = start_pgbouncer(who, folder, pg_port)
        lines = (
            f"PAWL_TEST_PG=postgresql://postgres@127.0.0.1:{pg_port}/postgres\n"
            f"PAWL_TEST_PGBOUNCER=postgresql://postgres@127.0.0.1:{bouncer_port}/postgres\n"
            f"PAWL_TEST_PG_DIR={folder}\n"
        )
        note.mkdir(parents=True, exist_ok=True)
        (note / "env").write_text(lines)
    except BaseException:
        remove(folder)
        raise
    print(lines, end="")


def cmd_env(note):
    try:
        print((note / "env").read_text(), end="")
    except FileNotFoundError:
        fail(f"no cluster was started for {note}")


def cmd_stop(note):
    try:
        lines = (note / "env").read_text().split()
    except FileNotFoundError:
        return
    for line in lines:
        name, _, value = line.partition("=")
        if name == "PAWL_TEST_PG_DIR" and value.startswith("/tmp/" + PREFIX):
            remove(value)
    (note / "env").unlink()


def main(arguments):
    owner = None
    if len(arguments) == 3 and arguments[0] == "watch":
        return watch(arguments[1], int(arguments[2]))
    if len(arguments) == 4 and arguments[2] == "--owner":
        owner = int(arguments[3])
    elif len(arguments) != 2:
        sys.exit(__doc__)
    note = pathlib.Path(arguments[1]).absolute()
    if arguments[0] == "start":
        # A signal must not leave half a cluster: let it unwind.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        cmd_start(note, owner)
    elif arguments[0] == "env":
        cmd_env(note)
    elif arguments[0] == "stop":
        cmd_stop(note)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])

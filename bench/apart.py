"""What heavy work of a worker costs who asks the api (clause A1): the p95 of 50 clients
who read. The api, its sessions and its clients have one core; the worker and the rest of
the database have the others, as if they were machines of their own."""

import asyncio
import contextlib
import http.client
import os
import re
import signal
import subprocess
import time

from pickup import ask, percentile, start_pawl

CLIENTS = 50
THINK_SECONDS = 0.25
WARM_SECONDS = 2
LOAD_ROWS = 1_000_000
EXPORTS = 3

CONFIG = """
store: {store}
results: ./results
state: ./state
databases: {{shop: "{data}"}}
lanes: {{normal: 4}}
jobs:
  export:
    duplicates: allow
    retry: none
    params: {{rows: {{type: integer}}}}
    steps:
      - name: export
        read:
          database: shop
          sql: "SELECT a.* FROM sale a, generate_series(1, 1000) ORDER BY n_id LIMIT :rows"
        write: {{file: "sale.xlsx"}}
  load:
    duplicates: allow
    retry: none
    steps:
      - name: load
        chunk: 1000
        read: {{csv: load.csv, columns: {{i: integer}}}}
        write: {{database: shop, table: copy}}
"""


def set_cores(pid, cores):
    for thread in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(ProcessLookupError):
            os.sched_setaffinity(int(thread), cores)


class Apart:
    """Both halves start both processes anew."""

    def __init__(self, pawl, place, folder, seconds):
        self.pawl, self.place, self.seconds = pawl, place, seconds
        self.folder = folder / "apart"
        self.folder.mkdir()
        store = place.create("apart")
        (self.folder / "pawl.yaml").write_text(CONFIG.format(store=store, data=place.data))
        (self.folder / "load.csv").write_text(
            "i\n" + "".join(f"{i}\n" for i in range(LOAD_ROWS)))
        place.psql(place.data, "CREATE TABLE copy (i bigint)")
        subprocess.run([pawl, "migrate", "-c", "pawl.yaml"], cwd=self.folder, check=True,
                       stdout=subprocess.DEVNULL)
        cores = sorted(os.sched_getaffinity(0))
        self.own, self.others = {cores[0]}, set(cores[1:])

    def start(self, role):
        return start_pawl([self.pawl, role, "-c", "pawl.yaml"], self.folder,
                          self.folder / f"{role}.log", PAWL_STATE=str(self.folder / role))

    def part(self, api, worker):
        """To each its cores."""
        rows = self.place.psql(self.place.admin, "SELECT pid, application_name LIKE "
                               "'pawl-api%' FROM pg_stat_activity")
        for line in rows.splitlines():
            pid, is_api = line.split("\t")
            with contextlib.suppress(FileNotFoundError):
                set_cores(pid, self.own if is_api == "t" else self.others)
        set_cores(api.pid, self.own)
        set_cores(worker.pid, self.others)
        os.sched_setaffinity(0, self.own)

    async def client(self, port, number, took, until):
        """One of many in one thread, which itself takes next to no time."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        path = ("/api/v1/jobs", "/api/v1/requests?limit=30",
                "/api/v1/requests/1")[number % 3]
        request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode()
        warm = time.monotonic() + WARM_SECONDS
        await asyncio.sleep(THINK_SECONDS * number / CLIENTS)
        while (began := time.monotonic()) < until:
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 200 "):
                raise RuntimeError(f"{path}: {head.decode()}")
            size = re.search(rb"(?i)\r\ncontent-length: (\d+)\r\n", head)
            await reader.readexactly(int(size[1]))
            if began > warm:
                took.append((time.monotonic() - began) * 1000)
            await asyncio.sleep(THINK_SECONDS)
        writer.close()

    async def clients(self, port, took, until, part):
        async def part_again():  # sessions that the first questions opened
            await asyncio.sleep(WARM_SECONDS / 2)
            part()
        await asyncio.gather(part_again(), *(self.client(port, n, took, until)
                                             for n in range(CLIENTS)))

    def measure(self, busy):
        everything = os.sched_getaffinity(0)
        (api, port), (worker, _) = self.start("api"), self.start("worker")
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            wanted = [("export", 10 ** 9)] * EXPORTS + [("load", 0)] if busy \
                else [("export", 1)]
            ids = [ask(connection, "POST", f"/api/v1/jobs/{job}/requests",
                       {"params": {"rows": rows} if rows else {}})["requestId"]
                   for job, rows in wanted]
            if busy:
                self.check_running(connection, ids)
            said = self.read(api, worker, port)
            if busy:
                self.check_running(connection, ids[:EXPORTS])
            connection.close()
            return said
        finally:
            for process in (worker, api):
                process.send_signal(signal.SIGKILL)
                process.wait()
            os.sched_setaffinity(0, everything)
            self.place.psql(self.place.admin, "SELECT pg_terminate_backend(pid) FROM "
                            "pg_stat_activity WHERE application_name LIKE 'pawl-%'")

    def check_running(self, connection, ids):
        for number in ids:
            for _ in range(100):
                request = ask(connection, "GET", f"/api/v1/requests/{number}")
                if request["status"] != "QUEUED":
                    break
                time.sleep(0.05)
            if request["status"] != "RUNNING":
                raise RuntimeError(f"the heavy work does not run: {request}")

    def read(self, api, worker, port):
        took = []
        until = time.monotonic() + WARM_SECONDS + self.seconds
        self.part(api, worker)
        asyncio.run(self.clients(port, took, until, lambda: self.part(api, worker)))
        return {"answers": len(took), "p50_ms": percentile(took, 0.5),
                "p95_ms": percentile(took, 0.95)}

"""Stands between pawl and PostgreSQL, and cuts: a commit goes through, its answer does
not come back. What the client knows then is that it knows nothing."""

import select
import socket
import threading


class Proxy:
    """Forwards a port of 127.0.0.1. cut() arms it: the next connection that sends a
    COMMIT is closed once the server has answered, before the client hears."""

    def __init__(self, target_port):
        self.target = target_port
        self.armed = threading.Semaphore(0)
        self.cuts = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self):
        self.armed.release()

    def close(self):
        self.listener.close()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client):
        with client:
            try:
                server = socket.create_connection(("127.0.0.1", self.target), 5)
            except OSError:
                return
            with server:
                for side in (client, server):
                    side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                try:
                    self._shovel(client, server)
                except OSError:
                    pass

    def _shovel(self, client, server):
        doomed = False
        while True:
            for side in select.select([client, server], [], [])[0]:
                data = side.recv(65536)
                if not data:
                    return
                if side is client:
                    if b"COMMIT" in data.upper() and self.armed.acquire(blocking=False):
                        doomed = True
                    server.sendall(data)
                elif doomed:
                    self.cuts += 1  # answered, and never told
                    return
                else:
                    client.sendall(data)

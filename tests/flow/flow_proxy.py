"""Stands between pawl and PostgreSQL and falls silent when told: what is sent is taken
and goes nowhere, connections are accepted and nothing comes of them. So does a server
whose machine hangs."""

import select
import socket
import threading
import urllib.parse


class Proxy:
    def __init__(self, url, folder=None, silent_after=None):
        """folder: listen on a Unix socket there, whose kernel never gives a silent peer up.
        silent_after: by itself, once it has taken so many bytes from its clients."""
        parts = urllib.parse.urlsplit(url)
        self.target = (parts.hostname, parts.port)
        self.silent = threading.Event()
        self.closed = threading.Event()
        self.left = silent_after
        if folder:
            self.listener = socket.socket(socket.AF_UNIX)
            self.listener.bind(f"{folder}/.s.PGSQL.5432")
            self.listener.listen()
            self.url = f"postgresql://{parts.username}@{parts.path}?host={folder}"
        else:
            self.listener = socket.create_server(("127.0.0.1", 0))
            port = self.listener.getsockname()[1]
            self.url = url.replace(parts.netloc, f"{parts.username}@127.0.0.1:{port}")
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        """Ends what is silent, too: a session that the server has in a COPY answers nobody,
        and whoever drops a database there waits for it."""
        self.listener.close()
        self.closed.set()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client):
        with client, socket.create_connection(self.target) as server:
            while select.select([client, server], [], []):
                if self.silent.is_set():
                    self.closed.wait()
                    return
                for side, other in ((client, server), (server, client)):
                    if not select.select([side], [], [], 0)[0]:
                        continue
                    try:
                        data = side.recv(65536)
                        if not data:
                            return
                        if side is client and self.left is not None:
                            self.left -= len(data)
                            if self.left < 0:
                                self.silent.set()
                        other.sendall(data)
                    except OSError:
                        return

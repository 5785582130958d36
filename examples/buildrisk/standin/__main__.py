"""python3 standin [--port N] [--size small|typical] [--seed TEXT] [--day YYYY-MM-DD]"""

import argparse
import pathlib
import signal
import sys
import threading

if not __package__:  # started by its folder's name
    sys.path[0] = str(pathlib.Path(__file__).resolve().parent.parent)

from standin.server import Server  # noqa: E402
from standin.world import SIZES  # noqa: E402


def main():
    options = argparse.ArgumentParser(prog="standin", description=__doc__)
    options.add_argument("--port", type=int, default=8420, help="0: any that is free")
    options.add_argument("--size", choices=SIZES, default="small")
    options.add_argument("--seed", default="buildrisk")
    options.add_argument("--day", help="what it takes for today; default: today in Seoul")
    given = options.parse_args()
    server = Server(given.port, given.seed, given.size, given.day)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"standin ready port={server.port} size={given.size}", flush=True)
    signal.sigwait({signal.SIGINT, signal.SIGTERM})
    server.close()


# Before any thread is there, so that all of them leave the signals to main().
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
main()

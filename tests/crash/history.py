"""What a thread of the storm did, as lines that checker.py reads."""

import json
import time


class History:
    """The lines of one thread; one operation at a time."""

    def __init__(self, folder, name):
        self.name = name
        self.number = 0
        self.file = open(folder / f"{name}.jsonl", "a", encoding="utf-8", buffering=1)

    def _line(self, **event):
        self.file.write(json.dumps({"t": time.monotonic_ns(), "w": time.time_ns() // 1000,
                                    "p": self.name, **event}) + "\n")

    def invoke(self, op, key, **more):
        self.number += 1
        self._line(n=self.number, op=op, key=key, type="invoke", **more)

    def end(self, op, key, kind, **more):
        self._line(n=self.number, op=op, key=key, type=kind, **more)

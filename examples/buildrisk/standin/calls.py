"""
The calls: how many, by whom, what for, and whether one was under way twice at once.
A call counts when it arrives, whatever its answer. One lock for all.
"""

import collections
import contextlib
import threading


class Calls:
    def __init__(self):
        self._lock = threading.Lock()
        self.reset()

    def reset(self):
        with self._lock:
            self._by_day = collections.Counter()  # (day, service, key)
            self._by_item = collections.Counter()
            self._answers = collections.Counter()  # (service, kind of answer)
            self._flying = collections.Counter()
            self._most_flying = 0
            self._overlaps = 0
            self._log = []

    @contextlib.contextmanager
    def under_way(self, day, service, key, item):
        """Gives how many calls of this key the day has had, this one included."""
        with self._lock:
            self._by_day[day, service, key] += 1
            self._by_item[item] += 1
            self._flying[item] += 1
            self._overlaps += self._flying[item] > 1
            self._most_flying = max(self._most_flying, sum(self._flying.values()))
            self._log.append(item)
            used = self._by_day[day, service, key]
        try:
            yield used
        finally:
            with self._lock:
                self._flying[item] -= 1

    def answered(self, service, kind):
        with self._lock:
            self._answers[service, kind] += 1

    def total(self):
        with self._lock:
            return len(self._log)

    def told(self):
        with self._lock:
            days = collections.defaultdict(lambda: collections.defaultdict(dict))
            services = collections.Counter()
            for (day, service, key), count in self._by_day.items():
                days[day][service][key] = count
                services[service] += count
            answers = collections.defaultdict(dict)
            for (service, kind), count in self._answers.items():
                answers[service][kind] = count
            return {"total": len(self._log), "services": services, "days": days,
                    "items": dict(self._by_item), "answers": answers,
                    "mostAtOnce": self._most_flying, "overlaps": self._overlaps,
                    "log": list(self._log)}

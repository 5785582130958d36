"""
What a test may ask for, by POST /_control with a JSON object. Each member is optional:

    reset       true: as at the start; before all the other members
    day         "2026-11-29": what it takes for today
    delay_ms    how long each call takes
    order       "reversed": lists and files the other way round; "usual"
    page_max    rows of a page at most, whatever is asked for; 0: no such ceiling
    broken      lines in the file of corporations that nobody can use
    limit       {"dart": 100}: so many calls of a key and day, then `limit`; null: none
    forget      true: no token is known any more
    token_ms    the life of a new token
    answer      {service, match, after, times, kind, code, ms}, or a list of them, or
                null for none any more:
                of the calls of `service` whose query has all of `match`, let `after` pass
                and give the next `times` (default 1; 0 = all) this answer:
                no_data, limit, fatal, transient   with `code`, else the usual one
                html                               a page of HTML, status 200
                status                             HTTP status `code`
                cut                                half of the right answer, then silence
                slow                               the right answer, `ms` later
"""

import itertools
import threading

from standin.reply import FATAL, LIMIT, NO_DATA, TRANSIENT, Refusal

KINDS = (NO_DATA, LIMIT, FATAL, TRANSIENT, "html", "status", "cut", "slow")


class Rule:
    def __init__(self, service, kind, match=None, after=0, times=1, code=None, ms=0):
        if kind not in KINDS:
            raise ValueError(f"kind {kind}: one of {', '.join(KINDS)}")
        self.service = service
        self.kind = kind
        self.match = match or {}
        self.after = after
        self.left = times or None
        self.code = None if code is None else str(code)
        self.ms = ms

    def takes(self, service, query):
        """Counts down; only under the lock of Script."""
        if service != self.service or self.left == 0 or any(
                query.get(name) != str(value) for name, value in self.match.items()):
            return False
        if self.after > 0:
            self.after -= 1
            return False
        if self.left is not None:
            self.left -= 1
        return True


class Script:
    """What is asked for at the moment. Any thread may call any of these."""

    def __init__(self, world):
        self._lock = threading.Lock()
        self._world = world
        self._first_day = world.fixed_day
        self._reset()

    def _reset(self):
        self._world.fixed_day = self._first_day
        self.delay_ms = 0
        self.broken = 0
        self.token_ms = 4 * 3600 * 1000
        self._reversed = False
        self._page_max = 0
        self._limits = {}
        self._rules = []
        self._tokens = set()
        self._token_numbers = itertools.count(1)

    def change(self, wanted):
        """ValueError, TypeError or KeyError: no such wish; those before it are in force."""
        with self._lock:
            if wanted.pop("reset", False):
                self._reset()
            for name, value in wanted.items():
                self._CHANGES[name](self, value)

    def _set_day(self, text):
        self._world.fixed_day = type(self._world)(day=text).fixed_day

    def _add_rules(self, rules):
        if rules is None:
            self._rules = []
            return
        self._rules += [Rule(**rule) for rule in (rules if isinstance(rules, list) else [rules])]

    _CHANGES = {
        "day": _set_day,
        "delay_ms": lambda self, value: setattr(self, "delay_ms", int(value)),
        "order": lambda self, value: setattr(self, "_reversed", value == "reversed"),
        "page_max": lambda self, value: setattr(self, "_page_max", int(value)),
        "broken": lambda self, value: setattr(self, "broken", int(value)),
        "limit": lambda self, value: self._limits.update(value),
        "forget": lambda self, value: self._tokens.clear(),
        "token_ms": lambda self, value: setattr(self, "token_ms", int(value)),
        "answer": _add_rules,
    }

    # --- what handlers ask ---

    def ordered(self, rows):
        return rows[::-1] if self._reversed else rows

    def page_size(self, asked):
        return min(asked, self._page_max) if self._page_max else asked

    def new_token(self):
        with self._lock:
            text = f"token-{next(self._token_numbers)}"
            self._tokens.add(text)
            return text

    def is_token(self, text):
        with self._lock:
            return text in self._tokens

    # --- what the server asks ---

    def rule_for(self, service, query, used):
        """The rule that this call falls under, or None. `used`: calls of its key today."""
        with self._lock:
            for rule in self._rules:
                if rule.takes(service, query):
                    return rule
            limit = self._limits.get(service)
            return Rule(service, LIMIT) if limit is not None and used > limit else None


def refusal_of(rule):
    return Refusal(rule.kind, rule.code)

-- Calls allowed to outside APIs. A row is rewritten with each call: it never grows.

CREATE TABLE pawl.budget (
    name text PRIMARY KEY,
    day_start integer NOT NULL,         -- the calendar day of its zone that `used` is for
    day_end integer NOT NULL,
    used integer NOT NULL,              -- calls taken; a call that may have been made counts
    next_at integer NOT NULL,           -- no further call goes before this
    closed_at integer                   -- the provider itself said "no more today"
) STRICT, WITHOUT ROWID;

-- Of a request with maxCalls.
CREATE TABLE pawl.request_calls (
    request_id integer PRIMARY KEY,
    used integer NOT NULL
) STRICT;

-- Calls allowed to outside APIs. A row is rewritten with each call: it never grows.

CREATE TABLE pawl.budget (
    name text PRIMARY KEY,
    day_start bigint NOT NULL,          -- the calendar day of its zone that `used` is for
    day_end bigint NOT NULL,
    used bigint NOT NULL,               -- calls taken; a call that may have been made counts
    next_at bigint NOT NULL,            -- no further call goes before this
    closed_at bigint                    -- the provider itself said "no more today"
) WITH (fillfactor = 50);

-- Of a request with maxCalls.
CREATE TABLE pawl.request_calls (
    request_id bigint PRIMARY KEY,
    used bigint NOT NULL
) WITH (fillfactor = 50);

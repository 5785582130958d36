-- Budgets: calls to outside APIs, taken before they are made.

-- name: budget_moment (name text) -> (now bigint, go_at bigint)
-- The earliest moment at which a call could go: those before it may wait for a spacing.
SELECT pawl_now() AS now,
    CASE WHEN b.next_at > pawl_now() THEN b.next_at ELSE pawl_now() END AS go_at
FROM (SELECT 1 AS one) o LEFT JOIN pawl.budget b ON b.name = $1;

-- name: budget_take (name text, day_start bigint, day_end bigint, spacing bigint,
-- per_day bigint) -> (used bigint, go_at bigint, now bigint)
-- Check and reserve in one: a row comes back only when there was a call left. go_at is
-- the moment at which the call may go; the day given must be the one that holds it,
-- looked at when the row is locked. Only when the day that was counted is over, the
-- count begins anew, but not with less distance to the last call. (So a day of another
-- zone that is under way, or one that came before, wins no calls.)
INSERT INTO pawl.budget AS b (name, day_start, day_end, used, next_at)
SELECT $1, CAST($2 AS bigint), CAST($3 AS bigint), 1, pawl_now() + CAST($4 AS bigint)
WHERE CAST($5 AS bigint) > 0 AND pawl_now() < CAST($3 AS bigint)
    AND (pawl_now() >= CAST($2 AS bigint)
         OR EXISTS (SELECT 1 FROM pawl.budget e WHERE e.name = $1))
ON CONFLICT (name) DO UPDATE SET
    used = CASE WHEN b.day_end > excluded.day_start THEN b.used + 1 ELSE 1 END,
    closed_at = NULL,
    next_at = CAST($4 AS bigint)
        + CASE WHEN b.next_at > pawl_now() THEN b.next_at ELSE pawl_now() END,
    day_start = excluded.day_start, day_end = excluded.day_end
WHERE CASE WHEN b.next_at > pawl_now() THEN b.next_at ELSE pawl_now() END
        >= excluded.day_start
    AND CASE WHEN b.next_at > pawl_now() THEN b.next_at ELSE pawl_now() END
        < excluded.day_end
    AND (b.day_end <= excluded.day_start
         OR (b.used < CAST($5 AS bigint) AND b.closed_at IS NULL))
RETURNING used, next_at - CAST($4 AS bigint) AS go_at, pawl_now() AS now;

-- name: budget_close (name text)
-- The provider counts too, and has the last word until the day ends.
UPDATE pawl.budget SET closed_at = pawl_now()
WHERE name = $1 AND day_start <= pawl_now() AND day_end > pawl_now();

-- name: budget_read (name text) -> (day_start bigint, day_end bigint, used bigint,
-- next_at bigint, closed_at bigint, now bigint)
SELECT b.day_start, b.day_end, b.used, b.next_at, b.closed_at, pawl_now() AS now
FROM pawl.budget b WHERE b.name = $1;

-- name: budget_request_take (request_id bigint, max_calls bigint) -> (used bigint)
INSERT INTO pawl.request_calls AS c (request_id, used)
SELECT CAST($1 AS bigint), 1 WHERE CAST($2 AS bigint) > 0
ON CONFLICT (request_id) DO UPDATE SET used = c.used + 1
WHERE c.used < CAST($2 AS bigint)
RETURNING used;

-- name: budget_request_used (request_id bigint) -> (used bigint)
SELECT used FROM pawl.request_calls WHERE request_id = $1;

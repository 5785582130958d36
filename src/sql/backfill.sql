-- Backfills: groups of requests of one job, let in a few at a time. What changes a group
-- locks its row first (backfill_lock).

-- name: backfill_add (job text, requester text, given text, priority bigint,
-- parallel bigint, hold_on_failure bigint, total bigint, passed_over bigint)
-- -> (id bigint)
INSERT INTO pawl.backfill (job, requester, given, priority, parallel, hold_on_failure, total,
    passed_over, next_n, open, state, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 1, 0, 'RUNNING', pawl_now())
RETURNING id;

-- name: backfill_waiting (backfill_id bigint, next_n bigint, most bigint) -> (n bigint,
-- given text)
SELECT n, given FROM pawl.backfill_item
WHERE backfill_id = $1 AND n >= $2 AND state = 'WAITING' ORDER BY n LIMIT $3;

-- name: backfill_item_open (request_id bigint, backfill_id bigint, n bigint)
UPDATE pawl.backfill_item SET state = 'OPEN', request_id = $1
WHERE backfill_id = $2 AND n = $3 AND state = 'WAITING';

-- name: backfill_item_refuse (detail text, backfill_id bigint, n bigint)
UPDATE pawl.backfill_item SET state = 'FAILED', detail = $1, ended_at = pawl_now()
WHERE backfill_id = $2 AND n = $3 AND state = 'WAITING';

-- name: backfill_item_retry (to_id bigint, from_id bigint)
UPDATE pawl.backfill_item SET request_id = $1 WHERE request_id = $2 AND state = 'OPEN';

-- name: backfill_item_end (state text, detail text, request_id bigint)
-- -> (backfill_id bigint, n bigint)
UPDATE pawl.backfill_item SET state = $1, detail = $2, ended_at = pawl_now()
WHERE request_id = $3 AND state = 'OPEN'
RETURNING backfill_id, n;

-- name: backfill_set (next_n bigint, open bigint, state text, why text, ended bigint,
-- id bigint)
UPDATE pawl.backfill SET next_n = $1, open = $2, state = $3, why = $4,
    ended_at = CASE WHEN $5 = 1 THEN pawl_now() END
WHERE id = $6;

-- name: backfill_again (backfill_id bigint, also_failed bigint)
-- What held the group is done again when it goes on.
UPDATE pawl.backfill_item SET state = 'WAITING', request_id = NULL, detail = NULL,
    ended_at = NULL
WHERE backfill_id = $1 AND (state = 'STOPPED' OR (state = 'FAILED' AND $2 = 1));

-- name: backfill_drop_waiting (backfill_id bigint)
UPDATE pawl.backfill_item SET state = 'CANCELLED', ended_at = pawl_now()
WHERE backfill_id = $1 AND state = 'WAITING';

-- name: backfill_open_requests (backfill_id bigint) -> (request_id bigint)
SELECT request_id FROM pawl.backfill_item
WHERE backfill_id = $1 AND state = 'OPEN' ORDER BY n;

-- name: backfill_get (id bigint) -> (id bigint, job text, requester text, given text,
-- parallel bigint, hold_on_failure bigint, total bigint, passed_over bigint, state text,
-- why text, created_at bigint, ended_at bigint)
SELECT id, job, requester, given, parallel, hold_on_failure, total, passed_over, state, why,
    created_at, ended_at
FROM pawl.backfill WHERE id = $1;

-- name: backfill_list (most bigint) -> (id bigint)
SELECT id FROM pawl.backfill ORDER BY id DESC LIMIT $1;

-- name: backfill_counts (backfill_id bigint) -> (state text, n bigint)
SELECT state, CAST(count(*) AS bigint) AS n FROM pawl.backfill_item
WHERE backfill_id = $1 GROUP BY state;

-- name: backfill_items (backfill_id bigint, most bigint) -> (n bigint, given text,
-- state text, request_id bigint, detail text)
-- Those that a person looks for: what runs, and what went wrong.
SELECT n, given, state, request_id, detail FROM pawl.backfill_item
WHERE backfill_id = $1 AND state NOT IN ('WAITING', 'COMPLETED') ORDER BY n LIMIT $2;

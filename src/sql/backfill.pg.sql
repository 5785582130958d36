-- Where PostgreSQL differs: several may end at once.

-- name: backfill_lock (id bigint) -> (job text, requester text, priority bigint,
-- parallel bigint, hold_on_failure bigint, next_n bigint, open bigint, state text)
SELECT job, requester, priority, parallel, hold_on_failure, next_n, open, state
FROM pawl.backfill WHERE id = $1 FOR UPDATE;

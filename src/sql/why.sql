-- Why a request is not running yet: stored facts only.

-- name: why_ahead (id bigint) -> (ahead bigint)
-- Requests of its lane that are claimed before it, so none of a paused job; no row
-- unless it is ready.
SELECT coalesce((SELECT CAST(sum(o.last_id - o.first_id + 1) AS bigint)
                 FROM pawl.ready o
                 WHERE o.lane = y.lane
                   AND o.job NOT IN (SELECT p.name FROM pawl.paused p WHERE p.kind = 'job')
                   AND (o.priority > y.priority
                     OR (o.priority = y.priority AND o.seq < y.seq))), 0)
    + $1 - y.first_id AS ahead
FROM pawl.ready y
WHERE y.first_id = (SELECT s.first_id FROM pawl.ready s WHERE s.first_id <= $1
                    ORDER BY s.first_id DESC LIMIT 1)
  AND y.last_id >= $1;

-- name: why_holders (lane text, most bigint) -> (first_id bigint, last_id bigint,
-- job text, worker text)
SELECT first_id, last_id, job, worker FROM pawl.claim
WHERE lane = $1 ORDER BY claimed_at, first_id LIMIT $2;

-- name: why_running (lane text) -> (running bigint)
SELECT CAST(coalesce(sum(last_id - first_id + 1), 0) AS bigint) AS running
FROM pawl.claim WHERE lane = $1;

-- name: why_waits (request_id bigint, most bigint) -> (after_id bigint)
SELECT after_id FROM pawl.wait WHERE request_id = $1 ORDER BY after_id LIMIT $2;

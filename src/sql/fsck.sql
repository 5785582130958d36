-- What must hold of the store at any moment: each statement finds rows that break one
-- rule, at most $1 of them. No rows: the rule is kept. service/fsck.c names the rules.
-- That a request has one outcome, and a key one holder, the primary keys see to.

-- --- a request is in exactly one place ---

-- name: fsck_nowhere (most bigint) -> (id bigint, detail text)
-- Spans of one table do not overlap (fsck_overlap), so the nearest one decides.
SELECT r.id AS id, 'job ' || r.job AS detail FROM pawl.request r
WHERE NOT EXISTS (SELECT 1 FROM pawl.outcome o WHERE o.id = r.id)
  AND coalesce((SELECT s.last_id FROM pawl.later s WHERE s.first_id <= r.id
                ORDER BY s.first_id DESC LIMIT 1), 0) < r.id
  AND coalesce((SELECT s.last_id FROM pawl.ready s WHERE s.first_id <= r.id
                ORDER BY s.first_id DESC LIMIT 1), 0) < r.id
  AND coalesce((SELECT s.last_id FROM pawl.claim s WHERE s.first_id <= r.id
                ORDER BY s.first_id DESC LIMIT 1), 0) < r.id
ORDER BY r.id LIMIT $1;

-- name: fsck_overlap (most bigint) -> (id bigint, detail text)
SELECT first_id AS id, place || ' ' || first_id || '-' || last_id AS detail
FROM (SELECT s.*, max(last_id) OVER (ORDER BY first_id, place
          ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS taken_to
      FROM (SELECT first_id, last_id, 'later' AS place FROM pawl.later
            UNION ALL SELECT first_id, last_id, 'ready' FROM pawl.ready
            UNION ALL SELECT first_id, last_id, 'claim' FROM pawl.claim) s) w
WHERE taken_to >= first_id
ORDER BY first_id LIMIT $1;

-- name: fsck_final_open (most bigint) -> (id bigint, detail text)
SELECT o.id AS id, o.outcome || ', and in ' || s.place AS detail
FROM (SELECT first_id, last_id, 'later' AS place FROM pawl.later
      UNION ALL SELECT first_id, last_id, 'ready' FROM pawl.ready
      UNION ALL SELECT first_id, last_id, 'claim' FROM pawl.claim) s
JOIN pawl.outcome o ON o.id BETWEEN s.first_id AND s.last_id
ORDER BY o.id LIMIT $1;

-- name: fsck_stray_span (most bigint) -> (id bigint, detail text)
SELECT s.first_id AS id, s.place || ' ' || s.first_id || '-' || s.last_id AS detail
FROM (SELECT first_id, last_id, 'later' AS place FROM pawl.later
      UNION ALL SELECT first_id, last_id, 'ready' FROM pawl.ready
      UNION ALL SELECT first_id, last_id, 'claim' FROM pawl.claim) s
WHERE (SELECT count(*) FROM pawl.request r WHERE r.id BETWEEN s.first_id AND s.last_id)
    <> s.last_id - s.first_id + 1
ORDER BY s.first_id LIMIT $1;

-- name: fsck_stray_outcome (most bigint) -> (id bigint, detail text)
SELECT o.id AS id, o.outcome AS detail FROM pawl.outcome o
WHERE NOT EXISTS (SELECT 1 FROM pawl.request r WHERE r.id = o.id)
ORDER BY o.id LIMIT $1;

-- name: fsck_never_due (most bigint) -> (id bigint, detail text)
SELECT l.first_id AS id, 'waits for ' || CASE l.reason WHEN 'time' THEN 'a time' ELSE 'others' END
    || ', without any' AS detail
FROM pawl.later l
WHERE (l.reason = 'time' AND l.not_before IS NULL)
   OR (l.reason = 'after' AND NOT EXISTS (SELECT 1 FROM pawl.wait w
       WHERE w.request_id BETWEEN l.first_id AND l.last_id))
ORDER BY l.first_id LIMIT $1;

-- name: fsck_wait (most bigint) -> (id bigint, detail text)
-- Who waits stands in later for that reason; whom it waits for is not over.
SELECT w.request_id AS id, 'for ' || w.after_id AS detail FROM pawl.wait w
WHERE NOT EXISTS (SELECT 1 FROM pawl.later l WHERE l.reason = 'after'
                  AND w.request_id BETWEEN l.first_id AND l.last_id)
   OR NOT EXISTS (SELECT 1 FROM pawl.request r WHERE r.id = w.after_id)
   OR EXISTS (SELECT 1 FROM pawl.outcome o WHERE o.id = w.after_id)
ORDER BY w.request_id, w.after_id LIMIT $1;

-- --- claims ---

-- name: fsck_dead_claim (grace bigint, most bigint) -> (id bigint, detail text)
SELECT c.first_id AS id,
    CASE WHEN w.id IS NULL THEN 'no worker row ' ELSE 'dead worker ' END || c.worker AS detail
FROM pawl.claim c LEFT JOIN pawl.worker w ON w.id = c.worker
WHERE w.id IS NULL OR w.beat_at < pawl_now() - CAST($1 AS bigint)
ORDER BY c.first_id LIMIT $2;

-- name: fsck_paused_start (most bigint) -> (id bigint, detail text)
-- Both times are taken before their commits, hence the minute.
SELECT c.first_id AS id, p.kind || ' ' || p.name || ' was paused by ' || p.paused_by AS detail
FROM pawl.claim c
JOIN pawl.paused p ON (p.kind = 'job' AND p.name = c.job)
                   OR (p.kind = 'lane' AND p.name = c.lane)
WHERE c.claimed_at > p.paused_at + 60000000
ORDER BY c.first_id LIMIT $1;

-- name: fsck_token_twice (most bigint) -> (id bigint, detail text)
-- One claim of a span bears one token; what is left of it after some were finished does.
SELECT min(c.first_id) AS id, 'token ' || c.token || ' of ' || count(*) || ' workers' AS detail
FROM (SELECT token, nonce, worker, min(first_id) AS first_id FROM pawl.claim
      GROUP BY token, nonce, worker) c
GROUP BY c.token, c.nonce HAVING count(*) > 1
ORDER BY 1 LIMIT $1;

-- --- what follows ---

-- name: fsck_try (most bigint) -> (id bigint, detail text)
-- One next try at most, of what ended without success, and it counts on; a drained one
-- uses no attempt.
SELECT r.id AS id, 'try ' || r.attempt || ' of request ' || b.id || ', which is '
    || coalesce(o.outcome, 'not over') AS detail
FROM pawl.request r
JOIN pawl.request b ON b.id = r.retry_of
LEFT JOIN pawl.outcome o ON o.id = b.id
WHERE o.id IS NULL OR o.outcome IN ('COMPLETED', 'CANCELLED')
   OR r.attempt <> b.attempt + CASE WHEN o.outcome = 'STOPPED' THEN 0 ELSE 1 END
   OR r.first_try IS NULL OR r.first_try <> coalesce(b.first_try, b.id)
   OR EXISTS (SELECT 1 FROM pawl.request e WHERE e.first_try = r.first_try
              AND e.retry_of = r.retry_of AND e.id < r.id)
ORDER BY r.id LIMIT $1;

-- name: fsck_link (most bigint) -> (id bigint, detail text)
-- The requester of a link names the request that released it, which may be forgotten.
SELECT max(r.id) AS id, r.requester || ' has ' || count(*) || ' links' AS detail
FROM pawl.request r
WHERE r.source = 'chain'
GROUP BY r.requester
HAVING count(*) > 1
    OR EXISTS (SELECT 1 FROM pawl.request p LEFT JOIN pawl.outcome o ON o.id = p.id
               WHERE p.id = CAST(substr(r.requester, 8) AS bigint)
                   AND (o.id IS NULL OR o.outcome <> 'COMPLETED'))
ORDER BY 1 LIMIT $1;

-- name: fsck_max_calls (most bigint) -> (id bigint, detail text)
SELECT r.id AS id, c.used || ' calls, maxCalls is ' || r.max_calls AS detail
FROM pawl.request_calls c JOIN pawl.request r ON r.id = c.request_id
WHERE c.used > r.max_calls
ORDER BY r.id LIMIT $1;

-- name: fsck_result (most bigint) -> (id bigint, detail text)
SELECT o.id AS id, o.outcome || ' with the result ' || o.result_path AS detail
FROM pawl.outcome o
WHERE o.result_path IS NOT NULL AND o.outcome <> 'COMPLETED'
ORDER BY o.id LIMIT $1;

-- --- what belongs to requests ---

-- name: fsck_active (most bigint) -> (id bigint, detail text)
SELECT a.request_id AS id, a.key AS detail FROM pawl.active a
WHERE NOT EXISTS (SELECT 1 FROM pawl.request r WHERE r.id = a.request_id)
   OR EXISTS (SELECT 1 FROM pawl.outcome o WHERE o.id = a.request_id)
ORDER BY a.request_id, a.key LIMIT $1;

-- name: fsck_flag (most bigint) -> (id bigint, detail text)
SELECT f.request_id AS id, 'asked by ' || f.asked_by AS detail FROM pawl.flag f
WHERE coalesce((SELECT s.last_id FROM pawl.claim s WHERE s.first_id <= f.request_id
                ORDER BY s.first_id DESC LIMIT 1), 0) < f.request_id
ORDER BY f.request_id LIMIT $1;

-- name: fsck_progress (most bigint) -> (id bigint, detail text)
SELECT p.request_id AS id, 'done ' || p.done AS detail FROM pawl.progress p
WHERE coalesce((SELECT s.last_id FROM pawl.claim s WHERE s.first_id <= p.request_id
                ORDER BY s.first_id DESC LIMIT 1), 0) < p.request_id
ORDER BY p.request_id LIMIT $1;

-- name: fsck_idempotency (most bigint) -> (id bigint, detail text)
SELECT i.request_id AS id, 'key ' || i.key || ' of ' || i.subject AS detail
FROM pawl.idempotency i
WHERE NOT EXISTS (SELECT 1 FROM pawl.request r WHERE r.id = i.request_id)
ORDER BY i.request_id LIMIT $1;

-- --- batches ---

-- name: fsck_execution (most bigint) -> (id bigint, detail text)
-- Alive, and nobody holds the claim it was begun under.
SELECT e.id AS id, e.state || ' for request ' || e.request_id AS detail
FROM pawl.execution e
WHERE e.state IN ('STARTING', 'STARTED', 'STOPPING')
  AND NOT EXISTS (SELECT 1 FROM pawl.claim c WHERE c.token = e.token
                  AND e.request_id BETWEEN c.first_id AND c.last_id)
ORDER BY e.id LIMIT $1;

-- name: fsck_ended (most bigint) -> (id bigint, detail text)
SELECT id, detail
FROM (SELECT id, 'execution ' || state AS detail FROM pawl.execution
      WHERE (ended_at IS NULL) <> (state IN ('STARTING', 'STARTED', 'STOPPING'))
      UNION ALL
      SELECT execution_id, 'step ' || name || ' ' || state FROM pawl.step_execution
      WHERE (ended_at IS NULL) <> (state IN ('STARTING', 'STARTED', 'STOPPING'))) e
ORDER BY id LIMIT $1;

-- name: fsck_step (most bigint) -> (id bigint, detail text)
SELECT e.id AS id, 'execution ' || e.state || ', step ' || s.name || ' ' || s.state AS detail
FROM pawl.step_execution s LEFT JOIN pawl.execution e ON e.id = s.execution_id
WHERE e.id IS NULL
   OR (e.state = 'COMPLETED' AND s.state <> 'COMPLETED')
   OR (e.state IN ('STOPPED', 'FAILED') AND s.state IN ('STARTING', 'STARTED', 'STOPPING'))
ORDER BY e.id LIMIT $1;

-- name: fsck_place (most bigint) -> (id bigint, detail text)
-- Every commit moves the place by one chunk: none is lost, none counted twice.
SELECT id, detail
FROM (SELECT execution_id AS id, 'step ' || name || ': ' || commits || ' commits, chunk '
          || chunk AS detail
      FROM pawl.step_execution WHERE commits <> chunk
      UNION ALL
      SELECT instance_id, 'partition ' || n || ' of step ' || step || ' of instance '
          || instance_id || ': ' || commits || ' commits, chunk ' || chunk
      FROM pawl.step_partition WHERE commits <> chunk) s
ORDER BY id LIMIT $1;

-- name: fsck_goes_back (most bigint) -> (id bigint, detail text)
-- Files may be begun anew (their part can be gone), rows of a transaction never.
SELECT e.id AS id, 'step ' || s.name || ' at chunk ' || s.chunk || ', execution '
    || b.execution_id || ' had committed ' || b.chunk AS detail
FROM pawl.execution e
JOIN pawl.step_execution s ON s.execution_id = e.id
JOIN pawl.step_execution b ON b.execution_id = e.resumed_from AND b.name = s.name
WHERE b.effect = 'transactional' AND s.effect = 'transactional'
  AND b.state <> 'COMPLETED' AND s.chunk < b.chunk
ORDER BY e.id LIMIT $1;

-- name: fsck_outcome_execution (most bigint) -> (id bigint, detail text)
SELECT o.id AS id, o.outcome || ', and its execution ' || o.execution_id || ' '
    || coalesce(e.state, 'is missing') AS detail
FROM pawl.outcome o LEFT JOIN pawl.execution e ON e.id = o.execution_id
WHERE o.execution_id IS NOT NULL
  AND (e.id IS NULL OR (o.outcome = 'COMPLETED' AND e.state <> 'COMPLETED'))
ORDER BY o.id LIMIT $1;

-- name: fsck_audit (most bigint) -> (id bigint, detail text)
-- The audit keeps no longer than the history does, and who is asked to end may take a
-- while: only what ended a day after the oldest row is looked at. Hands of a partitioned
-- step follow their request.
SELECT o.id AS id, 'cancelled, and the audit has no row of it' AS detail
FROM pawl.outcome o JOIN pawl.request r ON r.id = o.id
WHERE o.outcome = 'CANCELLED' AND r.source <> 'partition'
  AND o.finished_at > (SELECT min(a.at) FROM pawl.audit a) + 86400000000
  AND NOT EXISTS (SELECT 1 FROM pawl.audit a
                  WHERE a.subject = 'request ' || o.id AND a.act = 'cancel')
ORDER BY o.id LIMIT $1;

-- --- schedules ---

-- name: fsck_resumed (most bigint) -> (id bigint, detail text)
SELECT e.id AS id, 'goes on from execution ' || b.id || ', which is ' || b.state AS detail
FROM pawl.execution e
JOIN pawl.instance i ON i.id = e.instance_id
JOIN pawl.execution b ON b.id = e.resumed_from
WHERE b.instance_id <> e.instance_id OR b.id >= e.id OR i.confirmed = 1
   OR b.state NOT IN ('STOPPED', 'FAILED')
   OR EXISTS (SELECT 1 FROM pawl.outcome o
              WHERE o.id = b.request_id AND o.outcome = 'CANCELLED')
ORDER BY e.id LIMIT $1;

-- name: fsck_slot_twice (most bigint) -> (id bigint, detail text)
-- A row stands for all times from its slot_time to its last_time.
SELECT coalesce(request_id, 0) AS id, 'schedule ' || schedule || ' at ' || slot_time AS detail
FROM (SELECT s.*, max(last_time) OVER (PARTITION BY schedule ORDER BY slot_time
          ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS decided_to
      FROM pawl.schedule_slot s) w
WHERE decided_to >= slot_time
ORDER BY schedule, slot_time LIMIT $1;

-- name: fsck_slot_request (most bigint) -> (id bigint, detail text)
SELECT s.request_id AS id, 'schedule ' || s.schedule || ' at ' || s.slot_time AS detail
FROM pawl.schedule_slot s
WHERE s.state = 'fired'
  AND NOT EXISTS (SELECT 1 FROM pawl.request r WHERE r.id = s.request_id)
ORDER BY s.schedule, s.slot_time LIMIT $1;

-- --- result files ---

-- name: fsck_results (after bigint, most bigint) -> (id bigint, path text, bytes bigint,
-- sha256 text)
-- Page by page.
SELECT id, result_path AS path, coalesce(result_bytes, 0) AS bytes,
    coalesce(result_sha256, '') AS sha256 FROM pawl.outcome
WHERE id > $1 AND result_path IS NOT NULL AND result_gone_at IS NULL
ORDER BY id LIMIT $2;

-- name: fsck_file_known (id bigint, path text) -> (known bigint)
-- Of a result, or of a request that runs still.
SELECT (SELECT count(*) FROM pawl.outcome WHERE id = $1 AND result_path = $2
        AND result_gone_at IS NULL)
    + (SELECT count(*) FROM pawl.claim WHERE $1 BETWEEN first_id AND last_id) AS known;

-- name: fsck_part_known (token bigint, instance_id bigint) -> (known bigint)
-- A part is known as long as its claim stands, or as long as it holds what the last
-- chunk of a step covers and the instance is being gone on with, or may still be: not
-- completed, not cancelled, not followed by one that asked for the same, touched within
-- seven days.
SELECT CAST(CASE
    WHEN EXISTS (SELECT 1 FROM pawl.claim WHERE token = $1) THEN 1
    WHEN EXISTS (
        SELECT 1 FROM pawl.instance i
        JOIN pawl.execution last ON last.instance_id = i.id
        JOIN pawl.execution mine ON mine.instance_id = i.id AND mine.token = $1
        JOIN pawl.step_execution s ON s.execution_id = mine.id AND s.chunk > 0
        WHERE i.id = $2 AND last.state <> 'COMPLETED'
            AND NOT EXISTS (SELECT 1 FROM pawl.execution later
                WHERE later.instance_id = i.id AND later.id > last.id)
            AND (last.state IN ('STARTING', 'STARTED', 'STOPPING')
                OR (last.last_updated > pawl_now() - 604800000000
                    AND NOT EXISTS (SELECT 1 FROM pawl.outcome o
                        WHERE o.id = last.request_id AND o.outcome = 'CANCELLED')
                    AND NOT EXISTS (SELECT 1 FROM pawl.instance n
                        WHERE n.job = i.job AND n.number > i.number
                            AND n.identity = i.identity)))
            AND NOT EXISTS (SELECT 1 FROM pawl.execution e2
                JOIN pawl.step_execution s2 ON s2.execution_id = e2.id
                WHERE e2.instance_id = i.id AND e2.id > mine.id AND s2.name = s.name
                    AND s2.chunk <> s.chunk)) THEN 1
    ELSE 0 END AS bigint) AS known;

-- --- repairs: again only what breaks the rule now ---

-- name: fsck_drop_active (key text, request_id bigint)
-- A final request stays final; a key that moved on bears another id.
DELETE FROM pawl.active WHERE key = $1 AND request_id = $2;

-- name: fsck_drop_flag (request_id bigint)
DELETE FROM pawl.flag WHERE request_id = $1
  AND NOT EXISTS (SELECT 1 FROM pawl.claim c
                  WHERE $1 BETWEEN c.first_id AND c.last_id);

-- name: fsck_drop_progress (request_id bigint)
DELETE FROM pawl.progress WHERE request_id = $1
  AND NOT EXISTS (SELECT 1 FROM pawl.claim c
                  WHERE $1 BETWEEN c.first_id AND c.last_id);

-- name: fsck_delivery (most bigint) -> (id bigint, detail text)
SELECT e.request_id AS id, 'for ' || e.webhook AS detail FROM pawl.delivery e
WHERE NOT EXISTS (SELECT 1 FROM pawl.outcome o WHERE o.id = e.request_id)
ORDER BY e.request_id, e.webhook LIMIT $1;

-- name: fsck_backfill (most bigint) -> (id bigint, detail text)
SELECT b.id AS id, b.state || ' with ' || b.open || ' open' AS detail
FROM pawl.backfill b
WHERE (b.state = 'RUNNING' AND b.open = 0)
   OR b.open <> (SELECT count(*) FROM pawl.backfill_item i
                 WHERE i.backfill_id = b.id AND i.state = 'OPEN')
   OR EXISTS (SELECT 1 FROM pawl.backfill_item i JOIN pawl.outcome o ON o.id = i.request_id
              WHERE i.backfill_id = b.id AND i.state = 'OPEN')
ORDER BY b.id LIMIT $1;

-- Requests: submit, claim, finish, cancel, later, reading. A look-up of the span that
-- holds an id takes the greatest first_id at or below it: spans never overlap.

-- --- submit ---

-- name: queue_idem_take (subject text, job text, key text, digest text,
-- request_id bigint) -> (request_id bigint)
-- No row: another request has this key, and it is younger than a day.
INSERT INTO pawl.idempotency AS i (subject, job, key, digest, request_id, created_at)
VALUES ($1, $2, $3, $4, $5, pawl_now())
ON CONFLICT (subject, job, key) DO UPDATE
    SET digest = excluded.digest, request_id = excluded.request_id,
        created_at = excluded.created_at
    WHERE i.created_at < pawl_now() - 86400000000
RETURNING request_id;

-- name: queue_idem_get (subject text, job text, key text)
-- -> (digest text, request_id bigint, lane text)
-- The lane is NULL while that request is still being written by ourselves.
SELECT i.digest, i.request_id, r.lane
FROM pawl.idempotency i LEFT JOIN pawl.request r ON r.id = i.request_id
WHERE i.subject = $1 AND i.job = $2 AND i.key = $3;

-- name: queue_idem_point (request_id bigint, subject text, job text, key text)
UPDATE pawl.idempotency SET request_id = $1 WHERE subject = $2 AND job = $3 AND key = $4;

-- name: queue_active_take (key text, request_id bigint) -> (request_id bigint)
-- The insert decides; no row: the key is taken.
INSERT INTO pawl.active (key, request_id) VALUES ($1, $2)
ON CONFLICT (key) DO NOTHING
RETURNING request_id;

-- name: queue_active_get (key text) -> (request_id bigint, lane text, created_at bigint,
-- queued bigint, retry_of bigint, given text)
SELECT a.request_id, r.lane, r.created_at,
    CASE WHEN (SELECT l.last_id FROM pawl.later l WHERE l.first_id <= a.request_id
               ORDER BY l.first_id DESC LIMIT 1) >= a.request_id
           OR (SELECT y.last_id FROM pawl.ready y WHERE y.first_id <= a.request_id
               ORDER BY y.first_id DESC LIMIT 1) >= a.request_id
         THEN CAST(1 AS bigint) ELSE CAST(0 AS bigint) END AS queued,
    r.retry_of, r.given
FROM pawl.active a LEFT JOIN pawl.request r ON r.id = a.request_id
WHERE a.key = $1;

-- name: queue_active_move (to_id bigint, key text, from_id bigint)
-- -> (request_id bigint)
UPDATE pawl.active SET request_id = $1 WHERE key = $2 AND request_id = $3
RETURNING request_id;

-- name: queue_request_add (id bigint, job text, given text, requester text, source text,
-- lane text, priority bigint, estimate bigint, not_before bigint, expires_at bigint,
-- retry_of bigint, first_try bigint, attempt bigint, restart_of bigint, restart bigint,
-- max_calls bigint, next text, created_at bigint)
INSERT INTO pawl.request (id, job, given, requester, source, lane, priority, estimate,
    not_before, expires_at, retry_of, first_try, attempt, restart_of, restart, max_calls,
    next, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18);

-- name: queue_later_add (first_id bigint, last_id bigint, job text, lane text,
-- priority bigint, not_before bigint, expires_at bigint, reason text, created_at bigint)
INSERT INTO pawl.later (first_id, last_id, job, lane, priority, not_before, expires_at,
    reason, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9);

-- name: queue_ready_put (first_id bigint, last_id bigint, job text, lane text,
-- priority bigint, seq bigint, ready_since bigint, expires_at bigint)
-- What is left of a span keeps its place.
INSERT INTO pawl.ready (first_id, last_id, job, lane, priority, seq, ready_since,
    expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8);

-- name: queue_claim_put (first_id bigint, last_id bigint, job text, lane text,
-- worker text, token bigint, nonce text, claimed_at bigint)
INSERT INTO pawl.claim (first_id, last_id, job, lane, worker, token, nonce, claimed_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8);

-- --- claim ---

-- name: queue_claims_of (worker text, nonce text) -> (first_id bigint, last_id bigint,
-- job text, lane text, token bigint, claimed_at bigint)
-- After a commit of which nobody knows: what did we get?
SELECT first_id, last_id, job, lane, token, claimed_at FROM pawl.claim
WHERE worker = $1 AND nonce = $2 ORDER BY first_id;

-- name: queue_load (first_id bigint, last_id bigint) -> (id bigint, job text, given text,
-- requester text, source text, lane text, priority bigint, estimate bigint,
-- not_before bigint, expires_at bigint, retry_of bigint, first_try bigint,
-- attempt bigint, restart_of bigint, restart bigint, max_calls bigint, next text,
-- created_at bigint)
SELECT id, job, given, requester, source, lane, priority, estimate, not_before,
    expires_at, retry_of, first_try, attempt, restart_of, restart, max_calls, next,
    created_at
FROM pawl.request WHERE id BETWEEN $1 AND $2 ORDER BY id;

-- name: queue_holds (id bigint, token bigint, nonce text) -> (there bigint)
SELECT count(*) AS there FROM pawl.claim
WHERE first_id = (SELECT c.first_id FROM pawl.claim c WHERE c.first_id <= $1
                  ORDER BY c.first_id DESC LIMIT 1)
  AND last_id >= $1 AND token = $2 AND nonce = $3;

-- --- takeover ---

-- name: queue_ready_lanes () -> (lane text)
-- Lanes that hold ready rows, each found by one step in the index.
WITH RECURSIVE found (lane) AS (
    SELECT first.lane FROM (SELECT y.lane FROM pawl.ready y ORDER BY y.lane LIMIT 1) first
    UNION ALL
    SELECT (SELECT y.lane FROM pawl.ready y WHERE y.lane > f.lane ORDER BY y.lane LIMIT 1)
    FROM found f WHERE f.lane IS NOT NULL
)
SELECT lane FROM found WHERE lane IS NOT NULL ORDER BY lane;

-- --- finish ---

-- name: queue_outcome_add (id bigint, outcome text, worker text, token bigint,
-- claimed_at bigint, finished_at bigint, detail text, execution_id bigint,
-- result_path text, result_name text, result_type text, result_bytes bigint,
-- result_rows bigint, result_sha256 text)
INSERT INTO pawl.outcome (id, outcome, worker, token, claimed_at, finished_at, detail,
    execution_id, result_path, result_name, result_type, result_bytes, result_rows,
    result_sha256)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14);

-- name: queue_outcome_get (id bigint) -> (outcome text, token bigint)
SELECT outcome, token FROM pawl.outcome WHERE id = $1;

-- name: queue_held_by (worker text) -> (first_id bigint, last_id bigint, job text,
-- lane text, token bigint, nonce text, claimed_at bigint, now bigint)
SELECT first_id, last_id, job, lane, token, nonce, claimed_at, pawl_now() AS now
FROM pawl.claim WHERE worker = $1 ORDER BY first_id;

-- name: queue_lost_take (worker text) -> (first_id bigint, last_id bigint, job text,
-- lane text, token bigint, nonce text, claimed_at bigint, now bigint)
DELETE FROM pawl.claim WHERE worker = $1
RETURNING first_id, last_id, job, lane, token, nonce, claimed_at, pawl_now() AS now;

-- name: queue_orphans_take (worker text) -> (first_id bigint, last_id bigint, job text,
-- lane text, token bigint, nonce text, claimed_at bigint, now bigint)
-- Only of a worker without a row. One that was buried and comes back enters its row
-- before it claims, so whoever sees such a claim here sees the row too.
DELETE FROM pawl.claim
WHERE worker = $1 AND NOT EXISTS (SELECT 1 FROM pawl.worker w WHERE w.id = $1)
RETURNING first_id, last_id, job, lane, token, nonce, claimed_at, pawl_now() AS now;

-- name: queue_cancels_between (first_id bigint, last_id bigint) -> (request_id bigint)
SELECT request_id FROM pawl.flag WHERE request_id BETWEEN $1 AND $2 AND cancel = 1
ORDER BY request_id;

-- --- cancel, stop ---

-- name: queue_later_take (id bigint) -> (first_id bigint, last_id bigint, job text,
-- lane text, priority bigint, not_before bigint, expires_at bigint, reason text,
-- created_at bigint, now bigint)
DELETE FROM pawl.later
WHERE first_id = (SELECT l.first_id FROM pawl.later l WHERE l.first_id <= $1
                  ORDER BY l.first_id DESC LIMIT 1)
  AND last_id >= $1
RETURNING first_id, last_id, job, lane, priority, not_before, expires_at, reason,
    created_at, pawl_now() AS now;

-- name: queue_ready_take (id bigint) -> (first_id bigint, last_id bigint, job text,
-- lane text, priority bigint, seq bigint, ready_since bigint, expires_at bigint,
-- now bigint)
DELETE FROM pawl.ready
WHERE first_id = (SELECT y.first_id FROM pawl.ready y WHERE y.first_id <= $1
                  ORDER BY y.first_id DESC LIMIT 1)
  AND last_id >= $1
RETURNING first_id, last_id, job, lane, priority, seq, ready_since, expires_at,
    pawl_now() AS now;

-- name: queue_flag (id bigint, stop bigint, cancel bigint, asked_by text)
-- A flag only rises.
INSERT INTO pawl.flag AS f (request_id, stop, cancel, asked_by, asked_at)
VALUES ($1, $2, $3, $4, pawl_now())
ON CONFLICT (request_id) DO UPDATE
    SET stop = CASE WHEN f.stop = 1 THEN 1 ELSE excluded.stop END,
        cancel = CASE WHEN f.cancel = 1 THEN 1 ELSE excluded.cancel END;

-- name: queue_is_queued (id bigint) -> (queued bigint)
SELECT CASE WHEN (SELECT l.last_id FROM pawl.later l WHERE l.first_id <= $1
                  ORDER BY l.first_id DESC LIMIT 1) >= $1
              OR (SELECT y.last_id FROM pawl.ready y WHERE y.first_id <= $1
                  ORDER BY y.first_id DESC LIMIT 1) >= $1
            THEN CAST(1 AS bigint) ELSE CAST(0 AS bigint) END AS queued;

-- --- progress ---

-- name: queue_progress (id bigint, done bigint, total bigint, message text)
INSERT INTO pawl.progress (request_id, done, total, message, updated_at)
VALUES ($1, $2, $3, $4, pawl_now())
ON CONFLICT (request_id) DO UPDATE
    SET done = excluded.done, total = excluded.total, message = excluded.message,
        updated_at = excluded.updated_at;

-- name: queue_flags_get (id bigint) -> (stop bigint, cancel bigint)
SELECT stop, cancel FROM pawl.flag WHERE request_id = $1;

-- name: queue_flags_of_worker (worker text, most bigint) -> (request_id bigint,
-- stop bigint, cancel bigint)
SELECT f.request_id, f.stop, f.cancel
FROM pawl.claim c
JOIN pawl.flag f ON f.request_id BETWEEN c.first_id AND c.last_id
WHERE c.worker = $1 ORDER BY f.request_id LIMIT $2;

-- --- later ---

-- name: queue_active_release_range (first_id bigint, last_id bigint)
DELETE FROM pawl.active WHERE request_id BETWEEN $1 AND $2;

-- name: queue_expire_range (outcome text, finished_at bigint, detail text,
-- first_id bigint, last_id bigint)
INSERT INTO pawl.outcome (id, outcome, finished_at, detail)
SELECT r.id, CAST($1 AS text), CAST($2 AS bigint), CAST($3 AS text)
FROM pawl.request r WHERE r.id BETWEEN $4 AND $5;

-- name: queue_next_due () -> (due bigint, now bigint)
SELECT min(w.at) AS due, pawl_now() AS now
FROM (SELECT min(not_before) AS at FROM pawl.later
          WHERE not_before IS NOT NULL AND reason IN ('time', 'key')
      UNION ALL
      SELECT min(expires_at) FROM pawl.later WHERE expires_at IS NOT NULL
      UNION ALL
      SELECT min(expires_at) FROM pawl.ready WHERE expires_at IS NOT NULL) w;

-- --- reading: a page is first its ids, then their details ---

-- name: queue_page_all (before bigint, final bigint, most bigint) -> (id bigint)
-- final: 0 any, 1 DONE, 2 FAILED
SELECT r.id FROM pawl.request r LEFT JOIN pawl.outcome o ON o.id = r.id
WHERE r.id < $1
  AND ($2 = 0 OR ($2 = 1 AND o.outcome IN ('COMPLETED', 'STOPPED'))
       OR ($2 = 2 AND o.outcome NOT IN ('COMPLETED', 'STOPPED')))
ORDER BY r.id DESC LIMIT $3;

-- name: queue_page_job (job text, before bigint, requester text, final bigint,
-- most bigint) -> (id bigint)
SELECT r.id FROM pawl.request r LEFT JOIN pawl.outcome o ON o.id = r.id
WHERE r.job = $1 AND r.id < $2
  AND (CAST($3 AS text) IS NULL OR r.requester = $3)
  AND ($4 = 0 OR ($4 = 1 AND o.outcome IN ('COMPLETED', 'STOPPED'))
       OR ($4 = 2 AND o.outcome NOT IN ('COMPLETED', 'STOPPED')))
ORDER BY r.id DESC LIMIT $5;

-- name: queue_page_requester (requester text, before bigint, final bigint, most bigint)
-- -> (id bigint)
SELECT r.id FROM pawl.request r LEFT JOIN pawl.outcome o ON o.id = r.id
WHERE r.requester = $1 AND r.id < $2
  AND ($3 = 0 OR ($3 = 1 AND o.outcome IN ('COMPLETED', 'STOPPED'))
       OR ($3 = 2 AND o.outcome NOT IN ('COMPLETED', 'STOPPED')))
ORDER BY r.id DESC LIMIT $4;

-- name: queue_page_running (before bigint, job text, requester text, most bigint)
-- -> (id bigint)
SELECT r.id FROM pawl.claim c
JOIN pawl.request r ON r.id BETWEEN c.first_id AND c.last_id
WHERE r.id < $1 AND (CAST($2 AS text) IS NULL OR c.job = $2)
  AND (CAST($3 AS text) IS NULL OR r.requester = $3)
ORDER BY r.id DESC LIMIT $4;

-- name: queue_page_queued (before bigint, job text, requester text, most bigint)
-- -> (id bigint)
SELECT r.id
FROM (SELECT first_id, last_id, job FROM pawl.later
      UNION ALL SELECT first_id, last_id, job FROM pawl.ready) q
JOIN pawl.request r ON r.id BETWEEN q.first_id AND q.last_id
WHERE r.id < $1 AND (CAST($2 AS text) IS NULL OR q.job = $2)
  AND (CAST($3 AS text) IS NULL OR r.requester = $3)
ORDER BY r.id DESC LIMIT $4;

-- name: queue_count_lanes () -> (lane text, later bigint, ready bigint, running bigint,
-- oldest_ready bigint, paused_by text, paused_at bigint)
-- Lanes in which something is, and those that are paused.
SELECT w.lane, CAST(sum(w.later) AS bigint) AS later, CAST(sum(w.ready) AS bigint) AS ready,
    CAST(sum(w.running) AS bigint) AS running, min(w.since) AS oldest_ready,
    max(w.paused_by) AS paused_by, max(w.paused_at) AS paused_at
FROM (SELECT lane, last_id - first_id + 1 AS later, 0 AS ready, 0 AS running,
          CAST(NULL AS bigint) AS since, CAST(NULL AS text) AS paused_by,
          CAST(NULL AS bigint) AS paused_at
      FROM pawl.later
      UNION ALL
      SELECT lane, 0, last_id - first_id + 1, 0, ready_since, NULL, NULL FROM pawl.ready
      UNION ALL
      SELECT lane, 0, 0, last_id - first_id + 1, NULL, NULL, NULL FROM pawl.claim
      UNION ALL
      SELECT name, 0, 0, 0, NULL, paused_by, paused_at FROM pawl.paused
      WHERE kind = 'lane') w
GROUP BY w.lane ORDER BY w.lane;

-- --- definitions ---

-- name: queue_definition_put (name text, version bigint, hash text, definition text)
-- -> (version bigint)
-- A higher version wins; files without a version (0) replace each other.
INSERT INTO pawl.job_definition AS d (name, version, hash, definition, published_at)
VALUES ($1, $2, $3, $4, pawl_now())
ON CONFLICT (name) DO UPDATE
    SET version = excluded.version, hash = excluded.hash,
        definition = excluded.definition, published_at = excluded.published_at,
        withdrawn_at = NULL
    WHERE excluded.version > d.version
       OR (excluded.version = 0 AND d.version = 0
           AND (excluded.hash <> d.hash OR d.withdrawn_at IS NOT NULL))
RETURNING version;

-- name: queue_definition_hash (name text) -> (hash text)
SELECT hash FROM pawl.job_definition WHERE name = $1 AND withdrawn_at IS NULL;

-- name: queue_definition_stand () -> (name text, version bigint, hash text)
SELECT name, version, hash FROM pawl.job_definition WHERE withdrawn_at IS NULL;

-- name: queue_definitions () -> (name text, version bigint, hash text, definition text,
-- published_at bigint, withdrawn_at bigint)
SELECT name, version, hash, definition, published_at, withdrawn_at
FROM pawl.job_definition ORDER BY name;

-- name: queue_jobs () -> (job text, definition text, version bigint, withdrawn bigint,
-- queued bigint, running bigint, active_id bigint, last_request_id bigint,
-- instance_id bigint, execution_id bigint, state text, started_at bigint,
-- ended_at bigint, last_updated bigint, step_updated bigint, paused_by text,
-- paused_at bigint)
-- The last execution is the newest one of the newest instance, whatever its number.
-- Its instance stands between two bounds: told to equal one, PostgreSQL may look for it
-- through all executions by their key.
SELECT d.name AS job, d.definition, d.version,
    CASE WHEN d.withdrawn_at IS NULL THEN 0 ELSE 1 END AS withdrawn,
    q.queued, c.running, a.request_id AS active_id,
    (SELECT max(r.id) FROM pawl.request r WHERE r.job = d.name) AS last_request_id,
    e.instance_id, e.id AS execution_id, e.state, e.started_at, e.ended_at,
    e.last_updated,
    (SELECT max(s.last_updated) FROM pawl.step_execution s WHERE s.execution_id = e.id)
        AS step_updated,
    h.paused_by, h.paused_at
FROM pawl.job_definition d
LEFT JOIN pawl.paused h ON h.kind = 'job' AND h.name = d.name
LEFT JOIN (SELECT w.job, CAST(sum(w.n) AS bigint) AS queued
           FROM (SELECT job, last_id - first_id + 1 AS n FROM pawl.later
                 UNION ALL SELECT job, last_id - first_id + 1 FROM pawl.ready) w
           GROUP BY w.job) q ON q.job = d.name
LEFT JOIN (SELECT job, CAST(sum(last_id - first_id + 1) AS bigint) AS running
           FROM pawl.claim GROUP BY job) c ON c.job = d.name
LEFT JOIN pawl.active a ON a.key = 'job:' || d.name
LEFT JOIN pawl.execution e ON e.id =
    (SELECT x.id FROM pawl.execution x
     WHERE x.instance_id >= (SELECT i.id FROM pawl.instance i WHERE i.job = d.name
                             ORDER BY i.number DESC LIMIT 1)
         AND x.instance_id <= (SELECT i.id FROM pawl.instance i WHERE i.job = d.name
                               ORDER BY i.number DESC LIMIT 1)
     ORDER BY x.instance_id DESC, x.id DESC LIMIT 1)
ORDER BY d.name;

-- Where SQLite differs: one writer, so no locks; counters instead of sequences.

-- name: queue_draw_ids (count bigint) -> (id bigint, now bigint)
-- The last of them.
UPDATE pawl.counter SET value = value + $1 WHERE name = 'request_id'
RETURNING value AS id, pawl_now() AS now;

-- name: queue_seq_step ()
UPDATE pawl.counter SET value = value + 1 WHERE name = 'ready_seq';

-- name: queue_ready_add (first_id bigint, last_id bigint, job text, lane text,
-- priority bigint, expires_at bigint)
-- After queue_seq_step.
INSERT INTO pawl.ready (first_id, last_id, job, lane, priority, seq, ready_since,
    expires_at)
VALUES ($1, $2, $3, $4, $5, (SELECT value FROM pawl.counter WHERE name = 'ready_seq'),
    pawl_now(), $6);

-- name: queue_token_next () -> (token bigint, now bigint)
UPDATE pawl.counter SET value = value + 1 WHERE name = 'token'
RETURNING value AS token, pawl_now() AS now;

-- name: queue_tokens_draw (count bigint) -> (token bigint, now bigint)
-- The last of them.
UPDATE pawl.counter SET value = value + $1 WHERE name = 'token'
RETURNING value AS token, pawl_now() AS now;

-- name: queue_claim_pick (lane text, jobs text[], most bigint) -> (first_id bigint,
-- last_id bigint, job text, lane text, priority bigint, seq bigint, ready_since bigint,
-- expires_at bigint)
SELECT first_id, last_id, job, lane, priority, seq, ready_since, expires_at
FROM pawl.ready
WHERE lane = $1 AND job IN (SELECT value FROM json_each($2))
  AND job NOT IN (SELECT p.name FROM pawl.paused p WHERE p.kind = 'job')
  AND NOT EXISTS (SELECT 1 FROM pawl.paused h WHERE h.kind = 'lane' AND h.name = $1)
  AND (expires_at IS NULL OR expires_at > pawl_now())
ORDER BY priority DESC, seq LIMIT $3;

-- name: queue_take_over (to_lane text, from_lane text, jobs text[], older_than bigint,
-- most bigint)
UPDATE pawl.ready SET lane = $1 WHERE first_id IN (
    SELECT first_id FROM pawl.ready
    WHERE lane = $2 AND job IN (SELECT value FROM json_each($3))
      AND job NOT IN (SELECT p.name FROM pawl.paused p WHERE p.kind = 'job')
      AND NOT EXISTS (SELECT 1 FROM pawl.paused h
                      WHERE h.kind = 'lane' AND h.name IN ($1, $2))
      AND ready_since < pawl_now() - $4
      AND (expires_at IS NULL OR expires_at > pawl_now())
    ORDER BY priority DESC, seq LIMIT $5);

-- name: queue_ready_delete (first_id bigint)
DELETE FROM pawl.ready WHERE first_id = $1;

-- name: queue_reuse_release (worker text, nonce text)
-- A reuse key ends with the claim: those of the claims with this nonce.
DELETE FROM pawl.active WHERE key IN (
    SELECT a.key FROM pawl.claim c
    JOIN pawl.active a ON a.request_id BETWEEN c.first_id AND c.last_id
    WHERE c.worker = $1 AND c.nonce = $2 AND a.key LIKE 'req:%');

-- name: queue_hold (id bigint, token bigint, nonce text) -> (first_id bigint)
SELECT first_id FROM pawl.claim
WHERE first_id = (SELECT c.first_id FROM pawl.claim c WHERE c.first_id <= $1
                  ORDER BY c.first_id DESC LIMIT 1)
  AND last_id >= $1 AND token = $2 AND nonce = $3;

-- name: queue_hold_alone (id bigint, token bigint, nonce text) -> (first_id bigint)
SELECT first_id FROM pawl.claim
WHERE first_id = (SELECT c.first_id FROM pawl.claim c WHERE c.first_id <= $1
                  ORDER BY c.first_id DESC LIMIT 1)
  AND last_id >= $1 AND token = $2 AND nonce = $3;

-- name: queue_running_hold (id bigint) -> (first_id bigint)
SELECT first_id FROM pawl.claim
WHERE first_id = (SELECT c.first_id FROM pawl.claim c WHERE c.first_id <= $1
                  ORDER BY c.first_id DESC LIMIT 1)
  AND last_id >= $1;

-- name: queue_finish_take_one (id bigint, token bigint, nonce text) -> (first_id bigint,
-- last_id bigint, job text, lane text, worker text, token bigint, nonce text,
-- claimed_at bigint, now bigint)
DELETE FROM pawl.claim
WHERE first_id = (SELECT c.first_id FROM pawl.claim c WHERE c.first_id <= $1
                  ORDER BY c.first_id DESC LIMIT 1)
  AND last_id >= $1 AND token = $2 AND nonce = $3
RETURNING first_id, last_id, job, lane, worker, token, nonce, claimed_at,
    pawl_now() AS now;

-- name: queue_release_flags (ids bigint[])
DELETE FROM pawl.flag WHERE request_id IN (SELECT value FROM json_each($1));

-- name: queue_release_progress (ids bigint[])
DELETE FROM pawl.progress WHERE request_id IN (SELECT value FROM json_each($1));

-- name: queue_release_active (ids bigint[])
DELETE FROM pawl.active WHERE request_id IN (SELECT value FROM json_each($1));

-- name: queue_due (most bigint) -> (first_id bigint, last_id bigint, job text, lane text,
-- priority bigint, expires_at bigint)
SELECT first_id, last_id, job, lane, priority, expires_at FROM pawl.later
WHERE not_before <= pawl_now() AND reason = 'time'
  AND (expires_at IS NULL OR expires_at > pawl_now())
ORDER BY not_before, first_id LIMIT $1;

-- name: queue_later_delete (first_id bigint)
DELETE FROM pawl.later WHERE first_id = $1;

-- name: queue_expired_later (most bigint) -> (first_id bigint, last_id bigint, now bigint)
DELETE FROM pawl.later WHERE first_id IN (
    SELECT first_id FROM pawl.later WHERE expires_at <= pawl_now()
    ORDER BY expires_at LIMIT $1)
RETURNING first_id, last_id, pawl_now() AS now;

-- name: queue_expired_ready (most bigint) -> (first_id bigint, last_id bigint, now bigint)
DELETE FROM pawl.ready WHERE first_id IN (
    SELECT first_id FROM pawl.ready WHERE expires_at <= pawl_now()
    ORDER BY expires_at LIMIT $1)
RETURNING first_id, last_id, pawl_now() AS now;

-- name: queue_details (ids bigint[]) -> (id bigint, job text, given text,
-- requester text, source text, lane text, priority bigint, estimate bigint,
-- not_before bigint, expires_at bigint, retry_of bigint, first_try bigint,
-- attempt bigint, restart_of bigint, restart bigint, max_calls bigint, next text,
-- created_at bigint, outcome text, claim_first bigint, ready_since bigint,
-- later_reason text, worker text, token bigint, claimed_at bigint,
-- finished_at bigint, detail text, execution_id bigint, cancel bigint, stop bigint,
-- progress_at bigint, done bigint, total bigint, message text, result_path text,
-- result_name text, result_type text, result_bytes bigint, result_rows bigint,
-- result_sha256 text, result_gone_at bigint)
SELECT r.id, r.job, r.given, r.requester, r.source, r.lane, r.priority, r.estimate,
    r.not_before, r.expires_at, r.retry_of, r.first_try, r.attempt, r.restart_of,
    r.restart, r.max_calls, r.next, r.created_at,
    o.outcome, c.first_id AS claim_first, y.ready_since, l.reason AS later_reason,
    coalesce(o.worker, c.worker) AS worker, coalesce(o.token, c.token) AS token,
    coalesce(o.claimed_at, c.claimed_at) AS claimed_at, o.finished_at, o.detail,
    coalesce(o.execution_id, (SELECT max(e.id) FROM pawl.execution e
                              WHERE e.request_id = r.id)) AS execution_id,
    f.cancel, f.stop, p.updated_at AS progress_at, p.done, p.total, p.message,
    o.result_path, o.result_name, o.result_type, o.result_bytes, o.result_rows,
    o.result_sha256, o.result_gone_at
FROM pawl.request r
LEFT JOIN pawl.outcome o ON o.id = r.id
LEFT JOIN pawl.claim c ON c.last_id >= r.id AND c.first_id =
    (SELECT s.first_id FROM pawl.claim s WHERE s.first_id <= r.id
     ORDER BY s.first_id DESC LIMIT 1)
LEFT JOIN pawl.ready y ON y.last_id >= r.id AND y.first_id =
    (SELECT s.first_id FROM pawl.ready s WHERE s.first_id <= r.id
     ORDER BY s.first_id DESC LIMIT 1)
LEFT JOIN pawl.later l ON l.last_id >= r.id AND l.first_id =
    (SELECT s.first_id FROM pawl.later s WHERE s.first_id <= r.id
     ORDER BY s.first_id DESC LIMIT 1)
LEFT JOIN pawl.progress p ON p.request_id = r.id
LEFT JOIN pawl.flag f ON f.request_id = r.id
WHERE r.id IN (SELECT value FROM json_each($1))
ORDER BY r.id DESC;

-- name: queue_definition_withdraw (version bigint, names text[], same bigint)
UPDATE pawl.job_definition SET withdrawn_at = pawl_now(), version = $1
WHERE withdrawn_at IS NULL AND name NOT IN (SELECT value FROM json_each($2))
  AND (version < $1 OR (version = $1 AND $3 = 1));

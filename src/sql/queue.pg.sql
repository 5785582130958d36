-- Where PostgreSQL differs: locks, arrays, whole moves as one statement.

-- name: queue_draw_ids (count bigint) -> (id bigint, now bigint)
SELECT nextval('pawl.request_id') AS id, pawl_now() AS now
FROM generate_series(1, $1);

-- name: queue_lock_timeout (timeout text)
-- For this transaction only; milliseconds.
SELECT set_config('lock_timeout', $1, true);

-- name: queue_lock_keys (keys text[])
-- In the order given, so that two bulks cannot wait for each other.
SELECT pg_advisory_xact_lock(hashtextextended(k, 0)) FROM unnest(CAST($1 AS text[])) k;

-- name: queue_request_enter (id bigint, job text, given text, requester text,
-- source text, lane text, priority bigint, estimate bigint, not_before bigint,
-- expires_at bigint, retry_of bigint, first_try bigint, attempt bigint,
-- restart_of bigint, restart bigint, max_calls bigint, next text, created_at bigint)
-- queue_request_add and queue_ready_add_many for one request, in one round trip.
WITH added AS (
    INSERT INTO pawl.request (id, job, given, requester, source, lane, priority, estimate,
        not_before, expires_at, retry_of, first_try, attempt, restart_of, restart,
        max_calls, next, created_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17,
        $18)
)
INSERT INTO pawl.ready (first_id, last_id, job, lane, priority, seq, ready_since,
    expires_at)
VALUES ($1, $1, $2, $6, $7, nextval('pawl.ready_seq'), pawl_now(), $10);

-- name: queue_ready_add_many (firsts bigint[], lasts bigint[], jobs text[], lanes text[],
-- priorities bigint[], expires bigint[])
INSERT INTO pawl.ready (first_id, last_id, job, lane, priority, seq, ready_since,
    expires_at)
SELECT s.first_id, s.last_id, s.job, s.lane, s.priority, nextval('pawl.ready_seq'),
    pawl_now(), nullif(s.expires_at, 0)
FROM (SELECT * FROM unnest(CAST($1 AS bigint[]), CAST($2 AS bigint[]), CAST($3 AS text[]),
          CAST($4 AS text[]), CAST($5 AS bigint[]), CAST($6 AS bigint[]))
      WITH ORDINALITY AS u (first_id, last_id, job, lane, priority, expires_at, at)
      ORDER BY u.at) s;

-- name: queue_token_next () -> (token bigint, now bigint)
SELECT nextval('pawl.token') AS token, pawl_now() AS now;

-- name: queue_claim (lane text, priority bigint, seq bigint, jobs text[], most bigint,
-- worker text, nonce text) -> (first_id bigint, last_id bigint, job text,
-- priority bigint, seq bigint, token bigint, claimed_at bigint)
-- Behind the cursor (priority, seq): first the rest of its priority, then the lower
-- ones, each straight from the index. The rows are locked once (a materialized CTE and
-- ARRAY() are not run again by any join), counted up, and the last one is cut so that
-- no more than $5 requests are taken. What is paused is looked up once per statement.
WITH picked AS MATERIALIZED (
    SELECT * FROM (
        SELECT * FROM (
            SELECT first_id, last_id, job, lane, priority, seq, ready_since, expires_at
            FROM pawl.ready
            WHERE lane = $1 AND priority = $2 AND seq > $3
              AND job = ANY (CAST($4 AS text[]))
              AND job <> ALL (ARRAY(SELECT p.name FROM pawl.paused p WHERE p.kind = 'job'))
              AND NOT EXISTS (SELECT 1 FROM pawl.paused h WHERE h.kind = 'lane' AND h.name = $1)
              AND (expires_at IS NULL OR expires_at > pawl_now())
            ORDER BY seq LIMIT $5 FOR UPDATE SKIP LOCKED) same
        UNION ALL
        SELECT * FROM (
            SELECT first_id, last_id, job, lane, priority, seq, ready_since, expires_at
            FROM pawl.ready
            WHERE lane = $1 AND priority < $2
              AND job = ANY (CAST($4 AS text[]))
              AND job <> ALL (ARRAY(SELECT p.name FROM pawl.paused p WHERE p.kind = 'job'))
              AND NOT EXISTS (SELECT 1 FROM pawl.paused h WHERE h.kind = 'lane' AND h.name = $1)
              AND (expires_at IS NULL OR expires_at > pawl_now())
            ORDER BY priority DESC, seq LIMIT $5 FOR UPDATE SKIP LOCKED) lower
    ) both_parts LIMIT $5
), counted AS (
    SELECT *, CAST(sum(last_id - first_id + 1) OVER (ORDER BY priority DESC, seq, first_id
        ROWS UNBOUNDED PRECEDING) AS bigint) AS upto
    FROM picked
), taken AS MATERIALIZED (
    SELECT *, least(last_id, last_id - (upto - $5)) AS taken_last
    FROM counted WHERE upto - (last_id - first_id + 1) < $5
), gone AS (
    DELETE FROM pawl.ready WHERE first_id = ANY (ARRAY(SELECT first_id FROM taken))
    RETURNING first_id
), rest AS (
    INSERT INTO pawl.ready (first_id, last_id, job, lane, priority, seq, ready_since,
        expires_at)
    SELECT t.taken_last + 1, t.last_id, t.job, t.lane, t.priority, t.seq, t.ready_since,
        t.expires_at
    FROM taken t JOIN gone g ON g.first_id = t.first_id WHERE t.taken_last < t.last_id
), freed AS (
    DELETE FROM pawl.active a USING taken t
    WHERE a.request_id BETWEEN t.first_id AND t.taken_last AND a.key LIKE 'req:%'
), mine AS (
    INSERT INTO pawl.claim (first_id, last_id, job, lane, worker, token, nonce,
        claimed_at)
    SELECT t.first_id, t.taken_last, t.job, t.lane, $6, nextval('pawl.token'), $7,
        pawl_now()
    FROM taken t JOIN gone g ON g.first_id = t.first_id
    RETURNING first_id, last_id, job, token, claimed_at
)
SELECT m.first_id, m.last_id, m.job, CAST(t.priority AS bigint) AS priority, t.seq,
    m.token, m.claimed_at
FROM mine m JOIN taken t ON t.first_id = m.first_id
ORDER BY t.priority DESC, t.seq, t.first_id;

-- name: queue_take_over (to_lane text, from_lane text, jobs text[], older_than bigint,
-- most bigint)
UPDATE pawl.ready SET lane = $1 WHERE first_id = ANY (ARRAY(
    SELECT first_id FROM pawl.ready
    WHERE lane = $2 AND job = ANY (CAST($3 AS text[]))
      AND job <> ALL (ARRAY(SELECT p.name FROM pawl.paused p WHERE p.kind = 'job'))
      AND NOT EXISTS (SELECT 1 FROM pawl.paused h
                      WHERE h.kind = 'lane' AND h.name IN ($1, $2))
      AND ready_since < pawl_now() - CAST($4 AS bigint)
      AND (expires_at IS NULL OR expires_at > pawl_now())
    ORDER BY priority DESC, seq LIMIT $5 FOR UPDATE SKIP LOCKED));

-- name: queue_ready_left (lane text, jobs text[]) -> (there bigint)
SELECT CAST(count(*) AS bigint) AS there FROM (
    SELECT 1 FROM pawl.ready
    WHERE lane = $1 AND job = ANY (CAST($2 AS text[]))
      AND job <> ALL (ARRAY(SELECT p.name FROM pawl.paused p WHERE p.kind = 'job'))
      AND NOT EXISTS (SELECT 1 FROM pawl.paused h WHERE h.kind = 'lane' AND h.name = $1)
      AND (expires_at IS NULL OR expires_at > pawl_now()) LIMIT 1) r;

-- name: queue_hold (id bigint, token bigint, nonce text) -> (first_id bigint)
-- As queue_holds, and nobody can close it before this transaction ends.
SELECT first_id FROM pawl.claim
WHERE first_id = (SELECT c.first_id FROM pawl.claim c WHERE c.first_id <= $1
                  ORDER BY c.first_id DESC LIMIT 1)
  AND last_id >= $1 AND token = $2 AND nonce = $3
FOR KEY SHARE;

-- name: queue_hold_alone (id bigint, token bigint, nonce text) -> (first_id bigint)
SELECT first_id FROM pawl.claim
WHERE first_id = (SELECT c.first_id FROM pawl.claim c WHERE c.first_id <= $1
                  ORDER BY c.first_id DESC LIMIT 1)
  AND last_id >= $1 AND token = $2 AND nonce = $3
FOR UPDATE;

-- name: queue_running_hold (id bigint) -> (first_id bigint)
-- By a function: locking a row takes the right to change it, which an api has not.
SELECT hold_running AS first_id FROM pawl.hold_running($1);

-- name: queue_finish_take (ids bigint[], tokens bigint[], nonces text[])
-- -> (first_id bigint, last_id bigint, job text, lane text, worker text, token bigint,
-- nonce text, claimed_at bigint, now bigint)
WITH hit AS MATERIALIZED (
    SELECT DISTINCT c.first_id
    FROM unnest(CAST($1 AS bigint[]), CAST($2 AS bigint[]), CAST($3 AS text[]))
        AS w (id, token, nonce)
    CROSS JOIN LATERAL (
        SELECT s.first_id, s.last_id, s.token, s.nonce FROM pawl.claim s
        WHERE s.first_id <= w.id ORDER BY s.first_id DESC LIMIT 1) c
    WHERE c.last_id >= w.id AND c.token = w.token AND c.nonce = w.nonce
)
DELETE FROM pawl.claim WHERE first_id = ANY (ARRAY(SELECT first_id FROM hit))
RETURNING first_id, last_id, job, lane, worker, token, nonce, claimed_at,
    pawl_now() AS now;

-- name: queue_close_one (id bigint, outcome text, worker text, token bigint,
-- claimed_at bigint, finished_at bigint, detail text, execution_id bigint,
-- result_path text, result_name text, result_type text, result_bytes bigint,
-- result_rows bigint, result_sha256 text, done text, failed text) -> (kind bigint,
-- id bigint, other bigint, text text, name text)
-- queue_outcome_add, chain_look and queue_release for one request, in one round trip:
-- the look sees what the others take away. done or failed is the request's job.
WITH added AS (
    INSERT INTO pawl.outcome (id, outcome, worker, token, claimed_at, finished_at, detail,
        execution_id, result_path, result_name, result_type, result_bytes, result_rows,
        result_sha256)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
), p AS (DELETE FROM pawl.progress WHERE request_id = $1),
   a AS (DELETE FROM pawl.active WHERE request_id = $1),
   w AS (DELETE FROM pawl.wait WHERE request_id = $1),
   f AS (DELETE FROM pawl.flag WHERE request_id = $1 RETURNING request_id, stop, cancel)
SELECT CAST(1 AS bigint) AS kind, r.id,
    CASE WHEN r.source = 'backfill' THEN CAST(1 AS bigint) ELSE CAST(0 AS bigint) END AS other,
    r.next AS text, CAST(NULL AS text) AS name
FROM pawl.request r WHERE r.id = $1 AND (r.next IS NOT NULL OR r.source = 'backfill')
UNION ALL
SELECT 2, b.after_id, b.request_id, NULL, NULL FROM pawl.wait b WHERE b.after_id = $1
UNION ALL
SELECT 3, f.request_id, f.stop + 2 * f.cancel, NULL, NULL FROM f
UNION ALL
SELECT 4, 0, CASE WHEN d.withdrawn_at IS NULL THEN 0 ELSE 1 END
        + CASE WHEN CAST(d.definition AS jsonb) ? 'webhook' THEN 2 ELSE 0 END,
    d.definition, d.name
FROM pawl.job_definition d
WHERE d.name = CAST($15 AS text) AND jsonb_path_exists(
    CAST(d.definition AS jsonb), '$ ? (exists (@.next[0]) || exists (@.webhook))')
UNION ALL
SELECT 4, 0, CASE WHEN e.withdrawn_at IS NULL THEN 0 ELSE 1 END
        + CASE WHEN CAST(e.definition AS jsonb) ? 'webhook' THEN 2 ELSE 0 END,
    e.definition, e.name
FROM pawl.job_definition e
WHERE e.name = CAST($16 AS text);

-- name: queue_release (ids bigint[])
-- A final request leaves nothing behind in the hot tables.
WITH f AS (DELETE FROM pawl.flag WHERE request_id = ANY (CAST($1 AS bigint[]))),
     p AS (DELETE FROM pawl.progress WHERE request_id = ANY (CAST($1 AS bigint[]))),
     w AS (DELETE FROM pawl.wait WHERE request_id = ANY (CAST($1 AS bigint[])))
DELETE FROM pawl.active WHERE request_id = ANY (CAST($1 AS bigint[]));

-- name: queue_promote (most bigint) -> (moved bigint)
WITH due AS (
    DELETE FROM pawl.later WHERE first_id = ANY (ARRAY(
        SELECT first_id FROM pawl.later
        WHERE not_before <= pawl_now() AND reason = 'time'
          AND (expires_at IS NULL OR expires_at > pawl_now())
        ORDER BY not_before LIMIT $1 FOR UPDATE SKIP LOCKED))
    RETURNING first_id, last_id, job, lane, priority, not_before, expires_at
), moved AS (
    INSERT INTO pawl.ready (first_id, last_id, job, lane, priority, seq, ready_since,
        expires_at)
    SELECT d.first_id, d.last_id, d.job, d.lane, d.priority, nextval('pawl.ready_seq'),
        pawl_now(), d.expires_at
    FROM (SELECT * FROM due ORDER BY not_before, first_id) d
    RETURNING first_id, last_id
)
SELECT CAST(coalesce(sum(last_id - first_id + 1), 0) AS bigint) AS moved FROM moved;

-- name: queue_expired_later (most bigint) -> (first_id bigint, last_id bigint, now bigint)
DELETE FROM pawl.later WHERE first_id = ANY (ARRAY(
    SELECT first_id FROM pawl.later WHERE expires_at <= pawl_now()
    ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED))
RETURNING first_id, last_id, pawl_now() AS now;

-- name: queue_expired_ready (most bigint) -> (first_id bigint, last_id bigint, now bigint)
DELETE FROM pawl.ready WHERE first_id = ANY (ARRAY(
    SELECT first_id FROM pawl.ready WHERE expires_at <= pawl_now()
    ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED))
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
LEFT JOIN LATERAL (
    SELECT * FROM (SELECT first_id, last_id, worker, token, claimed_at
                   FROM pawl.claim WHERE first_id <= r.id
                   ORDER BY first_id DESC LIMIT 1) s WHERE s.last_id >= r.id) c ON true
LEFT JOIN LATERAL (
    SELECT * FROM (SELECT * FROM pawl.ready WHERE first_id <= r.id
                   ORDER BY first_id DESC LIMIT 1) s WHERE s.last_id >= r.id) y ON true
LEFT JOIN LATERAL (
    SELECT * FROM (SELECT * FROM pawl.later WHERE first_id <= r.id
                   ORDER BY first_id DESC LIMIT 1) s WHERE s.last_id >= r.id) l ON true
LEFT JOIN pawl.progress p ON p.request_id = r.id
LEFT JOIN pawl.flag f ON f.request_id = r.id
WHERE r.id = ANY (CAST($1 AS bigint[]))
ORDER BY r.id DESC;

-- name: queue_definition_withdraw (version bigint, names text[], same bigint)
UPDATE pawl.job_definition SET withdrawn_at = pawl_now(), version = $1
WHERE withdrawn_at IS NULL AND name <> ALL (CAST($2 AS text[]))
  AND (version < $1 OR (version = $1 AND $3 = 1));

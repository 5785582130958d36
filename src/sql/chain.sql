-- What follows a request: its next try, the next of its chain, those that wait for it.

-- name: chain_definition (name text) -> (definition text)
SELECT definition FROM pawl.job_definition WHERE name = $1 AND withdrawn_at IS NULL;

-- name: chain_key_holder (key text) -> (request_id bigint)
SELECT request_id FROM pawl.active WHERE key = $1;

-- name: chain_live_try (id bigint) -> (id bigint)
-- The last try of the tries that this request belongs to; no row: there is no such
-- request.
SELECT t.id
FROM (SELECT r.id FROM pawl.request r WHERE r.id = $1
      UNION ALL
      SELECT n.id FROM pawl.request n
      WHERE n.first_try = (SELECT coalesce(f.first_try, f.id) FROM pawl.request f
                           WHERE f.id = $1)) t
ORDER BY t.id DESC LIMIT 1;

-- name: chain_attempts (id bigint) -> (id bigint, attempt bigint, source text,
-- created_at bigint, claim_last bigint, outcome text, started_at bigint,
-- finished_at bigint, detail text)
-- All tries that this request belongs to, the first one first.
SELECT r.id, CAST(r.attempt AS bigint) AS attempt, r.source, r.created_at,
    (SELECT c.last_id FROM pawl.claim c WHERE c.first_id <= r.id
     ORDER BY c.first_id DESC LIMIT 1) AS claim_last,
    o.outcome, o.claimed_at AS started_at, o.finished_at, o.detail
FROM (SELECT coalesce(f.first_try, f.id) AS id FROM pawl.request f WHERE f.id = $1) one
JOIN pawl.request r ON r.id = one.id OR r.first_try = one.id
LEFT JOIN pawl.outcome o ON o.id = r.id
ORDER BY r.id;

-- --- waiting for others ---

-- name: chain_wait_add (request_id bigint, after_id bigint)
INSERT INTO pawl.wait (request_id, after_id) VALUES ($1, $2)
ON CONFLICT (request_id, after_id) DO NOTHING;

-- name: chain_wait_move (to_id bigint, from_id bigint)
UPDATE pawl.wait SET after_id = $1 WHERE after_id = $2;

-- name: chain_waiters_between (first_id bigint, last_id bigint) -> (request_id bigint,
-- after_id bigint)
SELECT request_id, after_id FROM pawl.wait WHERE after_id BETWEEN $1 AND $2
ORDER BY after_id, request_id;

-- name: chain_wait_drop_between (first_id bigint, last_id bigint)
DELETE FROM pawl.wait WHERE request_id BETWEEN $1 AND $2;

-- name: chain_later_delete (first_id bigint)
DELETE FROM pawl.later WHERE first_id = $1;

-- name: chain_later_set (reason text, not_before bigint, first_id bigint)
UPDATE pawl.later SET reason = $1, not_before = $2 WHERE first_id = $3;

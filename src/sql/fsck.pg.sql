-- Where PostgreSQL differs: sequences, and who owns.

-- name: fsck_number (most bigint) -> (id bigint, detail text)
-- Each is read after the rows, so that a sequence can only be ahead.
SELECT used AS id, what || ' ' || used || ', the sequence is at ' || reached AS detail
FROM (SELECT 'request' AS what, (SELECT max(id) FROM pawl.request) AS used,
          (SELECT last_value FROM pawl.request_id) AS reached
      UNION ALL
      SELECT 'place in line', (SELECT max(seq) FROM pawl.ready),
          (SELECT last_value FROM pawl.ready_seq)
      UNION ALL
      SELECT 'token', greatest((SELECT max(token) FROM pawl.claim),
              (SELECT max(token) FROM pawl.execution), (SELECT max(token) FROM pawl.outcome)),
          (SELECT last_value FROM pawl.token)) n
WHERE used > reached
ORDER BY what LIMIT $1;

-- name: fsck_owns () -> (owns bigint)
SELECT CAST(pg_has_role(nspowner, 'USAGE') AS integer) AS owns
FROM pg_namespace WHERE nspname = 'pawl';

-- name: fsck_slots (most bigint) -> (id bigint, detail text)
-- A worker without lanes is a `pawl run`, which takes what it was given.
SELECT min(c.first_id) AS id, 'worker ' || c.worker || ' holds '
    || CAST(sum(c.last_id - c.first_id + 1) AS bigint) || ' in lane ' || c.lane AS detail
FROM pawl.claim c JOIN pawl.worker w ON w.id = c.worker
WHERE w.lanes <> '{}'
GROUP BY c.worker, c.lane, w.lanes
HAVING sum(c.last_id - c.first_id + 1) > coalesce(CAST(CAST(w.lanes AS json) ->> c.lane AS bigint), 0)
ORDER BY 1 LIMIT $1;

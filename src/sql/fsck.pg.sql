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

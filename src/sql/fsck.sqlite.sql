-- Where SQLite differs: counters, and the check of the file itself.

-- name: fsck_number (most bigint) -> (id bigint, detail text)
SELECT used AS id, what || ' ' || used || ', the counter is at ' || reached AS detail
FROM (SELECT 'request' AS what, (SELECT max(id) FROM pawl.request) AS used,
          (SELECT value FROM pawl.counter WHERE name = 'request_id') AS reached
      UNION ALL
      SELECT 'place in line', (SELECT max(seq) FROM pawl.ready),
          (SELECT value FROM pawl.counter WHERE name = 'ready_seq')
      UNION ALL
      SELECT 'token', max(coalesce((SELECT max(token) FROM pawl.claim), 0),
              coalesce((SELECT max(token) FROM pawl.execution), 0),
              coalesce((SELECT max(token) FROM pawl.outcome), 0)),
          (SELECT value FROM pawl.counter WHERE name = 'token')) n
WHERE used > reached
ORDER BY what LIMIT $1;

-- name: fsck_pages (most bigint) -> (id bigint, detail text)
-- The database's own word on its pages and indexes.
SELECT 0 AS id, integrity_check AS detail FROM pragma_integrity_check
WHERE integrity_check <> 'ok' LIMIT $1;

-- name: fsck_slots (most bigint) -> (id bigint, detail text)
-- A worker without lanes is a `pawl run`, which takes what it was given.
SELECT min(c.first_id) AS id, 'worker ' || c.worker || ' holds '
    || CAST(sum(c.last_id - c.first_id + 1) AS bigint) || ' in lane ' || c.lane AS detail
FROM pawl.claim c JOIN pawl.worker w ON w.id = c.worker
WHERE w.lanes <> '{}'
GROUP BY c.worker, c.lane, w.lanes
HAVING sum(c.last_id - c.first_id + 1) > coalesce(CAST((SELECT e.value FROM json_each(w.lanes) e WHERE e.key = c.lane) AS bigint), 0)
ORDER BY 1 LIMIT $1;

-- Where SQLite differs: lists are JSON, and one writer needs no locks.

-- name: delivery_add (ids bigint[])
-- Those of these final requests whose job wants it to be told. The definition counts as it
-- is now, one that was withdrawn too.
INSERT INTO pawl.delivery (request_id, webhook, created_at, due_at)
SELECT r.id, json_extract(d.definition, '$.webhook.to'), pawl_now(), pawl_now()
FROM pawl.request r
JOIN pawl.outcome o ON o.id = r.id
JOIN pawl.job_definition d ON d.name = r.job
WHERE r.id IN (SELECT value FROM json_each($1)) AND r.source <> 'partition'
  AND EXISTS (SELECT 1 FROM json_each(d.definition, '$.webhook.on') w
              WHERE w.value = o.outcome)
ON CONFLICT (request_id, webhook) DO NOTHING;

-- name: delivery_add_between (first_id bigint, last_id bigint)
-- The requests of a range are of one job: its definition is read once, and most have no
-- webhook. CROSS JOIN: in this order.
WITH told AS MATERIALIZED (
    SELECT d.name, json_extract(d.definition, '$.webhook.to') AS webhook,
        json_extract(d.definition, '$.webhook.on') AS outcomes
    FROM pawl.job_definition d
    WHERE d.name = (SELECT f.job FROM pawl.request f WHERE f.id = $1)
      AND json_type(d.definition, '$.webhook') IS NOT NULL)
INSERT INTO pawl.delivery (request_id, webhook, created_at, due_at)
SELECT r.id, t.webhook, pawl_now(), pawl_now()
FROM told t
CROSS JOIN pawl.request r ON r.job = t.name
CROSS JOIN pawl.outcome o ON o.id = r.id
WHERE r.id BETWEEN $1 AND $2 AND r.source <> 'partition'
  AND EXISTS (SELECT 1 FROM json_each(t.outcomes) w WHERE w.value = o.outcome)
ON CONFLICT (request_id, webhook) DO NOTHING;

-- name: delivery_due (webhooks text[]) -> (webhook text, due_at bigint, now bigint)
-- The next one of each; of one that has none there is no row. What is due more than two
-- days ahead is due now: no wait is that long, so the clock was wrong.
SELECT CAST(x.webhook AS text) AS webhook,
    CASE WHEN x.last > pawl_now() + 172800000000 THEN min(x.first, pawl_now())
        ELSE x.first END AS due_at,
    pawl_now() AS now
FROM (SELECT n.value AS webhook,
          (SELECT min(e.due_at) FROM pawl.delivery e WHERE e.webhook = n.value) AS first,
          (SELECT max(e.due_at) FROM pawl.delivery e WHERE e.webhook = n.value) AS last
      FROM json_each($1) n) x
WHERE x.first IS NOT NULL;

-- name: delivery_take (lease bigint, webhook text, since bigint, tried bigint) ->
-- (request_id bigint, attempts bigint, created_at bigint, now bigint)
-- Nobody else tries it for the time of the lease. since: only what was written since then;
-- it was not due before. tried 0: only what was never tried.
UPDATE pawl.delivery SET due_at = pawl_now() + $1,
    attempts = min(max(attempts, 0), 1000000) + 1
WHERE webhook = $2 AND request_id = coalesce(
    (SELECT e.request_id FROM pawl.delivery e
     WHERE e.webhook = $2 AND e.due_at BETWEEN $3 AND pawl_now() AND e.created_at >= $3
       AND (e.attempts = 0 OR $4 <> 0)
     ORDER BY e.due_at LIMIT 1),
    (SELECT e.request_id FROM pawl.delivery e
     WHERE e.webhook = $2 AND e.due_at > pawl_now() + 172800000000 AND $4 <> 0
     ORDER BY e.due_at LIMIT 1))
RETURNING request_id, attempts, created_at, pawl_now() AS now;

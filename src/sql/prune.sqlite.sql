-- Lists of SQLite.

-- name: prune_results_gone (ids bigint[]) -> (n bigint)
-- Their files are removed.
UPDATE pawl.outcome SET result_gone_at = pawl_now()
WHERE id IN (SELECT value FROM json_each($1)) AND result_path IS NOT NULL
    AND result_gone_at IS NULL
RETURNING id AS n;

-- name: prune_keys (age bigint, most bigint) -> (n bigint)
-- The sum of n is how many.
DELETE FROM pawl.idempotency WHERE (subject, job, key) IN (
    SELECT i.subject, i.job, i.key FROM pawl.idempotency i
    WHERE i.created_at < pawl_now() - $1 ORDER BY i.created_at LIMIT $2)
RETURNING length(key) > 0 AS n;

-- Everything that hangs on requests, in this order; ids are theirs.

-- name: prune_deliveries_note (ids bigint[])
-- What still waits to be told is given up with its request.
INSERT INTO pawl.audit (at, actor, act, subject, detail)
SELECT pawl_now(), 'pawl', 'webhook-given-up', 'request ' || e.request_id,
    'webhook ' || e.webhook || ', ' || e.attempts
        || ' tries: the request was removed (retention.history)'
FROM pawl.delivery e WHERE e.request_id IN (SELECT value FROM json_each($1));

-- name: prune_deliveries (ids bigint[])
DELETE FROM pawl.delivery WHERE request_id IN (SELECT value FROM json_each($1));

-- name: prune_skips (ids bigint[])
DELETE FROM pawl.step_skip WHERE request_id IN (SELECT value FROM json_each($1));

-- name: prune_calls (ids bigint[])
DELETE FROM pawl.request_calls WHERE request_id IN (SELECT value FROM json_each($1));

-- name: prune_hands (ids bigint[])
DELETE FROM pawl.hand WHERE request_id IN (SELECT value FROM json_each($1));

-- name: prune_steps (ids bigint[])
DELETE FROM pawl.step_execution WHERE execution_id IN (SELECT e.id FROM pawl.execution e
    WHERE e.request_id IN (SELECT value FROM json_each($1)));

-- name: prune_partitions (ids bigint[])
-- Of instances that nobody else has carried out.
DELETE FROM pawl.step_partition WHERE instance_id IN (SELECT e.instance_id
    FROM pawl.execution e WHERE e.request_id IN (SELECT value FROM json_each($1))
    AND NOT EXISTS (SELECT 1 FROM pawl.execution e2 WHERE e2.instance_id = e.instance_id
        AND e2.request_id NOT IN (SELECT value FROM json_each($1))));

-- name: prune_executions (ids bigint[])
DELETE FROM pawl.execution WHERE request_id IN (SELECT value FROM json_each($1));

-- name: prune_carried (ids bigint[]) -> (instance_id bigint)
SELECT DISTINCT e.instance_id FROM pawl.execution e
WHERE e.request_id IN (SELECT value FROM json_each($1));

-- name: prune_instances (ids bigint[])
-- Of these, the ones that have lost all their executions.
DELETE FROM pawl.instance WHERE id IN (SELECT value FROM json_each($1))
    AND NOT EXISTS (SELECT 1 FROM pawl.execution e WHERE e.instance_id = instance.id);

-- name: prune_outcomes (ids bigint[])
DELETE FROM pawl.outcome WHERE id IN (SELECT value FROM json_each($1));

-- name: prune_asked (ids bigint[])
DELETE FROM pawl.request WHERE id IN (SELECT value FROM json_each($1));

-- name: prune_slots (age bigint, most bigint)
-- But the last of each schedule.
DELETE FROM pawl.schedule_slot WHERE (schedule, slot_time) IN (
    SELECT s.schedule, s.slot_time FROM pawl.schedule_slot s
    WHERE s.last_time < pawl_now() - $1 AND EXISTS (SELECT 1 FROM pawl.schedule_slot s2
        WHERE s2.schedule = s.schedule AND s2.slot_time > s.slot_time)
    ORDER BY s.last_time LIMIT $2);

-- name: prune_acts (age bigint, most bigint)
-- They stand in the order of their time: only a page of the first is looked at.
DELETE FROM pawl.audit WHERE at < pawl_now() - $1
    AND id IN (SELECT b.id FROM pawl.audit b ORDER BY b.id LIMIT $2);

-- name: prune_items (age bigint, most bigint)
DELETE FROM pawl.backfill_item WHERE (backfill_id, n) IN (
    SELECT i.backfill_id, i.n FROM pawl.backfill b
    JOIN pawl.backfill_item i ON i.backfill_id = b.id
    WHERE b.ended_at < pawl_now() - $1 ORDER BY i.backfill_id, i.n LIMIT $2);

-- name: prune_backfills (age bigint)
DELETE FROM pawl.backfill WHERE ended_at < pawl_now() - $1
    AND NOT EXISTS (SELECT 1 FROM pawl.backfill_item i WHERE i.backfill_id = backfill.id);

-- name: prune_requests (age bigint, after bigint, most bigint) -> (id bigint, young bigint,
-- spent bigint)
-- The next ones by their numbers. young: those behind it are younger still.
SELECT r.id, CAST(CASE WHEN r.created_at >= pawl_now() - $1 THEN 1 ELSE 0 END AS bigint)
        AS young,
    CAST(CASE WHEN EXISTS (SELECT 1 FROM pawl.spent s WHERE s.id = r.id
        AND s.since < pawl_now() - $1) THEN 1 ELSE 0 END AS bigint) AS spent
FROM pawl.request r WHERE r.id > $2 ORDER BY r.id LIMIT $3;

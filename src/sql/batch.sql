-- Instances, executions, step executions. Each write of a run follows queue_hold in the
-- same transaction, so a claim that is gone writes nothing.

-- name: batch_alive_of_job (job text) -> (id bigint)
SELECT id FROM pawl.execution
WHERE job = $1 AND state IN ('STARTING', 'STARTED', 'STOPPING') ORDER BY id LIMIT 1;

-- name: batch_alive_of_instance (instance_id bigint) -> (id bigint)
SELECT id FROM pawl.execution
WHERE instance_id = $1 AND state IN ('STARTING', 'STARTED', 'STOPPING');

-- name: batch_orphans (job text) -> (id bigint)
-- Alive by their state, but no claim stands behind them: nobody can write to them.
SELECT e.id FROM pawl.execution e
WHERE e.job = $1 AND e.state IN ('STARTING', 'STARTED', 'STOPPING')
    AND NOT EXISTS (SELECT 1 FROM pawl.claim c
        WHERE c.token = e.token AND e.request_id BETWEEN c.first_id AND c.last_id)
ORDER BY e.id;

-- name: batch_holder (execution_id bigint) -> (state text, request_id bigint, job text,
-- token bigint, worker text, silence bigint)
-- Who carries it. worker NULL: nobody; silence: since the worker's last beat, NULL: it
-- has no row any more.
SELECT e.state, e.request_id, e.job, e.token, c.worker,
    pawl_now() - w.beat_at AS silence
FROM pawl.execution e
LEFT JOIN pawl.claim c
    ON c.token = e.token AND e.request_id BETWEEN c.first_id AND c.last_id
LEFT JOIN pawl.worker w ON w.id = c.worker
WHERE e.id = $1;

-- name: batch_holder_of_request (request_id bigint) -> (worker text, silence bigint)
-- Who holds its claim; silence as above.
SELECT c.worker, pawl_now() - w.beat_at AS silence
FROM pawl.claim c LEFT JOIN pawl.worker w ON w.id = c.worker
WHERE c.first_id = (SELECT c2.first_id FROM pawl.claim c2 WHERE c2.first_id <= $1
                    ORDER BY c2.first_id DESC LIMIT 1)
    AND c.last_id >= $1;

-- name: batch_claim_nonce (request_id bigint, token bigint) -> (nonce text)
SELECT nonce FROM pawl.claim
WHERE CAST($1 AS bigint) BETWEEN first_id AND last_id AND token = $2;

-- name: batch_instance_add (job text, identity text, params text, confirmed bigint)
-- -> (id bigint, number bigint)
INSERT INTO pawl.instance (job, number, identity, params, confirmed)
SELECT CAST($1 AS text),
    (SELECT coalesce(max(i.number), 0) + 1 FROM pawl.instance i WHERE i.job = $1), $2, $3,
    CAST($4 AS smallint)
RETURNING id, number;

-- name: batch_last_of_job (job text) -> (instance_id bigint)
-- The job's last instance.
SELECT id AS instance_id FROM pawl.instance WHERE job = $1 ORDER BY number DESC LIMIT 1;

-- name: batch_last_of_request (request_id bigint) -> (instance_id bigint)
-- What the tries of that request's chain last carried out.
SELECT e.instance_id
FROM pawl.request asked
JOIN pawl.request try ON try.id = coalesce(asked.first_try, asked.id)
    OR try.first_try = coalesce(asked.first_try, asked.id)
JOIN pawl.execution e ON e.request_id = try.id
WHERE asked.id = $1 ORDER BY e.id DESC LIMIT 1;

-- name: batch_instance_stands (instance_id bigint) -> (number bigint, params text,
-- confirmed bigint, last bigint, execution_id bigint, request_id bigint, state text,
-- cancelled bigint)
-- last: the job has none after it. An instance with its last execution, and whether that one was cancelled.
SELECT i.number, i.params, CAST(i.confirmed AS bigint) AS confirmed,
    CAST(CASE WHEN EXISTS (SELECT 1 FROM pawl.instance i2
        WHERE i2.job = i.job AND i2.number > i.number) THEN 0 ELSE 1 END AS bigint) AS last,
    e.id AS execution_id, e.request_id, e.state,
    CAST(CASE WHEN EXISTS (SELECT 1 FROM pawl.outcome o
        WHERE o.id = e.request_id AND o.outcome = 'CANCELLED') THEN 1 ELSE 0 END AS bigint)
        AS cancelled
FROM pawl.instance i JOIN pawl.execution e ON e.instance_id = i.id
WHERE i.id = $1 ORDER BY e.id DESC LIMIT 1;

-- name: batch_execution_add (instance_id bigint, job text, request_id bigint,
-- token bigint, state text, params text, planned bigint, resumed_from bigint)
-- -> (id bigint)
INSERT INTO pawl.execution (instance_id, job, request_id, token, state, params, planned,
    resumed_from, started_at, last_updated)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, pawl_now(), pawl_now())
RETURNING id;

-- name: batch_execution_mine (request_id bigint, token bigint) -> (id bigint,
-- instance_id bigint, number bigint, params text, resumed_from bigint)
-- What this claim has begun.
SELECT e.id, e.instance_id, i.number, e.params, e.resumed_from
FROM pawl.execution e JOIN pawl.instance i ON i.id = e.instance_id
WHERE e.request_id = $1 AND e.token = $2
    AND e.state IN ('STARTING', 'STARTED', 'STOPPING') ORDER BY e.id DESC LIMIT 1;

-- name: batch_execution_move (to_state text, ended bigint, message text, id bigint,
-- from_state text)
-- ended: 1 = the work has really ended.
UPDATE pawl.execution
SET state = $1, ended_at = CASE WHEN $2 = 1 THEN pawl_now() END,
    exit_message = coalesce(CAST($3 AS text), exit_message), last_updated = pawl_now()
WHERE id = $4 AND state = $5;

-- name: batch_execution_touch (id bigint)
UPDATE pawl.execution SET last_updated = pawl_now() WHERE id = $1;

-- name: batch_step_add (execution_id bigint, name text, ordinal bigint, state text,
-- effect text, read_count bigint, write_count bigint, filter_count bigint,
-- skip_count bigint, commits bigint, rollbacks bigint, chunk bigint, position text,
-- writer_state text, kind text) -> (id bigint)
INSERT INTO pawl.step_execution (execution_id, name, ordinal, state, effect, read_count,
    write_count, filter_count, skip_count, commits, rollbacks, chunk, position,
    writer_state, kind, started_at, last_updated)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, pawl_now(),
    pawl_now())
RETURNING id;

-- name: batch_steps_begun (execution_id bigint) -> (name text, state text, kind text)
-- Of each step that the executions of this instance before this one have begun, its last
-- row.
SELECT s.name, s.state, s.kind
FROM pawl.execution mine
JOIN pawl.execution e ON e.instance_id = mine.instance_id AND e.id < mine.id
JOIN pawl.step_execution s ON s.execution_id = e.id
WHERE mine.id = $1
    AND NOT EXISTS (SELECT 1 FROM pawl.execution e2
        JOIN pawl.step_execution s2 ON s2.execution_id = e2.id
        WHERE e2.instance_id = mine.instance_id AND e2.id > e.id AND e2.id < mine.id
            AND s2.name = s.name)
ORDER BY s.ordinal, s.id;

-- name: batch_step_before (execution_id bigint, name text) -> (state text, token bigint,
-- read_count bigint, write_count bigint, filter_count bigint, skip_count bigint,
-- commits bigint, rollbacks bigint, chunk bigint, position text, writer_state text)
-- Where the step stood at the end of the last execution of this instance that began it.
-- token: of the execution that committed that chunk; those after it only took it over. A
-- step that was COMPLETED and is done again counts its chunks from 1 again: what stood
-- before that is not looked at.
SELECT s.state,
    (SELECT e2.token FROM pawl.execution e2
     JOIN pawl.step_execution s2 ON s2.execution_id = e2.id
     WHERE e2.instance_id = e.instance_id AND e2.id <= e.id AND s2.name = s.name
         AND s2.chunk = s.chunk
         AND NOT EXISTS (SELECT 1 FROM pawl.execution e3
             JOIN pawl.step_execution s3 ON s3.execution_id = e3.id
             WHERE e3.instance_id = e.instance_id AND e3.id >= e2.id AND e3.id < e.id
                 AND s3.name = s.name AND s3.state = 'COMPLETED')
     ORDER BY e2.id LIMIT 1) AS token,
    s.read_count, s.write_count, s.filter_count, s.skip_count, s.commits, s.rollbacks,
    s.chunk, s.position, s.writer_state
FROM pawl.execution mine
JOIN pawl.execution e ON e.instance_id = mine.instance_id AND e.id < mine.id
JOIN pawl.step_execution s ON s.execution_id = e.id
WHERE mine.id = $1 AND s.name = $2 ORDER BY e.id DESC LIMIT 1;

-- name: batch_step_mine (execution_id bigint, name text) -> (id bigint)
SELECT id FROM pawl.step_execution WHERE execution_id = $1 AND name = $2;

-- name: batch_step_move (to_state text, ended bigint, message text, id bigint,
-- from_state text)
UPDATE pawl.step_execution
SET state = $1, ended_at = CASE WHEN $2 = 1 THEN pawl_now() END,
    exit_message = coalesce(CAST($3 AS text), exit_message), last_updated = pawl_now()
WHERE id = $4 AND state = $5;

-- name: batch_step_checkpoint (read_count bigint, write_count bigint, filter_count bigint,
-- skip_count bigint, commits bigint, rollbacks bigint, chunk bigint, position text,
-- writer_state text, id bigint)
-- Only the next chunk after the one that stands there.
UPDATE pawl.step_execution
SET read_count = $1, write_count = $2, filter_count = $3, skip_count = $4, commits = $5,
    rollbacks = $6, chunk = $7, position = $8, writer_state = $9, last_updated = pawl_now()
WHERE id = $10 AND chunk = $7 - 1 AND state IN ('STARTED', 'STOPPING');

-- name: batch_instance_before (id bigint, job text, before bigint) -> (older bigint)
SELECT count(*) AS older FROM pawl.instance WHERE id = $1 AND job = $2 AND id < $3;

-- name: batch_step_place (read_count bigint, write_count bigint, filter_count bigint,
-- skip_count bigint, commits bigint, rollbacks bigint, chunk bigint, position text,
-- writer_state text, id bigint)
-- What the database that holds the rows says, wherever the copy here stands.
UPDATE pawl.step_execution
SET read_count = $1, write_count = $2, filter_count = $3, skip_count = $4, commits = $5,
    rollbacks = $6, chunk = $7, position = $8, writer_state = $9, last_updated = pawl_now()
WHERE id = $10 AND state IN ('STARTED', 'STOPPING');

-- name: batch_step_chunk (id bigint) -> (chunk bigint)
SELECT CAST(chunk AS bigint) AS chunk FROM pawl.step_execution WHERE id = $1;

-- name: batch_steps_alive (execution_id bigint) -> (id bigint, state text)
SELECT id, state FROM pawl.step_execution
WHERE execution_id = $1 AND state IN ('STARTING', 'STARTED', 'STOPPING') ORDER BY ordinal;

-- name: batch_execution_of_request (request_id bigint) -> (id bigint, state text)
SELECT id, state FROM pawl.execution WHERE request_id = $1 ORDER BY id DESC LIMIT 1;

-- name: batch_execution_get (id bigint) -> (id bigint, instance_id bigint, number bigint,
-- job text, request_id bigint, token bigint, state text, params text, started_at bigint,
-- ended_at bigint, last_updated bigint, exit_message text, planned bigint,
-- resumed_from bigint)
SELECT e.id, e.instance_id, i.number, e.job, e.request_id, e.token, e.state, e.params,
    e.started_at, e.ended_at, e.last_updated, e.exit_message, e.planned, e.resumed_from
FROM pawl.execution e JOIN pawl.instance i ON i.id = e.instance_id WHERE e.id = $1;

-- name: batch_steps_get (execution_id bigint) -> (id bigint, name text, ordinal bigint,
-- state text, effect text, read_count bigint, write_count bigint, filter_count bigint,
-- skip_count bigint, commits bigint, rollbacks bigint, chunk bigint, position text,
-- writer_state text, started_at bigint, ended_at bigint, last_updated bigint,
-- exit_message text, of_execution bigint, of_token bigint)
-- Of each step of the instance its last row up to this execution: one that an earlier
-- execution completed is not begun again and has its row there.
SELECT s.id, s.name, s.ordinal, s.state, s.effect, s.read_count, s.write_count,
    s.filter_count, s.skip_count, s.commits, s.rollbacks, s.chunk, s.position,
    s.writer_state, s.started_at, s.ended_at, s.last_updated, s.exit_message,
    e.id AS of_execution, e.token AS of_token
FROM pawl.execution mine
JOIN pawl.execution e ON e.instance_id = mine.instance_id AND e.id <= mine.id
JOIN pawl.step_execution s ON s.execution_id = e.id
WHERE mine.id = $1 AND (e.id = mine.id OR s.state = 'COMPLETED')
    AND NOT EXISTS (SELECT 1 FROM pawl.execution e2
        JOIN pawl.step_execution s2 ON s2.execution_id = e2.id
        WHERE e2.instance_id = mine.instance_id AND e2.id > e.id AND e2.id <= mine.id
            AND s2.name = s.name)
ORDER BY s.ordinal, s.id;

-- name: batch_skip_note (instance_id bigint, step text, item bigint, class text,
-- request_id bigint, item_values text, message text)
-- The same item once, with its last message: a chunk may be done again.
INSERT INTO pawl.step_skip (instance_id, step, item, class, request_id, item_values,
    message, noted_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, pawl_now())
ON CONFLICT (instance_id, step, item, class) DO UPDATE SET request_id = excluded.request_id,
    item_values = excluded.item_values, message = excluded.message,
    noted_at = excluded.noted_at;

-- name: batch_skips_of_request (request_id bigint, n bigint) -> (step text, item bigint,
-- class text, item_values text, message text, noted_at bigint)
SELECT step, item, class, item_values, message, noted_at FROM pawl.step_skip
WHERE request_id = $1 ORDER BY noted_at, step, item LIMIT $2;

-- name: batch_done_identities (job text) -> (identity text)
SELECT i.identity FROM pawl.instance i
WHERE i.job = $1 AND EXISTS (SELECT 1 FROM pawl.execution e
    WHERE e.instance_id = i.id AND e.state = 'COMPLETED');

-- name: batch_recovery_ask (execution_id bigint, actor text)
INSERT INTO pawl.recovery (execution_id, actor, asked_at) VALUES ($1, $2, pawl_now())
ON CONFLICT (execution_id) DO UPDATE SET actor = excluded.actor,
    asked_at = excluded.asked_at;

-- name: batch_recovery_drop (execution_id bigint)
DELETE FROM pawl.recovery WHERE execution_id = $1;

-- name: batch_recoveries (n bigint) -> (execution_id bigint, actor text)
SELECT execution_id, actor FROM pawl.recovery ORDER BY asked_at, execution_id LIMIT $1;

-- name: batch_recovery_waits (execution_id bigint) -> (waits bigint)
SELECT count(*) AS waits FROM pawl.recovery WHERE execution_id = $1;

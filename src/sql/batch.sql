-- Instances, executions, step executions. Each write of a run follows queue_hold in the
-- same transaction, so a claim that is gone writes nothing.

-- name: batch_alive_of_job (job text) -> (id bigint)
SELECT id FROM pawl.execution
WHERE job = $1 AND state IN ('STARTING', 'STARTED', 'STOPPING') ORDER BY id LIMIT 1;

-- name: batch_instance_add (job text, identity text, params text)
-- -> (id bigint, number bigint)
INSERT INTO pawl.instance (job, number, identity, params)
SELECT CAST($1 AS text),
    (SELECT coalesce(max(i.number), 0) + 1 FROM pawl.instance i WHERE i.job = $1), $2, $3
RETURNING id, number;

-- name: batch_execution_add (instance_id bigint, job text, request_id bigint,
-- token bigint, state text, params text, planned bigint) -> (id bigint)
INSERT INTO pawl.execution (instance_id, job, request_id, token, state, params, planned,
    started_at, last_updated)
VALUES ($1, $2, $3, $4, $5, $6, $7, pawl_now(), pawl_now())
RETURNING id;

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
-- effect text) -> (id bigint)
INSERT INTO pawl.step_execution (execution_id, name, ordinal, state, effect, started_at,
    last_updated)
VALUES ($1, $2, $3, $4, $5, pawl_now(), pawl_now())
RETURNING id;

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

-- name: batch_step_chunk (id bigint) -> (chunk bigint)
SELECT CAST(chunk AS bigint) AS chunk FROM pawl.step_execution WHERE id = $1;

-- name: batch_steps_alive (execution_id bigint) -> (id bigint, state text)
SELECT id, state FROM pawl.step_execution
WHERE execution_id = $1 AND state IN ('STARTING', 'STARTED', 'STOPPING') ORDER BY ordinal;

-- name: batch_execution_of_request (request_id bigint) -> (id bigint, state text)
SELECT id, state FROM pawl.execution WHERE request_id = $1 ORDER BY id DESC LIMIT 1;

-- name: batch_execution_get (id bigint) -> (id bigint, instance_id bigint, number bigint,
-- job text, request_id bigint, token bigint, state text, params text, started_at bigint,
-- ended_at bigint, last_updated bigint, exit_message text, planned bigint)
SELECT e.id, e.instance_id, i.number, e.job, e.request_id, e.token, e.state, e.params,
    e.started_at, e.ended_at, e.last_updated, e.exit_message, e.planned
FROM pawl.execution e JOIN pawl.instance i ON i.id = e.instance_id WHERE e.id = $1;

-- name: batch_steps_get (execution_id bigint) -> (id bigint, name text, ordinal bigint,
-- state text, effect text, read_count bigint, write_count bigint, filter_count bigint,
-- skip_count bigint, commits bigint, rollbacks bigint, chunk bigint, position text,
-- writer_state text, started_at bigint, ended_at bigint, last_updated bigint,
-- exit_message text)
SELECT id, name, ordinal, state, effect, read_count, write_count, filter_count, skip_count,
    commits, rollbacks, chunk, position, writer_state, started_at, ended_at, last_updated,
    exit_message
FROM pawl.step_execution WHERE execution_id = $1 ORDER BY ordinal, id;

-- Where SQLite differs: there is one writer.

-- name: batch_state_lock (execution_id bigint) -> (state text)
SELECT state FROM pawl.execution WHERE id = $1;

-- name: batch_step_state_lock (step_id bigint) -> (state text, chunk bigint)
SELECT state, chunk FROM pawl.step_execution WHERE id = $1;

-- name: batch_may_clean () -> (may bigint)
SELECT 1 AS may;

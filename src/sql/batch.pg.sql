-- Where PostgreSQL differs: several may start at once.

-- name: batch_job_lock (key text)
SELECT pg_advisory_xact_lock(hashtextextended($1, 0));

-- name: batch_state_lock (execution_id bigint) -> (state text)
SELECT state FROM pawl.execution WHERE id = $1 FOR UPDATE;

-- name: batch_step_state_lock (step_id bigint) -> (state text, chunk bigint)
SELECT state, chunk FROM pawl.step_execution WHERE id = $1 FOR UPDATE;

-- name: batch_may_clean () -> (may bigint)
-- The role of the API may not: then the beginning of the next run does.
SELECT CAST(CASE WHEN has_any_column_privilege('pawl.execution', 'UPDATE') THEN 1 ELSE 0 END
    AS bigint) AS may;

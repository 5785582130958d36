-- Where PostgreSQL differs.

-- name: schedule_withdraw (version bigint, names text[], same bigint)
UPDATE pawl.schedule SET withdrawn_at = pawl_now(), version = $1
WHERE withdrawn_at IS NULL AND name <> ALL (CAST($2 AS text[]))
  AND (version < $1 OR (version = $1 AND $3 = 1));

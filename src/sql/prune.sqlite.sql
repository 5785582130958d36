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

-- Outcomes are the owner's to change.

-- name: prune_results_gone (ids bigint[]) -> (n bigint)
SELECT pawl.results_gone($1) AS n;

-- name: prune_keys (age bigint, most bigint) -> (n bigint)
SELECT pawl.keys_gone($1, $2) AS n;

-- name: prune_requests_gone (ids bigint[], age bigint) -> (n bigint)
SELECT pawl.requests_gone($1, $2) AS n;

-- name: prune_records (age bigint, most bigint) -> (n bigint)
SELECT pawl.records_gone($1, $2) AS n;

-- name: prune_requests (age bigint, after bigint, most bigint) -> (id bigint, young bigint,
-- spent bigint)
-- Which of the old ones are spent says the function that removes them.
SELECT r.id, CAST(CASE WHEN r.created_at >= pawl_now() - $1 THEN 1 ELSE 0 END AS bigint)
        AS young,
    CAST(CASE WHEN r.created_at < pawl_now() - $1 THEN 1 ELSE 0 END AS bigint) AS spent
FROM pawl.request r WHERE r.id > $2 ORDER BY r.id LIMIT $3;

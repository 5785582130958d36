-- Outcomes are the owner's to change.

-- name: prune_results_gone (ids bigint[]) -> (n bigint)
SELECT pawl.results_gone($1) AS n;

-- name: prune_keys (age bigint, most bigint) -> (n bigint)
SELECT pawl.keys_gone($1, $2) AS n;

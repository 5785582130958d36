-- What is kept only for a time, in small steps. Ages are microseconds.

-- name: prune_results (age bigint, most bigint) -> (id bigint)
SELECT id FROM pawl.outcome
WHERE result_path IS NOT NULL AND result_gone_at IS NULL AND finished_at < pawl_now() - $1
ORDER BY finished_at LIMIT $2;

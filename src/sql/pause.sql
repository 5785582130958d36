-- Jobs and lanes held back. The claim leaves out what stands here (queue_claim).

-- name: pause_put (kind text, name text, actor text) -> (paused_by text)
-- Who came first stays named; no row: it was paused already.
INSERT INTO pawl.paused (kind, name, paused_by, paused_at)
VALUES ($1, $2, $3, pawl_now())
ON CONFLICT (kind, name) DO NOTHING
RETURNING paused_by;

-- name: pause_drop (kind text, name text) -> (paused_by text)
DELETE FROM pawl.paused WHERE kind = $1 AND name = $2
RETURNING paused_by;

-- name: pause_list () -> (kind text, name text, paused_by text, paused_at bigint)
SELECT kind, name, paused_by, paused_at FROM pawl.paused ORDER BY kind, name;

-- name: pause_of (job text, lane text) -> (kind text, name text, paused_by text,
-- paused_at bigint)
SELECT kind, name, paused_by, paused_at FROM pawl.paused
WHERE (kind = 'job' AND name = $1) OR (kind = 'lane' AND name = $2)
ORDER BY kind;

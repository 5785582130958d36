-- Where SQLite differs: there is one writer, and numbers are drawn from a table.

-- name: partition_free (instance_id bigint, step text, request_id bigint) -> (n bigint,
-- lower bigint, upper bigint, read_count bigint, write_count bigint, filter_count bigint,
-- skip_count bigint, commits bigint, rollbacks bigint, chunk bigint, position text,
-- writer_state text, hold bigint)
-- request_id: who asks.
-- One that nobody works on: also if it was held under a claim that is gone. hold: partition_draw
-- has it.
SELECT p.n, p.lower, p.upper, p.read_count, p.write_count, p.filter_count, p.skip_count,
    p.commits, p.rollbacks, p.chunk, p.position, p.writer_state, CAST(0 AS integer) AS hold
FROM pawl.step_partition p
WHERE p.instance_id = $1 AND p.step = $2
    -- who comes late begins nothing of what is to stop
    AND NOT EXISTS (SELECT 1 FROM pawl.flag f JOIN pawl.execution e
        ON e.request_id = f.request_id WHERE e.instance_id = $1)
    AND NOT EXISTS (SELECT 1 FROM pawl.flag f WHERE f.request_id = $3)
    AND (p.state = 'FREE' OR (p.state = 'HELD'
        AND NOT (EXISTS (SELECT 1 FROM pawl.claim c
            WHERE c.token = p.token AND p.request_id BETWEEN c.first_id AND c.last_id)
        AND EXISTS (SELECT 1 FROM pawl.claim c
            WHERE c.token = p.parent_token AND p.parent_id BETWEEN c.first_id AND c.last_id))))
ORDER BY p.n LIMIT 1;

-- name: partition_draw () -> (value bigint)
UPDATE pawl.counter SET value = value + 1 WHERE name = 'token' RETURNING value;

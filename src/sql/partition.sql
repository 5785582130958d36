-- Partitions of steps, and the requests that help with them. Each write of a run follows
-- queue_hold of its own claim and of its parent's in the same transaction.

-- name: partition_add (instance_id bigint, step text, n bigint, lower bigint, upper bigint,
-- cut_by text)
INSERT INTO pawl.step_partition (instance_id, step, n, lower, upper, cut_by, state)
VALUES ($1, $2, $3, $4, $5, $6, 'FREE');

-- name: partition_cut_by (instance_id bigint, step text) -> (cut_by text)
SELECT cut_by FROM pawl.step_partition WHERE instance_id = $1 AND step = $2 AND n = 1;

-- name: partition_count (instance_id bigint, step text) -> (n bigint)
SELECT count(*) AS n FROM pawl.step_partition WHERE instance_id = $1 AND step = $2;

-- name: partition_again (instance_id bigint, step text)
-- A new try of the run: what failed is to be tried again.
UPDATE pawl.step_partition SET state = 'FREE', message = NULL
WHERE instance_id = $1 AND step = $2 AND state = 'FAILED';

-- name: partition_hold (hold bigint, request_id bigint, token bigint, parent_id bigint,
-- parent_token bigint, instance_id bigint, step text, n bigint)
UPDATE pawl.step_partition SET state = 'HELD', hold = $1, request_id = $2, token = $3,
    parent_id = $4, parent_token = $5
WHERE instance_id = $6 AND step = $7 AND n = $8;

-- name: partition_mine (instance_id bigint, step text, request_id bigint, token bigint)
-- -> (n bigint, lower bigint, upper bigint, read_count bigint, write_count bigint,
-- filter_count bigint, skip_count bigint, commits bigint, rollbacks bigint, chunk bigint,
-- position text, writer_state text, hold bigint)
-- What this claim has taken, though it may not know: the answer to that can be lost.
SELECT p.n, p.lower, p.upper, p.read_count, p.write_count, p.filter_count, p.skip_count,
    p.commits, p.rollbacks, p.chunk, p.position, p.writer_state, p.hold
FROM pawl.step_partition p
WHERE p.instance_id = $1 AND p.step = $2 AND p.request_id = $3 AND p.token = $4
    AND p.state = 'HELD'
ORDER BY p.n LIMIT 1;

-- name: partition_let_go (to_state text, message text, instance_id bigint, step text,
-- n bigint, hold bigint)
UPDATE pawl.step_partition SET state = $1, message = $2
WHERE instance_id = $3 AND step = $4 AND n = $5 AND hold = $6 AND state = 'HELD';

-- name: partition_checkpoint (read_count bigint, write_count bigint, filter_count bigint,
-- skip_count bigint, commits bigint, rollbacks bigint, chunk bigint, position text,
-- writer_state text, to_state text, instance_id bigint, step text, n bigint, hold bigint)
-- Only the next chunk after the one that stands there.
UPDATE pawl.step_partition
SET read_count = $1, write_count = $2, filter_count = $3, skip_count = $4, commits = $5,
    rollbacks = $6, chunk = $7, position = $8, writer_state = $9, state = $10
WHERE instance_id = $11 AND step = $12 AND n = $13 AND hold = $14 AND state = 'HELD'
    AND chunk = $7 - 1;

-- name: partition_place (read_count bigint, write_count bigint, filter_count bigint,
-- skip_count bigint, commits bigint, rollbacks bigint, chunk bigint, position text,
-- writer_state text, to_state text, instance_id bigint, step text, n bigint, hold bigint)
-- What the database that holds the rows says, wherever the copy here stands.
UPDATE pawl.step_partition
SET read_count = $1, write_count = $2, filter_count = $3, skip_count = $4, commits = $5,
    rollbacks = $6, chunk = $7, position = $8, writer_state = $9, state = $10
WHERE instance_id = $11 AND step = $12 AND n = $13 AND hold = $14 AND state = 'HELD';

-- name: partition_chunk (instance_id bigint, step text, n bigint, hold bigint)
-- -> (chunk bigint)
SELECT chunk FROM pawl.step_partition
WHERE instance_id = $1 AND step = $2 AND n = $3 AND hold = $4;

-- name: partition_stand (instance_id bigint, step text) -> (n bigint, state text,
-- held bigint, message text, read_count bigint, write_count bigint, filter_count bigint,
-- skip_count bigint, commits bigint, rollbacks bigint, chunk bigint)
-- held: by claims that stand, both of them.
SELECT p.n, p.state,
    CASE WHEN p.state = 'HELD' AND EXISTS (SELECT 1 FROM pawl.claim c
            WHERE c.token = p.token AND p.request_id BETWEEN c.first_id AND c.last_id)
        AND EXISTS (SELECT 1 FROM pawl.claim c
            WHERE c.token = p.parent_token AND p.parent_id BETWEEN c.first_id AND c.last_id)
        THEN CAST(1 AS bigint) ELSE CAST(0 AS bigint) END AS held,
    p.message, p.read_count, p.write_count, p.filter_count, p.skip_count, p.commits,
    p.rollbacks, p.chunk
FROM pawl.step_partition p WHERE p.instance_id = $1 AND p.step = $2 ORDER BY p.n;

-- name: hand_add (request_id bigint, parent_id bigint, parent_token bigint,
-- execution_id bigint, step text)
INSERT INTO pawl.hand (request_id, parent_id, parent_token, execution_id, step)
VALUES ($1, $2, $3, $4, $5);

-- name: hand_get (request_id bigint) -> (parent_id bigint, parent_token bigint, nonce text,
-- execution_id bigint, step text)
-- nonce NULL: the parent's claim is gone.
SELECT h.parent_id, h.parent_token,
    (SELECT c.nonce FROM pawl.claim c WHERE c.token = h.parent_token
         AND h.parent_id BETWEEN c.first_id AND c.last_id) AS nonce,
    h.execution_id, h.step
FROM pawl.hand h WHERE h.request_id = $1;

-- name: hands_there (parent_id bigint, parent_token bigint, step text) -> (n bigint)
SELECT count(*) AS n FROM pawl.hand h
WHERE h.parent_id = $1 AND h.parent_token = $2 AND h.step = $3;

-- name: hands_open (parent_id bigint) -> (request_id bigint)
SELECT h.request_id FROM pawl.hand h
WHERE h.parent_id = $1
    AND NOT EXISTS (SELECT 1 FROM pawl.outcome o WHERE o.id = h.request_id)
ORDER BY h.request_id;

-- Partitions of a step: each a part of its key range, with a checkpoint of its own. They
-- belong to the instance, so they outlive the tries of its request. And the requests that
-- help with them.
CREATE TABLE pawl.step_partition (
    instance_id bigint NOT NULL,
    step text NOT NULL,
    n bigint NOT NULL,                 -- from 1
    lower bigint,                      -- the first key of it; NULL: from the first on
    upper bigint,                      -- the first key behind it; NULL: to the last
    state text NOT NULL CHECK (state IN ('FREE', 'HELD', 'COMPLETED', 'FAILED')),
    hold bigint,                       -- drawn at each taking: fences its writes
    request_id bigint,                 -- the claim of who holds it …
    token bigint,
    parent_id bigint,                  -- … and that of the run which the step is of
    parent_token bigint,
    read_count bigint NOT NULL DEFAULT 0,
    write_count bigint NOT NULL DEFAULT 0,
    filter_count bigint NOT NULL DEFAULT 0,
    skip_count bigint NOT NULL DEFAULT 0,
    commits bigint NOT NULL DEFAULT 0,
    rollbacks bigint NOT NULL DEFAULT 0,
    chunk bigint NOT NULL DEFAULT 0,
    position text,
    writer_state text,
    message text,                       -- FAILED: why
    PRIMARY KEY (instance_id, step, n)
);

CREATE TABLE pawl.hand (
    request_id bigint PRIMARY KEY,
    parent_id bigint NOT NULL,
    parent_token bigint NOT NULL,
    execution_id bigint NOT NULL,      -- of the parent
    step text NOT NULL
);
CREATE INDEX hand_parent ON pawl.hand (parent_id);

-- Partitions of a step: each a part of its key range, with a checkpoint of its own. They
-- belong to the instance, so they outlive the tries of its request. And the requests that
-- help with them.
CREATE TABLE pawl.step_partition (
    instance_id integer NOT NULL,
    step text NOT NULL,
    n integer NOT NULL,                 -- from 1
    lower integer,                      -- the first key of it; NULL: from the first on
    upper integer,                      -- the first key behind it; NULL: to the last
    state text NOT NULL CHECK (state IN ('FREE', 'HELD', 'COMPLETED', 'FAILED')),
    hold integer,                       -- drawn at each taking: fences its writes
    request_id integer,                 -- the claim of who holds it …
    token integer,
    parent_id integer,                  -- … and that of the run which the step is of
    parent_token integer,
    read_count integer NOT NULL DEFAULT 0,
    write_count integer NOT NULL DEFAULT 0,
    filter_count integer NOT NULL DEFAULT 0,
    skip_count integer NOT NULL DEFAULT 0,
    commits integer NOT NULL DEFAULT 0,
    rollbacks integer NOT NULL DEFAULT 0,
    chunk integer NOT NULL DEFAULT 0,
    position text,
    writer_state text,
    message text,                       -- FAILED: why
    PRIMARY KEY (instance_id, step, n)
) STRICT, WITHOUT ROWID;

CREATE TABLE pawl.hand (
    request_id integer PRIMARY KEY,
    parent_id integer NOT NULL,
    parent_token integer NOT NULL,
    execution_id integer NOT NULL,      -- of the parent
    step text NOT NULL
) STRICT;
CREATE INDEX pawl.hand_parent ON hand (parent_id);

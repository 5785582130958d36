-- Items that were left out: what was wrong with each. They are written by themselves, so
-- they stay when the chunk that they stood in is rolled back.

CREATE TABLE pawl.step_skip (
    instance_id integer NOT NULL,
    step text NOT NULL,
    item integer NOT NULL,               -- its number among those read, from 1
    class text NOT NULL,                -- parse, upstream, rejected, constraint, quota
    request_id integer NOT NULL,         -- of the run that noted it
    item_values text NOT NULL,          -- JSON
    message text NOT NULL,
    noted_at integer NOT NULL,
    PRIMARY KEY (instance_id, step, item, class)
) STRICT, WITHOUT ROWID;
CREATE INDEX pawl.step_skip_request ON step_skip (request_id);

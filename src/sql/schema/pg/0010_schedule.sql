-- Schedules as published, and what became of each of their times.

CREATE TABLE pawl.schedule (
    name text PRIMARY KEY,
    version bigint NOT NULL,            -- config_version: an older file never wins
    hash text NOT NULL,                 -- of definition
    definition text NOT NULL,           -- JSON
    rule text NOT NULL,                 -- the part of it that says when
    published_at bigint NOT NULL,
    withdrawn_at bigint,
    decided_to bigint NOT NULL,         -- every slot at or before this is decided
    paused_at bigint,
    paused_by text,
    CHECK ((paused_at IS NULL) = (paused_by IS NULL))
) WITH (fillfactor = 50);

-- One row per slot: whoever inserts it has decided it. Slots that were let go one
-- after the other share a row, from slot_time to last_time.
CREATE TABLE pawl.schedule_slot (
    schedule text NOT NULL,
    slot_time bigint NOT NULL,
    last_time bigint NOT NULL,
    slots bigint NOT NULL DEFAULT 1 CHECK (slots >= 1),
    state text NOT NULL CHECK (state IN ('fired', 'skipped', 'merged', 'refused')),
    request_id bigint,
    detail text,
    decided_at bigint NOT NULL,
    PRIMARY KEY (schedule, slot_time),
    CHECK (slot_time <= last_time),
    CHECK (state <> 'fired' OR request_id IS NOT NULL)
);
CREATE INDEX schedule_slot_request ON pawl.schedule_slot (request_id)
    WHERE request_id IS NOT NULL;

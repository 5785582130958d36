-- Schedules as published, and what became of each of their times.

CREATE TABLE pawl.schedule (
    name text PRIMARY KEY,
    version integer NOT NULL,           -- config_version: an older file never wins
    hash text NOT NULL,                 -- of definition
    definition text NOT NULL,           -- JSON
    rule text NOT NULL,                 -- the part of it that says when
    published_at integer NOT NULL,
    withdrawn_at integer,
    decided_to integer NOT NULL,        -- every slot at or before this is decided
    paused_at integer,
    paused_by text,
    CHECK ((paused_at IS NULL) = (paused_by IS NULL))
) STRICT, WITHOUT ROWID;

-- One row per slot: whoever inserts it has decided it. Slots that were let go one
-- after the other share a row, from slot_time to last_time.
CREATE TABLE pawl.schedule_slot (
    schedule text NOT NULL,
    slot_time integer NOT NULL,
    last_time integer NOT NULL,
    slots integer NOT NULL DEFAULT 1 CHECK (slots >= 1),
    state text NOT NULL CHECK (state IN ('fired', 'skipped', 'merged', 'refused')),
    request_id integer,
    detail text,
    decided_at integer NOT NULL,
    PRIMARY KEY (schedule, slot_time),
    CHECK (slot_time <= last_time),
    CHECK (state <> 'fired' OR request_id IS NOT NULL)
) STRICT, WITHOUT ROWID;
CREATE INDEX pawl.schedule_slot_request ON schedule_slot (request_id)
    WHERE request_id IS NOT NULL;

-- Schedules: what was published, how far each has been decided, its slots.

-- name: schedule_put (name text, version bigint, hash text, definition text, rule text)
-- -> (version bigint)
-- A higher version wins; files without a version (0) replace each other. A new rule
-- counts from now on: its earlier times were nobody's promise.
INSERT INTO pawl.schedule AS s (name, version, hash, definition, rule, published_at,
    decided_to)
VALUES ($1, $2, $3, $4, $5, pawl_now(), pawl_now())
ON CONFLICT (name) DO UPDATE
    SET version = excluded.version, hash = excluded.hash,
        definition = excluded.definition, rule = excluded.rule,
        published_at = excluded.published_at, withdrawn_at = NULL,
        decided_to = CASE WHEN s.rule = excluded.rule AND s.withdrawn_at IS NULL
                           OR s.decided_to > excluded.decided_to
                          THEN s.decided_to ELSE excluded.decided_to END
    WHERE excluded.version > s.version
       OR (excluded.version = 0 AND s.version = 0
           AND (excluded.hash <> s.hash OR s.withdrawn_at IS NOT NULL))
RETURNING version;

-- name: schedule_hash (name text) -> (hash text)
SELECT hash FROM pawl.schedule WHERE name = $1 AND withdrawn_at IS NULL;

-- name: schedule_stand () -> (name text, version bigint, hash text)
SELECT name, version, hash FROM pawl.schedule WHERE withdrawn_at IS NULL;

-- name: schedule_rows () -> (name text, hash text, definition text, decided_to bigint,
-- paused_at bigint, paused_by text, now bigint)
SELECT name, hash, definition, decided_to, paused_at, paused_by, pawl_now() AS now
FROM pawl.schedule WHERE withdrawn_at IS NULL ORDER BY name;

-- name: schedule_states () -> (name text, hash text, definition text, decided_to bigint,
-- paused_at bigint, paused_by text, now bigint, slot_time bigint, last_time bigint,
-- slots bigint, state text, request_id bigint, detail text)
-- With what became of the newest slot.
SELECT s.name, s.hash, s.definition, s.decided_to, s.paused_at, s.paused_by,
    pawl_now() AS now, t.slot_time, t.last_time, t.slots, t.state, t.request_id, t.detail
FROM pawl.schedule s
LEFT JOIN pawl.schedule_slot t ON t.schedule = s.name AND t.slot_time =
    (SELECT max(m.slot_time) FROM pawl.schedule_slot m WHERE m.schedule = s.name)
WHERE s.withdrawn_at IS NULL ORDER BY s.name;

-- name: schedule_job (name text) -> (definition text)
SELECT definition FROM pawl.job_definition WHERE name = $1 AND withdrawn_at IS NULL;

-- name: schedule_advance (decided_to bigint, name text, from_time bigint, hash text,
-- paused bigint) -> (paused_by text)
-- Takes the slots up to $1. No row: another scheduler was first, the definition is a
-- new one, it was paused or resumed meanwhile, or it is not time yet by the store's
-- clock.
UPDATE pawl.schedule SET decided_to = $1
WHERE name = $2 AND decided_to = $3 AND hash = $4 AND withdrawn_at IS NULL
  AND CASE WHEN paused_by IS NULL THEN 0 ELSE 1 END = $5
  AND decided_to < $1 AND pawl_now() >= $1
RETURNING paused_by;

-- name: schedule_slot_add (schedule text, slot_time bigint, last_time bigint,
-- slots bigint, state text, detail text) -> (slot_time bigint)
-- No row: the slot was decided before.
INSERT INTO pawl.schedule_slot (schedule, slot_time, last_time, slots, state, detail,
    decided_at)
VALUES ($1, $2, $3, $4, $5, $6, pawl_now())
ON CONFLICT (schedule, slot_time) DO NOTHING
RETURNING slot_time;

-- name: schedule_slot_set (state text, request_id bigint, detail text, schedule text,
-- slot_time bigint)
UPDATE pawl.schedule_slot SET state = $1, request_id = $2, detail = $3
WHERE schedule = $4 AND slot_time = $5;

-- name: schedule_get (name text) -> (definition text, paused_by text)
SELECT definition, paused_by FROM pawl.schedule WHERE name = $1 AND withdrawn_at IS NULL;

-- name: schedule_pause (actor text, name text) -> (paused_by text)
-- Who came first stays named.
UPDATE pawl.schedule SET paused_at = pawl_now(), paused_by = $1
WHERE name = $2 AND withdrawn_at IS NULL AND paused_by IS NULL
RETURNING paused_by;

-- name: schedule_resume (name text) -> (name text)
UPDATE pawl.schedule SET paused_at = NULL, paused_by = NULL
WHERE name = $1 AND withdrawn_at IS NULL AND paused_by IS NOT NULL
RETURNING name;

-- The store on SQLite: where the row of a request is, is its state. The main
-- database is opened under the name pawl, so that statements read as on PostgreSQL.
-- Times are microseconds since 1970 UTC, truth values 0 and 1, JSON is text.
-- A migration that has landed is never changed: add the next number instead.

CREATE TABLE pawl.migration (
    number integer PRIMARY KEY,
    name text NOT NULL,
    applied_at integer NOT NULL
) STRICT;

CREATE TABLE pawl.store (
    singleton integer PRIMARY KEY DEFAULT 1 CHECK (singleton = 1),
    store_id text NOT NULL,             -- 32 hex digits, made once
    created_at integer NOT NULL
) STRICT;

-- The last number given out; drawn by UPDATE … SET value = value + n … RETURNING value.
CREATE TABLE pawl.counter (
    name text PRIMARY KEY,
    value integer NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO pawl.counter (name, value)
    VALUES ('request_id', 0), ('ready_seq', 0), ('token', 0);

-- --- requests: written once ---

CREATE TABLE pawl.request (
    id integer PRIMARY KEY,
    job text NOT NULL,
    given text NOT NULL,                -- parameters as the client gave them
    requester text NOT NULL,
    source text NOT NULL
        CHECK (source IN ('api', 'cli', 'sql', 'schedule', 'chain', 'retry')),
    lane text NOT NULL,
    priority integer NOT NULL DEFAULT 0 CHECK (priority BETWEEN -100 AND 100),
    estimate integer,
    not_before integer,
    expires_at integer,
    retry_of integer,                   -- the try before this one
    first_try integer,                  -- the first of the chain; NULL: this one
    attempt integer NOT NULL DEFAULT 1 CHECK (attempt >= 1),
    restart_of integer,                 -- asked to go on with that request's work
    restart integer CHECK (restart IN (0, 1)),
    max_calls integer CHECK (max_calls >= 0),
    next text,
    created_at integer NOT NULL
) STRICT;
CREATE INDEX pawl.request_job ON request (job, id);
CREATE INDEX pawl.request_requester ON request (requester, id);
CREATE INDEX pawl.request_first_try ON request (first_try) WHERE first_try IS NOT NULL;

CREATE TABLE pawl.outcome (
    id integer PRIMARY KEY,
    outcome text NOT NULL CHECK (outcome IN ('COMPLETED', 'STOPPED', 'ERROR', 'CANCELLED',
        'TIMEOUT', 'WORKER_LOST', 'EXPIRED', 'REFUSED')),
    worker text,
    token integer,
    claimed_at integer,
    finished_at integer NOT NULL,
    detail text,
    execution_id integer,
    result_path text,
    result_name text,
    result_type text,
    result_bytes integer,
    result_rows integer,
    result_sha256 text,
    result_gone_at integer               -- removed by retention
) STRICT;

-- --- hot tables: as small as the work that is open now ---

CREATE TABLE pawl.later (
    first_id integer PRIMARY KEY,
    last_id integer NOT NULL,
    job text NOT NULL,
    lane text NOT NULL,
    priority integer NOT NULL,
    not_before integer,
    expires_at integer,
    reason text NOT NULL CHECK (reason IN ('time', 'paused', 'key', 'after')),
    created_at integer NOT NULL,
    CHECK (first_id <= last_id)
) STRICT;
CREATE INDEX pawl.later_due ON later (not_before) WHERE not_before IS NOT NULL;
CREATE INDEX pawl.later_expires ON later (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX pawl.later_job ON later (job, first_id);

CREATE TABLE pawl.ready (
    first_id integer PRIMARY KEY,
    last_id integer NOT NULL,
    job text NOT NULL,
    lane text NOT NULL,
    priority integer NOT NULL,
    seq integer NOT NULL,               -- drawn on entry: the order within a priority
    ready_since integer NOT NULL,
    expires_at integer,
    CHECK (first_id <= last_id)
) STRICT;
CREATE INDEX pawl.ready_claim ON ready (lane, priority DESC, seq);
CREATE INDEX pawl.ready_expires ON ready (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE pawl.claim (
    first_id integer PRIMARY KEY,
    last_id integer NOT NULL,
    job text NOT NULL,
    lane text NOT NULL,
    worker text NOT NULL,
    token integer NOT NULL,
    nonce text NOT NULL,
    claimed_at integer NOT NULL,
    CHECK (first_id <= last_id)
) STRICT;
CREATE INDEX pawl.claim_worker ON claim (worker);

CREATE TABLE pawl.flag (
    request_id integer PRIMARY KEY,
    stop integer NOT NULL DEFAULT 0 CHECK (stop IN (0, 1)),
    cancel integer NOT NULL DEFAULT 0 CHECK (cancel IN (0, 1)),
    asked_by text NOT NULL,
    asked_at integer NOT NULL
) STRICT;

CREATE TABLE pawl.progress (
    request_id integer PRIMARY KEY,
    done integer NOT NULL DEFAULT 0,
    total integer,
    message text,
    updated_at integer NOT NULL
) STRICT;

-- Uniqueness is a row: 'job:' || job, or 'req:' || a digest.
CREATE TABLE pawl.active (
    key text PRIMARY KEY,
    request_id integer NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX pawl.active_request ON active (request_id);

CREATE TABLE pawl.idempotency (
    subject text NOT NULL,
    job text NOT NULL,
    key text NOT NULL,
    digest text NOT NULL,               -- of the body
    request_id integer NOT NULL,
    created_at integer NOT NULL,
    PRIMARY KEY (subject, job, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX pawl.idempotency_age ON idempotency (created_at);

-- --- definitions, workers ---

CREATE TABLE pawl.job_definition (
    name text PRIMARY KEY,
    version integer NOT NULL,           -- config_version: an older file never wins
    hash text NOT NULL,
    definition text NOT NULL,
    published_at integer NOT NULL,
    withdrawn_at integer
) STRICT, WITHOUT ROWID;

CREATE TABLE pawl.worker (
    id text PRIMARY KEY,                -- pid@hostname#128 random bits
    seat text NOT NULL,
    host text NOT NULL,
    pid integer NOT NULL,
    boot_id text NOT NULL,
    started_at integer NOT NULL,
    beat_at integer NOT NULL,
    lanes text NOT NULL,                -- JSON: slots per lane
    in_use text NOT NULL,               -- JSON: slots taken per lane
    keys text NOT NULL,                 -- JSON: names of the keys held, never values
    jobs text NOT NULL,                 -- JSON: names of the jobs it has
    version text NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX pawl.worker_seat ON worker (seat);

-- --- batches ---

CREATE TABLE pawl.instance (
    id integer PRIMARY KEY AUTOINCREMENT,
    job text NOT NULL,
    number integer NOT NULL,
    identity text NOT NULL,             -- canonical identifying parameters
    params text NOT NULL,
    UNIQUE (job, number)
) STRICT;

CREATE TABLE pawl.execution (
    id integer PRIMARY KEY AUTOINCREMENT,
    instance_id integer NOT NULL REFERENCES instance (id),
    job text NOT NULL,
    request_id integer NOT NULL,
    token integer NOT NULL,
    state text NOT NULL CHECK (state IN
        ('STARTING', 'STARTED', 'STOPPING', 'STOPPED', 'COMPLETED', 'FAILED')),
    params text NOT NULL,               -- effective: defaults filled in
    started_at integer NOT NULL,
    ended_at integer,                   -- none while the work has not really ended
    last_updated integer NOT NULL,
    exit_message text,
    CHECK ((ended_at IS NULL) = (state IN ('STARTING', 'STARTED', 'STOPPING')))
) STRICT;
CREATE UNIQUE INDEX pawl.execution_alive ON execution (instance_id)
    WHERE state IN ('STARTING', 'STARTED', 'STOPPING');
CREATE INDEX pawl.execution_alive_job ON execution (job)
    WHERE state IN ('STARTING', 'STARTED', 'STOPPING');
CREATE INDEX pawl.execution_instance ON execution (instance_id, id);
CREATE INDEX pawl.execution_job ON execution (job, id);
CREATE INDEX pawl.execution_request ON execution (request_id);

CREATE TABLE pawl.step_execution (
    id integer PRIMARY KEY AUTOINCREMENT,
    execution_id integer NOT NULL REFERENCES execution (id),
    name text NOT NULL,
    ordinal integer NOT NULL,
    state text NOT NULL CHECK (state IN
        ('STARTING', 'STARTED', 'STOPPING', 'STOPPED', 'COMPLETED', 'FAILED')),
    effect text,                        -- transactional, file or at-least-once
    read_count integer NOT NULL DEFAULT 0,
    write_count integer NOT NULL DEFAULT 0,
    filter_count integer NOT NULL DEFAULT 0,
    skip_count integer NOT NULL DEFAULT 0,
    commits integer NOT NULL DEFAULT 0,
    rollbacks integer NOT NULL DEFAULT 0,
    chunk integer NOT NULL DEFAULT 0,   -- the last one committed
    position text,                      -- of the reader after that chunk
    writer_state text,
    started_at integer NOT NULL,
    ended_at integer,
    last_updated integer NOT NULL,
    exit_message text,
    UNIQUE (execution_id, name)
) STRICT;

-- --- acts of people and repairs ---

CREATE TABLE pawl.audit (
    id integer PRIMARY KEY AUTOINCREMENT,
    at integer NOT NULL,
    actor text NOT NULL,
    act text NOT NULL,
    subject text NOT NULL,
    detail text
) STRICT;
CREATE INDEX pawl.audit_subject ON audit (subject, id);

-- --- for people and for SQL users ---

-- Plain names inside, so that the sqlite3 shell, where the file is called main, reads it.
CREATE VIEW pawl.request_view AS
SELECT r.id, r.job,
    CASE WHEN o.outcome IN ('COMPLETED', 'STOPPED') THEN 'DONE'
         WHEN o.outcome IS NOT NULL THEN 'FAILED'
         WHEN c.worker IS NOT NULL THEN 'RUNNING'
         ELSE 'QUEUED' END AS status,
    o.outcome, r.lane, r.priority, r.requester, r.source, r.given, r.estimate,
    r.attempt, r.retry_of, r.first_try, r.restart_of,
    strftime('%Y-%m-%dT%H:%M:%fZ', r.created_at / 1e6, 'unixepoch')
        AS created_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', r.not_before / 1e6, 'unixepoch')
        AS not_before,
    strftime('%Y-%m-%dT%H:%M:%fZ', r.expires_at / 1e6, 'unixepoch')
        AS expires_at,
    coalesce(o.worker, c.worker) AS worker,
    coalesce(o.token, c.token) AS token,
    strftime('%Y-%m-%dT%H:%M:%fZ', coalesce(o.claimed_at, c.claimed_at) / 1e6, 'unixepoch')
        AS claimed_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', o.finished_at / 1e6, 'unixepoch')
        AS finished_at,
    o.detail, o.execution_id,
    p.done, p.total, p.message,
    coalesce(f.stop, 0) AS stop_asked, coalesce(f.cancel, 0) AS cancel_asked,
    o.result_name, o.result_type, o.result_bytes, o.result_rows, o.result_sha256,
    strftime('%Y-%m-%dT%H:%M:%fZ', o.result_gone_at / 1e6, 'unixepoch')
        AS result_gone_at
FROM request r
LEFT JOIN outcome o ON o.id = r.id
LEFT JOIN claim c ON o.id IS NULL AND c.last_id >= r.id AND c.first_id =
    (SELECT first_id FROM claim WHERE first_id <= r.id ORDER BY first_id DESC LIMIT 1)
LEFT JOIN progress p ON p.request_id = r.id
LEFT JOIN flag f ON f.request_id = r.id;

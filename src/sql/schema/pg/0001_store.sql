-- The store on PostgreSQL: where the row of a request is, is its state.
-- Times are microseconds since 1970 UTC, truth values 0 and 1, JSON is text.
-- A migration that has landed is never changed: add the next number instead.

CREATE SCHEMA IF NOT EXISTS pawl;

-- The one clock of the store. Statements say pawl_now(), which SQLite knows as a
-- registered function; the one in public only leads there.
CREATE FUNCTION pawl.pawl_now() RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE
    AS $$ SELECT CAST(extract(epoch FROM statement_timestamp()) * 1000000 AS bigint) $$;
CREATE OR REPLACE FUNCTION public.pawl_now() RETURNS bigint
    LANGUAGE sql STABLE PARALLEL SAFE AS $$ SELECT pawl.pawl_now() $$;

-- Microseconds as a timestamp, for views.
CREATE FUNCTION pawl.at(us bigint) RETURNS timestamptz
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$ SELECT timestamptz '1970-01-01 00:00:00Z' + us * interval '1 microsecond' $$;

CREATE TABLE pawl.migration (
    number integer PRIMARY KEY,
    name text NOT NULL,
    applied_at bigint NOT NULL
);

CREATE TABLE pawl.store (
    singleton smallint PRIMARY KEY DEFAULT 1 CHECK (singleton = 1),
    store_id text NOT NULL,             -- 32 hex digits, made once
    created_at bigint NOT NULL
);

CREATE SEQUENCE pawl.request_id;
CREATE SEQUENCE pawl.ready_seq;
CREATE SEQUENCE pawl.token;

-- --- requests: written once ---

CREATE TABLE pawl.request (
    id bigint PRIMARY KEY,
    job text NOT NULL,
    given text NOT NULL,                -- parameters as the client gave them
    requester text NOT NULL,
    source text NOT NULL
        CHECK (source IN ('api', 'cli', 'sql', 'schedule', 'chain', 'retry')),
    lane text NOT NULL,
    priority smallint NOT NULL DEFAULT 0 CHECK (priority BETWEEN -100 AND 100),
    estimate bigint,
    not_before bigint,
    expires_at bigint,
    retry_of bigint,                    -- the try before this one
    first_try bigint,                   -- the first of the chain; NULL: this one
    attempt integer NOT NULL DEFAULT 1 CHECK (attempt >= 1),
    restart_of bigint,                  -- asked to go on with that request's work
    restart smallint CHECK (restart IN (0, 1)),
    max_calls bigint CHECK (max_calls >= 0),
    next text,
    created_at bigint NOT NULL
) PARTITION BY RANGE (id);
CREATE INDEX request_job ON pawl.request (job, id);
CREATE INDEX request_requester ON pawl.request (requester, id);
CREATE INDEX request_first_try ON pawl.request (first_try) WHERE first_try IS NOT NULL;

CREATE TABLE pawl.outcome (
    id bigint PRIMARY KEY,
    outcome text NOT NULL CHECK (outcome IN ('COMPLETED', 'STOPPED', 'ERROR', 'CANCELLED',
        'TIMEOUT', 'WORKER_LOST', 'EXPIRED', 'REFUSED')),
    worker text,
    token bigint,
    claimed_at bigint,
    finished_at bigint NOT NULL,
    detail text,
    execution_id bigint,
    result_path text,
    result_name text,
    result_type text,
    result_bytes bigint,
    result_rows bigint,
    result_sha256 text,
    result_gone_at bigint               -- removed by retention
) PARTITION BY RANGE (id);

-- Ranges of 2^24 ids. Rows that no range was opened for in time land here.
CREATE TABLE pawl.request_rest PARTITION OF pawl.request DEFAULT;
CREATE TABLE pawl.outcome_rest PARTITION OF pawl.outcome DEFAULT;

-- Keep two ranges open beyond the one in use; says how many it opened. Called by
-- migrate and by a chore of the worker.
CREATE FUNCTION pawl.open_ranges() RETURNS integer LANGUAGE plpgsql
    SET search_path = pg_catalog, pawl SET lock_timeout = '2s' AS $$
DECLARE
    size CONSTANT bigint := 16777216;
    current bigint;
    parent text;
    opened integer := 0;
BEGIN
    SELECT last_value / size INTO current FROM pawl.request_id;
    FOR n IN current .. current + 2 LOOP
        FOREACH parent IN ARRAY ARRAY['request', 'outcome'] LOOP
            CONTINUE WHEN to_regclass(format('pawl.%s_r%s', parent, n)) IS NOT NULL;
            BEGIN
                EXECUTE format('CREATE TABLE pawl.%1$s_r%2$s PARTITION OF pawl.%1$s '
                    'FOR VALUES FROM (%3$s) TO (%4$s)',
                    parent, n, n * size, (n + 1) * size);
                opened := opened + 1;
            EXCEPTION WHEN check_violation THEN
                NULL; -- rows of that range are in the rest already and stay there
            END;
        END LOOP;
    END LOOP;
    RETURN opened;
END $$;
SELECT pawl.open_ranges();

-- --- hot tables: as small as the work that is open now ---

CREATE TABLE pawl.later (
    first_id bigint PRIMARY KEY,
    last_id bigint NOT NULL,
    job text NOT NULL,
    lane text NOT NULL,
    priority smallint NOT NULL,
    not_before bigint,
    expires_at bigint,
    reason text NOT NULL CHECK (reason IN ('time', 'paused', 'key', 'after')),
    created_at bigint NOT NULL,
    CHECK (first_id <= last_id)
);
CREATE INDEX later_due ON pawl.later (not_before) WHERE not_before IS NOT NULL;
CREATE INDEX later_expires ON pawl.later (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX later_job ON pawl.later (job, first_id);

CREATE TABLE pawl.ready (
    first_id bigint PRIMARY KEY,
    last_id bigint NOT NULL,
    job text NOT NULL,
    lane text NOT NULL,
    priority smallint NOT NULL,
    seq bigint NOT NULL,                -- drawn on entry: the order within a priority
    ready_since bigint NOT NULL,
    expires_at bigint,
    CHECK (first_id <= last_id)
);
CREATE INDEX ready_claim ON pawl.ready (lane, priority DESC, seq);
CREATE INDEX ready_expires ON pawl.ready (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE pawl.claim (
    first_id bigint PRIMARY KEY,
    last_id bigint NOT NULL,
    job text NOT NULL,
    lane text NOT NULL,
    worker text NOT NULL,
    token bigint NOT NULL,
    nonce text NOT NULL,
    claimed_at bigint NOT NULL,
    CHECK (first_id <= last_id)
);
CREATE INDEX claim_worker ON pawl.claim (worker);

CREATE TABLE pawl.flag (
    request_id bigint PRIMARY KEY,
    stop smallint NOT NULL DEFAULT 0 CHECK (stop IN (0, 1)),
    cancel smallint NOT NULL DEFAULT 0 CHECK (cancel IN (0, 1)),
    asked_by text NOT NULL,
    asked_at bigint NOT NULL
) WITH (fillfactor = 70);

CREATE TABLE pawl.progress (
    request_id bigint PRIMARY KEY,
    done bigint NOT NULL DEFAULT 0,
    total bigint,
    message text,
    updated_at bigint NOT NULL
) WITH (fillfactor = 50);

-- Uniqueness is a row: 'job:' || job, or 'req:' || a digest.
CREATE TABLE pawl.active (
    key text PRIMARY KEY,
    request_id bigint NOT NULL
);
CREATE INDEX active_request ON pawl.active (request_id);

CREATE TABLE pawl.idempotency (
    subject text NOT NULL,
    job text NOT NULL,
    key text NOT NULL,
    digest text NOT NULL,               -- of the body
    request_id bigint NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (subject, job, key)
);
CREATE INDEX idempotency_age ON pawl.idempotency (created_at);

-- Rows come and go by the thousand: vacuum by count, not by share, and at once.
DO $$
DECLARE
    hot text;
BEGIN
    FOREACH hot IN ARRAY ARRAY['later', 'ready', 'claim', 'flag', 'progress', 'active'] LOOP
        EXECUTE format('ALTER TABLE pawl.%I SET (autovacuum_vacuum_scale_factor = 0, '
            'autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0, '
            'autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 20000)',
            hot);
    END LOOP;
END $$;

-- --- definitions, workers ---

CREATE TABLE pawl.job_definition (
    name text PRIMARY KEY,
    version bigint NOT NULL,            -- config_version: an older file never wins
    hash text NOT NULL,
    definition text NOT NULL,
    published_at bigint NOT NULL,
    withdrawn_at bigint
);

CREATE TABLE pawl.worker (
    id text PRIMARY KEY,                -- pid@hostname#128 random bits
    seat text NOT NULL,
    host text NOT NULL,
    pid bigint NOT NULL,
    boot_id text NOT NULL,
    started_at bigint NOT NULL,
    beat_at bigint NOT NULL,
    lanes text NOT NULL,                -- JSON: slots per lane
    in_use text NOT NULL,               -- JSON: slots taken per lane
    keys text NOT NULL,                 -- JSON: names of the keys held, never values
    jobs text NOT NULL,                 -- JSON: names of the jobs it has
    version text NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX worker_seat ON pawl.worker (seat);

-- --- batches ---

CREATE TABLE pawl.instance (
    id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    job text NOT NULL,
    number bigint NOT NULL,
    identity text NOT NULL,             -- canonical identifying parameters
    params text NOT NULL,
    UNIQUE (job, number)
);

CREATE TABLE pawl.execution (
    id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    instance_id bigint NOT NULL REFERENCES pawl.instance (id),
    job text NOT NULL,
    request_id bigint NOT NULL,
    token bigint NOT NULL,
    state text NOT NULL CHECK (state IN
        ('STARTING', 'STARTED', 'STOPPING', 'STOPPED', 'COMPLETED', 'FAILED')),
    params text NOT NULL,               -- effective: defaults filled in
    started_at bigint NOT NULL,
    ended_at bigint,                    -- none while the work has not really ended
    last_updated bigint NOT NULL,
    exit_message text,
    CHECK ((ended_at IS NULL) = (state IN ('STARTING', 'STARTED', 'STOPPING')))
);
CREATE UNIQUE INDEX execution_alive ON pawl.execution (instance_id)
    WHERE state IN ('STARTING', 'STARTED', 'STOPPING');
CREATE INDEX execution_alive_job ON pawl.execution (job)
    WHERE state IN ('STARTING', 'STARTED', 'STOPPING');
CREATE INDEX execution_instance ON pawl.execution (instance_id, id);
CREATE INDEX execution_job ON pawl.execution (job, id);
CREATE INDEX execution_request ON pawl.execution (request_id);

CREATE TABLE pawl.step_execution (
    id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    execution_id bigint NOT NULL REFERENCES pawl.execution (id),
    name text NOT NULL,
    ordinal integer NOT NULL,
    state text NOT NULL CHECK (state IN
        ('STARTING', 'STARTED', 'STOPPING', 'STOPPED', 'COMPLETED', 'FAILED')),
    effect text,                        -- transactional, file or at-least-once
    read_count bigint NOT NULL DEFAULT 0,
    write_count bigint NOT NULL DEFAULT 0,
    filter_count bigint NOT NULL DEFAULT 0,
    skip_count bigint NOT NULL DEFAULT 0,
    commits bigint NOT NULL DEFAULT 0,
    rollbacks bigint NOT NULL DEFAULT 0,
    chunk bigint NOT NULL DEFAULT 0,    -- the last one committed
    position text,                      -- of the reader after that chunk
    writer_state text,
    started_at bigint NOT NULL,
    ended_at bigint,
    last_updated bigint NOT NULL,
    exit_message text,
    UNIQUE (execution_id, name)
) WITH (fillfactor = 70);

-- --- acts of people and repairs ---

CREATE TABLE pawl.audit (
    id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    at bigint NOT NULL,
    actor text NOT NULL,
    act text NOT NULL,
    subject text NOT NULL,
    detail text
);
CREATE INDEX audit_subject ON pawl.audit (subject, id);

-- --- for people and for SQL users ---

CREATE VIEW pawl.request_view AS
SELECT r.id, r.job,
    CASE WHEN o.outcome IN ('COMPLETED', 'STOPPED') THEN 'DONE'
         WHEN o.outcome IS NOT NULL THEN 'FAILED'
         WHEN c.worker IS NOT NULL THEN 'RUNNING'
         ELSE 'QUEUED' END AS status,
    o.outcome, r.lane, r.priority, r.requester, r.source, r.given, r.estimate,
    r.attempt, r.retry_of, r.first_try, r.restart_of,
    pawl.at(r.created_at) AS created_at,
    pawl.at(r.not_before) AS not_before,
    pawl.at(r.expires_at) AS expires_at,
    coalesce(o.worker, c.worker) AS worker,
    coalesce(o.token, c.token) AS token,
    pawl.at(coalesce(o.claimed_at, c.claimed_at)) AS claimed_at,
    pawl.at(o.finished_at) AS finished_at,
    o.detail, o.execution_id,
    p.done, p.total, p.message,
    coalesce(f.stop, 0) AS stop_asked, coalesce(f.cancel, 0) AS cancel_asked,
    o.result_name, o.result_type, o.result_bytes, o.result_rows, o.result_sha256,
    pawl.at(o.result_gone_at) AS result_gone_at
FROM pawl.request r
LEFT JOIN pawl.outcome o ON o.id = r.id
LEFT JOIN LATERAL (
    SELECT * FROM (SELECT * FROM pawl.claim WHERE first_id <= r.id
                   ORDER BY first_id DESC LIMIT 1) s
    WHERE s.last_id >= r.id) c ON o.id IS NULL
LEFT JOIN pawl.progress p ON p.request_id = r.id
LEFT JOIN pawl.flag f ON f.request_id = r.id;

-- Backfills: one group of requests for all values of some parameters. And the words for
-- where a request comes from become two more: SQLite changes a CHECK by a new table.
DROP VIEW pawl.request_view;
CREATE TABLE pawl.request_new (
    id integer PRIMARY KEY,
    job text NOT NULL,
    given text NOT NULL,                -- parameters as the client gave them
    requester text NOT NULL,
    source text NOT NULL
        CHECK (source IN ('api', 'cli', 'sql', 'schedule', 'chain', 'retry', 'backfill',
            'partition')),
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
INSERT INTO pawl.request_new SELECT * FROM pawl.request;
DROP TABLE pawl.request;
ALTER TABLE pawl.request_new RENAME TO request;
CREATE INDEX pawl.request_job ON request (job, id);
CREATE INDEX pawl.request_requester ON request (requester, id);
CREATE INDEX pawl.request_first_try ON request (first_try) WHERE first_try IS NOT NULL;
-- Those that the end of may let something in: most have nothing of the kind.
CREATE INDEX pawl.request_next ON request (id)
    WHERE next IS NOT NULL OR source = 'backfill';

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

CREATE TABLE pawl.backfill (
    id integer PRIMARY KEY,
    job text NOT NULL,
    requester text NOT NULL,
    given text NOT NULL,                -- JSON: what was asked, before it was spread out
    priority integer NOT NULL,
    parallel integer NOT NULL CHECK (parallel >= 1),
    hold_on_failure integer NOT NULL,
    total integer NOT NULL,             -- items, without those passed over
    passed_over integer NOT NULL,
    next_n integer NOT NULL,            -- the first item that was not let in yet
    open integer NOT NULL,              -- let in, and not ended
    state text NOT NULL CHECK (state IN ('RUNNING', 'HELD', 'CANCELLED', 'DONE')),
    why text,                           -- HELD or CANCELLED: by whom or what
    created_at integer NOT NULL,
    ended_at integer
) STRICT;

CREATE TABLE pawl.backfill_item (
    backfill_id integer NOT NULL,
    n integer NOT NULL,                 -- from 1
    given text NOT NULL,                -- JSON: the parameters of this one
    state text NOT NULL CHECK (state IN ('WAITING', 'OPEN', 'COMPLETED', 'STOPPED',
        'FAILED', 'CANCELLED')),
    request_id integer,                 -- of its last try
    detail text,
    ended_at integer,
    PRIMARY KEY (backfill_id, n)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX pawl.backfill_item_request ON backfill_item (request_id)
    WHERE request_id IS NOT NULL;

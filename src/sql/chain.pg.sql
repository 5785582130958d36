-- Where PostgreSQL differs: arrays and locks.

-- name: chain_look (ids bigint[], done text[], failed text[]) -> (kind bigint, id bigint,
-- other bigint, text text, name text)
-- What may follow these requests, by one question: 1 their own next (other 1:
-- items of a backfill), 2 who waits for them, 3 what was asked of them (bit 1 stop, bit 2
-- cancel), 4 the definitions of the jobs that were done, if they have a next or a webhook,
-- and of those that failed (bit 1 withdrawn, bit 2 has a webhook).
SELECT CAST(1 AS bigint) AS kind, r.id,
    CASE WHEN r.source = 'backfill' THEN CAST(1 AS bigint) ELSE CAST(0 AS bigint) END AS other,
    r.next AS text, CAST(NULL AS text) AS name
FROM pawl.request r
WHERE r.id = ANY (CAST($1 AS bigint[])) AND (r.next IS NOT NULL OR r.source = 'backfill')
UNION ALL
SELECT 2, w.after_id, w.request_id, NULL, NULL
FROM pawl.wait w WHERE w.after_id = ANY (CAST($1 AS bigint[]))
UNION ALL
SELECT 3, f.request_id, f.stop + 2 * f.cancel, NULL, NULL
FROM pawl.flag f WHERE f.request_id = ANY (CAST($1 AS bigint[]))
UNION ALL
SELECT 4, 0, CASE WHEN d.withdrawn_at IS NULL THEN 0 ELSE 1 END
        + CASE WHEN CAST(d.definition AS jsonb) ? 'webhook' THEN 2 ELSE 0 END,
    d.definition, d.name
FROM pawl.job_definition d
WHERE d.name = ANY (CAST($2 AS text[])) AND jsonb_path_exists(
    CAST(d.definition AS jsonb), '$ ? (exists (@.next[0]) || exists (@.webhook))')
UNION ALL
SELECT 4, 0, CASE WHEN e.withdrawn_at IS NULL THEN 0 ELSE 1 END
        + CASE WHEN CAST(e.definition AS jsonb) ? 'webhook' THEN 2 ELSE 0 END,
    e.definition, e.name
FROM pawl.job_definition e
WHERE e.name = ANY (CAST($3 AS text[]));

-- name: chain_requests (ids bigint[]) -> (id bigint, job text, given text,
-- requester text, source text, lane text, priority bigint, estimate bigint,
-- not_before bigint, expires_at bigint, retry_of bigint, first_try bigint,
-- attempt bigint, restart_of bigint, restart bigint, max_calls bigint, next text,
-- created_at bigint)
SELECT id, job, given, requester, source, lane, priority, estimate, not_before,
    expires_at, retry_of, first_try, attempt, restart_of, restart, max_calls, next,
    created_at
FROM pawl.request WHERE id = ANY (CAST($1 AS bigint[])) ORDER BY id;

-- name: chain_try_lock (key text) -> (got bigint)
-- A submit that has this lock may wait for us, so we do not wait for it.
SELECT CASE WHEN pg_try_advisory_xact_lock(hashtextextended($1, 0))
            THEN CAST(1 AS bigint) ELSE CAST(0 AS bigint) END AS got;

-- name: chain_wait_lock (ids bigint[]) -> (first_id bigint, job text, lane text,
-- priority bigint, not_before bigint, expires_at bigint)
-- Two that finish at once meet here: the second one sees what the first has written.
SELECT first_id, job, lane, CAST(priority AS bigint) AS priority, not_before, expires_at
FROM pawl.later WHERE first_id = ANY (CAST($1 AS bigint[])) AND reason = 'after'
ORDER BY first_id FOR UPDATE;

-- name: chain_wait_done (after_ids bigint[])
DELETE FROM pawl.wait WHERE after_id = ANY (CAST($1 AS bigint[]));

-- name: chain_wait_open (ids bigint[]) -> (request_id bigint)
SELECT DISTINCT request_id FROM pawl.wait WHERE request_id = ANY (CAST($1 AS bigint[]));

-- name: chain_later_hold (id bigint) -> (first_id bigint)
-- Nobody moves it on before this transaction ends.
SELECT first_id FROM pawl.later
WHERE first_id = (SELECT l.first_id FROM pawl.later l WHERE l.first_id <= $1
                  ORDER BY l.first_id DESC LIMIT 1)
  AND last_id >= $1
FOR KEY SHARE;

-- name: chain_ready_hold (id bigint) -> (first_id bigint)
SELECT first_id FROM pawl.ready
WHERE first_id = (SELECT y.first_id FROM pawl.ready y WHERE y.first_id <= $1
                  ORDER BY y.first_id DESC LIMIT 1)
  AND last_id >= $1
FOR KEY SHARE;

-- name: chain_keys_due (most bigint) -> (first_id bigint, job text, lane text,
-- priority bigint, expires_at bigint, now bigint, patient bigint)
-- Those that only wait for the key of their job. patient: as long as it takes.
SELECT first_id, job, lane, CAST(priority AS bigint) AS priority, expires_at,
    pawl_now() AS now,
    (SELECT CAST(count(*) AS bigint) FROM pawl.request r
     WHERE r.id = first_id AND r.source = 'backfill') AS patient
FROM pawl.later
WHERE not_before <= pawl_now() AND reason = 'key'
  AND (expires_at IS NULL OR expires_at > pawl_now())
ORDER BY not_before, first_id LIMIT $1 FOR UPDATE SKIP LOCKED;

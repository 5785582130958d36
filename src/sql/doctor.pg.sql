-- PostgreSQL's settings and sessions.

-- name: doctor_settings () -> (version text, fsync text, full_page_writes text,
-- synchronous_commit text, statement_timeout text, lock_timeout text,
-- idle_timeout text, isolation text, recovery bigint)
SELECT current_setting('server_version') AS version, current_setting('fsync') AS fsync,
    current_setting('full_page_writes') AS full_page_writes,
    current_setting('synchronous_commit') AS synchronous_commit,
    current_setting('statement_timeout') AS statement_timeout,
    current_setting('lock_timeout') AS lock_timeout,
    current_setting('idle_in_transaction_session_timeout') AS idle_timeout,
    current_setting('default_transaction_isolation') AS isolation,
    CAST(pg_is_in_recovery() AS integer) AS recovery;

-- name: doctor_rights () -> (role text, superuser bigint, owner bigint)
SELECT CAST(current_user AS text) AS role,
    (SELECT CAST(rolsuper AS integer) FROM pg_roles WHERE rolname = current_user) AS superuser,
    (SELECT CAST(pg_has_role(nspowner, 'USAGE') AS integer) FROM pg_namespace
     WHERE nspname = 'pawl') AS owner;

-- name: doctor_oldest () -> (pid bigint, app text, state text, age bigint)
-- The transaction that keeps vacuum from the rows that come and go. Of other roles
-- only what the server shows to this one.
SELECT pid, application_name AS app, coalesce(state, '') AS state,
    CAST(extract(epoch FROM statement_timestamp() - xact_start) * 1000000 AS bigint) AS age
FROM pg_stat_activity
WHERE backend_xmin IS NOT NULL AND xact_start IS NOT NULL AND pid <> pg_backend_pid()
  AND datname = current_database()
ORDER BY xact_start LIMIT 1;

-- name: doctor_sessions () -> (used bigint, most bigint)
SELECT (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend') AS used,
    CAST(current_setting('max_connections') AS bigint) AS most;

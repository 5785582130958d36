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

-- name: doctor_rights (model text) -> (role text, superuser bigint, owner bigint,
-- powers bigint, planned bigint, open_public bigint, missing text, ungranted text)
-- Who we are against the role that this process is meant to be ($1): what that one may
-- and we may not, and which tables it was not given (of a newer schema). powers: may make
-- roles or databases, replicate, or pass by policies. Both texts NULL: nothing, or the
-- role is not there.
WITH model AS (SELECT oid FROM pg_roles WHERE rolname = $1),
acl AS (
    SELECT c.oid, c.relname, c.relkind, CAST(NULL AS name) AS attname,
        CAST(NULL AS smallint) AS attnum, a.privilege_type
    FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a JOIN model ON model.oid = a.grantee
    WHERE c.relnamespace = to_regnamespace('pawl')
    UNION ALL
    SELECT c.oid, c.relname, c.relkind, t.attname, t.attnum, a.privilege_type
    FROM pg_class c JOIN pg_attribute t ON t.attrelid = c.oid
    CROSS JOIN LATERAL aclexplode(t.attacl) a JOIN model ON model.oid = a.grantee
    WHERE c.relnamespace = to_regnamespace('pawl')
)
SELECT CAST(m.rolname AS text) AS role, CAST(m.rolsuper AS integer) AS superuser,
    CAST(coalesce((SELECT pg_has_role(n.nspowner, 'USAGE') FROM pg_namespace n
                   WHERE n.nspname = 'pawl'), false) AS integer) AS owner,
    CAST(m.rolcreaterole OR m.rolcreatedb OR m.rolreplication OR m.rolbypassrls
         AS integer) AS powers,
    CAST(current_setting('plan_cache_mode') = 'force_generic_plan'
         AND current_setting('enable_seqscan') = 'off' AS integer) AS planned,
    CAST(EXISTS (SELECT FROM pg_namespace n CROSS JOIN LATERAL aclexplode(n.nspacl) a
                 WHERE n.nspname = 'public' AND a.grantee = 0
                   AND a.privilege_type = 'CREATE') AS integer) AS open_public,
    (SELECT string_agg(DISTINCT lower(acl.privilege_type) || ' on ' || acl.relname, ', ')
     FROM acl
     WHERE NOT CASE
         WHEN acl.attnum IS NOT NULL
             THEN has_column_privilege(acl.oid, acl.attnum, acl.privilege_type)
         WHEN acl.relkind = 'S' THEN has_sequence_privilege(acl.oid, acl.privilege_type)
         ELSE has_table_privilege(acl.oid, acl.privilege_type) END) AS missing,
    (SELECT string_agg(c.relname, ', ' ORDER BY c.relname)
     FROM pg_class c CROSS JOIN model
     WHERE c.relnamespace = to_regnamespace('pawl') AND NOT c.relispartition
       AND c.relkind IN ('r', 'p', 'v')
       AND NOT has_any_column_privilege(model.oid, c.oid, 'SELECT')) AS ungranted
FROM pg_roles m WHERE m.rolname = current_user;

-- name: doctor_oldest () -> (pid bigint, app text, state text, age bigint)
-- It keeps its locks, and may keep vacuum from the rows that come and go. Of other
-- roles only what the server shows to this one.
SELECT pid, application_name AS app, coalesce(state, '') AS state,
    CAST(extract(epoch FROM statement_timestamp() - xact_start) * 1000000 AS bigint) AS age
FROM pg_stat_activity
WHERE xact_start IS NOT NULL AND pid <> pg_backend_pid()
  AND backend_type = 'client backend' AND datname = current_database()
ORDER BY xact_start LIMIT 1;

-- name: doctor_sessions () -> (used bigint, most bigint)
SELECT (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend') AS used,
    CAST(current_setting('max_connections') AS bigint) AS most;

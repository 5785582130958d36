-- Settings of the roles in this database, so that they hold behind a pooler too, where a
-- session cannot set them. What an administrator has set stays. A role that is a member
-- of one of these does not inherit its settings, so it gets them too.
DO $$
DECLARE
    r record;
    s record;
BEGIN
    FOR s IN SELECT * FROM (VALUES
        ('{pawl_api,pawl_worker}', 'synchronous_commit', 'on'),
        ('{pawl_api,pawl_worker}', 'default_transaction_isolation', 'read committed'),
        -- The statements are few and each has its index: to plan them anew for each
        -- parameter costs several times what they cost.
        ('{pawl_api,pawl_worker}', 'plan_cache_mode', 'force_generic_plan'),
        -- The claim must not walk dead rows because a table was small when analysed.
        ('{pawl_worker}', 'enable_seqscan', 'off'),
        -- A table that has to be read whole costs a worker's planner a fortune, which is
        -- no reason to compile the query.
        ('{pawl_api,pawl_worker,pawl_reader}', 'jit', 'off'),
        -- Built-in names first, temporary tables last, nothing that is called like the
        -- role. public, for what steps of `database: main` use.
        ('{pawl_api,pawl_worker,pawl_reader}', 'search_path', 'pg_catalog, public, pg_temp'),
        -- Longer than pawl itself waits, so that its own messages come first. A worker's
        -- statement may be an export of `database: main`, which takes as long as it
        -- takes, and its transaction waits while a chunk is written.
        ('{pawl_api,pawl_reader}', 'statement_timeout', '60s'),
        ('{pawl_api,pawl_worker,pawl_reader}', 'lock_timeout', '30s'),
        ('{pawl_api,pawl_reader}', 'idle_in_transaction_session_timeout', '120s'),
        ('{pawl_worker}', 'idle_in_transaction_session_timeout', '1h')
    ) AS settings (groups, name, value) LOOP
        FOR r IN SELECT DISTINCT m.oid, m.rolname
                 FROM pg_catalog.pg_roles g
                 LEFT JOIN pg_catalog.pg_auth_members a ON a.roleid = g.oid
                 JOIN pg_catalog.pg_roles m ON m.oid IN (g.oid, a.member)
                 WHERE g.rolname = ANY (s.groups::text[]) AND m.rolcanlogin
                   AND NOT m.rolsuper
                   -- what binds the others does not bind who is a worker as well
                   AND (s.groups::text[] @> '{pawl_worker}' OR NOT EXISTS (
                       SELECT FROM pg_catalog.pg_auth_members w
                       WHERE w.member = m.oid AND w.roleid = (
                           SELECT oid FROM pg_catalog.pg_roles
                           WHERE rolname = 'pawl_worker'))) LOOP
            CONTINUE WHEN EXISTS (
                SELECT FROM pg_catalog.pg_db_role_setting d,
                    pg_catalog.unnest(d.setconfig) c
                WHERE d.setrole = r.oid AND c LIKE s.name || '=%'
                  AND d.setdatabase = (SELECT oid FROM pg_catalog.pg_database
                                       WHERE datname = pg_catalog.current_database()));
            BEGIN
                EXECUTE format('ALTER ROLE %I IN DATABASE %I SET %s = %s', r.rolname,
                    pg_catalog.current_database(), s.name,
                    CASE s.name WHEN 'search_path' THEN s.value
                                ELSE quote_literal(s.value) END);
            EXCEPTION WHEN insufficient_privilege THEN
                NULL; -- not ours to set; pawl doctor tells
            END;
        END LOOP;
    END LOOP;
END $$;

-- The schema goes to pawl_owner if it is ours to give: what another role owns stays
-- with it, since its processes may live by that, and so does what we may not give away.
-- Where there is no store yet, pawl_owner gets what it needs to make one.
DO $$
DECLARE
    r record;
BEGIN
    IF pg_catalog.to_regnamespace('pawl') IS NULL THEN
        EXECUTE format('GRANT CREATE ON DATABASE %I TO pawl_owner',
            pg_catalog.current_database());
        GRANT USAGE, CREATE ON SCHEMA public TO pawl_owner;
        RETURN;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_namespace n
                   JOIN pg_catalog.pg_roles o ON o.oid = n.nspowner
                   WHERE n.nspname = 'pawl' AND o.rolname = current_user) THEN
        RETURN;
    END IF;
    -- Who gives it away goes on migrating; an administrator may anyway.
    IF NOT pg_catalog.pg_has_role(current_user, 'pawl_owner', 'USAGE') THEN
        EXECUTE format('GRANT pawl_owner TO %I', current_user);
    END IF;
    EXECUTE format('GRANT CREATE ON DATABASE %I TO pawl_owner',
        pg_catalog.current_database());
    ALTER SCHEMA pawl OWNER TO pawl_owner;
    -- Indexes, and the sequences of identity columns, go with their tables.
    FOR r IN SELECT c.oid::pg_catalog.regclass AS name,
                 CASE c.relkind WHEN 'v' THEN 'VIEW' WHEN 'S' THEN 'SEQUENCE'
                      ELSE 'TABLE' END AS kind
             FROM pg_catalog.pg_class c
             WHERE c.relnamespace = pg_catalog.to_regnamespace('pawl')
               AND c.relkind IN ('r', 'p', 'v', 'S')
               AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d
                               WHERE d.objid = c.oid AND d.deptype = 'i'
                                 AND c.relkind = 'S') LOOP
        EXECUTE format('ALTER %s %s OWNER TO pawl_owner', r.kind, r.name);
    END LOOP;
    FOR r IN SELECT p.oid::pg_catalog.regprocedure AS name FROM pg_catalog.pg_proc p
             WHERE p.pronamespace = pg_catalog.to_regnamespace('pawl') LOOP
        EXECUTE format('ALTER ROUTINE %s OWNER TO pawl_owner', r.name);
    END LOOP;
EXCEPTION WHEN insufficient_privilege THEN
    NULL;
END $$;

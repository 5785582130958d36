-- Last, where api and worker have roles of their own (docs/postgresql.md): the worker
-- works on the tables, the api only counts what is pending.
DO $$
DECLARE
    name text;
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'pawl_worker') THEN
        RETURN;
    END IF;
    FOR name IN SELECT oid::regclass::text FROM pg_class
                WHERE relkind IN ('r', 'v') AND relname LIKE 'br\_%' LOOP
        EXECUTE 'GRANT SELECT, INSERT, UPDATE, DELETE ON ' || name || ' TO pawl_worker';
        EXECUTE 'GRANT SELECT ON ' || name || ' TO pawl_api';
    END LOOP;
END $$;

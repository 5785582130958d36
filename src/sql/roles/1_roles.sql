-- Roles belong to the cluster, so another store may have made them, or be making them
-- now. None has a password: until it is given one, or pg_hba.conf another way, nobody
-- comes in by it.
DO $$
DECLARE
    r record;
BEGIN
    FOR r IN SELECT * FROM (VALUES
        ('pawl_owner', 'NOLOGIN'),      -- owns the schema, migrates
        ('pawl_api', 'LOGIN'),
        ('pawl_worker', 'LOGIN'),
        ('pawl_reader', 'LOGIN'),
        ('pawl_submit', 'NOLOGIN')      -- pawl.submit, for the roles of applications
    ) AS roles (name, may_log_in) LOOP
        CONTINUE WHEN EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = r.name);
        BEGIN
            EXECUTE format('CREATE ROLE %I %s NOSUPERUSER NOCREATEDB NOCREATEROLE '
                'NOREPLICATION', r.name, r.may_log_in);
        EXCEPTION WHEN duplicate_object OR unique_violation THEN
            NULL;
        END;
    END LOOP;
END $$;

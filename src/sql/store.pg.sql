-- name: store_has_migrations () -> (there bigint)
SELECT CAST(to_regclass('pawl.migration') IS NOT NULL AS integer) AS there;

-- name: store_migration_lock ()
-- One migrates at a time; the lock goes with the transaction.
SELECT pg_advisory_xact_lock(hashtextextended('pawl.migrate', 0));

-- name: store_open_ranges () -> (opened bigint)
SELECT pawl.open_ranges() AS opened;

-- name: store_notify (payload text, channels text[])
SELECT pg_notify(channel, $1) FROM unnest(CAST($2 AS text[])) AS channel;

-- name: store_act_as_owner () -> (role text)
-- What a migration makes belongs to pawl_owner where the schema does, or where a role
-- that may make nothing itself is to make the first. For this transaction only.
SELECT set_config('role', 'pawl_owner', true) AS role
FROM pg_roles o
WHERE o.rolname = 'pawl_owner' AND pg_has_role(current_user, o.oid, 'MEMBER')
  AND CASE WHEN to_regnamespace('pawl') IS NULL
           THEN NOT (SELECT m.rolsuper FROM pg_roles m WHERE m.rolname = current_user)
                AND has_database_privilege(o.oid, current_database(), 'CREATE')
                AND has_schema_privilege(o.oid, 'public', 'CREATE')
           ELSE o.oid = (SELECT n.nspowner FROM pg_namespace n WHERE n.nspname = 'pawl')
      END;

-- name: store_may_migrate () -> (may bigint)
-- There is no schema yet, or it is ours.
SELECT CAST(coalesce((SELECT pg_has_role(n.nspowner, 'USAGE') FROM pg_namespace n
                      WHERE n.nspname = 'pawl'), true) AS integer) AS may;

-- name: store_roles () -> (missing bigint, may_make bigint, owns bigint)
-- How many of the roles are missing, and what we may do about them.
SELECT 5 - (SELECT count(*) FROM pg_roles WHERE rolname IN ('pawl_owner', 'pawl_api',
        'pawl_worker', 'pawl_reader', 'pawl_submit')) AS missing,
    CAST(m.rolsuper OR m.rolcreaterole AS integer) AS may_make,
    CAST(coalesce((SELECT pg_has_role(n.nspowner, 'USAGE') FROM pg_namespace n
                   WHERE n.nspname = 'pawl'), false) AS integer) AS owns
FROM pg_roles m WHERE m.rolname = current_user;

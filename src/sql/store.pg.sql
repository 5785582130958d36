-- name: store_has_migrations () -> (there bigint)
SELECT CAST(to_regclass('pawl.migration') IS NOT NULL AS integer) AS there;

-- name: store_migration_lock ()
-- One migrates at a time; the lock goes with the transaction.
SELECT pg_advisory_xact_lock(hashtextextended('pawl.migrate', 0));

-- name: store_open_ranges () -> (opened bigint)
SELECT pawl.open_ranges() AS opened;

-- name: store_notify (payload text, channels text[])
SELECT pg_notify(channel, $1) FROM unnest(CAST($2 AS text[])) AS channel;

-- The store's own statements: audit, identity, migrations.

-- name: store_audit (actor text, act text, subject text, detail text)
INSERT INTO pawl.audit (at, actor, act, subject, detail)
VALUES (pawl_now(), $1, $2, $3, $4);

-- name: store_now () -> (now bigint)
SELECT pawl_now() AS now;

-- name: store_identity () -> (store_id text, created_at bigint)
SELECT store_id, created_at FROM pawl.store;

-- name: store_identity_make (store_id text)
-- The first one stays.
INSERT INTO pawl.store (singleton, store_id, created_at) VALUES (1, $1, pawl_now())
ON CONFLICT (singleton) DO NOTHING;

-- name: store_migration_newest () -> (number bigint, name text)
SELECT number, name FROM pawl.migration ORDER BY number DESC LIMIT 1;

-- name: store_migration_done (number bigint, name text)
INSERT INTO pawl.migration (number, name, applied_at) VALUES ($1, $2, pawl_now());

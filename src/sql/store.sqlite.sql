-- name: store_has_migrations () -> (there bigint)
SELECT count(*) AS there FROM pawl.sqlite_schema WHERE name = 'migration';

-- Where PostgreSQL differs: many claim at once.

-- name: pause_settle () -> (settled bigint)
SELECT CASE WHEN pawl.claims_settled() THEN CAST(1 AS bigint) ELSE CAST(0 AS bigint) END
    AS settled;

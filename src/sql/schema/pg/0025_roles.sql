-- What a role does with the owner's rights, instead of having them. Who may call what
-- stands in src/sql/roles/3_grants.sql.

-- A range is a table, and who makes it owns it.
ALTER FUNCTION pawl.open_ranges() SECURITY DEFINER;
ALTER FUNCTION pawl.open_ranges() SET search_path = pg_catalog, pg_temp;

-- The claim that holds this request cannot end before this transaction does. A row is
-- locked by those who may change it, and an api may not change claims.
CREATE FUNCTION pawl.hold_running(id bigint) RETURNS SETOF bigint
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT first_id FROM pawl.claim
    WHERE first_id = (SELECT c.first_id FROM pawl.claim c WHERE c.first_id <= hold_running.id
                      ORDER BY c.first_id DESC LIMIT 1)
      AND last_id >= hold_running.id
    FOR KEY SHARE
$$;

REVOKE ALL ON FUNCTION pawl.open_ranges, pawl.hold_running FROM PUBLIC;

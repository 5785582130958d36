-- Jobs and lanes that are paused: what waits of them stays where it is and is not
-- claimed. Nearly always empty, and read by every claim.
CREATE TABLE pawl.paused (
    kind text NOT NULL CHECK (kind IN ('job', 'lane')),
    name text NOT NULL,
    paused_by text NOT NULL,
    paused_at bigint NOT NULL,
    PRIMARY KEY (kind, name)
);

-- True when every claim that was under way at the call has ended: what is claimed from
-- now on has seen what was committed before the call. A claim locks its table before it
-- looks at the rows, so whoever gets past this lock looks later. The lock is let go at
-- once; false if somebody kept a claim or a finish open for longer than the timeout.
CREATE FUNCTION pawl.claims_settled() RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET lock_timeout = '2s' AS $$
BEGIN
    LOCK TABLE pawl.claim IN SHARE MODE;
    RAISE EXCEPTION USING ERRCODE = 'PW000'; -- gives the lock back
EXCEPTION
    WHEN SQLSTATE 'PW000' THEN
        RETURN true;
    WHEN lock_not_available THEN
        RETURN false;
END $$;

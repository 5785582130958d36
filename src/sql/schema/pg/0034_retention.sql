-- What is removed when its time is over. The rows of results stay and say since when the
-- file is gone; a worker may change nothing else of an outcome, and forget no young key.
CREATE INDEX outcome_result ON pawl.outcome (finished_at)
    WHERE result_path IS NOT NULL AND result_gone_at IS NULL;

CREATE FUNCTION pawl.results_gone(ids bigint[]) RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    WITH gone AS (UPDATE pawl.outcome SET result_gone_at = pawl.pawl_now()
        WHERE id = ANY (ids) AND result_path IS NOT NULL AND result_gone_at IS NULL
        RETURNING id)
    SELECT count(*) FROM gone
$$;

CREATE FUNCTION pawl.keys_gone(age bigint, most bigint) RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    WITH gone AS (DELETE FROM pawl.idempotency WHERE (subject, job, key) IN (
            SELECT i.subject, i.job, i.key FROM pawl.idempotency i
            WHERE i.created_at < pawl.pawl_now() - greatest(age, 60000000)
            ORDER BY i.created_at LIMIT most)
        RETURNING key)
    SELECT count(*) FROM gone
$$;
REVOKE ALL ON FUNCTION pawl.results_gone, pawl.keys_gone FROM PUBLIC;

CREATE INDEX request_restart_of ON pawl.request (restart_of) WHERE restart_of IS NOT NULL;

-- Since when nothing needs this request any more. All that is one with it counts: its
-- tries, those who carried out the same instance or ask to go on with it. NULL while one
-- of them has not ended, has a result that is kept, is waited for, is named by a schedule
-- or a backfill, helps one that runs, or was of the last instance of its job, which the
-- next request may go on with. OFFSET 0: each is looked up by itself, whatever the
-- statistics say.
CREATE FUNCTION pawl.spent_since(request_id bigint) RETURNS bigint
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
    SELECT CASE WHEN count(*) = count(o.finished_at) AND NOT bool_or(
            o.result_path IS NOT NULL AND o.result_gone_at IS NULL
            OR EXISTS (SELECT FROM pawl.wait w WHERE w.after_id = one.id)
            OR EXISTS (SELECT FROM pawl.schedule_slot s WHERE s.request_id = one.id)
            OR EXISTS (SELECT FROM pawl.backfill_item b WHERE b.request_id = one.id)
            OR EXISTS (SELECT FROM pawl.hand h JOIN pawl.request p ON p.id = h.parent_id
                WHERE h.request_id = one.id
                    AND NOT EXISTS (SELECT FROM pawl.outcome po WHERE po.id = p.id))
            OR EXISTS (SELECT FROM pawl.execution le
                JOIN pawl.instance i ON i.id = le.instance_id
                WHERE le.request_id = one.id AND NOT EXISTS (SELECT FROM pawl.instance i2
                    WHERE i2.job = i.job AND i2.number > i.number)))
        THEN max(o.finished_at) END
    FROM pawl.request r
    CROSS JOIN LATERAL (SELECT r.id AS id
        UNION SELECT t.id FROM pawl.request t WHERE t.id = r.first_try
        UNION SELECT t.id FROM pawl.request t WHERE t.first_try = coalesce(r.first_try, r.id)
        UNION SELECT t.id FROM pawl.request t WHERE t.restart_of = r.id
        UNION SELECT e2.request_id FROM pawl.execution e
            JOIN pawl.execution e2 ON e2.instance_id = e.instance_id
            WHERE e.request_id = r.id
        UNION SELECT t.id FROM pawl.execution e
            JOIN pawl.execution e2 ON e2.instance_id = e.instance_id
            JOIN pawl.request t ON t.restart_of = e2.request_id
            WHERE e.request_id = r.id) one
    LEFT JOIN LATERAL (SELECT o.finished_at, o.result_path, o.result_gone_at
        FROM pawl.outcome o WHERE o.id = one.id OFFSET 0) o ON true
    WHERE r.id = spent_since.request_id
$$;

-- History is the owner's to remove, and nothing that is younger than an hour.
CREATE FUNCTION pawl.requests_gone(ids bigint[], age bigint) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off SET enable_hashjoin = off SET jit = off AS $$
DECLARE
    spent bigint[] := ARRAY(SELECT i FROM unnest(ids) i
        WHERE pawl.spent_since(i) < pawl.pawl_now() - greatest(age, 3600000000));
    ended bigint[] := ARRAY(SELECT e.id FROM pawl.execution e
        WHERE e.request_id = ANY (spent));
    instances bigint[] := ARRAY(SELECT DISTINCT e.instance_id FROM pawl.execution e
        WHERE e.request_id = ANY (spent));
BEGIN
    DELETE FROM pawl.step_skip WHERE request_id = ANY (spent);
    DELETE FROM pawl.request_calls WHERE request_id = ANY (spent);
    DELETE FROM pawl.hand WHERE request_id = ANY (spent);
    DELETE FROM pawl.step_execution WHERE execution_id = ANY (ended);
    DELETE FROM pawl.execution WHERE id = ANY (ended);
    instances := ARRAY(SELECT i.id FROM pawl.instance i WHERE i.id = ANY (instances)
        AND NOT EXISTS (SELECT FROM pawl.execution e WHERE e.instance_id = i.id));
    DELETE FROM pawl.step_partition WHERE instance_id = ANY (instances);
    DELETE FROM pawl.instance WHERE id = ANY (instances);
    DELETE FROM pawl.outcome WHERE id = ANY (spent);
    DELETE FROM pawl.request WHERE id = ANY (spent);
    RETURN cardinality(spent);
END $$;

-- Times of schedules but the last of each, acts, backfills that have ended: a page.
CREATE FUNCTION pawl.records_gone(age bigint, most bigint) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off SET enable_hashjoin = off SET jit = off AS $$
DECLARE
    cutoff bigint := pawl.pawl_now() - greatest(age, 3600000000);
    gone bigint;
    total bigint;
BEGIN
    DELETE FROM pawl.schedule_slot WHERE (schedule, slot_time) IN (
        SELECT s.schedule, s.slot_time FROM pawl.schedule_slot s
        WHERE s.last_time < cutoff AND EXISTS (SELECT FROM pawl.schedule_slot s2
            WHERE s2.schedule = s.schedule AND s2.slot_time > s.slot_time)
        ORDER BY s.schedule, s.slot_time LIMIT most);
    GET DIAGNOSTICS total = ROW_COUNT;
    DELETE FROM pawl.audit WHERE id IN (SELECT a.id FROM (
        SELECT id, at FROM pawl.audit ORDER BY id LIMIT most) a WHERE a.at < cutoff);
    GET DIAGNOSTICS gone = ROW_COUNT;
    total := greatest(total, gone);
    DELETE FROM pawl.backfill_item WHERE (backfill_id, backfill_item.n) IN (
        SELECT i.backfill_id, i.n FROM pawl.backfill b
        JOIN pawl.backfill_item i ON i.backfill_id = b.id
        WHERE b.ended_at < cutoff ORDER BY i.backfill_id, i.n LIMIT most);
    GET DIAGNOSTICS gone = ROW_COUNT;
    total := greatest(total, gone);
    DELETE FROM pawl.backfill b WHERE b.ended_at < cutoff
        AND NOT EXISTS (SELECT FROM pawl.backfill_item i WHERE i.backfill_id = b.id);
    RETURN total;
END $$;
REVOKE ALL ON FUNCTION pawl.spent_since, pawl.requests_gone, pawl.records_gone FROM PUBLIC;

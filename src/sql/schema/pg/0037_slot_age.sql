-- The oldest first, without looking through those that are kept.
CREATE INDEX schedule_slot_age ON pawl.schedule_slot (last_time);

CREATE OR REPLACE FUNCTION pawl.records_gone(age bigint, most bigint) RETURNS bigint
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
        ORDER BY s.last_time LIMIT most);
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

CREATE INDEX pawl.request_restart_of ON request (restart_of) WHERE restart_of IS NOT NULL;

-- Requests that nothing needs any more, and since when. All that is one with a request
-- counts: its tries, those who carried out the same instance or ask to go on with it.
-- since is NULL while one of them has not ended, has a result that is kept, is waited for,
-- is named by a schedule or a backfill, helps one that runs, or was of the last instance
-- of its job, which the next request may go on with.
CREATE VIEW pawl.spent AS
SELECT r.id, r.created_at,
    (SELECT CASE WHEN count(*) = count(o.finished_at) AND max(CASE
            WHEN o.result_path IS NOT NULL AND o.result_gone_at IS NULL
                OR EXISTS (SELECT 1 FROM wait w WHERE w.after_id = one.id)
                OR EXISTS (SELECT 1 FROM schedule_slot s WHERE s.request_id = one.id)
                OR EXISTS (SELECT 1 FROM backfill_item b WHERE b.request_id = one.id)
                OR EXISTS (SELECT 1 FROM hand h JOIN request p ON p.id = h.parent_id
                    WHERE h.request_id = one.id AND NOT EXISTS
                        (SELECT 1 FROM outcome po WHERE po.id = p.id))
                OR EXISTS (SELECT 1 FROM execution le JOIN instance i
                        ON i.id = le.instance_id
                    WHERE le.request_id = one.id AND NOT EXISTS (SELECT 1
                        FROM instance i2 WHERE i2.job = i.job AND i2.number > i.number))
            THEN 1 ELSE 0 END) = 0 THEN max(o.finished_at) END
     FROM (SELECT r.id AS id
           UNION SELECT t.id FROM request t WHERE t.id = r.first_try
           UNION SELECT t.id FROM request t WHERE t.first_try = coalesce(r.first_try, r.id)
           UNION SELECT t.id FROM request t WHERE t.restart_of = r.id
           UNION SELECT e2.request_id FROM execution e
               JOIN execution e2 ON e2.instance_id = e.instance_id
               WHERE e.request_id = r.id
           UNION SELECT t.id FROM execution e
               JOIN execution e2 ON e2.instance_id = e.instance_id
               JOIN request t ON t.restart_of = e2.request_id
               WHERE e.request_id = r.id) one
     LEFT JOIN outcome o ON o.id = one.id) AS since
FROM request r;

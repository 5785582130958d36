-- Workers: who is there and who lives. Only the store's clock counts.

-- name: worker_register (id text, seat text, host text, pid bigint, boot_id text,
-- lanes text, in_use text, keys text, jobs text, version text)
INSERT INTO pawl.worker (id, seat, host, pid, boot_id, started_at, beat_at, lanes, in_use,
    keys, jobs, version)
VALUES ($1, $2, $3, $4, $5, pawl_now(), pawl_now(), $6, $7, $8, $9, $10);

-- name: worker_beat (in_use text, id text)
UPDATE pawl.worker SET beat_at = pawl_now(), in_use = $1 WHERE id = $2;

-- name: worker_beat_age (id text) -> (age bigint)
SELECT pawl_now() - beat_at AS age FROM pawl.worker WHERE id = $1;

-- name: worker_bury (id text, dead_after bigint)
-- Only while it is dead; a beat that came meanwhile keeps it.
DELETE FROM pawl.worker WHERE id = $1 AND beat_at < pawl_now() - CAST($2 AS bigint);

-- name: worker_there (id text) -> (there bigint)
SELECT count(*) AS there FROM pawl.worker WHERE id = $1;

-- name: worker_remove (id text)
DELETE FROM pawl.worker WHERE id = $1;

-- name: worker_list () -> (id text, seat text, host text, pid bigint, boot_id text,
-- started_at bigint, beat_at bigint, lanes text, in_use text, keys text, jobs text,
-- version text, now bigint)
SELECT id, seat, host, pid, boot_id, started_at, beat_at, lanes, in_use, keys, jobs,
    version, pawl_now() AS now
FROM pawl.worker ORDER BY id;

-- name: worker_earlier_boots (seat text, own_id text) -> (id text)
SELECT id FROM pawl.worker WHERE seat = $1 AND id <> $2 ORDER BY started_at;

-- name: worker_dead (dead_after bigint) -> (id text)
-- Without a beat for too long, or in claims without any row.
SELECT id FROM pawl.worker WHERE beat_at < pawl_now() - CAST($1 AS bigint)
UNION
SELECT c.worker FROM pawl.claim c
WHERE NOT EXISTS (SELECT 1 FROM pawl.worker w WHERE w.id = c.worker);

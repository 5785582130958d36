-- What `pawl doctor` looks at.

-- name: doctor_definitions () -> (name text, version bigint, hash text)
-- Those in force.
SELECT name, version, hash FROM pawl.job_definition
WHERE withdrawn_at IS NULL ORDER BY name;

-- name: doctor_waiting () -> (lane text, waiting bigint)
SELECT lane, CAST(sum(last_id - first_id + 1) AS bigint) AS waiting
FROM pawl.ready GROUP BY lane ORDER BY lane;

-- name: doctor_workers (dead_after bigint) -> (id text, lanes text, live bigint)
SELECT id, lanes,
    CASE WHEN beat_at >= pawl_now() - CAST($1 AS bigint) THEN 1 ELSE 0 END AS live
FROM pawl.worker ORDER BY id;

-- name: doctor_webhooks () -> (webhook text, waiting bigint, oldest bigint, now bigint)
SELECT webhook, count(*) AS waiting, min(created_at) AS oldest, pawl_now() AS now
FROM pawl.delivery GROUP BY webhook ORDER BY webhook;

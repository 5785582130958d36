-- Webhooks: what is still to be told of requests that have ended.

-- name: delivery_done (request_id bigint, webhook text)
DELETE FROM pawl.delivery WHERE request_id = $1 AND webhook = $2;

-- name: delivery_again (wait bigint, last_error text, request_id bigint, webhook text,
-- attempts bigint)
-- attempts: whoever has tried it meanwhile decides.
UPDATE pawl.delivery SET due_at = pawl_now() + $1, last_error = $2
WHERE request_id = $3 AND webhook = $4 AND attempts = $5;

-- name: delivery_give_back (request_id bigint, webhook text, attempts bigint)
-- It was not tried to the end.
UPDATE pawl.delivery SET due_at = pawl_now(), attempts = attempts - 1
WHERE request_id = $1 AND webhook = $2 AND attempts = $3;

-- name: delivery_drop (request_id bigint, webhook text, attempts bigint)
DELETE FROM pawl.delivery WHERE request_id = $1 AND webhook = $2 AND attempts = $3;

-- name: delivery_of (request_id bigint) -> (webhook text, due_at bigint,
-- attempts bigint, last_error text)
SELECT webhook, due_at, CAST(attempts AS bigint) AS attempts, last_error
FROM pawl.delivery WHERE request_id = $1 ORDER BY webhook;

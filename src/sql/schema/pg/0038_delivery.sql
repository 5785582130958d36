-- What is still to be told of a request that has ended (webhooks). A row goes when it was
-- told, or given up; who tells it puts due_at ahead meanwhile.
CREATE TABLE pawl.delivery (
    request_id bigint NOT NULL,
    webhook text NOT NULL,              -- a name of the worker's configuration
    created_at bigint NOT NULL,
    due_at bigint NOT NULL,
    attempts integer NOT NULL DEFAULT 0,
    last_error text,
    PRIMARY KEY (request_id, webhook)
);
CREATE INDEX delivery_due ON pawl.delivery (webhook, due_at);

CREATE OR REPLACE FUNCTION pawl.requests_gone(ids bigint[], age bigint) RETURNS bigint
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
    WITH gone AS (DELETE FROM pawl.delivery WHERE request_id = ANY (spent)
        RETURNING request_id, webhook, attempts)
    INSERT INTO pawl.audit (at, actor, act, subject, detail)
    SELECT pawl.pawl_now(), 'pawl', 'webhook-given-up', 'request ' || request_id,
        format('webhook %s, %s tries: the request was removed (retention.history)',
            webhook, attempts)
    FROM gone;
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

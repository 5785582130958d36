-- Requests that wait for others (after): one row per request still waited for. The
-- waiting one stands in later with reason 'after'.
CREATE TABLE pawl.wait (
    request_id bigint NOT NULL,
    after_id bigint NOT NULL,
    PRIMARY KEY (request_id, after_id)
);
CREATE INDEX wait_after ON pawl.wait (after_id);

-- Finishing asks of every request whether something is next; few have it.
CREATE INDEX request_next ON pawl.request (id) WHERE next IS NOT NULL;

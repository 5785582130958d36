-- Requests that wait for others (after): one row per request still waited for. The
-- waiting one stands in later with reason 'after'.
CREATE TABLE pawl.wait (
    request_id integer NOT NULL,
    after_id integer NOT NULL,
    PRIMARY KEY (request_id, after_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX pawl.wait_after ON wait (after_id);

-- Finishing asks of every request whether something is next; few have it.
CREATE INDEX pawl.request_next ON request (id) WHERE next IS NOT NULL;

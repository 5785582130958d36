-- What is still to be told of a request that has ended (webhooks). A row goes when it was
-- told, or given up; who tells it puts due_at ahead meanwhile.
CREATE TABLE pawl.delivery (
    request_id integer NOT NULL,
    webhook text NOT NULL,
    created_at integer NOT NULL,
    due_at integer NOT NULL,
    attempts integer NOT NULL DEFAULT 0,
    last_error text,
    PRIMARY KEY (request_id, webhook)
) STRICT, WITHOUT ROWID;
CREATE INDEX pawl.delivery_due ON delivery (webhook, due_at);

-- Who may do what: the one place. Whoever adds a table, a sequence or a function that
-- others call adds its row here; tests/store/test_roles.c refuses one that is missing.
-- Applied after each migration, to roles that are there, and may be applied again at
-- any time: all that was granted before goes, in one transaction.
--
-- What the table does not show:
--   - FOR UPDATE and FOR KEY SHARE need UPDATE of some column: hence claimed_at, lane
--     and reason, of tables whose rows the role may replace as a whole anyway.
--   - An api writes outcomes of requests that nobody holds, no others (a policy of
--     outcome, below).
--   - The nonce of a claim is what tells its holder: only workers read it.
DO $$
DECLARE
    r record;
    who text;
    rights text;
BEGIN
    IF pg_catalog.to_regnamespace('pawl') IS NULL THEN
        RETURN;
    END IF;
    REVOKE ALL ON SCHEMA pawl FROM PUBLIC, pawl_api, pawl_worker, pawl_reader, pawl_submit;
    REVOKE ALL ON ALL TABLES IN SCHEMA pawl
        FROM PUBLIC, pawl_api, pawl_worker, pawl_reader, pawl_submit;
    REVOKE ALL ON ALL SEQUENCES IN SCHEMA pawl
        FROM PUBLIC, pawl_api, pawl_worker, pawl_reader, pawl_submit;
    REVOKE ALL ON ALL ROUTINES IN SCHEMA pawl
        FROM PUBLIC, pawl_api, pawl_worker, pawl_reader, pawl_submit;
    GRANT USAGE ON SCHEMA pawl TO pawl_api, pawl_worker, pawl_reader, pawl_submit;

    FOR r IN SELECT * FROM (VALUES
        -- table             api, worker, reader; '' is nothing
        ('store', 'select', 'select', 'select'),
        ('migration', 'select', 'select', 'select'),
        ('request', 'select, insert', 'select, insert', 'select'),
        ('outcome', 'select, insert', 'select, insert', 'select'),
        ('later', 'select, insert, delete, update (reason, not_before)',
            'select, insert, delete, update (reason, not_before)', 'select'),
        ('ready', 'select, insert, delete, update (lane)',
            'select, insert, delete, update (lane)', 'select'),
        ('claim', 'select (first_id, last_id, job, lane, worker, token, claimed_at)',
            'select, insert, delete, update (claimed_at)',
            'select (first_id, last_id, job, lane, worker, token, claimed_at)'),
        ('flag', 'select, insert, delete, update (stop, cancel)',
            'select, insert, delete, update (stop, cancel)', 'select'),
        ('progress', 'select, delete',
            'select, insert, delete, update (done, total, message, updated_at)', 'select'),
        ('active', 'select, insert, delete, update (request_id)',
            'select, insert, delete, update (request_id)', 'select'),
        ('wait', 'select, insert, delete, update (after_id)',
            'select, insert, delete, update (after_id)', 'select'),
        ('idempotency', 'select, insert, update (digest, request_id, created_at)',
            'select, insert, update (digest, request_id, created_at)', ''),
        ('job_definition', 'select, insert, update', 'select, insert, update', 'select'),
        ('schedule', 'select, insert, update', 'select, insert, update', 'select'),
        ('schedule_slot', 'select',
            'select, insert, update (state, request_id, detail)', 'select'),
        ('worker', 'select', 'select, insert, delete, update (beat_at, in_use)', 'select'),
        ('instance', 'select', 'select, insert', 'select'),
        ('execution', 'select', 'select, insert, '
            'update (state, ended_at, exit_message, last_updated)', 'select'),
        ('step_execution', 'select', 'select, insert, update (state, ended_at, '
            'exit_message, last_updated, read_count, write_count, filter_count, '
            'skip_count, commits, rollbacks, chunk, position, writer_state)', 'select'),
        ('audit', 'select, insert', 'select, insert', 'select'),
        ('paused', 'select, insert, delete', 'select', 'select'),
        ('budget', 'select', 'select, insert, update', 'select'),
        ('request_calls', 'select', 'select, insert, update (used)', 'select'),
        ('step_skip', 'select', 'select, insert, update (request_id, item_values, message, noted_at)', 'select'),
        ('backfill', 'select, insert, update (next_n, open, state, why, ended_at)',
            'select, insert, update (next_n, open, state, why, ended_at)', 'select'),
        ('backfill_item', 'select, insert, update (state, request_id, detail, ended_at)',
            'select, insert, update (state, request_id, detail, ended_at)', 'select'),
        ('step_partition', 'select', 'select, insert, update (state, hold, request_id, '
            'token, parent_id, parent_token, read_count, write_count, filter_count, '
            'skip_count, commits, rollbacks, chunk, position, writer_state, message)',
            'select'),
        ('hand', 'select', 'select, insert', 'select'),
        ('recovery', 'select, insert, delete, update (actor, asked_at)', 'select, delete',
            'select'),
        ('delivery', 'select, insert (request_id, webhook, created_at, due_at)',
            'select, insert (request_id, webhook, created_at, due_at), delete, '
            'update (due_at, attempts, last_error)', 'select'),
        ('request_view', 'select', 'select', 'select'),
        -- sequences
        ('request_id', 'usage, select', 'usage, select', 'select'),
        ('ready_seq', 'usage, select', 'usage, select', 'select'),
        ('token', 'select', 'usage, select', 'select')
    ) AS matrix (name, pawl_api, pawl_worker, pawl_reader) LOOP
        CONTINUE WHEN pg_catalog.to_regclass('pawl.' || r.name) IS NULL;
        FOR who, rights IN SELECT * FROM (VALUES ('pawl_api', r.pawl_api),
                ('pawl_worker', r.pawl_worker), ('pawl_reader', r.pawl_reader)) w LOOP
            CONTINUE WHEN rights = '';
            EXECUTE format('GRANT %s ON %s pawl.%I TO %I', rights,
                CASE WHEN r.name IN ('request_id', 'ready_seq', 'token')
                     THEN 'SEQUENCE' ELSE 'TABLE' END, r.name, who);
        END LOOP;
    END LOOP;

    FOR r IN SELECT * FROM (VALUES
        -- The clock and the times of views are nobody's secret.
        ('pawl_now', 'PUBLIC'),
        ('at', 'PUBLIC'),
        ('submit', 'pawl_submit, pawl_api, pawl_worker'),
        ('try_submit', 'pawl_submit, pawl_api, pawl_worker'),
        ('hold_running', 'pawl_api, pawl_worker'),
        ('claims_settled', 'pawl_api'),
        ('open_ranges', 'pawl_worker'),
        ('results_gone', 'pawl_worker'),
        ('keys_gone', 'pawl_worker'),
        ('requests_gone', 'pawl_worker'),
        ('records_gone', 'pawl_worker')
    ) AS callers (name, roles) LOOP
        CONTINUE WHEN pg_catalog.to_regproc('pawl.' || r.name) IS NULL;
        EXECUTE format('GRANT EXECUTE ON FUNCTION pawl.%I TO %s', r.name, r.roles);
    END LOOP;
END $$;

-- Outcomes without a claim are an api's: of what it cancels, what it finds expired, and
-- of those that waited for what was cancelled. The names are part of what is looked
-- for: a policy that is to change gets another name, and its old one is dropped here.
DO $$
DECLARE
    there text[] := ARRAY(SELECT policyname::text FROM pg_catalog.pg_policies
                          WHERE schemaname = 'pawl' AND tablename = 'outcome');
BEGIN
    IF pg_catalog.to_regclass('pawl.outcome') IS NULL
       OR there @> ARRAY['outcome_read', 'outcome_worker', 'outcome_api'] THEN
        RETURN; -- what follows takes the table for a moment
    END IF;
    CREATE POLICY outcome_read ON pawl.outcome FOR SELECT USING (true);
    CREATE POLICY outcome_worker ON pawl.outcome FOR INSERT TO pawl_worker
        WITH CHECK (true);
    CREATE POLICY outcome_api ON pawl.outcome FOR INSERT TO pawl_api
        WITH CHECK (outcome IN ('CANCELLED', 'EXPIRED', 'REFUSED') AND worker IS NULL
            AND token IS NULL AND claimed_at IS NULL AND execution_id IS NULL
            AND result_path IS NULL
            AND result_name IS NULL);
    ALTER TABLE pawl.outcome ENABLE ROW LEVEL SECURITY;
END $$;

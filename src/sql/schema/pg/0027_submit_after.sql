-- pawl.submit waits for others too: after => '{7,8}'. A new argument makes a new
-- function, so the old ones go.

-- The requests of ids that are still to be waited for, each held where it stands until
-- the caller commits, so that its end sees who waits; NULL: none. An id may be that of
-- an earlier try: what counts is the last one. As queue/submit_after.c does it.
CREATE FUNCTION pawl.wait_for(job text, ids bigint[]) RETURNS bigint[]
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    waits bigint[];
    live bigint;
    again bigint;
    ended text;
    held boolean;
BEGIN
    IF cardinality(ids) > 100 THEN
        PERFORM pawl.refuse_faults(wait_for.job,
            pawl.fault('/after', 'must be a list of at most 100 numbers of requests'));
    END IF;
    FOR place IN 1 .. coalesce(cardinality(ids), 0) LOOP
        FOR round IN 1 .. 20 LOOP
            live := pawl.live_try(ids[place]);
            IF live IS NULL THEN
                PERFORM pawl.refuse_faults(wait_for.job, pawl.fault('/after/' || place - 1,
                    format('there is no request %s', coalesce(ids[place]::text, 'NULL'))));
            END IF;
            held := pawl.hold_open(live);
            EXIT WHEN held;
            -- The outcome first: a next try comes with it.
            SELECT o.outcome INTO ended FROM pawl.outcome o WHERE o.id = live;
            again := pawl.live_try(ids[place]);
            EXIT WHEN ended IS NOT NULL AND again = live;
        END LOOP;
        IF held THEN
            waits := array_append(waits, live);
        ELSIF ended IS NULL OR again <> live THEN
            RAISE EXCEPTION USING ERRCODE = '40001',
                MESSAGE = format('request %s is being moved all the time', ids[place]);
        ELSIF ended <> 'COMPLETED' THEN
            PERFORM pawl.refuse_faults(wait_for.job, pawl.fault('/after/' || place - 1,
                format('request %s ended %s, so what waits for it would never run', live,
                    ended)));
        END IF;
    END LOOP;
    RETURN (SELECT array_agg(DISTINCT w) FROM unnest(waits) w);
END $$;

-- The last of the tries that a request belongs to.
CREATE FUNCTION pawl.live_try(id bigint) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (SELECT max(t.id) FROM (
        SELECT r.id FROM pawl.request r WHERE r.id = live_try.id
        UNION ALL
        SELECT n.id FROM pawl.request n
        WHERE n.first_try = (SELECT coalesce(f.first_try, f.id) FROM pawl.request f
                             WHERE f.id = live_try.id)) t);
END $$;

-- Not final, and so before the caller commits. Looked for in the order in which a
-- request moves.
CREATE FUNCTION pawl.hold_open(id bigint) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM FROM pawl.later
    WHERE first_id = (SELECT l.first_id FROM pawl.later l WHERE l.first_id <= hold_open.id
                      ORDER BY l.first_id DESC LIMIT 1)
      AND last_id >= hold_open.id FOR KEY SHARE;
    IF FOUND THEN
        RETURN true;
    END IF;
    PERFORM FROM pawl.ready
    WHERE first_id = (SELECT y.first_id FROM pawl.ready y WHERE y.first_id <= hold_open.id
                      ORDER BY y.first_id DESC LIMIT 1)
      AND last_id >= hold_open.id FOR KEY SHARE;
    IF FOUND THEN
        RETURN true;
    END IF;
    PERFORM FROM pawl.claim
    WHERE first_id = (SELECT c.first_id FROM pawl.claim c WHERE c.first_id <= hold_open.id
                      ORDER BY c.first_id DESC LIMIT 1)
      AND last_id >= hold_open.id FOR KEY SHARE;
    RETURN FOUND;
END $$;

DROP FUNCTION pawl.submit, pawl.try_submit, pawl.submit_request;

-- The request's id. With refused, which is the id in the way, nothing was stored.
CREATE FUNCTION pawl.submit_request(job text, params jsonb, requester text, lane text,
    priority integer, not_before timestamptz, expires_at timestamptz, next jsonb,
    restart boolean, max_calls bigint, after bigint[], OUT id bigint, OUT refused bigint)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    def jsonb;
    taken record;
    checked record;
    now_us bigint := pawl.pawl_now();
    start_us bigint := pawl.micros(submit_request.not_before, 'not_before');
    end_us bigint := pawl.micros(submit_request.expires_at, 'expires_at');
    rank integer;
    place text;
    key text;
    holder bigint;
    waits bigint[];
BEGIN
    SELECT d.definition::jsonb INTO def FROM pawl.job_definition d
    WHERE d.name = submit_request.job AND d.withdrawn_at IS NULL;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'PW404',
            MESSAGE = format('there is no job %s', submit_request.job),
            HINT = 'Jobs are published when pawl starts with a configuration that has them.';
    END IF;

    taken := pawl.params_take_next(submit_request.params);
    PERFORM pawl.refuse_faults(submit_request.job, taken.faults);
    IF submit_request.next IS NOT NULL THEN
        taken.next := (pawl.params_take_next(
            jsonb_build_object('_next', submit_request.next))).next;
        PERFORM pawl.refuse_faults(submit_request.job, (pawl.params_take_next(
            jsonb_build_object('_next', submit_request.next))).faults);
    END IF;
    checked := pawl.params_check(def, taken.rest);
    PERFORM pawl.refuse_faults(submit_request.job, checked.faults);

    rank := coalesce(submit_request.priority, (def ->> 'priority')::integer, 0);
    place := coalesce(submit_request.lane, def ->> 'lane');
    IF rank NOT BETWEEN -100 AND 100 THEN
        PERFORM pawl.refuse_faults(submit_request.job,
            pawl.fault('/priority', 'must be from -100 to 100'));
    ELSIF coalesce(place, '') = '' OR octet_length(place) > 128 THEN
        PERFORM pawl.refuse_faults(submit_request.job,
            pawl.fault('/lane', 'must be a name of 1 to 128 bytes'));
    ELSIF coalesce(submit_request.requester, '') = '' THEN
        PERFORM pawl.refuse_faults(submit_request.job,
            pawl.fault('/requester', 'must not be empty'));
    ELSIF submit_request.max_calls < 0 THEN
        PERFORM pawl.refuse_faults(submit_request.job,
            pawl.fault('/maxCalls', 'must not be negative'));
    ELSIF end_us <= now_us THEN
        PERFORM pawl.refuse_faults(submit_request.job,
            pawl.fault('/expiresAt', 'is in the past'));
    END IF;
    IF end_us IS NULL THEN
        end_us := now_us + nullif((def ->> 'expire_after_us')::bigint, 0);
    END IF;
    IF start_us <= now_us THEN
        start_us := NULL;
    END IF;

    waits := pawl.wait_for(submit_request.job, submit_request.after);

    id := nextval('pawl.request_id');
    key := CASE def ->> 'duplicates'
        WHEN 'refuse' THEN 'job:' || submit_request.job
        WHEN 'reuse' THEN CASE WHEN cardinality(submit_request.after) > 0 THEN NULL
            ELSE 'req:' || encode(sha256(convert_to(submit_request.requester
                || chr(10) || submit_request.job || chr(10)
                || pawl.canonical(checked.effective), 'UTF8')), 'hex') END
        END; -- one that waits for nothing is no answer to one that waits
    IF key IS NOT NULL THEN
        holder := pawl.take_key(key, id, def);
        IF holder IS NOT NULL AND (def ->> 'duplicates' <> 'refuse'
               OR pawl.resumes(holder, def, taken.rest, checked.effective,
                   submit_request.restart)) THEN
            IF start_us IS NULL AND EXISTS (SELECT FROM pawl.request r
                    WHERE r.id = holder AND r.retry_of IS NOT NULL) THEN
                PERFORM pawl.lift(holder);
            END IF;
        ELSIF holder IS NOT NULL THEN
            id := NULL;
            refused := holder;
            RETURN;
        END IF;
        IF holder IS NOT NULL THEN
            id := holder;
            RETURN;
        END IF;
    END IF;

    INSERT INTO pawl.request (id, job, given, requester, source, lane, priority,
        not_before, expires_at, restart, max_calls, next, created_at)
    VALUES (submit_request.id, submit_request.job, coalesce(taken.rest, '{}')::text,
        submit_request.requester, 'sql', place, rank, start_us, end_us,
        submit_request.restart::integer, submit_request.max_calls, taken.next::text,
        now_us);
    IF start_us IS NULL AND waits IS NULL THEN
        INSERT INTO pawl.ready (first_id, last_id, job, lane, priority, seq, ready_since,
            expires_at)
        VALUES (submit_request.id, submit_request.id, submit_request.job, place, rank,
            nextval('pawl.ready_seq'), now_us, end_us);
    ELSE
        INSERT INTO pawl.later (first_id, last_id, job, lane, priority, not_before,
            expires_at, reason, created_at)
        VALUES (submit_request.id, submit_request.id, submit_request.job, place, rank,
            start_us, end_us, CASE WHEN waits IS NULL THEN 'time' ELSE 'after' END, now_us);
        INSERT INTO pawl.wait (request_id, after_id)
        SELECT submit_request.id, w FROM unnest(waits) w;
    END IF;
    PERFORM pg_notify('pawl_ready', '');
END $$;

CREATE FUNCTION pawl.submit(job text, params jsonb DEFAULT '{}',
    requester text DEFAULT session_user, lane text DEFAULT NULL,
    priority integer DEFAULT NULL, not_before timestamptz DEFAULT NULL,
    expires_at timestamptz DEFAULT NULL, next jsonb DEFAULT NULL,
    restart boolean DEFAULT NULL, max_calls bigint DEFAULT NULL,
    after bigint[] DEFAULT NULL) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    answer record;
BEGIN
    answer := pawl.submit_request(job, params, requester, lane, priority, not_before,
        expires_at, next, restart, max_calls, after);
    IF answer.refused IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'PW409',
            MESSAGE = format('job %s has request %s, which is not final yet', job,
                answer.refused),
            DETAIL = answer.refused::text,
            HINT = 'Wait for it or cancel it; pawl.try_submit gives NULL instead.';
    END IF;
    RETURN answer.id;
END $$;

CREATE FUNCTION pawl.try_submit(job text, params jsonb DEFAULT '{}',
    requester text DEFAULT session_user, lane text DEFAULT NULL,
    priority integer DEFAULT NULL, not_before timestamptz DEFAULT NULL,
    expires_at timestamptz DEFAULT NULL, next jsonb DEFAULT NULL,
    restart boolean DEFAULT NULL, max_calls bigint DEFAULT NULL,
    after bigint[] DEFAULT NULL) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (pawl.submit_request(job, params, requester, lane, priority, not_before,
        expires_at, next, restart, max_calls, after)).id;
END $$;

REVOKE ALL ON FUNCTION pawl.submit_request, pawl.wait_for, pawl.live_try, pawl.hold_open
    FROM PUBLIC;

-- pawl.submit as the other ways in: entries of next may be {job, params}, and who asks
-- for a job whose failure is about to be tried again is answered with that next try if
-- it would go on with the same work.

CREATE OR REPLACE FUNCTION pawl.params_take_next(given jsonb,
    OUT rest jsonb, OUT next jsonb, OUT faults jsonb)
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    item record;
BEGIN
    rest := given;
    faults := '[]';
    IF jsonb_typeof(given) IS DISTINCT FROM 'object' OR NOT given ? '_next' THEN
        RETURN;
    END IF;
    rest := given - '_next';
    next := nullif(given -> '_next', 'null');
    IF jsonb_typeof(next) IN ('string', 'object') THEN
        next := jsonb_build_array(next);
    END IF;
    IF next IS NULL THEN
        RETURN;
    ELSIF jsonb_typeof(next) <> 'array' OR jsonb_array_length(next) > 100 THEN
        faults := pawl.fault('/params/_next',
            'must be a job name or a list of at most 100 job names');
        RETURN;
    END IF;
    FOR item IN SELECT value, ordinality - 1 AS number,
                    CASE WHEN jsonb_typeof(value) = 'object' THEN value -> 'job'
                         ELSE value END AS job
                FROM jsonb_array_elements(next) WITH ORDINALITY ORDER BY ordinality LOOP
        IF jsonb_typeof(item.job) IS DISTINCT FROM 'string'
           OR (item.job #>> '{}') !~ '^[a-z0-9][a-z0-9-]{0,62}$'
           OR (jsonb_typeof(item.value) = 'object'
               AND (item.value - 'job' - 'params' <> '{}'
                    OR jsonb_typeof(coalesce(item.value -> 'params', '{}'))
                       <> 'object')) THEN
            faults := faults || pawl.fault('/params/_next/' || item.number,
                'must be the name of a job, or {job, params}');
        END IF;
    END LOOP;
END $$;

-- Would a submit of given go on with the work of request holder, a next try?
CREATE FUNCTION pawl.resumes(holder bigint, def jsonb, given jsonb, effective jsonb,
    restart boolean) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    theirs record;
    held text;
    name text;
BEGIN
    SELECT r.given INTO held FROM pawl.request r
    WHERE r.id = resumes.holder AND r.retry_of IS NOT NULL;
    IF NOT FOUND OR resumes.restart IS FALSE OR NOT pawl.is_queued(holder) THEN
        RETURN false;
    END IF;
    theirs := pawl.params_check(def, held::jsonb);
    IF theirs.effective IS NULL THEN
        RETURN false;
    END IF;
    FOR name IN SELECT jsonb_object_keys(coalesce(resumes.given, '{}')) LOOP
        IF (def -> 'params' -> name ->> 'confirm')::boolean
           OR resumes.effective -> name IS DISTINCT FROM theirs.effective -> name THEN
            RETURN false;
        END IF;
    END LOOP;
    RETURN true;
END $$;

-- It waits for its time no longer. What stands beside it in its span stays.
CREATE FUNCTION pawl.lift(id bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    span record;
BEGIN
    DELETE FROM pawl.later l
    WHERE l.first_id = (SELECT s.first_id FROM pawl.later s WHERE s.first_id <= lift.id
                        ORDER BY s.first_id DESC LIMIT 1)
      AND l.last_id >= lift.id AND l.reason = 'time'
    RETURNING l.* INTO span;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    INSERT INTO pawl.later (first_id, last_id, job, lane, priority, not_before,
        expires_at, reason, created_at)
    SELECT p.first_id, p.last_id, span.job, span.lane, span.priority, span.not_before,
        span.expires_at, span.reason, span.created_at
    FROM (VALUES (span.first_id, lift.id - 1), (lift.id + 1, span.last_id))
        AS p (first_id, last_id)
    WHERE p.first_id <= p.last_id;
    INSERT INTO pawl.ready (first_id, last_id, job, lane, priority, seq, ready_since,
        expires_at)
    VALUES (lift.id, lift.id, span.job, span.lane, span.priority,
        nextval('pawl.ready_seq'), pawl.pawl_now(), span.expires_at);
    PERFORM pg_notify('pawl_ready', '');
END $$;

REVOKE ALL ON FUNCTION pawl.resumes, pawl.lift FROM PUBLIC;

-- The request's id. With refused, which is the id in the way, nothing was stored.
CREATE OR REPLACE FUNCTION pawl.submit_request(job text, params jsonb, requester text, lane text,
    priority integer, not_before timestamptz, expires_at timestamptz, next jsonb,
    restart boolean, max_calls bigint, OUT id bigint, OUT refused bigint)
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

    id := nextval('pawl.request_id');
    key := CASE def ->> 'duplicates'
        WHEN 'refuse' THEN 'job:' || submit_request.job
        WHEN 'reuse' THEN 'req:' || encode(sha256(convert_to(submit_request.requester
            || chr(10) || submit_request.job || chr(10)
            || pawl.canonical(checked.effective), 'UTF8')), 'hex')
        END;
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
    IF start_us IS NULL THEN
        INSERT INTO pawl.ready (first_id, last_id, job, lane, priority, seq, ready_since,
            expires_at)
        VALUES (submit_request.id, submit_request.id, submit_request.job, place, rank,
            nextval('pawl.ready_seq'), now_us, end_us);
    ELSE
        INSERT INTO pawl.later (first_id, last_id, job, lane, priority, not_before,
            expires_at, reason, created_at)
        VALUES (submit_request.id, submit_request.id, submit_request.job, place, rank,
            start_us, end_us, 'time', now_us);
    END IF;
    PERFORM pg_notify('pawl_ready', '');
END $$;

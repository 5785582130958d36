-- Submitting from SQL, inside the caller's own transaction:
--
--     SELECT pawl.submit('orders-export', '{"from": "2026-11-01"}');
--     SELECT pawl.try_submit('orders-export', '{"from": "2026-11-01"}', lane => 'large');
--
-- The rules are those of queue/submit.c and queue/params.c: docs/parameters.md,
-- docs/canonical-parameters.md and the files in tests/vectors/ bind both sides. The
-- request is seen by workers when the caller commits; its NOTIFY rides on that commit.
--
-- Refusals: PW400 a parameter is wrong (DETAIL: JSON of all that is), PW404 no such job,
-- PW409 the job's duplicates rule (DETAIL: the id of the request in the way);
-- try_submit gives NULL instead of PW409.

-- --- canonical text of parameters ---

CREATE FUNCTION pawl.canonical_number(v numeric) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    d float8;
    c numeric;
BEGIN
    IF v = trunc(v) THEN
        IF v < -9223372036854775808 OR v > 9223372036854775807 THEN
            RAISE EXCEPTION USING ERRCODE = 'PW400', MESSAGE = 'a whole number outside '
                '64 bits is among the parameters: give it as a string';
        END IF;
        RETURN trunc(v)::text;
    END IF;
    BEGIN
        d := v::float8;
    EXCEPTION WHEN numeric_value_out_of_range THEN
        d := 1e15; -- too near to zero for a double: refused below
    END;
    c := d::numeric;
    IF abs(d) >= 1e15 OR c::float8 <> d THEN
        RAISE EXCEPTION USING ERRCODE = 'PW400', MESSAGE = 'a number of more than 15 '
            'significant digits is among the parameters: give it as a string';
    END IF;
    RETURN trim_scale(c)::text;
END $$;

CREATE FUNCTION pawl.canonical(v jsonb, depth integer DEFAULT 0) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    kind text := jsonb_typeof(v);
BEGIN
    IF kind = 'number' THEN
        RETURN pawl.canonical_number(v::numeric);
    ELSIF kind NOT IN ('object', 'array') THEN
        RETURN v::text;
    ELSIF depth >= 64 THEN
        RAISE EXCEPTION USING ERRCODE = 'PW400',
            MESSAGE = 'the parameters are nested deeper than 64 levels';
    ELSIF kind = 'object' THEN
        RETURN (SELECT '{' || coalesce(string_agg(to_jsonb(key)::text || ':' ||
                pawl.canonical(value, depth + 1), ',' ORDER BY key COLLATE "C"), '') || '}'
                FROM jsonb_each(v));
    END IF;
    RETURN (SELECT '[' || coalesce(string_agg(pawl.canonical(value, depth + 1), ','
            ORDER BY ordinality), '') || ']'
            FROM jsonb_array_elements(v) WITH ORDINALITY);
END $$;

-- --- rules of parameters ---

-- The whole number that v stands for; NULL: none within 64 bits. A fraction too small
-- for a double is none, as for who reads JSON into doubles.
CREATE FUNCTION pawl.whole_number(v jsonb) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    n numeric;
    d float8;
BEGIN
    IF jsonb_typeof(v) <> 'number' THEN
        RETURN NULL;
    END IF;
    n := v::numeric;
    IF n = trunc(n) THEN
        RETURN n::bigint;
    END IF;
    d := n::float8;
    RETURN CASE WHEN d = floor(d) THEN d::bigint END;
EXCEPTION WHEN numeric_value_out_of_range THEN
    RETURN NULL;
END $$;

CREATE FUNCTION pawl.is_date(v text) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN v ~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}$' AND make_date(substr(v, 1, 4)::integer,
        substr(v, 6, 2)::integer, substr(v, 9, 2)::integer) IS NOT NULL;
EXCEPTION WHEN datetime_field_overflow THEN
    RETURN false;
END $$;

CREATE FUNCTION pawl.is_timestamp(v text) RETURNS boolean
LANGUAGE sql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
    SELECT v ~ ('^[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]'
            '([.][0-9]{1,6})?(Z|[+-](0[0-9]|1[0-3]):[0-5][0-9]|[+-]14:00)$')
        AND pawl.is_date(substr(v, 1, 10))
$$;

-- Does v keep the rule? Items of a list are looked at by params_check.
CREATE FUNCTION pawl.rule_kept(rule jsonb, v jsonb) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    kind text := jsonb_typeof(v);
    content text := v #>> '{}';
BEGIN
    CASE rule ->> 'type'
    WHEN 'string' THEN
        RETURN kind = 'string'
            AND length(content) >= coalesce((rule ->> 'min_length')::integer, 0)
            AND length(content) <= coalesce((rule ->> 'max_length')::integer, 10000)
            AND (NOT rule ? 'pattern'
                 OR content COLLATE "C" ~ ('^(?:' || (rule ->> 'pattern') || ')$'));
    WHEN 'integer' THEN
        RETURN coalesce(pawl.whole_number(v) BETWEEN
            coalesce(pawl.whole_number(rule -> 'min'), -9223372036854775808) AND
            coalesce(pawl.whole_number(rule -> 'max'), 9223372036854775807), false);
    WHEN 'number' THEN
        RETURN kind = 'number'
            AND v::float8 >= coalesce((rule -> 'min')::float8, '-infinity')
            AND v::float8 <= coalesce((rule -> 'max')::float8, 'infinity');
    WHEN 'boolean' THEN
        RETURN kind = 'boolean';
    WHEN 'date' THEN
        RETURN kind = 'string' AND pawl.is_date(content);
    WHEN 'timestamp' THEN
        RETURN kind = 'string' AND pawl.is_timestamp(content);
    WHEN 'enum' THEN
        RETURN kind = 'string' AND (rule -> 'values') ? content;
    WHEN 'list' THEN
        RETURN kind = 'array'
            AND jsonb_array_length(v) >= coalesce((rule ->> 'min_items')::integer, 0)
            AND jsonb_array_length(v) <= coalesce((rule ->> 'max_items')::integer, 10000);
    END CASE;
EXCEPTION WHEN numeric_value_out_of_range THEN
    RETURN false; -- a number that is none as a double
END $$;

-- A value that keeps the rule, in its plain form (5.0 is 5).
CREATE FUNCTION pawl.rule_normal(rule jsonb, v jsonb) RETURNS jsonb
LANGUAGE sql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE rule ->> 'type'
        WHEN 'integer' THEN to_jsonb(pawl.whole_number(v))
        WHEN 'list' THEN (
            SELECT coalesce(jsonb_agg(pawl.rule_normal(rule -> 'items', value)
                ORDER BY ordinality), '[]')
            FROM jsonb_array_elements(v) WITH ORDINALITY)
        ELSE v END
$$;

-- What would be right, for people.
CREATE FUNCTION pawl.rule_words(rule jsonb) RETURNS text
LANGUAGE sql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE rule ->> 'type'
        WHEN 'string' THEN 'a text of ' || coalesce(rule ->> 'min_length', '0') || ' to '
            || coalesce(rule ->> 'max_length', '10000') || ' characters'
            || coalesce(' that matches ' || (rule ->> 'pattern'), '')
        WHEN 'integer' THEN 'a whole number' || coalesce(' from ' || (rule ->> 'min'), '')
            || coalesce(' up to ' || (rule ->> 'max'), '')
        WHEN 'number' THEN 'a number' || coalesce(' from ' || (rule ->> 'min'), '')
            || coalesce(' up to ' || (rule ->> 'max'), '')
        WHEN 'boolean' THEN 'true or false'
        WHEN 'date' THEN 'a date such as "2026-11-01"'
        WHEN 'timestamp' THEN 'a time such as "2026-11-01T09:30:00+09:00"'
        WHEN 'enum' THEN 'one of ' || (SELECT string_agg(value, ', ' ORDER BY ordinality)
            FROM jsonb_array_elements_text(rule -> 'values') WITH ORDINALITY)
        WHEN 'list' THEN 'a list of ' || coalesce(rule ->> 'min_items', '0') || ' to '
            || coalesce(rule ->> 'max_items', '10000') || ' items'
        END
$$;

-- JSON pointer to a parameter. Names that a client made up are cut.
CREATE FUNCTION pawl.param_pointer(name text) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    cut text := left(name, 63);
BEGIN
    WHILE octet_length(convert_to(cut, 'UTF8')) > 63 LOOP
        cut := left(cut, -1);
    END LOOP;
    RETURN '/params/' || replace(replace(cut, '~', '~0'), '/', '~1');
END $$;

CREATE FUNCTION pawl.fault(pointer text, detail text) RETURNS jsonb
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT jsonb_build_array(jsonb_build_object('pointer', pointer, 'detail', detail))
$$;

-- One declared parameter: its faults, in order.
CREATE FUNCTION pawl.param_faults(name text, rule jsonb, v jsonb) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    at text := pawl.param_pointer(name);
    item record;
    faults jsonb := '[]';
BEGIN
    IF v IS NULL THEN
        RETURN CASE WHEN (rule ->> 'required')::boolean
            THEN pawl.fault(at, 'is required') ELSE faults END;
    ELSIF NOT pawl.rule_kept(rule, v) THEN
        RETURN pawl.fault(at, 'must be ' || pawl.rule_words(rule));
    ELSIF rule ->> 'type' = 'list' THEN
        FOR item IN SELECT value, ordinality - 1 AS number
                    FROM jsonb_array_elements(v) WITH ORDINALITY ORDER BY ordinality LOOP
            IF NOT pawl.rule_kept(rule -> 'items', item.value) THEN
                faults := faults || pawl.fault(at || '/' || item.number,
                    'must be ' || pawl.rule_words(rule -> 'items'));
            END IF;
        END LOOP;
    END IF;
    RETURN faults;
END $$;

-- given against the definition: the effective parameters, or what is wrong ([] = nothing).
CREATE FUNCTION pawl.params_check(definition jsonb, given jsonb,
    OUT effective jsonb, OUT faults jsonb)
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    rules jsonb := coalesce(definition -> 'params', '{}');
    names text[];
    name text;
    value jsonb;
BEGIN
    effective := '{}';
    faults := '[]';
    IF given IS NULL OR given = 'null' THEN
        given := '{}';
    ELSIF jsonb_typeof(given) <> 'object' THEN
        faults := pawl.fault('/params', 'must be an object');
        effective := NULL;
        RETURN;
    END IF;
    names := ARRAY(SELECT jsonb_array_elements_text(definition -> 'param_order'));
    FOREACH name IN ARRAY names LOOP
        value := given -> name;
        faults := faults || pawl.param_faults(name, rules -> name, value);
        value := coalesce(value, rules -> name -> 'default');
        IF value IS NOT NULL AND faults = '[]' THEN
            effective := effective
                || jsonb_build_object(name, pawl.rule_normal(rules -> name, value));
        END IF;
    END LOOP;
    FOR name IN SELECT k FROM jsonb_object_keys(given) k WHERE NOT rules ? k
                ORDER BY k COLLATE "C" LOOP
        faults := faults || pawl.fault(pawl.param_pointer(name), 'unknown parameter');
    END LOOP;
    IF faults <> '[]' THEN
        effective := NULL;
    END IF;
END $$;

-- `_next` inside the parameters is an alias of next: a job name or a list of them.
CREATE FUNCTION pawl.params_take_next(given jsonb,
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
    IF jsonb_typeof(next) = 'string' THEN
        next := jsonb_build_array(next);
    END IF;
    IF next IS NULL THEN
        RETURN;
    ELSIF jsonb_typeof(next) <> 'array' OR jsonb_array_length(next) > 100 THEN
        faults := pawl.fault('/params/_next',
            'must be a job name or a list of at most 100 job names');
        RETURN;
    END IF;
    FOR item IN SELECT value, ordinality - 1 AS number
                FROM jsonb_array_elements(next) WITH ORDINALITY ORDER BY ordinality LOOP
        IF jsonb_typeof(item.value) <> 'string'
           OR (item.value #>> '{}') !~ '^[a-z0-9][a-z0-9-]{0,62}$' THEN
            faults := faults || pawl.fault('/params/_next/' || item.number,
                'must be the name of a job');
        END IF;
    END LOOP;
END $$;

-- --- submit ---

CREATE FUNCTION pawl.refuse_faults(job text, faults jsonb) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF faults <> '[]' THEN
        RAISE EXCEPTION USING ERRCODE = 'PW400',
            MESSAGE = (SELECT job || ': ' || string_agg((value ->> 'pointer') || ': '
                || (value ->> 'detail'), '; ' ORDER BY ordinality)
                FROM jsonb_array_elements(faults) WITH ORDINALITY WHERE ordinality <= 32),
            DETAIL = faults::text;
    END IF;
END $$;

CREATE FUNCTION pawl.is_queued(id bigint) RETURNS boolean
LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce((SELECT last_id FROM pawl.later WHERE first_id <= id
                     ORDER BY first_id DESC LIMIT 1) >= id, false)
        OR coalesce((SELECT last_id FROM pawl.ready WHERE first_id <= id
                     ORDER BY first_id DESC LIMIT 1) >= id, false)
$$;

-- Take the key for id. NULL: it is ours; else the request that has it: the one to be
-- answered (reuse), or the one in the way (refuse).
CREATE FUNCTION pawl.take_key(key text, id bigint, definition jsonb) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    holder bigint;
    holder_created bigint;
BEGIN
    -- First a lock, so that racers wait for each other here and get a true answer.
    PERFORM pg_advisory_xact_lock(hashtextextended(take_key.key, 0));
    FOR round IN 1 .. 8 LOOP
        INSERT INTO pawl.active (key, request_id) VALUES (take_key.key, take_key.id)
            ON CONFLICT (key) DO NOTHING;
        IF FOUND THEN
            RETURN NULL;
        END IF;
        SELECT a.request_id, r.created_at INTO holder, holder_created
        FROM pawl.active a LEFT JOIN pawl.request r ON r.id = a.request_id
        WHERE a.key = take_key.key;
        CONTINUE WHEN NOT FOUND; -- released meanwhile
        IF definition ->> 'duplicates' = 'refuse' THEN
            RETURN holder;
        ELSIF pawl.is_queued(holder) AND pawl.pawl_now() - holder_created
                < (definition ->> 'reuse_window_us')::bigint THEN
            RETURN holder;
        END IF;
        -- Claimed by now, or too old: the key moves on.
        UPDATE pawl.active SET request_id = take_key.id
            WHERE key = take_key.key AND request_id = holder;
        IF FOUND THEN
            RETURN NULL;
        END IF;
    END LOOP;
    RAISE EXCEPTION USING ERRCODE = 'PW409',
        MESSAGE = 'the job is being submitted by others all the time; try again';
END $$;

CREATE FUNCTION pawl.micros(at timestamptz, what text) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT isfinite(at) THEN
        RAISE EXCEPTION USING ERRCODE = 'PW400', MESSAGE = what || ': must be a time';
    END IF;
    RETURN (extract(epoch FROM at) * 1000000)::bigint;
END $$;

-- The request's id. With refused, which is the id in the way, nothing was stored.
CREATE FUNCTION pawl.submit_request(job text, params jsonb, requester text, lane text,
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
        IF holder IS NOT NULL AND def ->> 'duplicates' = 'refuse' THEN
            id := NULL;
            refused := holder;
            RETURN;
        ELSIF holder IS NOT NULL THEN
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

CREATE FUNCTION pawl.submit(job text, params jsonb DEFAULT '{}',
    requester text DEFAULT session_user, lane text DEFAULT NULL,
    priority integer DEFAULT NULL, not_before timestamptz DEFAULT NULL,
    expires_at timestamptz DEFAULT NULL, next jsonb DEFAULT NULL,
    restart boolean DEFAULT NULL, max_calls bigint DEFAULT NULL) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    answer record;
BEGIN
    answer := pawl.submit_request(job, params, requester, lane, priority, not_before,
        expires_at, next, restart, max_calls);
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
    restart boolean DEFAULT NULL, max_calls bigint DEFAULT NULL) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (pawl.submit_request(job, params, requester, lane, priority, not_before,
        expires_at, next, restart, max_calls)).id;
END $$;

-- Only the two are for users, and only they run with the rights of the owner.
REVOKE ALL ON FUNCTION pawl.submit_request, pawl.take_key FROM PUBLIC;

/*
 * pawl.submit and pawl.try_submit, the way of SQL users into the queue: the same rules
 * as in C, shown by the same vector files, inside the caller's transaction.
 */
#include "tests/store/harness.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/sha256.h"

#include <jansson.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static json_t *
vectors(const char *name)
{
    scoped(buf_release) struct buf path = {0};
    const char *root = getenv("PAWL_SOURCE_ROOT");
    json_error_t where;
    json_t *json;

    buf_init(&path, 0);
    buf_addf(&path, "%s/tests/vectors/%s", root ? root : ".", name);
    json = json_load_file(buf_str(&path), JSON_DECODE_ANY, &where);
    if (!json)
        fail_msg("%s: %s", buf_str(&path), where.text);
    return json;
}

/* The one row of a query with text parameters; r < 0: it failed, with err. */
struct answer {
    int r;
    char *text; /* of the first column; NULL for NULL */
    struct err err;
};

static struct answer
ask(struct db *db, const char *text, const char *const *params, size_t count)
{
    struct db_sql sql = {.name = "ask",
                         .text = text,
                         .n_params = (unsigned char)count,
                         .flags = DB_ONCE};
    struct db_value values[4] = {0};
    scoped(db_rows_end) struct db_rows rows = {0};
    struct answer answer = {0};

    for (size_t i = 0; i < count; i++)
        values[i] = p_opt_text(params[i]);
    answer.r = db_query(db, &sql, values, count, &rows, &answer.err);
    if (answer.r == 0)
        answer.r = db_next(&rows, &answer.err);
    if (answer.r > 0 && !db_is_null(&rows, 0))
        answer.text = xstrdup(db_text(&rows, 0));
    return answer;
}

/* --- the vectors --- */

static void
test_canonical_text_is_that_of_C(struct harness *h)
{
    json_t *file = vectors("canonical.json");
    json_t *vector;
    size_t i;
    int bad = 0;

    json_array_foreach(json_object_get(file, "vectors"), i, vector)
    {
        const char *name = json_string_value(json_object_get(vector, "name"));
        const char *text = json_string_value(json_object_get(vector, "text"));
        const char *want = json_string_value(json_object_get(vector, "canonical"));
        struct answer answer;

        if (!want)
            want = json_string_value(json_object_get(vector, "sql_canonical"));
        answer = ask(h->db, "SELECT pawl.canonical(CAST(CAST($1 AS text) AS jsonb))",
                     &text, 1);
        if (want ? answer.r <= 0 || !answer.text || strcmp(answer.text, want) != 0
                 : answer.r >= 0) {
            print_error("%s: %s gives %s (%s), not %s\n", name, text,
                        answer.text ? answer.text : "nothing", answer.err.text,
                        want ? want : "a refusal");
            bad++;
        }
        free(answer.text);
    }
    json_decref(file);
    assert_int_equal(bad, 0);
}

/* What came out as {"effective": …} or {"errors": [pointers]}. */
static const char check_case[] =
    "WITH t AS MATERIALIZED (SELECT * FROM"
    " pawl.params_take_next(CAST(CAST($2 AS text) AS jsonb))),"
    " c AS (SELECT c.* FROM t, pawl.params_check(CAST(CAST($1 AS text) AS jsonb),"
    "  t.rest) c),"
    " f AS (SELECT CASE WHEN t.faults <> '[]' THEN t.faults ELSE c.faults END AS faults"
    "  FROM t, c)"
    " SELECT CAST(CASE WHEN f.faults = '[]'"
    "  THEN jsonb_build_object('effective', c.effective)"
    "  ELSE jsonb_build_object('errors', (SELECT jsonb_agg(value -> 'pointer'"
    "   ORDER BY ordinality) FROM jsonb_array_elements(f.faults) WITH ORDINALITY)) END"
    "  AS text) FROM c, f";

static json_t *
definition_of(json_t *group)
{
    json_t *params = json_object_get(group, "params");
    json_t *order = json_incref(json_object_get(group, "param_order"));
    const char *name;
    json_t *rule;

    if (!order) {
        order = json_array();
        json_object_foreach(params, name, rule)
        {
            json_array_append_new(order, json_string(name));
        }
    }
    return json_pack("{s:O, s:o}", "params", params, "param_order", order);
}

static bool
case_holds(struct harness *h, const char *definition, json_t *item)
{
    char *given = json_dumps(json_object_get(item, "given"), JSON_ENCODE_ANY);
    json_t *want =
        json_object_get(item, "errors")
            ? json_pack("{s:O}", "errors", json_object_get(item, "errors"))
            : json_pack("{s:O}", "effective", json_object_get(item, "effective"));
    const char *params[] = {definition, given};
    struct answer answer = ask(h->db, check_case, params, 2);
    json_t *got = answer.text ? json_loads(answer.text, JSON_DECODE_ANY, NULL) : NULL;
    bool holds = json_equal(got, want);

    if (!holds)
        print_error("%.200s\n  given %.200s\n  gives %.200s %s\n", definition, given,
                    answer.text ? answer.text : "", answer.err.text);
    free(given);
    free(answer.text);
    json_decref(got);
    json_decref(want);
    return holds;
}

static void
test_A7_parameters_are_checked_as_in_C(struct harness *h)
{
    json_t *file = vectors("params.json");
    json_t *group, *item;
    size_t i, j;
    int bad = 0;

    json_array_foreach(file, i, group)
    {
        json_t *definition = definition_of(group);
        char *text = json_dumps(definition, 0);

        json_array_foreach(json_object_get(group, "cases"), j, item)
        {
            bad += !case_holds(h, text, item);
        }
        free(text);
        json_decref(definition);
    }
    json_decref(file);
    assert_int_equal(bad, 0);
}

/* --- submitting --- */

static void
publish(struct harness *h, const char *job, const char *duplicates)
{
    harness_sql(
        h,
        "INSERT INTO pawl.job_definition (name, version, hash, definition,"
        " published_at) VALUES ('%s', 1, 'h', '{\"name\": \"%s\", \"kind\":"
        " \"batch\", \"duplicates\": \"%s\", \"reuse_window_us\": 600000000,"
        " \"lane\": \"normal\", \"expire_after_us\": 0, \"priority\": 5,"
        " \"params\": {\"n\": {\"type\": \"integer\", \"default\": 1},"
        " \"c\": {\"type\": \"string\"}}, \"param_order\": [\"n\", \"c\"]}', 0)",
        job, job, duplicates);
}

/* SQLSTATE of a statement that must fail. The connection stays usable. */
static void
assert_refused(struct harness *h, const char *sql, const char *state, const char *words)
{
    struct answer answer = ask(h->db, sql, NULL, 0);

    assert_true(answer.r < 0);
    assert_string_equal(answer.err.detail, state);
    if (!strstr(answer.err.text, words))
        fail_msg("\"%s\" is not in: %s", words, answer.err.text);
}

static void
test_a_submitted_request_is_claimable_after_the_commit(struct harness *h)
{
    int64_t id;

    publish(h, "export", "allow");
    id =
        harness_i64(h, "SELECT pawl.submit('export', '{\"n\": 7.0}', lane => 'large')");
    assert_int_equal(
        harness_i64(
            h,
            "SELECT count(*) FROM pawl.request WHERE id = %lld AND job = 'export'"
            " AND CAST(given AS jsonb) = '{\"n\": 7}' AND requester = 'postgres'"
            " AND source = 'sql' AND lane = 'large' AND priority = 5"
            " AND created_at = %lld AND next IS NULL AND restart IS NULL",
            (long long)id, (long long)HARNESS_NOW),
        1);
    assert_int_equal(
        harness_i64(
            h,
            "SELECT count(*) FROM pawl.ready WHERE first_id = %lld AND last_id ="
            " first_id AND lane = 'large' AND priority = 5 AND seq > 0"
            " AND ready_since = %lld AND expires_at IS NULL",
            (long long)id, (long long)HARNESS_NOW),
        1);
    assert_int_equal(harness_i64(h, "SELECT count(*) FROM pawl.active"), 0);
}

static void
test_a_caller_that_rolls_back_has_asked_for_nothing(struct harness *h)
{
    publish(h, "export", "refuse");
    harness_sql(h, "BEGIN; SELECT pawl.submit('export'); ROLLBACK");
    assert_int_equal(harness_i64(h, "SELECT count(*) FROM pawl.request"), 0);
    assert_int_equal(harness_i64(h, "SELECT count(*) FROM pawl.active"), 0);
    assert_true(harness_i64(h, "SELECT pawl.submit('export')") > 0);
}

static void
test_what_is_to_start_later_waits_in_later(struct harness *h)
{
    publish(h, "export", "allow");
    harness_i64(h, "SELECT pawl.submit('export', not_before => '2026-11-02 00:00:00Z',"
                   " expires_at => '2026-11-03 00:00:00Z', priority => -3)");
    assert_int_equal(harness_i64(h, "SELECT count(*) FROM pawl.ready"), 0);
    assert_int_equal(
        harness_i64(h,
                    "SELECT count(*) FROM pawl.later WHERE not_before = %lld AND"
                    " expires_at = %lld AND reason = 'time' AND priority = -3",
                    (long long)(HARNESS_NOW + 86400000000),
                    (long long)(HARNESS_NOW + 2 * 86400000000)),
        1);
}

static void
test_A9_refuse_names_the_active_request(struct harness *h)
{
    char id[32];
    struct answer answer;

    publish(h, "export", "refuse");
    snprintf(id, sizeof(id), "request %lld",
             (long long)harness_i64(h, "SELECT pawl.submit('export')"));
    assert_refused(h, "SELECT pawl.submit('export', '{\"n\": 2}')", "PW409", id);
    answer = ask(h->db, "SELECT pawl.try_submit('export')", NULL, 0);
    assert_true(answer.r > 0);
    assert_null(answer.text);
    assert_int_equal(harness_i64(h, "SELECT count(*) FROM pawl.request"), 1);
    assert_int_equal(harness_i64(h, "SELECT count(*) FROM pawl.active"
                                    " WHERE key = 'job:export'"),
                     1);
    harness_sql(h, "DELETE FROM pawl.active"); /* as its finish does */
    assert_true(harness_i64(h, "SELECT pawl.try_submit('export')") > 0);
}

/* The key is the one that queue/submit.c makes. */
static void
test_B29_reuse_answers_with_the_queued_request(struct harness *h)
{
    static const char text[] = "kim\nexport\n{\"c\":\"a\",\"n\":1}";
    char hex[SHA256_HEX_SIZE];
    int64_t first, other;

    publish(h, "export", "reuse");
    first = harness_i64(h, "SELECT pawl.submit('export', '{\"c\": \"a\"}', 'kim')");
    sha256_hex(text, strlen(text), hex);
    assert_int_equal(
        harness_i64(h, "SELECT request_id FROM pawl.active WHERE key = 'req:%s'", hex),
        first);
    /* The default written out, another order: the same parameters. */
    assert_int_equal(
        harness_i64(
            h, "SELECT pawl.submit('export', '{\"n\": 1.0, \"c\": \"a\"}', 'kim')"),
        first);
    assert_int_equal(
        harness_i64(h, "SELECT pawl.try_submit('export', '{\"c\": \"a\"}', 'kim')"),
        first);
    other = harness_i64(h, "SELECT pawl.submit('export', '{\"c\": \"a\"}', 'lee')");
    assert_int_not_equal(other, first);
    assert_int_not_equal(
        harness_i64(h, "SELECT pawl.submit('export', '{\"c\": \"b\"}', 'kim')"), first);
    assert_int_equal(harness_i64(h, "SELECT count(*) FROM pawl.request"), 3);
}

static void
test_B30_B31_a_claimed_or_old_request_is_not_reused(struct harness *h)
{
    int64_t first, second;

    publish(h, "export", "reuse");
    first = harness_i64(h, "SELECT pawl.submit('export')");
    harness_clock_advance(h, 599999999);
    assert_int_equal(harness_i64(h, "SELECT pawl.submit('export')"), first);
    harness_clock_advance(h, 1);
    second = harness_i64(h, "SELECT pawl.submit('export')");
    assert_int_not_equal(second, first);
    assert_int_equal(harness_i64(h, "SELECT request_id FROM pawl.active"), second);
    harness_sql(h, "DELETE FROM pawl.ready WHERE first_id = %lld", (long long)second);
    assert_int_not_equal(harness_i64(h, "SELECT pawl.submit('export')"), second);
}

/* Request 900 is the next try of one that failed, the middle one of its span. */
static void
next_try_waits(struct harness *h)
{
    harness_sql(h,
                "INSERT INTO pawl.request (id, job, given, requester, source, lane,"
                " retry_of, first_try, attempt, created_at) VALUES (900, 'export',"
                " '{\"n\": 24}', 'kim', 'retry', 'normal', 1, 1, 2, 0);"
                "INSERT INTO pawl.active VALUES ('job:export', 900);"
                "INSERT INTO pawl.later VALUES (899, 901, 'export', 'normal', 0, %lld,"
                " NULL, 'time', 0)",
                (long long)(HARNESS_NOW + 60000000));
}

static void
test_who_would_go_on_with_a_next_try_is_answered_with_it(struct harness *h)
{
    publish(h, "export", "refuse");
    next_try_waits(h);
    assert_refused(h, "SELECT pawl.submit('export', '{\"n\": 36}')", "PW409",
                   "request 900");
    assert_refused(h, "SELECT pawl.submit('export', restart => false)", "PW409",
                   "request 900");
    assert_int_equal(harness_i64(h, "SELECT count(*) FROM pawl.ready"), 0);
    assert_int_equal(harness_i64(h, "SELECT pawl.submit('export')"), 900);
    assert_int_equal(harness_i64(h, "SELECT first_id FROM pawl.ready"), 900);
    assert_int_equal(harness_i64(h, "SELECT sum(first_id) FROM pawl.later WHERE"
                                    " first_id = last_id AND reason = 'time'"),
                     899 + 901);
    assert_int_equal(harness_i64(h, "SELECT pawl.submit('export', '{\"n\": 24}')"),
                     900);
    harness_sql(h, "DELETE FROM pawl.ready"); /* as a claim does */
    assert_refused(h, "SELECT pawl.submit('export')", "PW409", "request 900");
}

static void
test_bad_input_is_refused_with_its_place(struct harness *h)
{
    publish(h, "export", "allow");
    assert_refused(h, "SELECT pawl.submit('nothing')", "PW404", "nothing");
    assert_refused(h, "SELECT pawl.submit('export', '{\"n\": \"1\", \"zz\": 1}')",
                   "PW400", "/params/n: must be a whole number; /params/zz");
    assert_refused(h, "SELECT pawl.submit('export', '[]')", "PW400", "/params: must");
    assert_refused(h, "SELECT pawl.submit('export', '{\"_next\": 5}')", "PW400",
                   "/params/_next");
    assert_refused(h, "SELECT pawl.submit('export', next => '[7]')", "PW400",
                   "/params/_next/0");
    assert_refused(h, "SELECT pawl.submit('export', priority => 101)", "PW400",
                   "/priority");
    assert_refused(h, "SELECT pawl.submit('export', lane => '')", "PW400", "/lane");
    assert_refused(h, "SELECT pawl.submit('export', requester => '')", "PW400",
                   "/requester");
    assert_refused(h, "SELECT pawl.submit('export', max_calls => -1)", "PW400",
                   "/maxCalls");
    assert_refused(h, "SELECT pawl.submit('export', expires_at => '2026-11-01 00:00Z')",
                   "PW400", "/expiresAt");
    assert_refused(h, "SELECT pawl.submit('export', not_before => 'infinity')", "PW400",
                   "not_before");
    harness_sql(h, "UPDATE pawl.job_definition SET withdrawn_at = 1");
    assert_refused(h, "SELECT pawl.submit('export')", "PW404", "export");
    assert_int_equal(harness_i64(h, "SELECT count(*) FROM pawl.request"), 0);
}

static void
test_A12_next_is_kept_and_taken_out_of_the_parameters(struct harness *h)
{
    publish(h, "export", "allow");
    harness_i64(h, "SELECT pawl.submit('export', '{\"_next\": \"a\", \"n\": 2}')");
    harness_i64(
        h, "SELECT pawl.submit('export', next => '[\"b\", \"c\"]', restart => false,"
           " max_calls => 7)");
    assert_int_equal(harness_i64(h, "SELECT count(*) FROM pawl.request WHERE"
                                    " CAST(next AS jsonb) = '[\"a\"]' AND"
                                    " CAST(given AS jsonb) = '{\"n\": 2}'"),
                     1);
    assert_int_equal(harness_i64(h, "SELECT count(*) FROM pawl.request WHERE"
                                    " CAST(next AS jsonb) = '[\"b\", \"c\"]'"
                                    " AND restart = 0 AND max_calls = 7"),
                     1);
}

/* --- side by side --- */

#define RACERS 8

struct racer {
    struct harness *h;
    const char *sql;
    struct answer answer;
};

static void *
race(void *arg)
{
    struct racer *racer = (struct racer *)arg;
    struct db_options options = {.url = racer->h->url, .store = true};
    scoped(db_closep) struct db *db = NULL;

    racer->answer.r = db_open(&options, &db, &racer->answer.err);
    if (racer->answer.r == 0)
        racer->answer = ask(db, racer->sql, NULL, 0);
    return NULL;
}

static void
race_all(struct harness *h, const char *sql, struct racer racers[RACERS])
{
    pthread_t threads[RACERS];

    for (int i = 0; i < RACERS; i++) {
        racers[i] = (struct racer){.h = h, .sql = sql};
        assert_int_equal(pthread_create(&threads[i], NULL, race, &racers[i]), 0);
    }
    for (int i = 0; i < RACERS; i++)
        pthread_join(threads[i], NULL);
}

static void
test_A9_of_many_at_once_one_gets_in(struct harness *h)
{
    struct racer racers[RACERS];
    int in = 0, refused = 0;

    publish(h, "export", "refuse");
    race_all(h, "SELECT pawl.submit('export')", racers);
    for (int i = 0; i < RACERS; i++) {
        in += racers[i].answer.r > 0;
        refused += strcmp(racers[i].answer.err.detail, "PW409") == 0;
        free(racers[i].answer.text);
    }
    assert_int_equal(in, 1);
    assert_int_equal(refused, RACERS - 1);
    assert_int_equal(harness_i64(h, "SELECT count(*) FROM pawl.request"), 1);
}

static void
test_B29_many_at_once_get_one_id(struct harness *h)
{
    struct racer racers[RACERS];

    publish(h, "export", "reuse");
    race_all(h, "SELECT pawl.submit('export')", racers);
    for (int i = 0; i < RACERS; i++) {
        assert_ok(racers[i].answer.r, &racers[i].answer.err);
        assert_string_equal(racers[i].answer.text, racers[0].answer.text);
    }
    for (int i = 0; i < RACERS; i++)
        free(racers[i].answer.text);
    assert_int_equal(harness_i64(h, "SELECT count(*) FROM pawl.request"), 1);
}

struct hearing {
    pthread_mutex_t lock;
    pthread_cond_t more;
    int times;
};

static void
hear(void *arg, unsigned mask)
{
    struct hearing *hearing = (struct hearing *)arg;

    pthread_mutex_lock(&hearing->lock);
    hearing->times++;
    pthread_cond_signal(&hearing->more);
    pthread_mutex_unlock(&hearing->lock);
}

static void
test_its_commit_wakes_workers(struct harness *h)
{
    struct hearing hearing = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
    struct timespec until;
    int error = 0;

    publish(h, "export", "allow");
    store_subscribe(h->store, WAKE_READY, hear, &hearing);
    harness_sql(h, "BEGIN; SELECT pawl.submit('export'); COMMIT");
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 10;
    pthread_mutex_lock(&hearing.lock);
    while (hearing.times == 0 && error == 0)
        error = pthread_cond_timedwait(&hearing.more, &hearing.lock, &until);
    pthread_mutex_unlock(&hearing.lock);
    assert_int_equal(error, 0);
    store_close(h->store);
    h->store = NULL;
}

/* A user who may use the schema and the two can submit, and do nothing else to it. */
static void
test_a_user_without_rights_on_the_tables_can_submit(struct harness *h)
{
    publish(h, "export", "refuse");
    harness_sql(h, "DO $$ BEGIN CREATE ROLE pawl_test_user; EXCEPTION WHEN"
                   " duplicate_object OR unique_violation THEN NULL; END $$;"
                   "GRANT USAGE ON SCHEMA pawl TO pawl_test_user;"
                   "GRANT EXECUTE ON FUNCTION pawl.submit, pawl.try_submit"
                   " TO pawl_test_user;"
                   "SET SESSION AUTHORIZATION pawl_test_user");
    assert_true(harness_i64(h, "SELECT pawl.submit('export')") > 0);
    assert_refused(h, "SELECT * FROM pawl.request", "42501", "request");
    assert_refused(h, "DELETE FROM pawl.active", "42501", "active");
    assert_refused(h, "SELECT pawl.take_key('job:x', 1, '{}')", "42501", "take_key");
    /* Nor by an operator or table of his own that would run with the owner's rights. */
    harness_sql(h, "CREATE TEMP TABLE request (id bigint);"
                   "SET search_path = pg_temp, public");
    assert_refused(h, "SELECT pawl.submit('export')", "PW409", "not final");
    harness_sql(h, "RESET SESSION AUTHORIZATION; RESET search_path;"
                   "REVOKE USAGE ON SCHEMA pawl FROM pawl_test_user");
    assert_int_equal(harness_i64(h,
                                 "SELECT count(*) FROM pawl.request WHERE requester ="
                                 " 'pawl_test_user'"),
                     1);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        store_test_pg(test_canonical_text_is_that_of_C),
        store_test_pg(test_A7_parameters_are_checked_as_in_C),
        store_test_pg(test_a_submitted_request_is_claimable_after_the_commit),
        store_test_pg(test_a_caller_that_rolls_back_has_asked_for_nothing),
        store_test_pg(test_what_is_to_start_later_waits_in_later),
        store_test_pg(test_A9_refuse_names_the_active_request),
        store_test_pg(test_B29_reuse_answers_with_the_queued_request),
        store_test_pg(test_B30_B31_a_claimed_or_old_request_is_not_reused),
        store_test_pg(test_who_would_go_on_with_a_next_try_is_answered_with_it),
        store_test_pg(test_bad_input_is_refused_with_its_place),
        store_test_pg(test_A12_next_is_kept_and_taken_out_of_the_parameters),
        store_test_pg(test_A9_of_many_at_once_one_gets_in),
        store_test_pgbouncer(test_A9_of_many_at_once_one_gets_in),
        store_test_pg(test_B29_many_at_once_get_one_id),
        store_test_pgbouncer(test_B29_many_at_once_get_one_id),
        store_test_pg(test_its_commit_wakes_workers),
        store_test_pg(test_a_user_without_rights_on_the_tables_can_submit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Reading definitions: what is there arrives, what is wrong is named. */
#include "base/err.h"
#include "queue/job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const char full[] =
    "{\"description\":\"d\",\"duplicates\":\"reuse\",\"estimate\":{\"database\":"
    "\"shop\","
    "\"sql\":\"SELECT "
    "1\",\"timeout_us\":1000000,\"otherwise\":\"large\"},\"expire_after_us\":7,"
    "\"kind\":\"batch\","
    "\"lane\":\"normal\",\"large_over\":10000,\"later_key\":1,\"makes_result\":true,"
    "\"name\":\"cities-export\",\"needs_keys\":[\"K\"],\"next\":[\"a\",\"b\"],"
    "\"param_order\":[\"z\",\"a\"],\"params\":{\"a\":{\"type\":\"integer\",\"default\":"
    "1},"
    "\"z\":{\"type\":\"string\",\"required\":true}},\"priority\":-5,"
    "\"retry\":{\"attempts\":3,\"backoff_us\":10,\"drained\":true,\"max_backoff_us\":"
    "20,"
    "\"on\":[\"WORKER_LOST\",\"TIMEOUT\"]},\"reuse_window_us\":600000000,\"steps\":[],"
    "\"timeout_us\":5,\"title\":\"Cities\"}";

static void
test_a_definition_is_read_in_full(void **state)
{
    struct queue_job *job = NULL;
    struct err err = {0};

    assert_int_equal(queue_job_parse(full, &job, &err), 0);
    assert_string_equal(job->name, "cities-export");
    assert_string_equal(job->title, "Cities");
    assert_int_equal(job->kind, QUEUE_KIND_BATCH);
    assert_int_equal(job->duplicates, QUEUE_DUPLICATES_REUSE);
    assert_string_equal(queue_duplicates_word(job->duplicates), "reuse");
    assert_string_equal(job->lane, "normal");
    assert_int_equal(job->large_over, 10000);
    assert_string_equal(job->estimate_database, "shop");
    assert_string_equal(job->estimate_sql, "SELECT 1");
    assert_int_equal(job->estimate_timeout_us, 1000000);
    assert_string_equal(job->estimate_otherwise, "large");
    assert_int_equal(job->reuse_window_us, 600000000);
    assert_int_equal(job->timeout_us, 5);
    assert_int_equal(job->expire_after_us, 7);
    assert_int_equal(job->priority, -5);
    assert_int_equal(job->retry.attempts, 3);
    assert_int_equal(job->retry.backoff_us, 10);
    assert_int_equal(job->retry.max_backoff_us, 20);
    assert_int_equal(job->retry.on, QUEUE_RETRY_WORKER_LOST | QUEUE_RETRY_TIMEOUT);
    assert_true(job->retry.drained);
    assert_true(job->makes_result);
    assert_int_equal(job->next_count, 2);
    assert_string_equal(job->next[1], "b");
    assert_string_equal(job->needs_keys[0], "K");
    assert_int_equal(job->param_count, 2);
    assert_string_equal(job->params[0].name, "z");
    assert_true(job->params[0].field.required);
    assert_int_equal(json_integer_value(job->params[1].field.fallback), 1);
    assert_ptr_equal(queue_job_param(job, "a"), &job->params[1]);
    assert_null(queue_job_param(job, "q"));
    queue_job_free(job);
}

static char *
replaced(const char *from, const char *to)
{
    const char *at = strstr(full, from);
    char *text = NULL;

    assert_non_null(at);
    assert_true(
        asprintf(&text, "%.*s%s%s", (int)(at - full), full, to, at + strlen(from)) > 0);
    return text;
}

static void
test_a_broken_definition_is_refused_with_its_place(void **state)
{
    static const struct {
        const char *from;
        const char *to;
        const char *said;
    } rows[] = {
        {"\"lane\":\"normal\",", "", "lane is missing"},
        {"\"priority\":-5", "\"priority\":\"x\"", "priority"},
        {"\"reuse\"", "\"perhaps\"", "duplicates \"perhaps\""},
        {"[\"a\",\"b\"]", "[\"a\",5]", "/next/1 names no job"},
        {"[\"a\",\"b\"]", "[\"a\",{\"params\":{}}]", "/next/1 names no job"},
        {"\"attempts\":3,", "", "attempts is missing"},
        {"[\"z\",\"a\"]", "[\"z\"]", "param_order"},
        {"\"integer\"", "\"float\"", "/params/a/type"},
        {"\"default\":1", "\"default\":\"x\"", "/params/a/default"},
        {"\"database\":\"shop\",", "", "database is missing"},
    };
    size_t i;

    for (i = 0; i < array_len(rows); i++) {
        char *text = replaced(rows[i].from, rows[i].to);
        struct queue_job *job = NULL;
        struct err err = {0};

        assert_int_equal(queue_job_parse(text, &job, &err), -ERR_SCHEMA);
        assert_null(job);
        assert_non_null(strstr(err.text, rows[i].said));
        free(text);
    }
}

static void
test_what_is_no_json_object_is_refused(void **state)
{
    static const char *const texts[] = {"", "[]", "5", "{", "{}", "{\"name\":\"x\"}"};
    size_t i;

    for (i = 0; i < array_len(texts); i++) {
        struct queue_job *job = NULL;
        struct err err = {0};

        assert_int_equal(queue_job_parse(texts[i], &job, &err), -ERR_SCHEMA);
        assert_null(job);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_definition_is_read_in_full),
        cmocka_unit_test(test_a_broken_definition_is_refused_with_its_place),
        cmocka_unit_test(test_what_is_no_json_object_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

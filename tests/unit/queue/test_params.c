/*
 * The rules of docs/parameters.md, from the vectors that the SQL side runs too,
 * and what only the C side has: texts of errors, the command line's reading.
 */
#include "base/buf.h"
#include "base/err.h"
#include "base/fsio.h"
#include "base/json.h"
#include "queue/job.h"
#include "queue/params.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct queue_job *
job_with(const json_t *params, const json_t *order)
{
    struct queue_job *job = NULL;
    struct err err = {0};
    json_t *names = order != NULL ? json_deep_copy(order) : json_array();
    json_t *object = json_deep_copy(params);
    const char *name;
    json_t *value;
    json_t *definition;
    char *text;

    if (order == NULL)
        json_object_foreach(object, name, value)
            json_array_append_new(names, json_string(name));
    definition = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:i, s:s, s:i, s:i, s:i, s:{s:i, s:i, s:i, s:[], "
        "s:b}, s:[], s:[], s:b, s:o, s:o}",
        "name", "export", "title", "Export", "description", "", "kind", "batch",
        "duplicates", "refuse", "reuse_window_us", 0, "lane", "normal", "timeout_us", 0,
        "expire_after_us", 0, "priority", 0, "retry", "attempts", 3, "backoff_us", 0,
        "max_backoff_us", 0, "on", "drained", 0, "needs_keys", "next", "makes_result",
        0, "params", object, "param_order", names);
    assert_non_null(definition);
    text = json_dumps(definition, 0);
    json_decref(definition);
    if (queue_job_parse(text, &job, &err) < 0)
        fail_msg("%s", err.text);
    free(text);
    return job;
}

static struct queue_job *
job_from(const char *params)
{
    json_t *json = json_loads(params, 0, NULL);
    struct queue_job *job;

    assert_non_null(json);
    job = job_with(json, NULL);
    json_decref(json);
    return job;
}

static json_t *
load_vectors(void)
{
    scoped(buf_release) struct buf text = {0};
    struct err err = {0};
    char path[4096];
    json_t *json = NULL;

    snprintf(path, sizeof(path), "%s/tests/vectors/params.json",
             getenv("PAWL_SOURCE_ROOT"));
    buf_init(&text, 0);
    if (fs_read_file(path, 8 << 20, &text, &err) < 0 ||
        json_parse(text.data, text.len, 32, &json, &err) < 0)
        fail_msg("%s", err.text);
    return json;
}

/* take _next out, then check: as submit does it. */
static int
check_given(const struct queue_job *job, const json_t *given, json_t **ret_effective,
            struct params_errors *errors)
{
    json_t *rest = NULL;
    json_t *next = NULL;
    int r;

    r = params_take_next(given, &rest, &next, errors);
    if (r != PARAMS_OK)
        return r;
    r = params_check(job, rest, ret_effective, errors);
    json_decref(rest);
    json_decref(next);
    return r;
}

static void
check_case(const char *group, const struct queue_job *job, const json_t *one)
{
    const json_t *wanted = json_object_get(one, "effective");
    const json_t *pointers = json_object_get(one, "errors");
    struct params_errors errors;
    json_t *effective = NULL;
    char text[2048];
    char *given = json_dumps(json_object_get(one, "given"), JSON_ENCODE_ANY);
    size_t i;

    if (check_given(job, json_object_get(one, "given"), &effective, &errors) ==
        PARAMS_OK) {
        char *got = json_dumps(effective, JSON_SORT_KEYS);

        if (wanted == NULL || !json_equal(effective, wanted))
            fail_msg("%s: %.200s gave %s", group, given, got);
        free(got);
    } else {
        params_errors_text(&errors, text, sizeof(text));
        if (errors.count != json_array_size(pointers))
            fail_msg("%s: %.200s gave %s", group, given, text);
        for (i = 0; i < errors.count; i++)
            assert_string_equal(errors.list[i].pointer,
                                json_string_value(json_array_get(pointers, i)));
    }
    json_decref(effective);
    free(given);
}

static void
test_A7_vectors_are_accepted_and_refused_as_written(void **state)
{
    json_t *vectors = load_vectors();
    size_t checked = 0;
    size_t i;
    size_t j;

    for (i = 0; i < json_array_size(vectors); i++) {
        const json_t *group = json_array_get(vectors, i);
        const json_t *cases = json_object_get(group, "cases");
        struct queue_job *job = job_with(json_object_get(group, "params"),
                                         json_object_get(group, "param_order"));

        for (j = 0; j < json_array_size(cases); j++, checked++)
            check_case(json_string_value(json_object_get(group, "name")), job,
                       json_array_get(cases, j));
        queue_job_free(job);
    }
    assert_true(checked > 200);
    json_decref(vectors);
}

static void
test_A7_message_says_what_is_allowed_and_what_came(void **state)
{
    static const struct {
        const char *given;
        const char *text;
    } rows[] = {
        {"{\"n\":5}", "/params/n: must be a whole number from 13 to 120, not 5"},
        {"{\"n\":\"x\"}",
         "/params/n: must be a whole number from 13 to 120, not \"x\""},
        {"{\"c\":\"kr\"}",
         "/params/c: must be a text that matches [A-Z]{2}, not \"kr\""},
        {"{\"f\":\"pdf\"}", "/params/f: must be one of xlsx, csv, not \"pdf\""},
        {"{\"fromat\":1}", "/params/fromat: unknown parameter; did you mean format?"},
        {"{\"quite_other\":1}",
         "/params/quite_other: unknown parameter; see the list of export"},
        {"{\"l\":[1,\"a\"]}",
         "/params/l/1: must be a whole number that fits 64 bits, not \"a\""},
        {"{\"d\":\"2026-02-30\"}",
         "/params/d: must be a date such as \"2026-11-01\", not \"2026-02-30\""},
    };
    struct queue_job *job =
        job_from("{\"n\":{\"type\":\"integer\",\"min\":13,\"max\":120},"
                 "\"c\":{\"type\":\"string\",\"pattern\":\"[A-Z]{2}\"},"
                 "\"f\":{\"type\":\"enum\",\"values\":[\"xlsx\",\"csv\"]},"
                 "\"format\":{\"type\":\"boolean\"},\"d\":{\"type\":\"date\"},"
                 "\"l\":{\"type\":\"list\",\"items\":{\"type\":\"integer\"}}}");
    size_t i;

    for (i = 0; i < array_len(rows); i++) {
        json_t *given = json_loads(rows[i].given, 0, NULL);
        struct params_errors errors;
        json_t *effective = NULL;
        char text[1024];

        assert_int_equal(params_check(job, given, &effective, &errors), PARAMS_INVALID);
        assert_null(effective);
        params_errors_text(&errors, text, sizeof(text));
        assert_string_equal(text, rows[i].text);
        json_decref(given);
    }
    queue_job_free(job);
}

static void
test_given_parameters_stay_as_they_were_given(void **state)
{
    struct queue_job *job = job_from("{\"a\":{\"type\":\"integer\",\"default\":3},"
                                     "\"b\":{\"type\":\"integer\"}}");
    json_t *given = json_loads("{\"b\":5.0}", 0, NULL);
    json_t *before = json_deep_copy(given);
    json_t *effective = NULL;
    struct params_errors errors;

    assert_int_equal(params_check(job, given, &effective, &errors), PARAMS_OK);
    assert_true(json_equal(given, before));
    assert_true(json_is_real(json_object_get(given, "b")));
    assert_int_equal(json_integer_value(json_object_get(effective, "b")), 5);
    assert_int_equal(json_integer_value(json_object_get(effective, "a")), 3);
    json_decref(given);
    json_decref(before);
    json_decref(effective);
    queue_job_free(job);
}

static void
test_a_flood_of_wrong_parameters_is_cut_and_counted(void **state)
{
    struct queue_job *job = job_from("{}");
    json_t *given = json_object();
    json_t *effective = NULL;
    struct params_errors errors;
    char name[1200];
    int i;

    for (i = 0; i < 100; i++) {
        memset(name, 'a' + i % 26, sizeof(name) - 1);
        snprintf(name + sizeof(name) - 8, 8, "%d", i);
        json_object_set_new(given, name, json_null());
    }
    assert_int_equal(params_check(job, given, &effective, &errors), PARAMS_INVALID);
    assert_int_equal(errors.count, PARAMS_ERRORS_MAX);
    assert_int_equal(errors.left_out, 100 - PARAMS_ERRORS_MAX);
    json_decref(given);
    queue_job_free(job);
}

static void
test_A12_next_inside_params_is_lifted_out(void **state)
{
    json_t *given = json_loads("{\"_next\":[\"b\",\"c\"],\"x\":1}", 0, NULL);
    json_t *rest = NULL;
    json_t *next = NULL;
    struct params_errors errors;

    assert_int_equal(params_take_next(given, &rest, &next, &errors), PARAMS_OK);
    assert_int_equal(json_array_size(next), 2);
    assert_null(json_object_get(rest, "_next"));
    assert_non_null(json_object_get(given, "_next"));
    json_decref(given);
    json_decref(rest);
    json_decref(next);
}

static void
test_command_line_texts_become_the_declared_types(void **state)
{
    static const char *const pairs[] = {"n=5",   "x=0.5",   "b=true", "l=1,2",
                                        "l=3",   "s=5",     "e=a=b",  "d=2026-11-01",
                                        "bad=q", "zz=later"};
    struct queue_job *job =
        job_from("{\"n\":{\"type\":\"integer\"},\"x\":{\"type\":\"number\"},"
                 "\"b\":{\"type\":\"boolean\"},\"s\":{\"type\":\"string\"},"
                 "\"l\":{\"type\":\"list\",\"items\":{\"type\":\"integer\"}},"
                 "\"e\":{\"type\":\"string\"},\"d\":{\"type\":\"date\"},"
                 "\"bad\":{\"type\":\"integer\"}}");
    json_t *wanted =
        json_loads("{\"n\":5,\"x\":0.5,\"b\":true,\"l\":[1,2,3],\"s\":\"5\","
                   "\"e\":\"a=b\",\"d\":\"2026-11-01\",\"bad\":\"q\","
                   "\"zz\":\"later\"}",
                   0, NULL);
    json_t *given = NULL;
    json_t *effective = NULL;
    struct params_errors errors;

    assert_int_equal(params_from_strings(job, pairs, array_len(pairs), &given, &errors),
                     PARAMS_OK);
    assert_true(json_equal(given, wanted));
    assert_int_equal(params_check(job, given, &effective, &errors), PARAMS_INVALID);
    assert_string_equal(errors.list[0].pointer, "/params/bad");
    assert_string_equal(errors.list[1].pointer, "/params/zz");
    json_decref(given);
    json_decref(wanted);
    queue_job_free(job);
}

static void
test_command_line_refuses_what_is_no_pair_or_given_twice(void **state)
{
    static const char *const wrong[][2] = {
        {"n", "n=1"}, {"=5", "n=1"}, {"n=1", "n=2"}, {"s=\xff", "n=1"}};
    struct queue_job *job = job_from("{\"n\":{\"type\":\"integer\"},"
                                     "\"s\":{\"type\":\"string\"}}");
    size_t i;

    for (i = 0; i < array_len(wrong); i++) {
        struct params_errors errors;
        json_t *given = NULL;

        assert_int_equal(params_from_strings(job, wrong[i], 2, &given, &errors),
                         PARAMS_INVALID);
        assert_null(given);
        assert_int_equal(errors.count, 1);
    }
    queue_job_free(job);
}

static void
test_A33_confirmations_are_known_and_never_inherited(void **state)
{
    struct queue_job *job =
        job_from("{\"purge\":{\"type\":\"boolean\",\"confirm\":true},"
                 "\"source\":{\"type\":\"string\"}}");
    json_t *given = json_loads("{\"purge\":true,\"source\":\"B\"}", 0, NULL);
    json_t *wanted = json_loads("{\"source\":\"B\"}", 0, NULL);
    json_t *rest = params_without_confirm(job, given);

    assert_true(params_has_confirm(job, given));
    assert_true(json_equal(rest, wanted));
    assert_false(params_has_confirm(job, rest));
    json_decref(given);
    json_decref(wanted);
    json_decref(rest);
    queue_job_free(job);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_A7_vectors_are_accepted_and_refused_as_written),
        cmocka_unit_test(test_A7_message_says_what_is_allowed_and_what_came),
        cmocka_unit_test(test_given_parameters_stay_as_they_were_given),
        cmocka_unit_test(test_a_flood_of_wrong_parameters_is_cut_and_counted),
        cmocka_unit_test(test_A12_next_inside_params_is_lifted_out),
        cmocka_unit_test(test_command_line_texts_become_the_declared_types),
        cmocka_unit_test(test_command_line_refuses_what_is_no_pair_or_given_twice),
        cmocka_unit_test(test_A33_confirmations_are_known_and_never_inherited),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

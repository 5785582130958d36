/* Problem documents say whose fault it is. */
#include "base/err.h"
#include "base/json.h"
#include "service/service.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

static json_t *
problem_of(const struct err *err)
{
    scoped(buf_release) struct buf body = {0};
    struct err note = {0};
    json_t *json = NULL;

    buf_init(&body, 65536);
    assert_int_equal(service_problem(err, NULL, "/x", "T", &body),
                     err_http_status(err->code));
    assert_int_equal(json_parse(buf_str(&body), body.len, 8, &json, &note), 0);
    return json;
}

static const char *
member(const json_t *json, const char *key)
{
    return json_string_value(json_object_get(json, key));
}

static void
test_what_is_the_clients_is_not_called_a_fault_of_the_server(void **state)
{
    for (int code = ERR_NONE + 1; code < ERR_COUNT; code++) {
        scoped(json_drop) json_t *json = NULL;
        struct err err = {0};

        err_set(&err, (enum err_code)code, "the remedy");
        json = problem_of(&err);
        assert_string_equal(member(json, "code"), err_word(err.code));
        if (err_http_status(err.code) >= 500)
            continue;
        assert_null(strstr(member(json, "title"), "went wrong on the server"));
        assert_string_equal(member(json, "detail"), "the remedy");
    }
}

static void
test_the_words_of_the_store_stay_inside(void **state)
{
    static const enum err_code codes[] = {ERR_INTERNAL, ERR_STORE,  ERR_DB,
                                          ERR_CONNECT,  ERR_CONFIG, ERR_TIMEOUT,
                                          ERR_ESTIMATE};

    for (size_t i = 0; i < array_len(codes); i++) {
        scoped(json_drop) json_t *json = NULL;
        struct err err = {0};

        err_set(&err, codes[i], "postgresql://me@secret: SELECT");
        json = problem_of(&err);
        assert_null(strstr(member(json, "detail"), "secret"));
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_the_clients_is_not_called_a_fault_of_the_server),
        cmocka_unit_test(test_the_words_of_the_store_stay_inside),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

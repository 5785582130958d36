/*
 * Percent-decoding as a function of its text.
 */
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "net/http_uri.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const struct {
    const char *text;
    bool query;
    const char *want; /* NULL: refused */
} decodings[] = {
    {"", false, ""},
    {"a%20b", false, "a b"},
    {"a+b", false, "a+b"},
    {"a+b", true, "a b"},
    {"%2B%2f%25", true, "+/%"},
    {"%EA%B0%80", false, "\xea\xb0\x80"},
    {"%f0%9f%98%80", false, "\xf0\x9f\x98\x80"},
    {"line%0D%0Abreak", true, "line\r\nbreak"},
    {"line%0Abreak", false, NULL},
    {"%00", false, NULL},
    {"%00", true, NULL},
    {"%1b", true, NULL},
    {"%7f", false, NULL},
    {"%", false, NULL},
    {"%2", false, NULL},
    {"%zz", false, NULL},
    {"%-1", false, NULL},
    {"%c0%af", false, NULL}, /* "/" in two bytes */
    {"%e0%80%af", false, NULL},
    {"%ed%a0%80", false, NULL},    /* a surrogate */
    {"%f4%90%80%80", false, NULL}, /* beyond U+10FFFF */
    {"%ff", false, NULL},
    {"%ea%b0", false, NULL}, /* cut off */
};

static void
test_decoding_is_strict(void **state)
{
    scoped(arena_release) struct arena arena = {0};

    for (size_t i = 0; i < array_len(decodings); i++) {
        struct err err = {0};
        char *got = NULL;
        int r = http_uri_decode(&arena, decodings[i].text, strlen(decodings[i].text),
                                decodings[i].query, &got, &err);

        if (decodings[i].want == NULL) {
            if (r != -ERR_INVALID || got != NULL)
                fail_msg("\"%s\" was not refused", decodings[i].text);
        } else {
            assert_int_equal(r, 0);
            assert_string_equal(got, decodings[i].want);
        }
    }
}

static const struct {
    const char *path;
    const char *want; /* segments joined by "|"; NULL: refused */
} paths[] = {
    {"/", ""},
    {"/a", "a"},
    {"/a/b", "a|b"},
    {"/a/", "a|"},
    {"//a", "|a"},
    {"/a%2Fb/c", "a/b|c"},
    {"/...", "..."},
    {"/a/../b", NULL},
    {"/%2e%2e/b", NULL},
    {"/a/.", NULL},
    {"/a%00", NULL},
    {"a", NULL},
    {"/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17/18/19/20/21/22/23/24/25/26/27/28/29/"
     "30/"
     "31/32/33",
     NULL},
};

static void
test_paths_are_split_before_they_are_decoded(void **state)
{
    scoped(arena_release) struct arena arena = {0};

    for (size_t i = 0; i < array_len(paths); i++) {
        scoped(buf_release) struct buf joined = {0};
        struct err err = {0};
        const char **segments = NULL;
        size_t count = 0;
        int r = http_uri_path(&arena, paths[i].path, &segments, &count, &err);

        if (paths[i].want == NULL) {
            if (r != -ERR_INVALID)
                fail_msg("\"%s\" was not refused", paths[i].path);
            continue;
        }
        assert_int_equal(r, 0);
        for (size_t k = 0; k < count; k++)
            buf_addf(&joined, "%s%s", k > 0 ? "|" : "", segments[k]);
        assert_string_equal(buf_str(&joined), paths[i].want);
    }
}

static const struct {
    const char *query;
    const char *want; /* NULL: refused */
} queries[] = {
    {NULL, ""},
    {"", ""},
    {"a", "(a=)"},
    {"a=1&b=&=c", "(a=1)(b=)(=c)"},
    {"a=1&a=2", "(a=1)(a=2)"},
    {"a=b=c", "(a=b=c)"},
    {"&a=1&&b=2&", "(a=1)(b=2)"},
    {"a%3D=%26", "(a==&)"},
    {"q=%EA%B0%80+x", "(q=\xea\xb0\x80 x)"},
    {"a=%zz", NULL},
    {"%00=1", NULL},
};

static void
test_queries_keep_order_and_duplicates(void **state)
{
    scoped(arena_release) struct arena arena = {0};

    for (size_t i = 0; i < array_len(queries); i++) {
        scoped(buf_release) struct buf told = {0};
        struct err err = {0};
        struct http_param *params = NULL;
        size_t count = 0;
        int r = http_uri_query(&arena, queries[i].query, &params, &count, &err);

        if (queries[i].want == NULL) {
            assert_int_equal(r, -ERR_INVALID);
            continue;
        }
        assert_int_equal(r, 0);
        for (size_t k = 0; k < count; k++)
            buf_addf(&told, "(%s=%s)", params[k].name, params[k].value);
        assert_string_equal(buf_str(&told), queries[i].want);
    }
}

static void
test_a_query_of_more_than_100_parameters_is_refused(void **state)
{
    scoped(arena_release) struct arena arena = {0};
    scoped(buf_release) struct buf text = {0};
    struct http_param *params;
    struct err err = {0};
    size_t count;

    for (int i = 0; i < HTTP_PARAMS_MAX; i++)
        buf_addf(&text, "%sa=%d", i > 0 ? "&" : "", i);
    assert_int_equal(http_uri_query(&arena, buf_str(&text), &params, &count, &err), 0);
    assert_int_equal(count, HTTP_PARAMS_MAX);
    buf_add_str(&text, "&b");
    assert_int_equal(http_uri_query(&arena, buf_str(&text), &params, &count, &err),
                     -ERR_INVALID);
}

static void
test_what_is_escaped_decodes_to_itself(void **state)
{
    static const char text[] = "a b/c?d&e=f%g+\xea\xb0\x80~.-_\n";
    scoped(arena_release) struct arena arena = {0};
    scoped(buf_release) struct buf escaped = {0};
    struct err err = {0};
    char *back;

    http_uri_escape(&escaped, text);
    assert_null(strpbrk(buf_str(&escaped), " /?&=+\n"));
    assert_int_equal(
        http_uri_decode(&arena, escaped.data, escaped.len, true, &back, &err), 0);
    assert_string_equal(back, text);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decoding_is_strict),
        cmocka_unit_test(test_paths_are_split_before_they_are_decoded),
        cmocka_unit_test(test_queries_keep_order_and_duplicates),
        cmocka_unit_test(test_a_query_of_more_than_100_parameters_is_refused),
        cmocka_unit_test(test_what_is_escaped_decodes_to_itself),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

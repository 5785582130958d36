/* Replies from outside: what is read, what is refused and with which words, and how
 * paths walk. */
#include "io_test.h"

#include "io/cast.h"
#include "io/reply_tree.h"
#include "io/call_text.h"
#include "io/cell_text.h"
#include "io/io_ctx.h"
#include "io/row.h"

struct bad {
    const char *body;
    const char *told;
};

static const struct bad bad_bodies[] = {
    {"", "empty"},
    {"  ", "empty"},
    {"<!DOCTYPE html><html>", "HTML"},
    {"<HTML><body>", "HTML"},
    {"busy, come back later", "neither JSON nor XML: \"busy"},
    {"{\"a\":1,\"a\":2}", "JSON"},
    {"{\"a\":\"\\ud800\"}", "JSON"},
    {"{\"a\":", "JSON"},
    {"<a><b></a>", "line 1"},
    {"<a>\n<b>", "line 2"},
    {"<?xml version=\"1.0\"?><!DOCTYPE a [<!ENTITY x \"xx\"><!ENTITY y "
     "\"&x;&x;\">]><a>&y;</a>",
     "DOCTYPE"},
    {"<a>&other;</a>", "XML"},
};

static void
test_A38_what_is_no_reply_is_refused_and_told(void **state)
{
    for (size_t i = 0; i < array_len(bad_bodies); i++) {
        struct reply_tree tree = {0};
        struct err err = {0};

        assert_int_equal(reply_tree_parse(bad_bodies[i].body,
                                          strlen(bad_bodies[i].body), &tree, &err),
                         -ERR_PROTOCOL);
        if (!strstr(err.text, bad_bodies[i].told))
            fail_msg("\"%s\" does not tell \"%s\"", err.text, bad_bodies[i].told);
    }
}

static void
test_A38_xml_is_read_in_the_encoding_that_it_names(void **state)
{
    static const char body[] =
        "<?xml version=\"1.0\" encoding=\"EUC-KR\"?><a><b>\xb0\xa1</b></a>";
    struct reply_tree tree = {0};
    struct err err = {0};

    assert_int_equal(reply_tree_parse(body, sizeof(body) - 1, &tree, &err), 0);
    assert_string_equal(json_string_value(reply_scalar(tree.root, "a/b", false)), "가");
    reply_tree_release(&tree);
}

/* "{}," takes three bytes to send and a hundred times as much to keep. */
static void
test_A38_a_reply_that_would_fill_the_memory_is_refused(void **state)
{
    scoped(buf_release) struct buf body = {0};
    struct reply_tree tree = {0};
    struct err err = {0};

    buf_init(&body, 0);
    buf_add_str(&body, "[\"{{{\\\"{{{\"");
    for (int i = 0; i < 1500000; i++)
        buf_add_str(&body, ",{}");
    buf_add_str(&body, "]");
    assert_int_equal(reply_tree_parse(buf_str(&body), body.len, &tree, &err),
                     -ERR_PROTOCOL);
    assert_non_null(strstr(err.text, "too many values"));
}

static void
test_A38_xml_is_not_nested_without_end(void **state)
{
    scoped(buf_release) struct buf body = {0};
    struct reply_tree tree = {0};
    struct err err = {0};

    buf_init(&body, 0);
    for (int i = 0; i < 100000; i++)
        buf_add_str(&body, "<a>");
    assert_int_equal(reply_tree_parse(buf_str(&body), body.len, &tree, &err),
                     -ERR_PROTOCOL);
    assert_non_null(strstr(err.text, "nested"));
}

/* Longer ones than 64 bits are read digit by digit; in the order of the text. */
static void
test_A38_long_integers_keep_their_digits(void **state)
{
    static const char body[] =
        "{\"a\":[9223372036854775807,9223372036854775808,-9223372036854775809,"
        "\"18446744073709551616\"],\"b\":{\"\\\"99999999999999999999\":"
        "99999999999999999999}}";
    scoped(reply_tree_release) struct reply_tree tree = {0};
    const json_t *list;
    struct err err = {0};

    assert_int_equal(reply_tree_parse(body, sizeof(body) - 1, &tree, &err), 0);
    list = json_object_get(tree.root, "a");
    assert_true(json_integer_value(json_array_get(list, 0)) == INT64_MAX);
    assert_string_equal(json_string_value(json_array_get(list, 1)),
                        "9223372036854775808");
    assert_string_equal(json_string_value(json_array_get(list, 2)),
                        "-9223372036854775809");
    assert_true(reply_number_is_decimal(&tree.decimals, json_array_get(list, 1)));
    assert_true(reply_number_is_decimal(&tree.decimals, json_array_get(list, 2)));
    assert_false(reply_number_is_decimal(&tree.decimals, json_array_get(list, 0)));
    assert_false(reply_number_is_decimal(&tree.decimals, json_array_get(list, 3)));
    assert_string_equal(
        json_string_value(reply_value(tree.root, "b/\"99999999999999999999")),
        "99999999999999999999");
}

static void
test_A38_numbers_that_are_none_are_refused_nonetheless(void **state)
{
    static const char *const bodies[] = {"[0123456789012345678901]",
                                         "[99999999999999999999,]",
                                         "[99999999999999999999.]", "[1e999]"};

    for (size_t i = 0; i < array_len(bodies); i++) {
        struct reply_tree tree = {0};
        struct err err = {0};

        assert_int_equal(reply_tree_parse(bodies[i], strlen(bodies[i]), &tree, &err),
                         -ERR_PROTOCOL);
    }
}

struct walk {
    const char *body;
    const char *path;
    bool loose;
    const char *found; /* all values, dumped, with | between */
};

static const struct walk walks[] = {
    {"{\"a\":{\"b\":[1,2]}}", "a/b", false, "1|2"},
    {"{\"a\":{\"b\":{\"x\":1}}}", "a/b", false, "{\"x\":1}"},
    {"{\"a\":{\"b\":\"\"}}", "a/b", false, ""},
    {"{\"a\":{\"b\":null}}", "a/b", false, ""},
    {"{\"a\":\"\"}", "a/b/c", false, ""},
    {"[{\"n\":1},{\"n\":2}]", ".", false, "{\"n\":1}|{\"n\":2}"},
    {"[{\"n\":1},{\"n\":2}]", "n", false, "1|2"},
    {"{\"s\":[{\"head\":[{\"n\":1},{\"R\":{\"C\":\"I\"}}]},{\"row\":[{\"x\":1},{\"x\":"
     "2}]}]}",
     "s/row", false, "{\"x\":1}|{\"x\":2}"},
    {"{\"s\":[{\"head\":[{\"n\":1},{\"R\":{\"C\":\"I\"}}]},{\"row\":[]}]}",
     "s/head/R/C", false, "\"I\""},
    {"{\"s\":[{\"head\":1},{\"row\":2}]}", "s/1/row", false, "2"},
    {"<r><b><i><n> 1 </n></i><i><n>2</n></i></b></r>", "r/b/i/n", true, "\"1\"|\"2\""},
    {"<r><b><i><n>1</n></i></b></r>", "b/i", true, "{\"n\":\"1\"}"},
    {"<r><b><i><n>1</n></i></b></r>", "b/i", false, ""},
    {"<r><b/></r>", "r/b", true, ""},
    {"<r a=\"1\">x<b>y</b></r>", "r/@a", true, "\"1\""},
    {"<r a=\"1\">x<b>y</b></r>", "r/#text", true, "\"x\""},
    {"<r><![CDATA[a<b]]></r>", "r", true, "\"a<b\""},
};

static int
add_found(void *arg, const json_t *value)
{
    struct buf *out = arg;
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);

    buf_addf(out, "%s%s", out->len ? "|" : "", text);
    free(text);
    return 0;
}

static void
test_A38_paths_walk_through_lists(void **state)
{
    for (size_t i = 0; i < array_len(walks); i++) {
        scoped(reply_tree_release) struct reply_tree tree = {0};
        scoped(buf_release) struct buf found = {0};
        struct err err = {0};

        buf_init(&found, 0);
        assert_int_equal(
            reply_tree_parse(walks[i].body, strlen(walks[i].body), &tree, &err), 0);
        reply_each(tree.root, walks[i].path, walks[i].loose, add_found, &found);
        assert_string_equal(buf_str(&found), walks[i].found);
    }
}

/* --- cast --- */

struct cast {
    const char *type;
    const char *text;
    const char *made; /* NULL: no such value; "" null */
};

static const struct cast casts[] = {
    {"integer", " 82,500 ", "82500"},
    {"integer", "1,234,567", "1234567"},
    {"integer", "-1,000", "-1000"},
    {"integer", "12,34", NULL},
    {"integer", "1234,567", NULL},
    {"integer", ",1", NULL},
    {"integer", "12.5", NULL},
    {"integer", " ", ""},
    {"decimal", "1,234.50", "1234.50"},
    {"decimal", "1e5", NULL},
    {"real", "2.5", "2.5"},
    {"boolean", "Y", "true"},
    {"boolean", "0", "false"},
    {"boolean", "perhaps", NULL},
    {"date", "2026-02-28", "2026-02-28"},
    {"date", "2026-02-30", NULL},
    {"date:yyyyMMdd", "20260228", "2026-02-28"},
    {"date:yyyyMMdd", "20260230", NULL},
    {"date:yyyyMMdd", "2026022", NULL},
    {"date:yy.MM.dd", "26.02.28", "2026-02-28"},
    {"date:yy.MM.dd", "26-02-28", NULL},
    {"text", "  서울 ", "서울"},
};

static void
test_A38_texts_are_cast_as_people_write_them(void **state)
{
    for (size_t i = 0; i < array_len(casts); i++) {
        struct row_set rows;
        struct cell *cell;
        struct err err = {0};
        const char *text;
        size_t len;
        char room[CELL_TEXT_MAX];

        row_set_init(&rows, 0);
        row_set_clear(&rows, 1);
        cell = row_set_add(&rows);
        assert_int_equal(cell_set_text(&rows, cell, CELL_TEXT, casts[i].text,
                                       strlen(casts[i].text), "c", &err),
                         0);
        assert_true(cast_known(casts[i].type));
        if (cast_cell(casts[i].type, &rows, cell) != (casts[i].made != NULL))
            fail_msg("%s of \"%s\"", casts[i].type, casts[i].text);
        if (casts[i].made) {
            cell_as_text(cell, room, &text, &len);
            assert_int_equal(len, strlen(casts[i].made));
            assert_memory_equal(text, casts[i].made, len);
        }
        row_set_release(&rows);
    }
    assert_false(cast_known("date:yyyy"));
    assert_false(cast_known("number"));
}

/* --- templates of calls --- */

static const char *
give_key(struct io_ctx *io, const char *name)
{
    return strcmp(name, "K") == 0 ? "a/b+c=" : NULL;
}

struct fill {
    enum call_place place;
    const char *text;
    const char *made; /* NULL: refused */
};

static const struct fill fills[] = {
    {CALL_URL, "http://h/{a}?q={a}", "http://h/x%2F%3F%20%26?q=x%2F%3F%20%26"},
    {CALL_QUERY, "p {a}", "p%20x%2F%3F%20%26"},
    {CALL_QUERY, "{key:K}", "a%2Fb%2Bc%3D"},
    {CALL_PLAIN, "{a}-{n}", "x/? &-7"},
    {CALL_HEADER, "{nl}", NULL},
    {CALL_FILE, "{a}.xml", NULL},
    {CALL_FILE, "{n}.xml", "7.xml"},
    {CALL_PLAIN, "{nobody}", NULL},
    {CALL_PLAIN, "{key:OTHER}", NULL},
    {CALL_PLAIN, "{token}", NULL},
    {CALL_PLAIN, "{list}", NULL},
};

static void
test_A13_values_are_escaped_for_their_place(void **state)
{
    json_t *params = json_pack("{s:s, s:i, s:s, s:[i]}", "a", "x/? &", "n", 7, "nl",
                               "a\nb", "list", 1);
    struct io_ctx io = {.params = params, .key = give_key};

    for (size_t i = 0; i < array_len(fills); i++) {
        scoped(buf_release) struct buf out = {0};
        struct call_names names = {.io = &io};
        struct err err = {0};
        int r;

        buf_init(&out, 0);
        assert_int_equal(call_text_check("t", fills[i].text, &err), 0);
        r = call_text_fill("t", fills[i].text, &names, fills[i].place, &out, &err);
        if ((r == 0) != (fills[i].made != NULL))
            fail_msg("%s: %s", fills[i].text, err.text);
        if (fills[i].made)
            assert_string_equal(buf_str(&out), fills[i].made);
    }
    json_decref(params);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_A38_what_is_no_reply_is_refused_and_told),
        cmocka_unit_test(test_A38_xml_is_read_in_the_encoding_that_it_names),
        cmocka_unit_test(test_A38_a_reply_that_would_fill_the_memory_is_refused),
        cmocka_unit_test(test_A38_xml_is_not_nested_without_end),
        cmocka_unit_test(test_A38_long_integers_keep_their_digits),
        cmocka_unit_test(test_A38_numbers_that_are_none_are_refused_nonetheless),
        cmocka_unit_test(test_A38_paths_walk_through_lists),
        cmocka_unit_test(test_A38_texts_are_cast_as_people_write_them),
        cmocka_unit_test(test_A13_values_are_escaped_for_their_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

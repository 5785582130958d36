/* The tree: places, kinds, typing of plain scalars. */
#include "base/arena.h"
#include "config/errors.h"
#include "config/yaml_node.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static json_t *
json_of(const char *yaml, struct config_errors *errors)
{
    scoped(arena_release) struct arena arena = {0};
    const struct ynode *root = ynode_parse(yaml, strlen(yaml), "f", &arena, errors);

    assert_non_null(root);
    return ynode_json(root, "f", errors);
}

static void
test_plain_scalars_are_typed_as_yaml_1_2_has_it(void **state)
{
    static const struct {
        const char *yaml;
        const char *json;
    } rows[] = {
        {"", "{}"},
        {"# only a comment\n", "{}"},
        {"a: 5", "{\"a\":5}"},
        {"a: -5", "{\"a\":-5}"},
        {"a: 0", "{\"a\":0}"},
        {"a: 0.5", "{\"a\":0.5}"},
        {"a: 1e3", "{\"a\":1000.0}"},
        {"a: \"5\"", "{\"a\":\"5\"}"},
        {"a: '5'", "{\"a\":\"5\"}"},
        {"a: true", "{\"a\":true}"},
        {"a: yes", "{\"a\":\"yes\"}"},
        {"a: NO", "{\"a\":\"NO\"}"},
        {"a: null", "{\"a\":null}"},
        {"a: ~", "{\"a\":null}"},
        {"a:", "{\"a\":null}"},
        {"a: ''", "{\"a\":\"\"}"},
        {"a: 2026-11-01", "{\"a\":\"2026-11-01\"}"},
        {"a: 12:30", "{\"a\":\"12:30\"}"},
        {"a: 1.2.3", "{\"a\":\"1.2.3\"}"},
        {"a: 0x1f", "{\"a\":\"0x1f\"}"},
        {"a: .", "{\"a\":\".\"}"},
        {"a: |\n  SELECT 1\n  FROM t\n", "{\"a\":\"SELECT 1\\nFROM t\\n\"}"},
        {"a: >\n  x\n  y\n", "{\"a\":\"x y\\n\"}"},
        {"a: [1, b, {c: d}]", "{\"a\":[1,\"b\",{\"c\":\"d\"}]}"},
        {"\xef\xbb\xbf"
         "a: 1",
         "{\"a\":1}"},
        {"서울: 한글 🏙", "{\"서울\":\"한글 🏙\"}"},
    };
    size_t i;

    for (i = 0; i < array_len(rows); i++) {
        struct config_errors errors = {0};
        json_t *wanted = json_loads(rows[i].json, 0, NULL);
        json_t *got = json_of(rows[i].yaml, &errors);

        if (errors.count > 0 || !json_equal(got, wanted))
            fail_msg("%s gave %s, %zu problems", rows[i].yaml, json_dumps(got, 0),
                     errors.count);
        json_decref(got);
        json_decref(wanted);
    }
}

static void
test_numbers_that_would_lose_something_are_refused(void **state)
{
    static const char *const rows[] = {"a: 01110", "a: -007", "a: 9223372036854775808",
                                       "a: 1e999", "a: +5"};
    size_t i;

    for (i = 0; i < array_len(rows); i++) {
        struct config_errors errors = {0};
        json_t *got = json_of(rows[i], &errors);

        if (errors.count != 1)
            fail_msg("%s gave %s", rows[i], json_dumps(got, 0));
        assert_int_equal(errors.list[0].column, 4);
        config_errors_release(&errors);
        json_decref(got);
    }
}

static void
test_places_count_lines_and_characters_from_one(void **state)
{
    static const char yaml[] = "a: 1\n서울:\n  - x\n  - {k~/: \"v\"}\n";
    scoped(arena_release) struct arena arena = {0};
    struct config_errors errors = {0};
    const struct ynode *root = ynode_parse(yaml, strlen(yaml), "f", &arena, &errors);
    const struct ynode *node = ynode_find(root, "/서울/1/k~0~1");

    assert_non_null(root);
    assert_string_equal(node->text, "v");
    assert_int_equal(node->line, 4);
    assert_int_equal(node->column, 11);
    assert_int_equal(node->key_column, 6);
    node = ynode_find(root, "/서울/7/deeper");
    assert_int_equal(node->kind, YNODE_LIST);
    assert_int_equal(node->key_line, 2);
    assert_ptr_equal(ynode_find(root, ""), root);
    assert_null(ynode_get(root, "b"));
    assert_null(ynode_get(NULL, "b"));
}

static void
test_depth_32_is_fine_and_33_is_not(void **state)
{
    int depth;

    for (depth = YNODE_DEPTH_MAX - 1; depth <= YNODE_DEPTH_MAX; depth++) {
        scoped(arena_release) struct arena arena = {0};
        struct config_errors errors = {0};
        const struct ynode *root;
        char opening[64] = {0};
        char closing[64] = {0};
        char yaml[256];

        /* The map is level 1, so depth - 1 lists and the value come below. */
        memset(opening, '[', (size_t)depth - 1);
        memset(closing, ']', (size_t)depth - 1);
        snprintf(yaml, sizeof(yaml), "a: %s1%s", opening, closing);
        root = ynode_parse(yaml, strlen(yaml), "f", &arena, &errors);
        assert_int_equal(root != NULL, depth < YNODE_DEPTH_MAX);
        assert_int_equal(errors.count, depth < YNODE_DEPTH_MAX ? 0 : 1);
        config_errors_release(&errors);
    }
}

static void
test_problems_beyond_a_hundred_are_counted_not_kept(void **state)
{
    struct config_errors errors = {0};
    char line[64];
    int i;

    for (i = 0; i < 150; i++)
        config_errors_add(&errors, "f", (unsigned)(200 - i), 1, "problem %d", i);
    config_errors_add(&errors, "f", 200, 1, "problem 0");
    assert_int_equal(errors.count, CONFIG_ERRORS_MAX);
    assert_int_equal(errors.left_out, 50);
    config_errors_sort(&errors);
    config_errors_text(&errors, 0, line, sizeof(line));
    assert_string_equal(line, "f:101:1: problem 99");
    config_errors_release(&errors);
    assert_int_equal(errors.count, 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_scalars_are_typed_as_yaml_1_2_has_it),
        cmocka_unit_test(test_numbers_that_would_lose_something_are_refused),
        cmocka_unit_test(test_places_count_lines_and_characters_from_one),
        cmocka_unit_test(test_depth_32_is_fine_and_33_is_not),
        cmocka_unit_test(test_problems_beyond_a_hundred_are_counted_not_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

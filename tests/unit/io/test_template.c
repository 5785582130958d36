/* {name} in file names, paths and texts. */
#include "io_test.h"

#include "io/template.h"

static void
test_values_are_escaped_for_a_file_name(void **state)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"cities-{c}.{f}", "cities-KR.xlsx"},
        {"{evil}.csv", "__.._etc_passwd.csv"},
        {"{dot}", "_hidden"},
        {"a/b\\c.csv", "a_b_c.csv"},
        {"{ko} {n} {r} {b}.csv", "서울_강남구 42 1.5 true.csv"},
        {"{empty}", "_"},
        {"{emoji}.csv", "_.csv"},
        {"보고서 {c}.xlsx", "보고서 KR.xlsx"},
    };
    struct io_test t;

    io_test_init(&t, "{\"c\":\"KR\",\"f\":\"xlsx\",\"evil\":\"./../etc/passwd\","
                     "\"dot\":\".hidden\",\"ko\":\"서울/강남구\",\"n\":42,\"r\":1.5,"
                     "\"b\":true,\"empty\":\"\",\"emoji\":\"😀\"}");
    for (size_t i = 0; i < array_len(cases); i++) {
        scoped(buf_release) struct buf out = {0};

        buf_init(&out, 0);
        ok(&t, template_file_name(cases[i].text, t.params, &out, &t.err));
        assert_string_equal(buf_str(&out), cases[i].want);
    }
    io_test_release(&t);
}

static void
test_a_long_name_is_cut_and_keeps_its_extension(void **state)
{
    struct io_test t;
    scoped(buf_release) struct buf out = {0};
    char params[1400] = "{\"x\":\"";

    for (int i = 0; i < 100; i++)
        memcpy(params + 6 + 3 * i, "가", 3);
    memcpy(params + 306, "\"}", 3);
    io_test_init(&t, params);
    buf_init(&out, 0);
    ok(&t, template_file_name("{x}.xlsx", t.params, &out, &t.err));
    assert_true(out.len <= TEMPLATE_FILE_NAME_MAX_BYTES);
    assert_true(out.len > TEMPLATE_FILE_NAME_MAX_BYTES - 4);
    assert_string_equal(out.data + out.len - 5, ".xlsx");
    assert_int_equal((out.len - 5) % 3, 0);
    io_test_release(&t);
}

static void
test_a_value_never_leaves_the_folder_of_a_path(void **state)
{
    struct io_test t;
    scoped(buf_release) struct buf out = {0};

    io_test_init(&t, "{\"f\":\"../../etc/passwd\",\"d\":\"..\"}");
    buf_init(&out, 0);
    ok(&t, template_path("/data/{d}/{f}", t.params, &out, &t.err));
    assert_string_equal(buf_str(&out), "/data/_./_._.._etc_passwd");
    io_test_release(&t);
}

static void
test_bad_templates_are_refused_with_their_place(void **state)
{
    struct io_test t;
    scoped(buf_release) struct buf out = {0};

    io_test_init(&t, "{\"l\":[1]}");
    buf_init(&out, 0);
    fails(&t, ERR_CONFIG, "{nobody}",
          template_plain("a {nobody}", t.params, &out, &t.err));
    fails(&t, ERR_CONFIG, "list", template_plain("{l}", t.params, &out, &t.err));
    fails(&t, ERR_CONFIG, "character 3", template_check("write.file", "a {", &t.err));
    fails(&t, ERR_CONFIG, "character 2", template_check("write.file", "a}", &t.err));
    fails(&t, ERR_CONFIG, "no name", template_check("write.file", "{a b}", &t.err));
    ok(&t, template_check("write.file", "x-{a}.{b_2}", &t.err));
    io_test_release(&t);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_are_escaped_for_a_file_name),
        cmocka_unit_test(test_a_long_name_is_cut_and_keeps_its_extension),
        cmocka_unit_test(test_a_value_never_leaves_the_folder_of_a_path),
        cmocka_unit_test(test_bad_templates_are_refused_with_their_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

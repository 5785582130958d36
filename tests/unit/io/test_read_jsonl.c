/* JSON lines: what is a row, what is a bad line and where, restart at any line. */
#include "reader_test.h"

static const struct jsonl_case {
    const char *file, *def, *want;
} cases[] = {
    {"{\"a\":1,\"b\":\"x\"}\n{\"b\":null,\"a\":2.5}\r\n\n{\"a\":true}", "{}",
     "|integer:1|x|\n|real:2.5|-|\n|boolean:1|-|\n"},
    {"\xEF\xBB\xBF{\"a\":\"한글\\n\\ud83d\\ude00\"}\n", "{}", "|한글\n😀|\n"},
    /* Declared columns: of the type, others left out. */
    {"{\"n\":12345678901234567.890,\"m\":\"7\",\"z\":[1, {\"k\":\"]}\"}],\"o\":9}\n",
     "{\"columns\":{\"n\":\"decimal\",\"m\":\"integer\",\"z\":\"text\"}}",
     "|12345678901234567.890|integer:7|[1, {\"k\":\"]}\"}]|\n"},
    {"{\"d\":\"2024-02-29\",\"t\":1.50,\"b\":false}\n",
     "{\"columns\":{\"d\":\"date\",\"t\":\"text\",\"b\":\"boolean\",\"x\":\"real\"}}",
     "|date:19782|1.50|boolean:0|-|\n"},
    {"{\"a\":{\"k\":[]},\"b\":1}\n", "{\"columns\":[\"b\",\"a\"]}",
     "|integer:1|{\"k\":[]}|\n"},
    {"", "{\"columns\":[\"a\"]}", ""},
    /* Bad lines. */
    {"{\"a\":1}\n{\"a\":1,\"a\":2}\n{\"a\":3}\n", "{}",
     "|integer:1|\n!parse in.jsonl:2\n|integer:3|\n"},
    {"{\"a\":1}\n{\"a\":\"\\ud800\"}\n{\"a\":\"\xff\"}\n{\"a\":1e999}\n{\"a\":", "{}",
     "|integer:1|\n!parse in.jsonl:2\n!parse in.jsonl:3\n!parse in.jsonl:4\n!parse "
     "in.jsonl:5\n"},
    {"{\"a\":1}\n[1]\n{\"b\":1}\n<html>\n", "{}",
     "|integer:1|\n!format in.jsonl:2\n!format in.jsonl:3\n!parse in.jsonl:4\n"},
    {"{\"a\":\"x\"}\n{\"a\":[1]}\n{\"a\":1.5}\n{\"a\":5}\n",
     "{\"columns\":{\"a\":\"integer\"}}",
     "!format in.jsonl:1\n!format in.jsonl:2\n!format in.jsonl:3\n|integer:5|\n"},
};

static void
test_lines_are_rows_or_bad_and_restart_is_exact(void **state)
{
    for (size_t i = 0; i < array_len(cases); i++) {
        struct io_test t;
        json_t *def;

        io_test_init(&t, "{}");
        put_file(&t, "in.jsonl", cases[i].file, strlen(cases[i].file));
        def = file_def(&t, "jsonl", "in.jsonl", cases[i].def);
        assert_chunks_agree(&t, def, cases[i].want);
        json_decref(def);
        io_test_release(&t);
    }
}

static void
test_messages_name_line_and_column(void **state)
{
    static const struct {
        const char *line, *want;
    } lines[] = {
        {"{\"a\":1,\"a\":2}", "in.jsonl:2:11: duplicate object key"},
        {"{\"가\":\"\\ud800\"}", "in.jsonl:2:14: invalid Unicode"},
        {"{\"a\":\"\xff\"}", "in.jsonl:2:7: not UTF-8"},
        {"{\"a\":1e999}", "in.jsonl:2:6: the number 1e999 is out of range"},
        {"nothing", "in.jsonl:2:"},
        {"{\"b\":1}", "in.jsonl:2: \"b\" is no column"},
    };

    for (size_t i = 0; i < array_len(lines); i++) {
        scoped(reader_freep) struct reader *reader = NULL;
        struct row_set rows;
        char text[128];
        struct io_test t;
        json_t *def;

        io_test_init(&t, "{}");
        row_set_init(&rows, 0);
        (void)snprintf(text, sizeof(text), "{\"a\":1}\n%s\n", lines[i].line);
        put_file(&t, "in.jsonl", text, strlen(text));
        def = file_def(&t, "jsonl", "in.jsonl", "{}");
        reader = new_reader(&t, def);
        ok(&t, reader_open(reader, NULL, &t.err));
        assert_int_equal(reader_read_chunk(reader, 9, &rows, &t.err), READER_BAD);
        if (!strstr(t.err.text, lines[i].want))
            fail_msg("%s: %s", lines[i].line, t.err.text);
        row_set_release(&rows);
        json_decref(def);
        io_test_release(&t);
    }
}

static void
test_a_file_that_tells_no_columns_is_refused_with_the_remedy(void **state)
{
    static const char *const files[] = {"", "\n\n", "{}\n"};

    for (size_t i = 0; i < array_len(files); i++) {
        scoped(reader_freep) struct reader *reader = NULL;
        struct io_test t;
        json_t *def;

        io_test_init(&t, "{}");
        put_file(&t, "in.jsonl", files[i], strlen(files[i]));
        def = file_def(&t, "jsonl", "in.jsonl", "{}");
        reader = new_reader(&t, def);
        fails(&t, ERR_INVALID, "name them under read.columns",
              reader_open(reader, NULL, &t.err));
        json_decref(def);
        io_test_release(&t);
    }
}

/* Lines of all lengths around the buffer's, one of them over the ceiling. */
static void
test_long_lines_and_one_too_long(void **state)
{
    struct io_test t;
    char path[128];
    FILE *file;
    json_t *def;
    scoped(buf_release) struct buf out = {0};

    io_test_init(&t, "{}");
    (void)snprintf(path, sizeof(path), "%s/in.jsonl", t.folder);
    file = fopen(path, "we");
    assert_non_null(file);
    (void)fprintf(file, "{\"a\":1,\"b\":\"x\"}\n{\"a\":2,\"b\":\"");
    for (int i = 0; i < 34 << 20; i += 64)
        (void)fprintf(file, "%064d", i);
    (void)fprintf(file, "\"}\n");
    for (int i = 3; i < 40; i++)
        (void)fprintf(file, "{\"a\":%d,\"b\":\"%0*d\"}\n", i, 20000 * (i % 9) + 1, 0);
    assert_int_equal(fclose(file), 0);
    def = file_def(&t, "jsonl", "in.jsonl", "{\"columns\":[\"a\"]}");
    buf_init(&out, 0);
    dump_by_position(&t, def, 3, &out);
    assert_memory_equal(buf_str(&out),
                        "|integer:1|\n!parse in.jsonl:2\n|integer:3|\n|integer:4|\n",
                        54);
    assert_true(str_ends_with(buf_str(&out), "|integer:39|\n"));
    json_decref(def);
    io_test_release(&t);
}

static void
test_broken_files_neither_crash_nor_hang(void **state)
{
    static const char data[] =
        "{\"a\":1,\"b\":\"x\\u0041\\ud83d\\ude00\",\"c\":[1,{\"d\":null}]}\n"
        "{\"a\":-1.5e3,\"b\":\"한글\",\"c\":{}}\n{\"c\":[[[]]],\"a\":true}\n";
    static const char *const defs[] = {
        "{}", "{\"columns\":{\"a\":\"decimal\",\"c\":\"text\"}}"};

    for (size_t i = 0; i < array_len(defs); i++) {
        struct io_test t;
        json_t *def;

        io_test_init(&t, "{}");
        def = file_def(&t, "jsonl", "in.jsonl", defs[i]);
        read_broken_files(&t, def, "in.jsonl", data, strlen(data), 300);
        json_decref(def);
        io_test_release(&t);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_are_rows_or_bad_and_restart_is_exact),
        cmocka_unit_test(test_messages_name_line_and_column),
        cmocka_unit_test(test_a_file_that_tells_no_columns_is_refused_with_the_remedy),
        cmocka_unit_test(test_long_lines_and_one_too_long),
        cmocka_unit_test(test_broken_files_neither_crash_nor_hang),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

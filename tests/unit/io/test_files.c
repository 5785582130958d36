/* What JSON lines hold, and what a workbook refuses to hold. */
#include "io_test.h"

#include "io/write_jsonl.h"
#include "io/write_xlsx.h"
#include "io/xlsx_sheet.h"

#include <math.h>

static void
test_json_lines_keep_every_digit_and_letter(void **state)
{
    static const struct cell_spec cells[] = {
        {CELL_INT, .i = INT64_C(9007199254740993)},
        {CELL_DECIMAL, .text = "12345678901234567890.0123456789"},
        {CELL_REAL, .real = 0.1},
        {CELL_REAL, .real = (double)NAN},
        {CELL_TEXT, .text = "quote \" back \\ line\n한글 \x01 \xFF."},
        {CELL_BYTES, .text = "abc"},
        {CELL_DATE, .i = 19782},
        {CELL_TIMESTAMP, .i = 1500000},
        {CELL_BOOL, .i = 0},
        {CELL_NULL},
    };
    static const struct column columns[] = {
        {"i", CELL_INT},  {"d", CELL_DECIMAL}, {"r", CELL_REAL}, {"n", CELL_REAL},
        {"t", CELL_TEXT}, {"b", CELL_BYTES},   {"D", CELL_DATE}, {"T", CELL_TIMESTAMP},
        {"f", CELL_BOOL}, {"\"0\"", CELL_NULL}};
    scoped(writer_freep) struct writer *writer = NULL;
    scoped(buf_release) struct buf got = {0};
    json_t *def = json_object();
    struct writer_summary summary;
    struct row_set rows;
    struct io_test t;
    struct cell *row;

    io_test_init(&t, "{}");
    row_set_init(&rows, 0);
    row_set_clear(&rows, array_len(cells));
    row = row_set_add(&rows);
    for (size_t i = 0; i < array_len(cells); i++)
        put_spec(&t, &rows, &row[i], &cells[i]);
    ok(&t, write_jsonl_new(&t.io, def, &writer, &t.err));
    ok(&t, writer_open(writer, NULL, &t.err));
    ok(&t, writer_begin(writer, columns, array_len(columns), &t.err));
    ok(&t, writer_write(writer, &rows, &t.err));
    ok(&t, writer_finish(writer, &summary, &t.err));
    read_file(t.part, &got);
    assert_string_equal(
        buf_str(&got),
        "{\"i\":9007199254740993,\"d\":12345678901234567890.0123456789,\"r\":0.1,"
        "\"n\":\"NaN\",\"t\":\"quote \\\" back \\\\ line\\n한글 \\u0001 "
        "\xEF\xBF\xBD.\","
        "\"b\":\"YWJj\",\"D\":\"2024-02-29\",\"T\":\"1970-01-01T00:00:01.5Z\","
        "\"f\":false,\"\\\"0\\\"\":null}\n");
    row_set_release(&rows);
    json_decref(def);
    io_test_release(&t);
}

/* One text of `characters` times `piece`, written as the second data row. */
static int
write_long(struct io_test *t, const char *piece, size_t characters)
{
    static const struct column columns[] = {{"memo", CELL_TEXT}};
    scoped(writer_freep) struct writer *writer = NULL;
    scoped(buf_release) struct buf text = {0};
    json_t *def = json_object();
    struct row_set rows;
    int r;

    for (size_t i = 0; i < characters; i++)
        buf_add_str(&text, piece);
    row_set_init(&rows, 0);
    row_set_clear(&rows, 1);
    (void)row_set_add(&rows);
    ok(t, cell_set_text(&rows, row_set_add(&rows), CELL_TEXT, text.data, text.len,
                        "memo", &t->err));
    ok(t, write_xlsx_new(&t->io, def, &writer, &t->err));
    ok(t, writer_open(writer, NULL, &t->err));
    ok(t, writer_begin(writer, columns, 1, &t->err));
    r = writer_write(writer, &rows, &t->err);
    row_set_release(&rows);
    writer_freep(&writer);
    json_decref(def);
    return r;
}

static void
test_a_cell_over_32767_utf16_units_is_refused_with_its_place(void **state)
{
    struct io_test t;

    io_test_init(&t, "{}");
    ok(&t, write_long(&t, "x", XLSX_CELL_UNITS_MAX));
    fails(&t, ERR_TOO_LARGE, "row 2, column memo: a text of 32768 characters",
          write_long(&t, "x", XLSX_CELL_UNITS_MAX + 1));
    ok(&t, write_long(&t, "한", XLSX_CELL_UNITS_MAX));
    fails(&t, ERR_TOO_LARGE, "write csv or jsonl",
          write_long(&t, "한", XLSX_CELL_UNITS_MAX + 1));
    /* One emoji is two units. */
    ok(&t, write_long(&t, "\xF0\x9F\x98\x80", XLSX_CELL_UNITS_MAX / 2));
    fails(&t, ERR_TOO_LARGE, "32768",
          write_long(&t, "\xF0\x9F\x98\x80", XLSX_CELL_UNITS_MAX / 2 + 1));
    io_test_release(&t);
}

static int
begin_wide(struct io_test *t, size_t width)
{
    scoped(writer_freep) struct writer *writer = NULL;
    struct column *columns = calloc(width, sizeof(*columns));
    json_t *def = json_object();
    int r;

    for (size_t i = 0; i < width; i++)
        columns[i].name = "c";
    ok(t, write_xlsx_new(&t->io, def, &writer, &t->err));
    ok(t, writer_open(writer, NULL, &t->err));
    r = writer_begin(writer, columns, width, &t->err);
    writer_freep(&writer);
    free(columns);
    json_decref(def);
    return r;
}

static void
test_a_workbook_holds_16384_columns(void **state)
{
    struct io_test t;

    io_test_init(&t, "{}");
    ok(&t, begin_wide(&t, XLSX_COLUMNS_MAX));
    fails(&t, ERR_TOO_LARGE, "16385 columns", begin_wide(&t, XLSX_COLUMNS_MAX + 1));
    io_test_release(&t);
}

static void
test_a_chunk_ends_early_when_its_texts_fill_the_memory(void **state)
{
    scoped(row_set_release) struct row_set rows;
    struct io_test t;
    char text[1000];
    size_t n = 0;

    io_test_init(&t, "{}");
    memset(text, 'x', sizeof(text));
    row_set_init(&rows, 100000);
    for (int round = 0; round < 2; round++) {
        row_set_clear(&rows, 2);
        for (n = 0; !row_set_full(&rows); n++)
            ok(&t, cell_set_text(&rows, row_set_add(&rows), CELL_TEXT, text,
                                 sizeof(text), "t", &t.err));
        assert_in_range(n, 90, 101);
        assert_memory_equal(row_set_row(&rows, 0)[0].text, text, sizeof(text));
        assert_memory_equal(row_set_row(&rows, n - 1)[0].text, text, sizeof(text));
    }
    fails(&t, ERR_TOO_LARGE, "column t",
          cell_set_text(&rows, row_set_add(&rows), CELL_TEXT, text, CELL_MAX_BYTES + 1,
                        "t", &t.err));
    io_test_release(&t);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_lines_keep_every_digit_and_letter),
        cmocka_unit_test(test_a_cell_over_32767_utf16_units_is_refused_with_its_place),
        cmocka_unit_test(test_a_workbook_holds_16384_columns),
        cmocka_unit_test(test_a_chunk_ends_early_when_its_texts_fill_the_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

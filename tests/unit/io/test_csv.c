/* CSV in and out: RFC 4180, exact positions, formulas made harmless. */
#include "io_test.h"

#include "io/read_csv.h"
#include "io/write_csv.h"

/* Read a whole file in chunks of n rows; fields as |a|b| with - for NULL. */
static void
dump(struct io_test *t, struct reader *reader, size_t n, struct buf *out)
{
    struct row_set rows;
    int r = READER_MORE;

    row_set_init(&rows, 0);
    while (r == READER_MORE) {
        r = reader_read_chunk(reader, n, &rows, &t->err);
        ok(t, r);
        for (size_t i = 0; i < rows.count; i++) {
            for (size_t k = 0; k < rows.width; k++) {
                const struct cell *cell = &row_set_row(&rows, i)[k];

                buf_add_char(out, '|');
                if (cell->type == CELL_NULL)
                    buf_add_char(out, '-');
                else if (cell->type == CELL_TEXT || cell->type == CELL_DECIMAL)
                    buf_add(out, cell->text, cell->len);
                else if (cell->type == CELL_REAL)
                    buf_addf(out, "%g", cell->real);
                else
                    buf_addf(out, "%s:%lld", cell_type_name(cell->type),
                             (long long)cell->i);
            }
            buf_add_str(out, "|\n");
        }
    }
    row_set_release(&rows);
}

static json_t *
csv_def(struct io_test *t, const char *more)
{
    char path[128];
    json_t *def = json_of(more);

    (void)snprintf(path, sizeof(path), "%s/in.csv", t->folder);
    json_object_set_new(def, "csv", json_string(path));
    return def;
}

static void
put_csv(struct io_test *t, const char *text)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/in.csv", t->folder);
    write_file(path, text, strlen(text));
}

static const struct read_case {
    const char *file, *def, *want;
    const char *error; /* instead of want */
} read_cases[] = {
    {"a,b\r\n1,2\r\n", "{}", "|1|2|\n"},
    {"a,b\n1,2", "{}", "|1|2|\n"},
    {"\xEF\xBB\xBF"
     "a,b\n1,2\n\n\n3,4\n",
     "{}", "|1|2|\n|3|4|\n"},
    {"a,b\n\"x, \"\"y\"\"\",\"two\r\nlines\"\n", "{}", "|x, \"y\"|two\r\nlines|\n"},
    {"a,b\n,\"\"\n", "{}", "|-||\n"},
    {"a,b\n,\"\"\n", "{\"empty\":\"text\"}", "|||\n"},
    {"a;b\n1;2,5\n", "{\"delimiter\":\";\"}", "|1|2,5|\n"},
    {"a\n1\n\n\"\"\n", "{}", "|1|\n|-|\n||\n"},
    {"a,b\nx\ry,ab\"c\n", "{}", "|x\ry|ab\"c|\n"},
    {"1,2\n", "{\"header\":false,\"columns\":[\"x\",\"y\"]}", "|1|2|\n"},
    {"n,d,p,b,t,x\n7,2024-02-29,012.50,true,1970-01-01T00:00:01Z,q\n",
     "{\"columns\":{\"n\":\"integer\",\"d\":\"date\",\"p\":\"decimal\",\"b\":"
     "\"boolean\","
     "\"t\":\"timestamp\"}}",
     "|integer:7|date:19782|12.50|boolean:1|timestamp:1000000|q|\n"},
    {"한글,b\n서울,2\n", "{}", "|서울|2|\n"},
    {"a,b\n", "{}", ""},
    {"a,b\n1,2\n1,2,3\n", "{}", NULL, "in.csv:3: 3 fields, the head has 2"},
    {"a,b\n1,\"2\n3\n", "{}", NULL, "in.csv:2: field 2: the quote is never closed"},
    {"a,b\n\"1\"x,2\n", "{}", NULL, "in.csv:2: field 1: text behind the closing quote"},
    {"a,b\n\"1\n2\",\n\xB0\xA1,2\n", "{}", NULL, "in.csv:4:1: field 1: byte 0xb0"},
    {"", "{}", NULL, "is empty"},
    {"a,a\n", "{}", NULL, "two columns named \"a\""},
    {"a,\n", "{}", NULL, "column 2 has no name"},
    {"a\nx\n", "{\"columns\":{\"a\":\"integer\"}}", NULL,
     "in.csv:2: column a: \"x\" is no integer"},
    {"a\nx\n", "{\"columns\":{\"b\":\"integer\"}}", NULL, "has no column \"b\""},
};

static int
read_all(struct io_test *t, const json_t *def, struct buf *out)
{
    scoped(reader_freep) struct reader *reader = NULL;
    struct row_set rows;
    int r;

    ok(t, read_csv_new(&t->io, def, &reader, &t->err));
    r = reader_open(reader, NULL, &t->err);
    if (r < 0)
        return r;
    row_set_init(&rows, 0);
    r = reader_read_chunk(reader, 1000, &rows, &t->err);
    row_set_release(&rows);
    if (r < 0 || r == READER_BAD)
        return -(int)t->err.code;
    reader_freep(&reader);
    ok(t, read_csv_new(&t->io, def, &reader, &t->err));
    ok(t, reader_open(reader, NULL, &t->err));
    dump(t, reader, 2, out);
    return 0;
}

static void
test_csv_is_read_as_rfc_4180_says_and_errors_name_file_and_line(void **state)
{
    for (size_t i = 0; i < array_len(read_cases); i++) {
        const struct read_case *c = &read_cases[i];
        scoped(buf_release) struct buf out = {0};
        struct io_test t;
        json_t *def;

        io_test_init(&t, "{}");
        buf_init(&out, 0);
        put_csv(&t, c->file);
        def = csv_def(&t, c->def);
        if (c->error) {
            fails(&t, ERR_INVALID, c->error, read_all(&t, def, &out));
        } else {
            ok(&t, read_all(&t, def, &out));
            assert_string_equal(buf_str(&out), c->want);
        }
        json_decref(def);
        io_test_release(&t);
    }
}

/* Records around the size of the reading buffer, so that many lie across its end. */
static void
make_big(struct buf *file, int rows)
{
    buf_init(file, 0);
    buf_add_str(file, "id,text\r\n");
    for (int i = 0; i < rows; i++)
        buf_addf(file, "%d,\"row \"\"%d\"\"\r\n%0*d\"\r\n", i, i, 1 + i % 9000, i);
}

static void
test_every_position_goes_on_at_the_next_record(void **state)
{
    struct io_test t;
    scoped(buf_release) struct buf file = {0};
    scoped(buf_release) struct buf whole = {0};
    json_t *def;

    io_test_init(&t, "{}");
    make_big(&file, 600);
    put_csv(&t, buf_str(&file));
    def = csv_def(&t, "{}");
    buf_init(&whole, 0);
    ok(&t, read_all(&t, def, &whole));
    for (size_t chunk = 1; chunk < 600; chunk += 97) {
        scoped(buf_release) struct buf parts = {0};
        scoped(buf_release) struct buf position = {0};
        int r = READER_MORE;

        buf_init(&parts, 0);
        buf_init(&position, 0);
        while (r == READER_MORE) {
            scoped(reader_freep) struct reader *reader = NULL;
            struct row_set rows;

            row_set_init(&rows, 0);
            ok(&t, read_csv_new(&t.io, def, &reader, &t.err));
            ok(&t,
               reader_open(reader, position.len ? buf_str(&position) : NULL, &t.err));
            r = reader_read_chunk(reader, chunk, &rows, &t.err);
            ok(&t, r);
            for (size_t i = 0; i < rows.count; i++) {
                const struct cell *cells = row_set_row(&rows, i);

                buf_addf(&parts, "|%.*s|%.*s|\n", (int)cells[0].len, cells[0].text,
                         (int)cells[1].len, cells[1].text);
            }
            buf_clear(&position);
            ok(&t, reader_position(reader, &position, &t.err));
            row_set_release(&rows);
        }
        assert_int_equal(parts.len, whole.len);
        assert_memory_equal(parts.data, whole.data, whole.len);
    }
    json_decref(def);
    io_test_release(&t);
}

static void
test_a_file_that_shrank_below_its_checkpoint_is_refused(void **state)
{
    struct io_test t;
    scoped(reader_freep) struct reader *reader = NULL;
    json_t *def;

    io_test_init(&t, "{}");
    put_csv(&t, "a\n1\n");
    def = csv_def(&t, "{}");
    ok(&t, read_csv_new(&t.io, def, &reader, &t.err));
    fails(&t, ERR_INVALID, "the file was changed",
          reader_open(reader, "{\"offset\":400,\"line\":9,\"rows\":8,\"mark\":1}",
                      &t.err));
    json_decref(def);
    io_test_release(&t);
}

/* --- writing --- */

static void
write_cells(struct io_test *t, const char *def_text, const struct cell_spec *specs,
            size_t n, struct buf *ret)
{
    scoped(writer_freep) struct writer *writer = NULL;
    struct column columns[16];
    json_t *def = json_of(def_text);
    struct writer_summary summary;
    struct row_set rows;
    struct cell *cells;

    row_set_init(&rows, 0);
    row_set_clear(&rows, n);
    cells = row_set_add(&rows);
    for (size_t i = 0; i < n; i++) {
        columns[i] = (struct column){.name = i ? "b" : "=a"};
        put_spec(t, &rows, &cells[i], &specs[i]);
    }
    ok(t, write_csv_new(&t->io, def, &writer, &t->err));
    ok(t, writer_open(writer, NULL, &t->err));
    ok(t, writer_begin(writer, columns, n, &t->err));
    ok(t, writer_write(writer, &rows, &t->err));
    ok(t, writer_finish(writer, &summary, &t->err));
    assert_int_equal(summary.rows, 1);
    read_file(t->part, ret);
    assert_int_equal(summary.bytes, ret->len);
    row_set_release(&rows);
    json_decref(def);
}

static void
test_texts_that_would_be_formulas_get_an_apostrophe(void **state)
{
    static const struct {
        const char *def;
        struct cell_spec cell;
        const char *want;
    } cases[] = {
        {"{}", {CELL_TEXT, .text = "=1+1"}, "'=1+1"},
        {"{}", {CELL_TEXT, .text = "+82"}, "'+82"},
        {"{}", {CELL_TEXT, .text = "-5"}, "'-5"},
        {"{}", {CELL_TEXT, .text = "@x"}, "'@x"},
        {"{}", {CELL_TEXT, .text = "\tx"}, "'\tx"},
        {"{}", {CELL_TEXT, .text = "\rx"}, "\"'\rx\""},
        {"{}", {CELL_TEXT, .text = "a=b"}, "a=b"},
        {"{\"raw\":true}", {CELL_TEXT, .text = "=1+1"}, "=1+1"},
        {"{}", {CELL_INT, .i = -5}, "-5"},
        {"{}", {CELL_DECIMAL, .text = "-5.50"}, "-5.50"},
        {"{}", {CELL_TEXT, .text = ""}, "\"\""},
        {"{}", {CELL_NULL}, ""},
        {"{}", {CELL_TEXT, .text = "a,\"b\"\n"}, "\"a,\"\"b\"\"\n\""},
        {"{\"delimiter\":\";\"}", {CELL_TEXT, .text = "a,b"}, "a,b"},
        {"{}", {CELL_TEXT, .text = "bad\xFF."}, "bad\xEF\xBF\xBD."},
        {"{}", {CELL_BYTES, .text = "ab"}, "YWI="},
        {"{}", {CELL_BOOL, .i = 1}, "true"},
        {"{}", {CELL_DATE, .i = 19782}, "2024-02-29"},
        {"{}",
         {CELL_TIMESTAMP, .i = 1500000, .zoneless = true},
         "1970-01-01T00:00:01.5"},
        {"{}", {CELL_REAL, .real = 0.1}, "0.1"},
    };

    for (size_t i = 0; i < array_len(cases); i++) {
        scoped(buf_release) struct buf got = {0};
        bool raw = strstr(cases[i].def, "raw") != NULL;
        char want[64];
        struct io_test t;

        io_test_init(&t, "{}");
        (void)snprintf(want, sizeof(want), "%s=a\r\n%s\r\n", raw ? "" : "'",
                       cases[i].want);
        write_cells(&t, cases[i].def, &cases[i].cell, 1, &got);
        assert_string_equal(buf_str(&got), want);
        io_test_release(&t);
    }
}

static void
test_what_csv_writes_csv_reads(void **state)
{
    static const struct cell_spec cells[] = {
        {CELL_TEXT, .text = "quote \" comma , line\r\nend"},
        {CELL_NULL},
        {CELL_TEXT, .text = ""},
        {CELL_TEXT, .text = " blanks "},
    };
    struct io_test t;
    scoped(buf_release) struct buf file = {0};
    scoped(buf_release) struct buf out = {0};
    json_t *def;

    io_test_init(&t, "{}");
    write_cells(&t, "{\"bom\":true}", cells, 4, &file);
    assert_memory_equal(file.data, "\xEF\xBB\xBF", 3);
    put_csv(&t, strchr(buf_str(&file), '\n') + 1);
    def = csv_def(&t, "{\"header\":false,\"columns\":[\"a\",\"b\",\"c\",\"d\"]}");
    buf_init(&out, 0);
    ok(&t, read_all(&t, def, &out));
    assert_string_equal(buf_str(&out), "|quote \" comma , line\r\nend|-|| blanks |\n");
    json_decref(def);
    io_test_release(&t);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            test_csv_is_read_as_rfc_4180_says_and_errors_name_file_and_line),
        cmocka_unit_test(test_every_position_goes_on_at_the_next_record),
        cmocka_unit_test(test_a_file_that_shrank_below_its_checkpoint_is_refused),
        cmocka_unit_test(test_texts_that_would_be_formulas_get_an_apostrophe),
        cmocka_unit_test(test_what_csv_writes_csv_reads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * B20 and the promise of checkpoints: whatever a crash leaves behind the last
 * checkpoint, going on from it gives the very bytes of an undisturbed run.
 */
#include "io_test.h"

#define CHUNKS     7
#define CHUNK_ROWS 300
#define COLUMNS    9

static const struct column columns[COLUMNS] = {
    {"id", CELL_INT},       {"정확", CELL_DECIMAL}, {"real", CELL_REAL},
    {"text", CELL_TEXT},    {"bytes", CELL_BYTES},  {"day", CELL_DATE},
    {"at", CELL_TIMESTAMP}, {"flag", CELL_BOOL},    {"none", CELL_NULL},
};

/* The same rows for the same chunk, whoever asks. */
static void
make_rows(struct io_test *t, struct row_set *rows, int chunk)
{
    row_set_clear(rows, COLUMNS);
    for (int i = 0; i < CHUNK_ROWS; i++) {
        int n = chunk * CHUNK_ROWS + i;
        struct cell *cells = row_set_add(rows);
        char text[64];

        cell_set_i64(&cells[0], CELL_INT, n);
        (void)snprintf(text, sizeof(text), "%d.%02d", n * 7919, n % 100);
        ok(t, cell_set_text(rows, &cells[1], CELL_DECIMAL, text, strlen(text), "d",
                            &t->err));
        cell_set_real(&cells[2], n / 3.0);
        (void)snprintf(text, sizeof(text), "row %d <서울> & \"%d\"", n, n * n);
        ok(t,
           cell_set_text(rows, &cells[3], CELL_TEXT, text, strlen(text), "t", &t->err));
        ok(t, cell_set_text(rows, &cells[4], CELL_BYTES, text, 5, "b", &t->err));
        cell_set_i64(&cells[5], CELL_DATE, n);
        cell_set_i64(&cells[6], CELL_TIMESTAMP, n * INT64_C(1234567891));
        cell_set_i64(&cells[7], CELL_BOOL, n % 2);
    }
}

static void
start(struct io_test *t, const json_t *def, const char *state, struct writer **ret)
{
    const struct writer_kind *kind;

    ok(t, format_choose_writer(def, t->params, &kind, &t->err));
    ok(t, kind->new_writer(&t->io, def, ret, &t->err));
    assert_int_equal(writer_open(*ret, state, &t->err), WRITER_OPENED);
    ok(t, writer_begin(*ret, columns, COLUMNS, &t->err));
}

/* Write chunks from..to, committing each; the last state is left in `state`. */
static void
write_chunks(struct io_test *t, struct writer *writer, int from, int to,
             struct buf *state)
{
    struct row_set rows;

    row_set_init(&rows, 0);
    for (int chunk = from; chunk < to; chunk++) {
        make_rows(t, &rows, chunk);
        ok(t, writer_write(writer, &rows, &t->err));
        buf_clear(state);
        ok(t, writer_commit(writer, state, &t->err));
    }
    row_set_release(&rows);
}

static void
finish(struct io_test *t, struct writer **writer, struct buf *ret_file)
{
    struct writer_summary summary;

    ok(t, writer_finish(*writer, &summary, &t->err));
    assert_int_equal(summary.rows, CHUNKS * CHUNK_ROWS);
    writer_freep(writer);
    read_file(t->io.part_path, ret_file);
    assert_int_equal(summary.bytes, ret_file->len);
}

/* A crash: half a chunk more is written, and rubbish lies behind it. */
static void
crash(struct io_test *t, struct writer **writer, int chunk)
{
    struct row_set rows;
    FILE *file;

    row_set_init(&rows, 0);
    make_rows(t, &rows, chunk);
    ok(t, writer_write(*writer, &rows, &t->err));
    row_set_release(&rows);
    writer_freep(writer);
    file = fopen(t->io.part_path, "ae");
    assert_non_null(file);
    for (int i = 0; i < 5000; i++)
        assert_true(fputc(i * 31 & 0xFF, file) != EOF);
    assert_int_equal(fclose(file), 0);
}

static void
check_format(const char *def_text)
{
    json_t *def = json_of(def_text);
    scoped(buf_release) struct buf whole = {0};
    scoped(buf_release) struct buf state = {0};
    struct writer *writer = NULL;
    char successor[128];
    struct io_test t;

    io_test_init(&t, "{}");
    (void)snprintf(successor, sizeof(successor), "%s/successor", t.folder);
    buf_init(&state, 0);
    start(&t, def, NULL, &writer);
    write_chunks(&t, writer, 0, CHUNKS, &state);
    finish(&t, &writer, &whole);
    for (int border = 1; border <= CHUNKS; border++) {
        scoped(buf_release) struct buf again = {0};

        start(&t, def, NULL, &writer);
        write_chunks(&t, writer, 0, border, &state);
        assert_true(state.len < 2000);
        crash(&t, &writer, border);
        if (border % 2) { /* another run, which makes a part of its own */
            t.io.part_path = successor;
            t.io.part_from = t.part;
        }
        start(&t, def, buf_str(&state), &writer);
        write_chunks(&t, writer, border, CHUNKS, &state);
        finish(&t, &writer, &again);
        if (again.len != whole.len || memcmp(again.data, whole.data, whole.len) != 0)
            fail_msg("%s differs after a resume at chunk %d", def_text, border);
        t.io.part_path = t.part;
        t.io.part_from = NULL;
    }
    json_decref(def);
    io_test_release(&t);
}

static void
test_a_killed_csv_goes_on_to_the_same_bytes(void **state)
{
    check_format("{\"file\":\"a.csv\"}");
}

static void
test_a_killed_jsonl_goes_on_to_the_same_bytes(void **state)
{
    check_format("{\"file\":\"a.jsonl\"}");
}

static void
test_a_killed_workbook_goes_on_to_the_same_bytes(void **state)
{
    check_format("{\"file\":\"a.xlsx\"}");
    check_format("{\"file\":\"a.xlsx\",\"compressor\":\"small\",\"autofilter\":true}");
    check_format("{\"file\":\"a.xlsx\",\"compressor\":\"fast\"}");
}

static void
test_a_state_that_does_not_fit_starts_the_step_over(void **state)
{
    static const char *const formats[] = {"csv", "jsonl", "xlsx"};
    scoped(buf_release) struct buf good = {0};
    struct io_test t;

    io_test_init(&t, "{}");
    buf_init(&good, 0);
    for (size_t i = 0; i < array_len(formats); i++) {
        char text[64];
        struct writer *writer = NULL;
        json_t *def;

        (void)snprintf(text, sizeof(text), "{\"file\":\"a.%s\"}", formats[i]);
        def = json_of(text);
        start(&t, def, NULL, &writer);
        write_chunks(&t, writer, 0, 2, &good);
        writer_freep(&writer);
        for (int k = 0; k < 4; k++) {
            const struct writer_kind *kind;
            const char *states[] = {buf_str(&good), "{\"format\":\"other\"}",
                                    "{\"finished\":true,\"rows\":1,\"bytes\":2}",
                                    "not"};

            if (k == 0)
                assert_int_equal(truncate(t.part, 100), 0);
            ok(&t, format_choose_writer(def, t.params, &kind, &t.err));
            ok(&t, kind->new_writer(&t.io, def, &writer, &t.err));
            assert_int_equal(writer_open(writer, states[k], &t.err),
                             WRITER_STATE_UNUSABLE);
            /* and it can be opened from the start then */
            assert_int_equal(writer_open(writer, NULL, &t.err), WRITER_OPENED);
            ok(&t, writer_begin(writer, columns, COLUMNS, &t.err));
            writer_freep(&writer);
        }
        json_decref(def);
    }
    io_test_release(&t);
}

static void
test_a_changed_number_of_columns_is_refused(void **state)
{
    static const char *const files[] = {"{\"file\":\"a.csv\"}",
                                        "{\"file\":\"a.xlsx\"}"};
    scoped(buf_release) struct buf saved = {0};
    struct io_test t;

    io_test_init(&t, "{}");
    buf_init(&saved, 0);
    for (size_t i = 0; i < array_len(files); i++) {
        json_t *def = json_of(files[i]);
        const struct writer_kind *kind;
        struct writer *writer = NULL;

        start(&t, def, NULL, &writer);
        write_chunks(&t, writer, 0, 1, &saved);
        writer_freep(&writer);
        ok(&t, format_choose_writer(def, t.params, &kind, &t.err));
        ok(&t, kind->new_writer(&t.io, def, &writer, &t.err));
        ok(&t, writer_open(writer, buf_str(&saved), &t.err));
        fails(&t, ERR_INVALID, "ask for a new run",
              writer_begin(writer, columns, COLUMNS - 1, &t.err));
        writer_freep(&writer);
        json_decref(def);
    }
    io_test_release(&t);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_killed_csv_goes_on_to_the_same_bytes),
        cmocka_unit_test(test_a_killed_jsonl_goes_on_to_the_same_bytes),
        cmocka_unit_test(test_a_killed_workbook_goes_on_to_the_same_bytes),
        cmocka_unit_test(test_a_state_that_does_not_fit_starts_the_step_over),
        cmocka_unit_test(test_a_changed_number_of_columns_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Writes workbooks for check_xlsx.py: `xlsx_sample KIND FILE`. Kinds: "cells" has
 * one row for each rule of a cell, "rows N" has N short rows, "far" puts the
 * zip's entries behind 4 GiB of nothing.
 */
#include "io_test.h"

#include "io/part.h"
#include "io/write_xlsx.h"
#include "io/xlsx_zip.h"

#include <math.h>

#define DAY_US INT64_C(86400000000)

static const struct cell_spec samples[] = {
    {CELL_INT, .i = INT64_C(9007199254740992)},
    {CELL_INT, .i = INT64_C(9007199254740993)},
    {CELL_INT, .i = INT64_C(-9007199254740993)},
    {CELL_INT, .i = -42},
    {CELL_DECIMAL, .text = "123456789012.345"},
    {CELL_DECIMAL, .text = "1234567890123.456"},
    {CELL_DECIMAL, .text = "0.000000000000000000012345"},
    {CELL_DECIMAL, .text = "-1.50"},
    {CELL_REAL, .real = 0.1},
    {CELL_REAL, .real = (double)NAN},
    {CELL_REAL, .real = -(double)INFINITY},
    {CELL_DATE, .i = 0},
    {CELL_DATE, .i = 61 - 25569},
    {CELL_DATE, .i = 60 - 25569},
    {CELL_DATE, .i = 2958465 - 25569},
    {CELL_DATE, .i = 2958466 - 25569},
    {CELL_TIMESTAMP, .i = DAY_US / 2},
    {CELL_TIMESTAMP, .i = 1},
    {CELL_TIMESTAMP, .i = DAY_US - 1},
    {CELL_TIMESTAMP, .i = -INT64_C(3000000000000000)},
    {CELL_TIMESTAMP, .i = 0, .zoneless = true},
    {CELL_BOOL, .i = 1},
    {CELL_BOOL, .i = 0},
    {CELL_TEXT, .text = "=1+1"},
    {CELL_TEXT, .text = "<a href=\"x\">&amp;</a>"},
    {CELL_TEXT, .text = " 앞뒤 공백 "},
    {CELL_TEXT, .text = "줄\n바꿈\tTab"},
    {CELL_TEXT, .text = "cr\rbell\007_x000D_ _x00_ _xZZZZ_"},
    {CELL_TEXT, .text = "\xF0\x9F\x98\x80 한글 \xEF\xBF\xBE."},
    {CELL_TEXT, .text = "bad\xFF\xED\xA0\x80"
                        "end"},
    {CELL_TEXT, .text = ""},
    {CELL_BYTES, .text = "bytes"},
    {CELL_NULL},
};

static struct writer *
open_workbook(struct io_test *t, const char *def_text, const struct column *columns,
              size_t count, json_t **ret_def)
{
    struct writer *writer;

    *ret_def = json_of(def_text);
    ok(t, write_xlsx_new(&t->io, *ret_def, &writer, &t->err));
    ok(t, writer_open(writer, NULL, &t->err));
    ok(t, writer_begin(writer, columns, count, &t->err));
    return writer;
}

static void
close_workbook(struct io_test *t, struct writer *writer, json_t *def)
{
    struct writer_summary summary;

    ok(t, writer_finish(writer, &summary, &t->err));
    (void)printf("%lld rows, %d sheets\n", (long long)summary.rows, summary.sheets);
    writer_free(writer);
    json_decref(def);
}

static void
write_cells(struct io_test *t)
{
    static const struct column columns[] = {{"n", CELL_INT}, {"값 & <v>", CELL_TEXT}};
    json_t *def;
    struct writer *writer = open_workbook(
        t, "{\"sheet\":\"도시/[1]\",\"autofilter\":true}", columns, 2, &def);
    struct row_set rows;

    row_set_init(&rows, 0);
    row_set_clear(&rows, 2);
    for (size_t i = 0; i < array_len(samples); i++) {
        struct cell *cells = row_set_add(&rows);

        cell_set_i64(&cells[0], CELL_INT, (int64_t)i);
        put_spec(t, &rows, &cells[1], &samples[i]);
    }
    ok(t, writer_write(writer, &rows, &t->err));
    close_workbook(t, writer, def);
    row_set_release(&rows);
}

static void
write_rows(struct io_test *t, long count)
{
    static const struct column columns[] = {{"n", CELL_INT}, {"day", CELL_DATE}};
    json_t *def;
    struct writer *writer =
        open_workbook(t, "{\"compressor\":\"fast\"}", columns, 2, &def);
    scoped(buf_release) struct buf state = {0};
    struct row_set rows;

    buf_init(&state, 0);
    row_set_init(&rows, 0);
    for (long i = 0; i < count;) {
        row_set_clear(&rows, 2);
        for (; i < count && rows.count < 10000; i++) {
            struct cell *cells = row_set_add(&rows);

            cell_set_i64(&cells[0], CELL_INT, i);
            cell_set_i64(&cells[1], CELL_DATE, i % 40000);
        }
        ok(t, writer_write(writer, &rows, &t->err));
        buf_clear(&state);
        ok(t, writer_commit(writer, &state, &t->err));
    }
    close_workbook(t, writer, def);
    row_set_release(&rows);
}

static void
write_far(struct io_test *t)
{
    scoped(part_release) struct part part;
    scoped(xlsx_zip_release) struct xlsx_zip zip;

    part_init(&part);
    ok(t, part_create(&part, t->io.part_path, &t->err));
    xlsx_zip_init(&zip, &part);
    ok(t, xlsx_zip_store(&zip, "near", "near", 4, &t->err));
    ok(t, part_sync(&part, &t->err));
    part_release(&part);
    assert_int_equal(truncate(t->io.part_path, INT64_C(5) << 30), 0);
    ok(t, part_resume(&part, t->io.part_path, NULL, INT64_C(5) << 30, &t->err));
    ok(t, xlsx_zip_store(&zip, "far", "far away", 8, &t->err));
    ok(t, xlsx_zip_finish(&zip, &t->err));
    ok(t, part_sync(&part, &t->err));
}

int
main(int argc, char **argv)
{
    struct io_test t;

    io_test_init(&t, "{}");
    assert_true(argc >= 3);
    t.io.part_path = argv[2];
    if (strcmp(argv[1], "cells") == 0)
        write_cells(&t);
    else if (strcmp(argv[1], "far") == 0)
        write_far(&t);
    else
        write_rows(&t, strtol(argv[1], NULL, 10));
    io_test_release(&t);
    return 0;
}

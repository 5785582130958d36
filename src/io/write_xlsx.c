/*
 * Order in the file: the parts that never change, the sheets, and the parts that
 * depend on how many sheets there are (xlsx_parts.c). At a commit the
 * compressor is brought to a border and the part is synced; the state then is
 * the directory so far, the open sheet's CRC and sizes, and the row.
 */
#include "io/write_xlsx.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/strs.h"
#include "io/io_ctx.h"
#include "io/option.h"
#include "io/part.h"
#include "io/row.h"
#include "io/xlsx_deflate.h"
#include "io/xlsx_parts.h"
#include "io/xlsx_sheet.h"
#include "io/xlsx_zip.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DRAIN_BYTES ((size_t)64 << 10)
#define SHEETS_MAX  500 /* their directory must fit into the state */
/* A sheet ends before ZIP64 sizes would be needed, which few programs read well. */
#define SHEET_RAW_MAX (UINT64_C(3) << 30)

struct xlsx_writer {
    struct writer writer;
    const json_t *def;
    struct part part;
    struct xlsx_zip zip;
    struct xlsx_deflate *deflate;
    const char *compressor; /* static text, or of `state` */
    struct xlsx_sheet sheet;
    uint32_t sheet_rows; /* in the open sheet, its header included */
    int64_t rows;        /* of data, in all sheets */
    json_t *state;       /* being resumed, until begin */
};

static struct xlsx_writer *
xlsx_of(struct writer *writer)
{
    return container_of(writer, struct xlsx_writer, writer);
}

/* --- open --- */

static bool
recall_entry(struct xlsx_zip *zip, const json_t *item)
{
    struct xlsx_zip_entry entry = {0};
    const char *name = NULL;
    json_int_t offset, crc, packed, raw, deflated;

    if (json_unpack((json_t *)(uintptr_t)item, "[s,I,I,I,I,I]", &name, &offset, &crc,
                    &packed, &raw, &deflated) != 0 ||
        !str_copy(entry.name, sizeof(entry.name), name))
        return false;
    entry.offset = (uint64_t)offset;
    entry.crc = (uint32_t)crc;
    entry.packed = (uint32_t)packed;
    entry.raw = (uint32_t)raw;
    entry.deflated = (int)deflated;
    xlsx_zip_recall(zip, &entry);
    return true;
}

static bool
recall(struct xlsx_writer *xlsx, int64_t *ret_bytes)
{
    json_int_t bytes = -1, rows = -1, sheet_rows = 0;
    const char *format = "", *compressor = "";
    json_t *entries = NULL;

    if (json_unpack(xlsx->state, "{s:s,s:s,s:I,s:I,s:I,s:o}", "format", &format,
                    "compressor", &compressor, "bytes", &bytes, "rows", &rows,
                    "sheetRows", &sheet_rows, "entries", &entries) != 0)
        return false;
    if (!str_eq(format, "xlsx") || bytes < 0 || rows < 0 || sheet_rows < 1 ||
        json_array_size(entries) <= XLSX_HEAD_PARTS)
        return false;
    for (size_t i = 0; i < json_array_size(entries); i++) {
        if (!recall_entry(&xlsx->zip, json_array_get(entries, i)))
            return false;
    }
    xlsx->compressor = compressor;
    xlsx->rows = rows;
    xlsx->sheet_rows = (uint32_t)sheet_rows;
    *ret_bytes = bytes;
    return true;
}

static void
forget(struct xlsx_writer *xlsx)
{
    json_drop(&xlsx->state);
    xlsx_deflate_free(xlsx->deflate);
    xlsx->deflate = NULL;
    xlsx_zip_release(&xlsx->zip);
    xlsx_zip_init(&xlsx->zip, &xlsx->part);
    xlsx->compressor =
        xlsx_deflate_choose(io_option_text(xlsx->def, "compressor", NULL));
    xlsx->rows = 0;
    xlsx->sheet_rows = 0;
}

/* Goes on with the state's compressor, whatever the job says now. */
static int
xlsx_resume(struct xlsx_writer *xlsx, const char *state, struct err *err)
{
    struct err ignored = {0};
    int64_t bytes = 0;
    int r = PART_SHORT;

    if (json_parse(state, strlen(state), 8, &xlsx->state, &ignored) == 0 &&
        recall(xlsx, &bytes)) {
        xlsx->deflate = xlsx_deflate_new(xlsx->compressor, &xlsx->part);
        if (xlsx->deflate)
            r = part_resume(&xlsx->part, xlsx->writer.io->part_path,
                            xlsx->writer.io->part_from, bytes, err);
    }
    if (r == PART_SHORT) {
        forget(xlsx);
        return WRITER_STATE_UNUSABLE;
    }
    return r;
}

static int
xlsx_open(struct writer *writer, const char *state, struct err *err)
{
    struct xlsx_writer *xlsx = xlsx_of(writer);

    if (state)
        return xlsx_resume(xlsx, state, err);
    xlsx->deflate = xlsx_deflate_new(xlsx->compressor, &xlsx->part);
    if (!xlsx->deflate)
        return err_set(err, ERR_NOMEM, "no memory for the compressor %s",
                       xlsx->compressor);
    return part_create(&xlsx->part, writer->io->part_path, err);
}

/* --- sheets --- */

static size_t
sheet_count(const struct xlsx_writer *xlsx)
{
    return xlsx->zip.count - XLSX_HEAD_PARTS;
}

static int
drain(struct xlsx_writer *xlsx, struct err *err)
{
    int r =
        xlsx_deflate_add(xlsx->deflate, xlsx->sheet.xml.data, xlsx->sheet.xml.len, err);

    if (r < 0)
        return r;
    buf_clear(&xlsx->sheet.xml);
    return 0;
}

static int
sheet_begin(struct xlsx_writer *xlsx, struct err *err)
{
    char name[XLSX_ZIP_NAME_MAX];
    int r;

    if (sheet_count(xlsx) >= SHEETS_MAX)
        return err_set(err, ERR_TOO_LARGE,
                       "row %lld: a workbook of %d sheets is full; write csv or jsonl",
                       (long long)xlsx->rows + 1, SHEETS_MAX);
    (void)snprintf(name, sizeof(name), "xl/worksheets/sheet%zu.xml",
                   sheet_count(xlsx) + 1);
    r = xlsx_zip_begin(&xlsx->zip, name, err);
    if (r < 0)
        return r;
    xlsx_deflate_begin(xlsx->deflate, 0, 0, 0);
    xlsx->sheet_rows = 1;
    return xlsx_sheet_open(&xlsx->sheet, sheet_count(xlsx) == 1, err);
}

static int
sheet_end(struct xlsx_writer *xlsx, struct err *err)
{
    int r;

    xlsx_sheet_close(&xlsx->sheet, xlsx->sheet_rows);
    r = drain(xlsx, err);
    if (r < 0)
        return r;
    r = xlsx_deflate_end(xlsx->deflate, err);
    if (r < 0)
        return r;
    return xlsx_zip_end(&xlsx->zip, xlsx_deflate_crc(xlsx->deflate),
                        xlsx_deflate_packed_bytes(xlsx->deflate),
                        xlsx_deflate_raw_bytes(xlsx->deflate), err);
}

static int
begin_new(struct xlsx_writer *xlsx, struct err *err)
{
    int r = xlsx_parts_head(&xlsx->zip, err);

    return r < 0 ? r : sheet_begin(xlsx, err);
}

static int
begin_resumed(struct xlsx_writer *xlsx, size_t width, struct err *err)
{
    json_int_t crc = 0, packed = 0, raw = 0, had = 0;

    if (json_unpack(xlsx->state, "{s:I,s:I,s:I,s:I}", "crc", &crc, "packed", &packed,
                    "raw", &raw, "width", &had) != 0 ||
        (size_t)had != width)
        return err_set(err, ERR_INVALID,
                       "the source has %zu columns now, the workbook begun has %lld; "
                       "ask for a new run (restart: false)",
                       width, (long long)had);
    xlsx_deflate_begin(xlsx->deflate, (uint32_t)crc, (uint64_t)packed, (uint64_t)raw);
    return 0;
}

static int
xlsx_begin(struct writer *writer, const struct column *columns, size_t count,
           struct err *err)
{
    struct xlsx_writer *xlsx = xlsx_of(writer);

    if (count > XLSX_COLUMNS_MAX)
        return err_set(err, ERR_TOO_LARGE,
                       "%zu columns; a workbook has %d: select fewer or write csv",
                       count, XLSX_COLUMNS_MAX);
    xlsx_sheet_init(&xlsx->sheet, columns, count);
    xlsx->sheet.autofilter = io_option_bool(xlsx->def, "autofilter");
    return xlsx->state ? begin_resumed(xlsx, count, err) : begin_new(xlsx, err);
}

static bool
sheet_full(const struct xlsx_writer *xlsx)
{
    return xlsx->sheet_rows >= XLSX_ROWS_MAX ||
           xlsx_deflate_raw_bytes(xlsx->deflate) >= SHEET_RAW_MAX;
}

static int
xlsx_write(struct writer *writer, const struct row_set *rows, struct err *err)
{
    struct xlsx_writer *xlsx = xlsx_of(writer);
    int r;

    for (size_t i = 0; i < rows->count; i++) {
        if (sheet_full(xlsx)) {
            r = sheet_end(xlsx, err);
            if (r < 0)
                return r;
            r = sheet_begin(xlsx, err);
            if (r < 0)
                return r;
        }
        r = xlsx_sheet_row(&xlsx->sheet, xlsx->sheet_rows + 1, xlsx->rows + 1,
                           row_set_row(rows, i), err);
        if (r < 0)
            return r;
        xlsx->sheet_rows++;
        xlsx->rows++;
        if (xlsx->sheet.xml.len >= DRAIN_BYTES) {
            r = drain(xlsx, err);
            if (r < 0)
                return r;
        }
    }
    return 0;
}

/* --- commit and finish --- */

static void
put_state(const struct xlsx_writer *xlsx, struct json_out *out)
{
    json_begin_object(out);
    json_kv_str(out, "format", "xlsx");
    json_kv_str(out, "compressor", xlsx->compressor);
    json_kv_i64(out, "bytes", xlsx->part.offset);
    json_kv_i64(out, "rows", xlsx->rows);
    json_kv_i64(out, "width", (int64_t)xlsx->sheet.width);
    json_kv_i64(out, "sheetRows", xlsx->sheet_rows);
    json_kv_i64(out, "crc", xlsx_deflate_crc(xlsx->deflate));
    json_kv_i64(out, "packed", (int64_t)xlsx_deflate_packed_bytes(xlsx->deflate));
    json_kv_i64(out, "raw", (int64_t)xlsx_deflate_raw_bytes(xlsx->deflate));
    json_key(out, "entries");
    json_begin_array(out);
    for (size_t i = 0; i < xlsx->zip.count; i++) {
        const struct xlsx_zip_entry *entry = &xlsx->zip.entries[i];

        json_begin_array(out);
        json_put_str(out, entry->name);
        json_put_i64(out, (int64_t)entry->offset);
        json_put_i64(out, entry->crc);
        json_put_i64(out, entry->packed);
        json_put_i64(out, entry->raw);
        json_put_i64(out, entry->deflated);
        json_end_array(out);
    }
    json_end_array(out);
    json_end_object(out);
}

static int
xlsx_commit(struct writer *writer, struct buf *state, struct err *err)
{
    struct xlsx_writer *xlsx = xlsx_of(writer);
    struct json_out out;
    int r;

    r = drain(xlsx, err);
    if (r < 0)
        return r;
    r = xlsx_deflate_border(xlsx->deflate, err);
    if (r < 0)
        return r;
    r = part_sync(&xlsx->part, err);
    if (r < 0)
        return r;
    json_out_init(&out, state);
    put_state(xlsx, &out);
    return buf_check(state, "the writer's state", err);
}

static int
xlsx_finish(struct writer *writer, struct writer_summary *ret_summary, struct err *err)
{
    struct xlsx_writer *xlsx = xlsx_of(writer);
    size_t sheets = sheet_count(xlsx);
    int r = sheet_end(xlsx, err);

    if (r == 0)
        r = xlsx_parts_tail(&xlsx->zip, io_option_text(xlsx->def, "sheet", NULL),
                            sheets, err);
    if (r == 0)
        r = xlsx_zip_finish(&xlsx->zip, err);
    if (r == 0)
        r = part_sync(&xlsx->part, err);
    if (r < 0)
        return r;
    *ret_summary = (struct writer_summary){
        .rows = xlsx->rows,
        .bytes = xlsx->part.offset,
        .sheets = (int)sheets,
    };
    return 0;
}

static void
xlsx_free(struct writer *writer)
{
    struct xlsx_writer *xlsx = xlsx_of(writer);

    json_drop(&xlsx->state);
    xlsx_sheet_release(&xlsx->sheet);
    xlsx_deflate_free(xlsx->deflate);
    xlsx_zip_release(&xlsx->zip);
    part_release(&xlsx->part);
    free(xlsx);
}

static const struct writer_ops xlsx_ops = {
    .open = xlsx_open,
    .begin = xlsx_begin,
    .write = xlsx_write,
    .commit = xlsx_commit,
    .finish = xlsx_finish,
    .free = xlsx_free,
};

int
write_xlsx_new(struct io_ctx *io, const json_t *def, struct writer **ret_writer,
               struct err *err)
{
    struct xlsx_writer *xlsx = xcalloc(1, sizeof(*xlsx));

    xlsx->writer.ops = &xlsx_ops;
    xlsx->writer.io = io;
    xlsx->def = def;
    part_init(&xlsx->part);
    forget(xlsx);
    *ret_writer = &xlsx->writer;
    return 0;
}

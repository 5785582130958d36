/*
 * Cells are put together with a bare pointer into room reserved for the worst
 * case, because this is the hottest code of an export. Rules (ECMA-376 and what
 * Excel does with it):
 *
 *  - integers past ±2^53 and decimals of more than 15 significant digits are
 *    texts: a cell's number is a double;
 *  - dates are serials with a style from 1900-03-01 on; before lies Excel's
 *    29 February 1900, so they are ISO texts, as are years past 9999;
 *  - text is always typed (inlineStr), so it never becomes a formula; characters
 *    that XML cannot hold are _xHHHH_, and text that looks like that is escaped.
 */
#include "io/xlsx_sheet.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/utf8.h"
#include "io/base64.h"
#include "io/cell_text.h"
#include "io/row.h"
#include "io/xlsx_escape.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define XML_MAX_BYTES    ((size_t)768 << 20)
#define CELL_FRAME_BYTES 96 /* room for the tags around a value */
#define EXACT_INT_MAX    (INT64_C(1) << 53)
#define EXACT_DIGITS     15
#define DECIMAL_LEN_MAX  40
#define SERIAL_OF_1970   25569
#define SERIAL_FIRST     61      /* 1900-03-01 */
#define SERIAL_LAST      2958465 /* 9999-12-31 */
#define US_PER_DAY       INT64_C(86400000000)

/* Indices into cellXfs of xlsx_styles_xml. */
#define STYLE_DATE      " s=\"2\""
#define STYLE_TIMESTAMP " s=\"3\""

const char xlsx_styles_xml[] =
    "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n"
    "<styleSheet xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\">"
    "<numFmts count=\"2\"><numFmt numFmtId=\"164\" formatCode=\"yyyy\\-mm\\-dd\"/>"
    "<numFmt numFmtId=\"165\" formatCode=\"yyyy\\-mm\\-dd\\ hh:mm:ss\"/></numFmts>"
    "<fonts count=\"2\"><font><sz val=\"11\"/><name val=\"Calibri\"/></font>"
    "<font><b/><sz val=\"11\"/><name val=\"Calibri\"/></font></fonts>"
    "<fills count=\"2\"><fill><patternFill patternType=\"none\"/></fill>"
    "<fill><patternFill patternType=\"gray125\"/></fill></fills>"
    "<borders count=\"1\"><border><left/><right/><top/><bottom/><diagonal/></border>"
    "</borders><cellStyleXfs count=\"1\"><xf numFmtId=\"0\" fontId=\"0\" fillId=\"0\" "
    "borderId=\"0\"/></cellStyleXfs><cellXfs count=\"4\">"
    "<xf numFmtId=\"0\" fontId=\"0\" fillId=\"0\" borderId=\"0\" xfId=\"0\"/>"
    "<xf numFmtId=\"0\" fontId=\"1\" fillId=\"0\" borderId=\"0\" xfId=\"0\" "
    "applyFont=\"1\"/>"
    "<xf numFmtId=\"164\" fontId=\"0\" fillId=\"0\" borderId=\"0\" xfId=\"0\" "
    "applyNumberFormat=\"1\"/>"
    "<xf numFmtId=\"165\" fontId=\"0\" fillId=\"0\" borderId=\"0\" xfId=\"0\" "
    "applyNumberFormat=\"1\"/></cellXfs><cellStyles count=\"1\">"
    "<cellStyle name=\"Normal\" xfId=\"0\" builtinId=\"0\"/></cellStyles></styleSheet>";

static void
column_letters(size_t column, char out[4])
{
    char reversed[4];
    size_t n = 0;

    for (size_t rest = column + 1; rest > 0; rest = (rest - 1) / 26)
        reversed[n++] = (char)('A' + (rest - 1) % 26);
    for (size_t i = 0; i < n; i++)
        out[i] = reversed[n - 1 - i];
    out[n] = '\0';
}

void
xlsx_sheet_init(struct xlsx_sheet *sheet, const struct column *columns, size_t width)
{
    *sheet = (struct xlsx_sheet){.columns = columns, .width = width};
    buf_init(&sheet->xml, XML_MAX_BYTES);
    buf_init(&sheet->scratch, 2 * CELL_MAX_BYTES);
    sheet->letters = xcalloc(width, sizeof(*sheet->letters));
    for (size_t i = 0; i < width; i++)
        column_letters(i, sheet->letters[i]);
}

void
xlsx_sheet_release(struct xlsx_sheet *sheet)
{
    if (!sheet)
        return;
    buf_release(&sheet->xml);
    buf_release(&sheet->scratch);
    free(sheet->letters);
    *sheet = (struct xlsx_sheet){0};
}

/* --- pieces of cells: all return the pointer behind what they put --- */

static inline char *
put(char *p, const char *text, size_t len)
{
    memcpy(p, text, len);
    return p + len;
}

#define put_lit(p, literal) put((p), (literal), sizeof(literal) - 1)

static bool
is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n';
}

/* --- cells --- */

struct place {
    struct xlsx_sheet *sheet;
    size_t column;
    int64_t row_of_all;   /* 0 = the header */
    const char *row_text; /* the row's number in the sheet */
    size_t row_len;
};

/* Room for a cell whose value takes `bytes`, begun with <c r="A1". */
static char *
begin_cell(const struct place *at, size_t bytes)
{
    char *p = buf_reserve(&at->sheet->xml, bytes + CELL_FRAME_BYTES);
    const char *letters = at->sheet->letters[at->column];

    if (!p)
        return NULL;
    p = put_lit(p, "<c r=\"");
    while (*letters)
        *p++ = *letters++;
    p = put(p, at->row_text, at->row_len);
    *p++ = '"';
    return p;
}

static void
end_cell(const struct place *at, char *p)
{
    struct buf *xml = &at->sheet->xml;

    xml->len = (size_t)(p - xml->data);
}

/* A number: style is "" or one of STYLE_…. */
static void
number_cell(const struct place *at, const char *style, const char *text, size_t len)
{
    char *p = begin_cell(at, len);

    if (!p)
        return;
    p = put(p, style, strlen(style));
    p = put_lit(p, "><v>");
    p = put(p, text, len);
    end_cell(at, put_lit(p, "</v></c>"));
}

static int
too_long(const struct place *at, size_t units, struct err *err)
{
    const char *column = at->sheet->columns[at->column].name;

    if (at->row_of_all == 0)
        return err_set(err, ERR_TOO_LARGE,
                       "the name of column %zu has %zu characters; a workbook cell "
                       "holds %d: give it a shorter name (AS …)",
                       at->column + 1, units, XLSX_CELL_UNITS_MAX);
    return err_set(err, ERR_TOO_LARGE,
                   "row %lld, column %s: a text of %zu characters; a workbook cell "
                   "holds %d: shorten it in the query or write csv or jsonl",
                   (long long)at->row_of_all, column, units, XLSX_CELL_UNITS_MAX);
}

static size_t
utf16_units(const char *text, size_t len)
{
    size_t units = 0;

    /* Valid UTF-8: every byte that begins a character counts, four-byte ones twice. */
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];

        units += (c & 0xC0) != 0x80;
        units += c >= 0xF0;
    }
    return units;
}

static int
text_cell(const struct place *at, const char *style, const char *text, size_t len,
          struct err *err)
{
    char *p;

    if (!utf8_valid(text, len)) {
        buf_clear(&at->sheet->scratch);
        utf8_repair(text, len, &at->sheet->scratch);
        text = buf_str(&at->sheet->scratch);
        len = at->sheet->scratch.len;
    }
    if (len > XLSX_CELL_UNITS_MAX && utf16_units(text, len) > XLSX_CELL_UNITS_MAX)
        return too_long(at, utf16_units(text, len), err);
    p = begin_cell(at, len * XLSX_ESCAPE_GROWTH);
    if (!p)
        return 0; /* the overflow is seen at the row's end */
    p = put(p, style, strlen(style));
    if (len > 0 && (is_blank(text[0]) || is_blank(text[len - 1])))
        p = put_lit(p, " t=\"inlineStr\"><is><t xml:space=\"preserve\">");
    else
        p = put_lit(p, " t=\"inlineStr\"><is><t>");
    p = xlsx_escape(p, text, len);
    end_cell(at, put_lit(p, "</t></is></c>"));
    return 0;
}

/* Does a double give these decimal digits back? Up to 15 significant ones, yes. */
static bool
decimal_is_exact(const char *text, size_t len)
{
    const char *point = memchr(text, '.', len);
    size_t digits = 0;

    if (len > DECIMAL_LEN_MAX)
        return false;
    while (point && len > 0 && text[len - 1] == '0')
        len--;
    for (size_t i = 0; i < len; i++) {
        if (text[i] >= '0' && text[i] <= '9' && (digits > 0 || text[i] != '0'))
            digits++;
    }
    return digits <= EXACT_DIGITS;
}

static int
timestamp_cell(const struct place *at, const struct cell *cell, struct err *err)
{
    int64_t day = cell->i / US_PER_DAY - (cell->i % US_PER_DAY < 0);
    int64_t us = cell->i - day * US_PER_DAY;
    int64_t serial = day + SERIAL_OF_1970;
    char text[CELL_TEXT_MAX];
    size_t len;

    if (serial < SERIAL_FIRST || serial > SERIAL_LAST) {
        len = text_timestamp(text, cell->i, cell->zoneless, 'T');
        return text_cell(at, "", text, len, err);
    }
    len = text_i64(text, serial);
    if (us) {
        /* The part of the day in 12 digits: us * 10^12 / US_PER_DAY, rounded. */
        int64_t fraction = (us * 625 + 27) / 54;

        text[len++] = '.';
        for (int i = 11; i >= 0; i--) {
            text[len + (size_t)i] = (char)('0' + fraction % 10);
            fraction /= 10;
        }
        len += 12;
        while (text[len - 1] == '0')
            len--;
    }
    number_cell(at, STYLE_TIMESTAMP, text, len);
    return 0;
}

static int
number_or_text(const struct place *at, bool exact, const char *text, size_t len,
               struct err *err)
{
    if (!exact)
        return text_cell(at, "", text, len, err);
    number_cell(at, "", text, len);
    return 0;
}

static void
bool_cell(const struct place *at, bool value)
{
    char *p = begin_cell(at, 1);

    if (!p)
        return;
    p = put_lit(p, " t=\"b\"><v>");
    *p++ = value ? '1' : '0';
    end_cell(at, put_lit(p, "</v></c>"));
}

static int
bytes_cell(const struct place *at, const struct cell *cell, struct err *err)
{
    scoped(buf_release) struct buf text = {0};

    buf_init(&text, 2 * CELL_MAX_BYTES);
    base64_add(&text, cell->text, cell->len);
    return text_cell(at, "", buf_str(&text), text.len, err);
}

static int
add_cell(const struct place *at, const struct cell *cell, struct err *err)
{
    char text[CELL_TEXT_MAX];
    int64_t serial;

    switch ((enum cell_type)cell->type) {
    case CELL_NULL:
    case CELL_TYPE_COUNT:
        return 0;
    case CELL_BOOL:
        bool_cell(at, cell->i != 0);
        return 0;
    case CELL_INT:
        return number_or_text(at, cell->i <= EXACT_INT_MAX && cell->i >= -EXACT_INT_MAX,
                              text, text_i64(text, cell->i), err);
    case CELL_DECIMAL:
        return number_or_text(at, decimal_is_exact(cell->text, cell->len), cell->text,
                              cell->len, err);
    case CELL_REAL:
        return number_or_text(at, isfinite(cell->real), text,
                              text_real(text, cell->real), err);
    case CELL_DATE:
        serial = cell->i + SERIAL_OF_1970;
        if (serial < SERIAL_FIRST || serial > SERIAL_LAST)
            return text_cell(at, "", text, text_date(text, cell->i), err);
        number_cell(at, STYLE_DATE, text, text_i64(text, serial));
        return 0;
    case CELL_TIMESTAMP:
        return timestamp_cell(at, cell, err);
    case CELL_BYTES:
        return bytes_cell(at, cell, err);
    case CELL_TEXT:
        return text_cell(at, "", cell->text, cell->len, err);
    }
    return 0;
}

/* --- rows and the frame of a sheet --- */

static int
begin_row(struct xlsx_sheet *sheet, struct place *at, uint32_t row, char *row_text)
{
    char *p = buf_reserve(&sheet->xml, 32);

    at->row_text = row_text;
    at->row_len = text_i64(row_text, row);
    if (!p)
        return -1;
    p = put_lit(p, "<row r=\"");
    p = put(p, row_text, at->row_len);
    p = put_lit(p, "\">");
    end_cell(at, p);
    return 0;
}

int
xlsx_sheet_row(struct xlsx_sheet *sheet, uint32_t row, int64_t row_of_all,
               const struct cell *cells, struct err *err)
{
    struct place at = {.sheet = sheet, .row_of_all = row_of_all};
    char row_text[CELL_TEXT_MAX];
    int r;

    if (begin_row(sheet, &at, row, row_text) < 0)
        return buf_check(&sheet->xml, "a row of the workbook", err);
    for (at.column = 0; at.column < sheet->width; at.column++) {
        r = add_cell(&at, &cells[at.column], err);
        if (r < 0)
            return r;
    }
    buf_add(&sheet->xml, "</row>", 6);
    return buf_check(&sheet->xml, "a row of the workbook", err);
}

/* Characters wide enough for what the type usually shows. */
static int
column_width(enum cell_type type)
{
    static const unsigned char widths[] = {
        [CELL_NULL] = 16,    [CELL_BOOL] = 8,  [CELL_INT] = 12,
        [CELL_DECIMAL] = 14, [CELL_REAL] = 14, [CELL_TEXT] = 24,
        [CELL_BYTES] = 24,   [CELL_DATE] = 12, [CELL_TIMESTAMP] = 20,
    };

    static_assert_count(widths, CELL_TYPE_COUNT);
    return widths[type];
}

int
xlsx_sheet_open(struct xlsx_sheet *sheet, bool first, struct err *err)
{
    struct place at = {.sheet = sheet};
    char row_text[CELL_TEXT_MAX];
    int r;

    buf_addf(&sheet->xml,
             "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n"
             "<worksheet xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/"
             "main\"><sheetViews><sheetView%s workbookViewId=\"0\"><pane ySplit=\"1\" "
             "topLeftCell=\"A2\" activePane=\"bottomLeft\" state=\"frozen\"/>"
             "</sheetView></sheetViews><sheetFormatPr defaultRowHeight=\"15\"/><cols>",
             first ? " tabSelected=\"1\"" : "");
    for (size_t i = 0; i < sheet->width; i++)
        buf_addf(&sheet->xml,
                 "<col min=\"%zu\" max=\"%zu\" width=\"%d\" customWidth=\"1\"/>", i + 1,
                 i + 1, column_width(sheet->columns[i].type));
    buf_add_str(&sheet->xml, "</cols><sheetData>");
    if (begin_row(sheet, &at, 1, row_text) < 0)
        return buf_check(&sheet->xml, "the header of the workbook", err);
    for (at.column = 0; at.column < sheet->width; at.column++) {
        const char *name = sheet->columns[at.column].name;

        r = text_cell(&at, " s=\"1\"", name, strlen(name), err);
        if (r < 0)
            return r;
    }
    buf_add_str(&sheet->xml, "</row>");
    return buf_check(&sheet->xml, "the header of the workbook", err);
}

void
xlsx_sheet_close(struct xlsx_sheet *sheet, uint32_t last_row)
{
    buf_add_str(&sheet->xml, "</sheetData>");
    if (sheet->autofilter)
        buf_addf(&sheet->xml, "<autoFilter ref=\"A1:%s%u\"/>",
                 sheet->letters[sheet->width - 1], last_row);
    buf_add_str(&sheet->xml, "</worksheet>");
}

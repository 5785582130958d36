/*
 * Parts are found as the workbook itself says it: sheets by the relation that
 * carries their id. Styles and shared texts stand where every program writes
 * them. Numbers in a file from outside are only believed within their table.
 */
#include "io/xlsx_book.h"

#include "base/err.h"
#include "base/strs.h"
#include "base/utf8.h"
#include "io/xml_scan.h"

#include <stdlib.h>
#include <string.h>

#define STYLES_MAX  65536
#define FORMATS_MAX 4096

void
xlsx_book_init(struct xlsx_book *book, const char *temp_folder, size_t texts_memory)
{
    *book = (struct xlsx_book){0};
    zip_init(&book->zip);
    spool_init(&book->texts, temp_folder, texts_memory);
    spool_init(&book->borders, temp_folder, texts_memory);
    buf_init(&book->text, XML_ITEM_MAX_BYTES);
}

void
xlsx_book_release(struct xlsx_book *book)
{
    if (!book)
        return;
    zip_release(&book->zip);
    spool_release(&book->texts);
    spool_release(&book->borders);
    buf_release(&book->text);
    free(book->styles);
}

/* --- parts --- */

static int
read_part(void *arg, char *out, size_t cap, size_t *ret_len, struct err *err)
{
    return zip_stream_read(arg, out, cap, ret_len, err);
}

int
xlsx_part_scan(struct xlsx_book *book, struct zip_stream *stream,
               const struct zip_entry *part, const char *item,
               struct xml_scan **ret_scan, struct err *err)
{
    const struct xml_options options = {
        .name = part->name,
        .item = item,
        .keep_blanks = true,
        .local_names = true,
        .element_ends = true,
        .read = read_part,
        .arg = stream,
    };
    int r = zip_stream_open(stream, &book->zip, part, err);

    return r < 0 ? r : xml_scan_new(&options, ret_scan, err);
}

/* Called for each item of a part; outcome 0, 1 = enough, or < 0. */
typedef int (*item_fn)(void *arg, const struct xml_item *item, struct err *err);

static int
each_item(struct xlsx_book *book, const struct zip_entry *part, const char *item_path,
          item_fn fn, void *arg, struct err *err)
{
    scoped(zip_stream_release) struct zip_stream stream = {0};
    scoped(xml_scan_freep) struct xml_scan *scan = NULL;
    struct xml_item item;
    int r = xlsx_part_scan(book, &stream, part, item_path, &scan, err);

    while (r == 0) {
        r = xml_scan_next(scan, &item, err);
        if (r == XML_END)
            return 0;
        if (r == XML_BAD)
            return -(int)err->code;
        if (r == XML_ITEM)
            r = fn(arg, &item, err);
    }
    return r < 0 ? r : 0;
}

static const struct xml_field *
field_of(const struct xml_item *item, const char *path)
{
    for (size_t i = 0; i < item->count; i++) {
        if (item->fields[i].path_len == strlen(path) &&
            memcmp(item->fields[i].path, path, item->fields[i].path_len) == 0)
            return &item->fields[i];
    }
    return NULL;
}

static bool
field_is(const struct xml_field *field, const char *text)
{
    return field && field->len == strlen(text) &&
           memcmp(field->text, text, field->len) == 0;
}

/* A small whole number; -1: none. */
static int64_t
field_number(const struct xml_field *field)
{
    char text[12];
    int64_t value = -1;

    if (!field || field->len == 0 || field->len >= sizeof(text))
        return -1;
    memcpy(text, field->text, field->len);
    text[field->len] = '\0';
    return str_to_i64(text, &value) ? value : -1;
}

/* --- sheets --- */

struct sheet_search {
    const char *wanted;
    int64_t wanted_number; /* -1: by name only */
    int64_t number;
    char id[128];    /* of the relation; "" = not found yet */
    struct buf seen; /* names, for the message */
    struct buf *target;
};

static int
look_at_sheet(void *arg, const struct xml_item *item, struct err *err)
{
    struct sheet_search *search = arg;
    const struct xml_field *name = field_of(item, "@name");
    const struct xml_field *id = field_of(item, "@id");

    search->number++;
    if (!name || !id || id->len >= sizeof(search->id))
        return 0;
    buf_addf(&search->seen, "%s%.*s", search->seen.len ? ", " : "",
             (int)utf8_cut(name->text, name->len, 40), name->text);
    if (!field_is(name, search->wanted) && search->number != search->wanted_number)
        return 0;
    memcpy(search->id, id->text, id->len);
    search->id[id->len] = '\0';
    return field_is(name, search->wanted); /* a name goes before a number */
}

static int
look_at_relation(void *arg, const struct xml_item *item, struct err *err)
{
    struct sheet_search *search = arg;
    const struct xml_field *target = field_of(item, "@Target");

    if (!field_is(field_of(item, "@Id"), search->id) || !target)
        return 0;
    if (target->len > 0 && target->text[0] == '/')
        buf_add(search->target, target->text + 1, target->len - 1);
    else
        buf_addf(search->target, "xl/%.*s", (int)target->len, target->text);
    return 1;
}

static int
look_at_properties(void *arg, const struct xml_item *item, struct err *err)
{
    struct xlsx_book *book = arg;
    const struct xml_field *from_1904 = field_of(item, "@date1904");

    book->from_1904 = field_is(from_1904, "1") || field_is(from_1904, "true");
    return 1;
}

static int
no_workbook(const struct xlsx_book *book, struct err *err)
{
    return err_set(
        err, ERR_INVALID,
        "%s is no Excel workbook (.xlsx); an old .xls must be saved as .xlsx",
        book->zip.path);
}

static int
find_sheet(struct xlsx_book *book, const char *sheet,
           const struct zip_entry **ret_sheet, struct err *err)
{
    const struct zip_entry *workbook = zip_find(&book->zip, "xl/workbook.xml");
    const struct zip_entry *relations =
        zip_find(&book->zip, "xl/_rels/workbook.xml.rels");
    scoped(buf_release) struct buf target = {0};
    struct sheet_search search = {
        .wanted = sheet ? sheet : "", .wanted_number = 1, .target = &target};
    int r;

    if (!workbook || !relations)
        return no_workbook(book, err);
    if (sheet && !str_to_i64(sheet, &search.wanted_number))
        search.wanted_number = -1;
    buf_init(&target, 4096);
    buf_init(&search.seen, 4096);
    r = each_item(book, workbook, "workbook/workbookPr", look_at_properties, book, err);
    if (r == 0)
        r = each_item(book, workbook, "sheets/sheet", look_at_sheet, &search, err);
    if (r == 0 && search.id[0])
        r = each_item(book, relations, "Relationships/Relationship", look_at_relation,
                      &search, err);
    if (r == 0) {
        *ret_sheet = zip_find(&book->zip, buf_str(&target));
        if (!*ret_sheet)
            r = err_set(err, ERR_INVALID, "%s has no sheet %s; it has: %.200s",
                        book->zip.path, sheet ? sheet : "1", buf_str(&search.seen));
    }
    buf_release(&search.seen);
    return r;
}

/* --- styles --- */

struct style_reading {
    struct xlsx_book *book;
    struct {
        int64_t id;
        enum xlsx_style style;
    } formats[FORMATS_MAX]; /* those that the workbook has of its own */
    size_t n_formats;
};

enum xlsx_style
xlsx_format_style(const char *format, size_t len)
{
    bool day = false, time = false, month = false;

    for (size_t i = 0; i < len; i++) {
        char c = format[i] | 0x20;

        if (format[i] == '"') { /* a text */
            for (i++; i < len && format[i] != '"';)
                i++;
        } else if (format[i] == '\\' || format[i] == '_' || format[i] == '*') {
            i++;
        } else if (format[i] == '[') { /* a colour, a locale; [h] is elapsed time */
            time |= i + 2 < len && strchr("hms", format[i + 1] | 0x20) &&
                    (format[i + 2] == ']' || format[i + 2] == format[i + 1]);
            while (i < len && format[i] != ']')
                i++;
        } else if (format[i] == ';') {
            break; /* the rest is for negative numbers and texts */
        } else {
            day |= c == 'd' || c == 'y';
            time |= c == 'h' || c == 's';
            month |= c == 'm';
        }
    }
    if (day || (month && !time))
        return time ? XLSX_TIMESTAMP : XLSX_DATE;
    return time ? XLSX_TIME : XLSX_NUMBER;
}

static enum xlsx_style
style_of_id(const struct style_reading *reading, int64_t id)
{
    for (size_t i = 0; i < reading->n_formats; i++) {
        if (reading->formats[i].id == id)
            return reading->formats[i].style;
    }
    if (id == 22)
        return XLSX_TIMESTAMP;
    if ((id >= 18 && id <= 21) || (id >= 45 && id <= 47) || id == 32 || id == 33)
        return XLSX_TIME;
    if ((id >= 14 && id <= 17) || (id >= 27 && id <= 36) || (id >= 50 && id <= 58))
        return XLSX_DATE;
    return XLSX_NUMBER;
}

static int
look_at_format(void *arg, const struct xml_item *item, struct err *err)
{
    struct style_reading *reading = arg;
    const struct xml_field *code = field_of(item, "@formatCode");

    if (!code || reading->n_formats == FORMATS_MAX)
        return 0;
    reading->formats[reading->n_formats].id = field_number(field_of(item, "@numFmtId"));
    reading->formats[reading->n_formats++].style =
        xlsx_format_style(code->text, code->len);
    return 0;
}

static int
look_at_style(void *arg, const struct xml_item *item, struct err *err)
{
    struct style_reading *reading = arg;
    struct xlsx_book *book = reading->book;

    if (book->n_styles == STYLES_MAX)
        return 1;
    if (!book->styles)
        book->styles = xcalloc(STYLES_MAX, 1);
    book->styles[book->n_styles++] =
        (unsigned char)style_of_id(reading, field_number(field_of(item, "@numFmtId")));
    return 0;
}

static int
read_styles(struct xlsx_book *book, struct err *err)
{
    const struct zip_entry *part = zip_find(&book->zip, "xl/styles.xml");
    struct style_reading *reading;
    int r;

    if (!part)
        return 0;
    reading = xcalloc(1, sizeof(*reading));
    reading->book = book;
    r = each_item(book, part, "numFmts/numFmt", look_at_format, reading, err);
    if (r == 0)
        r = each_item(book, part, "cellXfs/xf", look_at_style, reading, err);
    free(reading);
    return r;
}

/* --- shared texts --- */

static int
look_at_text(void *arg, const struct xml_item *item, struct err *err)
{
    struct xlsx_book *book = arg;
    uint64_t end;
    int r = 0;

    /* rPh, which says how to pronounce, is not part of the text. */
    for (size_t i = 0; r == 0 && i < item->count; i++) {
        const struct xml_field *field = &item->fields[i];

        if ((field->path_len == 1 && field->path[0] == 't') ||
            (field->path_len == 3 && memcmp(field->path, "r/t", 3) == 0))
            r = spool_add(&book->texts, field->text, field->len, err);
    }
    end = spool_size(&book->texts);
    book->n_texts++;
    return r < 0 ? r : spool_add(&book->borders, &end, sizeof(end), err);
}

int
xlsx_book_text(struct xlsx_book *book, uint64_t index, const char **ret_text,
               size_t *ret_len, struct err *err)
{
    uint64_t borders[2] = {0, 0};
    char *room;
    int r;

    if (index >= book->n_texts)
        return err_set(err, ERR_INVALID,
                       "it is the shared text %llu, of which there are only %llu",
                       (unsigned long long)index, (unsigned long long)book->n_texts);
    r = index > 0 ? spool_read(&book->borders, (index - 1) * sizeof(borders[0]),
                               borders, sizeof(borders), err)
                  : spool_read(&book->borders, 0, &borders[1], sizeof(borders[1]), err);
    if (r < 0)
        return r;
    buf_clear(&book->text);
    *ret_len = (size_t)(borders[1] - borders[0]);
    room = buf_reserve(&book->text, *ret_len);
    if (!room)
        return buf_check(&book->text, "a shared text", err);
    r = spool_read(&book->texts, borders[0], room, *ret_len, err);
    if (r < 0)
        return r;
    *ret_len = xlsx_unescape(room, *ret_len);
    *ret_text = room;
    return 0;
}

/* The code point of "_xHHHH_" at text; 0: there is none. */
static uint32_t
escaped_code(const char *text, size_t len)
{
    static const char digits[] = "0123456789abcdef";
    uint32_t code = 0;

    if (len < 7 || text[0] != '_' || text[1] != 'x' || text[6] != '_')
        return 0;
    for (int i = 2; i < 6; i++) {
        const char *digit = strchr(digits, text[i] | (text[i] >= 'A' ? 0x20 : 0));

        if (!digit || !*digit)
            return 0;
        code = code << 4 | (uint32_t)(digit - digits);
    }
    return code;
}

size_t
xlsx_unescape(char *text, size_t len)
{
    size_t to = 0;

    for (size_t i = 0; i < len; i++) {
        uint32_t code = escaped_code(text + i, len - i);
        char bytes[4];
        size_t n = code ? utf8_encode(code, bytes) : 0;

        if (n == 0) {
            text[to++] = text[i];
            continue;
        }
        memcpy(text + to, bytes, n);
        to += n;
        i += 6;
    }
    return to;
}

int
xlsx_book_open(struct xlsx_book *book, const char *path, const char *sheet,
               const struct zip_entry **ret_sheet, struct err *err)
{
    const struct zip_entry *texts;
    bool zipped = false;
    int r = zip_is(path, &zipped, err);

    if (r < 0)
        return r;
    if (!zipped)
        return err_set(err, ERR_INVALID,
                       "%s is no Excel workbook (.xlsx); an old .xls must be saved as "
                       ".xlsx, and a protected one without its password",
                       path);
    r = zip_open(&book->zip, path, err);
    if (r == 0)
        r = find_sheet(book, sheet, ret_sheet, err);
    if (r == 0)
        r = read_styles(book, err);
    texts = r == 0 ? zip_find(&book->zip, "xl/sharedStrings.xml") : NULL;
    if (texts)
        r = each_item(book, texts, "sst/si", look_at_text, book, err);
    return r < 0 ? err_prefix(err, "%s", path) : 0;
}

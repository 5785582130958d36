#include "cli/print.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_BYTES (1 << 20)

/* --- escaping and width --- */

struct code_range {
    uint32_t first;
    uint32_t last;
};

static bool
is_in(uint32_t code, const struct code_range *ranges, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (code >= ranges[i].first && code <= ranges[i].last)
            return true;
    return false;
}

/* What moves the cursor, starts an escape sequence or turns the writing round. */
static bool
is_unsafe(uint32_t code)
{
    static const struct code_range ranges[] = {
        {0x00, 0x1f},     {0x7f, 0x9f},     {0x061c, 0x061c}, {0x200e, 0x200f},
        {0x2028, 0x202e}, {0x2066, 0x2069}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}};

    return is_in(code, ranges, array_len(ranges));
}

/* East Asian wide and emoji, in broad strokes: enough to keep columns straight. */
static bool
is_wide(uint32_t code)
{
    static const struct code_range ranges[] = {
        {0x1100, 0x115f},   {0x2e80, 0x303e},   {0x3041, 0xa4cf},  {0xac00, 0xd7a3},
        {0xf900, 0xfaff},   {0xfe30, 0xfe6f},   {0xff00, 0xff60},  {0xffe0, 0xffe6},
        {0x1f300, 0x1f64f}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd}};

    return is_in(code, ranges, array_len(ranges));
}

void
print_escape(struct buf *buf, const char *text)
{
    size_t len = strlen(text);

    for (size_t at = 0; at < len;) {
        uint32_t code = 0;
        size_t n = utf8_decode(text + at, len - at, &code);

        if (n == 0)
            buf_addf(buf, "\\x%02x", (unsigned char)text[at]);
        else if (!is_unsafe(code))
            buf_add(buf, text + at, n);
        else if (code <= 0xff)
            buf_addf(buf, "\\x%02x", (unsigned)code);
        else
            buf_addf(buf, "\\u%04x", (unsigned)code);
        at += n ? n : 1;
    }
}

size_t
print_width(const char *text)
{
    size_t len = strlen(text);
    size_t width = 0;

    for (size_t at = 0; at < len;) {
        uint32_t code = 0;
        size_t n = utf8_decode(text + at, len - at, &code);

        width += n && is_wide(code) ? 2 : 1;
        at += n ? n : 1;
    }
    return width;
}

/* --- numbers --- */

const char *
print_count(struct arena *arena, int64_t count)
{
    char digits[32];
    char out[48];
    size_t len;
    size_t used = 0;

    snprintf(digits, sizeof(digits), "%" PRId64, count);
    len = strlen(digits);
    for (size_t i = 0; i < len; i++) {
        if (i > 0 && digits[i - 1] != '-' && (len - i) % 3 == 0)
            out[used++] = ',';
        out[used++] = digits[i];
    }
    return arena_strndup(arena, out, used);
}

const char *
print_bytes(struct arena *arena, int64_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes / 1024;
    size_t unit = 0;

    if (bytes < 1024)
        return arena_printf(arena, "%" PRId64 " bytes", bytes);
    while (value >= 1024 && unit + 1 < array_len(units)) {
        value /= 1024;
        unit++;
    }
    return arena_printf(arena, "%.1f %s", value, units[unit]);
}

const char *
print_span(struct arena *arena, int64_t seconds)
{
    int64_t minutes = seconds / 60;

    if (minutes >= 60)
        return arena_printf(arena, "%" PRId64 ":%02d:%02d", minutes / 60,
                            (int)(minutes % 60), (int)(seconds % 60));
    return arena_printf(arena, "%" PRId64 ":%02d", minutes, (int)(seconds % 60));
}

/* --- JSON --- */

const char *
json_text_of(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    return json_is_string(value) ? json_string_value(value) : "";
}

int64_t
json_count_of(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    return json_is_integer(value) ? json_integer_value(value) : -1;
}

const char *
print_compact(struct arena *arena, const json_t *json)
{
    scoped(buf_release) struct buf buf = {0};
    struct json_out out;

    buf_init(&buf, 0);
    json_out_init(&out, &buf);
    json_put_value(&out, json);
    return arena_strdup(arena, buf_str(&buf));
}

void
print_json(const json_t *json)
{
    scoped(buf_release) struct buf buf = {0};
    struct json_out out;

    buf_init(&buf, 0);
    json_out_init(&out, &buf);
    json_put_value(&out, json);
    puts(buf_str(&buf));
}

bool
print_colours(FILE *out)
{
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");

    return isatty(fileno(out)) && !(no_color && *no_color) &&
           !(term && strcmp(term, "dumb") == 0);
}

/* --- tables --- */

void
table_add(struct table *table, const char *text)
{
    scoped(buf_release) struct buf buf = {0};

    if (table->n_cells == table->cap) {
        size_t cap = table->cap ? table->cap * 2 : 64;
        const char **cells = arena_array(table->arena, const char *, cap);

        if (table->n_cells)
            memcpy(cells, table->cells, table->n_cells * sizeof(*cells));
        table->cells = cells;
        table->cap = cap;
    }
    buf_init(&buf, LINE_MAX_BYTES);
    print_escape(&buf, text && *text ? text : "-");
    table->cells[table->n_cells++] =
        arena_strndup(table->arena, buf_str(&buf), buf.len);
}

static void
pad(FILE *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        fputc(' ', out);
}

static void
print_row(const struct table *table, const char *const *cells, const size_t *widths,
          FILE *out)
{
    for (size_t c = 0; c < table->n_columns; c++) {
        size_t gap = widths[c] - print_width(cells[c]);
        bool last = c + 1 == table->n_columns;

        if (table->columns[c].right)
            pad(out, gap);
        fputs(cells[c], out);
        if (!table->columns[c].right && !last)
            pad(out, gap);
        fputs(last ? "\n" : "  ", out);
    }
}

void
table_print(const struct table *table, FILE *out)
{
    const char *heads[TABLE_COLUMNS_MAX];
    size_t widths[TABLE_COLUMNS_MAX];
    bool colours = print_colours(out);

    for (size_t c = 0; c < table->n_columns; c++) {
        heads[c] = table->columns[c].head;
        widths[c] = print_width(heads[c]);
        for (size_t i = c; i < table->n_cells; i += table->n_columns)
            if (print_width(table->cells[i]) > widths[c])
                widths[c] = print_width(table->cells[i]);
    }
    if (colours)
        fputs("\033[1m", out);
    print_row(table, heads, widths, out);
    if (colours)
        fputs("\033[0m", out);
    for (size_t i = 0; i + table->n_columns <= table->n_cells; i += table->n_columns)
        print_row(table, table->cells + i, widths, out);
}

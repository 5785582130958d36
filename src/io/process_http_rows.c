/* What a reply gives for an item: a row for each element at the path, or the document.
 */
#include "io/process_http_private.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/strs.h"
#include "io/call_text.h"
#include "io/document.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int
set_cell(struct row_set *out, const struct reply_tree *tree, struct cell *cell,
         const json_t *value, const char *column, struct err *err)
{
    char *text;
    int r;

    if (!value || json_is_null(value))
        return 0;
    if (json_is_integer(value)) {
        cell_set_i64(cell, CELL_INT, json_integer_value(value));
    } else if (json_is_real(value)) {
        cell_set_real(cell, json_real_value(value));
    } else if (json_is_boolean(value)) {
        cell_set_i64(cell, CELL_BOOL, json_is_true(value));
    } else if (json_is_string(value)) {
        return cell_set_text(
            out, cell,
            reply_number_is_decimal(&tree->decimals, value) ? CELL_DECIMAL : CELL_TEXT,
            json_string_value(value), json_string_length(value), column, err);
    } else {
        text = json_dumps(value, JSON_COMPACT);
        r = cell_set_text(out, cell, CELL_TEXT, text ? text : "",
                          text ? strlen(text) : 0, column, err);
        free(text);
        return r;
    }
    return 0;
}

static struct cell *
begin_row(struct asking *asking, size_t *ret_next)
{
    const struct http_processor *http = asking->http;
    struct cell *cells = row_set_add(asking->out);
    size_t next = 0;

    for (; next < http->n_carried; next++)
        cells[next] = asking->cells[http->carried[next]];
    if (asking->alternative) {
        struct err ignored = {0};

        (void)cell_set_text(asking->out, &cells[next], CELL_TEXT, asking->alternative,
                            strlen(asking->alternative), "", &ignored);
    }
    if (http->spec.alternative)
        next++;
    *ret_next = next;
    return cells;
}

/* What a path of `fields` finds in a row. A row that is a single value is its own text:
 * XML has it so where an element has no attributes. */
static const json_t *
field_of(const json_t *row, const char *path)
{
    return json_is_string(row) && str_eq(path, "#text") ? row : reply_value(row, path);
}

/* A single value has no fields: rows of nothing would come of it. */
static int
check_row(struct asking *asking, const json_t *row)
{
    const struct http_processor *http = asking->http;

    if (json_is_object(row) || json_is_array(row) || http->n_fields == 0)
        return 0;
    for (size_t i = 0; i < http->n_fields; i++)
        if (str_eq(http->paths[i], ".") || str_eq(http->paths[i], "#text"))
            return 0;
    return err_set(asking->err, ERR_INVALID,
                   "%s: row %" PRId64 " at %s is a single value (%s) and has no field "
                   "\"%s\"; take the value itself by `fields: {NAME: .}`",
                   asking->talk->shown, asking->rows + asking->page_rows + 1,
                   http->spec.rows_path, json_type_word(row), http->paths[0]);
}

static int
take_row(void *arg, const json_t *value)
{
    struct asking *asking = arg;
    const struct http_processor *http = asking->http;
    size_t next = 0;
    struct cell *cells;

    if (row_set_full(asking->out)) {
        asking->full = true;
        return 1;
    }
    asking->failure = check_row(asking, value);
    if (asking->failure < 0)
        return 1;
    cells = begin_row(asking, &next);
    asking->page_rows++;
    for (size_t i = 0; i < http->n_fields; i++) {
        const json_t *found = field_of(value, http->paths[i]);
        int r = set_cell(asking->out, asking->tree, &cells[next + i], found,
                         http->processor.columns[next + i].name, asking->err);

        if (r < 0) {
            asking->failure = r;
            return 1;
        }
    }
    return 0;
}

/* The body itself, as a text in its column. */
static int
take_document(struct asking *asking, struct http_said *said, struct call_names *names)
{
    const struct http_processor *http = asking->http;
    scoped(buf_release) struct buf text = {0};
    scoped(buf_release) struct buf raw = {0};
    scoped(buf_release) struct buf entry = {0};
    size_t next = 0;
    struct cell *cells;
    int r = 0;

    buf_init(&entry, 1024);
    buf_init(&raw, (size_t)http->spec.content.max_bytes);
    buf_init(&text, (size_t)http->spec.content.max_bytes);
    if (http->spec.content.zip)
        r = call_text_fill("content.zip", http->spec.content.zip, names, CALL_FILE,
                           &entry, asking->err);
    if (r < 0)
        return r;
    r = document_unpack(said->body.data, said->body.len,
                        http->spec.content.zip ? buf_str(&entry) : NULL, &raw,
                        asking->err);
    if (r < 0) {
        asking->item->class = ITEM_UPSTREAM; /* half a zip, or a page of HTML */
        http_talk_strike(asking->talk, asking->err->text);
        return err_prefix(asking->err, "%s", asking->talk->shown);
    }
    r = document_decode(&raw, http->spec.content.encodings, &text, asking->err);
    if (r < 0)
        return r;
    cells = begin_row(asking, &next);
    return cell_set_text(asking->out, &cells[next + http->n_fields], CELL_TEXT,
                         buf_str(&text), text.len, http->spec.content.column,
                         asking->err);
}

int
process_http_take(struct asking *asking, struct http_said *said,
                  struct call_names *names)
{
    const struct http_spec *spec = &asking->http->spec;

    asking->page_rows = 0;
    asking->tree = &said->tree;
    asking->item->class = ITEM_PARSE;
    if (spec->content.column)
        asking->failure = take_document(asking, said, names);
    else if (spec->rows_path)
        reply_each(said->tree.root, spec->rows_path, spec->loose, take_row, asking);
    else
        (void)take_row(asking, said->tree.root);
    asking->rows += asking->page_rows;
    if (asking->page_rows > asking->most_rows)
        asking->most_rows = asking->page_rows;
    if (asking->full)
        return err_set(asking->err, ERR_TOO_LARGE,
                       "the rows of one chunk need more than %zu MiB: give the step a "
                       "smaller `chunk`, or ask for less at once",
                       asking->out->max_bytes >> 20);
    return asking->failure == 0 ? 0 : PROCESS_FAILED;
}

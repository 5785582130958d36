/*
 * For each item: the alternatives in order until one has data, for each of them the
 * pages in order until the last, from each page its rows. Nothing of an item is kept
 * unless all of it went well.
 */
#include "io/process_http.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/strs.h"
#include "io/call_text.h"
#include "io/cell_text.h"
#include "io/process_http_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum ask_outcome { ASK_ROWS = 100, ASK_NO_DATA, ASK_MORE };

static struct http_processor *
http_of(struct processor *processor)
{
    return container_of(processor, struct http_processor, processor);
}

int
process_http_check(const json_t *def, struct err *err)
{
    scoped(http_spec_release) struct http_spec spec = {0};

    return http_spec_read(def, "process.http", HTTP_USE_PROCESS, &spec, err);
}

/* --- open --- */

static int
choose_carried(struct http_processor *http, struct err *err)
{
    const json_t *chosen = http->spec.columns;
    size_t count = chosen ? json_array_size(chosen) : http->in_width;

    http->carried = arena_array(&http->arena, size_t, count + 1);
    for (size_t i = 0; i < count; i++) {
        const char *name = json_string_value(json_array_get(chosen, i));
        long at = chosen ? column_find(http->in, http->in_width, name) : (long)i;

        if (at < 0)
            return err_set(err, ERR_CONFIG,
                           "http.columns: the item has no column \"%s\"", name);
        http->carried[i] = (size_t)at;
    }
    http->n_carried = count;
    return 0;
}

static int
add_column(struct http_processor *http, struct column *columns, size_t at,
           const char *name, enum cell_type type, struct err *err)
{
    if (column_find(columns, at, name) >= 0)
        return err_set(err, ERR_CONFIG,
                       "http: two columns named \"%s\"; name the field otherwise, or "
                       "leave the item's out with `columns`",
                       name);
    columns[at] = (struct column){.name = name, .type = type};
    return 0;
}

static int
make_columns(struct http_processor *http, struct err *err)
{
    const json_t *fields = http->spec.fields;
    size_t n_fields =
        json_is_array(fields) ? json_array_size(fields) : json_object_size(fields);
    struct column *columns =
        arena_array(&http->arena, struct column, http->n_carried + n_fields + 2);
    size_t count = 0;
    const char *name;
    json_t *path;
    size_t i;
    int r = 0;

    http->paths = arena_array(&http->arena, const char *, n_fields + 1);
    for (i = 0; i < http->n_carried && r == 0; i++) {
        const struct column *in = &http->in[http->carried[i]];

        r = add_column(http, columns, count++, in->name, in->type, err);
    }
    if (r == 0 && http->spec.alternative)
        r = add_column(http, columns, count++, http->spec.alternative, CELL_TEXT, err);
    json_object_foreach((json_t *)(uintptr_t)fields, name, path)
    {
        http->paths[http->n_fields++] = json_string_value(path);
        if (r == 0)
            r = add_column(http, columns, count++, name, CELL_NULL, err);
    }
    json_array_foreach(fields, i, path)
    {
        http->paths[http->n_fields++] = json_string_value(path);
        if (r == 0)
            r = add_column(http, columns, count++, json_string_value(path), CELL_NULL,
                           err);
    }
    if (r == 0 && http->spec.content.column)
        r = add_column(http, columns, count++, http->spec.content.column, CELL_TEXT,
                       err);
    if (r == 0 && count == 0)
        r = err_set(err, ERR_CONFIG, "http: no columns are left; name some `fields`");
    http->processor.columns = columns;
    http->processor.width = count;
    return r;
}

/* "{name}" of a parameter that is a list, or the list itself. */
static int
find_alternatives(struct http_processor *http, struct err *err)
{
    const json_t *given = http->spec.alternatives;
    const char *text = json_string_value(given);
    char name[128];

    http->alternatives = given;
    if (!text)
        return 0;
    (void)str_copy(name, sizeof(name), *text == '{' ? text + 1 : text);
    name[strcspn(name, "}")] = '\0';
    http->alternatives = json_object_get(http->processor.io->params, name);
    if (json_array_size(http->alternatives) == 0)
        return err_set(err, ERR_CONFIG,
                       "http.alternatives: %s is no parameter that is a list with "
                       "values",
                       text);
    return 0;
}

static int
http_open(struct processor *processor, const struct column *in, size_t width,
          size_t lanes, struct err *err)
{
    struct http_processor *http = http_of(processor);
    int r;

    http->in = in;
    http->in_width = width;
    r = find_alternatives(http, err);
    if (r == 0)
        r = choose_carried(http, err);
    if (r == 0)
        r = make_columns(http, err);
    http_link_init(&http->link, processor->io, &http->spec);
    for (; r == 0 && http->n_talks < lanes; http->n_talks++)
        r = http_talk_init(&http->talks[http->n_talks], &http->link, err);
    return r;
}

/* --- pages --- */

/* A number at the path, written as a number or as text; -1: none there. */
static int64_t
number_at(const struct http_said *said, const char *path)
{
    const json_t *found =
        path ? reply_scalar(said->tree.root, path, said->tree.format == REPLY_XML)
             : NULL;
    char room[48];
    int64_t value;

    if (!found || !str_to_i64(reply_text(found, room), &value) || value < 0)
        return -1;
    return value;
}

static bool
is_last_page(struct asking *asking, const struct http_said *said, int64_t page)
{
    const struct http_pages *pages = &asking->http->spec.pages;
    int64_t total = number_at(said, pages->total);
    int64_t last = number_at(said, pages->last);

    if (total >= 0)
        asking->total = total;
    if (last >= 0)
        asking->last = last;
    if (total >= 0)
        return asking->page_rows == 0 || asking->rows >= total;
    if (asking->last >= 0)
        return (page - pages->from) / pages->step + 1 >= asking->last;
    return asking->page_rows == 0 || pages->size == 0 ||
           asking->page_rows < pages->size;
}

static void
page_extras(const struct http_pages *pages, int64_t page, struct http_extra extras[2])
{
    extras[0].name = pages->param;
    snprintf(extras[0].value, sizeof(extras[0].value), "%" PRId64, page);
    extras[1].name = pages->size_param;
    snprintf(extras[1].value, sizeof(extras[1].value), "%" PRId64, pages->size);
}

/* The pages of an item are asked for in one go, and those of a day that ends in the
 * midst of them are asked for again: what needs more calls than a day has would use up
 * every day and never be done. 0, or PROCESS_FAILED. */
static int
check_budget(struct asking *asking, int64_t needed, const char *how)
{
    const struct http_spec *spec = &asking->http->spec;
    struct io_ctx *io = asking->http->processor.io;
    int64_t per_day = spec->budget ? io->per_day(io, spec->budget) : -1;

    if (per_day <= 0 || needed <= per_day)
        return 0;
    asking->item->class = ITEM_REJECTED;
    (void)err_set(asking->err, ERR_TOO_LARGE,
                  "%s: %s %" PRId64 " calls, but budget %s has %" PRId64
                  " a day, and the pages of an item are asked for within a day: let an "
                  "item stand for fewer rows, raise `pages.size`, or the budget",
                  asking->talk->shown, how, needed, spec->budget, per_day);
    return PROCESS_FAILED;
}

/* As soon as a page tells how many there are. n: pages read so far. */
static int
check_promise(struct asking *asking, int64_t n)
{
    int64_t size = asking->http->spec.pages.size;
    int64_t needed = asking->last;

    if (size < asking->most_rows)
        size = asking->most_rows;
    if (asking->total > asking->rows && size > 0)
        needed = n + (asking->total - asking->rows + size - 1) / size;
    return check_budget(asking, needed, "the item needs");
}

static int
end_of(struct asking *asking, const struct http_said *said)
{
    int r;

    switch (said->end) {
    case HTTP_END_OK:
    case HTTP_END_NO_DATA:
        return ASK_NO_DATA;
    case HTTP_END_UPSTREAM:
        asking->item->class = ITEM_UPSTREAM;
        return PROCESS_FAILED;
    case HTTP_END_REJECTED:
        asking->item->class = ITEM_REJECTED;
        return PROCESS_FAILED;
    case HTTP_END_STOP:
        r = said->spent
                ? check_budget(asking, *asking->calls + 1, "the item needs at least")
                : 0;
        if (r != 0)
            return r;
        snprintf(asking->why, IO_WHY_MAX, "%s", said->why);
        return PROCESS_STOP;
    case HTTP_END_LIMIT:
        snprintf(asking->why, IO_WHY_MAX, "%s", said->why);
        return PROCESS_LIMIT;
    case HTTP_END_CUT:
        break;
    }
    return PROCESS_CUT;
}

/* Rows were promised, and then there were none: a reply that went wrong. 0: ask for the
 * page again, else an enum process_outcome. */
static int
broken_promise(struct asking *asking, int attempt)
{
    const struct http_spec *spec = &asking->http->spec;
    struct io_ctx *io = asking->http->processor.io;

    if (attempt < spec->attempts) {
        io->wait_ms(io, spec->wait_ms);
        return io->cut(io) ? PROCESS_CUT : 0;
    }
    asking->item->class = ITEM_UPSTREAM;
    (void)err_set(asking->err, ERR_PROTOCOL,
                  "%s tells of %" PRId64 " rows, but only %" PRId64 " came at %s",
                  asking->talk->shown, asking->total, asking->rows, spec->rows_path);
    return PROCESS_FAILED;
}

/* One page: ASK_…, an enum process_outcome, or < 0. */
static int
ask_page(struct asking *asking, struct call_names *names, int64_t page)
{
    const struct http_spec *spec = &asking->http->spec;

    for (int attempt = 1;; attempt++) {
        scoped(http_said_release) struct http_said said = {0};
        struct http_extra extras[2] = {0};
        bool last = true;
        int r;

        if (spec->pages.param)
            page_extras(&spec->pages, page, extras);
        r = http_talk_call(asking->talk, names, extras, NULL, &said, asking->err);
        if (r < 0)
            return r;
        *asking->calls += said.end != HTTP_END_STOP && said.end != HTTP_END_CUT;
        (void)str_copy(asking->item->code, sizeof(asking->item->code), said.code);
        asking->page_rows = 0;
        if (said.end == HTTP_END_OK)
            r = process_http_take(asking, &said, names);
        else if (said.end != HTTP_END_NO_DATA)
            return end_of(asking, &said);
        if (r != 0)
            return r;
        if (said.end == HTTP_END_OK && spec->pages.param)
            last = is_last_page(asking, &said, page);
        if (!last)
            return ASK_MORE;
        if (asking->page_rows > 0 || asking->rows >= asking->total)
            return asking->rows > 0 || (said.end == HTTP_END_OK && !spec->rows_path)
                       ? ASK_ROWS
                       : ASK_NO_DATA;
        r = broken_promise(asking, attempt);
        if (r != 0)
            return r;
    }
}

/* All pages with one alternative: ASK_…, an enum process_outcome, or < 0. */
static int
ask_pages(struct asking *asking, struct call_names *names)
{
    const struct http_pages *pages = &asking->http->spec.pages;
    int64_t page = pages->from;

    asking->total = 0;
    asking->last = -1;
    for (int64_t n = 0;; n++, page += pages->step) {
        int r;

        if (pages->param && n >= pages->max)
            return err_set(asking->err, ERR_TOO_LARGE,
                           "%s: more than %" PRId64 " pages; raise `pages.max` if that "
                           "is right",
                           asking->talk->shown, pages->max);
        r = ask_page(asking, names, page);
        if (r != ASK_MORE)
            return r;
        r = check_promise(asking, n + 1);
        if (r != 0)
            return r;
    }
}

static const char *
alternative_at(const struct http_processor *http, size_t i, char room[48])
{
    return reply_text(json_array_get(http->alternatives, i), room);
}

static int
ask(struct asking *asking, struct call_names *names)
{
    size_t count =
        asking->http->alternatives ? json_array_size(asking->http->alternatives) : 1;
    int r = ASK_NO_DATA;

    for (size_t i = 0; i < count && r == ASK_NO_DATA; i++) {
        char room[48];

        if (asking->http->alternatives) {
            asking->alternative = alternative_at(asking->http, i, room);
            names->extra_name = asking->http->spec.alternative;
            names->extra_value = asking->alternative ? asking->alternative : "";
        }
        r = ask_pages(asking, names);
    }
    return r;
}

/* Which item a failure is about, by its columns. */
static int
name_item(const struct call_names *names, struct err *err)
{
    scoped(buf_release) struct buf text = {0};

    buf_init(&text, 200);
    call_names_show(names, &text);
    return err_prefix(err, "item (%s)", buf_str(&text));
}

static int
http_run(struct processor *processor, size_t lane, struct item *item,
         const struct item_rows *in, struct row_set *out, char *why, struct err *err)
{
    struct http_processor *http = http_of(processor);
    size_t with_data = 0;
    int64_t calls = 0;

    for (size_t i = 0; i < in->count; i++) {
        const struct cell *cells = row_set_row(in->set, in->first + i);
        struct call_names names = {.io = processor->io,
                                   .columns = http->in,
                                   .cells = cells,
                                   .width = http->in_width};
        struct asking asking = {.http = http,
                                .talk = &http->talks[lane],
                                .item = item,
                                .cells = cells,
                                .out = out,
                                .why = why,
                                .calls = &calls,
                                .err = err};
        int r = ask(&asking, &names);

        if (r == PROCESS_FAILED || r < 0)
            (void)name_item(&names, err);
        if (r != ASK_ROWS && r != ASK_NO_DATA)
            return r;
        with_data += r == ASK_ROWS;
    }
    item->no_data = with_data == 0 && in->count > 0;
    return PROCESS_DONE;
}

static void
http_free(struct processor *processor)
{
    struct http_processor *http = http_of(processor);

    for (size_t i = 0; i < http->n_talks; i++)
        http_talk_release(&http->talks[i]);
    http_link_release(&http->link);
    http_spec_release(&http->spec);
    arena_release(&http->arena);
    free(http);
}

static const struct processor_ops http_ops = {
    .open = http_open,
    .run = http_run,
    .free = http_free,
};

int
process_http_new(struct io_ctx *io, const json_t *def, struct processor **ret_processor,
                 struct err *err)
{
    struct http_processor *http = xcalloc(1, sizeof(*http));
    int r = http_spec_read(def, "process.http", HTTP_USE_PROCESS, &http->spec, err);

    if (r < 0) {
        free(http);
        return r;
    }
    http->processor.ops = &http_ops;
    http->processor.io = io;
    *ret_processor = &http->processor;
    return 0;
}

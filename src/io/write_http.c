/*
 * The rows of a chunk are kept until commit and sent there, in order. The number of a
 * row counts those committed before it, so that it is the same however the chunks are
 * cut; its values are a part of the key too, because a query that is asked again may
 * bring another row in its place, which a receiver must not take for one it has.
 */
#include "io/write_http.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/strs.h"
#include "io/call_text.h"
#include "io/http_talk.h"
#include "io/io_ctx.h"
#include "io/option.h"
#include "io/processor.h"
#include "io/row.h"
#include "io/write_jsonl.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define WHERE         "write.http"
#define ROWS_MAX      ((size_t)64 << 20)
#define ROW_SHOWN_MAX 200

struct http_writer {
    struct writer writer;
    struct http_spec spec;
    struct http_link link;
    struct http_talk talk;
    const struct column *columns;
    size_t width;
    bool per_chunk;
    bool as_lines;
    const char *header;
    const struct row_set *waiting; /* for commit; NULL: none */
    int64_t rows;                  /* sent, up to the last commit */
    struct buf body;               /* the rows of a call as JSON */
    /* Keys of the calls made since the last commit. When a row is refused, the chunk is
     * written again item by item: those before it are not sent once more. */
    char (*keys)[SHA256_HEX_SIZE];
    size_t n_keys;
    size_t keys_cap;
    size_t next_key; /* to be met again, when less than n_keys */
};

static struct http_writer *
http_of(struct writer *writer)
{
    return container_of(writer, struct http_writer, writer);
}

static bool
is_per_chunk(const json_t *call)
{
    return str_eq(io_option_text(call, "per", "row"), "chunk");
}

static const char *
header_of(const json_t *call)
{
    return io_option_text(call, "idempotency_key", "Idempotency-Key");
}

static int
check_header(const struct http_spec *spec, struct err *err)
{
    const char *header = header_of(spec->def);
    const char *key;
    json_t *value;

    if (!*header ||
        strspn(header, "abcdefghijklmnopqrstuvwxyz"
                       "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != strlen(header))
        return err_set(err, ERR_CONFIG,
                       WHERE ".idempotency_key: \"%.60s\" is no name of a header; "
                             "letters, digits, - and _ only",
                       header);
    json_object_foreach((json_t *)(uintptr_t)spec->headers, key, value)
    {
        if (strcasecmp(key, header) == 0)
            return err_set(err, ERR_CONFIG,
                           WHERE ".headers: %s is given by pawl; leave it out, or let "
                                 "`idempotency_key` name another header",
                           key);
    }
    return 0;
}

int
write_http_check(const json_t *def, struct err *err)
{
    scoped(http_spec_release) struct http_spec spec = {0};
    const json_t *call = json_object_get(def, "http");
    int r = http_spec_read(call, WHERE, HTTP_USE_WRITE, &spec, err);

    if (r < 0)
        return r;
    if (is_per_chunk(call) && (spec.body || spec.json))
        return err_set(err, ERR_CONFIG,
                       WHERE ": with `per: chunk` the rows are the body; leave out "
                             "\"body\" and \"json\", or make a call `per: row`");
    if (!is_per_chunk(call) && json_object_get(call, "as"))
        return err_set(err, ERR_CONFIG, WHERE ".as: goes with `per: chunk`");
    return check_header(&spec, err);
}

/* --- open --- */

static int
http_open(struct writer *writer, const char *state, struct err *err)
{
    struct http_writer *http = http_of(writer);

    if (state && !writer_state_rows(state, "http", &http->rows))
        return err_set(err, ERR_INVALID,
                       "what was begun is no sending of rows: the step's definition "
                       "has changed; ask for a new run (restart: false)");
    return http_talk_init(&http->talk, &http->link, err);
}

static int
http_begin(struct writer *writer, const struct column *columns, size_t count,
           struct err *err)
{
    struct http_writer *http = http_of(writer);

    http->columns = columns;
    http->width = count;
    return 0;
}

/* --- rows --- */

void
write_http_key(const char *work, int64_t row, const struct buf *rows,
               char ret_key[SHA256_HEX_SIZE])
{
    scoped(sha256_release) struct sha256 sha = {0};
    char number[24];

    snprintf(number, sizeof(number), "%" PRId64, row);
    sha256_init(&sha);
    sha256_update(&sha, work, strlen(work) + 1);
    sha256_update(&sha, number, strlen(number) + 1);
    sha256_update(&sha, rows->data, rows->len);
    sha256_final_hex(&sha, ret_key);
}

static void
add_row(struct http_writer *http, const struct cell *cells)
{
    struct buf *out = &http->body;

    buf_add_char(out, '{');
    for (size_t i = 0; i < http->width; i++) {
        if (i > 0)
            buf_add_char(out, ',');
        json_escape(out, http->columns[i].name, strlen(http->columns[i].name));
        buf_add_char(out, ':');
        write_jsonl_cell(out, &cells[i]);
    }
    buf_add_char(out, '}');
}

static int
make_body(struct http_writer *http, size_t first, size_t count, struct err *err)
{
    bool list = http->per_chunk && !http->as_lines;

    buf_clear(&http->body);
    if (list)
        buf_add_char(&http->body, '[');
    for (size_t i = 0; i < count; i++) {
        if (list && i > 0)
            buf_add_char(&http->body, ',');
        add_row(http, row_set_row(http->waiting, first + i));
        if (http->per_chunk && http->as_lines)
            buf_add_char(&http->body, '\n');
    }
    if (list)
        buf_add_char(&http->body, ']');
    return buf_check(&http->body, "the rows of a call", err);
}

static int
end_of(struct http_writer *http, const struct http_said *said, struct err *err)
{
    switch (said->end) {
    case HTTP_END_OK:
    case HTTP_END_NO_DATA:
        return 0;
    case HTTP_END_UPSTREAM:
        http->writer.refused = ITEM_UPSTREAM;
        return -(int)err->code;
    case HTTP_END_REJECTED:
        http->writer.refused = ITEM_REJECTED;
        return -(int)err->code;
    case HTTP_END_STOP:
    case HTTP_END_LIMIT:
        (void)str_copy(http->writer.io->why, IO_WHY_MAX, said->why);
        return WRITER_STOPPED;
    case HTTP_END_CUT:
        break;
    }
    return err_set(err, ERR_TIMEOUT, "the call under way was cut off");
}

static int
call_failed(const struct http_writer *http, const struct call_names *names,
            size_t first, size_t count, struct err *err)
{
    scoped(buf_release) struct buf shown = {0};
    int64_t row = http->rows + (int64_t)first + 1;

    if (http->per_chunk)
        return err_prefix(err, "rows %" PRId64 " to %" PRId64, row,
                          row + (int64_t)count - 1);
    buf_init(&shown, ROW_SHOWN_MAX);
    call_names_show(names, &shown);
    return err_prefix(err, "row %" PRId64 " (%s)", row, buf_str(&shown));
}

static bool
takes_body(const struct http_spec *spec)
{
    return !spec->body && !spec->json && !str_eq(spec->method, "GET") &&
           !str_eq(spec->method, "HEAD") && !str_eq(spec->method, "DELETE");
}

/* Was this call made since the last commit? */
static bool
made_before(struct http_writer *http, const char *key)
{
    if (http->next_key == http->n_keys)
        return false;
    if (str_eq(http->keys[http->next_key], key)) {
        http->next_key++;
        return true;
    }
    http->n_keys = http->next_key;
    return false;
}

static void
remember(struct http_writer *http, const char *key)
{
    if (http->n_keys == http->keys_cap) {
        http->keys_cap = http->keys_cap * 2 + 16;
        http->keys = xrealloc(http->keys, http->keys_cap * sizeof(*http->keys));
    }
    memcpy(http->keys[http->n_keys++], key, sizeof(*http->keys));
    http->next_key = http->n_keys;
}

/* One call for rows first .. first + count - 1 of the chunk: 0, WRITER_STOPPED, < 0. */
static int
send_rows(struct http_writer *http, size_t first, size_t count, struct err *err)
{
    scoped(http_said_release) struct http_said said = {0};
    char key[SHA256_HEX_SIZE];
    struct http_sent sent = {.header = http->header, .value = key};
    struct call_names names = {.io = http->writer.io};
    int r = make_body(http, first, count, err);

    if (!http->per_chunk) {
        names.columns = http->columns;
        names.cells = row_set_row(http->waiting, first);
        names.width = http->width;
    }
    if (r == 0) {
        write_http_key(http->writer.io->work, http->rows + (int64_t)first + 1,
                       &http->body, key);
        if (made_before(http, key))
            return 0;
        if (takes_body(&http->spec)) {
            sent.body = buf_str(&http->body);
            sent.body_len = http->body.len;
            sent.content_type =
                http->as_lines ? "application/jsonl" : "application/json";
        }
        http->talk.sent = &sent;
        r = http_talk_call(&http->talk, &names, NULL, NULL, &said, err);
        http->talk.sent = NULL;
    }
    if (r == 0)
        r = end_of(http, &said, err);
    if (r == 0)
        remember(http, key);
    return r < 0 ? call_failed(http, &names, first, count, err) : r;
}

static int
http_write(struct writer *writer, const struct row_set *rows, struct err *err)
{
    struct http_writer *http = http_of(writer);

    assert(!http->waiting);
    http->waiting = rows->count > 0 ? rows : NULL;
    return 0;
}

/* 0, WRITER_STOPPED, < 0. */
static int
send_chunk(struct http_writer *http, struct err *err)
{
    struct io_ctx *io = http->writer.io;
    size_t count = http->waiting ? http->waiting->count : 0;
    size_t step = http->per_chunk ? count : 1;
    int r = 0;

    http->writer.refused = 0;
    for (size_t i = 0; r == 0 && i < count; i += step)
        r = io->cut(io) ? err_set(err, ERR_TIMEOUT, "the calls were cut off")
                        : send_rows(http, i, step, err);
    http->waiting = NULL;
    if (r != 0) {
        http->next_key = 0;
        return r;
    }
    http->rows += (int64_t)count;
    if (http->next_key == http->n_keys)
        http->next_key = http->n_keys = 0;
    return 0;
}

static int
http_commit(struct writer *writer, struct buf *state, struct err *err)
{
    struct http_writer *http = http_of(writer);
    int r = send_chunk(http, err);

    if (r != 0)
        return r;
    buf_addf(state, "{\"format\":\"http\",\"rows\":%" PRId64 "}", http->rows);
    return buf_check(state, "the writer's state", err);
}

static int
http_finish(struct writer *writer, struct writer_summary *ret_summary, struct err *err)
{
    struct http_writer *http = http_of(writer);
    int r = send_chunk(http, err);

    if (r == 0)
        *ret_summary = (struct writer_summary){.rows = http->rows};
    return r;
}

static void
http_free(struct writer *writer)
{
    struct http_writer *http = http_of(writer);

    http_talk_release(&http->talk);
    http_link_release(&http->link);
    http_spec_release(&http->spec);
    buf_release(&http->body);
    free(http->keys);
    free(http);
}

static const struct writer_ops http_ops = {
    .open = http_open,
    .begin = http_begin,
    .write = http_write,
    .commit = http_commit,
    .finish = http_finish,
    .free = http_free,
};

int
write_http_new(struct io_ctx *io, const json_t *def, struct writer **ret_writer,
               struct err *err)
{
    const json_t *call = json_object_get(def, "http");
    struct http_writer *http = xcalloc(1, sizeof(*http));
    int r = http_spec_read(call, WHERE, HTTP_USE_WRITE, &http->spec, err);

    if (r < 0) {
        free(http);
        return r;
    }
    http->writer.ops = &http_ops;
    http->writer.io = io;
    http->per_chunk = is_per_chunk(call);
    http->as_lines = str_eq(io_option_text(call, "as", "json"), "jsonl");
    http->header = header_of(call);
    buf_init(&http->body, ROWS_MAX);
    http_link_init(&http->link, io, &http->spec);
    *ret_writer = &http->writer;
    return 0;
}

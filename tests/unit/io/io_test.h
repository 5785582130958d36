/*
 * What the tests of io share: an io_ctx over a temporary folder, rows made from
 * short texts, and files read back.
 */
#ifndef TESTS_UNIT_IO_IO_TEST_H
#define TESTS_UNIT_IO_IO_TEST_H

#include "base/buf.h"
#include "base/err.h"
#include "base/fsio.h"
#include "io/formats.h"
#include "io/io_ctx.h"
#include "io/row.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct io_test {
    char folder[64];
    char part[96];
    struct io_ctx io;
    struct err err;
    json_t *params;
};

static inline json_t *
json_of(const char *text)
{
    json_t *json = json_loads(text, JSON_DECODE_ANY, NULL);

    if (!json)
        fail_msg("bad JSON in a test: %s", text);
    return json;
}

static inline void
io_test_init(struct io_test *t, const char *params)
{
    memset(t, 0, sizeof(*t));
    (void)snprintf(t->folder, sizeof(t->folder), "/tmp/pawl-io-XXXXXX");
    assert_non_null(mkdtemp(t->folder));
    (void)snprintf(t->part, sizeof(t->part), "%s/part", t->folder);
    t->params = json_of(params);
    t->io.part_path = t->part;
    t->io.params = t->params;
    t->io.owner = t;
}

static inline void
io_test_release(struct io_test *t)
{
    json_decref(t->params);
    fs_remove_tree_quietly(t->folder);
}

/* The call must be well; else its message is the test's. */
#define ok(t, call)                                                                    \
    do {                                                                               \
        int r_ = (call);                                                               \
        if (r_ < 0)                                                                    \
            fail_msg("%s: %s", #call, (t)->err.text);                                  \
    } while (0)

/* The call must fail with code, and its message hold part. */
#define fails(t, code_, part_, call)                                                   \
    do {                                                                               \
        int r_;                                                                        \
        err_clear(&(t)->err);                                                          \
        r_ = (call);                                                                   \
        if (r_ != -(int)(code_) || !strstr((t)->err.text, (part_)))                    \
            fail_msg("%s gave %d: %s", #call, r_, (t)->err.text);                      \
        err_clear(&(t)->err);                                                          \
    } while (0)

static inline void
read_file(const char *path, struct buf *ret)
{
    struct err err = {0};

    buf_init(ret, (size_t)512 << 20);
    if (fs_read_file(path, (size_t)256 << 20, ret, &err) < 0)
        fail_msg("%s", err.text);
}

static inline void
write_file(const char *path, const char *data, size_t len)
{
    FILE *file = fopen(path, "we");

    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
}

/* A cell of a text: "" is NULL; i:1 r:1.5 d:1.50 t:text D:2031-12-24 … see below. */
struct cell_spec {
    enum cell_type type;
    int64_t i;
    double real;
    const char *text;
    bool zoneless;
};

static inline void
put_spec(struct io_test *t, struct row_set *rows, struct cell *cell,
         const struct cell_spec *spec)
{
    if (spec->type == CELL_REAL) {
        cell_set_real(cell, spec->real);
    } else if (spec->type == CELL_TEXT || spec->type == CELL_DECIMAL ||
               spec->type == CELL_BYTES) {
        ok(t, cell_set_text(rows, cell, spec->type, spec->text, strlen(spec->text),
                            "spec", &t->err));
    } else {
        cell_set_i64(cell, spec->type, spec->i);
        cell->zoneless = spec->zoneless;
    }
}

#endif

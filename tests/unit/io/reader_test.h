/*
 * What the tests of readers share: all rows of a reader as text, bad records
 * among them; reading in chunks, each by a fresh reader that is opened where the
 * last one stood; and broken files by the hundred.
 */
#ifndef TESTS_UNIT_IO_READER_TEST_H
#define TESTS_UNIT_IO_READER_TEST_H

#include "io_test.h"

#include "base/strs.h"

#include <unistd.h>

static inline void
put_cell_text(const struct cell *cell, struct buf *out)
{
    buf_add_char(out, '|');
    switch ((enum cell_type)cell->type) {
    case CELL_NULL:
        buf_add_char(out, '-');
        break;
    case CELL_TEXT:
    case CELL_DECIMAL:
    case CELL_BYTES:
        buf_add(out, cell->text, cell->len);
        break;
    case CELL_REAL:
        buf_addf(out, "real:%.17g", cell->real);
        break;
    case CELL_BOOL:
    case CELL_INT:
    case CELL_DATE:
    case CELL_TIMESTAMP:
    case CELL_TYPE_COUNT:
        buf_addf(out, "%s:%lld", cell_type_name(cell->type), (long long)cell->i);
        break;
    }
}

/* One chunk: |a|b| lines, - for NULL; a bad record as "!class message". */
static inline int
dump_chunk(struct io_test *t, struct reader *reader, size_t n, struct buf *out)
{
    struct row_set rows;
    int r;

    row_set_init(&rows, 0);
    r = reader_read_chunk(reader, n, &rows, &t->err);
    for (size_t i = 0; r >= 0 && i < rows.count; i++) {
        for (size_t k = 0; k < rows.width; k++)
            put_cell_text(&row_set_row(&rows, i)[k], out);
        buf_add_str(out, "|\n");
    }
    if (r == READER_BAD) {
        const char *base = strrchr(reader->bad.place, '/');

        assert_non_null(base ? base : reader->bad.place);
        buf_addf(out, "!%s %s\n", reader->bad.error_class, base ? base + 1 : "");
        err_clear(&t->err);
    }
    row_set_release(&rows);
    return r;
}

static inline struct reader *
new_reader(struct io_test *t, const json_t *def)
{
    const struct reader_kind *kind = NULL;
    struct reader *reader = NULL;

    ok(t, format_choose_reader(def, &kind, &t->err));
    ok(t, kind->new_reader(&t->io, def, &reader, &t->err));
    return reader;
}

/* All in chunks of n by one reader. The last outcome, or < 0 with t->err. */
static inline int
dump_all(struct io_test *t, const json_t *def, size_t n, struct buf *out)
{
    scoped(reader_freep) struct reader *reader = new_reader(t, def);
    int r = reader_open(reader, NULL, &t->err);

    while (r >= 0) {
        r = dump_chunk(t, reader, n, out);
        if (r == READER_END)
            break;
    }
    return r;
}

/* All in chunks of n, a fresh reader for each. */
static inline void
dump_by_position(struct io_test *t, const json_t *def, size_t n, struct buf *out)
{
    scoped(buf_release) struct buf position = {0};
    int r = READER_MORE;

    buf_init(&position, 0);
    while (r != READER_END) {
        scoped(reader_freep) struct reader *reader = new_reader(t, def);

        ok(t, reader_open(reader, position.len ? buf_str(&position) : NULL, &t->err));
        r = dump_chunk(t, reader, n, out);
        ok(t, r);
        buf_clear(&position);
        ok(t, reader_position(reader, &position, &t->err));
    }
}

static inline void
assert_chunks_agree(struct io_test *t, const json_t *def, const char *want)
{
    static const size_t sizes[] = {1, 2, 3, 5, 97, 100000};
    scoped(buf_release) struct buf whole = {0};

    buf_init(&whole, 0);
    ok(t, dump_all(t, def, 100000, &whole));
    if (want)
        assert_string_equal(buf_str(&whole), want);
    for (size_t i = 0; i < array_len(sizes); i++) {
        scoped(buf_release) struct buf parts = {0};

        buf_init(&parts, 0);
        dump_by_position(t, def, sizes[i], &parts);
        assert_string_equal(buf_str(&parts), buf_str(&whole));
    }
}

/* {key: folder/name} and what more says. */
static inline json_t *
file_def(struct io_test *t, const char *key, const char *name, const char *more)
{
    char path[160];
    json_t *def = json_of(more);

    (void)snprintf(path, sizeof(path), "%s/%s", t->folder, name);
    json_object_set_new(def, key, json_string(path));
    return def;
}

static inline void
put_file(struct io_test *t, const char *name, const void *data, size_t len)
{
    char path[160];

    (void)snprintf(path, sizeof(path), "%s/%s", t->folder, name);
    (void)unlink(
        path); /* ext4 would flush a file that is cut to nothing and refilled */
    write_file(path, data, len);
}

/* --- broken files --- */

static inline uint32_t
next_random(uint32_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    *seed ^= *seed << 5;
    return *seed;
}

/* Whatever the file is: an end, in bounded time, and a message with every failure. */
static inline void
read_broken(struct io_test *t, const json_t *def)
{
    scoped(reader_freep) struct reader *reader = new_reader(t, def);
    scoped(buf_release) struct buf out = {0};
    scoped(buf_release) struct buf position = {0};
    int r = reader_open(reader, NULL, &t->err);

    buf_init(&out, 0);
    buf_init(&position, 0);
    for (int rounds = 0; r >= 0 && rounds < 10000; rounds++) {
        r = dump_chunk(t, reader, 7, &out);
        buf_clear(&position);
        if (r >= 0)
            ok(t, reader_position(reader, &position, &t->err));
        if (r == READER_END)
            break;
        assert_true(rounds < 9999);
    }
    if (r < 0)
        assert_true(t->err.text[0] != '\0' && -r == (int)t->err.code);
    err_clear(&t->err);
}

/* name: the file that def reads. Every cut (about `rounds` of them) and `rounds`
 * files with one to four bytes changed; with PAWL_FULL twenty times as many. */
static inline void
read_broken_files(struct io_test *t, const json_t *def, const char *name,
                  const char *data, size_t len, int rounds)
{
    size_t step = len / (size_t)rounds + 1;
    uint32_t seed = 20261129;
    char *copy = malloc(len + 1);

    assert_non_null(copy);
    if (getenv("PAWL_FULL")) {
        rounds *= 20;
        step = 1;
    }
    for (size_t cut = 0; cut < len; cut += step) {
        put_file(t, name, data, cut);
        read_broken(t, def);
    }
    for (int i = 0; i < rounds; i++) {
        memcpy(copy, data, len);
        for (uint32_t k = 0; k < 1 + next_random(&seed) % 4; k++)
            copy[next_random(&seed) % len] = (char)next_random(&seed);
        put_file(t, name, copy, len);
        read_broken(t, def);
    }
    free(copy);
}

#endif

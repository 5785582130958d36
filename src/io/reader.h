/*
 * Where rows come from. To add a reader: a file read_NAME.c that embeds a
 * struct reader as its first member, and a row in formats.c.
 *
 * Order of calls: new, open, columns, read_chunk until READER_END, position
 * between chunks, free (at any time; accepts a reader that never opened).
 */
#ifndef IO_READER_H
#define IO_READER_H

#include "base/compiler.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct column;
struct err;
struct io_ctx;
struct reader;
struct row_set;

/* How a reader goes on after a crash. */
enum reader_restart {
    READER_RESTART_POSITION, /* fixed input: skip to where it was */
    READER_RESTART_REQUERY,  /* its predicate leaves handled rows out: no position */
    READER_RESTART_KEY,      /* keyset: go on behind the last key */
    /* A file that may come in another order (A38): all of it again, no position. The
     * writer must bear rows that it has had: an upsert, or statements that do. */
    READER_RESTART_BEGINNING,
};

enum reader_outcome {
    READER_MORE, /* the set holds at least one row; ask again */
    READER_END,  /* no more rows behind those in the set (which may be none) */
    /*
     * A record that cannot be made a row. The set holds the rows before it (which
     * may be none), err says what is wrong and where, reader->bad which class of
     * error it is. The reader stands behind it, its position too: to pass over the
     * record, err_clear, keep the rows and read on; to fail, return -err->code.
     */
    READER_BAD,
};

/* The classes that rules about skipping go by. */
#define READER_CLASS_PARSE  "parse"  /* its bytes are not what the format has */
#define READER_CLASS_FORMAT "format" /* well-formed, but not of its columns */

/* The record that READER_BAD was about. */
struct reader_bad {
    const char *error_class; /* READER_CLASS_…, static */
    char place[256];         /* "orders.csv:12"; for people, the same each time */
};

/* A position is opaque JSON text of at most this many bytes. */
#define READER_POSITION_MAX_BYTES 65536

struct reader_ops {
    /* position: what position() gave for the last committed chunk, NULL = start. */
    int (*open)(struct reader *reader, const char *position, struct err *err);
    const struct column *(*columns)(struct reader *reader, size_t *ret_count);
    /* Clears rows and fills it with at most max_rows; an enum reader_outcome or < 0. */
    int (*read_chunk)(struct reader *reader, size_t max_rows, struct row_set *rows,
                      struct err *err);
    /* Append the state after the last row returned. */
    int (*position)(struct reader *reader, struct buf *position, struct err *err);
    void (*free)(struct reader *reader);
};

struct reader {
    const struct reader_ops *ops;
    struct io_ctx *io;
    enum reader_restart restart;
    struct reader_bad bad; /* good after READER_BAD, until the next read_chunk */
    const char *note;      /* after open: what people should know; NULL = nothing */
};

/* def: the step's `read` object, already checked; it must outlive the reader. */
typedef int (*reader_new_fn)(struct io_ctx *io, const json_t *def,
                             struct reader **ret_reader, struct err *err);

/*
 * The least and the greatest value of a column among the rows that would be read: 1, or
 * 0 if there are none. -ERR_CONFIG if it is no column of whole numbers without NULL.
 */
typedef int (*reader_extent_fn)(struct io_ctx *io, const json_t *def, const char *key,
                                int64_t *ret_least, int64_t *ret_greatest,
                                struct err *err);

int reader_open(struct reader *reader, const char *position,
                struct err *err) must_check;
const struct column *reader_columns(struct reader *reader, size_t *ret_count);
int reader_read_chunk(struct reader *reader, size_t max_rows, struct row_set *rows,
                      struct err *err) must_check;
int reader_position(struct reader *reader, struct buf *position,
                    struct err *err) must_check;
/* For readers with the option `restart: position beginning`. */
enum reader_restart reader_restart_of(const json_t *def);
/* For readers: note the record that err is about. Returns READER_BAD. */
int reader_bad_record(struct reader *reader, const char *error_class,
                      const char *place);
void reader_free(struct reader *reader);
void reader_freep(struct reader **reader); /* for scoped() */

#endif

/*
 * What happens to rows between reader and writer. To add a processor: a file
 * process_NAME.c that embeds a struct processor as its first member, and a row in
 * formats.c.
 *
 * The rows of the reader are the items of a chunk. Several threads ("lanes") may work
 * on different items at once, each with row sets of its own: run is called with one
 * item's rows and appends what becomes of them. Texts of cells may be shared: those of
 * `in` live as long as those of `out`, until the next chunk.
 */
#ifndef IO_PROCESSOR_H
#define IO_PROCESSOR_H

#include "base/compiler.h"
#include "base/err.h"
#include "io/io_ctx.h"
#include "io/row.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define PROCESS_LANES_MAX 64

enum item_state {
    ITEM_PENDING, /* not worked on, or given up because the run is to stop */
    ITEM_DONE,
    ITEM_FAILED,  /* of class; err tells */
    ITEM_EARLIER, /* an earlier run has settled it */
};

/* By what an item can fail and yet be left out. Bits, for masks. */
enum item_class {
    ITEM_PARSE = 1,
    ITEM_UPSTREAM = 2,
    ITEM_REJECTED = 4,
    ITEM_CONSTRAINT = 8,
    ITEM_QUOTA = 16, /* only noted */
    ITEM_FORMAT = 32,
};

const char *item_class_name(enum item_class class);
/* 0: no such class. */
enum item_class item_class_parse(const char *word);
/* A list of words, each one of the classes `allowed`. -ERR_CONFIG naming `where`. */
int item_classes_read(const json_t *list, const char *where, unsigned allowed,
                      unsigned *ret_mask, struct err *err) must_check;

struct item {
    enum item_state state;
    enum item_class class;
    bool no_data;
    char code[64];     /* the provider's */
    char message[256]; /* FAILED */
    size_t filtered;   /* rows dropped */
    size_t lane;       /* whose sets hold its rows */
    size_t first;      /* rows in the last set of its lane */
    size_t count;
};

/* How the work on an item ended; failures < 0 are of the whole run. */
enum process_outcome {
    PROCESS_DONE = 0,
    PROCESS_FAILED, /* this item, of item->class; err tells */
    PROCESS_STOP,   /* the item stays pending, no more are begun; io->why tells */
    PROCESS_LIMIT,  /* the same, and the provider said so */
    PROCESS_CUT,    /* the run is to end at once */
};

/* Rows of one item. */
struct item_rows {
    const struct row_set *set;
    size_t first;
    size_t count;
};

struct processor;

struct processor_ops {
    /* Sets columns and width, which live until free. lanes: how many threads. */
    int (*open)(struct processor *processor, const struct column *in, size_t width,
                size_t lanes, struct err *err);
    /* why: IO_WHY_MAX bytes, for STOP and LIMIT. */
    int (*run)(struct processor *processor, size_t lane, struct item *item,
               const struct item_rows *in, struct row_set *out, char *why,
               struct err *err);
    void (*free)(struct processor *processor);
};

struct processor {
    const struct processor_ops *ops;
    struct io_ctx *io;
    const struct column *columns;
    size_t width;
};

/* def: the value under the processor's key; it must outlive the processor. */
typedef int (*processor_new_fn)(struct io_ctx *io, const json_t *def,
                                struct processor **ret_processor, struct err *err);
typedef int (*processor_check_fn)(const json_t *def, struct err *err);

/* Index of a column, or -1. */
long column_find(const struct column *columns, size_t width, const char *name);

#endif

/*
 * What readers and writers need from the rooms above, handed down as callbacks:
 * run fills one io_ctx for each step it carries out. Readers, processors and writers
 * keep the pointer while they live. All calls come from the thread of that step, but
 * those marked "any thread"; stopped is for any thread too.
 */
#ifndef IO_IO_CTX_H
#define IO_IO_CTX_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct arena;
struct db;
struct err;

enum io_stop { IO_GO_ON, IO_STOP, IO_CANCEL };

/* A reader streams on its connection while the writer writes: never the same one. */
enum io_db_use { IO_DB_READ, IO_DB_WRITE };

enum io_take {
    IO_TAKE_GO = 0,
    IO_TAKE_SPENT,     /* the budget's day is used up */
    IO_TAKE_MAX_CALLS, /* the request's own limit */
    IO_TAKE_END,       /* the run is to end at once */
};

#define IO_WHY_MAX 400

/* What was wrong with an item that is left out. */
struct io_skip {
    int64_t item;      /* its number in the step, from 1; with the step it is the key */
    const char *class; /* parse, upstream, rejected, constraint, quota */
    const char *values; /* the item as JSON text */
    const char *message;
};

/* A part of what a reader would read: rows whose key is at least lower, less than
 * upper. */
struct io_range {
    const char *key; /* a column of its rows */
    bool has_lower;
    bool has_upper;
    int64_t lower;
    int64_t upper;
};

struct io_ctx {
    void *owner; /* for the callbacks */

    /* Is the time for waiting over? Then give up a call that is under way. Any thread.
     */
    bool (*cut)(struct io_ctx *io);

    /* Has somebody asked this run to end? Cheap; called at least once a chunk. */
    enum io_stop (*stopped)(struct io_ctx *io);

    /* done and total in rows; total -1 = not known; message may be NULL. */
    void (*progress)(struct io_ctx *io, int64_t done, int64_t total,
                     const char *message);

    /*
     * Take one call before it is made (budget NULL: only from the request's maxCalls)
     * and wait until it may go. An enum io_take or < 0; why: for people, when no call
     * is left. Any thread.
     */
    int (*take_call)(struct io_ctx *io, const char *budget, char why[IO_WHY_MAX],
                     struct err *err);

    /* Calls that the budget has for a day, -1 = not known. Any thread. */
    int64_t (*per_day)(struct io_ctx *io, const char *budget);

    /* The provider said that no call is left today. why stays as it is when that may be
     * about the day before. Any thread. */
    int (*close_budget)(struct io_ctx *io, const char *budget, char why[IO_WHY_MAX],
                        struct err *err);

    /* Value of a key of the configuration, from the environment; NULL: not set. Never
     * to be stored, logged or put into a message. Any thread. */
    const char *(*key)(struct io_ctx *io, const char *name);

    /* Wait so long; comes back early when the run is to end at once. Any thread. */
    void (*wait_ms)(struct io_ctx *io, int64_t ms);

    /* What a clock in the budget's zone shows (NULL: UTC), in microseconds since 1970
     * as if that were UTC: for dates in calls only. Any thread. */
    int64_t (*local_us)(struct io_ctx *io, const char *budget);

    /* Note an item that is left out; it stays noted when the chunk is rolled back. */
    int (*skip)(struct io_ctx *io, const struct io_skip *skip, struct err *err);

    /* An open connection to a configured database ("main" = the store's). It stays
     * the run's and open until the step has ended. */
    int (*database)(struct io_ctx *io, const char *name, enum io_db_use use,
                    struct db **ret_db, struct err *err);

    const char *work;     /* names the step of this instance, in all stores there are */
    const json_t *params; /* effective parameters: an object */
    const char *folder;   /* from which relative paths of files to read go; NULL: the
                           * process's own */
    const char *temp_folder; /* private to the run; removed by it */
    const char *part_path;   /* where a file writer makes its part */
    const char *part_from;   /* where it finds the part it goes on from; NULL: there */
    const char
        *files_folder; /* files of `fetch`, kept as long as the instance; or NULL */
    const struct io_range *range; /* of readers that can be cut; NULL: all rows */
    char *why;                    /* IO_WHY_MAX bytes: why the step stopped by itself */
    struct arena *arena;          /* lives as long as the step */
};

#endif

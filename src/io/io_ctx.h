/*
 * What readers and writers need from the rooms above, handed down as callbacks:
 * run fills one io_ctx for each step it carries out. Readers and writers keep
 * the pointer while they live. All calls come from the thread of that step.
 */
#ifndef IO_IO_CTX_H
#define IO_IO_CTX_H

#include <jansson.h>
#include <stdint.h>

struct arena;
struct db;
struct err;

enum io_stop { IO_GO_ON, IO_STOP, IO_CANCEL };

/* A reader streams on its connection while the writer writes: never the same one. */
enum io_db_use { IO_DB_READ, IO_DB_WRITE };

struct io_ctx {
    void *owner; /* for the callbacks */

    /* Has somebody asked this run to end? Cheap; called at least once a chunk. */
    enum io_stop (*stopped)(struct io_ctx *io);

    /* done and total in rows; total -1 = not known; message may be NULL. */
    void (*progress)(struct io_ctx *io, int64_t done, int64_t total,
                     const char *message);

    /* Take one call from a budget before it is made. NULL: none configured. */
    int (*reserve)(struct io_ctx *io, const char *budget, struct err *err);

    /* An open connection to a configured database ("main" = the store's). It stays
     * the run's and open until the step has ended. */
    int (*database)(struct io_ctx *io, const char *name, enum io_db_use use,
                    struct db **ret_db, struct err *err);

    const json_t *params;    /* effective parameters: an object */
    const char *temp_folder; /* private to the run; removed by it */
    const char *part_path;   /* where a file writer makes its part */
    const char *part_from;   /* where it finds the part it goes on from; NULL: there */
    struct arena *arena;     /* lives as long as the step */
};

#endif

/*
 * The index of the room: every reader, processor and writer there is (tables in
 * formats.c).
 */
#ifndef IO_FORMATS_H
#define IO_FORMATS_H

#include "io/processor.h"
#include "io/reader.h"
#include "io/writer.h"

struct io_option;

/* What a crash between two checkpoints can do to what a writer wrote. */
enum io_effect {
    IO_EFFECT_TRANSACTIONAL, /* commits with the checkpoint: exactly once */
    IO_EFFECT_FILE,          /* cut back to the checkpoint: exactly once */
    IO_EFFECT_AT_LEAST_ONCE, /* the last chunk may be written again */
};

struct reader_kind {
    const char *name; /* the key of `read` that chooses it: read: {sql: …} */
    const char *help; /* one line */
    const struct io_option *options;
    size_t n_options;
    /* What the table of options cannot say, or NULL. -ERR_CONFIG. */
    int (*check)(const json_t *def, struct err *err);
    reader_new_fn new_reader;
    reader_extent_fn extent; /* NULL: it cannot be cut into ranges */
    bool cut_by_key;         /* of a column; else by the number of the row */
};

struct writer_kind {
    const char *name; /* `format` of a file; "sql" for write: {database: …}, "http" */
    const char *help;
    const struct io_option *options;
    size_t n_options;
    const char *content_type; /* of the result; NULL: it makes no file */
    size_t chunk;             /* default rows a chunk */
    writer_new_fn new_writer;
    bool sends; /* rows leave by calls */
};

struct processor_kind {
    const char *name; /* the key of `process` that chooses it */
    const char *help;
    processor_check_fn check;
    processor_new_fn new_processor;
};

/* NULL: there is none of that name. */
const struct processor_kind *format_processor(const char *name);
const struct processor_kind *format_processors(size_t *ret_count);

const struct reader_kind *format_readers(size_t *ret_count);
const struct writer_kind *format_writers(size_t *ret_count);

/* The kind that a `read` object chooses, its keys checked. -ERR_CONFIG. */
int format_choose_reader(const json_t *def, const struct reader_kind **ret_kind,
                         struct err *err) must_check;

/*
 * The kind that a `write` object chooses, its keys checked; `format` may hold
 * {name}, filled from params. params NULL (while the configuration is loaded):
 * then *ret_kind is NULL for such a format and only the keys common to all file
 * writers are known to be right.
 */
int format_choose_writer(const json_t *def, const json_t *params,
                         const struct writer_kind **ret_kind,
                         struct err *err) must_check;

/* The effect class of a checked write object, and its word for people. */
enum io_effect format_effect(const json_t *write_def);
const char *format_effect_name(enum io_effect effect);

/* The database, other than the store's own, in which the rows of a checked write object
 * commit together with their checkpoint; NULL: none. */
const char *format_foreign(const json_t *write_def);

#endif

/*
 * The index of the room: every reader and writer there is (table in formats.c).
 */
#ifndef IO_FORMATS_H
#define IO_FORMATS_H

#include "io/reader.h"
#include "io/writer.h"

/* What a crash between two checkpoints can do to what a writer wrote. */
enum io_effect {
    IO_EFFECT_TRANSACTIONAL, /* commits with the checkpoint: exactly once */
    IO_EFFECT_FILE,          /* cut back to the checkpoint: exactly once */
    IO_EFFECT_AT_LEAST_ONCE, /* the last chunk may be written again */
};

struct reader_kind {
    const char *name; /* the key of `read` that chooses it: read: {sql: …} */
    const char *help; /* one line */
    const char *keys; /* all keys it knows, each with a space before and behind */
    size_t chunk;     /* default rows a chunk */
    reader_new_fn new_reader;
};

struct writer_kind {
    const char *name; /* `format` of a file; "sql" for write: {database: …} */
    const char *help;
    const char *keys;
    const char *content_type; /* of the result; NULL: it makes no file */
    enum io_effect effect;
    size_t chunk;
    writer_new_fn new_writer;
};

const struct reader_kind *format_readers(size_t *ret_count);
const struct writer_kind *format_writers(size_t *ret_count);

/* NULL: no such. */
const struct reader_kind *format_reader(const char *name);
const struct writer_kind *format_writer(const char *name);

/* The kind that a `read` or `write` object chooses; params fill templates and may
 * be NULL at load time (then *ret_kind is NULL for `format: "{x}"`). */
int format_choose_reader(const json_t *def, const struct reader_kind **ret_kind,
                         struct err *err) must_check;
int format_choose_writer(const json_t *def, const json_t *params,
                         const struct writer_kind **ret_kind,
                         struct err *err) must_check;

/* The effect class of a write object: for a database it hangs on which one. */
enum io_effect format_effect(const struct writer_kind *kind, const json_t *def);
const char *format_effect_name(enum io_effect effect);

#endif

/*
 * Texts with {name} in them, filled from the parameters of a run and escaped for
 * the place they go to. SQL never comes here: it has :name, which is bound.
 */
#ifndef IO_TEMPLATE_H
#define IO_TEMPLATE_H

#include "base/compiler.h"

#include <jansson.h>
#include <stdbool.h>

struct buf;
struct err;

#define TEMPLATE_FILE_NAME_MAX_BYTES 200

/* Does it hold a {name}? */
bool template_has_names(const char *text);

/* Braces in pairs, names of [A-Za-z0-9_]: else -ERR_CONFIG naming the place. */
int template_check(const char *where, const char *text, struct err *err) must_check;

/* Append the text with each value as it is. -ERR_CONFIG for an unknown name. */
int template_plain(const char *text, const json_t *params, struct buf *out,
                   struct err *err) must_check;

/* Append a path: the text's own folders stay, a value never makes or leaves one. */
int template_path(const char *text, const json_t *params, struct buf *out,
                  struct err *err) must_check;

/*
 * Append a file name: never a folder, no leading dot, at most 200 bytes (its
 * extension is kept when it must be cut). In values everything but letters and
 * digits of ASCII, Korean syllables, '.', '_' and '-' becomes '_'.
 */
int template_file_name(const char *text, const json_t *params, struct buf *out,
                       struct err *err) must_check;

#endif

/*
 * Takes one entry out of a zip that came from outside: sizes are ceilings, the CRC is
 * checked, names lead nowhere (an entry is a stream, not a path). No state.
 */
#ifndef IO_UNZIP_H
#define IO_UNZIP_H

#include "base/compiler.h"

#include <stddef.h>
#include <stdint.h>

struct err;

/* Where the zip is: in memory, or (data NULL) a file. */
struct unzip_source {
    const void *data;
    int fd;
    int64_t size;
};

/* A piece of the entry, in order; < 0 ends it with that value. */
typedef int (*unzip_fn)(void *arg, const void *data, size_t len, struct err *err);

/*
 * name "*": the first entry that is no folder. -ERR_PROTOCOL: not a zip, cut off,
 * damaged, encrypted; -ERR_NOT_FOUND: no such entry, and the names that there are;
 * -ERR_TOO_LARGE: more than max_bytes.
 */
int unzip_entry(const struct unzip_source *source, const char *name, int64_t max_bytes,
                unzip_fn fn, void *arg, struct err *err) must_check;

#endif

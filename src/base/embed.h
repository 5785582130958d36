/*
 * A file taken into the program at build time by tools/embed. The generated C file
 * defines one function per set of files:
 *
 *     size_t NAME(const struct embed_file **ret_files);
 *
 * Everything is constant and lives as long as the program; any thread may read it.
 */
#ifndef BASE_EMBED_H
#define BASE_EMBED_H

#include <stddef.h>

struct embed_file {
    const char *name;          /* as given at build time: the file's last part */
    const unsigned char *data; /* as it was, and a NUL behind it */
    size_t bytes;              /* without that NUL */
    const unsigned char *gzip; /* NULL unless asked for and smaller */
    size_t gzip_bytes;
};

#endif

/*
 * The bytes of a file, or of a member of a ZIP file, from front to back; and what
 * tells whether they are the same bytes as at an earlier reading. One thread.
 */
#ifndef IO_BYTE_SOURCE_H
#define IO_BYTE_SOURCE_H

#include "io/zip_read.h"

struct byte_source {
    int fd;
    char *path;
    char *name; /* for messages: the path, or path(member) */
    bool zipped;
    struct zip_archive zip;
    struct zip_stream stream;
};

void byte_source_init(struct byte_source *source);
void byte_source_release(struct byte_source *source);

/* member NULL: the file itself, or the only member if it is a ZIP file. */
int byte_source_open(struct byte_source *source, const char *path, const char *member,
                     struct err *err) must_check;

/* An xml_read_fn; arg is the source. */
int byte_source_read(void *arg, char *out, size_t cap, size_t *ret_len,
                     struct err *err) must_check;

#endif

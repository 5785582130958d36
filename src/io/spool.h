/*
 * Bytes kept until they are wanted again: in memory up to a limit, beyond it in a
 * temporary file that has no name any more. First all is added, then read. One
 * thread.
 */
#ifndef IO_SPOOL_H
#define IO_SPOOL_H

#include "base/buf.h"

#include <stdint.h>

struct err;

struct spool {
    struct buf tail; /* what is not in the file; all of it, while there is none */
    size_t limit;
    const char *folder; /* for the file; must outlive the spool */
    int fd;             /* -1: there is no file */
    uint64_t filed;     /* bytes in the file */
};

void spool_init(struct spool *spool, const char *folder, size_t limit);
void spool_release(struct spool *spool);

int spool_add(struct spool *spool, const void *data, size_t len,
              struct err *err) must_check;
uint64_t spool_size(const struct spool *spool);
/* Exactly len bytes at offset, which must be there. */
int spool_read(const struct spool *spool, uint64_t offset, void *ret, size_t len,
               struct err *err) must_check;

#endif

/*
 * The file that a step is making, before it is published: appended to through a
 * buffer of fixed size, made durable at each checkpoint, cut back to one. The
 * run names it and moves it away; here it is only bytes. Errors name the path;
 * a full disk is ERR_DISK_FULL. One thread.
 */
#ifndef IO_PART_H
#define IO_PART_H

#include "base/compiler.h"

#include <stddef.h>
#include <stdint.h>

struct err;

enum part_open_outcome {
    PART_OPENED,
    PART_SHORT, /* the file is gone or has fewer bytes than the checkpoint covers */
};

struct part {
    int fd; /* -1 = closed */
    char *path;
    char *buffer;
    size_t used;    /* bytes in buffer, behind those in the file */
    int64_t offset; /* bytes appended in all, the buffered ones included */
};

void part_init(struct part *part);

/* Close without flushing and free; the file stays. Accepts an unopened part. */
void part_release(struct part *part);

/* A new empty file of mode 0600 (an old one of that name is emptied). */
int part_create(struct part *part, const char *path, struct err *err) must_check;

/*
 * Go on behind the first `bytes` bytes. from: the part of an earlier run, whose first
 * bytes are copied into a new file at path and which is left as it is, because a frozen
 * writer may wake; NULL or the same as path: that file itself is cut back and gone on
 * with. PART_SHORT leaves path as it was.
 */
int part_resume(struct part *part, const char *path, const char *from, int64_t bytes,
                struct err *err) must_check;

int part_append(struct part *part, const void *data, size_t len,
                struct err *err) must_check;

/* All appended bytes are on the disk when this returns 0. */
int part_sync(struct part *part, struct err *err) must_check;

#endif

/*
 * Files done carefully: ceilings on reading, whole writes, durable renames,
 * private folders, and the lock file by which one process owns a store or a
 * seat. Descriptors are close-on-exec. Any thread.
 */
#ifndef BASE_FSIO_H
#define BASE_FSIO_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

/* For scoped(): close *fd if it is >= 0, and set it to -1. */
void fd_close(int *fd);

/* Append the whole file; -ERR_NOT_FOUND, -ERR_TOO_LARGE over max_bytes, -ERR_IO. */
int fs_read_file(const char *path, size_t max_bytes, struct buf *buf,
                 struct err *err) must_check;

/* All of it, whatever EINTR and short writes do. path is for the message. */
int fs_write_all(int fd, const void *data, size_t len, const char *path,
                 struct err *err) must_check;
int fs_pwrite_all(int fd, const void *data, size_t len, int64_t offset,
                  const char *path, struct err *err) must_check;

/* New content under path or the old one, also after power loss (temp, fsync, rename).
 */
int fs_replace_file(const char *path, const void *data, size_t len, mode_t mode,
                    struct err *err) must_check;

int fs_fsync(int fd, const char *path, struct err *err) must_check;
int fs_fsync_dir(const char *dir, struct err *err) must_check;
/* rename, then fsync of the folder(s). */
int fs_rename_durable(const char *from, const char *to, struct err *err) must_check;

/* The folder and missing parents, mode 0700; one that exists stays as it is. */
int fs_mkdir_private(const char *path, struct err *err) must_check;

/* A new file dir/prefixXXXXXX, mode 0600, read and write; its name is appended to path.
 */
int fs_open_temp(const char *dir, const char *prefix, struct buf *path, int *ret_fd,
                 struct err *err) must_check;

bool fs_exists(const char *path);
/* Remove a file; not being there, or any failure, is no matter. */
void fs_remove_quietly(const char *path);
/* A folder and all in it, following no link; failures leave rests behind. */
void fs_remove_tree_quietly(const char *path);

/*
 * Lock file. The lock is the kernel's (flock), so it ends with the process,
 * whatever kills it; the text inside tells others who holds it. The file is
 * never removed. Not inherited by children that exec.
 */
struct lockfile {
    int fd; /* -1: not held */
};

#define LOCKFILE_INIT                                                                  \
    {                                                                                  \
        .fd = -1                                                                       \
    }
#define LOCKFILE_TEXT_SIZE 256

enum lockfile_outcome { LOCKFILE_TAKEN, LOCKFILE_HELD };

/*
 * LOCKFILE_TAKEN: ours, and "pid@host since 2026-11-29T19:28:05Z, what" is in
 * the file. LOCKFILE_HELD: ret_holder tells whose. Never waits.
 */
int lockfile_take(const char *path, const char *what, struct lockfile *ret,
                  char ret_holder[LOCKFILE_TEXT_SIZE], struct err *err) must_check;
void lockfile_release(struct lockfile *lock);

#endif

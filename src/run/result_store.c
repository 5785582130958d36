/*
 * Files are named by numbers and by names that steps have already made safe
 * (no separator, no leading dot); both are checked again here, because a path
 * that leaves the folder must be impossible, not unlikely.
 */
#include "run/result_store.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fsio.h"
#include "base/plant.h"
#include "base/sha256.h"
#include "run/result_private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MARKER       "pawl-store"
#define HASH_SLICE   (256 * 1024)
#define PATH_MAX_LEN 4096

static int
join(char *ret_path, size_t size, struct err *err, const char *folder, const char *rest)
{
    int n = snprintf(ret_path, size, "%s/%s", folder, rest);

    if (n < 0 || (size_t)n >= size)
        return err_set(err, ERR_CONFIG,
                       "the results folder's path is too long: %s; move it higher up",
                       folder);
    return 0;
}

static bool
safe_name(const char *name)
{
    return name[0] && name[0] != '.' && !strchr(name, '/') && strlen(name) <= 255;
}

/* Whole or not at all, and never over one that is there: a link does not replace. */
static int
make_marker(const char *folder, const char *path, const char *store_id, struct err *err)
{
    scoped(buf_release) struct buf temp = {0};
    scoped(fd_close) int fd = -1;
    int r;

    buf_init(&temp, PATH_MAX_LEN);
    r = fs_open_temp(folder, MARKER ".", &temp, &fd, err);
    if (r < 0)
        return r;
    r = fs_write_all(fd, store_id, strlen(store_id), buf_str(&temp), err);
    if (r == 0)
        r = fs_fsync(fd, buf_str(&temp), err);
    if (r == 0 && link(buf_str(&temp), path) < 0 && errno != EEXIST)
        r = err_errno(err, ERR_IO, errno, "cannot mark the results folder %s", folder);
    fs_remove_quietly(buf_str(&temp));
    return r < 0 ? r : fs_fsync_dir(folder, err);
}

/* Letters and digits: what a store's id is made of. */
static bool
looks_like_id(const struct buf *found)
{
    const char *text = buf_str(found);

    return found->len > 0 &&
           strspn(text, "0123456789abcdefghijklmnopqrstuvwxyz") == found->len;
}

/* The marker is made once, whole or not at all, by whoever comes first. */
static int
check_marker(const char *folder, const char *store_id, struct err *err)
{
    scoped(buf_release) struct buf found = {0};
    char path[PATH_MAX_LEN];
    int r;

    r = join(path, sizeof(path), err, folder, MARKER);
    if (r < 0)
        return r;
    if (!fs_exists(path)) {
        r = make_marker(folder, path, store_id, err);
        if (r < 0)
            return r;
    }
    buf_init(&found, 4096);
    r = fs_read_file(path, 4096, &found, err);
    if (r < 0)
        return r;
    if (!looks_like_id(&found))
        return err_set(err, ERR_CONFIG,
                       "%s is damaged: it does not name a store. If the results in "
                       "this folder are those of our store (%.40s), remove that file, "
                       "and it is made anew; else give this store a folder of its own "
                       "in `results:`",
                       path, store_id);
    if (strcmp(buf_str(&found), store_id) != 0)
        return err_set(
            err, ERR_CONFIG,
            "results folder %s belongs to another store (%.40s, ours is "
            "%.40s); give this store a folder of its own in `results:`, or, if "
            "the other store is gone for good, remove the folder",
            folder, buf_str(&found), store_id);
    return 0;
}

bool
result_store_is_marked(const char *folder)
{
    char path[PATH_MAX_LEN];
    struct err ignored = {0};

    return join(path, sizeof(path), &ignored, folder, MARKER) == 0 && fs_exists(path);
}

static void
result_store_closep(struct result_store **results)
{
    result_store_close(*results);
}

int
result_store_open(const char *folder, const char *store_id,
                  struct result_store **ret_results, struct err *err)
{
    scoped(result_store_closep) struct result_store *results = NULL;
    static const char *const below[] = {"parts", "files"};
    char path[PATH_MAX_LEN];
    int r;

    r = fs_mkdir_private(folder, err);
    for (size_t i = 0; r == 0 && i < array_len(below); i++) {
        r = join(path, sizeof(path), err, folder, below[i]);
        if (r == 0)
            r = fs_mkdir_private(path, err);
    }
    if (r == 0)
        r = check_marker(folder, store_id, err);
    if (r < 0)
        return r;

    results = xcalloc(1, sizeof(*results));
    results->folder = xstrdup(folder);
    results->folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (results->folder_fd < 0)
        return err_errno(err, ERR_IO, errno, "cannot open the results folder %s",
                         folder);
    *ret_results = results;
    results = NULL;
    return 0;
}

void
result_store_close(struct result_store *results)
{
    if (!results)
        return;
    fd_close(&results->folder_fd);
    free(results->folder);
    free(results);
}

int
result_store_part(const struct result_store *results, int64_t instance,
                  const char *step, int64_t token, char *ret_path, size_t size,
                  struct err *err)
{
    char name[320];

    if (!safe_name(step))
        return err_set(err, ERR_INTERNAL, "step name %s cannot name a file", step);
    snprintf(name, sizeof(name), "parts/%" PRId64 "-%.200s-%" PRId64 ".part", instance,
             step, token);
    return join(ret_path, size, err, results->folder, name);
}

int
result_store_hash(int fd, const char *path, struct result_file *file, struct err *err)
{
    scoped(xfree_ptr) char *slice = xmalloc(HASH_SLICE);
    scoped(sha256_release) struct sha256 sha = {0};
    ssize_t n;

    sha256_init(&sha);
    file->bytes = 0;
    while ((n = read(fd, slice, HASH_SLICE)) > 0) {
        sha256_update(&sha, slice, (size_t)n);
        file->bytes += n;
    }
    sha256_final_hex(&sha, file->sha256);
    return n < 0
               ? err_errno(err, ERR_IO, errno, "cannot read the finished file %s", path)
               : 0;
}

static int
hash_file(const char *path, struct result_file *file, struct err *err)
{
    scoped(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    int r;

    if (fd < 0)
        return err_errno(err, ERR_IO, errno, "cannot read the finished file %s", path);
    r = result_store_hash(fd, path, file, err);
    if (r < 0)
        return r;
    return planted("rename_before_fsync") ? 0 : fs_fsync(fd, path, err);
}

int
result_store_publish(const struct result_store *results, const char *part_path,
                     int64_t request, const char *name, struct result_file *ret_file,
                     struct err *err)
{
    struct result_file file = {0};
    char folder[PATH_MAX_LEN];
    char above[PATH_MAX_LEN];
    char target[PATH_MAX_LEN];
    int r;

    if (!safe_name(name))
        return err_set(err, ERR_INTERNAL, "result name %.100s cannot name a file",
                       name);
    snprintf(file.path, sizeof(file.path), "files/%" PRId64 "/%s", request, name);
    r = hash_file(part_path, &file, err);
    if (r < 0)
        return r;
    snprintf(target, sizeof(target), "files/%" PRId64, request);
    r = join(folder, sizeof(folder), err, results->folder, target);
    if (r == 0)
        r = join(target, sizeof(target), err, results->folder, file.path);
    if (r == 0)
        r = join(above, sizeof(above), err, results->folder, "files");
    if (r == 0)
        r = fs_mkdir_private(folder, err);
    if (r == 0)
        r = fs_rename_durable(part_path, target, err);
    if (r == 0)
        r = fs_fsync_dir(above, err); /* the request's folder is new */
    if (r < 0)
        return r;
    *ret_file = file;
    return 0;
}

/* files/NUMBER/NAME, as publish made it: nothing that climbs. */
static bool
is_result_path(const char *path)
{
    size_t digits;

    if (strncmp(path, "files/", 6) != 0)
        return false;
    path += 6;
    digits = strspn(path, "0123456789");
    return digits > 0 && path[digits] == '/' && safe_name(path + digits + 1);
}

/* The only file in the folder of a request; false if there is none. */
static bool
only_name(const char *folder, char ret_name[256])
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    bool found = false;

    while (dir && !found && (entry = readdir(dir)))
        if (safe_name(entry->d_name)) {
            snprintf(ret_name, 256, "%s", entry->d_name);
            found = true;
        }
    if (dir)
        closedir(dir);
    return found;
}

int
result_store_find(const struct result_store *results, int64_t request,
                  char ret_name[256], struct result_file *ret_file, struct err *err)
{
    struct result_file file = {0};
    char folder[PATH_MAX_LEN];
    char path[PATH_MAX_LEN];
    char name[256];
    int r;

    snprintf(path, sizeof(path), "files/%" PRId64, request);
    r = join(folder, sizeof(folder), err, results->folder, path);
    if (r < 0)
        return r;
    if (!only_name(folder, name))
        return err_set(err, ERR_NOT_FOUND, "request %" PRId64 " has published nothing",
                       request);
    snprintf(file.path, sizeof(file.path), "files/%" PRId64 "/%s", request, name);
    r = join(path, sizeof(path), err, results->folder, file.path);
    if (r == 0)
        r = hash_file(path, &file, err);
    if (r < 0)
        return r;
    memcpy(ret_name, name, sizeof(name));
    *ret_file = file;
    return 0;
}

int
result_store_read(const struct result_store *results, const char *path, int64_t bytes,
                  int *ret_fd, struct err *err)
{
    scoped(fd_close) int fd = -1;
    struct stat st;

    if (!is_result_path(path))
        return err_set(err, ERR_INTERNAL, "result path %.100s is not one of ours",
                       path);
    fd = openat(results->folder_fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT)
        return err_set(err, ERR_GONE,
                       "the result is no longer kept; run the job again to make it");
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_errno(err, ERR_IO, errno, "cannot open the result");
    if (!S_ISREG(st.st_mode) || st.st_size != bytes)
        return err_set(err, ERR_IO,
                       "the result is damaged (%" PRId64 " bytes instead of %" PRId64
                       ") and is not served; run the job again to make it anew",
                       (int64_t)st.st_size, bytes);
    *ret_fd = fd;
    fd = -1;
    return 0;
}

/* The token in a name "INSTANCE-STEP-TOKEN.part" of this instance; 0: it is none. */
static int64_t
token_of_part(const char *name, int64_t instance)
{
    const char *last = strrchr(name, '-');
    char head[32];
    char *end = NULL;
    int64_t token;

    snprintf(head, sizeof(head), "%" PRId64 "-", instance);
    if (!last || strncmp(name, head, strlen(head)) != 0)
        return 0;
    token = strtoll(last + 1, &end, 10);
    return end > last + 1 && strcmp(end, ".part") == 0 ? token : 0;
}

/* Those of the instance with tokens from least to most. */
static void
drop_parts(const struct result_store *results, int64_t instance, int64_t least,
           int64_t most)
{
    int fd = openat(results->folder_fd, "parts", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *entry;

    if (!dir) {
        fd_close(&fd);
        return;
    }
    while ((entry = readdir(dir))) {
        int64_t token = token_of_part(entry->d_name, instance);

        if (token >= least && token <= most)
            unlinkat(dirfd(dir), entry->d_name, 0);
    }
    closedir(dir);
}

void
result_store_drop_parts(const struct result_store *results, int64_t instance,
                        int64_t token)
{
    drop_parts(results, instance, token > 0 ? token : 1, token > 0 ? token : INT64_MAX);
}

void
result_store_drop_parts_until(const struct result_store *results, int64_t instance,
                              int64_t token)
{
    drop_parts(results, instance, 1, token);
}

void
result_store_drop_files(const struct result_store *results, int64_t request)
{
    char name[64];
    char path[PATH_MAX_LEN];
    struct err ignored = {0};

    snprintf(name, sizeof(name), "files/%" PRId64, request);
    if (join(path, sizeof(path), &ignored, results->folder, name) == 0)
        fs_remove_tree_quietly(path);
}

int
result_store_drop_file(const struct result_store *results, const char *path,
                       struct err *err)
{
    char folder[RESULT_PATH_MAX];

    if (!is_result_path(path))
        return err_set(err, ERR_INTERNAL, "result path %.100s is not one of ours",
                       path);
    if (unlinkat(results->folder_fd, path, 0) < 0 && errno != ENOENT)
        return err_errno(err, ERR_IO, errno, "cannot remove %.300s", path);
    snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(path, '/') - path), path);
    (void)unlinkat(results->folder_fd, folder, AT_REMOVEDIR); /* if it is empty now */
    return 0;
}

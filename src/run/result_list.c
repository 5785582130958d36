/* What lies in the results folder. Names that are not ours are passed by. */
#include "run/result_store.h"

#include "base/err.h"
#include "base/fsio.h"
#include "run/result_private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct listing {
    const struct result_store *results;
    result_entry_fn fn;
    void *arg;
    int64_t request; /* whose folder is being read */
};

typedef int (*name_fn)(const struct listing *listing, const char *name,
                       struct err *err);

/* fn for each name in the folder, which may have gone meanwhile. */
static int
each_name(const struct listing *listing, const char *folder, name_fn fn,
          struct err *err)
{
    int fd =
        openat(listing->results->folder_fd, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *entry;
    int r = 0;

    if (!dir) {
        int why = errno;

        fd_close(&fd);
        if (why == ENOENT)
            return 0;
        return err_errno(err, ERR_IO, why, "cannot list %s of the results folder",
                         folder);
    }
    while (r >= 0 && (entry = readdir(dir)))
        if (entry->d_name[0] != '.')
            r = fn(listing, entry->d_name, err);
    closedir(dir);
    return r < 0 ? r : 0;
}

/* Digits only, up to end: a number of ours. */
static bool
is_number(const char *text, const char *end, int64_t *ret)
{
    if (end == text || end - text > 18 ||
        strspn(text, "0123456789") < (size_t)(end - text))
        return false;
    *ret = strtoll(text, NULL, 10);
    return true;
}

/* INSTANCE-STEP-TOKEN.part */
static int
tell_part(const struct listing *listing, const char *name, struct err *err)
{
    struct result_entry entry = {0};
    char path[RESULT_PATH_MAX];
    const char *step = strchr(name, '-');
    const char *token = strrchr(name, '-');
    const char *end = token ? strchr(token, '.') : NULL;

    if (!end || strcmp(end, ".part") != 0 || step == token ||
        !is_number(name, step, &entry.owner) ||
        !is_number(token + 1, end, &entry.token) || entry.token == 0)
        return 0;
    snprintf(path, sizeof(path), "parts/%.256s", name);
    entry.path = path;
    return listing->fn(listing->arg, &entry, err);
}

static int
tell_file(const struct listing *listing, const char *name, struct err *err)
{
    char path[RESULT_PATH_MAX];
    struct result_entry entry = {.owner = listing->request, .path = path};

    snprintf(path, sizeof(path), "files/%" PRId64 "/%.256s", listing->request, name);
    return listing->fn(listing->arg, &entry, err);
}

static int
tell_request(const struct listing *listing, const char *name, struct err *err)
{
    struct listing one = *listing;
    char folder[64];

    if (!is_number(name, name + strlen(name), &one.request))
        return 0;
    snprintf(folder, sizeof(folder), "files/%" PRId64, one.request);
    return each_name(&one, folder, tell_file, err);
}

int
result_store_list_parts(const struct result_store *results, result_entry_fn fn,
                        void *arg, struct err *err)
{
    const struct listing listing = {.results = results, .fn = fn, .arg = arg};

    return each_name(&listing, "parts", tell_part, err);
}

int
result_store_list(const struct result_store *results, result_entry_fn fn, void *arg,
                  struct err *err)
{
    const struct listing listing = {.results = results, .fn = fn, .arg = arg};
    int r = result_store_list_parts(results, fn, arg, err);

    return r < 0 ? r : each_name(&listing, "files", tell_request, err);
}

bool
result_store_there(const struct result_store *results, const char *path)
{
    struct stat st;

    return fstatat(results->folder_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

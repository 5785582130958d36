/*
 * A file for the steps after it, in a folder that lives as long as the instance. It
 * appears there whole, by a rename, so a file that is there is whole; when the instance
 * goes on and the file is still there, nothing is fetched.
 */
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fsio.h"
#include "base/sha256.h"
#include "base/strs.h"
#include "io/call_text.h"
#include "io/http_talk.h"
#include "io/option.h"
#include "io/unzip.h"
#include "steps/once.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SLICE  65536
#define KEPT_S (30 * 24 * 3600)

struct fetch {
    struct step_ctx *ctx;
    const json_t *def;
    struct http_spec spec;
    struct call_names names;
    char path[4096];
    struct buf temp; /* what is being fetched, NUL-terminated path */
    int fd;
};

static void
fetch_release(struct fetch *fetch)
{
    http_spec_release(&fetch->spec);
    fd_close(&fetch->fd);
    if (fetch->temp.len)
        fs_remove_quietly(buf_str(&fetch->temp));
    buf_release(&fetch->temp);
}

static bool
is_hash(const char *text)
{
    return strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64;
}

int
fetch_step_validate(const json_t *def, struct err *err)
{
    static const char *const keys[] = {"name", "fetch"};
    const json_t *fetch = json_object_get(def, "fetch");
    const char *hash = json_string_value(json_object_get(fetch, "sha256"));
    const char *file = json_string_value(json_object_get(fetch, "file"));
    scoped(http_spec_release) struct http_spec spec = {0};
    int r = step_keys_check(def, keys, array_len(keys), err);

    if (r == 0)
        r = http_spec_read(fetch, "fetch", HTTP_USE_FETCH, &spec, err);
    if (r == 0 && hash && !strchr(hash, '{') && !is_hash(hash))
        r = err_set(err, ERR_CONFIG,
                    "fetch.sha256: must be 64 hexadecimal digits in small letters");
    if (r == 0 && (strchr(file, '/') || *file == '.'))
        r = err_set(err, ERR_CONFIG,
                    "fetch.file: must be a plain name, without a folder");
    if (r == 0)
        r = call_text_check_plain("fetch.file", file, err);
    if (r == 0 && json_object_get(fetch, "unzip"))
        r = call_text_check_plain("fetch.unzip", io_option_text(fetch, "unzip", ""),
                                  err);
    if (r == 0 && spec.json)
        r = err_set(err, ERR_CONFIG, "fetch.json: a file is fetched without a body");
    return r;
}

/* --- checks --- */

static int
hash_of(int fd, char ret[SHA256_HEX_SIZE], struct err *err)
{
    scoped(sha256_release) struct sha256 sha = {0};
    scoped(xfree_ptr) char *slice = xmalloc(SLICE);
    int64_t at = 0;
    ssize_t n;

    sha256_init(&sha);
    while ((n = pread(fd, slice, SLICE, (off_t)at)) > 0) {
        sha256_update(&sha, slice, (size_t)n);
        at += n;
    }
    if (n < 0)
        return err_errno(err, ERR_IO, errno, "cannot read the fetched file");
    sha256_final_hex(&sha, ret);
    return 0;
}

/* 0, or -ERR_PROTOCOL: it is not what was asked for. */
static int
check_file(struct fetch *fetch, int fd, struct err *err)
{
    const char *wanted = io_option_text(fetch->def, "sha256", NULL);
    int64_t bytes = io_option_size(fetch->def, "bytes", -1);
    int64_t least = io_option_size(fetch->def, "min_bytes", 0);
    scoped(buf_release) struct buf hash = {0};
    char found[SHA256_HEX_SIZE];
    struct stat st;
    int r;

    if (fstat(fd, &st) < 0)
        return err_errno(err, ERR_IO, errno, "cannot look at the fetched file");
    if ((bytes >= 0 && st.st_size != bytes) || st.st_size < least)
        return err_set(err, ERR_PROTOCOL,
                       "the fetched file has %" PRId64 " bytes, not the %s%" PRId64
                       " it must have",
                       (int64_t)st.st_size, bytes >= 0 ? "" : "at least ",
                       bytes >= 0 ? bytes : least);
    if (!wanted)
        return 0;
    buf_init(&hash, 256);
    r = call_text_fill("sha256", wanted, &fetch->names, CALL_PLAIN, &hash, err);
    if (r == 0)
        r = hash_of(fd, found, err);
    if (r < 0)
        return r;
    return str_eq(found, buf_str(&hash))
               ? 0
               : err_set(
                     err, ERR_PROTOCOL,
                     "the fetched file has the SHA-256 %s, not the one that the job "
                     "names",
                     found);
}

/* 1: it lies there and is right, 0: not. */
static int
is_there(struct fetch *fetch)
{
    scoped(fd_close) int fd = open(fetch->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct err ignored = {0};

    return fd >= 0 && check_file(fetch, fd, &ignored) == 0;
}

/* --- fetching --- */

static int
put_piece(void *arg, const void *data, size_t len, struct err *err)
{
    struct fetch *fetch = arg;

    return fs_write_all(fetch->fd, data, len, buf_str(&fetch->temp), err);
}

static int
open_temp(struct fetch *fetch, struct err *err)
{
    fd_close(&fetch->fd);
    if (fetch->temp.len)
        fs_remove_quietly(buf_str(&fetch->temp));
    buf_clear(&fetch->temp);
    return fs_open_temp(fetch->ctx->io->files_folder, ".fetch.", &fetch->temp,
                        &fetch->fd, err);
}

static void
remove_file(struct buf *path)
{
    if (path->len)
        fs_remove_quietly(buf_str(path));
    buf_release(path);
}

/* The zip that was fetched gives way to its entry. */
static int
unpack(struct fetch *fetch, struct err *err)
{
    const char *entry = io_option_text(fetch->def, "unzip", NULL);
    scoped(buf_release) struct buf name = {0};
    scoped(remove_file) unused_arg struct buf zip_path = fetch->temp;
    scoped(fd_close) int zip = fetch->fd;
    struct unzip_source source = {.fd = zip};
    struct stat st;
    int r;

    fetch->temp = (struct buf){0};
    fetch->fd = -1;
    buf_init(&fetch->temp, 4096);
    buf_init(&name, 1024);
    if (fstat(zip, &st) < 0)
        return err_errno(err, ERR_IO, errno, "cannot look at the fetched file");
    source.size = st.st_size;
    r = call_text_fill("fetch.unzip", entry, &fetch->names, CALL_FILE, &name, err);
    if (r == 0)
        r = open_temp(fetch, err);
    if (r == 0)
        r = unzip_entry(&source, buf_str(&name), fetch->spec.max_bytes, put_piece,
                        fetch, err);
    return r;
}

/* 0: a whole file lies in temp. An enum step_outcome, or < 0; *ret_bad: the call went
 * well, but what came is not what it should be. */
static int
fetch_once(struct fetch *fetch, struct http_talk *talk, bool *ret_bad, struct err *err)
{
    scoped(http_said_release) struct http_said said = {0};
    struct http_sink sink;
    int r = open_temp(fetch, err);

    if (r < 0)
        return r;
    sink.fd = fetch->fd;
    r = http_talk_call(talk, &fetch->names, NULL, &sink, &said, err);
    if (r == 0 && said.end == HTTP_END_NO_DATA)
        r = err_set(err, ERR_PROTOCOL, "there is nothing to fetch (code %s)",
                    said.code[0] ? said.code : "none");
    if (r == 0)
        r = step_of_call(fetch->ctx, &said, err);
    *ret_bad = r == 0;
    if (r == 0 && json_object_get(fetch->def, "unzip"))
        r = unpack(fetch, err);
    if (r == 0)
        r = check_file(fetch, fetch->fd, err);
    if (r == 0 || !*ret_bad)
        return r;
    http_talk_strike(talk, err->text);
    return err_prefix(err, "%s", talk->shown);
}

static int
fetch_file(struct fetch *fetch, struct err *err)
{
    scoped(http_link_release) struct http_link link = {0};
    scoped(http_talk_release) struct http_talk talk = {0};
    struct io_ctx *io = fetch->ctx->io;
    int r;

    http_link_init(&link, io, &fetch->spec);
    r = http_talk_init(&talk, &link, err);
    if (r < 0)
        return r;
    for (int attempt = 1;; attempt++) {
        struct err why = {0};
        bool bad = false;

        r = fetch_once(fetch, &talk, &bad, &why);
        if (r == 0)
            break;
        if (!bad || attempt >= fetch->spec.attempts || io->cut(io)) {
            *err = why;
            return r;
        }
        io->wait_ms(io, fetch->spec.wait_ms);
    }
    r = fs_fsync(fetch->fd, buf_str(&fetch->temp), err);
    if (r == 0)
        r = fs_rename_durable(buf_str(&fetch->temp), fetch->path, err);
    if (r == 0)
        buf_clear(&fetch->temp);
    return r;
}

/* Folders of instances that nobody went on with, and nobody will so late. */
static void
sweep(const char *above)
{
    DIR *dir = opendir(above);
    struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        struct stat st;
        char path[4096];

        if (entry->d_name[0] == '.' ||
            fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
            time(NULL) - st.st_mtime < KEPT_S)
            continue;
        if (snprintf(path, sizeof(path), "%s/%s", above, entry->d_name) <
            (int)sizeof(path))
            fs_remove_tree_quietly(path);
    }
    if (dir)
        closedir(dir);
}

static int
prepare(struct fetch *fetch, struct err *err)
{
    const char *folder = fetch->ctx->io->files_folder;
    scoped(buf_release) struct buf name = {0};
    char above[4096];
    char *slash;
    int r;

    if (!folder)
        return err_set(err, ERR_INTERNAL, "there is no folder for fetched files");
    buf_init(&fetch->temp, 4096);
    buf_init(&name, 255);
    (void)str_copy(above, sizeof(above), folder);
    slash = strrchr(above, '/');
    if (slash)
        *slash = '\0';
    r = fs_mkdir_private(above, err);
    sweep(above);
    if (r == 0)
        r = fs_mkdir_private(folder, err);
    if (r == 0) /* for the sweeps of others: it is in use */
        (void)utimensat(AT_FDCWD, folder, NULL, 0);
    if (r == 0)
        r = http_spec_read(fetch->def, "fetch", HTTP_USE_FETCH, &fetch->spec, err);
    if (r == 0)
        r = call_text_fill("fetch.file", io_option_text(fetch->def, "file", ""),
                           &fetch->names, CALL_FILE, &name, err);
    if (r < 0)
        return r;
    if (snprintf(fetch->path, sizeof(fetch->path), "%s/%s", folder, buf_str(&name)) >=
        (int)sizeof(fetch->path))
        return err_set(err, ERR_CONFIG, "the path of the state folder is too long");
    return 0;
}

int
fetch_step_run(struct step_ctx *ctx, struct step_result *ret_result, struct err *err)
{
    scoped(fetch_release) struct fetch fetch = {
        .ctx = ctx,
        .def = json_object_get(ctx->def, "fetch"),
        .names = {.io = ctx->io},
        .fd = -1,
    };
    struct step_counters counters = {0};
    int r = prepare(&fetch, err);

    if (r == 0 && !is_there(&fetch)) {
        r = fetch_file(&fetch, err);
        counters.written = 1;
    }
    if (r == 0)
        r = step_done(ctx, &counters, NULL, NULL, err);
    if (r != 0)
        return r;
    *ret_result = (struct step_result){.counters = counters};
    return STEP_COMPLETED;
}

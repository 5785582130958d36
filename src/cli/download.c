/* Taking a result home: follow_download. */
#include "cli/follow.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fsio.h"
#include "base/sha256.h"
#include "base/strs.h"
#include "cli/backend.h"
#include "cli/command.h"
#include "cli/print.h"

#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_MAX_BYTES 4096

struct incoming {
    struct sha256 sha;
    int fd;
    int64_t bytes;
    const char *path;
};

static int
on_piece(void *arg, const char *data, size_t len, struct err *err)
{
    struct incoming *incoming = arg;

    sha256_update(&incoming->sha, data, len);
    incoming->bytes += (int64_t)len;
    return fs_write_all(incoming->fd, data, len, incoming->path, err);
}

static bool
is_folder(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* A name from afar must not lead out of the folder it is put in. */
static bool
is_plain_name(const char *name)
{
    return name[0] && !strchr(name, '/') && !str_eq(name, ".") && !str_eq(name, "..");
}

static int
choose_path(struct cli *cli, const json_t *result, const char *output,
            const char **ret_path, struct err *err)
{
    const char *name = json_text_of(result, "name");

    if (!is_folder(output)) {
        *ret_path = output;
        return 0;
    }
    if (!is_plain_name(name))
        return err_set(err, ERR_USAGE,
                       "the result's name cannot be a file name here; give --output a "
                       "file instead of a folder");
    *ret_path = arena_printf(&cli->arena, "%s/%s", output, name);
    return 0;
}

int
follow_check_output(struct cli *cli, struct err *err)
{
    const char *output = cli->options.value[OPTION_OUTPUT];
    const char *folder;

    if (!output)
        return 0;
    if (str_empty(output))
        return err_set(err, ERR_USAGE, "--output needs the name of a file or folder");
    folder = is_folder(output) ? output : dirname(arena_strdup(&cli->arena, output));
    if (!is_folder(folder))
        return err_set(err, ERR_USAGE,
                       "--output %s: there is no folder %s; make it first", output,
                       folder);
    if (access(folder, W_OK) < 0)
        return err_set(err, ERR_USAGE,
                       "--output %s: nothing can be written into the folder %s", output,
                       folder);
    return 0;
}

static int
check_whole(const struct incoming *incoming, const json_t *result, const char *sha256,
            struct err *err)
{
    int64_t bytes = json_count_of(result, "bytes");

    if (incoming->bytes != bytes)
        return err_set(err, ERR_PROTOCOL,
                       "the download brought %" PRId64 " of %" PRId64
                       " bytes; nothing was kept, try again",
                       incoming->bytes, bytes);
    if (!str_eq(sha256, json_text_of(result, "sha256")))
        return err_set(err, ERR_PROTOCOL,
                       "the SHA-256 of what was downloaded is not that of the result; "
                       "nothing was kept, try again");
    return 0;
}

/* Files of people have the rights that their umask gives, temp files do not. */
static int
give_usual_rights(const struct incoming *incoming, struct err *err)
{
    mode_t mask = umask(0);

    umask(mask);
    if (fchmod(incoming->fd, 0666 & ~mask) < 0)
        return err_errno(err, ERR_IO, errno, "%s", incoming->path);
    return 0;
}

static int
receive(struct cli *cli, struct interrupt *interrupt, const json_t *request,
        struct incoming *incoming, struct err *err)
{
    const json_t *result = json_object_get(request, "result");
    struct backend_download download = {
        .piece = on_piece, .arg = incoming, .interrupt = interrupt};
    char sha256[SHA256_HEX_SIZE];
    int r;

    sha256_init(&incoming->sha);
    r = cli->backend->kind->result(cli->backend, json_count_of(request, "requestId"),
                                   &download, err);
    sha256_final_hex(&incoming->sha, sha256);
    sha256_release(&incoming->sha);
    if (r == 0)
        r = check_whole(incoming, result, sha256, err);
    if (r == 0)
        r = give_usual_rights(incoming, err);
    if (r == 0)
        r = fs_fsync(incoming->fd, incoming->path, err);
    return r;
}

int
follow_download(struct cli *cli, struct interrupt *interrupt, const json_t *request,
                const char *output, const char **ret_path, struct err *err)
{
    const json_t *result = json_object_get(request, "result");
    scoped(buf_release) struct buf temp = {0};
    scoped(fd_close) int fd = -1;
    struct incoming incoming = {0};
    const char *path = NULL;
    int r;

    if (!json_is_object(result))
        return err_set(err, ERR_NO_RESULT,
                       "job %s makes no result file; leave out --output",
                       json_text_of(request, "job"));
    r = choose_path(cli, result, output, &path, err);
    if (r < 0)
        return r;
    buf_init(&temp, PATH_MAX_BYTES);
    r = fs_open_temp(dirname(arena_strdup(&cli->arena, path)), ".pawl-download-", &temp,
                     &fd, err);
    if (r < 0)
        return r;
    incoming.fd = fd;
    incoming.path = buf_str(&temp);
    r = receive(cli, interrupt, request, &incoming, err);
    if (r == 0)
        r = fs_rename_durable(incoming.path, path, err);
    if (r < 0) {
        fs_remove_quietly(buf_str(&temp));
        return r;
    }
    *ret_path = path;
    return 0;
}

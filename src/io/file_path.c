#include "io/file_path.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/strs.h"
#include "io/call_text.h"
#include "io/io_ctx.h"
#include "io/template.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static int
plain_path_fill(struct io_ctx *io, const char *text, struct buf *out, struct err *err)
{
    const char *folder = *text != '/' ? io->folder : NULL;
    int r;

    if (folder)
        buf_addf(out, "%s/", folder);
    r = template_path(text, io->params, out, err);
    if (r < 0 || !folder || access(buf_str(out), F_OK) == 0 || errno != ENOENT)
        return r;
    return err_set(
        err, ERR_IO,
        "there is no file %s: a path that does not begin with / is taken from "
        "the folder of the configuration, %s",
        buf_str(out), folder);
}

int
file_path_fill(struct io_ctx *io, const char *text, struct buf *out, struct err *err)
{
    struct call_names names = {.io = io};
    int r;

    if (!str_starts_with(text, "run:"))
        return plain_path_fill(io, text, out, err);
    text += 4;
    if (!io->files_folder || strchr(text, '/') || *text == '.' || !*text)
        return err_set(err, ERR_CONFIG,
                       "run:%s is no file of a step `fetch`; it is run:NAME, with its "
                       "`file`",
                       text);
    r = call_text_check_plain("read", text, err);
    if (r < 0)
        return r;
    buf_addf(out, "%s/", io->files_folder);
    return call_text_fill("read", text, &names, CALL_FILE, out, err);
}

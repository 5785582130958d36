#include "io/file_path.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/strs.h"
#include "io/call_text.h"
#include "io/io_ctx.h"
#include "io/template.h"

#include <string.h>

int
file_path_fill(struct io_ctx *io, const char *text, struct buf *out, struct err *err)
{
    struct call_names names = {.io = io};
    int r;

    if (!str_starts_with(text, "run:"))
        return template_path(text, io->params, out, err);
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

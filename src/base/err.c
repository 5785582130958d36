#include "base/err.h"

#include "base/utf8.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct err_row {
    const char *word;
    int http;
    int exit;
};

static const struct err_row rows[] = {
    [ERR_NONE] = {"OK", 200, 0},
#define ERR(name, word, http, exit) [name] = {word, http, exit},
#include "base/err.def"
#undef ERR
};
static_assert_count(rows, ERR_COUNT);

/* A note goes into databases that take UTF-8 only: what was cut in the middle of a
 * character loses it, other bad bytes become '?'. */
static void
mend(char *text, size_t size)
{
    size_t len = strlen(text);
    size_t at;

    while ((at = utf8_valid_prefix(text, len)) < len) {
        if (len == size - 1 && len - at < 4)
            text[len = at] = '\0';
        else
            text[at] = '?';
    }
}

int
err_set(struct err *err, enum err_code code, const char *fmt, ...)
{
    va_list args;

    if (err->code != ERR_NONE)
        return -(int)err->code;
    err->code = code;
    va_start(args, fmt);
    vsnprintf(err->text, sizeof(err->text), fmt, args);
    va_end(args);
    mend(err->text, sizeof(err->text));
    return -(int)code;
}

int
err_prefix(struct err *err, const char *fmt, ...)
{
    char old[sizeof(err->text)];
    va_list args;
    size_t used;

    memcpy(old, err->text, sizeof(old));
    va_start(args, fmt);
    vsnprintf(err->text, sizeof(err->text), fmt, args);
    va_end(args);
    used = strlen(err->text);
    snprintf(err->text + used, sizeof(err->text) - used, ": %s", old);
    mend(err->text, sizeof(err->text));
    return -(int)err->code;
}

static enum err_code
code_of_errno(enum err_code code, int errno_value)
{
    if (errno_value == ENOSPC || errno_value == EDQUOT)
        return ERR_DISK_FULL;
    if (errno_value == ENOMEM)
        return ERR_NOMEM;
    return code;
}

int
err_errno(struct err *err, enum err_code code, int errno_value, const char *fmt, ...)
{
    char reason[128];
    char what[320];
    va_list args;

    va_start(args, fmt);
    vsnprintf(what, sizeof(what), fmt, args);
    va_end(args);
    return err_set(err, code_of_errno(code, errno_value), "%s: %s", what,
                   strerror_r(errno_value, reason, sizeof(reason)));
}

void
err_clear(struct err *err)
{
    memset(err, 0, sizeof(*err));
}

static const struct err_row *
row_of(enum err_code code)
{
    return code < ERR_COUNT ? &rows[code] : &rows[ERR_INTERNAL];
}

const char *
err_word(enum err_code code)
{
    return row_of(code)->word;
}

int
err_http_status(enum err_code code)
{
    return row_of(code)->http;
}

int
err_exit_code(enum err_code code)
{
    return row_of(code)->exit;
}

/*
 * Failures. A function that can fail returns int, three ways:
 *
 *      0   done
 *    > 0   an outcome of this very function, from its own enum; the direct
 *          caller handles it and never passes it on
 *    < 0   a failure: minus an enum err_code; passed on unchanged
 *
 * Its last parameter is a struct err on the caller's stack. The first note
 * written stays: it was made nearest to the cause. No allocation, so it works
 * when memory is gone. Any thread; one struct err belongs to one call chain.
 *
 * Functions below worker/, api/ and cli/ do not log failures; the top of a
 * loop, a request handler or a command logs once.
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include "base/compiler.h"

enum err_code {
    ERR_NONE = 0,
#define ERR(name, word, http, exit) name,
#include "base/err.def"
#undef ERR
    ERR_COUNT
};

struct err {
    enum err_code code;
    char text[480];  /* for people: the place, what is wrong, the remedy; UTF-8 */
    char detail[64]; /* for programs: e.g. an SQLSTATE, a request id */
};

/* Write the note unless one is there, and return -code. */
int err_set(struct err *err, enum err_code code, const char *fmt, ...)
    printf_like(3, 4);

/* Put "context: " before the note that is there; returns -err->code. */
int err_prefix(struct err *err, const char *fmt, ...) printf_like(2, 3);

/* err_set with ": " and the text of errno_value behind; ENOSPC, EDQUOT become
 * ERR_DISK_FULL and ENOMEM ERR_NOMEM whatever code says. */
int err_errno(struct err *err, enum err_code code, int errno_value, const char *fmt,
              ...) printf_like(4, 5);

/* Ready for another call: forget the note. */
void err_clear(struct err *err);

const char *err_word(enum err_code code);
int err_http_status(enum err_code code);
int err_exit_code(enum err_code code);

#endif

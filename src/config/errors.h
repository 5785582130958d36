/*
 * What is wrong with a configuration, everything at once. Filled by
 * config_load and by later checks of higher rooms (config_job_problem in
 * config.h), sorted by place, printed as `file:line:column: message`. Caller
 * owns it; one thread.
 */
#ifndef CONFIG_ERRORS_H
#define CONFIG_ERRORS_H

#include "base/compiler.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#define CONFIG_ERRORS_MAX 100

struct config_problem {
    char *where;     /* file, or name of the environment variable */
    unsigned line;   /* from 1; 0 = the place has no line */
    unsigned column; /* from 1, in characters */
    char *text;      /* place, what is wrong, remedy */
};

struct config_errors {
    struct config_problem *list;
    size_t count;    /* at most CONFIG_ERRORS_MAX */
    size_t left_out; /* found beyond that */
};

/* An all-zero struct is ready; release leaves it all-zero again. */
void config_errors_release(struct config_errors *errors);

/* A problem already noted at the same place with the same text is not repeated. */
void config_errors_add(struct config_errors *errors, const char *where, unsigned line,
                       unsigned column, const char *fmt, ...) printf_like(5, 6);
void config_errors_vadd(struct config_errors *errors, const char *where, unsigned line,
                        unsigned column, const char *fmt, va_list args)
    printf_like(5, 0);

/* By line, then column, then order of finding. */
void config_errors_sort(struct config_errors *errors);

/* One line each, sorted; a last line tells how many were left out. */
void config_errors_print(const struct config_errors *errors, FILE *out);

/* The nth one as `file:line:column: message`; cut to the buffer's size. */
void config_errors_text(const struct config_errors *errors, size_t n, char *buf,
                        size_t size);

#endif

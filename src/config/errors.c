#include "config/errors.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/strs.h"

#include <stdlib.h>
#include <string.h>

#define PROBLEM_TEXT_MAX 2000

void
config_errors_release(struct config_errors *errors)
{
    size_t i;

    if (errors == NULL)
        return;
    for (i = 0; i < errors->count; i++) {
        free(errors->list[i].where);
        free(errors->list[i].text);
    }
    free(errors->list);
    memset(errors, 0, sizeof(*errors));
}

static bool
is_known(const struct config_errors *errors, const struct config_problem *problem)
{
    size_t i;

    for (i = 0; i < errors->count; i++) {
        const struct config_problem *known = &errors->list[i];

        if (known->line == problem->line && known->column == problem->column &&
            str_eq(known->where, problem->where) && str_eq(known->text, problem->text))
            return true;
    }
    return false;
}

void
config_errors_vadd(struct config_errors *errors, const char *where, unsigned line,
                   unsigned column, const char *fmt, va_list args)
{
    scoped(buf_release) struct buf text = {0};
    struct config_problem problem = {.line = line, .column = column};

    buf_init(&text, PROBLEM_TEXT_MAX);
    buf_vaddf(&text, fmt, args);
    problem.where = xstrdup(where);
    problem.text =
        xstrdup(text.overflow ? "(a problem too long to tell)" : buf_str(&text));
    if (is_known(errors, &problem) || errors->count == CONFIG_ERRORS_MAX) {
        errors->left_out += is_known(errors, &problem) ? 0 : 1;
        free(problem.where);
        free(problem.text);
        return;
    }
    if (errors->list == NULL)
        errors->list = xcalloc(CONFIG_ERRORS_MAX, sizeof(*errors->list));
    errors->list[errors->count++] = problem;
}

void
config_errors_add(struct config_errors *errors, const char *where, unsigned line,
                  unsigned column, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    config_errors_vadd(errors, where, line, column, fmt, args);
    va_end(args);
}

static bool
comes_later(const struct config_problem *a, const struct config_problem *b)
{
    return a->line != b->line ? a->line > b->line : a->column > b->column;
}

/* By insertion: there are few, and those of one place keep their order. */
void
config_errors_sort(struct config_errors *errors)
{
    size_t i;
    size_t j;

    for (i = 1; i < errors->count; i++) {
        struct config_problem problem = errors->list[i];

        for (j = i; j > 0 && comes_later(&errors->list[j - 1], &problem); j--)
            errors->list[j] = errors->list[j - 1];
        errors->list[j] = problem;
    }
}

void
config_errors_text(const struct config_errors *errors, size_t n, char *buf, size_t size)
{
    const struct config_problem *problem = &errors->list[n];
    scoped(buf_release) struct buf text = {0};

    buf_init(&text, PROBLEM_TEXT_MAX + 8192);
    buf_add_str(&text, problem->where);
    if (problem->line > 0)
        buf_addf(&text, ":%u:%u", problem->line, problem->column);
    buf_addf(&text, ": %s", problem->text);
    str_copy(buf, size, buf_str(&text));
}

void
config_errors_print(const struct config_errors *errors, FILE *out)
{
    char line[PROBLEM_TEXT_MAX + 8192];
    size_t i;

    for (i = 0; i < errors->count; i++) {
        config_errors_text(errors, i, line, sizeof(line));
        fprintf(out, "%s\n", line);
    }
    if (errors->left_out > 0)
        fprintf(out, "and %zu more\n", errors->left_out);
}

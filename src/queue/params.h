/*
 * Typed parameters of a job (docs/parameters.md is the rule book; pawl.submit
 * in PL/pgSQL obeys the same one, and tests/vectors/params.json tests both).
 * What the client gave stays as it was; the effective parameters are that plus
 * defaults. Read-only after parsing: any thread.
 */
#ifndef QUEUE_PARAMS_H
#define QUEUE_PARAMS_H

#include "base/compiler.h"
#include "base/rule.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct err;
struct queue_job;

struct param {
    const char *name;
    struct rule_field field; /* title, required, confirm, fallback, rule */
};

#define PARAMS_ERRORS_MAX 32

struct params_error {
    char pointer[160]; /* JSON pointer into the body: "/params/country" */
    char detail[320];  /* what is wrong and what is allowed */
};

struct params_errors {
    size_t count;
    size_t left_out; /* found beyond PARAMS_ERRORS_MAX */
    struct params_error list[PARAMS_ERRORS_MAX];
};

enum params_outcome { PARAMS_OK, PARAMS_INVALID };

/*
 * Check given (an object, or NULL for none) and fill in the defaults.
 * PARAMS_INVALID: errors holds every field that is wrong, in the order of the
 * declared parameters, unknown ones last. *ret_effective (new reference) is
 * written only on PARAMS_OK; whole numbers of integer parameters are integers
 * in it whatever way they were written (5.0, 5e0).
 */
int params_check(const struct queue_job *job, const json_t *given,
                 json_t **ret_effective, struct params_errors *errors) must_check;

/*
 * `_next` inside the parameters is an alias of the request's next: split given
 * into the parameters without it and the list (NULL when there was none; a
 * single entry counts as a list of one). Both are new references.
 * PARAMS_INVALID when it is not a list of job names and {job, params}.
 */
int params_take_next(const json_t *given, json_t **ret_given, json_t **ret_next,
                     struct params_errors *errors) must_check;

/*
 * For the command line, where everything is text: "country=KR" pairs become
 * an object of the declared types ("5" for an integer is fine here, and a list
 * is given as a,b,c or by repeating the name). Unknown names stay text, for
 * params_check to refuse. Texts that cannot be read are PARAMS_INVALID.
 */
int params_from_strings(const struct queue_job *job, const char *const *pairs,
                        size_t count, json_t **ret_given,
                        struct params_errors *errors) must_check;

/* given without the parameters marked confirm: what a follow-up inherits. */
json_t *params_without_confirm(const struct queue_job *job, const json_t *given);

/* True if given holds a value for a parameter marked confirm. */
bool params_has_confirm(const struct queue_job *job, const json_t *given);

void params_errors_add(struct params_errors *errors, const char *pointer,
                       const char *fmt, ...) printf_like(3, 4);

/* "/params/country: ...; /params/n: ..." cut to size, for one-line messages. */
void params_errors_text(const struct params_errors *errors, char *buf, size_t size);

#endif

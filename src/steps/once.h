/* The steps that do one thing: an HTTP call, statements, a file fetched.
 * docs/collect.md */
#ifndef STEPS_ONCE_H
#define STEPS_ONCE_H

#include "steps/step.h"

int http_step_validate(const json_t *def, struct err *err) must_check;
int http_step_run(struct step_ctx *ctx, struct step_result *ret_result,
                  struct err *err) must_check;

int sql_step_validate(const json_t *def, struct err *err) must_check;
int sql_step_run(struct step_ctx *ctx, struct step_result *ret_result,
                 struct err *err) must_check;

int fetch_step_validate(const json_t *def, struct err *err) must_check;
int fetch_step_run(struct step_ctx *ctx, struct step_result *ret_result,
                   struct err *err) must_check;

/* The keys of a step's own object, besides its type's: -ERR_CONFIG for any other. */
int step_keys_check(const json_t *def, const char *const *keys, size_t count,
                    struct err *err) must_check;

/* The step is done: its only checkpoint. As ctx->checkpoint. */
int step_done(struct step_ctx *ctx, const struct step_counters *counters,
              step_apply_fn apply, void *apply_arg, struct err *err) must_check;

/* What the end of a call means for a step: 0 = go on, an enum step_outcome, or < 0. */
struct http_said;
int step_of_call(struct step_ctx *ctx, const struct http_said *said,
                 struct err *err) must_check;

#endif

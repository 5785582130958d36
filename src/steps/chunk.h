/*
 * The chunk step: read rows, write them, checkpoint; again until none are left.
 * Definition: {name, chunk?, read: {…}, write: {…}}, see io/formats.c.
 */
#ifndef STEPS_CHUNK_H
#define STEPS_CHUNK_H

#include "steps/step.h"

int chunk_step_validate(const json_t *def, struct err *err) must_check;
int chunk_step_run(struct step_ctx *ctx, struct step_result *ret_result,
                   struct err *err) must_check;

#endif

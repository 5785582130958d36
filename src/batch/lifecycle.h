/*
 * The one table of how executions and step executions may change; every update asks
 * it, docs/states.md is made from it. No state; any thread.
 */
#ifndef BATCH_LIFECYCLE_H
#define BATCH_LIFECYCLE_H

#include "batch/execution.h"

struct execution_move {
    bool entry; /* from nothing: from is not looked at */
    enum execution_state from;
    const char *event;
    enum execution_state to;
    const char *why;
};

const struct execution_move *execution_moves(size_t *ret_count);

bool execution_may_move(enum execution_state from, enum execution_state to);

#endif

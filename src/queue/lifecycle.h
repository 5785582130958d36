/*
 * The one table of how a request may change. Whoever writes an outcome asks it
 * (queue/closing.c), so a move that is not here cannot happen; docs/states.md is
 * made from it. No state; any thread.
 */
#ifndef QUEUE_LIFECYCLE_H
#define QUEUE_LIFECYCLE_H

#include "queue/request.h"

struct request_move {
    bool entry; /* from nothing: from is not looked at */
    enum request_status from;
    const char *event;
    enum request_status to;
    enum request_outcome outcome; /* NONE while to is not final */
    const char *why;
};

const struct request_move *request_moves(size_t *ret_count);

/* May a request in this state end so? */
bool request_may_end(enum request_status from, enum request_outcome outcome);

#endif

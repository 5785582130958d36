/* To add a move: a row here, and `meson compile states` writes docs/states.md anew. */
#include "batch/lifecycle.h"

#include <assert.h>
#include <string.h>

static const char *const state_names[] = {
    [EXECUTION_STARTING] = "STARTING",   [EXECUTION_STARTED] = "STARTED",
    [EXECUTION_STOPPING] = "STOPPING",   [EXECUTION_STOPPED] = "STOPPED",
    [EXECUTION_COMPLETED] = "COMPLETED", [EXECUTION_FAILED] = "FAILED",
};
static_assert_count(state_names, EXECUTION_STATE_COUNT);

/* clang-format off */
static const struct execution_move moves[] = {
    {true, 0, "create", EXECUTION_STARTING,
     "the row is there before any work, guarded by the store"},
    {false, EXECUTION_STARTING, "start", EXECUTION_STARTED,
     "the work begins"},
    {false, EXECUTION_STARTING, "fail", EXECUTION_FAILED,
     "it could not begin, or its worker died before"},
    {false, EXECUTION_STARTED, "complete", EXECUTION_COMPLETED,
     "nothing is left to do; written with the last chunk"},
    {false, EXECUTION_STARTED, "fail", EXECUTION_FAILED,
     "an error, a cancel, a timeout, or its worker is dead"},
    {false, EXECUTION_STARTED, "stop", EXECUTION_STOPPING,
     "a stop was seen; it goes on to its chunk boundary and has no end time yet"},
    {false, EXECUTION_STOPPING, "stopped", EXECUTION_STOPPED,
     "the work has really ended, at a chunk boundary"},
    {false, EXECUTION_STOPPING, "complete", EXECUTION_COMPLETED,
     "the chunk under way was the last one: finished work stays finished"},
    {false, EXECUTION_STOPPING, "fail", EXECUTION_FAILED,
     "an error on the way to the boundary, or its worker is dead"},
};
/* clang-format on */

const char *
execution_state_name(enum execution_state state)
{
    assert(state < EXECUTION_STATE_COUNT);
    return state_names[state];
}

bool
execution_state_parse(const char *text, enum execution_state *ret_state)
{
    for (size_t i = 0; text && i < array_len(state_names); i++) {
        if (strcmp(state_names[i], text) == 0) {
            *ret_state = (enum execution_state)i;
            return true;
        }
    }
    return false;
}

bool
execution_state_alive(enum execution_state state)
{
    return state == EXECUTION_STARTING || state == EXECUTION_STARTED ||
           state == EXECUTION_STOPPING;
}

const struct execution_move *
execution_moves(size_t *ret_count)
{
    *ret_count = array_len(moves);
    return moves;
}

bool
execution_may_move(enum execution_state from, enum execution_state to)
{
    for (size_t i = 0; i < array_len(moves); i++)
        if (!moves[i].entry && moves[i].from == from && moves[i].to == to)
            return true;
    return false;
}

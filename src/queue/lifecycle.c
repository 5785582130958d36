/* To add a move: a row here, and `meson compile states` writes docs/states.md anew. */
#include "queue/lifecycle.h"

/* clang-format off */
static const struct request_move moves[] = {
    {true, 0, "submit", REQUEST_QUEUED, OUTCOME_NONE,
     "the answer goes out after this commit"},
    {false, REQUEST_QUEUED, "claim", REQUEST_RUNNING, OUTCOME_NONE,
     "a worker with a free slot took it; its token fences what follows"},
    {false, REQUEST_QUEUED, "cancel", REQUEST_FAILED, OUTCOME_CANCELLED,
     "nobody had begun, so it ends at once"},
    {false, REQUEST_QUEUED, "expire", REQUEST_FAILED, OUTCOME_EXPIRED,
     "nobody claimed it before its expiresAt"},
    {false, REQUEST_QUEUED, "refuse", REQUEST_FAILED, OUTCOME_REFUSED,
     "what it waits for did not complete, or its job's key was taken meanwhile"},
    {false, REQUEST_RUNNING, "finish", REQUEST_DONE, OUTCOME_COMPLETED,
     "all its work is done; only this releases what is next"},
    {false, REQUEST_RUNNING, "stop", REQUEST_DONE, OUTCOME_STOPPED,
     "drain, budget or operator: asking again goes on after the last commit"},
    {false, REQUEST_RUNNING, "fail", REQUEST_FAILED, OUTCOME_ERROR,
     "the work failed; the detail says the cause"},
    {false, REQUEST_RUNNING, "cancel", REQUEST_FAILED, OUTCOME_CANCELLED,
     "the run saw the flag and stopped"},
    {false, REQUEST_RUNNING, "timeout", REQUEST_FAILED, OUTCOME_TIMEOUT,
     "longer than the job's timeout, counted from the claim"},
    {false, REQUEST_RUNNING, "lose", REQUEST_FAILED, OUTCOME_WORKER_LOST,
     "its worker is dead"},
    {false, REQUEST_RUNNING, "refuse", REQUEST_FAILED, OUTCOME_REFUSED,
     "it could not start: definition withdrawn, or start race lost for good"},
};
/* clang-format on */

const struct request_move *
request_moves(size_t *ret_count)
{
    *ret_count = array_len(moves);
    return moves;
}

bool
request_may_end(enum request_status from, enum request_outcome outcome)
{
    if (outcome == OUTCOME_NONE)
        return false;
    for (size_t i = 0; i < array_len(moves); i++)
        if (!moves[i].entry && moves[i].from == from && moves[i].outcome == outcome)
            return true;
    return false;
}

/*
 * Hands: requests that help a running one with the partitions of a step. They are
 * claimed like any other by whoever has a free slot, bear no key of the duplicates
 * rule, are tried once, and nothing follows them. When the run that they help ends they
 * are told to end, or taken back if nobody has claimed them yet. Any thread.
 */
#ifndef QUEUE_HAND_H
#define QUEUE_HAND_H

#include "queue/request.h"

struct arena;
struct db;
struct err;
struct queue_job;
struct store;

#define QUEUE_HANDS_MAX 63

struct hand_order {
    const struct queue_job *job;
    const struct request *parent; /* its lane, priority, parameters */
    int64_t parent_token;
    int64_t execution_id; /* of the parent */
    const char *step;
    size_t count; /* at most QUEUE_HANDS_MAX */
};

/* In a write transaction that holds the parent's claim; wake WAKE_READY after it. Once
 * for a claim and step: made again (the answer to the first was lost) it does nothing.
 */
int queue_hands_enter(struct db *db, const struct hand_order *order,
                      struct err *err) must_check;

struct hand {
    int64_t parent_id;
    struct claim_token parent_token;
    int64_t execution_id;
    const char *step;
};

/* 1; 0: its parent's claim is gone, or it is no hand. Texts in the arena. */
int queue_hand_get(struct store *store, int64_t request_id, struct arena *arena,
                   struct hand *ret_hand, struct err *err) must_check;

/* Ask the hands of a request that run to stop or cancel; in a write transaction. */
int queue_hands_ask_in(struct db *db, int64_t parent_id, bool cancel, const char *actor,
                       struct err *err) must_check;

/* The parent wants no more of them: those that run are told to stop, and those that
 * nobody has claimed end CANCELLED. _in: in a write transaction. */
int queue_hands_end_in(struct db *db, int64_t parent_id, struct err *err) must_check;
int queue_hands_end(struct store *store, int64_t parent_id, struct err *err) must_check;

#endif

/*
 * Inside queue/: the parts of a submit. submit.c leads; submit_keys.c says whose
 * orders are answered by another request; submit_rows.c writes what is new.
 */
#ifndef QUEUE_SUBMIT_ROWS_H
#define QUEUE_SUBMIT_ROWS_H

#include "base/arena.h"
#include "queue/submit.h"

/* What becomes of one order. */
struct draft {
    const struct submit_order *order;
    size_t at;       /* among the orders */
    int64_t id;      /* drawn for it; unused when it is answered by another */
    const char *key; /* of the duplicates rule; NULL = allow */
    int64_t not_before_us;
    int64_t expires_at_us;
    const char *reason; /* why it is not ready: "key", "after"; NULL: not_before only */
    int64_t *waits;     /* requests that it still waits for */
    size_t n_waits;
    bool settled; /* its answer is written */
    bool is_new;
};

struct submission {
    struct db *db;
    const struct submit_order *orders;
    size_t count;
    struct submit_answer *answers;
    struct draft *drafts; /* ids ascending */
    size_t n_keys;
    bool has_keys; /* of the duplicates rule, idempotency keys, or after */
    int64_t now_us;
    size_t refused; /* the order at fault; count = none */
    struct arena arena;
};

/* Who takes a request at once instead of queueing it; token.number is filled. */
struct submit_claimer {
    const char *worker;
    struct claim_token token;
};

/* The answer of the draft's order; lane NULL = the one it asked for. */
void submit_settle(struct submission *sub, struct draft *draft, int64_t request_id,
                   enum submit_how how, const char *lane);

/* Each stops at the first refusal, with sub->refused. PostgreSQL: lock before take. */
int submit_take_idem(struct submission *sub, struct err *err) must_check;
int submit_lock_keys(struct submission *sub, struct err *err) must_check;
int submit_take_keys(struct submission *sub, struct err *err) must_check;

/* What `after` says: held, and noted in drafts; later the rows of it. */
int submit_settle_after(struct submission *sub, struct err *err) must_check;
int submit_write_waits(struct submission *sub, struct err *err) must_check;

/* Ids for all drafts, and the store's time. */
int submit_draw_ids(struct submission *sub, struct err *err) must_check;

/* The key of the duplicates rule; NULL = allow. */
const char *submit_key_of(struct arena *arena, const struct submit_order *order);

/* That of `refuse`: one request of the job at a time. */
const char *queue_refuse_key(struct arena *arena, const char *job);

/* Those drafts that are new. claimer NULL: into ready or later. */
int submit_write_rows(struct submission *sub, struct submit_claimer *claimer,
                      struct err *err) must_check;

#endif

/*
 * Who is answered with another's request, and who is refused: first the idempotency
 * keys, then the keys of the duplicates rule. In both the insert of a row decides;
 * nobody looks before leaping.
 */
#include "queue/submit_rows.h"

#include "base/err.h"
#include "base/json.h"
#include "base/plant.h"
#include "base/strs.h"
#include "queue/job.h"
#include "queue/params.h"
#include "queue/spans.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>

#define KEY_ROUNDS 8

/* --- idempotency keys --- */

static const char *
subject_of(const struct submit_order *order)
{
    return order->subject ? order->subject : order->requester;
}

void
submit_settle(struct submission *sub, struct draft *draft, int64_t request_id,
              enum submit_how how, const char *lane)
{
    struct submit_answer *answer = &sub->answers[draft->at];

    draft->settled = true;
    *answer = (struct submit_answer){
        .request_id = request_id, .how = how, .reused = how != SUBMIT_NEW};
    str_copy(answer->lane, sizeof(answer->lane), lane ? lane : draft->order->lane);
}

/* For the planted fault: who looks before inserting has not seen the other. */
static int
idem_look(struct submission *sub, const struct submit_order *order, bool *ret_seen,
          struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    int r = db_ask(sub->db, store_sql(sub->db, STMT_QUEUE_IDEM_GET), &rows, err,
                   p_text(subject_of(order)), p_text(order->job->name),
                   p_text(order->idempotency_key));

    if (r == 0)
        r = db_next(&rows, err);
    *ret_seen = r > 0;
    return r < 0 ? r : 0;
}

static int
idem_first(struct submission *sub, const struct draft *draft, bool *ret_first,
           struct err *err)
{
    const struct submit_order *order = draft->order;
    const struct db_value params[] = {
        p_text(subject_of(order)), p_text(order->job->name),
        p_text(order->idempotency_key), p_text(order->body_digest), p_i64(draft->id)};
    int64_t id;
    bool seen = true;
    int r = 0;

    if (planted("look_then_insert"))
        r = idem_look(sub, order, &seen, err);
    if (r == 0)
        r = db_query_i64(sub->db, store_sql(sub->db, STMT_QUEUE_IDEM_TAKE), params,
                         array_len(params), &id, err);
    if (r >= 0)
        *ret_first = r > 0 || !seen;
    return r < 0 ? r : 0;
}

static int
idem_replay(struct submission *sub, struct draft *draft, struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    const struct submit_order *order = draft->order;
    int r;

    r = db_ask(sub->db, store_sql(sub->db, STMT_QUEUE_IDEM_GET), &rows, err,
               p_text(subject_of(order)), p_text(order->job->name),
               p_text(order->idempotency_key));
    if (r == 0)
        r = db_next(&rows, err);
    if (r < 0)
        return r;
    if (r == 0) /* swept away this very moment */
        return err_set(err, ERR_DB_CONFLICT, "idempotency key: changed meanwhile");
    if (!str_eq(db_text(&rows, 0), order->body_digest))
        return err_set(err, ERR_IDEMPOTENCY_MISMATCH,
                       "Idempotency-Key %.80s was used for job %s with another body "
                       "within the last 24 hours; give each request a key of its own",
                       order->idempotency_key, order->job->name);
    submit_settle(sub, draft, db_i64(&rows, 1), SUBMIT_REPLAYED,
                  db_is_null(&rows, 2) ? NULL : db_text(&rows, 2));
    return 0;
}

int
submit_take_idem(struct submission *sub, struct err *err)
{
    for (size_t i = 0; i < sub->count; i++) {
        struct draft *draft = &sub->drafts[i];
        bool first = true;
        int r;

        if (!draft->order->idempotency_key)
            continue;
        sub->refused = i;
        r = idem_first(sub, draft, &first, err);
        if (r == 0 && !first)
            r = idem_replay(sub, draft, err);
        if (r < 0)
            return r;
    }
    sub->refused = sub->count;
    return 0;
}

/* --- keys of the duplicates rule --- */

static int
by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int
submit_lock_keys(struct submission *sub, struct err *err)
{
    const char **keys = arena_array(&sub->arena, const char *, sub->n_keys + 1);
    size_t n = 0;

    for (size_t i = 0; i < sub->count; i++)
        if (sub->drafts[i].key && !sub->drafts[i].settled)
            keys[n++] = sub->drafts[i].key;
    if (n == 0)
        return 0;
    qsort(keys, n, sizeof(*keys), by_text);
    return db_run(sub->db, store_sql(sub->db, STMT_QUEUE_LOCK_KEYS), err,
                  p_text_array(keys, n));
}

struct holder {
    int64_t request_id;
    char lane[QUEUE_NAME_MAX + 1];
    int64_t created_at_us;
    bool queued;
    bool is_followup;
    const char *given;
};

/* 1 somebody has the key, 0 it is free again. */
static int
read_holder(struct submission *sub, const char *key, struct holder *ret,
            struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    int r;

    r = db_ask(sub->db, store_sql(sub->db, STMT_QUEUE_ACTIVE_GET), &rows, err,
               p_text(key));
    if (r == 0)
        r = db_next(&rows, err);
    if (r <= 0)
        return r;
    ret->request_id = db_i64(&rows, 0);
    str_copy(ret->lane, sizeof(ret->lane),
             db_is_null(&rows, 1) ? "" : db_text(&rows, 1));
    ret->created_at_us = db_i64(&rows, 2);
    ret->queued = db_i64(&rows, 3) != 0;
    ret->is_followup = !db_is_null(&rows, 4);
    ret->given = ret->is_followup ? arena_strdup(&sub->arena, db_text(&rows, 5)) : NULL;
    return 1;
}

/* Another order of this same call, not written yet? */
static const struct draft *
own_draft(const struct submission *sub, int64_t request_id)
{
    for (size_t i = 0; i < sub->count; i++)
        if (sub->drafts[i].id == request_id)
            return &sub->drafts[i];
    return NULL;
}

static int
refuse(const struct draft *draft, const struct holder *holder, bool own,
       struct err *err)
{
    const char *job = draft->order->job->name;

    if (own)
        return err_set(err, ERR_JOB_ALREADY_RUNNING,
                       "job %s is asked for twice in one call, and allows one request "
                       "at a time (duplicates: refuse)",
                       job);
    err_set(err, ERR_JOB_ALREADY_RUNNING,
            "job %s has request %lld, which is not final yet; wait for it, or cancel "
            "it, then ask again",
            job, (long long)holder->request_id);
    snprintf(err->detail, sizeof(err->detail), "%lld", (long long)holder->request_id);
    return -(int)err->code;
}

/* --- meeting the next try of a failure --- */

static bool
by_person(const struct submit_order *order)
{
    return order->source == SOURCE_API || order->source == SOURCE_CLI ||
           order->source == SOURCE_SQL;
}

/* Would the order go on with the work of that next try? It must not ask for a new
 * instance, nor confirm anything, and each parameter that it gives must be the same. */
static bool
would_resume(const struct submit_order *order, const struct holder *holder)
{
    scoped(json_drop) json_t *theirs_given = NULL;
    scoped(json_drop) json_t *theirs = NULL;
    scoped(json_drop) json_t *given = NULL;
    scoped(json_drop) json_t *ours = NULL;
    struct params_errors errors;
    struct err unread = {0};
    const char *name;
    json_t *value;

    if (order->restart == 0 || order->n_after > 0)
        return false;
    if (json_parse(holder->given, strlen(holder->given), JSON_DEPTH_MAX, &theirs_given,
                   &unread) < 0 ||
        params_check(order->job, theirs_given, &theirs, &errors) != PARAMS_OK)
        return false;
    if (order->given && json_parse(order->given, strlen(order->given), JSON_DEPTH_MAX,
                                   &given, &unread) < 0)
        return false;
    if (params_has_confirm(order->job, given) ||
        params_check(order->job, given, &ours, &errors) != PARAMS_OK)
        return false;
    json_object_foreach(given, name, value)
    {
        if (!json_equal(json_object_get(ours, name), json_object_get(theirs, name)))
            return false;
    }
    return true;
}

/* Who asks for it wants it now. */
static int
lift(struct submission *sub, const struct submit_order *order,
     const struct holder *holder, struct err *err)
{
    if (!holder->is_followup || !by_person(order) || order->not_before_us > sub->now_us)
        return 0;
    return queue_later_lift(sub->db, holder->request_id, err);
}

/* 1 settled or ours, 0 changed meanwhile: try again. */
static int
reuse(struct submission *sub, struct draft *draft, const struct holder *holder,
      const struct draft *own, struct err *err)
{
    const struct submit_order *order = draft->order;
    int64_t age_us = sub->now_us - holder->created_at_us;
    const struct db_value move[] = {p_i64(draft->id), p_text(draft->key),
                                    p_i64(holder->request_id)};
    bool young = order->job->duplicates == QUEUE_DUPLICATES_REFUSE ||
                 age_us < order->job->reuse_window_us;
    int64_t id;
    int r;

    if (!own && !(holder->queued && young))
        return db_query_i64(sub->db, store_sql(sub->db, STMT_QUEUE_ACTIVE_MOVE), move,
                            array_len(move), &id, err);
    submit_settle(sub, draft, holder->request_id, SUBMIT_REUSED,
                  own ? own->order->lane : holder->lane);
    r = own ? 0 : lift(sub, order, holder, err);
    if (r < 0 || !order->idempotency_key)
        return r < 0 ? r : 1;
    r = db_run(sub->db, store_sql(sub->db, STMT_QUEUE_IDEM_POINT), err,
               p_i64(holder->request_id), p_text(subject_of(order)),
               p_text(order->job->name), p_text(order->idempotency_key));
    return r < 0 ? r : 1;
}

static int
take_key(struct submission *sub, struct draft *draft, struct err *err)
{
    const struct db_value take[] = {p_text(draft->key), p_i64(draft->id)};

    for (int i = 0; i < KEY_ROUNDS; i++) {
        const struct draft *own;
        struct holder holder;
        int64_t id;
        int r;

        r = db_query_i64(sub->db, store_sql(sub->db, STMT_QUEUE_ACTIVE_TAKE), take,
                         array_len(take), &id, err);
        if (r != 0)
            return r < 0 ? r : 0;
        r = read_holder(sub, draft->key, &holder, err);
        if (r < 0)
            return r;
        if (r == 0)
            continue;
        own = own_draft(sub, holder.request_id);
        if (draft->order->job->duplicates == QUEUE_DUPLICATES_REFUSE &&
            !(holder.queued && holder.is_followup && by_person(draft->order) &&
              would_resume(draft->order, &holder)))
            return refuse(draft, &holder, own != NULL, err);
        r = reuse(sub, draft, &holder, own, err);
        if (r != 0)
            return r < 0 ? r : 0;
    }
    return err_set(err, ERR_JOB_BEING_SUBMITTED,
                   "job %s is being submitted by others all the time; try again after "
                   "a second",
                   draft->order->job->name);
}

/* A replay of an order of this same call was answered with that order's id before the
 * duplicates rule had its say: it follows where that order went. */
static void
follow_replays(struct submission *sub)
{
    for (size_t i = 0; i < sub->count; i++) {
        struct submit_answer *answer = &sub->answers[i];
        const struct draft *own;

        if (!sub->drafts[i].settled || answer->how != SUBMIT_REPLAYED)
            continue;
        own = own_draft(sub, answer->request_id);
        if (!own || !own->settled)
            continue;
        answer->request_id = sub->answers[own->at].request_id;
        str_copy(answer->lane, sizeof(answer->lane), sub->answers[own->at].lane);
    }
}

int
submit_take_keys(struct submission *sub, struct err *err)
{
    for (size_t i = 0; i < sub->count; i++) {
        struct draft *draft = &sub->drafts[i];
        int r;

        if (draft->settled || !draft->key)
            continue;
        sub->refused = i;
        r = take_key(sub, draft, err);
        if (r < 0)
            return r;
    }
    sub->refused = sub->count;
    follow_replays(sub);
    return 0;
}

/*
 * What may follow a batch of final requests. Finishing is the hot path, so one question
 * brings all facts, and a request that nothing follows costs nothing more.
 */
#include "queue/follow.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/strs.h"
#include "queue/job.h"
#include "queue/read.h"
#include "store/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define JSON_MAX (8 << 20)

enum kind { KIND_NEXT = 1, KIND_WAIT = 2, KIND_FLAG = 3, KIND_JOB = 4 };
enum { FLAG_STOP = 1, FLAG_CANCEL = 2 };
enum { JOB_WITHDRAWN = 1, JOB_WEBHOOK = 2 };

void
follow_release(struct follow *follow)
{
    for (size_t i = 0; i < follow->n_jobs; i++)
        queue_job_free(follow->jobs[i].job);
    arena_release(&follow->arena);
    *follow = (struct follow){0};
}

/* Room for one more; the old block stays in the arena. */
static void *
grow(struct arena *arena, void *list, size_t count, size_t *room, size_t size)
{
    size_t more = *room > 0 ? 2 * *room : 16;
    void *bigger;

    if (count < *room)
        return list;
    bigger = arena_alloc_array(arena, size, more);
    if (count > 0)
        memcpy(bigger, list, count * size);
    *room = more;
    return bigger;
}

static int
by_id(const void *a, const void *b)
{
    int64_t x = ((const struct follow_fact *)a)->id;
    int64_t y = ((const struct follow_fact *)b)->id;

    return x < y ? -1 : x > y;
}

struct follow_fact *
follow_fact(const struct follow *follow, int64_t id)
{
    const struct follow_fact key = {.id = id};

    return (struct follow_fact *)bsearch(&key, follow->facts, follow->count,
                                         sizeof(*follow->facts), by_id);
}

/* --- definitions --- */

static struct follow_job *
find_job(const struct follow *follow, const char *name)
{
    for (size_t i = 0; i < follow->n_jobs; i++)
        if (str_eq(follow->jobs[i].name, name))
            return &follow->jobs[i];
    return NULL;
}

/* A definition that this version cannot read gives no policy; that is no reason to
 * leave an outcome unwritten. */
static struct follow_job *
add_job(struct follow *follow, const char *name, const char *definition)
{
    struct follow_job *job = find_job(follow, name);
    struct err unread = {0};

    if (job)
        return job;
    follow->jobs =
        (struct follow_job *)grow(&follow->arena, follow->jobs, follow->n_jobs,
                                  &follow->room_jobs, sizeof(*follow->jobs));
    job = &follow->jobs[follow->n_jobs++];
    *job = (struct follow_job){.name = arena_strdup(&follow->arena, name)};
    if (definition && queue_job_parse(definition, &job->job, &unread) < 0)
        job->job = NULL;
    return job;
}

const struct queue_job *
follow_known_job(const struct follow *follow, const char *name)
{
    const struct follow_job *job = name ? find_job(follow, name) : NULL;

    return job ? job->job : NULL;
}

int
follow_job(struct db *db, struct follow *follow, const char *name,
           const struct queue_job **ret_job, struct err *err)
{
    const struct follow_job *known = find_job(follow, name);
    scoped(db_rows_end) struct db_rows rows = {0};
    int r;

    if (!known) {
        r = db_ask(db, store_sql(db, STMT_CHAIN_DEFINITION), &rows, err, p_text(name));
        if (r == 0)
            r = db_next(&rows, err);
        if (r < 0)
            return r;
        known = add_job(follow, name, r > 0 ? db_text(&rows, 0) : NULL);
    }
    *ret_job = known->job;
    return 0;
}

/* --- the look --- */

static bool
may_be_retried(enum request_outcome outcome)
{
    return outcome == OUTCOME_ERROR || outcome == OUTCOME_TIMEOUT ||
           outcome == OUTCOME_WORKER_LOST || outcome == OUTCOME_STOPPED;
}

/* The different jobs among those that ended so. */
size_t
follow_jobs(const struct follow *follow, bool done, const char **ret_names)
{
    size_t n = 0;

    for (size_t i = 0; i < follow->count; i++) {
        const struct closing *closing = &follow->closings[i];
        bool known = false;

        if (!closing->job || (done ? closing->outcome != OUTCOME_COMPLETED
                                   : !may_be_retried(closing->outcome)))
            continue;
        for (size_t k = n; k > 0 && !known; k--)
            known = str_eq(ret_names[k - 1], closing->job);
        if (!known)
            ret_names[n++] = closing->job;
    }
    return n;
}

bool
follow_may_be_told(const struct follow *follow, const struct closing *closing)
{
    const struct follow_job *job;

    if (!closing->job ||
        (closing->outcome != OUTCOME_COMPLETED && !may_be_retried(closing->outcome)))
        return true;
    job = find_job(follow, closing->job);
    return job && job->webhook;
}

void
follow_add_wait(struct follow *follow, int64_t after_id, int64_t request_id)
{
    follow->waits =
        (struct follow_wait *)grow(&follow->arena, follow->waits, follow->n_waits,
                                   &follow->room_waits, sizeof(*follow->waits));
    follow->waits[follow->n_waits++] =
        (struct follow_wait){.request_id = request_id, .after_id = after_id};
}

static void
add_row(struct follow *follow, const struct db_rows *rows)
{
    struct follow_fact *fact = follow_fact(follow, db_i64(rows, 1));
    enum kind kind = (enum kind)db_i64(rows, 0);

    switch (kind) {
    case KIND_NEXT:
        if (fact) {
            fact->next = queue_read_text(rows, 3, &follow->arena);
            fact->backfill = db_i64(rows, 2) != 0;
        }
        break;
    case KIND_WAIT:
        follow_add_wait(follow, db_i64(rows, 1), db_i64(rows, 2));
        break;
    case KIND_FLAG:
        if (fact) {
            fact->stop_asked = db_i64(rows, 2) & FLAG_STOP;
            fact->cancel_asked = db_i64(rows, 2) & FLAG_CANCEL;
        }
        break;
    case KIND_JOB:
        /* One that was withdrawn is not asked for again, but what it did is told. */
        add_job(follow, db_text(rows, 4),
                db_i64(rows, 2) & JOB_WITHDRAWN ? NULL : db_text(rows, 3))
            ->webhook = db_i64(rows, 2) & JOB_WEBHOOK;
        break;
    }
}

int
follow_read(struct follow *follow, struct db_rows *rows, struct err *err)
{
    int r;

    while ((r = db_next(rows, err)) > 0)
        add_row(follow, rows);
    return r;
}

void
follow_begin(struct follow *follow, const struct closing *closings, size_t count)
{
    follow->closings = closings;
    follow->count = count;
    follow->facts = arena_array(&follow->arena, struct follow_fact, count);
    for (size_t i = 0; i < count; i++) {
        follow->facts[i] =
            (struct follow_fact){.id = closings[i].id, .closing = &closings[i]};
        if (closings[i].finished_at_us > follow->now_us)
            follow->now_us = closings[i].finished_at_us;
    }
    qsort(follow->facts, count, sizeof(*follow->facts), by_id);
}

int
follow_look(struct db *db, struct follow *follow, struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    struct arena *arena = &follow->arena;
    int64_t *ids = arena_array(arena, int64_t, follow->count);
    const char **done = arena_array(arena, const char *, follow->count);
    const char **failed = arena_array(arena, const char *, follow->count);
    int r;

    for (size_t i = 0; i < follow->count; i++)
        ids[i] = follow->facts[i].id;
    r = db_ask(db, store_sql(db, STMT_CHAIN_LOOK), &rows, err,
               p_i64_array(ids, follow->count),
               p_text_array(done, follow_jobs(follow, true, done)),
               p_text_array(failed, follow_jobs(follow, false, failed)));
    return r < 0 ? r : follow_read(follow, &rows, err);
}

/* --- for followup.c, chain.c, wait.c --- */

int
follow_requests(struct db *db, struct follow *follow, const int64_t *ids, size_t count,
                struct request **ret_requests, size_t *ret_count, struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    struct request *requests = arena_array(&follow->arena, struct request, count);
    size_t n = 0;
    int r;

    r = db_ask(db, store_sql(db, STMT_CHAIN_REQUESTS), &rows, err,
               p_i64_array(ids, count));
    if (r < 0)
        return r;
    while ((r = db_next(&rows, err)) > 0 && n < count)
        queue_read_request(&rows, &follow->arena, &requests[n++]);
    if (r < 0)
        return r;
    *ret_requests = requests;
    *ret_count = n;
    return 0;
}

int
follow_drop(struct db *db, struct follow *follow, int64_t request_id, const char *act,
            const char *why, struct err *err)
{
    return store_audit(db, "pawl", act,
                       arena_printf(&follow->arena, "request %" PRId64, request_id),
                       why, err);
}

const char *
follow_json(struct arena *arena, const json_t *json)
{
    scoped(buf_release) struct buf buf = {0};
    struct json_out out;

    buf_init(&buf, JSON_MAX);
    json_out_init(&out, &buf);
    json_put_value(&out, json);
    return buf.overflow ? NULL : arena_strndup(arena, buf_str(&buf), buf.len);
}

const char *
follow_canonical(struct arena *arena, const json_t *effective)
{
    scoped(buf_release) struct buf buf = {0};
    struct err none = {0};

    buf_init(&buf, JSON_MAX);
    if (json_canonical(effective, &buf, &none) < 0)
        return NULL;
    return arena_strndup(arena, buf_str(&buf), buf.len);
}

#include "service/intake.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/strs.h"
#include "base/sha256.h"
#include "db/db.h"
#include "io/formats.h"
#include "io/io_ctx.h"
#include "io/row.h"
#include "queue/job.h"
#include "service/estimates.h"

#include <string.h>

#define CANONICAL_MAX (1 << 20)

/* --- estimate --- */

static int
estimate_database(struct io_ctx *io, const char *name, enum io_db_use use,
                  struct db **ret_db, struct err *err)
{
    (void)name;
    (void)use;
    (void)err;
    *ret_db = io->owner;
    return 0;
}

static int
read_estimate(struct reader *reader, int64_t *ret_rows, struct err *err)
{
    scoped(row_set_release) struct row_set rows = {0};
    const struct cell *cell;
    int r = reader_open(reader, NULL, err);

    if (r < 0)
        return r;
    row_set_init(&rows, 0);
    r = reader_read_chunk(reader, 1, &rows, err);
    if (r < 0)
        return r;
    cell = rows.count == 1 && rows.width >= 1 ? row_set_row(&rows, 0) : NULL;
    if (!cell || cell->type != CELL_INT)
        return err_set(err, ERR_CONFIG,
                       "its SQL must give one row with one whole number, such as "
                       "count(*)");
    *ret_rows = cell->i;
    return 0;
}

static int
ask_estimate(struct db *db, const struct queue_job *job, const json_t *effective,
             int64_t *ret_rows, struct err *err)
{
    scoped(arena_release) struct arena arena = {0};
    scoped(json_drop) json_t *def = json_pack("{s:s, s:s}", "sql", job->estimate_sql,
                                              "database", job->estimate_database);
    struct io_ctx io = {.owner = db,
                        .database = estimate_database,
                        .params = effective,
                        .arena = &arena};
    scoped(reader_freep) struct reader *reader = NULL;
    const struct reader_kind *kind = NULL;
    int r;

    r = format_choose_reader(def, &kind, err);
    if (r == 0)
        r = kind->new_reader(&io, def, &reader, err);
    return r < 0 ? r : read_estimate(reader, ret_rows, err);
}

int
intake_estimate(struct estimates *estimates, const struct queue_job *job,
                const json_t *effective, int64_t *ret_rows, struct err *err)
{
    struct db *db = NULL;
    int r;

    r = estimates_get(estimates, job->estimate_database, job->estimate_timeout_us, &db,
                      err);
    if (r == 0) {
        r = ask_estimate(db, job, effective, ret_rows, err);
        estimates_put(estimates, job->estimate_database, job->estimate_timeout_us, db);
    }
    if (r == -ERR_TIMEOUT || r == -ERR_STORE_BUSY) {
        err_clear(err);
        *ret_rows = -1;
        return 0;
    }
    if (r == -ERR_DB || r == -ERR_DB_CONSTRAINT || r == -ERR_CONFIG) {
        err->code = ERR_ESTIMATE; /* the statement's fault, not that of what it met */
        str_copy(err->detail, sizeof(err->detail), job->name);
    }
    return r < 0 ? err_prefix(err, "estimate of job %s", job->name) : 0;
}

/* --- order --- */

static void
check_values(const struct intake *intake, struct params_errors *errors)
{
    if (intake->has_priority && (intake->priority < QUEUE_PRIORITY_MIN ||
                                 intake->priority > QUEUE_PRIORITY_MAX))
        params_errors_add(errors, "/priority", "must be a whole number from %d to %d",
                          QUEUE_PRIORITY_MIN, QUEUE_PRIORITY_MAX);
    if (intake->has_max_calls && intake->max_calls < 0)
        params_errors_add(errors, "/maxCalls", "must be 0 or more");
    if (intake->expires_at_us && intake->not_before_us >= intake->expires_at_us)
        params_errors_add(errors, "/expiresAt", "must be later than notBefore");
}

static const char *
json_text(struct arena *arena, const json_t *json)
{
    scoped(buf_release) struct buf buf = {0};
    struct json_out out;

    buf_init(&buf, 4 * CANONICAL_MAX);
    json_out_init(&out, &buf);
    json_put_value(&out, json);
    return arena_strndup(arena, buf_str(&buf), buf.len);
}

/* The lane by size: from the job's limit on it is `large`; an estimate that gave no
 * answer in time decides nothing about the size, for which the job names a lane. */
static int
route(struct estimates *estimates, const struct intake *intake, const json_t *effective,
      struct submit_order *order, struct err *err)
{
    const struct queue_job *job = intake->job;
    int64_t rows = -1;
    int r;

    order->lane = job->lane;
    order->estimate = -1;
    if (!job->estimate_sql)
        return 0;
    r = intake_estimate(estimates, job, effective, &rows, err);
    if (r < 0)
        return r;
    order->has_estimate = rows >= 0;
    order->estimate = rows;
    if (rows < 0)
        order->lane = job->estimate_otherwise;
    else if (job->large_over >= 0 && rows >= job->large_over)
        order->lane = "large";
    return 0;
}

int
intake_order(struct estimates *estimates, const struct intake *intake,
             struct arena *arena, struct submit_order *ret_order,
             struct params_errors *ret_errors, struct err *err)
{
    scoped(buf_release) struct buf canonical = {0};
    scoped(json_drop) json_t *effective = NULL;
    scoped(json_drop) json_t *given = NULL;
    scoped(json_drop) json_t *next = NULL;
    struct submit_order order = {0};
    int r = PARAMS_INVALID;

    /* These two begin the list of errors anew, so what is not theirs comes after. */
    if (params_take_next(intake->params, &given, &next, ret_errors) == PARAMS_OK)
        r = params_check(intake->job, given, &effective, ret_errors);
    check_values(intake, ret_errors);
    if (r != PARAMS_OK || ret_errors->count)
        return INTAKE_INVALID;

    buf_init(&canonical, CANONICAL_MAX);
    r = json_canonical(effective, &canonical, err);
    if (r == 0)
        r = route(estimates, intake, effective, &order, err);
    if (r < 0)
        return r;

    order.job = intake->job;
    order.given = json_text(arena, given);
    order.canonical = arena_strndup(arena, buf_str(&canonical), canonical.len);
    order.requester = intake->requester;
    order.subject = intake->subject;
    order.source = intake->source;
    order.priority =
        intake->has_priority ? (int)intake->priority : intake->job->priority;
    order.not_before_us = intake->not_before_us;
    order.expires_at_us = intake->expires_at_us;
    if (intake->next || next)
        order.next = json_text(arena, intake->next ? intake->next : next);
    order.after = intake->after;
    order.n_after = intake->n_after;
    order.restart = intake->restart;
    order.has_max_calls = intake->has_max_calls;
    order.max_calls = intake->max_calls;
    order.idempotency_key = intake->idempotency_key;
    order.body_digest = intake->body_digest;
    *ret_order = order;
    return INTAKE_OK;
}

const char *
intake_digest(const json_t *body, struct arena *arena)
{
    const char *text = json_text(arena, body);
    char *hex = arena_alloc(arena, SHA256_HEX_SIZE);

    sha256_hex(text, strlen(text), hex);
    return hex;
}

/*
 * Definitions. What a file may replace is decided in the statement itself
 * (queue_definition_put), so two processes that publish at once cannot roll each other
 * back.
 */
#include "queue/definition.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/strs.h"
#include "queue/read.h"
#include "store/store.h"
#include "store/wake.h"

#define GROW 64

/* --- publish --- */

struct publish {
    struct store *store;
    const struct job_definition *definitions;
    size_t count;
    int64_t version;
    struct publish_counts counts;
};

static int
put(struct db *db, const struct publish *publish, const struct job_definition *job,
    struct publish_counts *counts, struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    const struct db_value params[] = {p_text(job->name), p_i64(publish->version),
                                      p_text(job->hash), p_text(job->definition)};
    int64_t version;
    int r;

    r = db_query_i64(db, store_sql(db, STMT_QUEUE_DEFINITION_PUT), params,
                     array_len(params), &version, err);
    if (r != 0) {
        counts->published += r > 0;
        return r < 0 ? r : 0;
    }
    r = db_ask(db, store_sql(db, STMT_QUEUE_DEFINITION_HASH), &rows, err,
               p_text(job->name));
    if (r == 0)
        r = db_next(&rows, err);
    if (r < 0)
        return r;
    if (r > 0 && str_eq(db_text(&rows, 0), job->hash))
        counts->unchanged++;
    else
        counts->kept++;
    return 0;
}

/* Most starts change nothing, and then lock nothing: several processes start at once.
 */
static int
look_up_standing(struct db *db, const struct publish *publish, bool *standing,
                 struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    int r = db_ask(db, store_sql(db, STMT_QUEUE_DEFINITION_STAND), &rows, err);

    if (r < 0)
        return r;
    while ((r = db_next(&rows, err)) > 0) {
        for (size_t i = 0; i < publish->count; i++)
            if (str_eq(publish->definitions[i].name, db_text(&rows, 0)))
                standing[i] = db_i64(&rows, 1) >= publish->version &&
                              str_eq(publish->definitions[i].hash, db_text(&rows, 2));
    }
    return r;
}

static int
publish_fn(struct db *db, void *arg, struct err *err)
{
    struct publish *publish = (struct publish *)arg;
    scoped(arena_release) struct arena arena = {0};
    const char **names = arena_array(&arena, const char *, publish->count + 1);
    bool *standing = arena_array(&arena, bool, publish->count + 1);
    /* The owner of an SQLite store is alone: what its file leaves out is gone. */
    bool alone = db_kind(db) == DB_SQLITE;
    int r = look_up_standing(db, publish, standing, err);

    publish->counts = (struct publish_counts){0};
    for (size_t i = 0; i < publish->count && r == 0; i++) {
        names[i] = publish->definitions[i].name;
        publish->counts.unchanged += standing[i];
        if (!standing[i])
            r = put(db, publish, &publish->definitions[i], &publish->counts, err);
    }
    if (r == 0)
        r = db_run(db, store_sql(db, STMT_QUEUE_DEFINITION_WITHDRAW), err,
                   p_i64(publish->version), p_text_array(names, publish->count),
                   p_i64(alone));
    if (r == 0)
        publish->counts.withdrawn = (int)db_changes(db);
    if (r == 0 && (publish->counts.published || publish->counts.withdrawn))
        r = store_wake_in(publish->store, db, WAKE_DEFS, err);
    return r;
}

int
queue_publish(struct store *store, const struct job_definition *definitions,
              size_t count, int64_t version, struct publish_counts *ret_counts,
              struct err *err)
{
    struct publish publish = {
        .store = store, .definitions = definitions, .count = count, .version = version};
    int r = store_write(store, STORE_NORMAL, publish_fn, &publish, err);

    if (r < 0)
        return r;
    *ret_counts = publish.counts;
    if (publish.counts.published || publish.counts.withdrawn)
        store_wake(store, WAKE_DEFS);
    return 0;
}

/* --- read --- */

/* Room for one more element; the old block stays in the arena. */
static void *
grow(struct arena *arena, void *list, size_t count, size_t size)
{
    void *bigger;

    if (count % GROW != 0)
        return list;
    bigger = arena_alloc_array(arena, size, count + GROW);
    if (count > 0)
        memcpy(bigger, list, count * size);
    return bigger;
}

struct definitions {
    struct arena *arena;
    struct job_definition *list;
    size_t count;
};

static int
definitions_fn(struct db *db, void *arg, struct err *err)
{
    struct definitions *all = (struct definitions *)arg;
    scoped(db_rows_end) struct db_rows rows = {0};
    int r;

    all->count = 0;
    r = db_ask(db, store_sql(db, STMT_QUEUE_DEFINITIONS), &rows, err);
    if (r < 0)
        return r;
    while ((r = db_next(&rows, err)) > 0) {
        all->list = (struct job_definition *)grow(all->arena, all->list, all->count,
                                                  sizeof(*all->list));
        all->list[all->count++] = (struct job_definition){
            .name = queue_read_text(&rows, 0, all->arena),
            .version = db_i64(&rows, 1),
            .hash = queue_read_text(&rows, 2, all->arena),
            .definition = queue_read_text(&rows, 3, all->arena),
            .published_at_us = db_i64(&rows, 4),
            .withdrawn_at_us = db_i64(&rows, 5),
        };
    }
    return r;
}

int
queue_definitions(struct store *store, struct arena *arena,
                  struct job_definition **ret_definitions, size_t *ret_count,
                  struct err *err)
{
    struct definitions all = {.arena = arena};
    int r = store_read(store, definitions_fn, &all, err);

    if (r < 0)
        return r;
    *ret_definitions = all.list;
    *ret_count = all.count;
    return 0;
}

struct jobs {
    struct arena *arena;
    struct job_state *list;
    size_t count;
};

static void
read_job(const struct db_rows *rows, struct arena *arena, struct job_state *ret)
{
    int64_t step_updated_us = db_i64(rows, 14);

    *ret = (struct job_state){
        .job = queue_read_text(rows, 0, arena),
        .definition = queue_read_text(rows, 1, arena),
        .version = db_i64(rows, 2),
        .withdrawn = db_i64(rows, 3) != 0,
        .queued = db_i64(rows, 4),
        .running = db_i64(rows, 5),
        .active_request_id = db_i64(rows, 6),
        .last_request_id = db_i64(rows, 7),
        .last_instance_id = db_i64(rows, 8),
        .last_execution_id = db_i64(rows, 9),
        .last_state = queue_read_text(rows, 10, arena),
        .last_started_at_us = db_i64(rows, 11),
        .last_ended_at_us = db_i64(rows, 12),
        .last_updated_us = db_i64(rows, 13),
        .paused_by = queue_read_text(rows, 15, arena),
        .paused_at_us = db_i64(rows, 16),
    };
    if (step_updated_us > ret->last_updated_us)
        ret->last_updated_us = step_updated_us;
}

static int
jobs_fn(struct db *db, void *arg, struct err *err)
{
    struct jobs *jobs = (struct jobs *)arg;
    scoped(db_rows_end) struct db_rows rows = {0};
    int r;

    jobs->count = 0;
    r = db_ask(db, store_sql(db, STMT_QUEUE_JOBS), &rows, err);
    if (r < 0)
        return r;
    while ((r = db_next(&rows, err)) > 0) {
        jobs->list = (struct job_state *)grow(jobs->arena, jobs->list, jobs->count,
                                              sizeof(*jobs->list));
        read_job(&rows, jobs->arena, &jobs->list[jobs->count++]);
    }
    return r;
}

int
queue_jobs(struct store *store, struct arena *arena, struct job_state **ret_jobs,
           size_t *ret_count, struct err *err)
{
    struct jobs jobs = {.arena = arena};
    int r = store_read(store, jobs_fn, &jobs, err);

    if (r < 0)
        return r;
    *ret_jobs = jobs.list;
    *ret_count = jobs.count;
    return 0;
}

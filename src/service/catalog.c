#include "service/catalog.h"

#include "base/arena.h"
#include "base/err.h"
#include "config/config.h"
#include "queue/definition.h"
#include "queue/job.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct catalog_state {
    _Atomic int refs;
    struct queue_job **jobs;
    size_t count;
};

struct catalog {
    struct store *store;
    pthread_mutex_t lock; /* of the pointer below */
    struct catalog_state *state;
};

void
catalog_put(struct catalog_state *state)
{
    if (!state || atomic_fetch_sub(&state->refs, 1) != 1)
        return;
    for (size_t i = 0; i < state->count; i++)
        queue_job_free(state->jobs[i]);
    free(state->jobs);
    free(state);
}

void
catalog_putp(struct catalog_state **state)
{
    catalog_put(*state);
}

static int
load_state(struct store *store, struct catalog_state **ret_state, struct err *err)
{
    scoped(catalog_putp) struct catalog_state *state = xcalloc(1, sizeof(*state));
    scoped(arena_release) struct arena arena = {0};
    struct job_definition *rows = NULL;
    size_t count = 0;
    int r;

    state->refs = 1;
    r = queue_definitions(store, &arena, &rows, &count, err);
    if (r < 0)
        return r;
    state->jobs = xcalloc(count ? count : 1, sizeof(struct queue_job *));
    for (size_t i = 0; i < count; i++) {
        if (rows[i].withdrawn_at_us)
            continue;
        r = queue_job_parse(rows[i].definition, &state->jobs[state->count], err);
        if (r < 0)
            return err_prefix(err, "job %s in the store", rows[i].name);
        state->count++;
    }
    *ret_state = state;
    state = NULL;
    return 0;
}

int
catalog_new(struct store *store, struct catalog **ret_catalog, struct err *err)
{
    struct catalog_state *state = NULL;
    struct catalog *catalog;
    int r = load_state(store, &state, err);

    if (r < 0)
        return r;
    catalog = xcalloc(1, sizeof(*catalog));
    catalog->store = store;
    catalog->state = state;
    pthread_mutex_init(&catalog->lock, NULL);
    *ret_catalog = catalog;
    return 0;
}

void
catalog_free(struct catalog *catalog)
{
    if (!catalog)
        return;
    catalog_put(catalog->state);
    pthread_mutex_destroy(&catalog->lock);
    free(catalog);
}

int
catalog_reload(struct catalog *catalog, struct err *err)
{
    struct catalog_state *fresh = NULL;
    struct catalog_state *old;
    int r = load_state(catalog->store, &fresh, err);

    if (r < 0)
        return r;
    pthread_mutex_lock(&catalog->lock);
    old = catalog->state;
    catalog->state = fresh;
    pthread_mutex_unlock(&catalog->lock);
    catalog_put(old);
    return 0;
}

struct catalog_state *
catalog_get(struct catalog *catalog)
{
    struct catalog_state *state;

    pthread_mutex_lock(&catalog->lock);
    state = catalog->state;
    atomic_fetch_add(&state->refs, 1);
    pthread_mutex_unlock(&catalog->lock);
    return state;
}

const struct queue_job *
catalog_job(const struct catalog_state *state, const char *name)
{
    for (size_t i = 0; i < state->count; i++)
        if (strcmp(state->jobs[i]->name, name) == 0)
            return state->jobs[i];
    return NULL;
}

int
catalog_publish(struct store *store, const struct config *config,
                struct publish_counts *ret_counts, struct err *err)
{
    scoped(arena_release) struct arena arena = {0};
    struct job_definition *rows =
        arena_array(&arena, struct job_definition, config->job_count + 1);

    for (size_t i = 0; i < config->job_count; i++)
        rows[i] = (struct job_definition){
            .name = config->jobs[i].name,
            .version = config->version,
            .hash = config->jobs[i].hash,
            .definition = config->jobs[i].definition,
        };
    return queue_publish(store, rows, config->job_count, config->version, ret_counts,
                         err);
}

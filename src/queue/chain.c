/*
 * What is next after a request that COMPLETED: the request's own list, else the one of
 * its job. The first entry is asked for with the rest as its own list; after the last
 * entry the list of that job itself goes on. An entry is the name of a job, or an
 * object that also gives parameters, where the text "{name}" stands for the value of a
 * parameter of the request before ("{{name}}" is the text "{name}").
 *
 * What cannot be asked for is dropped with a line in the audit: the request that ended
 * has done its work. On PostgreSQL a key whose lock somebody holds is not waited for,
 * since that somebody may wait for us; the request then waits for it in later.
 */
#include "queue/chain.h"

#include "base/err.h"
#include "base/json.h"
#include "base/strs.h"
#include "queue/follow.h"
#include "queue/job.h"
#include "queue/params.h"
#include "queue/submit_rows.h"
#include "store/store.h"

#include <inttypes.h>
#include <stdio.h>

struct links {
    struct follow *follow;
    struct submission sub;
    struct submit_order *orders;
    int64_t *from; /* who is followed, by order */
    size_t count;
};

static void
links_release(struct links *links)
{
    arena_release(&links->sub.arena);
}

/* --- entries --- */

const char *
chain_entry_job(const json_t *entry)
{
    return json_string_value(json_is_object(entry) ? json_object_get(entry, "job")
                                                   : entry);
}

bool
chain_value_param(const json_t *value, char *ret_name, size_t size)
{
    const char *text = json_string_value(value);
    size_t len = text ? strlen(text) : 0;

    if (len < 3 || len - 2 >= size || text[0] != '{' || text[len - 1] != '}')
        return false;
    memcpy(ret_name, text + 1, len - 2);
    ret_name[len - 2] = '\0';
    return strcspn(ret_name, "{}") == len - 2;
}

/* A new reference; NULL when the parameter has no value. */
static json_t *
value_of(const json_t *value, const json_t *before)
{
    const char *text = json_string_value(value);
    size_t len = text ? strlen(text) : 0;
    char name[CHAIN_NAME_SIZE];

    if (chain_value_param(value, name, sizeof(name)))
        return json_incref(json_object_get(before, name));
    if (len >= 4 && strncmp(text, "{{", 2) == 0 && strcmp(text + len - 2, "}}") == 0)
        return json_stringn(text + 1, len - 2);
    return json_incref((json_t *)(uintptr_t)value);
}

/* The parameters of the next one; those without a value are left to their default. */
static json_t *
map_params(const json_t *entry, const json_t *before)
{
    json_t *params = json_is_object(entry) ? json_object_get(entry, "params") : NULL;
    json_t *mapped = json_object();
    const char *name;
    json_t *value;

    json_object_foreach(params, name, value)
    {
        json_t *got = value_of(value, before);

        if (got)
            json_object_set_new(mapped, name, got);
    }
    return mapped;
}

/* --- orders --- */

static int
drop(struct links *links, int64_t request_id, const char *why, struct err *err)
{
    return follow_drop(links->sub.db, links->follow, request_id, "chain-dropped", why,
                       err);
}

/* The effective parameters of the request that ended; an empty object when its job is
 * not there any more. New reference. */
static int
params_before(struct links *links, const struct request *request, json_t **ret,
              struct err *err)
{
    scoped(json_drop) json_t *given = NULL;
    const struct queue_job *job = NULL;
    struct params_errors errors;
    json_t *effective = NULL;
    struct err unread = {0};
    int r = follow_job(links->sub.db, links->follow, request->job, &job, err);

    if (r < 0)
        return r;
    if (job &&
        json_parse(request->given, strlen(request->given), JSON_DEPTH_MAX, &given,
                   &unread) == 0 &&
        params_check(job, given, &effective, &errors) == PARAMS_OK) {
        *ret = effective;
        return 0;
    }
    *ret = given ? json_incref(given) : json_object();
    return 0;
}

static const char *
rest_of(struct arena *arena, const json_t *list)
{
    scoped(json_drop) json_t *rest = json_copy((json_t *)(uintptr_t)list);

    json_array_remove(rest, 0);
    return json_array_size(rest) > 0 ? follow_json(arena, rest) : NULL;
}

static int
fill_order(struct links *links, const struct request *request, const json_t *list,
           const struct queue_job *job, struct err *err)
{
    struct arena *arena = &links->sub.arena;
    struct submit_order *order = &links->orders[links->count];
    scoped(json_drop) json_t *before = NULL;
    scoped(json_drop) json_t *given = NULL;
    scoped(json_drop) json_t *effective = NULL;
    struct params_errors errors;
    char text[400];
    int r = params_before(links, request, &before, err);

    if (r < 0)
        return r;
    given = map_params(json_array_get(list, 0), before);
    if (params_check(job, given, &effective, &errors) != PARAMS_OK) {
        params_errors_text(&errors, text, sizeof(text));
        return drop(links, request->id,
                    arena_printf(arena, "job %s: %s", job->name, text), err);
    }
    *order = (struct submit_order){
        .job = job,
        .given = follow_json(arena, given),
        .canonical = follow_canonical(arena, effective),
        .requester = arena_printf(arena, "chain:#%" PRId64, request->id),
        .source = SOURCE_CHAIN,
        .priority = job->priority,
        .next = rest_of(arena, list),
        .restart = -1,
        /* No estimate inside this transaction: as if it had not answered in time. */
        .lane = job->estimate_sql ? job->estimate_otherwise : job->lane,
    };
    if (!order->given || !order->canonical)
        return drop(links, request->id, "its parameters are too large", err);
    links->from[links->count++] = request->id;
    return 0;
}

static int
add_link(struct links *links, const struct request *request, struct err *err)
{
    struct follow *follow = links->follow;
    const struct queue_job *own = follow_known_job(follow, request->job);
    const struct queue_job *job = NULL;
    scoped(json_drop) json_t *parsed = NULL;
    const json_t *list = own ? json_object_get(own->definition, "next") : NULL;
    struct err unread = {0};
    const char *name;
    int r;

    if (request->next) {
        if (json_parse(request->next, strlen(request->next), JSON_DEPTH_MAX, &parsed,
                       &unread) < 0)
            return drop(links, request->id, "its next cannot be read", err);
        list = parsed;
    }
    if (json_array_size(list) == 0)
        return 0;
    name = chain_entry_job(json_array_get(list, 0));
    if (!name)
        return drop(links, request->id, "its next names no job", err);
    r = follow_job(links->sub.db, follow, name, &job, err);
    if (r < 0)
        return r;
    if (!job)
        return drop(links, request->id,
                    arena_printf(&links->sub.arena, "there is no job %s", name), err);
    return fill_order(links, request, list, job, err);
}

/* --- into the queue --- */

enum { KEY_OURS, KEY_BUSY, KEY_TAKEN };

static int
take_key(struct links *links, const struct draft *draft, struct err *err)
{
    struct db *db = links->sub.db;
    const struct db_value take[] = {p_text(draft->key), p_i64(draft->id)};
    int64_t got = 1;
    int r = 0;

    if (db_kind(db) == DB_PG)
        r = db_query_i64(db, store_sql(db, STMT_CHAIN_TRY_LOCK), take, 1, &got, err);
    if (r < 0)
        return r;
    if (!got)
        return KEY_BUSY;
    r = db_query_i64(db, store_sql(db, STMT_QUEUE_ACTIVE_TAKE), take, array_len(take),
                     &got, err);
    return r < 0 ? r : r > 0 ? KEY_OURS : KEY_TAKEN;
}

static int
drop_taken(struct links *links, const struct draft *draft, int64_t from_id,
           struct err *err)
{
    const struct db_value key = p_text(draft->key);
    struct db *db = links->sub.db;
    int64_t holder = 0;
    int r;

    r = db_query_i64(db, store_sql(db, STMT_CHAIN_KEY_HOLDER), &key, 1, &holder, err);
    if (r < 0)
        return r;
    return drop(links, from_id,
                arena_printf(&links->sub.arena,
                             "job %s has request %" PRId64 " already",
                             draft->order->job->name, holder),
                err);
}

static int
settle_key(struct links *links, struct draft *draft, int64_t from_id, struct err *err)
{
    int r = draft->key ? take_key(links, draft, err) : KEY_OURS;

    if (r < 0)
        return r;
    draft->is_new = r != KEY_TAKEN;
    if (r == KEY_TAKEN)
        return drop_taken(links, draft, from_id, err);
    /* A busy key of `reuse` is simply not taken: nobody will meet this request. */
    if (r == KEY_BUSY && draft->order->job->duplicates == QUEUE_DUPLICATES_REFUSE) {
        draft->reason = "key";
        draft->not_before_us = links->sub.now_us;
    }
    return 0;
}

static int
enter(struct links *links, struct err *err)
{
    struct submission *sub = &links->sub;
    int r;

    sub->orders = links->orders;
    sub->count = links->count;
    sub->drafts = arena_array(&sub->arena, struct draft, sub->count);
    r = submit_draw_ids(sub, err);
    for (size_t i = 0; i < sub->count && r == 0; i++) {
        struct draft *draft = &sub->drafts[i];

        draft->order = &links->orders[i];
        draft->at = i;
        draft->key = submit_key_of(&sub->arena, draft->order);
        if (draft->order->job->expire_after_us > 0)
            draft->expires_at_us = sub->now_us + draft->order->job->expire_after_us;
        r = settle_key(links, draft, links->from[i], err);
        if (draft->is_new)
            links->follow->entered = true;
    }
    return r < 0 ? r : submit_write_rows(sub, NULL, err);
}

int
follow_chain(struct db *db, struct follow *follow, struct err *err)
{
    scoped(links_release) struct links links = {.follow = follow, .sub.db = db};
    int64_t *ids = arena_array(&follow->arena, int64_t, follow->count);
    struct request *requests = NULL;
    size_t n = 0;
    int r;

    for (size_t i = 0; i < follow->count; i++) {
        const struct follow_fact *fact = &follow->facts[i];

        if (fact->closing->outcome != OUTCOME_COMPLETED || fact->cancel_asked)
            continue;
        if (fact->next || follow_known_job(follow, fact->closing->job))
            ids[n++] = fact->id;
    }
    if (n == 0)
        return 0;
    links.orders = arena_array(&follow->arena, struct submit_order, n);
    links.from = arena_array(&follow->arena, int64_t, n);
    r = follow_requests(db, follow, ids, n, &requests, &n, err);
    for (size_t i = 0; i < n && r == 0; i++)
        if (requests[i].source != SOURCE_PARTITION)
            r = add_link(&links, &requests[i], err);
    return r < 0 || links.count == 0 ? r : enter(&links, err);
}

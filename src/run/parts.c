#include "run/parts.h"

#include "base/err.h"
#include "db/db.h"
#include "run/result_store.h"
#include "store/store.h"

struct look {
    const struct result_store *results;
    struct db *db;
    int64_t instance;
    int64_t token;
    int64_t dropped;
};

static int
look_at_part(void *arg, const struct result_entry *entry, struct err *err)
{
    struct look *look = arg;
    const struct db_value params[] = {p_i64(entry->token), p_i64(entry->owner)};
    int64_t known = 0;
    int r;

    if ((look->instance && look->instance != entry->owner) ||
        (look->token && look->token != entry->token))
        return 0;
    r = db_query_i64(look->db, store_sql(look->db, STMT_FSCK_PART_KNOWN), params,
                     array_len(params), &known, err);
    if (r < 0 || known > 0 || !result_store_there(look->results, entry->path))
        return r < 0 ? r : 0;
    result_store_drop_parts(look->results, entry->owner, entry->token);
    look->dropped++;
    return 0;
}

/* The folder is read before the claim of each part is: never the other way round. */
static int
look_at_parts(struct db *db, void *arg, struct err *err)
{
    struct look *look = arg;

    look->db = db;
    return result_store_list_parts(look->results, look_at_part, look, err);
}

int
parts_drop_uncovered(struct store *store, const struct result_store *results,
                     int64_t instance, int64_t token, int64_t *ret_dropped,
                     struct err *err)
{
    struct look look = {.results = results, .instance = instance, .token = token};
    int r = store_read(store, look_at_parts, &look, err);

    *ret_dropped = look.dropped;
    return r;
}

struct before {
    const struct result_store *results;
    struct db *db;
    const char *job;
    int64_t instance;
};

static int
look_if_before(void *arg, const struct result_entry *entry, struct err *err)
{
    struct before *before = arg;
    const struct db_value params[] = {p_i64(entry->owner), p_text(before->job),
                                      p_i64(before->instance)};
    int64_t older = 0;
    int r = db_query_i64(before->db, store_sql(before->db, STMT_BATCH_INSTANCE_BEFORE),
                         params, array_len(params), &older, err);

    if (r == 1 && older > 0)
        result_store_drop_parts(before->results, entry->owner, 0);
    return r < 0 ? r : 0;
}

static int
look_before(struct db *db, void *arg, struct err *err)
{
    struct before *before = arg;

    before->db = db;
    return result_store_list_parts(before->results, look_if_before, before, err);
}

int
parts_drop_before(struct store *store, const struct result_store *results,
                  const char *job, int64_t instance, struct err *err)
{
    struct before before = {.results = results, .job = job, .instance = instance};

    return store_read(store, look_before, &before, err);
}

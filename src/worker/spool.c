/* A file is whole or not there (temp, fsync, rename); removing it need not be durable,
 * for recording the same outcome again changes nothing. */
#include "worker/spool.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fsio.h"
#include "base/json.h"
#include "base/plant.h"
#include "base/strs.h"
#include "batch/execution.h"
#include "queue/finish.h"
#include "run/run.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX ((size_t)64 * 1024)
#define PATH_LEN 4096

struct entry {
    int64_t seq;
    int64_t request_id;
    int64_t token;
};

struct spool {
    char *folder;
    pthread_mutex_t lock;  /* of all below, and of making files */
    struct entry *entries; /* by seq; room for SPOOL_MAX */
    size_t count;
    int64_t last_seq;
};

static void
path_of(const struct spool *spool, const struct entry *entry, const char *more,
        char ret_path[PATH_LEN])
{
    snprintf(ret_path, PATH_LEN, "%s/%020" PRId64 "-%" PRId64 "-%" PRId64 ".json%s",
             spool->folder, entry->seq, entry->request_id, entry->token, more);
}

/* --- opening --- */

static int
by_seq(const void *a, const void *b)
{
    int64_t x = ((const struct entry *)a)->seq;
    int64_t y = ((const struct entry *)b)->seq;

    return x < y ? -1 : x > y;
}

static bool
parse_name(const char *name, struct entry *ret_entry)
{
    struct entry entry;
    int end = 0;

    if (sscanf(name, "%20" SCNd64 "-%" SCNd64 "-%" SCNd64 ".json%n", &entry.seq,
               &entry.request_id, &entry.token, &end) != 3 ||
        end == 0 || name[end])
        return false;
    *ret_entry = entry;
    return true;
}

static int
look(struct spool *spool, struct err *err)
{
    DIR *dir = opendir(spool->folder);
    struct dirent *found;
    struct entry entry;

    if (!dir)
        return err_errno(err, ERR_IO, errno, "cannot read the folder %s",
                         spool->folder);
    while ((found = readdir(dir)) && spool->count < SPOOL_MAX)
        if (parse_name(found->d_name, &entry) && !planted("spool_lost")) {
            spool->entries[spool->count++] = entry;
            if (entry.seq > spool->last_seq)
                spool->last_seq = entry.seq;
        }
    closedir(dir);
    qsort(spool->entries, spool->count, sizeof(*spool->entries), by_seq);
    return 0;
}

int
spool_open(const char *folder, struct spool **ret_spool, struct err *err)
{
    struct spool *spool;
    int r = fs_mkdir_private(folder, err);

    if (r < 0)
        return r;
    spool = xcalloc(1, sizeof(*spool));
    spool->folder = xstrdup(folder);
    spool->entries = xcalloc(SPOOL_MAX, sizeof(*spool->entries));
    pthread_mutex_init(&spool->lock, NULL);
    r = look(spool, err);
    if (r < 0) {
        spool_free(spool);
        return r;
    }
    *ret_spool = spool;
    return 0;
}

void
spool_free(struct spool *spool)
{
    if (!spool)
        return;
    pthread_mutex_destroy(&spool->lock);
    free(spool->entries);
    free(spool->folder);
    free(spool);
}

/* --- keeping --- */

static void
write_order(const struct finish_order *order, struct buf *buf)
{
    const struct request_result *result = order->result;
    struct json_out out;

    json_out_init(&out, buf);
    json_begin_object(&out);
    json_kv_i64(&out, "request", order->request_id);
    json_kv_i64(&out, "token", order->token.number);
    json_kv_str(&out, "nonce", order->token.nonce);
    json_kv_str(&out, "outcome", request_outcome_name(order->outcome));
    json_kv_str(&out, "detail", order->detail);
    json_kv_i64(&out, "execution", order->execution_id);
    if (order->spent)
        json_kv_bool(&out, "spent", true);
    if (result && result->known) {
        json_key(&out, "result");
        json_begin_object(&out);
        json_kv_str(&out, "path", result->path);
        json_kv_str(&out, "name", result->name);
        json_kv_str(&out, "type", result->type);
        json_kv_i64(&out, "bytes", result->bytes);
        json_kv_i64(&out, "rows", result->rows);
        json_kv_str(&out, "sha256", result->sha256);
        json_end_object(&out);
    }
    json_end_object(&out);
}

static struct entry *
find(struct spool *spool, int64_t request_id, int64_t token)
{
    for (size_t i = 0; i < spool->count; i++)
        if (spool->entries[i].request_id == request_id &&
            spool->entries[i].token == token)
            return &spool->entries[i];
    return NULL;
}

static int
put_locked(struct spool *spool, const struct finish_order *order, struct err *err)
{
    scoped(buf_release) struct buf text = {0};
    struct entry entry = {.seq = spool->last_seq + 1,
                          .request_id = order->request_id,
                          .token = order->token.number};
    char path[PATH_LEN];
    int r;

    if (find(spool, entry.request_id, entry.token))
        return 0;
    if (spool->count == SPOOL_MAX)
        return err_set(
            err, ERR_TOO_LARGE,
            "%s holds %d outcomes already and takes no more; bring the store "
            "back",
            spool->folder, SPOOL_MAX);
    buf_init(&text, FILE_MAX);
    write_order(order, &text);
    r = buf_check(&text, "an outcome", err);
    path_of(spool, &entry, "", path);
    if (r == 0)
        r = fs_replace_file(path, buf_str(&text), text.len, 0600, err);
    if (r < 0)
        return r;
    spool->entries[spool->count++] = entry;
    spool->last_seq = entry.seq;
    return 0;
}

int
spool_put(struct spool *spool, const struct finish_order *order, struct err *err)
{
    int r;

    pthread_mutex_lock(&spool->lock);
    r = put_locked(spool, order, err);
    pthread_mutex_unlock(&spool->lock);
    return r;
}

static void
forget(struct spool *spool, int64_t request_id, int64_t token, bool aside)
{
    char path[PATH_LEN];
    char refused[PATH_LEN];
    struct entry *entry;

    pthread_mutex_lock(&spool->lock);
    entry = find(spool, request_id, token);
    if (entry) {
        path_of(spool, entry, "", path);
        path_of(spool, entry, ".refused", refused);
        if (!aside || rename(path, refused) != 0)
            fs_remove_quietly(path);
        memmove(entry, entry + 1,
                (size_t)(&spool->entries[--spool->count] - entry) * sizeof(*entry));
    }
    pthread_mutex_unlock(&spool->lock);
}

void
spool_drop(struct spool *spool, int64_t request_id, int64_t token)
{
    forget(spool, request_id, token, false);
}

size_t
spool_count(struct spool *spool)
{
    size_t count;

    pthread_mutex_lock(&spool->lock);
    count = spool->count;
    pthread_mutex_unlock(&spool->lock);
    return count;
}

/* --- replaying --- */

/* What a file says; texts live as long as json. */
struct kept {
    json_t *json;
    struct finish_order order;
    struct request_result result;
};

static void
kept_release(struct kept *kept)
{
    json_drop(&kept->json);
}

static int
read_result(const json_t *json, struct request_result *result, struct err *err)
{
    json_t *object = NULL;
    int r = json_get_object(json, "result", &object, err);

    if (r != JSON_FOUND)
        return r < 0 ? r : 0;
    result->known = true;
    result->rows = -1;
    r = json_get_str(object, "path", &result->path, err);
    if (r == 0)
        r = json_get_str(object, "name", &result->name, err);
    if (r == 0)
        r = json_get_str(object, "type", &result->type, err);
    if (r == 0)
        r = json_get_i64(object, "bytes", &result->bytes, err);
    if (r == 0)
        r = json_get_i64(object, "rows", &result->rows, err);
    if (r == 0)
        r = json_get_str(object, "sha256", &result->sha256, err);
    return r == JSON_ABSENT ? err_set(err, ERR_INVALID, "a member is missing") : r;
}

static int
read_order(struct kept *kept, struct err *err)
{
    struct finish_order *order = &kept->order;
    const char *outcome = "";
    const char *nonce = "";
    int r = json_get_i64(kept->json, "request", &order->request_id, err);

    if (r == 0)
        r = json_get_i64(kept->json, "token", &order->token.number, err);
    if (r == 0)
        r = json_get_str(kept->json, "nonce", &nonce, err);
    if (r == 0)
        r = json_get_str(kept->json, "outcome", &outcome, err);
    if (r == 0)
        r = json_get_i64(kept->json, "execution", &order->execution_id, err);
    if (r == JSON_ABSENT)
        return err_set(err, ERR_INVALID, "a member is missing");
    if (r == 0 && json_get_str(kept->json, "detail", &order->detail, err) < 0)
        r = -err->code;
    if (r < 0)
        return r;
    if (!request_outcome_parse(outcome, &order->outcome) ||
        !str_copy(order->token.nonce, sizeof(order->token.nonce), nonce))
        return err_set(err, ERR_INVALID, "no outcome or no nonce");
    order->spent = json_is_true(json_object_get(kept->json, "spent"));
    order->result = &kept->result;
    return read_result(kept->json, &kept->result, err);
}

static int
load(const struct spool *spool, const struct entry *entry, struct kept *kept,
     struct err *err)
{
    scoped(buf_release) struct buf text = {0};
    char path[PATH_LEN];
    int r;

    path_of(spool, entry, "", path);
    buf_init(&text, FILE_MAX);
    r = fs_read_file(path, FILE_MAX, &text, err);
    if (r == 0)
        r = json_parse(buf_str(&text), text.len, JSON_DEPTH_MAX, &kept->json, err);
    if (r == 0)
        r = read_order(kept, err);
    return r;
}

static int
replay_one(struct spool *spool, const struct entry *entry, const struct run_env *env,
           struct spool_counts *counts, struct err *err)
{
    scoped(kept_release) struct kept kept = {0};
    int r = load(spool, entry, &kept, err);

    if (r == 0)
        r = run_record_once(env->store, &kept.order, err);
    if (r < 0 && run_record_later(r))
        return r;
    if (r == BATCH_LOST && kept.result.known)
        run_discard_files(env, entry->request_id);
    counts->recorded += r == BATCH_OK;
    counts->stale += r == BATCH_LOST;
    counts->refused += r < 0;
    forget(spool, entry->request_id, entry->token, r < 0);
    return 0;
}

static bool
oldest(struct spool *spool, struct entry *ret_entry)
{
    bool some;

    pthread_mutex_lock(&spool->lock);
    some = spool->count > 0;
    if (some)
        *ret_entry = spool->entries[0];
    pthread_mutex_unlock(&spool->lock);
    return some;
}

int
spool_replay(struct spool *spool, const struct run_env *env,
             struct spool_counts *ret_counts, struct err *err)
{
    struct spool_counts counts = {0};
    struct entry entry;
    int r = 0;

    while (r == 0 && oldest(spool, &entry)) {
        err_clear(err);
        r = replay_one(spool, &entry, env, &counts, err);
    }
    *ret_counts = counts;
    return r;
}

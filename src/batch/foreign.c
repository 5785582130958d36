/*
 * The statements stand here and not in src/sql, because the table is not one of the
 * store's: it lies in databases of users, beside the rows that it speaks of.
 */
#include "batch/foreign.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "db/db.h"

#include <string.h>

#define COUNTS_MAX_BYTES 1024

static const char table_text[] =
    "CREATE TABLE IF NOT EXISTS pawl_checkpoint (store_id text NOT NULL, "
    "instance bigint NOT NULL, step text NOT NULL, token bigint NOT NULL, "
    "chunk bigint NOT NULL, position text, writer_state text, counters text, "
    "updated_at bigint NOT NULL, PRIMARY KEY (store_id, instance, step))";

static const struct db_sql table_there = {
    .name = "look for pawl_checkpoint",
    .text_pg = "SELECT 1 WHERE to_regclass('pawl_checkpoint') IS NOT NULL",
    .text_sqlite = "SELECT 1 FROM sqlite_master WHERE name = 'pawl_checkpoint'",
    .flags = DB_ONCE,
};

/* updated_at is in seconds since 1970, by the clock there. */
#define NOW_PG     "CAST(extract(epoch FROM now()) AS bigint)"
#define NOW_SQLITE "CAST(strftime('%s', 'now') AS integer)"

#define RAISE(now)                                                                     \
    "INSERT INTO pawl_checkpoint (store_id, instance, step, token, chunk, "            \
    "updated_at) VALUES ($1, $2, $3, $4, 0, " now ") "                                 \
    "ON CONFLICT (store_id, instance, step) DO UPDATE SET token = excluded.token, "    \
    "updated_at = excluded.updated_at WHERE pawl_checkpoint.token <= excluded.token"

static const struct db_sql raise_token = {
    .name = "raise the token in pawl_checkpoint",
    .text_pg = RAISE(NOW_PG),
    .text_sqlite = RAISE(NOW_SQLITE),
    .n_params = 4,
    .flags = DB_ONCE,
};

static const struct db_sql read_point = {
    .name = "read pawl_checkpoint",
    .text = "SELECT chunk, position, writer_state, counters FROM pawl_checkpoint "
            "WHERE store_id = $1 AND instance = $2 AND step = $3",
    .n_params = 3,
    .flags = DB_ONCE,
};

#define SET(now)                                                                       \
    "UPDATE pawl_checkpoint SET chunk = $1, position = $2, writer_state = $3, "        \
    "counters = $4, updated_at = " now " WHERE store_id = $5 AND instance = $6 "       \
    "AND step = $7 AND token = $8 AND chunk = $9"

static const struct db_sql set_point = {
    .name = "commit a chunk in pawl_checkpoint",
    .text_pg = SET(NOW_PG),
    .text_sqlite = SET(NOW_SQLITE),
    .n_params = 9,
};

/* Not as soon as a step is done: the row is also what refuses a run that slept from
 * before its first chunk until the step was done by another. Nor those of the instance
 * that is being gone on with, however long it lay. */
#define KEEP_SECONDS "2592000" /* 30 days */

static const struct db_sql drop_old = {
    .name = "remove old rows from pawl_checkpoint",
    .text_pg = "DELETE FROM pawl_checkpoint WHERE store_id = $1 AND instance <> $2 "
               "AND updated_at < " NOW_PG " - " KEEP_SECONDS,
    .text_sqlite = "DELETE FROM pawl_checkpoint WHERE store_id = $1 AND instance <> $2 "
                   "AND updated_at < " NOW_SQLITE " - " KEEP_SECONDS,
    .n_params = 2,
    .flags = DB_ONCE,
};

/* --- the table --- */

static int
no_table(struct err *err)
{
    struct err cause = *err;

    err_clear(err);
    return err_set(
        err, ERR_CONFIG,
        "the table pawl_checkpoint, which makes each chunk committed exactly "
        "once, cannot be made (%.100s); let its owner run what "
        "docs/steps.md says, or give `write` a `checkpoint: none`",
        cause.text);
}

/* Asked first, because without the right to create even IF NOT EXISTS is refused. */
static int
make_table(struct db *db, struct err *err)
{
    int64_t there = 0;
    int r = db_query_i64(db, &table_there, NULL, 0, &there, err);

    if (r != 0)
        return r < 0 ? r : 0;
    r = db_script(db, table_text, err);
    if (r >= 0 || !db_usable(db))
        return r;
    /* Two runs may have come at once, and then one of them was refused. */
    if (db_query_i64(db, &table_there, NULL, 0, &there, &(struct err){0}) == 1) {
        err_clear(err);
        return 0;
    }
    return no_table(err);
}

/* --- counts as text --- */

static void
spell_counts(struct buf *out, const struct step_counts *counts)
{
    struct json_out json;

    json_out_init(&json, out);
    json_begin_object(&json);
    json_kv_i64(&json, "read", counts->read);
    json_kv_i64(&json, "written", counts->written);
    json_kv_i64(&json, "filtered", counts->filtered);
    json_kv_i64(&json, "skipped", counts->skipped);
    json_kv_i64(&json, "commits", counts->commits);
    json_kv_i64(&json, "rollbacks", counts->rollbacks);
    json_end_object(&json);
}

static int
parse_counts(const char *text, struct step_counts *counts, struct err *err)
{
    scoped(json_drop) json_t *json = NULL;
    const struct {
        const char *name;
        int64_t *value;
    } fields[] = {
        {"read", &counts->read},         {"written", &counts->written},
        {"filtered", &counts->filtered}, {"skipped", &counts->skipped},
        {"commits", &counts->commits},   {"rollbacks", &counts->rollbacks},
    };
    int r;

    if (!text)
        return 0;
    r = json_parse(text, strlen(text), 2, &json, err);
    for (size_t i = 0; r >= 0 && i < array_len(fields); i++)
        r = json_get_i64(json, fields[i].name, fields[i].value, err);
    return r < 0 ? err_prefix(err, "counters in pawl_checkpoint") : 0;
}

/* --- open --- */

static int
raise_to_mine(struct db *db, const struct foreign_key *key, struct err *err)
{
    int r = db_run(db, &raise_token, err, p_text(key->store_id),
                   p_i64(key->instance_id), p_text(key->step), p_i64(key->token));

    if (r < 0)
        return r;
    return db_changes(db) > 0 ? BATCH_OK : BATCH_LOST;
}

static const char *
copy_text(const struct db_rows *rows, int column, struct arena *arena)
{
    if (db_is_null(rows, column))
        return NULL;
    return arena_strndup(arena, db_text(rows, column), db_text_len(rows, column));
}

static int
read_row(struct db *db, const struct foreign_key *key, struct arena *arena,
         struct step_point *ret_point, struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    struct step_point point = {0};
    int r = db_ask(db, &read_point, &rows, err, p_text(key->store_id),
                   p_i64(key->instance_id), p_text(key->step));

    if (r == 0)
        r = db_next(&rows, err);
    if (r < 0)
        return r;
    if (r == 0)
        return err_set(err, ERR_DB,
                       "the row just made in pawl_checkpoint is not there");
    point.chunk = db_i64(&rows, 0);
    point.position = copy_text(&rows, 1, arena);
    point.writer_state = copy_text(&rows, 2, arena);
    r = parse_counts(copy_text(&rows, 3, arena), &point.counts, err);
    if (r < 0)
        return r;
    *ret_point = point;
    return BATCH_OK;
}

int
foreign_open(struct db *db, const struct foreign_key *key, struct arena *arena,
             struct step_point *ret_point, struct err *err)
{
    int r = make_table(db, err);

    if (r == 0)
        r = db_run(db, &drop_old, err, p_text(key->store_id), p_i64(key->instance_id));
    if (r == 0)
        r = raise_to_mine(db, key, err);
    return r == BATCH_OK ? read_row(db, key, arena, ret_point, err) : r;
}

/* --- a chunk --- */

int
foreign_commit_in(struct db *db, const struct foreign_key *key,
                  const struct step_point *point, struct err *err)
{
    scoped(buf_release) struct buf counts = {0};
    int r;

    buf_init(&counts, COUNTS_MAX_BYTES);
    spell_counts(&counts, &point->counts);
    r = db_run(db, &set_point, err, p_i64(point->chunk), p_opt_text(point->position),
               p_opt_text(point->writer_state), p_text(buf_str(&counts)),
               p_text(key->store_id), p_i64(key->instance_id), p_text(key->step),
               p_i64(key->token), p_i64(point->chunk - 1));
    if (r < 0)
        return r;
    return db_changes(db) > 0 ? BATCH_OK : BATCH_LOST;
}

/* The one place that knows the order of the columns of a request. */
#include "queue/read.h"

#include "base/arena.h"
#include "store/store.h"

const char *
queue_read_text(const struct db_rows *rows, int column, struct arena *arena)
{
    if (db_is_null(rows, column))
        return NULL;
    return arena_strndup(arena, db_text(rows, column), db_text_len(rows, column));
}

static int64_t
i64_or(const struct db_rows *rows, int column, int64_t otherwise)
{
    return db_is_null(rows, column) ? otherwise : db_i64(rows, column);
}

void
queue_read_request(const struct db_rows *rows, struct arena *arena,
                   struct request *ret_request)
{
    struct request request = {
        .id = db_i64(rows, 0),
        .job = queue_read_text(rows, 1, arena),
        .given = queue_read_text(rows, 2, arena),
        .requester = queue_read_text(rows, 3, arena),
        .lane = queue_read_text(rows, 5, arena),
        .priority = (int)db_i64(rows, 6),
        .estimate = i64_or(rows, 7, -1),
        .not_before_us = db_i64(rows, 8),
        .expires_at_us = db_i64(rows, 9),
        .retry_of = db_i64(rows, 10),
        .first_try = db_i64(rows, 11),
        .attempt = (int)db_i64(rows, 12),
        .restart_of = db_i64(rows, 13),
        .restart = (int)i64_or(rows, 14, -1),
        .max_calls = i64_or(rows, 15, -1),
        .next = queue_read_text(rows, 16, arena),
        .created_at_us = db_i64(rows, 17),
        .progress = {.total = -1},
        .result = {.rows = -1},
    };

    /* The table's CHECK allows only words that are in our table. */
    if (!request_source_parse(db_text(rows, 4), &request.source))
        request.source = SOURCE_API;
    *ret_request = request;
}

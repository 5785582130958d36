/*
 * The limits: the same rows into the same tables by the least that the database allows,
 * straight through libpq or sqlite3. No rules, no tokens, no repeats. One file for each
 * database, and raw.c calls them.
 */
#ifndef BENCH_RAW_H
#define BENCH_RAW_H

#include <stddef.h>
#include <stdint.h>

/* A connection of one thread. */
struct raw;

struct raw_ops {
    struct raw *(*open)(const char *place);
    void (*close)(struct raw *raw);
    int64_t (*last_id)(struct raw *raw);
    /* Requests with these ids, in one commit. */
    void (*insert)(struct raw *raw, int64_t first_id, size_t count);
    /* Rows of ready, untimed. */
    void (*fill)(struct raw *raw, int64_t first_id, size_t count);
    /* Claim at most most, one commit; ids into ret_ids; how many. */
    size_t (*claim)(struct raw *raw, size_t most, int64_t *ret_ids);
    void (*finish)(struct raw *raw, const int64_t *ids, size_t count);
};

extern const struct raw_ops raw_pg;
extern const struct raw_ops raw_sqlite;

/* The columns of a request as a submit fills them; the rest is NULL. */
#define RAW_JOB       "cities-export"
#define RAW_GIVEN     "{\"country\":\"KR\",\"min_population\":100000,\"format\":\"xlsx\"}"
#define RAW_REQUESTER "bench"
#define RAW_LANE      "work"
#define RAW_WORKER    "1@bench#00000000000000000000000000000000"
#define RAW_NONCE     "00000000000000000000000000000000"
#define RAW_NOW_US    1700000000000000

#define RAW_COLUMNS                                                                    \
    "id, job, given, requester, source, lane, priority, estimate, not_before, "        \
    "expires_at, retry_of, first_try, attempt, restart_of, restart, max_calls, next, " \
    "created_at"

#endif

/*
 * SQL functions that the store's statements and schema use on SQLite, as they do
 * PostgreSQL's: pawl_now(), the time in microseconds from a clock that tests can
 * replace, and pawl_sha256(x), lower hex. Both are harmless, so a schema may name
 * them although it is not trusted.
 */
#include "db/sqlite.h"

#include "base/clock.h"
#include "base/sha256.h"

static void
fn_now(sqlite3_context *context, int n_args, sqlite3_value **args)
{
    const struct sqlite_db *sl = sqlite3_user_data(context);

    sqlite3_result_int64(context, sl->clock ? sl->clock(sl->clock_arg)
                                            : clock_wall_us(clock_real()));
}

static void
fn_sha256(sqlite3_context *context, int n_args, sqlite3_value **args)
{
    char hex[SHA256_HEX_SIZE];
    const void *data;

    if (sqlite3_value_type(args[0]) == SQLITE_NULL)
        return;
    if (sqlite3_value_type(args[0]) == SQLITE_BLOB)
        data = sqlite3_value_blob(args[0]);
    else
        data = sqlite3_value_text(args[0]);
    sha256_hex(data ? data : "", (size_t)sqlite3_value_bytes(args[0]), hex);
    sqlite3_result_text(context, hex, SHA256_HEX_SIZE - 1, SQLITE_TRANSIENT);
}

int
sqlite_add_functions(struct sqlite_db *sl, struct err *err)
{
    int rc;

    rc = sqlite3_create_function_v2(sl->conn, "pawl_now", 0,
                                    SQLITE_UTF8 | SQLITE_INNOCUOUS, sl, fn_now, NULL,
                                    NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_create_function_v2(sl->conn, "pawl_sha256", 1,
                                        SQLITE_UTF8 | SQLITE_INNOCUOUS |
                                            SQLITE_DETERMINISTIC,
                                        sl, fn_sha256, NULL, NULL, NULL);
    return rc == SQLITE_OK ? 0 : sqlite_fail(sl, "adding functions", NULL, rc, err);
}

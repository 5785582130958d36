/*
 * PostgreSQL: connecting, settings, transactions. A connection must never hang for
 * the quarter of an hour that TCP allows by default, must say what it is (direct or
 * behind a pooler, which is where session state is lost), and must commit durably
 * when it carries our own store.
 */
#include "db/pg.h"

#include "base/arena.h"
#include "base/err.h"

#include <stdio.h>

#define CONNECT_TIMEOUT_MS 10000
#define SETTINGS_MAX       32
#define IDLE_TX_TIMEOUT    "idle_in_transaction_session_timeout"

static void
pg_close(struct db *db)
{
    struct pg_db *pg = pg_of(db);

    for (size_t i = 0; i < pg->cache.count; i++) {
        struct cache_entry *entry = pg->cache.entries[i];

        cache_entry_release(entry);
        free(container_of(entry, struct pg_stmt, entry));
    }
    pg_cancel_drop(pg->cancel);
    PQfinish(pg->conn);
    free(pg);
}

int
pg_begin_now(struct pg_db *pg, struct err *err)
{
    scoped(buf_release) struct buf text = {0};
    const char *begin = pg->begin;

    pg->begin = NULL;
    if (!begin || !pg->begin_set)
        return begin ? pg_script(&pg->base, begin, err) : 0;
    buf_init(&text, 0);
    buf_addf(&text, "%s; %s", begin, pg->begin_set);
    return pg_script(&pg->base, buf_str(&text), err);
}

/* The store's transactions are small, so a round trip counts: BEGIN goes with their
 * first statement. A user's may begin with COPY, which no pipeline can carry. */
static int
pg_begin(struct db *db, enum db_mode mode, struct err *err)
{
    struct pg_db *pg = pg_of(db);
    int r = pg_check_free(pg, "begin", err);

    if (r < 0)
        return r;
    if (mode == DB_WRITE) {
        pg->begin = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";
        pg->begin_set = pg->write_set[0] ? pg->write_set : NULL;
    } else {
        pg->begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        pg->begin_set =
            pg->read_unset ? "SET LOCAL " IDLE_TX_TIMEOUT " TO DEFAULT" : NULL;
    }
    return db->store ? 0 : pg_begin_now(pg, err);
}

/* Did the server say no, or did it go away while it was deciding? After 57P0x and
 * 08xxx the commit record may have been written. */
static bool
is_unknown(const struct pg_db *pg, const PGresult *res)
{
    const char *state = pg_sqlstate(res);

    return !res || PQstatus(pg->conn) != CONNECTION_OK ||
           strncmp(state, "57P0", 4) == 0 || strncmp(state, "08", 2) == 0;
}

static int
pg_commit(struct db *db, struct err *err)
{
    struct pg_db *pg = pg_of(db);
    PGresult *res;
    int r = pg_check_free(pg, "commit", err);

    if (r < 0)
        return r;
    if (pg->begin) { /* nothing was run */
        pg->begin = NULL;
        return 0;
    }
    res = pg_run_text(pg, "COMMIT");
    if (PQresultStatus(res) == PGRES_COMMAND_OK) {
        if (strcmp(PQcmdStatus(res), "COMMIT") != 0)
            r = db_fail(err, ERR_DB, "25P02",
                        "commit: the server rolled back, because a statement of this "
                        "transaction had failed");
    } else if (is_unknown(pg, res)) {
        const char *reason = PQerrorMessage(pg->conn);

        db->usable = false;
        r = db_fail(
            err, ERR_COMMIT_UNKNOWN, pg_sqlstate(res),
            "commit: the connection was lost before the answer came; whether it "
            "was done is to be looked up: %.*s",
            (int)strcspn(reason, "\n"), reason);
    } else {
        r = pg_fail(pg, "commit", NULL, res, err);
    }
    PQclear(res);
    return r;
}

static void
pg_rollback(struct db *db)
{
    struct pg_db *pg = pg_of(db);
    PGresult *res;

    pg_stream_stop(pg);
    pg->begin = NULL;
    pg_cancel_settle(pg);
    if (!db->usable || PQtransactionStatus(pg->conn) == PQTRANS_IDLE)
        return;
    res = pg_run_text(pg, "ROLLBACK");
    if (PQresultStatus(res) != PGRES_COMMAND_OK)
        db->usable = false;
    PQclear(res);
}

static int
pg_set_clock(struct db *db, db_clock_fn clock, void *arg, struct err *err)
{
    return 0;
}

static const struct db_driver pg_driver = {
    .close = pg_close,
    .ping = pg_ping,
    .cancel = pg_cancel,
    .exec = pg_exec,
    .script = pg_script,
    .query = pg_query,
    .describe = pg_describe,
    .next = pg_next,
    .end = pg_end,
    .param_count = pg_param_count,
    .column_count = pg_column_count,
    .column_name = pg_column_name,
    .column_type = pg_column_type,
    .cell = pg_cell,
    .cell_text = pg_cell_text,
    .begin = pg_begin,
    .commit = pg_commit,
    .rollback = pg_rollback,
    .copy_begin = pg_copy_begin,
    .copy_row = pg_copy_row,
    .copy_end = pg_copy_end,
    .copy_abort = pg_copy_abort,
    .listen = pg_listen,
    .notify_fd = pg_notify_fd,
    .notifications = pg_notifications,
    .set_clock = pg_set_clock,
};

/* libpq would print notices to stderr, where they are nobody's. */
static void
drop_notice(void *arg, const char *message)
{
}

/* Reject a URL that libpq cannot read, without its words: they repeat the URL. */
static int
check_url(const char *url, struct err *err)
{
    char masked[200];
    char *message = NULL;
    PQconninfoOption *parts = PQconninfoParse(url, &message);
    int r = 0;

    if (!parts) {
        const char *quote = message ? strstr(message, ": \"") : NULL;
        int len = quote ? (int)(quote - message) : 60;

        r = db_fail(err, ERR_CONFIG, "", "database URL \"%s\": %.*s",
                    db_url_masked(url, masked, sizeof(masked)), len,
                    message ? message : "cannot be read");
    }
    PQfreemem(message);
    PQconninfoFree(parts);
    return r;
}

/*
 * What stands before the URL can be changed by it, what stands behind cannot. A
 * black-holed connection ends after about five seconds instead of fifteen minutes.
 */
static PGconn *
connect_to(const struct db_options *options, int timeout_ms)
{
    const char *names[SETTINGS_MAX], *values[SETTINGS_MAX];
    char timeout[16];
    size_t n = 0;

    snprintf(timeout, sizeof(timeout), "%d", (timeout_ms + 999) / 1000);
#define PART(name, value) (names[n] = (name), values[n++] = (value))
    PART("connect_timeout", timeout);
    PART("keepalives", "1");
    PART("keepalives_idle", "5");
    PART("keepalives_interval", "2");
    PART("keepalives_count", "2");
    PART("tcp_user_timeout", "5000");
    PART("fallback_application_name", options->app_name ? options->app_name : "pawl");
    PART("dbname", options->url);
    PART("client_encoding", "UTF8");
    if (options->store && !options->read_only)
        PART("target_session_attrs", "read-write");
    PART(NULL, NULL);
#undef PART
    return PQconnectdbParams(names, values, 1);
}

static int
connect_fail(const struct pg_db *pg, const char *url, struct err *err)
{
    char masked[200];
    char reason[400];
    size_t len;

    snprintf(reason, sizeof(reason), "%s", PQerrorMessage(pg->conn));
    for (len = strlen(reason); len > 0 && reason[len - 1] == '\n'; len--)
        reason[len - 1] = '\0';
    for (char *p = reason; (p = strpbrk(p, "\n\t"));) /* a question follows, indented */
        *p = ' ';
    return db_fail(err, db_lost_code(&pg->base), "08001", "%s: %s",
                   db_url_masked(url, masked, sizeof(masked)), reason);
}

/* One setting read, as text of at most size - 1 bytes. */
static int
read_text(struct pg_db *pg, const char *what, const char *query, char *ret, size_t size,
          struct err *err)
{
    PGresult *res = pg_collect(
        pg, PQsendQueryParams(pg->conn, query, 0, NULL, NULL, NULL, NULL, 0));
    int r = 0;

    if (PQresultStatus(res) != PGRES_TUPLES_OK || PQntuples(res) != 1)
        r = pg_fail(pg, what, NULL, res, err);
    else
        snprintf(ret, size, "%s", PQgetvalue(res, 0, 0));
    PQclear(res);
    return r;
}

/*
 * A pooler answers the start of a session by itself, with a process number of its
 * own making; the server's differs.
 */
static int
detect_pooler(struct pg_db *pg, struct err *err)
{
    char pid[24], ours[24];
    int r;

    r = read_text(pg, "connecting", "SELECT pg_catalog.pg_backend_pid()", pid,
                  sizeof(pid), err);
    if (r < 0)
        return r;
    snprintf(ours, sizeof(ours), "%d", PQbackendPID(pg->conn));
    pg->base.pooled = strcmp(pid, ours) != 0;
    return 0;
}

struct setting_list {
    const char *names[SETTINGS_MAX];
    const char *values[SETTINGS_MAX];
    size_t count;
    char statement_timeout[16], lock_timeout[16], idle_tx_timeout[16];
};

static void
list_add(struct setting_list *list, const char *name, const char *value)
{
    list->names[list->count] = name;
    list->values[list->count++] = value;
}

static int
list_settings(const struct db_options *options, struct setting_list *list,
              struct err *err)
{
    if (options->n_session_settings > SETTINGS_MAX - 8)
        return err_set(err, ERR_CONFIG, "database: %zu session settings, at most %d",
                       options->n_session_settings, SETTINGS_MAX - 8);
    list_add(list, "datestyle", "ISO, YMD");
    if (options->store)
        list_add(list, "synchronous_commit", "on");
    if (options->read_only)
        list_add(list, "default_transaction_read_only", "on");
    snprintf(list->statement_timeout, sizeof(list->statement_timeout), "%d",
             options->statement_timeout_ms);
    if (options->statement_timeout_ms > 0)
        list_add(list, "statement_timeout", list->statement_timeout);
    snprintf(list->lock_timeout, sizeof(list->lock_timeout), "%d",
             options->lock_timeout_ms);
    if (options->lock_timeout_ms > 0)
        list_add(list, "lock_timeout", list->lock_timeout);
    snprintf(list->idle_tx_timeout, sizeof(list->idle_tx_timeout), "%d",
             options->idle_tx_timeout_ms);
    if (options->idle_tx_timeout_ms > 0)
        list_add(list, IDLE_TX_TIMEOUT, list->idle_tx_timeout);
    for (size_t i = 0; i < options->n_session_settings; i++)
        list_add(list, options->session_settings[i].name,
                 options->session_settings[i].value);
    return 0;
}

/* All in one round trip. */
static int
set_session(struct pg_db *pg, const struct db_options *options, struct err *err)
{
    struct setting_list list = {.count = 0};
    const char *values[2 * SETTINGS_MAX];
    scoped(buf_release) struct buf query = {0};
    PGresult *res;
    int r;

    r = list_settings(options, &list, err);
    if (r < 0)
        return r;
    buf_init(&query, 0);
    for (size_t i = 0; i < list.count; i++) {
        buf_addf(&query, "%s pg_catalog.set_config($%zu, $%zu, false)",
                 i ? "," : "SELECT", 2 * i + 1, 2 * i + 2);
        values[2 * i] = list.names[i];
        values[2 * i + 1] = list.values[i];
    }
    res = pg_collect(pg,
                     PQsendQueryParams(pg->conn, buf_str(&query), (int)(2 * list.count),
                                       NULL, values, NULL, NULL, 0));
    if (PQresultStatus(res) != PGRES_TUPLES_OK)
        r = pg_fail(pg, "settings of the connection", NULL, res, err);
    PQclear(res);
    return r;
}

static int
check_durable(struct pg_db *pg, struct err *err)
{
    char value[32];
    int r;

    r = read_text(pg, "connecting",
                  "SELECT pg_catalog.current_setting('synchronous_commit')", value,
                  sizeof(value), err);
    if (r < 0 || strcmp(value, "on") == 0 || strcmp(value, "remote_apply") == 0)
        return r;
    return db_fail(
        err, ERR_CONFIG, "synchronous_commit",
        "store: synchronous_commit is %s, so a power cut could lose what was "
        "acknowledged%s; run: ALTER ROLE \"%s\" SET synchronous_commit = on",
        value, pg->base.pooled ? ", and behind a pooler it cannot be set here" : "",
        PQuser(pg->conn));
}

/* Dates are read as ISO; behind a pooler that cannot be set, only looked at. */
static int
check_datestyle(struct pg_db *pg, struct err *err)
{
    const char *style = PQparameterStatus(pg->conn, "DateStyle");

    if (!style || strncmp(style, "ISO", 3) == 0)
        return 0;
    return db_fail(err, ERR_CONFIG, "datestyle",
                   "database: DateStyle is \"%s\", only ISO can be read; run: ALTER "
                   "ROLE \"%s\" SET datestyle = 'ISO'",
                   style, PQuser(pg->conn));
}

/* On a direct connection the server itself keeps the time, and is given the start. */
static int
patience_of(const struct pg_db *pg, const struct db_options *options)
{
    if (options->statement_timeout_ms <= 0)
        return 0;
    return options->statement_timeout_ms + (pg->base.pooled ? 0 : 1000);
}

/*
 * Who stands still inside a transaction must not keep its locks. A session setting
 * costs nothing; it would bind reading transactions as well, which lock nothing that
 * anybody waits for and in which the caller may have much to do between two statements.
 * Behind a pooler the setting goes with each BEGIN, and the statement's own limit with
 * it: in the middle of a COPY a session is not idle.
 */
static void
bound_idle_tx(struct pg_db *pg, const struct db_options *options)
{
    int n;

    if (options->idle_tx_timeout_ms <= 0)
        return;
    pg->read_unset = !pg->base.pooled;
    if (!pg->base.pooled)
        return;
    n = snprintf(pg->write_set, sizeof(pg->write_set),
                 "SELECT pg_catalog.set_config('" IDLE_TX_TIMEOUT "', '%d', true)",
                 options->idle_tx_timeout_ms);
    if (options->statement_timeout_ms > 0)
        snprintf(pg->write_set + n, sizeof(pg->write_set) - (size_t)n,
                 ", pg_catalog.set_config('statement_timeout', '%d', true)",
                 options->statement_timeout_ms);
}

static int
open_pg(struct pg_db *pg, const struct db_options *options, struct err *err)
{
    int r;

    r = check_url(options->url, err);
    if (r < 0)
        return r;
    pg->conn = connect_to(options, pg->connect_ms);
    if (!pg->conn)
        return err_set(err, ERR_NOMEM, "connecting: out of memory");
    if (PQstatus(pg->conn) != CONNECTION_OK)
        return connect_fail(pg, options->url, err);
    PQsetNoticeProcessor(pg->conn, drop_notice, NULL);
    if (PQsetnonblocking(pg->conn, 1) != 0)
        return connect_fail(pg, options->url, err);
    pg->cancel = pg_cancel_new(pg->conn);
    r = detect_pooler(pg, err);
    if (r == 0 && !pg->base.pooled)
        r = set_session(pg, options, err);
    if (r == 0)
        r = check_datestyle(pg, err);
    if (r == 0 && options->store && !options->read_only)
        r = check_durable(pg, err);
    bound_idle_tx(pg, options);
    pg->patience_ms = patience_of(pg, options);
    pg->may_cancel = true;
    return r;
}

int
db_open_pg(const struct db_options *options, struct db **ret_db, struct err *err)
{
    struct pg_db *pg = xcalloc(1, sizeof(*pg));
    int r;

    pg->base = (struct db){
        .driver = &pg_driver, .kind = DB_PG, .usable = true, .store = options->store};
    pg->connect_ms = options->connect_timeout_ms > 0 ? options->connect_timeout_ms
                                                     : CONNECT_TIMEOUT_MS;
    pg->patience_ms = pg->connect_ms;
    r = open_pg(pg, options, err);
    if (r < 0) {
        pg_close(&pg->base);
        return r;
    }
    *ret_db = &pg->base;
    return 0;
}

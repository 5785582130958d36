/* What a SQLSTATE means to callers. */
#include "db/pg.h"

#include "base/err.h"

#include <stdio.h>

struct state_row {
    const char *start; /* of the SQLSTATE; the first that fits decides */
    enum err_code code;
    const char *remedy;
};

/* ERR_NONE stands for "lost": ERR_STORE or ERR_CONNECT. */
static const struct state_row state_rows[] = {
    {"40001", ERR_DB_CONFLICT, ""},
    {"40P01", ERR_DB_CONFLICT, ""},
    {"22012", ERR_DB, ""},         /* a division by zero is of no column */
    {"22", ERR_DB_CONSTRAINT, ""}, /* a value that does not fit, or is none */
    {"23", ERR_DB_CONSTRAINT, ""},
    {"55P03", ERR_STORE_BUSY, ""},
    {"57014", ERR_TIMEOUT, ""},
    {"25P03", ERR_NONE, ""}, /* it stood still inside a transaction for too long */
    {"25P04", ERR_NONE, ""},
    {"57P", ERR_NONE, ""},
    {"08", ERR_NONE, ""},
    {"53100", ERR_DISK_FULL, "; free some disk space on the database server"},
    {"53300", ERR_NONE, "; raise max_connections, or use fewer connections"},
    {"53", ERR_NONE, ""},
    {"58", ERR_NONE, ""},
    {"42501", ERR_DB, "; GRANT the right to this role, or use another"},
    {"54000", ERR_TOO_LARGE, ""},
};

static const struct state_row *
row_of(const char *state)
{
    static const struct state_row other = {"", ERR_DB, ""};

    for (size_t i = 0; i < array_len(state_rows); i++) {
        const char *start = state_rows[i].start;

        if (strncmp(state, start, strlen(start)) == 0)
            return &state_rows[i];
    }
    return &other;
}

const char *
pg_sqlstate(const PGresult *res)
{
    const char *state = res ? PQresultErrorField(res, PG_DIAG_SQLSTATE) : NULL;

    return state ? state : "";
}

/* PostgreSQL counts characters from 1, places are told from bytes. */
static long
offset_of(const char *text, const char *position)
{
    long left = position ? strtol(position, NULL, 10) - 1 : -1;
    const char *p = text;

    if (left < 0)
        return -1;
    for (; *p && left > 0; left--) {
        do
            p++;
        while ((*p & 0xc0) == 0x80);
    }
    return p - text;
}

static int
lost(struct pg_db *pg, const char *what, struct err *err)
{
    const char *reason = PQerrorMessage(pg->conn);
    int len = (int)strcspn(reason, "\n"); /* the rest is advice to server owners */

    pg->base.usable = false;
    return db_fail(err, db_lost_code(&pg->base), "08006", "%s: %.*s", what,
                   len ? len : 40, len ? reason : "the server gave no answer in time");
}

/* A server that lost its primacy: our store must look for the new one. */
static bool
is_demoted(const struct pg_db *pg, const char *state)
{
    return pg->base.store && strcmp(state, "25006") == 0 &&
           !(pg->base.in_tx && pg->base.mode == DB_READ);
}

/* The server says why it ends the connection. A pooler says 08P01 and hangs up a moment
 * later. */
static bool
ends_connection(const char *state)
{
    return strncmp(state, "57P", 3) == 0 || strncmp(state, "08", 2) == 0 ||
           strcmp(state, "25P03") == 0 || strcmp(state, "25P04") == 0;
}

/* "Key (id)=(7) already exists.": at a commit nothing else tells which row it was. */
static const char *
key_of(const char *state, const PGresult *res)
{
    const char *detail = res ? PQresultErrorField(res, PG_DIAG_MESSAGE_DETAIL) : NULL;
    bool told = strncmp(state, "23", 2) == 0 && detail &&
                strncmp(detail, "Key (", strlen("Key (")) == 0;

    return told ? detail : "";
}

int
pg_fail(struct pg_db *pg, const char *what, const char *text, const PGresult *res,
        struct err *err)
{
    const char *state = pg_sqlstate(res);
    const struct state_row *row = row_of(state);
    const char *message = res ? PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY) : NULL;
    const char *hint = res ? PQresultErrorField(res, PG_DIAG_MESSAGE_HINT) : NULL;
    enum err_code code = row->code == ERR_NONE ? db_lost_code(&pg->base) : row->code;
    const char *key = key_of(state, res);
    char place[DB_PLACE_SIZE] = "";

    if (PQstatus(pg->conn) != CONNECTION_OK || ends_connection(state))
        pg->base.usable = false;
    if (!*state && res && PQresultStatus(res) != PGRES_FATAL_ERROR)
        return db_fail(err, ERR_DB, "", "%s: no statement to run here (%s)", what,
                       PQresStatus(PQresultStatus(res)));
    if (!*state)
        return lost(pg, what, err);
    if (is_demoted(pg, state)) {
        pg->base.usable = false;
        code = ERR_STORE;
    }
    if (text)
        db_place(text,
                 offset_of(text, PQresultErrorField(res, PG_DIAG_STATEMENT_POSITION)),
                 place);
    return db_fail(err, code, state, "%s: %s%s%s%s%s%s%s", what,
                   message ? message : "failed", place, *key ? ": " : "", key,
                   hint ? ": " : "", hint ? hint : "", row->remedy);
}

int
pg_check_free(struct pg_db *pg, const char *what, struct err *err)
{
    if (pg->stream)
        return err_set(err, ERR_INTERNAL,
                       "%s: the rows of %s are still being read on this connection",
                       what, pg->stream->name);
    pg_cancel_settle(pg);
    return pg->base.usable ? 0 : lost(pg, what, err);
}

/* PostgreSQL: many rows in, by COPY in its text format. */
#include "db/pg.h"

#include "base/arena.h"
#include "base/err.h"

#include <math.h>
#include <stdio.h>

#define FLUSH_BYTES 65536
#define ROW_MAX     ((size_t)1 << 30)

struct pg_copy {
    char what[96];
    struct buf out;
    int64_t rows;
};

static void
copy_free(struct pg_copy *copy)
{
    buf_release(&copy->out);
    free(copy);
}

int
pg_copy_begin(struct db *db, const char *table, const char *const *columns,
              size_t n_columns, void **ret_state, struct err *err)
{
    struct pg_db *pg = pg_of(db);
    scoped(buf_release) struct buf text = {0};
    struct pg_copy *copy;
    PGresult *res;
    int r;

    r = pg_check_free(pg, table, err);
    if (r == 0)
        r = pg_begin_now(pg, err);
    if (r < 0)
        return r;
    buf_init(&text, 0);
    buf_add_str(&text, "COPY ");
    db_quote_table(&text, table);
    for (size_t i = 0; i < n_columns; i++) {
        buf_add_str(&text, i ? "," : "(");
        db_quote_name(&text, columns[i]);
    }
    buf_add_str(&text, ") FROM STDIN");
    r = buf_check(&text, table, err);
    if (r < 0)
        return r;
    copy = xcalloc(1, sizeof(*copy));
    snprintf(copy->what, sizeof(copy->what), "copy into %s", table);
    buf_init(&copy->out, ROW_MAX);
    res = pg_run_text(pg, buf_str(&text));
    if (PQresultStatus(res) != PGRES_COPY_IN)
        r = pg_fail(pg, copy->what, NULL, res, err);
    PQclear(res);
    if (r < 0) {
        copy_free(copy);
        return r;
    }
    *ret_state = copy;
    return 0;
}

static void
add_text(struct buf *out, const char *text, size_t len)
{
    size_t from = 0;

    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        char escape = c == '\n'   ? 'n'
                      : c == '\r' ? 'r'
                      : c == '\t' ? 't'
                      : c == '\\' ? '\\'
                                  : '\0';

        if (escape == '\0')
            continue;
        buf_add(out, text + from, i - from);
        buf_add_char(out, '\\');
        buf_add_char(out, escape);
        from = i + 1;
    }
    buf_add(out, text + from, len - from);
}

static void
add_hex(struct buf *out, const char *data, size_t len)
{
    static const char digits[] = "0123456789abcdef";
    char *to;

    buf_add_str(out, "\\\\x");
    to = len > 0 ? buf_reserve(out, 2 * len) : NULL;
    if (!to)
        return;
    for (size_t i = 0; i < len; i++) {
        *to++ = digits[(unsigned char)data[i] >> 4];
        *to++ = digits[data[i] & 0xf];
    }
    out->len += 2 * len;
}

static int
add_value(struct pg_copy *copy, const struct db_value *value, struct err *err)
{
    struct buf *out = &copy->out;
    scoped(buf_release) struct buf array = {0};

    switch (value->type) {
    case DB_NULL:
        buf_add_str(out, "\\N");
        break;
    case DB_INT:
        buf_add_i64(out, value->i);
        break;
    case DB_BOOL:
        buf_add_char(out, value->i ? 't' : 'f');
        break;
    case DB_REAL:
        if (isfinite(value->d))
            buf_addf(out, "%.17g", value->d);
        else
            buf_add_str(out, isnan(value->d)  ? "NaN"
                             : value->d < 0.0 ? "-Infinity"
                                              : "Infinity");
        break;
    case DB_BLOB:
        add_hex(out, value->s.p, value->s.n);
        break;
    case DB_TEXT_ARRAY:
    case DB_INT_ARRAY:
        buf_init(&array, ROW_MAX);
        db_array_pg(&array, value);
        add_text(out, buf_str(&array), array.len);
        break;
    case DB_TEXT:
    case DB_DECIMAL:
    case DB_DATE:
    case DB_TIMESTAMP:
    case DB_TYPE_COUNT:
        if (value->s.n > 0 && memchr(value->s.p, '\0', value->s.n))
            return err_set(err, ERR_INVALID, "%s, row %lld: text has a NUL byte in it",
                           copy->what, (long long)copy->rows + 1);
        add_text(out, value->s.p, value->s.n);
        break;
    }
    return 0;
}

static int
flush(struct pg_db *pg, struct pg_copy *copy, struct err *err)
{
    int r = buf_check(&copy->out, copy->what, err);

    if (r < 0)
        return r;
    if (copy->out.len > 0 &&
        (PQputCopyData(pg->conn, copy->out.data, (int)copy->out.len) != 1 ||
         !pg_send_all(pg)))
        return pg_fail(pg, copy->what, NULL, NULL, err);
    buf_clear(&copy->out);
    return 0;
}

int
pg_copy_row(struct db *db, void *state, const struct db_value *values, size_t n_columns,
            struct err *err)
{
    struct pg_copy *copy = state;

    for (size_t i = 0; i < n_columns; i++) {
        int r;

        if (i > 0)
            buf_add_char(&copy->out, '\t');
        r = add_value(copy, &values[i], err);
        if (r < 0)
            return r;
    }
    buf_add_char(&copy->out, '\n');
    copy->rows++;
    return copy->out.len >= FLUSH_BYTES ? flush(pg_of(db), copy, err) : 0;
}

/* Where in our rows: 'COPY t, line 3, column c: "x"' is the server's context. */
static int
copy_fail(struct pg_db *pg, const struct pg_copy *copy, const PGresult *res,
          struct err *err)
{
    const char *context = res ? PQresultErrorField(res, PG_DIAG_CONTEXT) : NULL;
    const char *line = context ? strstr(context, ", line ") : NULL;
    const char *column = line ? strstr(line, ", column ") : NULL;
    char what[256];
    int len;

    snprintf(what, sizeof(what), "%s", copy->what);
    if (line) {
        len = snprintf(what, sizeof(what), "%s, row %ld", copy->what,
                       strtol(line + strlen(", line "), NULL, 10));
        if (column && strchr(column, ':'))
            snprintf(what + len, sizeof(what) - (size_t)len, "%.*s",
                     (int)strcspn(column, ":"), column);
    }
    return pg_fail(pg, what, NULL, res, err);
}

int
pg_copy_end(struct db *db, void *state, struct err *err)
{
    struct pg_db *pg = pg_of(db);
    struct pg_copy *copy = state;
    PGresult *res;
    int r;

    r = flush(pg, copy, err);
    if (r < 0) {
        pg_copy_abort(db, copy);
        return r;
    }
    res = pg_collect(pg, PQputCopyEnd(pg->conn, NULL));
    if (PQresultStatus(res) == PGRES_COMMAND_OK)
        db->changes = strtoll(PQcmdTuples(res), NULL, 10);
    else
        r = copy_fail(pg, copy, res, err);
    PQclear(res);
    copy_free(copy);
    return r;
}

void
pg_copy_abort(struct db *db, void *state)
{
    struct pg_db *pg = pg_of(db);

    if (db->usable)
        PQclear(pg_collect(pg, PQputCopyEnd(pg->conn, "given up")));
    if (PQstatus(pg->conn) != CONNECTION_OK)
        db->usable = false;
    copy_free(state);
}

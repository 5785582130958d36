/*
 * Parameters on their way to PostgreSQL: as text whose type the server infers from
 * the statement, so that p_text fits a date as well; bytes go binary.
 */
#include "db/pg.h"

#include "base/err.h"

#include <math.h>

#define PARAMS_MAX ((size_t)1 << 30)

void
pg_params_release(struct pg_params *params)
{
    buf_release(&params->text);
}

static void
add_double(struct buf *text, double value)
{
    if (isnan(value))
        buf_add_str(text, "NaN");
    else if (isinf(value))
        buf_add_str(text, value < 0 ? "-Infinity" : "Infinity");
    else
        buf_addf(text, "%.17g", value);
}

/* Append the text of value and its NUL. */
static int
spell(struct buf *text, const char *what, int number, const struct db_value *value,
      struct err *err)
{
    switch (value->type) {
    case DB_INT:
        buf_add_i64(text, value->i);
        break;
    case DB_BOOL:
        buf_add_char(text, value->i ? 't' : 'f');
        break;
    case DB_REAL:
        add_double(text, value->d);
        break;
    case DB_TEXT:
    case DB_DECIMAL:
    case DB_DATE:
    case DB_TIMESTAMP:
        if (value->s.n > 0 && memchr(value->s.p, '\0', value->s.n))
            return err_set(err, ERR_INVALID, "%s: text for $%d has a NUL byte in it",
                           what, number);
        buf_add(text, value->s.p, value->s.n);
        break;
    case DB_TEXT_ARRAY:
    case DB_INT_ARRAY:
        db_array_pg(text, value);
        break;
    case DB_NULL:
    case DB_BLOB:
    case DB_TYPE_COUNT:
        break;
    }
    buf_add_char(text, '\0');
    return 0;
}

int
pg_params_init(struct pg_params *params, const char *what,
               const struct db_value *values, size_t count, struct err *err)
{
    size_t starts[UINT8_MAX];
    int r;

    params->count = (int)count;
    buf_init(&params->text, PARAMS_MAX);
    for (size_t i = 0; i < count; i++) {
        starts[i] = params->text.len;
        r = spell(&params->text, what, (int)i + 1, &values[i], err);
        if (r < 0)
            return r;
    }
    r = buf_check(&params->text, what, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < count; i++) {
        bool blob = values[i].type == DB_BLOB;

        params->values[i] = params->text.data + starts[i];
        params->lens[i] = 0;
        params->formats[i] = blob;
        if (blob) {
            params->values[i] = values[i].s.p ? values[i].s.p : "";
            params->lens[i] = (int)values[i].s.n;
        }
        if (values[i].type == DB_NULL)
            params->values[i] = NULL;
    }
    return 0;
}

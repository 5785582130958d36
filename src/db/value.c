/*
 * Values that need spelling out: array parameters. PostgreSQL reads its array
 * literal ({1,2}, {"a","b \"c\"",NULL}); SQLite has no arrays, so a list goes in as
 * JSON text for json_each().
 */
#include "db/value.h"

#include "base/buf.h"

#include <assert.h>

static const char *const type_words[] = {
    [DB_NULL] = "null",         [DB_INT] = "int",         [DB_REAL] = "real",
    [DB_TEXT] = "text",         [DB_BLOB] = "blob",       [DB_BOOL] = "bool",
    [DB_DECIMAL] = "decimal",   [DB_DATE] = "date",       [DB_TIMESTAMP] = "timestamp",
    [DB_TEXT_ARRAY] = "text[]", [DB_INT_ARRAY] = "int[]",
};
static_assert_count(type_words, DB_TYPE_COUNT);

const char *
db_type_word(enum db_type type)
{
    return type < DB_TYPE_COUNT ? type_words[type] : "?";
}

static void
add_ints(struct buf *buf, const struct db_value *value)
{
    for (size_t i = 0; i < value->ints.n; i++) {
        if (i > 0)
            buf_add_char(buf, ',');
        buf_add_i64(buf, value->ints.v[i]);
    }
}

/* Every element quoted: then only quote and backslash need care, and an element
 * that reads NULL is not mistaken for the absence of one. */
static void
add_pg_text(struct buf *buf, const char *text)
{
    buf_add_char(buf, '"');
    for (const char *p = text; *p; p++) {
        if (*p == '"' || *p == '\\')
            buf_add_char(buf, '\\');
        buf_add_char(buf, *p);
    }
    buf_add_char(buf, '"');
}

static void
add_json_text(struct buf *buf, const char *text)
{
    buf_add_char(buf, '"');
    for (const char *p = text; *p; p++) {
        if (*p == '"' || *p == '\\') {
            buf_add_char(buf, '\\');
            buf_add_char(buf, *p);
        } else if ((unsigned char)*p < 0x20) {
            buf_addf(buf, "\\u%04x", (unsigned char)*p);
        } else {
            buf_add_char(buf, *p);
        }
    }
    buf_add_char(buf, '"');
}

static void
add_texts(struct buf *buf, const struct db_value *value, const char *null_word,
          void (*add)(struct buf *buf, const char *text))
{
    for (size_t i = 0; i < value->texts.n; i++) {
        if (i > 0)
            buf_add_char(buf, ',');
        if (value->texts.v[i])
            add(buf, value->texts.v[i]);
        else
            buf_add_str(buf, null_word);
    }
}

void
db_array_pg(struct buf *buf, const struct db_value *value)
{
    assert(value->type == DB_INT_ARRAY || value->type == DB_TEXT_ARRAY);
    buf_add_char(buf, '{');
    if (value->type == DB_INT_ARRAY)
        add_ints(buf, value);
    else
        add_texts(buf, value, "NULL", add_pg_text);
    buf_add_char(buf, '}');
}

void
db_array_json(struct buf *buf, const struct db_value *value)
{
    assert(value->type == DB_INT_ARRAY || value->type == DB_TEXT_ARRAY);
    buf_add_char(buf, '[');
    if (value->type == DB_INT_ARRAY)
        add_ints(buf, value);
    else
        add_texts(buf, value, "null", add_json_text);
    buf_add_char(buf, ']');
}

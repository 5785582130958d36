/*
 * One value on its way into or out of a database, in the types that SQLite and
 * PostgreSQL share. A db_value borrows its bytes: from the caller for a
 * parameter, from the row for a cell (until the next db_next or db_rows_end).
 */
#ifndef DB_VALUE_H
#define DB_VALUE_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct buf;

enum db_type {
    DB_NULL,
    DB_INT,        /* .i */
    DB_REAL,       /* .d */
    DB_TEXT,       /* .s, UTF-8 without NUL bytes */
    DB_BLOB,       /* .s, any bytes */
    DB_BOOL,       /* .i, 0 or 1 */
    DB_DECIMAL,    /* .s, decimal digits as text: never goes through a double */
    DB_DATE,       /* .s, 2031-12-24 */
    DB_TIMESTAMP,  /* .s, ISO 8601 as the database writes it */
    DB_TEXT_ARRAY, /* .texts; parameters only */
    DB_INT_ARRAY,  /* .ints; parameters only */
    DB_TYPE_COUNT
};

struct db_value {
    enum db_type type;
    union {
        int64_t i;
        double d;
        struct {
            const char *p;
            size_t n;
        } s;
        struct {
            const int64_t *v;
            size_t n;
        } ints;
        struct {
            const char *const *v; /* an element may be NULL */
            size_t n;
        } texts;
    };
};

/* "int", "decimal", …: for messages. */
const char *db_type_word(enum db_type type);

static inline struct db_value
p_null(void)
{
    return (struct db_value){.type = DB_NULL};
}

static inline struct db_value
p_i64(int64_t value)
{
    return (struct db_value){.type = DB_INT, .i = value};
}

static inline struct db_value
p_bool(bool value)
{
    return (struct db_value){.type = DB_BOOL, .i = value};
}

static inline struct db_value
p_real(double value)
{
    return (struct db_value){.type = DB_REAL, .d = value};
}

static inline struct db_value
p_bytes(enum db_type type, const void *data, size_t len)
{
    return (struct db_value){.type = type, .s = {(const char *)data, len}};
}

static inline struct db_value
p_text_n(const char *text, size_t len)
{
    return p_bytes(DB_TEXT, text, len);
}

static inline struct db_value
p_text(const char *text)
{
    return p_bytes(DB_TEXT, text, strlen(text));
}

/* NULL becomes the database's NULL. */
static inline struct db_value
p_opt_text(const char *text)
{
    return text ? p_text(text) : p_null();
}

static inline struct db_value
p_blob(const void *data, size_t len)
{
    return p_bytes(DB_BLOB, data, len);
}

static inline struct db_value
p_decimal(const char *digits)
{
    return p_bytes(DB_DECIMAL, digits, strlen(digits));
}

/*
 * A list as one parameter. PostgreSQL gets an array literal: write
 * unnest(CAST($1 AS bigint[])); SQLite gets JSON text: write json_each($1).
 */
static inline struct db_value
p_i64_array(const int64_t *values, size_t count)
{
    return (struct db_value){.type = DB_INT_ARRAY, .ints = {values, count}};
}

static inline struct db_value
p_text_array(const char *const *values, size_t count)
{
    return (struct db_value){.type = DB_TEXT_ARRAY, .texts = {values, count}};
}

/* The two spellings of an array parameter. Only array types are allowed. */
void db_array_pg(struct buf *buf, const struct db_value *value);
void db_array_json(struct buf *buf, const struct db_value *value);

#endif

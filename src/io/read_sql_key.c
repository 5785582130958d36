/*
 * A key is kept as the database gave it, type and text, and given back the same way:
 * no value of ours stands between, which could be spelled differently and so compare
 * differently. Going on begins with the last row itself, which is passed over if it is
 * still there: were there a second one with its key, that would be seen.
 */
#include "io/read_sql_key.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "base/strs.h"
#include "base/utf8.h"
#include "db/db.h"
#include "io/row.h"
#include "io/sql_text.h"

#include <ctype.h>
#include <string.h>

#define KEY_MAX_BYTES ((size_t)32 << 10)

/* The types that a key may have, and their words in a position. */
static const enum db_type key_types[] = {DB_INT,     DB_TEXT, DB_BOOL,
                                         DB_DECIMAL, DB_DATE, DB_TIMESTAMP};

static bool
is_key_type(enum db_type type)
{
    for (size_t i = 0; i < array_len(key_types); i++) {
        if (key_types[i] == type)
            return true;
    }
    return false;
}

/* --- going on --- */

static int
read_position(struct sql_key *key, const char *position, int64_t *ret_given,
              struct err *err)
{
    scoped(json_drop) json_t *root = NULL;
    json_t *from;
    int r = json_parse(position, strlen(position), 6, &root, err);

    if (r == 0 && json_is_object(root))
        r = json_get_i64(root, "rows", ret_given, err);
    if (r < 0)
        return r;
    from = json_object_get(root, "key");
    if (!from && *ret_given > 0)
        return err_set(err, ERR_INVALID,
                       "the step went on by position until now, and the key of its "
                       "last row is not known; put `restart: position` back, or ask "
                       "for a new run (restart: false)");
    if (!from)
        return 0;
    if (json_array_size(from) != key->count)
        return err_set(err, ERR_INVALID,
                       "the checkpoint has a key of %zu columns, read.key has %zu; ask "
                       "for a new run (restart: false)",
                       json_array_size(from), key->count);
    key->from = json_incref(from);
    return 0;
}

int
sql_key_init(struct sql_key *key, const json_t *def, const char *position,
             int64_t *ret_given, struct arena *arena, struct err *err)
{
    size_t count = json_is_array(def) ? json_array_size(def) : 1;

    if (count > SQL_KEY_COLUMNS_MAX)
        return err_set(err, ERR_CONFIG, "read.key: a key has at most %d columns",
                       SQL_KEY_COLUMNS_MAX);
    for (size_t i = 0; i < count; i++)
        key->names[i] =
            json_string_value(json_is_array(def) ? json_array_get(def, i) : def);
    key->count = count;
    buf_init(&key->last, KEY_MAX_BYTES);
    buf_init(&key->next, KEY_MAX_BYTES);
    return position ? read_position(key, position, ret_given, err) : 0;
}

void
sql_key_release(struct sql_key *key)
{
    json_drop(&key->from);
    buf_release(&key->last);
    buf_release(&key->next);
}

/* --- the query around --- */

static void
add_names(struct buf *out, const struct sql_key *key)
{
    for (size_t i = 0; i < key->count; i++) {
        buf_add_str(out, i ? ", pawl_rows." : "pawl_rows.");
        db_quote_name(out, key->names[i]);
    }
}

/* ["int", "5"] */
static int
key_value(const json_t *item, struct db_value *ret, struct err *err)
{
    const char *word = json_string_value(json_array_get(item, 0));
    const json_t *text = json_array_get(item, 1);

    for (size_t i = 0; word && json_is_string(text) && i < array_len(key_types); i++) {
        enum db_type type = key_types[i];

        if (!str_eq(db_type_word(type), word))
            continue;
        if (type == DB_INT || type == DB_BOOL)
            *ret = (struct db_value){.type = type,
                                     .i = strtoll(json_string_value(text), NULL, 10)};
        else
            *ret = p_bytes(type, json_string_value(text), json_string_length(text));
        return 0;
    }
    return err_set(err, ERR_INVALID, "the checkpoint holds no key that can be read");
}

/* Without the semicolon that a person may have put at its end. */
static char *
inner_query(const char *text, struct arena *arena)
{
    size_t len = strlen(text);

    while (len > 0 && (isspace((unsigned char)text[len - 1]) || text[len - 1] == ';'))
        len--;
    return arena_strndup(arena, text, len);
}

int
sql_key_around(struct sql_key *key, const char **text, struct db_value *values,
               size_t *count, struct arena *arena, struct err *err)
{
    scoped(buf_release) struct buf out = {0};
    size_t n = *count;

    if (n + key->count > SQL_TEXT_PARAMS_MAX)
        return err_set(err, ERR_CONFIG, "read.sql has too many parameters for a key");
    buf_init(&out, 0);
    /* Its last line may be a comment. */
    buf_addf(&out, "SELECT * FROM (%s\n) AS pawl_rows", inner_query(*text, arena));
    if (key->from) {
        buf_add_str(&out, " WHERE (");
        add_names(&out, key);
        buf_add_str(&out, ") >= (");
        for (size_t i = 0; i < key->count; i++) {
            int r = key_value(json_array_get(key->from, i), &values[n + i], err);

            if (r < 0)
                return r;
            buf_addf(&out, "%s$%zu", i ? ", " : "", n + i + 1);
        }
        buf_add_str(&out, ")");
        *count = n + key->count;
    }
    buf_add_str(&out, " ORDER BY ");
    add_names(&out, key);
    *text = arena_strdup(arena, buf_str(&out));
    return 0;
}

int
sql_key_find(struct sql_key *key, const struct column *columns, size_t width,
             struct err *err)
{
    for (size_t i = 0; i < key->count; i++) {
        size_t k = 0;

        while (k < width && !str_eq(columns[k].name, key->names[i]))
            k++;
        if (k == width)
            return err_set(err, ERR_CONFIG, "read.key: the query has no column \"%s\"",
                           key->names[i]);
        key->columns[i] = (int)k;
    }
    return 0;
}

/* --- rows --- */

static int
add_value(struct json_out *out, const struct db_value *value, const char *name,
          struct err *err)
{
    char digits[32];

    if (value->type == DB_NULL)
        return err_set(err, ERR_INVALID, "the key's column %s is NULL", name);
    if (!is_key_type(value->type))
        return err_set(err, ERR_INVALID,
                       "the key's column %s is of type %s, which is no good as a key; "
                       "take an integer, a decimal, a date or a text",
                       name, db_type_word(value->type));
    json_begin_array(out);
    json_put_str(out, db_type_word(value->type));
    if (value->type == DB_INT || value->type == DB_BOOL) {
        snprintf(digits, sizeof(digits), "%lld", (long long)value->i);
        json_put_str(out, digits);
    } else {
        if (!utf8_valid(value->s.p, value->s.n))
            return err_set(err, ERR_INVALID, "the key's column %s is no valid UTF-8",
                           name);
        json_put_strn(out, value->s.p, value->s.n);
    }
    json_end_array(out);
    return 0;
}

/* Is the current row the one that was committed last? */
static bool
is_from(const struct sql_key *key)
{
    scoped(json_drop) json_t *next = NULL;
    struct err ignored = {0};

    return json_parse(key->next.data, key->next.len, 6, &next, &ignored) == 0 &&
           json_equal(next, key->from);
}

static int
two_alike(struct err *err)
{
    return err_set(err, ERR_INVALID,
                   "two rows have the same key; add a column to read.key that tells "
                   "them apart");
}

int
sql_key_take(struct sql_key *key, const struct db_rows *rows, struct err *err)
{
    struct buf swap = key->last;
    struct json_out out;
    int r = 0;

    buf_clear(&key->next);
    json_out_init(&out, &key->next);
    json_begin_array(&out);
    for (size_t i = 0; r == 0 && i < key->count; i++) {
        struct db_value value = db_cell(rows, key->columns[i]);

        r = add_value(&out, &value, key->names[i], err);
    }
    if (r < 0)
        return r;
    json_end_array(&out);
    r = buf_check(&key->next, "the key of a row", err);
    if (r < 0)
        return r;
    if (key->from && !key->passed && key->last.len == 0 && is_from(key)) {
        key->passed = true;
        return SQL_KEY_PASS;
    }
    if (key->last.len > 0 && str_eq(buf_str(&key->last), buf_str(&key->next)))
        return two_alike(err);
    if (key->passed && key->last.len == 0 && is_from(key))
        return two_alike(err);
    key->last = key->next;
    key->next = swap;
    return SQL_KEY_TAKEN;
}

void
sql_key_position(const struct sql_key *key, int64_t given, struct buf *position)
{
    struct buf last = key->last;
    scoped(xfree_ptr) char *from = NULL;

    buf_addf(position, "{\"rows\":%lld", (long long)given);
    if (last.len == 0 && key->from) /* no row yet in this run */
        from = json_dumps(key->from, JSON_COMPACT);
    if (last.len > 0 || from)
        buf_addf(position, ",\"key\":%s", from ? from : buf_str(&last));
    buf_add_str(position, "}");
}

/*
 * A scanner that knows just enough of SQL to see where a name cannot be one.
 * Each skip function is called at the first byte of a construct and answers
 * with the first byte behind it, or NULL when it never ends.
 */
#include "io/sql_text.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/strs.h"
#include "db/value.h"
#include "io/cell_text.h"

#include <ctype.h>
#include <string.h>

#define NAME_MAX_BYTES 64

struct scanner {
    const char *sql;
    bool pg;
    struct arena *arena;
    struct buf out;
    struct sql_text made;
};

static bool
starts_name(char c)
{
    return isalpha((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

static bool
in_name(char c)
{
    return starts_name(c) || isdigit((unsigned char)c);
}

static void
place_of(const char *sql, const char *at, int *ret_line, int *ret_column)
{
    *ret_line = 1;
    *ret_column = 1;
    for (const char *p = sql; p < at; p++) {
        (*ret_column)++;
        if (*p == '\n') {
            (*ret_line)++;
            *ret_column = 1;
        }
    }
}

static int
fail_at(const char *sql, const char *at, struct err *err, const char *what)
{
    int line, column;

    place_of(sql, at, &line, &column);
    return err_set(err, ERR_CONFIG, "sql, line %d, column %d: %s", line, column, what);
}

/* '…' or "…" or `…` with the quote doubled inside; backslash: E'…'. */
static const char *
skip_quoted(const char *at, bool backslash)
{
    char quote = *at++;

    while (*at) {
        if (backslash && *at == '\\' && at[1])
            at += 2;
        else if (*at != quote)
            at++;
        else if (at[1] == quote)
            at += 2;
        else
            return at + 1;
    }
    return NULL;
}

static const char *
skip_block_comment(const char *at, bool nested)
{
    int depth = 0;

    while (*at) {
        if (at[0] == '/' && at[1] == '*' && (nested || depth == 0)) {
            depth++;
            at += 2;
        } else if (at[0] == '*' && at[1] == '/') {
            at += 2;
            if (--depth == 0)
                return at;
        } else {
            at++;
        }
    }
    return NULL;
}

/* $tag$ … $tag$; returns at itself when this is no dollar quote. */
static const char *
skip_dollar_quote(const char *at)
{
    const char *tag_end = at + 1;
    const char *close;
    size_t tag_len;

    if (starts_name(*tag_end)) {
        while (in_name(*tag_end))
            tag_end++;
    }
    if (*tag_end != '$')
        return at;
    tag_len = (size_t)(tag_end - at) + 1;
    close = tag_end + 1;
    while ((close = strchr(close, '$'))) {
        if (strncmp(close, at, tag_len) == 0)
            return close + tag_len;
        close++;
    }
    return NULL;
}

/* Is the quote at `at` that of an E'…' string? */
static bool
is_escape_string(const struct scanner *s, const char *at)
{
    if (!s->pg || *at != '\'' || at == s->sql || (at[-1] != 'E' && at[-1] != 'e'))
        return false;
    return at - 1 == s->sql || !in_name(at[-2]);
}

/* Quotes and comments; at itself: none begins here; NULL: never closed. */
static const char *
skip_opaque(const struct scanner *s, const char *at)
{
    if (*at == '\'' || *at == '"' || (*at == '`' && !s->pg))
        return skip_quoted(at, is_escape_string(s, at));
    if (at[0] == '-' && at[1] == '-')
        return at + strcspn(at, "\n");
    if (at[0] == '/' && at[1] == '*')
        return skip_block_comment(at, s->pg);
    if (*at == '$' && s->pg && (at == s->sql || !in_name(at[-1])))
        return skip_dollar_quote(at);
    return at;
}

static size_t
number_of(struct scanner *s, const char *name)
{
    struct sql_text *made = &s->made;

    for (size_t i = 0; i < made->count; i++) {
        if (str_eq(made->names[i], name))
            return i + 1;
    }
    made->names[made->count++] = name;
    return made->count;
}

/* :name at `at`; moves behind it. */
static int
take_name(struct scanner *s, const char **at, struct err *err)
{
    const char *start = *at + 1;
    size_t len = 0;

    while (in_name(start[len]))
        len++;
    if (len > NAME_MAX_BYTES)
        return fail_at(s->sql, *at, err, "a parameter's name is too long");
    if (s->made.count == SQL_TEXT_PARAMS_MAX)
        return fail_at(s->sql, *at, err, "more than 255 different parameters");
    buf_addf(&s->out, "$%zu", number_of(s, arena_strndup(s->arena, start, len)));
    *at = start + len;
    return 0;
}

/* One construct or one byte. */
static int
step(struct scanner *s, const char **at, struct err *err)
{
    const char *here = *at;
    const char *behind = skip_opaque(s, here);

    if (!behind)
        return fail_at(s->sql, here, err,
                       "a quote or comment begins here and never ends");
    if (behind > here) {
        buf_add(&s->out, here, (size_t)(behind - here));
        *at = behind;
        return 0;
    }
    if (here[0] == ':' && here[1] == ':') {
        buf_add(&s->out, "::", 2);
        *at += 2;
        return 0;
    }
    if (here[0] == ':' && starts_name(here[1]))
        return take_name(s, at, err);
    if (here[0] == '$' && isdigit((unsigned char)here[1]) &&
        (here == s->sql || !in_name(here[-1])))
        return fail_at(s->sql, here, err,
                       "parameters are written :name, not $1 (numbers are ours)");
    buf_add_char(&s->out, *here);
    (*at)++;
    return 0;
}

int
sql_text_rewrite(const char *sql, bool pg, struct arena *arena,
                 struct sql_text *ret_text, struct err *err)
{
    struct scanner s = {.sql = sql, .pg = pg, .arena = arena};
    const char *at = sql;
    int r = 0;

    buf_init(&s.out, 0);
    s.made.names = arena_array(arena, const char *, SQL_TEXT_PARAMS_MAX);
    while (*at && r == 0)
        r = step(&s, &at, err);
    if (r == 0)
        r = buf_check(&s.out, "the SQL text", err);
    if (r == 0) {
        s.made.text = arena_strndup(arena, buf_str(&s.out), s.out.len);
        *ret_text = s.made;
    }
    buf_release(&s.out);
    return r;
}

/* --- values --- */

/* The first :name in sql, for a message; the text's start when it hides. */
static const char *
find_name(const char *sql, const char *name)
{
    size_t len = strlen(name);

    for (const char *p = strchr(sql, ':'); p; p = strchr(p + 1, ':')) {
        if (strncmp(p + 1, name, len) == 0 && !in_name(p[1 + len]))
            return p;
    }
    return sql;
}

static const char *
scalar_text(const json_t *value, struct arena *arena)
{
    char text[CELL_TEXT_MAX];

    if (json_is_string(value))
        return json_string_value(value);
    if (json_is_integer(value))
        return arena_strndup(arena, text, text_i64(text, json_integer_value(value)));
    if (json_is_real(value))
        return arena_strndup(arena, text, text_real(text, json_real_value(value)));
    if (json_is_boolean(value))
        return json_is_true(value) ? "true" : "false";
    return NULL;
}

static struct db_value
list_value(const json_t *list, struct arena *arena)
{
    size_t n = json_array_size(list);
    int64_t *ints = arena_array(arena, int64_t, n + 1);
    const char **texts = arena_array(arena, const char *, n + 1);
    bool all_ints = n > 0;

    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(list, i);

        all_ints = all_ints && json_is_integer(item);
        ints[i] = json_integer_value(item);
        texts[i] = scalar_text(item, arena);
    }
    return all_ints ? p_i64_array(ints, n) : p_text_array(texts, n);
}

int
sql_text_value(const char *sql, const char *name, const json_t *params, bool pg,
               struct arena *arena, struct db_value *ret_value, struct err *err)
{
    const json_t *value = json_object_get(params, name);
    int line, column;

    if (!value) {
        place_of(sql, find_name(sql, name), &line, &column);
        return err_set(err, ERR_CONFIG,
                       "sql, line %d, column %d: there is no parameter :%s; declare it "
                       "under params",
                       line, column, name);
    }
    if (json_is_string(value))
        *ret_value = p_text_n(json_string_value(value), json_string_length(value));
    else if (json_is_integer(value))
        *ret_value = p_i64(json_integer_value(value));
    else if (json_is_boolean(value))
        *ret_value = p_bool(json_is_true(value));
    else if (json_is_real(value) && pg)
        *ret_value = p_decimal(scalar_text(value, arena));
    else if (json_is_real(value))
        *ret_value = p_real(json_real_value(value));
    else if (json_is_array(value))
        *ret_value = list_value(value, arena);
    else if (json_is_null(value))
        *ret_value = p_null();
    else
        return err_set(err, ERR_CONFIG, "parameter :%s is a map; SQL takes no maps",
                       name);
    return 0;
}

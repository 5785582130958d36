#include "io/call_text.h"

#include "base/buf.h"
#include "base/civil.h"
#include "base/err.h"
#include "base/strs.h"
#include "io/cell_text.h"
#include "io/io_ctx.h"
#include "io/row.h"

#include <ctype.h>
#include <string.h>

#define NAME_MAX_BYTES 144

enum name_kind { NAME_VALUE, NAME_KEY, NAME_TOKEN, NAME_DATE };

struct name {
    enum name_kind kind;
    char text[NAME_MAX_BYTES]; /* of a value, a key or a date's format */
};

static bool
is_word(const char *text)
{
    if (!*text)
        return false;
    for (; *text; text++)
        if (!isalnum((unsigned char)*text) && *text != '_')
            return false;
    return true;
}

/* The name behind '{' at *at; moves behind '}'. */
static int
take_name(const char *where, const char **at, struct name *ret, struct err *err)
{
    const char *start = *at + 1;
    size_t len = strcspn(start, "}");
    char whole[NAME_MAX_BYTES];
    const char *text = whole;

    if (start[len] != '}' || len == 0 || len >= sizeof(whole))
        return err_set(err, ERR_CONFIG, "%s: \"%.60s\": a '{' that begins no {name}",
                       where, *at);
    memcpy(whole, start, len);
    whole[len] = '\0';
    ret->kind = NAME_VALUE;
    if (str_starts_with(whole, "key:")) {
        ret->kind = NAME_KEY;
        text += 4;
    } else if (str_starts_with(whole, "date:")) {
        ret->kind = NAME_DATE;
        text += 5;
    } else if (str_eq(whole, "token")) {
        ret->kind = NAME_TOKEN;
    }
    if (ret->kind != NAME_DATE && !is_word(text))
        return err_set(
            err, ERR_CONFIG,
            "%s: {%s} is no name; letters, digits and _ only, or {key:NAME}, "
            "{date:yyyyMMdd}, {token}",
            where, whole);
    (void)str_copy(ret->text, sizeof(ret->text), text);
    *at = start + len + 1;
    return 0;
}

int
call_text_check(const char *where, const char *text, struct err *err)
{
    struct name name;

    while (*text) {
        if (*text == '{') {
            int r = take_name(where, &text, &name, err);

            if (r < 0)
                return r;
        } else if (*text++ == '}') {
            return err_set(err, ERR_CONFIG, "%s: a '}' that has no '{'", where);
        }
    }
    return 0;
}

void
call_text_keys(const char *text, void (*fn)(void *arg, const char *name), void *arg)
{
    struct err ignored = {0};
    struct name name;

    while ((text = strchr(text, '{'))) {
        if (take_name("", &text, &name, &ignored) < 0)
            return;
        if (name.kind == NAME_KEY)
            fn(arg, name.text);
    }
}

static void
note_key(void *arg, const char *name)
{
    *(bool *)arg = true;
}

int
call_text_check_plain(const char *where, const char *text, struct err *err)
{
    bool found = false;
    int r = call_text_check(where, text, err);

    if (r < 0)
        return r;
    call_text_keys(text, note_key, &found);
    return found ? err_set(err, ERR_CONFIG,
                           "%s: a {key:NAME} may stand only in what is sent: url, "
                           "query, headers, body, json",
                           where)
                 : 0;
}

void
percent_encode(struct buf *out, const char *text, size_t len)
{
    static const char hex[] = "0123456789ABCDEF";

    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];

        if (isalnum(c) || (c && strchr("-._~", c))) {
            buf_add_char(out, (char)c);
        } else {
            buf_add_char(out, '%');
            buf_add_char(out, hex[c >> 4]);
            buf_add_char(out, hex[c & 15]);
        }
    }
}

void
cell_as_text(const struct cell *cell, char *room, const char **ret_text,
             size_t *ret_len)
{
    *ret_text = room;
    switch ((enum cell_type)cell->type) {
    case CELL_BOOL:
        *ret_text = cell->i ? "true" : "false";
        *ret_len = cell->i ? 4 : 5;
        return;
    case CELL_INT:
        *ret_len = text_i64(room, cell->i);
        return;
    case CELL_REAL:
        *ret_len = text_real(room, cell->real);
        return;
    case CELL_DATE:
        *ret_len = text_date(room, cell->i);
        return;
    case CELL_TIMESTAMP:
        *ret_len = text_timestamp(room, cell->i, cell->zoneless, 'T');
        return;
    case CELL_DECIMAL:
    case CELL_TEXT:
    case CELL_BYTES:
        *ret_text = cell->text;
        *ret_len = cell->len;
        return;
    case CELL_NULL:
    case CELL_TYPE_COUNT:
        break;
    }
    *ret_len = 0;
}

/* yyyy, yy, MM, dd; all else as it is. */
static void
add_date(struct buf *out, const char *format, int64_t us)
{
    char iso[CIVIL_TEXT_SIZE] = "";

    civil_format_us(us, 0, iso); /* 2026-11-29T… */
    while (*format) {
        if (strncmp(format, "yyyy", 4) == 0) {
            buf_add(out, iso, 4);
            format += 4;
        } else if (strncmp(format, "yy", 2) == 0) {
            buf_add(out, iso + 2, 2);
            format += 2;
        } else if (strncmp(format, "MM", 2) == 0) {
            buf_add(out, iso + 5, 2);
            format += 2;
        } else if (strncmp(format, "dd", 2) == 0) {
            buf_add(out, iso + 8, 2);
            format += 2;
        } else {
            buf_add_char(out, *format++);
        }
    }
}

static int
param_text(const char *where, const char *name, const json_t *value, char *room,
           const char **ret_text, size_t *ret_len, struct err *err)
{
    *ret_text = room;
    *ret_len = 0;
    if (json_is_string(value)) {
        *ret_text = json_string_value(value);
        *ret_len = json_string_length(value);
    } else if (json_is_integer(value)) {
        *ret_len = text_i64(room, json_integer_value(value));
    } else if (json_is_real(value)) {
        *ret_len = text_real(room, json_real_value(value));
    } else if (json_is_boolean(value)) {
        *ret_text = json_is_true(value) ? "true" : "false";
        *ret_len = strlen(*ret_text);
    } else if (!json_is_null(value)) {
        return err_set(err, ERR_CONFIG, "%s: {%s} is a list; only a single value fits",
                       where, name);
    }
    return 0;
}

static int
plain_value(const char *where, const char *name, const struct call_names *names,
            char *room, const char **ret_text, size_t *ret_len, struct err *err)
{
    const json_t *param;

    for (size_t i = 0; i < names->width; i++)
        if (str_eq(names->columns[i].name, name)) {
            cell_as_text(&names->cells[i], room, ret_text, ret_len);
            return 0;
        }
    if (names->extra_name && str_eq(names->extra_name, name)) {
        *ret_text = names->extra_value;
        *ret_len = strlen(names->extra_value);
        return 0;
    }
    param = names->io ? json_object_get(names->io->params, name) : NULL;
    if (!param)
        return err_set(err, ERR_CONFIG,
                       "%s: {%s} is neither a column of the item nor a parameter",
                       where, name);
    return param_text(where, name, param, room, ret_text, ret_len, err);
}

static int
value_of(const char *where, const struct name *name, struct call_names *names,
         struct buf *date, char *room, const char **ret_text, size_t *ret_len,
         struct err *err)
{
    switch (name->kind) {
    case NAME_KEY:
        *ret_text = names->io->key(names->io, name->text);
        if (!*ret_text)
            return err_set(err, ERR_CONFIG,
                           "%s: the key %s is not in this worker's environment; set it "
                           "there, and name it under `keys` and the job's `needs_keys`",
                           where, name->text);
        break;
    case NAME_TOKEN:
        if (!names->token)
            return err_set(err, ERR_CONFIG, "%s: {token} needs a `token`", where);
        *ret_text = names->token;
        break;
    case NAME_DATE:
        add_date(date, name->text, names->io->local_us(names->io, names->budget));
        *ret_text = buf_str(date);
        break;
    case NAME_VALUE:
        return plain_value(where, name->text, names, room, ret_text, ret_len, err);
    }
    *ret_len = strlen(*ret_text);
    return 0;
}

static int
add_value(const char *where, const struct name *name, const char *text, size_t len,
          enum call_place place, struct buf *out, struct err *err)
{
    switch (place) {
    case CALL_URL:
    case CALL_QUERY:
        percent_encode(out, text, len);
        return 0;
    case CALL_HEADER:
        for (size_t i = 0; i < len; i++)
            if ((unsigned char)text[i] < 0x20 || text[i] == 0x7F)
                return err_set(err, ERR_INVALID,
                               "%s: {%s} has a control character, which a header may "
                               "not have",
                               where, name->text);
        break;
    case CALL_FILE:
        if (memchr(text, '/', len) || memchr(text, '\\', len) || memchr(text, 0, len))
            return err_set(err, ERR_INVALID, "%s: {%s} may not hold a separator", where,
                           name->text);
        break;
    case CALL_PLAIN:
        break;
    }
    buf_add(out, text, len);
    return 0;
}

int
call_text_fill(const char *where, const char *text, struct call_names *names,
               enum call_place place, struct buf *out, struct err *err)
{
    while (*text) {
        scoped(buf_release) struct buf date = {0};
        char room[CELL_TEXT_MAX];
        struct name name;
        const char *value = "";
        size_t len = strcspn(text, "{");
        int r;

        if (place == CALL_QUERY)
            percent_encode(out, text, len);
        else
            buf_add(out, text, len);
        text += len;
        if (!*text)
            break;
        r = take_name(where, &text, &name, err);
        if (r == 0)
            r = value_of(where, &name, names, &date, room, &value, &len, err);
        if (r == 0)
            r = add_value(where, &name, value, len, place, out, err);
        if (r < 0)
            return r;
    }
    return buf_check(out, where, err);
}

void
call_names_show(const struct call_names *names, struct buf *text)
{
    for (size_t i = 0; i < names->width && !text->overflow; i++) {
        char room[CELL_TEXT_MAX];
        const char *value;
        size_t len;

        cell_as_text(&names->cells[i], room, &value, &len);
        buf_addf(text, "%s%s=%.*s", i ? ", " : "", names->columns[i].name,
                 (int)(len > 60 ? 60 : len), value);
    }
}

/*
 * Finding a column starts behind the last one found: in records of one maker
 * the fields stand in one order, so mostly the first look is right.
 */
#include "io/columns.h"

#include "base/err.h"
#include "base/strs.h"
#include "base/utf8.h"
#include "io/cell_text.h"

#include <string.h>

void
columns_release(struct columns *columns)
{
    if (!columns)
        return;
    arena_release(&columns->arena);
    *columns = (struct columns){0};
}

enum cell_type
cell_type_of_word(const char *word)
{
    for (int type = 0; type < CELL_TYPE_COUNT; type++) {
        if (str_eq(cell_type_name((enum cell_type)type), word))
            return (enum cell_type)type;
    }
    return CELL_TEXT;
}

static void
append(struct columns *columns, const char *name, enum cell_type type)
{
    if (columns->width == columns->cap) {
        size_t cap = columns->cap ? columns->cap * 2 : 16;
        struct column *list = arena_array(&columns->arena, struct column, cap);

        if (columns->width)
            memcpy(list, columns->list, columns->width * sizeof(*list));
        columns->list = list;
        columns->cap = cap;
    }
    columns->list[columns->width++] = (struct column){.name = name, .type = type};
}

void
columns_declare(struct columns *columns, const json_t *def)
{
    json_t *map = json_is_object(def) ? (json_t *)(uintptr_t)def : NULL;
    const char *name;
    json_t *value;
    size_t i;

    columns->declared = def != NULL;
    json_object_foreach(map, name, value)
        append(columns, name, cell_type_of_word(json_string_value(value)));
    json_array_foreach(def, i, value)
        append(columns, json_string_value(value), CELL_NULL);
}

int
columns_add(struct columns *columns, const char *name, size_t len, struct err *err)
{
    if (columns->width == COLUMNS_MAX)
        return err_set(err, ERR_INVALID,
                       "more than %d fields; name those to be read under read.columns",
                       COLUMNS_MAX);
    append(columns, arena_strndup(&columns->arena, name, len), CELL_NULL);
    return 0;
}

size_t
columns_find(struct columns *columns, const char *name, size_t len)
{
    for (size_t k = 0; k < columns->width; k++) {
        size_t i = (columns->next + k) % columns->width;

        if (strncmp(columns->list[i].name, name, len) == 0 &&
            columns->list[i].name[len] == '\0') {
            columns->next = (i + 1) % columns->width;
            return i;
        }
    }
    return COLUMNS_NONE;
}

int
column_put(const struct column *column, struct row_set *rows, struct cell *cell,
           const char *text, size_t len, struct err *err)
{
    int r = cell_set_text(rows, cell, CELL_TEXT, text, len, column->name, err);

    if (r < 0 || column->type == CELL_TEXT || column->type == CELL_NULL)
        return r;
    if (cell_parse(cell, (int)column->type, cell->text, cell->len))
        return 0;
    return err_set(err, ERR_INVALID, "column %s: \"%.*s\" is no %s", column->name,
                   (int)utf8_cut(text, len, 40), text, cell_type_name(column->type));
}

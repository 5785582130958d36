/*
 * The map is worked out once, at open, into a list of moves: for each column that
 * comes out, where it comes from, what it is when blank, and its type. Per row there
 * is nothing left to look up.
 */
#include "io/process_map.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/strs.h"
#include "io/call_text.h"
#include "io/cast.h"
#include "io/cell_text.h"
#include "io/option.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX_BYTES (1 << 20)

/* clang-format off */
static const struct io_option options[] = {
    {"rename", IO_OPTION_MAP, false, NULL, "old name to new"},
    {"set", IO_OPTION_MAP, false, NULL, "column to text with {name}, or to a value"},
    {"default", IO_OPTION_MAP, false, NULL, "column to value, where it is blank"},
    {"cast", IO_OPTION_MAP, false, NULL, "column to type"},
    {"drop", IO_OPTION_LIST, false, NULL, "columns"},
    {"keep", IO_OPTION_LIST, false, NULL, "columns, in their new order"},
};
/* clang-format on */

struct move {
    const char *name;
    long from;            /* column of the row that comes in, or -1 */
    const json_t *set;    /* value or template; NULL: from */
    const json_t *filler; /* where it is blank */
    const char *cast;
};

struct map_processor {
    struct processor processor;
    const json_t *def;
    struct arena arena;
    const struct column *in; /* with their new names */
    size_t in_width;
    struct move *moves;
    size_t count;
};

static struct map_processor *
map_of(struct processor *processor)
{
    return container_of(processor, struct map_processor, processor);
}

static int
check_values(const char *key, const json_t *map, bool templates, struct err *err)
{
    const char *column;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)map, column, value)
    {
        if (json_is_object(value) || json_is_array(value))
            return err_set(err, ERR_CONFIG, "process.map.%s.%s: must be a single value",
                           key, column);
        if (templates && json_is_string(value)) {
            int r = call_text_check_plain(column, json_string_value(value), err);

            if (r < 0)
                return err_prefix(err, "process.map.%s", key);
        }
    }
    return 0;
}

int
process_map_check(const json_t *def, struct err *err)
{
    const char *column;
    json_t *value;
    int r = io_options_check("process.map", def, options, array_len(options), err);

    if (r == 0)
        r = check_values("set", json_object_get(def, "set"), true, err);
    if (r == 0)
        r = check_values("default", json_object_get(def, "default"), false, err);
    if (r < 0)
        return r;
    json_object_foreach(json_object_get(def, "rename"), column, value)
    {
        if (str_empty(json_string_value(value)))
            return err_set(err, ERR_CONFIG, "process.map.rename.%s: must be a name",
                           column);
    }
    json_object_foreach(json_object_get(def, "cast"), column, value)
    {
        if (!cast_known(json_string_value(value)))
            return err_set(err, ERR_CONFIG,
                           "process.map.cast.%s: must be text, integer, decimal, real, "
                           "boolean, date, timestamp, or a date by pattern such as "
                           "date:yyyyMMdd",
                           column);
    }
    return 0;
}

/* --- open --- */

static struct move *
find_move(struct map_processor *map, const char *name)
{
    for (size_t i = 0; i < map->count; i++)
        if (str_eq(map->moves[i].name, name))
            return &map->moves[i];
    return NULL;
}

static int
no_such_column(const char *key, const char *name, struct err *err)
{
    return err_set(err, ERR_CONFIG, "map.%s: there is no column \"%s\"", key, name);
}

static int
apply_rename(struct map_processor *map, struct column *columns, struct err *err)
{
    const char *old;
    json_t *name;

    json_object_foreach(json_object_get(map->def, "rename"), old, name)
    {
        long at = column_find(columns, map->in_width, old);

        if (at < 0)
            return no_such_column("rename", old, err);
        if (column_find(columns, map->in_width, json_string_value(name)) >= 0)
            return err_set(err, ERR_CONFIG,
                           "map.rename: there would be two columns named \"%s\"",
                           json_string_value(name));
        columns[at].name = json_string_value(name);
    }
    return 0;
}

static int
apply_values(struct map_processor *map, struct err *err)
{
    const char *name;
    json_t *value;
    struct move *move;

    json_object_foreach(json_object_get(map->def, "set"), name, value)
    {
        move = find_move(map, name);
        if (!move) {
            move = &map->moves[map->count++];
            *move = (struct move){.name = name, .from = -1};
        }
        move->set = value;
    }
    json_object_foreach(json_object_get(map->def, "default"), name, value)
    {
        move = find_move(map, name);
        if (!move)
            return no_such_column("default", name, err);
        move->filler = value;
    }
    json_object_foreach(json_object_get(map->def, "cast"), name, value)
    {
        move = find_move(map, name);
        if (!move)
            return no_such_column("cast", name, err);
        move->cast = json_string_value(value);
    }
    return 0;
}

static int
apply_choice(struct map_processor *map, struct err *err)
{
    const json_t *drop = json_object_get(map->def, "drop");
    const json_t *keep = json_object_get(map->def, "keep");
    struct move *kept;

    for (size_t i = 0; i < json_array_size(drop); i++) {
        struct move *move = find_move(map, json_string_value(json_array_get(drop, i)));

        if (!move)
            return no_such_column("drop", json_string_value(json_array_get(drop, i)),
                                  err);
        memmove(move, move + 1,
                (size_t)(map->moves + map->count - move - 1) * sizeof(*move));
        map->count--;
    }
    if (!keep)
        return 0;
    kept = arena_array(&map->arena, struct move, json_array_size(keep));
    for (size_t i = 0; i < json_array_size(keep); i++) {
        struct move *move = find_move(map, json_string_value(json_array_get(keep, i)));

        if (!move)
            return no_such_column("keep", json_string_value(json_array_get(keep, i)),
                                  err);
        kept[i] = *move;
    }
    map->moves = kept;
    map->count = json_array_size(keep);
    return 0;
}

static enum cell_type
type_of_move(const struct map_processor *map, const struct move *move)
{
    if (move->cast)
        return (enum cell_type)cast_type(move->cast);
    if (!move->set && move->from >= 0)
        return map->in[move->from].type;
    return CELL_NULL;
}

static int
map_open(struct processor *processor, const struct column *in, size_t width,
         size_t lanes, struct err *err)
{
    struct map_processor *map = map_of(processor);
    struct column *columns = arena_array(&map->arena, struct column, width + 1);
    struct column *out;
    int r;

    memcpy(columns, in, width * sizeof(*in));
    map->in = columns;
    map->in_width = width;
    map->moves =
        arena_array(&map->arena, struct move,
                    width + json_object_size(json_object_get(map->def, "set")));
    r = apply_rename(map, columns, err);
    for (size_t i = 0; i < width; i++)
        map->moves[map->count++] =
            (struct move){.name = columns[i].name, .from = (long)i};
    if (r == 0)
        r = apply_values(map, err);
    if (r == 0)
        r = apply_choice(map, err);
    if (r == 0 && map->count == 0)
        r = err_set(err, ERR_CONFIG, "map: no columns are left");
    if (r < 0)
        return r;
    out = arena_array(&map->arena, struct column, map->count);
    for (size_t i = 0; i < map->count; i++)
        out[i] = (struct column){.name = map->moves[i].name,
                                 .type = type_of_move(map, &map->moves[i])};
    processor->columns = out;
    processor->width = map->count;
    return 0;
}

/* --- rows --- */

static int
set_value(const struct map_processor *map, const json_t *value, const char *column,
          const struct cell *row, struct row_set *out, struct cell *cell,
          struct err *err)
{
    scoped(buf_release) struct buf text = {0};
    struct call_names names = {.io = map->processor.io,
                               .columns = map->in,
                               .cells = row,
                               .width = map->in_width};
    int r;

    *cell = (struct cell){0};
    if (json_is_integer(value))
        cell_set_i64(cell, CELL_INT, json_integer_value(value));
    else if (json_is_real(value))
        cell_set_real(cell, json_real_value(value));
    else if (json_is_boolean(value))
        cell_set_i64(cell, CELL_BOOL, json_is_true(value));
    if (!json_is_string(value))
        return 0;
    buf_init(&text, TEXT_MAX_BYTES);
    r = call_text_fill(column, json_string_value(value), &names, CALL_PLAIN, &text,
                       err);
    return r < 0 ? r
                 : cell_set_text(out, cell, CELL_TEXT, buf_str(&text), text.len, column,
                                 err);
}

static int
filler_value(const struct move *move, struct row_set *out, struct cell *cell,
             struct err *err)
{
    const json_t *value = move->filler;

    *cell = (struct cell){0};
    if (json_is_string(value))
        return cell_set_text(out, cell, CELL_TEXT, json_string_value(value),
                             json_string_length(value), move->name, err);
    if (json_is_integer(value))
        cell_set_i64(cell, CELL_INT, json_integer_value(value));
    else if (json_is_real(value))
        cell_set_real(cell, json_real_value(value));
    else if (json_is_boolean(value))
        cell_set_i64(cell, CELL_BOOL, json_is_true(value));
    return 0;
}

/* 0, PROCESS_FAILED, < 0 */
static int
move_cell(const struct map_processor *map, const struct move *move,
          const struct cell *row, struct row_set *out, struct cell *cell,
          struct item *item, struct err *err)
{
    char room[CELL_TEXT_MAX];
    const char *text;
    size_t len;
    int r = 0;

    if (move->from >= 0)
        *cell = row[move->from];
    if (move->set)
        r = set_value(map, move->set, move->name, row, out, cell, err);
    if (r == 0 && move->filler && cell_is_blank(cell))
        r = filler_value(move, out, cell, err);
    if (r < 0 || !move->cast || cell->type == CELL_NULL)
        return r;
    if (cast_cell(move->cast, out, cell))
        return 0;
    cell_as_text(cell, room, &text, &len);
    item->class = ITEM_PARSE;
    (void)err_set(err, ERR_INVALID, "column %s: \"%.*s\" is no %s", move->name,
                  (int)(len > 60 ? 60 : len), text, move->cast);
    return PROCESS_FAILED;
}

static int
map_run(struct processor *processor, size_t lane, struct item *item,
        const struct item_rows *in, struct row_set *out, char *why, struct err *err)
{
    struct map_processor *map = map_of(processor);

    for (size_t i = 0; i < in->count; i++) {
        const struct cell *row = row_set_row(in->set, in->first + i);
        struct cell *cells = row_set_add(out);

        for (size_t k = 0; k < map->count; k++) {
            int r = move_cell(map, &map->moves[k], row, out, &cells[k], item, err);

            if (r == PROCESS_FAILED && in->count > 1)
                err_prefix(err, "row %zu", i + 1);
            if (r != 0)
                return r;
        }
    }
    return PROCESS_DONE;
}

static void
map_free(struct processor *processor)
{
    struct map_processor *map = map_of(processor);

    arena_release(&map->arena);
    free(map);
}

static const struct processor_ops map_ops = {
    .open = map_open,
    .run = map_run,
    .free = map_free,
};

int
process_map_new(struct io_ctx *io, const json_t *def, struct processor **ret_processor,
                struct err *err)
{
    struct map_processor *map = xcalloc(1, sizeof(*map));

    map->processor.ops = &map_ops;
    map->processor.io = io;
    map->def = def;
    *ret_processor = &map->processor;
    return 0;
}

/*
 * A row_set keeps its cells in one array and its texts in a list of blocks, so
 * that pointers into texts stay good while more are added. Clearing only winds
 * both back: after the first chunk nothing is allocated any more.
 */
#include "io/row.h"

#include "base/arena.h"
#include "base/err.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES ((size_t)256 << 10)

struct row_block {
    struct row_block *next;
    size_t cap;
    size_t used;
    char data[];
};

void
row_set_init(struct row_set *rows, size_t max_bytes)
{
    *rows = (struct row_set){.max_bytes = max_bytes ? max_bytes : ROW_SET_MAX_BYTES};
}

static void
blocks_free(struct row_block *block)
{
    while (block) {
        struct row_block *next = block->next;

        free(block);
        block = next;
    }
}

void
row_set_release(struct row_set *rows)
{
    if (!rows)
        return;
    blocks_free(rows->blocks);
    free(rows->cells);
    *rows = (struct row_set){0};
}

/* Blocks made for one giant text are given back: they would be kept for ever. */
static void
blocks_rewind(struct row_set *rows)
{
    struct row_block **link = &rows->blocks;

    while (*link) {
        struct row_block *block = *link;

        if (block->cap > BLOCK_BYTES) {
            *link = block->next;
            free(block);
        } else {
            block->used = 0;
            link = &block->next;
        }
    }
    rows->fill = rows->blocks;
}

void
row_set_clear(struct row_set *rows, size_t width)
{
    assert(width > 0);
    blocks_rewind(rows);
    rows->width = width;
    rows->count = 0;
    rows->bytes = 0;
}

struct cell *
row_set_add(struct row_set *rows)
{
    size_t need = (rows->count + 1) * rows->width;
    struct cell *row;

    if (need > rows->cells_cap) {
        size_t cap = rows->cells_cap ? rows->cells_cap : 64 * rows->width;

        while (cap < need)
            cap *= 2;
        rows->cells = xrealloc(rows->cells, cap * sizeof(*rows->cells));
        rows->cells_cap = cap;
    }
    row = row_set_row(rows, rows->count++);
    memset(row, 0, rows->width * sizeof(*row));
    return row;
}

void
row_set_drop_last(struct row_set *rows)
{
    assert(rows->count > 0);
    rows->count--;
}

bool
row_set_full(const struct row_set *rows)
{
    /* Cells count too: a million NULL columns need memory as well. */
    return rows->bytes + rows->count * rows->width * sizeof(struct cell) >=
           rows->max_bytes;
}

static struct row_block *
block_new(size_t cap)
{
    struct row_block *block = xmalloc(sizeof(*block) + cap);

    block->next = NULL;
    block->cap = cap;
    block->used = 0;
    return block;
}

char *
row_set_bytes(struct row_set *rows, size_t len)
{
    struct row_block *fill = rows->fill;
    char *at;

    while (fill && fill->cap - fill->used < len && fill->next)
        fill = fill->next;
    if (!fill || fill->cap - fill->used < len) {
        struct row_block *block = block_new(len > BLOCK_BYTES ? len : BLOCK_BYTES);

        if (fill)
            fill->next = block;
        else
            rows->blocks = block;
        fill = block;
    }
    rows->fill = fill;
    at = fill->data + fill->used;
    fill->used += len;
    rows->bytes += len;
    return at;
}

int
cell_set_text(struct row_set *rows, struct cell *cell, enum cell_type type,
              const char *text, size_t len, const char *column, struct err *err)
{
    char *copy;

    if (len > CELL_MAX_BYTES)
        return err_set(
            err, ERR_TOO_LARGE,
            "column %s: a value of %zu bytes is over the %zu a cell may have; "
            "leave the column out or cut it in the source",
            column, len, CELL_MAX_BYTES);
    copy = row_set_bytes(rows, len);
    if (len)
        memcpy(copy, text, len);
    cell->type = (uint8_t)type;
    cell->len = (uint32_t)len;
    cell->text = copy;
    return 0;
}

const char *
cell_type_name(enum cell_type type)
{
    static const char *const names[] = {
        [CELL_NULL] = "null",           [CELL_BOOL] = "boolean",
        [CELL_INT] = "integer",         [CELL_DECIMAL] = "decimal",
        [CELL_REAL] = "real",           [CELL_TEXT] = "text",
        [CELL_BYTES] = "bytes",         [CELL_DATE] = "date",
        [CELL_TIMESTAMP] = "timestamp",
    };

    static_assert_count(names, CELL_TYPE_COUNT);
    return names[type];
}

/*
 * Text for people and terminals: aligned tables, numbers that can be read, and no
 * control character of somebody else's text ever reaching a terminal as it is.
 */
#ifndef CLI_PRINT_H
#define CLI_PRINT_H

#include "base/compiler.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct arena;
struct buf;
struct cli;

/* Append text with controls, DEL, line separators and bidi marks as \x1b or \u202e. */
void print_escape(struct buf *buf, const char *text);

/* Columns that text takes on a terminal (wide Korean, Chinese, Japanese count two). */
size_t print_width(const char *text);

/* "63,468" */
const char *print_count(struct arena *arena, int64_t count);
/* "5.1 MiB" */
const char *print_bytes(struct arena *arena, int64_t bytes);
/* "0:07", "2:05:00" */
const char *print_span(struct arena *arena, int64_t seconds);

/* Members of an answer; "" or -1 where there is none. */
const char *json_text_of(const json_t *object, const char *key);
int64_t json_count_of(const json_t *object, const char *key);

/* "by ann since 2026-11-29T22:00:00" of a job or lane; "" if it is not paused. In
 * verb_pause.c. */
const char *print_paused(struct cli *cli, const json_t *item);

/* JSON in one line, in the arena. */
const char *print_compact(struct arena *arena, const json_t *json);

/* One line of JSON on stdout. */
void print_json(const json_t *json);

/* May colours be used on this stream: a terminal, and NO_COLOR is not set? */
bool print_colours(FILE *out);

/* --- tables --- */

#define TABLE_COLUMNS_MAX 12

struct table_column {
    const char *head;
    bool right;
};

/* Cells are in the arena; fill row by row, all columns of each. */
struct table {
    struct arena *arena;
    const struct table_column *columns;
    size_t n_columns;
    const char **cells;
    size_t n_cells;
    size_t cap;
};

/* NULL or "" is shown as "-". The text is escaped. */
void table_add(struct table *table, const char *text);
void table_print(const struct table *table, FILE *out);

#endif

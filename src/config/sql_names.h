/*
 * Where `:name` stands in a piece of SQL: not in quotes, comments or
 * dollar-quoted bodies, and not in a cast (`::`). No state; any thread.
 */
#ifndef CONFIG_SQL_NAMES_H
#define CONFIG_SQL_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#define SQL_NAME_MAX 63

/* The next name from *at on, which is moved behind it; false at the end. Longer names
 * are cut. */
bool sql_names_next(const char **at, char name[SQL_NAME_MAX + 1]);

#endif

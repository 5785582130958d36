/*
 * Patterns: a small part of regular expressions that means the same here and in
 * PostgreSQL (`^(?:pattern)$`), matched against the whole text, by characters,
 * in time linear in the text. docs/parameters.md lists what is allowed. A
 * compiled pattern is read-only: any thread.
 */
#ifndef BASE_PATTERN_H
#define BASE_PATTERN_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>

struct err;
struct pattern;

/* -ERR_INVALID with the character's position and the remedy. */
int pattern_new(const char *text, struct pattern **ret_pattern,
                struct err *err) must_check;
void pattern_free(struct pattern *pattern);

/* text is UTF-8 of len bytes. */
bool pattern_matches(const struct pattern *pattern, const char *text, size_t len);

#endif

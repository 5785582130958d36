/*
 * "Did you mean": the known word nearest to what was written.
 */
#ifndef BASE_SUGGEST_H
#define BASE_SUGGEST_H

#include <stddef.h>

/* The best of the words (count of them, NULLs passed over), or NULL when none is
 * near: at most a third of the letters may differ. Letter case does not count. */
const char *suggest(const char *written, const char *const *words, size_t count);

#endif

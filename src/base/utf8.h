/* UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, up to U+10FFFF.
 * Lengths are bytes; texts may contain NUL. No state; any thread. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stdint.h>

struct buf;

/* One code point from the start of text; its bytes (1..4), or 0 if there is none. */
size_t utf8_decode(const char *text, size_t len, uint32_t *ret_code);
/* Into ret (4 bytes); bytes written, 0 for what is no code point. */
size_t utf8_encode(uint32_t code, char *ret);

bool utf8_valid(const char *text, size_t len);
/* Bytes up to the first bad one; len if all is well. */
size_t utf8_valid_prefix(const char *text, size_t len);
/* Append text with each ill-formed part replaced by one U+FFFD (as browsers do). */
void utf8_repair(const char *text, size_t len, struct buf *buf);
/* Code points; each bad byte counts as one. */
size_t utf8_count(const char *text, size_t len);
/* The longest length <= max_bytes that does not split a code point. */
size_t utf8_cut(const char *text, size_t len, size_t max_bytes);
/* Bytes of the first max_points code points; len if there are not more. */
size_t utf8_prefix(const char *text, size_t len, size_t max_points);

#endif

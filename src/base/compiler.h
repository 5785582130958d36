/*
 * What the compiler can do for us, under names that read well. Everything
 * here is a macro because it must be: attributes and compile-time checks.
 */
#ifndef BASE_COMPILER_H
#define BASE_COMPILER_H

#include "base/banned.h"

#include <stddef.h>

/* Run fn(&variable) when the variable goes out of scope, on every path. */
#define scoped(fn) __attribute__((cleanup(fn)))

/* The caller must look at the result. */
#define must_check __attribute__((warn_unused_result))

#define printf_like(fmt_at, args_at) __attribute__((format(printf, fmt_at, args_at)))

#define array_len(a) (sizeof(a) / sizeof((a)[0]))

#define static_assert_count(array, count)                                              \
    _Static_assert(array_len(array) == (count), #array " needs a row for each value")

#define unused_arg __attribute__((unused))

/* The struct that holds this member. */
#define container_of(ptr, type, member)                                                \
    ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#endif

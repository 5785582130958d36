/*
 * JSON, three ways: strict reading on top of jansson, streaming writing into a
 * struct buf, and the canonical form used to compare parameters (defined byte
 * for byte in docs/canonical-parameters.md). No state; any thread.
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include "base/buf.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct err;

#define JSON_DEPTH_MAX 64

/* For scoped(): drop the reference in *json. */
void json_drop(json_t **json);

/*
 * Reading. Refused, with the byte offset in the message: anything that is not
 * one JSON value from end to end, a key twice in one object, U+0000, invalid
 * UTF-8, lone surrogates, integers outside int64, reals outside double (to
 * infinity or to zero), nesting deeper than max_depth (<= JSON_DEPTH_MAX).
 * 0 or -ERR_INVALID; the caller owns *ret.
 */
int json_parse(const char *text, size_t len, int max_depth, json_t **ret,
               struct err *err) must_check;

/*
 * A member of an object. 0: found, *ret written (strings live as long as the
 * object). JSON_ABSENT: no such key, or null; *ret untouched, so that a default
 * put there before stays. -ERR_INVALID: another type, named in the message.
 */
enum json_get_outcome { JSON_FOUND, JSON_ABSENT };

int json_get_str(const json_t *object, const char *key, const char **ret,
                 struct err *err) must_check;
int json_get_i64(const json_t *object, const char *key, int64_t *ret,
                 struct err *err) must_check;
int json_get_bool(const json_t *object, const char *key, bool *ret,
                  struct err *err) must_check;
int json_get_double(const json_t *object, const char *key, double *ret,
                    struct err *err) must_check;
int json_get_object(const json_t *object, const char *key, json_t **ret_borrowed,
                    struct err *err) must_check;
int json_get_array(const json_t *object, const char *key, json_t **ret_borrowed,
                   struct err *err) must_check;

/* "object", "array", "string", "integer", "number", "true or false", "null". */
const char *json_type_word(const json_t *json);

/*
 * Writing. Commas are put by themselves; the nesting is asserted. Too long for
 * the buf shows in buf_check. Strings: invalid UTF-8 becomes U+FFFD, NULL is
 * written as null. Doubles: the fewest digits that read back the same; NaN and
 * infinities are null.
 */
#define JSON_OUT_DEPTH_MAX 128 /* room for a value of JSON_DEPTH_MAX in an envelope */

struct json_out {
    struct buf *buf; /* not owned */
    int depth;
    bool after_key;
    struct {
        bool object; /* else array */
        bool has_members;
    } levels[JSON_OUT_DEPTH_MAX];
};

void json_out_init(struct json_out *out, struct buf *buf);
void json_begin_object(struct json_out *out);
void json_end_object(struct json_out *out);
void json_begin_array(struct json_out *out);
void json_end_array(struct json_out *out);
void json_key(struct json_out *out, const char *key);

void json_put_str(struct json_out *out, const char *value);
void json_put_strn(struct json_out *out, const char *value, size_t len);
void json_put_i64(struct json_out *out, int64_t value);
void json_put_double(struct json_out *out, double value);
void json_put_bool(struct json_out *out, bool value);
void json_put_null(struct json_out *out);
/* Text that is one JSON value already; trusted. NULL: null. */
void json_put_raw(struct json_out *out, const char *json);
void json_put_value(struct json_out *out, const json_t *value);
/* RFC 3339 in UTC, milliseconds ("2026-11-29T19:28:05.123Z"); null for 0. */
void json_put_time_us(struct json_out *out, int64_t time_us);

void json_kv_str(struct json_out *out, const char *key, const char *value);
void json_kv_strn(struct json_out *out, const char *key, const char *value, size_t len);
void json_kv_i64(struct json_out *out, const char *key, int64_t value);
void json_kv_double(struct json_out *out, const char *key, double value);
void json_kv_bool(struct json_out *out, const char *key, bool value);
void json_kv_null(struct json_out *out, const char *key);
void json_kv_raw(struct json_out *out, const char *key, const char *json);
void json_kv_value(struct json_out *out, const char *key, const json_t *value);
void json_kv_time_us(struct json_out *out, const char *key, int64_t time_us);

/* Only the string literal with its quotes, escaped; for writers of their own. */
void json_escape(struct buf *buf, const char *value, size_t len);

/*
 * The canonical text of value, appended. -ERR_INVALID for numbers that have
 * none (docs/canonical-parameters.md) and for nesting over JSON_DEPTH_MAX;
 * -ERR_TOO_LARGE past the ceiling of buf.
 */
int json_canonical(const json_t *value, struct buf *buf, struct err *err) must_check;

#endif

/*
 * The log of a process: one line per event, JSON or text, to a descriptor (the
 * caller's, not closed here). Passed explicitly; lines may be written from any
 * thread at once, each by one write(2). Only worker/, api/ and cli/ log.
 *
 *     log_line(log, LOG_INFO, "request done", log_i64("request", id),
 *              log_str("job", job));
 *
 * Control characters, ESC, U+2028/9 and broken UTF-8 never reach the terminal:
 * they are escaped. A field longer than LOG_FIELD_MAX bytes is cut, marked "…".
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stdint.h>

struct clock;

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR, LOG_LEVEL_COUNT };
/* LOG_JOURNAL: as text, but with the level as syslog's number in front and no time: the
 * journal of systemd reads the one and has the other. */
enum log_format { LOG_TEXT, LOG_JSON, LOG_JOURNAL };

#define LOG_FIELD_MAX 8192
#define LOG_LINE_MAX  (1024 * 1024) /* longer ones count as lost */

struct log {
    int fd;
    enum log_level level; /* lines below it are not written */
    enum log_format format;
    const struct clock *clock;
    uint64_t lost; /* lines the descriptor did not take; read by log_lost() */
};

enum log_field_type { LOG_FIELD_END, LOG_FIELD_STR, LOG_FIELD_I64, LOG_FIELD_DOUBLE };

struct log_field {
    enum log_field_type type;
    const char *key; /* a plain word; not escaped in text */
    const char *str;
    int64_t i64;
    double real;
};

void log_init(struct log *log, int fd, enum log_level level, enum log_format format,
              const struct clock *clock);

/* 0 and *ret for "debug", "info", "warn", "error"; else -1. */
int log_level_parse(const char *word, enum log_level *ret) must_check;
const char *log_level_word(enum log_level level);

/* Lines lost so far (pipe full, disk full). */
uint64_t log_lost(const struct log *log);

static inline bool
log_wants(const struct log *log, enum log_level level)
{
    return log && level >= log->level;
}

/* NULL is written as null (JSON) or - (text). */
static inline struct log_field
log_str(const char *key, const char *value)
{
    return (struct log_field){.type = LOG_FIELD_STR, .key = key, .str = value};
}

static inline struct log_field
log_i64(const char *key, int64_t value)
{
    return (struct log_field){.type = LOG_FIELD_I64, .key = key, .i64 = value};
}

static inline struct log_field
log_double(const char *key, double value)
{
    return (struct log_field){.type = LOG_FIELD_DOUBLE, .key = key, .real = value};
}

/* A NULL log is allowed and says nothing. */
#define log_line(log, level, text, ...)                                                \
    log_write((log), (level), (text),                                                  \
              (const struct log_field[]){__VA_ARGS__ __VA_OPT__(, ){0}})

/* fields end with one of type LOG_FIELD_END. */
void log_write(struct log *log, enum log_level level, const char *text,
               const struct log_field *fields);

#endif

/*
 * A line is built whole in memory and handed to one write(2): the kernel keeps
 * lines of several threads apart (for pipes up to PIPE_BUF, for files with
 * O_APPEND). A line that cannot be written is counted, never waited for longer
 * than the descriptor itself makes us wait.
 */
#include "base/log.h"

#include "base/buf.h"
#include "base/civil.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/utf8.h"

#include <errno.h>
#include <inttypes.h>

static const char *const level_words[] = {
    [LOG_DEBUG] = "debug",
    [LOG_INFO] = "info",
    [LOG_WARN] = "warn",
    [LOG_ERROR] = "error",
};
static_assert_count(level_words, LOG_LEVEL_COUNT);

/* sd-daemon(3) */
static const int syslog_numbers[] = {
    [LOG_DEBUG] = 7,
    [LOG_INFO] = 6,
    [LOG_WARN] = 4,
    [LOG_ERROR] = 3,
};
static_assert_count(syslog_numbers, LOG_LEVEL_COUNT);

void
log_init(struct log *log, int fd, enum log_level level, enum log_format format,
         const struct clock *clock)
{
    *log = (struct log){.fd = fd, .level = level, .format = format, .clock = clock};
}

int
log_level_parse(const char *word, enum log_level *ret)
{
    for (size_t i = 0; i < array_len(level_words); i++)
        if (strcmp(word, level_words[i]) == 0) {
            *ret = (enum log_level)i;
            return 0;
        }
    return -1;
}

const char *
log_level_word(enum log_level level)
{
    return level < LOG_LEVEL_COUNT ? level_words[level] : "?";
}

uint64_t
log_lost(const struct log *log)
{
    return __atomic_load_n(&log->lost, __ATOMIC_RELAXED);
}

/* Would this code point do something to a terminal or break the line? C0, DEL,
 * C1, line and paragraph separators, and the marks that turn text around. */
static bool
is_unprintable(uint32_t code)
{
    return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x2028 ||
           code == 0x2029 || code == 0x200E || code == 0x200F ||
           (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069) ||
           code == 0xFEFF;
}

/* text in well-formed UTF-8; in quotes when a reader could not tell its end. */
static void
add_escaped(struct buf *line, const char *text, size_t len, bool quoted)
{
    for (size_t at = 0; at < len;) {
        uint32_t code = 0;
        size_t used = utf8_decode(text + at, len - at, &code);

        if (used == 0) {
            buf_addf(line, "\\x%02x", (unsigned char)text[at++]);
            continue;
        }
        if (code == '\n')
            buf_add_str(line, "\\n");
        else if (code == '\t')
            buf_add_str(line, "\\t");
        else if (code == '\r')
            buf_add_str(line, "\\r");
        else if (is_unprintable(code))
            buf_addf(line, "\\u%04" PRIx32, code);
        else if (quoted && (code == '"' || code == '\\'))
            buf_addf(line, "\\%c", (char)code);
        else
            buf_add(line, text + at, used);
        at += used;
    }
}

/* JSON allows these raw; terminals and line readers do not like them. */
static void
add_json_text(struct json_out *out, const char *text, size_t len, bool cut)
{
    struct buf whole = {0};
    struct buf safe = {0};

    utf8_repair(text, len, &whole);
    if (cut)
        buf_add_str(&whole, "…");
    json_escape(&safe, buf_str(&whole), whole.len);
    buf_clear(&whole);
    for (size_t at = 0; at < safe.len;) {
        uint32_t code = 0;
        size_t used = utf8_decode(safe.data + at, safe.len - at, &code);

        if (is_unprintable(code))
            buf_addf(&whole, "\\u%04" PRIx32, code);
        else
            buf_add(&whole, safe.data + at, used);
        at += used;
    }
    json_put_raw(out, buf_str(&whole));
    buf_release(&safe);
    buf_release(&whole);
}

static size_t
field_cut(const char *text, bool *ret_cut)
{
    size_t len = strnlen(text, LOG_FIELD_MAX + 4);
    size_t kept = utf8_cut(text, len, LOG_FIELD_MAX);

    *ret_cut = kept < len;
    return kept;
}

static void
add_json_field(struct json_out *out, const struct log_field *field)
{
    bool cut;
    size_t len;

    json_key(out, field->key);
    switch (field->type) {
    case LOG_FIELD_I64:
        json_put_i64(out, field->i64);
        return;
    case LOG_FIELD_DOUBLE:
        json_put_double(out, field->real);
        return;
    case LOG_FIELD_STR:
        break;
    case LOG_FIELD_END:
        return;
    }
    if (!field->str) {
        json_put_null(out);
        return;
    }
    len = field_cut(field->str, &cut);
    add_json_text(out, field->str, len, cut);
}

static void
add_json_line(struct buf *line, const char *time, enum log_level level,
              const char *text, const struct log_field *fields)
{
    struct json_out out;
    bool cut;
    size_t len = field_cut(text, &cut);

    json_out_init(&out, line);
    json_begin_object(&out);
    json_kv_str(&out, "time", time);
    json_kv_str(&out, "level", log_level_word(level));
    json_key(&out, "message");
    add_json_text(&out, text, len, cut);
    for (; fields->type != LOG_FIELD_END; fields++)
        add_json_field(&out, fields);
    json_end_object(&out);
}

static void
add_text_value(struct buf *line, const char *value)
{
    bool cut;
    size_t len = field_cut(value, &cut);
    bool quoted =
        len == 0 || strcspn(value, " \"=\\\n\t\r") < len || strcmp(value, "-") == 0;

    if (quoted)
        buf_add_char(line, '"');
    add_escaped(line, value, len, quoted);
    if (cut)
        buf_add_str(line, "…");
    if (quoted)
        buf_add_char(line, '"');
}

static void
add_text_field(struct buf *line, const struct log_field *field)
{
    buf_addf(line, " %s=", field->key);
    switch (field->type) {
    case LOG_FIELD_I64:
        buf_add_i64(line, field->i64);
        return;
    case LOG_FIELD_DOUBLE:
        buf_addf(line, "%.6g", field->real);
        return;
    case LOG_FIELD_STR:
        if (field->str)
            add_text_value(line, field->str);
        else
            buf_add_char(line, '-');
        return;
    case LOG_FIELD_END:
        return;
    }
}

static void
add_text_line(struct buf *line, const char *text, const struct log_field *fields)
{
    bool cut;
    size_t len = field_cut(text, &cut);

    add_escaped(line, text, len, false);
    if (cut)
        buf_add_str(line, "…");
    for (; fields->type != LOG_FIELD_END; fields++)
        add_text_field(line, fields);
}

static void
write_line(struct log *log, const struct buf *line)
{
    const char *at = line->data;
    size_t left = line->len;

    /* A second round only after a short write: the rest must follow, or the
     * next line would be glued to half of this one. */
    while (left > 0) {
        ssize_t put = write(log->fd, at, left);

        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0) {
            __atomic_add_fetch(&log->lost, 1, __ATOMIC_RELAXED);
            return;
        }
        at += put;
        left -= (size_t)put;
    }
}

void
log_write(struct log *log, enum log_level level, const char *text,
          const struct log_field *fields)
{
    scoped(buf_release) struct buf line = {.max = LOG_LINE_MAX};
    char time[CIVIL_TEXT_SIZE];
    int saved = errno;

    if (!log_wants(log, level))
        return;
    civil_format_us(clock_wall_us(log->clock), 3, time);
    if (log->format == LOG_JSON) {
        add_json_line(&line, time, level, text, fields);
    } else {
        if (log->format == LOG_JOURNAL)
            buf_addf(&line, "<%d>", syslog_numbers[level]);
        else
            buf_addf(&line, "%s %-5s ", time, log_level_word(level));
        add_text_line(&line, text, fields);
    }
    buf_add_char(&line, '\n');
    if (line.overflow)
        __atomic_add_fetch(&log->lost, 1, __ATOMIC_RELAXED);
    else
        write_line(log, &line);
    errno = saved;
}

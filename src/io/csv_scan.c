/*
 * A record is split in one pass over the buffer. When the buffer ends in the
 * middle of one, more is read and that record is split once more from its
 * start: rare, because the buffer holds thousands. Doubled quotes are closed up
 * in place, after the record is known to be whole.
 */
#include "io/csv_scan.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/fsio.h"
#include "base/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_BYTES ((size_t)256 << 10)

/* Of the splitting only: the buffer ends before the record does. */
enum split_outcome { SPLIT_DONE, SPLIT_MORE };

void
csv_scan_init(struct csv_scan *scan)
{
    *scan = (struct csv_scan){.fd = -1, .delimiter = ',', .line = 1};
}

void
csv_scan_release(struct csv_scan *scan)
{
    if (!scan)
        return;
    fd_close(&scan->fd);
    free(scan->path);
    free(scan->data);
    free(scan->fields);
    csv_scan_init(scan);
}

/* Drop what is read, make room, and read more behind it. */
static int
fill(struct csv_scan *scan, struct err *err)
{
    ssize_t n;

    if (scan->at > 0) {
        memmove(scan->data, scan->data + scan->at, scan->len - scan->at);
        scan->len -= scan->at;
        scan->base += (int64_t)scan->at;
        scan->at = 0;
    }
    if (scan->len >= CSV_RECORD_MAX_BYTES)
        return err_set(err, ERR_TOO_LARGE,
                       "%s:%lld: a record longer than %zu bytes; is a quote missing?",
                       scan->path, (long long)scan->line, CSV_RECORD_MAX_BYTES);
    if (scan->cap - scan->len < READ_BYTES) {
        scan->cap = scan->cap ? scan->cap * 2 : 2 * READ_BYTES;
        scan->data = xrealloc(scan->data, scan->cap);
    }
    do {
        n = read(scan->fd, scan->data + scan->len, scan->cap - scan->len);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return err_errno(err, ERR_IO, errno, "cannot read %s", scan->path);
    scan->len += (size_t)n;
    scan->eof = n == 0;
    return 0;
}

int
csv_scan_open(struct csv_scan *scan, const char *path, char delimiter, struct err *err)
{
    struct stat st;
    int r;

    csv_scan_release(scan);
    scan->delimiter = delimiter;
    scan->path = xstrdup(path);
    scan->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (scan->fd < 0)
        return err_errno(err, ERR_IO, errno, "cannot open %s", path);
    if (fstat(scan->fd, &st) != 0)
        return err_errno(err, ERR_IO, errno, "cannot look at %s", path);
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_IO, "%s is not a file; give the path of a CSV file",
                       path);
    r = fill(scan, err);
    if (r < 0)
        return r;
    if (scan->len >= 3 && memcmp(scan->data, "\xEF\xBB\xBF", 3) == 0)
        scan->at = 3;
    return 0;
}

int
csv_scan_seek(struct csv_scan *scan, int64_t offset, int64_t line, struct err *err)
{
    struct stat st;

    if (fstat(scan->fd, &st) != 0 || lseek(scan->fd, offset, SEEK_SET) < 0)
        return err_errno(err, ERR_IO, errno, "cannot seek in %s", scan->path);
    if (st.st_size < offset)
        return err_set(err, ERR_INVALID,
                       "%s has %lld bytes, the checkpoint stands at %lld: the file was "
                       "changed; ask for a new run (restart: false)",
                       scan->path, (long long)st.st_size, (long long)offset);
    scan->base = offset;
    scan->line = line;
    scan->len = 0;
    scan->at = 0;
    scan->eof = false;
    return 0;
}

int64_t
csv_scan_offset(const struct csv_scan *scan)
{
    return scan->base + (int64_t)scan->at;
}

static void
add_field(struct csv_scan *scan, const char *text, size_t len, bool quoted)
{
    if (scan->n_fields == scan->fields_cap) {
        scan->fields_cap = scan->fields_cap ? scan->fields_cap * 2 : 32;
        scan->fields = xrealloc(scan->fields, scan->fields_cap * sizeof(*scan->fields));
    }
    scan->fields[scan->n_fields++] =
        (struct csv_field){.text = text, .len = len, .quoted = quoted};
}

static int
bad_quote(const struct csv_scan *scan, int64_t line, const char *what, struct err *err)
{
    return err_set(err, ERR_INVALID, "%s:%lld: field %zu: %s", scan->path,
                   (long long)line, scan->n_fields + 1, what);
}

/* The closing quote of the field whose text begins at *at; *at moves behind it. */
static int
split_quoted(struct csv_scan *scan, size_t *at, int64_t *line, struct err *err)
{
    size_t start = *at, p = *at;

    for (;;) {
        const char *quote = memchr(scan->data + p, '"', scan->len - p);
        size_t end = quote ? (size_t)(quote - scan->data) : scan->len;

        for (const char *nl = scan->data + p;
             (nl = memchr(nl, '\n', (size_t)(scan->data + end - nl))); nl++)
            (*line)++;
        if (!quote && scan->eof)
            return bad_quote(scan, scan->line, "the quote is never closed", err);
        /* The byte behind decides: a second quote, or the end of the field. */
        if (!quote || (end + 1 == scan->len && !scan->eof))
            return SPLIT_MORE;
        p = end + 1;
        if (p < scan->len && scan->data[p] == '"') {
            p++;
            continue;
        }
        add_field(scan, scan->data + start, end - start, true);
        *at = p;
        return SPLIT_DONE;
    }
}

static void
split_plain(struct csv_scan *scan, size_t *at)
{
    size_t p = *at;

    for (; p < scan->len; p++) {
        char c = scan->data[p];

        if (c == scan->delimiter || c == '\n')
            break;
        /* A CR that no LF follows is part of the text. */
        if (c == '\r' && (p + 1 == scan->len || scan->data[p + 1] == '\n'))
            break;
    }
    add_field(scan, scan->data + *at, p - *at, false);
    *at = p;
}

/* What stands behind a field: another field or the record's end. */
static int
split_separator(struct csv_scan *scan, size_t *at, int64_t *line, bool *ret_another,
                struct err *err)
{
    size_t p = *at;

    *ret_another = false;
    if (p < scan->len && scan->data[p] == '\r')
        p++;
    if (p == scan->len) {
        *at = p;
        return scan->eof ? SPLIT_DONE : SPLIT_MORE;
    }
    if (scan->data[p] == '\n') {
        (*line)++;
        *at = p + 1;
        return SPLIT_DONE;
    }
    if (scan->data[*at] == scan->delimiter) {
        *ret_another = true;
        *at += 1;
        return SPLIT_DONE;
    }
    scan->n_fields--;
    return bad_quote(scan, *line, "text behind the closing quote", err);
}

/* One record from scan->at on; on SPLIT_DONE at and line stand behind it. */
static int
split_record(struct csv_scan *scan, struct err *err)
{
    size_t at = scan->at;
    int64_t line = scan->line;
    bool another = true;
    int r = SPLIT_DONE;

    scan->n_fields = 0;
    while (another && r == SPLIT_DONE) {
        if (at < scan->len && scan->data[at] == '"') {
            at++;
            r = split_quoted(scan, &at, &line, err);
        } else {
            split_plain(scan, &at);
        }
        if (r == SPLIT_DONE)
            r = split_separator(scan, &at, &line, &another, err);
    }
    if (r != SPLIT_DONE)
        return r;
    scan->at = at;
    scan->record_line = scan->line;
    scan->line = line;
    return SPLIT_DONE;
}

/* "" inside a quoted field is one quote; fields are in our own buffer. */
static void
close_up_quotes(struct csv_scan *scan)
{
    for (size_t i = 0; i < scan->n_fields; i++) {
        struct csv_field *field = &scan->fields[i];
        char *text = scan->data + (field->text - scan->data);
        char *quote = field->quoted ? memchr(text, '"', field->len) : NULL;
        char *to = quote;
        const char *end = text + field->len;

        if (!quote)
            continue;
        for (const char *from = quote; from < end; from++) {
            *to++ = *from;
            from += *from == '"';
        }
        field->len = (size_t)(to - text);
    }
}

static int
check_utf8(const struct csv_scan *scan, struct err *err)
{
    for (size_t i = 0; i < scan->n_fields; i++) {
        const struct csv_field *field = &scan->fields[i];
        size_t good = utf8_valid_prefix(field->text, field->len);

        if (good < field->len)
            return err_set(err, ERR_INVALID,
                           "%s:%lld: field %zu: byte 0x%02x is not UTF-8; convert the "
                           "file first (iconv -t UTF-8)",
                           scan->path, (long long)scan->record_line, i + 1,
                           (unsigned char)field->text[good]);
    }
    return 0;
}

int
csv_scan_next(struct csv_scan *scan, struct err *err)
{
    int r;

    for (;;) {
        if (scan->at == scan->len && scan->eof)
            return CSV_END;
        r = scan->at == scan->len ? SPLIT_MORE : split_record(scan, err);
        if (r < 0)
            return r;
        if (r == SPLIT_MORE) {
            r = fill(scan, err);
            if (r < 0)
                return r;
            continue;
        }
        if (scan->n_fields == 1 && scan->fields[0].len == 0 &&
            !scan->fields[0].quoted && !scan->keep_blank)
            continue;
        break;
    }
    r = check_utf8(scan, err);
    if (r < 0)
        return r;
    close_up_quotes(scan);
    return CSV_RECORD;
}

/*
 * A record is split in one pass over the buffer. When the buffer ends in the
 * middle of one, more is read and that record is split once more from its
 * start: rare, because the buffer holds thousands. Doubled quotes are closed up
 * in place, after the record is known to be whole.
 *
 * A file in another encoding is decoded line by line, which is exact because in
 * all of ours a line's end is the same bytes wherever it stands. A record begins
 * where a line does, so the list of lines' borders turns its place in the decoded
 * text into its offset in the file.
 */
#include "io/csv_scan.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/fsio.h"
#include "base/utf8.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_BYTES ((size_t)256 << 10)

/* Of the splitting only: the buffer ends before the record does. */
enum split_outcome { SPLIT_DONE, SPLIT_MORE, SPLIT_BAD };

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
    charset_decoder_close(&scan->decoding.decoder);
    free(scan->decoding.raw);
    free(scan->decoding.borders);
    buf_release(&scan->decoding.line);
    free(scan->path);
    free(scan->data);
    free(scan->fields);
    csv_scan_init(scan);
}

static int
too_long(const struct csv_scan *scan, struct err *err)
{
    return err_set(err, ERR_TOO_LARGE,
                   "%s:%lld: a record longer than %zu bytes; is a quote missing?",
                   scan->path, (long long)scan->line, CSV_RECORD_MAX_BYTES);
}

/* More bytes of the file into to; *ret_len 0 at its end. */
static int
read_some(struct csv_scan *scan, char *to, size_t room, size_t *ret_len,
          struct err *err)
{
    ssize_t n;

    do {
        n = read(scan->fd, to, room);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return err_errno(err, ERR_IO, errno, "cannot read %s", scan->path);
    *ret_len = (size_t)n;
    return 0;
}

static void
make_room(char **data, size_t *cap, size_t len, size_t more)
{
    if (*cap - len >= more)
        return;
    while (*cap - len < more)
        *cap = *cap ? *cap * 2 : 2 * READ_BYTES;
    *data = xrealloc(*data, *cap);
}

/* --- decoding --- */

static void
add_border(struct csv_scan *scan, int64_t at, int64_t offset)
{
    struct csv_decoding *d = &scan->decoding;

    if (d->n_borders == d->borders_cap) {
        d->borders_cap = d->borders_cap ? d->borders_cap * 2 : 256;
        d->borders = xrealloc(d->borders, d->borders_cap * sizeof(*d->borders));
    }
    d->borders[d->n_borders++] = (struct csv_border){at, offset};
}

/* Bytes of the first line in text, its end included; 0: the end is not there yet. */
static size_t
raw_line(const struct charset *charset, const char *text, size_t len)
{
    const char *at = text;

    if (charset->unit == 1) {
        at = memchr(text, '\n', len);
        return at ? (size_t)(at - text) + 1 : 0;
    }
    for (size_t i = 0; i + 1 < len; i += 2) {
        if (text[i + charset->big_endian] == '\n' &&
            text[i + !charset->big_endian] == '\0')
            return i + 2;
    }
    return 0;
}

static void
decode_line(struct csv_scan *scan, const char *text, size_t len, int64_t offset)
{
    struct csv_decoding *d = &scan->decoding;

    buf_clear(&d->line);
    charset_decode(&d->decoder, text, len, &d->line);
    make_room(&scan->data, &scan->cap, scan->len, d->line.len + 1);
    if (d->line.len)
        memcpy(scan->data + scan->len, d->line.data, d->line.len);
    scan->len += d->line.len;
    add_border(scan, scan->base + (int64_t)scan->len, offset + (int64_t)len);
}

/* The whole lines of what is read, decoded behind data; at the end the rest too. */
static int
fill_decoded(struct csv_scan *scan, struct err *err)
{
    struct csv_decoding *d = &scan->decoding;
    size_t n = 0, at = 0;
    int r;

    if (d->raw_len >= CSV_RECORD_MAX_BYTES)
        return too_long(scan, err);
    make_room(&d->raw, &d->raw_cap, d->raw_len, READ_BYTES);
    r = read_some(scan, d->raw + d->raw_len, d->raw_cap - d->raw_len, &n, err);
    if (r < 0)
        return r;
    d->raw_len += n;
    scan->eof = n == 0;
    while (at < d->raw_len) {
        size_t len = raw_line(d->decoder.charset, d->raw + at, d->raw_len - at);

        if (len == 0 && !scan->eof)
            break;
        if (len == 0)
            len = d->raw_len - at;
        decode_line(scan, d->raw + at, len, d->raw_base + (int64_t)at);
        at += len;
    }
    memmove(d->raw, d->raw + at, d->raw_len - at);
    d->raw_len -= at;
    d->raw_base += (int64_t)at;
    return 0;
}

/* --- the buffer --- */

static void
drop_read(struct csv_scan *scan)
{
    struct csv_decoding *d = &scan->decoding;
    size_t gone = 0;

    memmove(scan->data, scan->data + scan->at, scan->len - scan->at);
    scan->len -= scan->at;
    scan->base += (int64_t)scan->at;
    scan->at = 0;
    while (gone < d->n_borders && d->borders[gone].at < scan->base)
        gone++;
    if (gone) {
        d->n_borders -= gone;
        memmove(d->borders, d->borders + gone, d->n_borders * sizeof(*d->borders));
    }
}

/* Drop what is read, make room, and read more behind it. */
static int
fill(struct csv_scan *scan, struct err *err)
{
    size_t n = 0;
    int r;

    if (scan->at > 0)
        drop_read(scan);
    if (scan->len >= CSV_RECORD_MAX_BYTES)
        return too_long(scan, err);
    if (scan->decoding.decoder.open)
        return fill_decoded(scan, err);
    make_room(&scan->data, &scan->cap, scan->len, READ_BYTES);
    r = read_some(scan, scan->data + scan->len, scan->cap - scan->len, &n, err);
    if (r < 0)
        return r;
    scan->len += n;
    scan->eof = n == 0;
    return 0;
}

/* Which of the two UTF-16 is it? Without a mark the little-endian one. */
static int
choose_utf16(struct csv_scan *scan, const struct charset **charset, struct err *err)
{
    unsigned char mark[2] = {0, 0};

    if (pread(scan->fd, mark, sizeof(mark), 0) < 0)
        return err_errno(err, ERR_IO, errno, "cannot read %s", scan->path);
    *charset =
        charset_find(mark[0] == 0xfe && mark[1] == 0xff ? "utf-16be" : "utf-16le");
    return 0;
}

static int
start_decoding(struct csv_scan *scan, const struct charset *charset, struct err *err)
{
    int r = charset->from_bom ? choose_utf16(scan, &charset, err) : 0;

    if (r < 0)
        return r;
    if (!charset_decoder_open(&scan->decoding.decoder, charset))
        return err_set(err, ERR_CONFIG,
                       "read.encoding: the C library here has no %s; convert %s first",
                       charset->iconv, scan->path);
    buf_init(&scan->decoding.line, 4 * CSV_RECORD_MAX_BYTES);
    add_border(scan, 0, 0);
    return 0;
}

int
csv_scan_open(struct csv_scan *scan, const char *path, char delimiter,
              const struct charset *charset, struct err *err)
{
    struct stat st;
    int r = 0;

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
    if (charset->iconv)
        r = start_decoding(scan, charset, err);
    if (r == 0)
        r = fill(scan, err);
    if (r < 0)
        return r;
    if (scan->len >= 3 && memcmp(scan->data, "\xEF\xBB\xBF", 3) == 0) {
        scan->at = 3;
        if (charset->unit == 2) { /* behind the border that stands for the start */
            scan->decoding.borders[0] = (struct csv_border){3, 2};
        }
    }
    return 0;
}

int
csv_scan_seek(struct csv_scan *scan, int64_t offset, int64_t line, struct err *err)
{
    struct csv_decoding *d = &scan->decoding;

    if (lseek(scan->fd, offset, SEEK_SET) < 0)
        return err_errno(err, ERR_IO, errno, "cannot seek in %s", scan->path);
    scan->base = offset;
    scan->line = line;
    scan->len = 0;
    scan->at = 0;
    scan->eof = false;
    d->raw_len = 0;
    d->raw_base = offset;
    d->n_borders = 0;
    if (d->decoder.open)
        add_border(scan, offset, offset);
    return 0;
}

int64_t
csv_scan_offset(const struct csv_scan *scan)
{
    const struct csv_decoding *d = &scan->decoding;
    int64_t at = scan->base + (int64_t)scan->at;
    size_t low = 0, high = d->n_borders;

    if (!d->decoder.open)
        return at;
    /* A record begins at a line's border: it is in the list. */
    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (d->borders[mid].at < at)
            low = mid + 1;
        else
            high = mid;
    }
    assert(low < d->n_borders && d->borders[low].at == at);
    return d->borders[low].offset;
}

/* --- records --- */

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

static void
bad_quote(const struct csv_scan *scan, int64_t line, const char *what, struct err *err)
{
    (void)err_set(err, ERR_INVALID, "%s:%lld: field %zu: %s", scan->path,
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
        if (!quote && scan->eof) {
            bad_quote(scan, scan->line, "the quote is never closed", err);
            return -ERR_INVALID;
        }
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
    bad_quote(scan, *line, "text behind the closing quote", err);
    return SPLIT_BAD;
}

/* Behind the line in which a record went wrong at `at`. */
static int
pass_over(struct csv_scan *scan, size_t at, int64_t line, struct err *err)
{
    const char *end = memchr(scan->data + at, '\n', scan->len - at);

    if (!end && !scan->eof) {
        err_clear(err); /* it is found again */
        return SPLIT_MORE;
    }
    scan->record_line = scan->line;
    scan->line = line + (end != NULL);
    scan->at = end ? (size_t)(end - scan->data) + 1 : scan->len;
    return SPLIT_BAD;
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
    if (r == SPLIT_BAD)
        return pass_over(scan, at, line, err);
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

/* Line and column (in characters) of a place in the last record. */
static void
where_is(const struct csv_scan *scan, const char *place, int64_t *ret_line,
         size_t *ret_column)
{
    const char *start = scan->data + scan->record_at;
    int64_t line = scan->record_line;

    for (const char *nl; (nl = memchr(start, '\n', (size_t)(place - start)));
         start = nl + 1)
        line++;
    *ret_line = line;
    *ret_column = utf8_count(start, (size_t)(place - start)) + 1;
}

static int
not_text(const struct csv_scan *scan, size_t field, const char *place, struct err *err)
{
    const struct charset_decoder *decoder = &scan->decoding.decoder;
    int64_t line;
    size_t column;

    where_is(scan, place, &line, &column);
    if (*place == '\0')
        (void)err_set(err, ERR_INVALID,
                      "%s:%lld:%zu: field %zu: a NUL byte is no text; is the file in "
                      "another encoding (read.encoding: utf-16 …)?",
                      scan->path, (long long)line, column, field + 1);
    else if (!decoder->open)
        (void)err_set(err, ERR_INVALID,
                      "%s:%lld:%zu: field %zu: byte 0x%02x is not UTF-8; give the "
                      "file's encoding (read.encoding: cp949, utf-16 …)",
                      scan->path, (long long)line, column, field + 1,
                      (unsigned char)*place);
    else
        (void)err_set(
            err, ERR_INVALID, "%s:%lld:%zu: field %zu: byte 0x%02x is not %s%s",
            scan->path, (long long)line, column, field + 1, charset_marked(place),
            decoder->charset->name,
            strcmp(decoder->charset->name, "euc-kr") == 0 ? "; is the file in cp949?"
                                                          : "");
    return CSV_BAD;
}

/* Databases and JSON take no NUL in a text, so it is told here, with its place. */
static int
check_text(const struct csv_scan *scan, struct err *err)
{
    for (size_t i = 0; i < scan->n_fields; i++) {
        const struct csv_field *field = &scan->fields[i];
        size_t good = utf8_valid_prefix(field->text, field->len);
        const char *nul = good > 0 ? memchr(field->text, '\0', good) : NULL;

        if (nul)
            good = (size_t)(nul - field->text);
        if (good < field->len)
            return not_text(scan, i, field->text + good, err);
    }
    return CSV_RECORD;
}

int
csv_scan_next(struct csv_scan *scan, struct err *err)
{
    int r;

    for (;;) {
        if (scan->at == scan->len && scan->eof)
            return CSV_END;
        scan->record_at = scan->at;
        r = scan->at == scan->len ? SPLIT_MORE : split_record(scan, err);
        if (r < 0)
            return r;
        if (r == SPLIT_BAD)
            return CSV_BAD;
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
    r = check_text(scan, err);
    if (r == CSV_RECORD)
        close_up_quotes(scan);
    return r;
}

/*
 * Numbers and dates as text, without the C library's locale and, for what is
 * frequent, without its slow general formatting. Reading is wider than
 * base/civil.h, which knows RFC 3339 only: databases write "+09", leave seconds
 * out, and have times of day without a zone.
 */
#include "io/cell_text.h"

#include "base/civil.h"
#include "io/row.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define US_PER_DAY    INT64_C(86400000000)
#define US_PER_SECOND INT64_C(1000000)

static size_t
text_u64(char *out, uint64_t value)
{
    char tmp[24];
    size_t n = 0;

    do {
        tmp[n++] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    for (size_t i = 0; i < n; i++)
        out[i] = tmp[n - 1 - i];
    return n;
}

size_t
text_i64(char *out, int64_t value)
{
    if (value >= 0)
        return text_u64(out, (uint64_t)value);
    out[0] = '-';
    return 1 + text_u64(out + 1, -(uint64_t)value);
}

static char *
put_padded(char *out, uint64_t value, int width)
{
    for (int i = width - 1; i >= 0; i--) {
        out[i] = (char)('0' + value % 10);
        value /= 10;
    }
    return out + width;
}

/* Drop zeros behind the last digit that matters, and a bare point. */
static char *
trim_zeros(char *end)
{
    while (end[-1] == '0')
        end--;
    return end[-1] == '.' ? end - 1 : end;
}

/*
 * Most reals in databases are short decimals. If n / 10^k gives back the same
 * double, then "n/10^k" written out reads back as it too: both n and 10^k are
 * exact and division rounds as reading does. Returns 0 when there is no such n.
 */
static size_t
text_short_real(char *out, double value)
{
    static const double powers[] = {1, 10, 100, 1e3, 1e4, 1e5, 1e6};
    double magnitude = fabs(value);

    for (size_t k = 0; k < array_len(powers); k++) {
        double scaled = magnitude * powers[k];
        uint64_t n, unit = (uint64_t)powers[k];
        char *p = out;

        if (scaled >= 9e15)
            return 0;
        n = (uint64_t)(scaled + 0.5);
        if ((double)n / powers[k] != magnitude)
            continue;
        if (signbit(value))
            *p++ = '-';
        p += text_u64(p, n / unit);
        if (k > 0) {
            *p++ = '.';
            p = trim_zeros(put_padded(p, n % unit, (int)k));
        }
        return (size_t)(p - out);
    }
    return 0;
}

size_t
text_real(char *out, double value)
{
    char tmp[CELL_TEXT_MAX];
    size_t n;

    if (isnan(value) || isinf(value)) {
        const char *word = isnan(value) ? "NaN" : value < 0 ? "-Infinity" : "Infinity";

        n = strlen(word);
        memcpy(out, word, n);
        return n;
    }
    n = text_short_real(out, value);
    if (n > 0)
        return n;
    for (int digits = 15; digits <= 17; digits++) {
        n = (size_t)snprintf(tmp, sizeof(tmp), "%.*g", digits, value);
        if (strtod(tmp, NULL) == value)
            break;
    }
    memcpy(out, tmp, n);
    return n;
}

size_t
text_date(char *out, int64_t days)
{
    int year, month, day;
    char *p = out;

    civil_from_days(days, &year, &month, &day);
    if (year < 0) {
        *p++ = '-';
        year = -year;
    }
    if (year <= 9999)
        p = put_padded(p, (uint64_t)year, 4);
    else
        p += text_i64(p, year);
    *p++ = '-';
    p = put_padded(p, (uint64_t)month, 2);
    *p++ = '-';
    p = put_padded(p, (uint64_t)day, 2);
    return (size_t)(p - out);
}

size_t
text_timestamp(char *out, int64_t us, bool zoneless, char separator)
{
    int64_t day = us / US_PER_DAY - (us % US_PER_DAY < 0);
    int64_t rest = us - day * US_PER_DAY;
    int64_t seconds = rest / US_PER_SECOND;
    char *p = out + text_date(out, day);

    *p++ = separator;
    p = put_padded(p, (uint64_t)(seconds / 3600), 2);
    *p++ = ':';
    p = put_padded(p, (uint64_t)(seconds / 60 % 60), 2);
    *p++ = ':';
    p = put_padded(p, (uint64_t)(seconds % 60), 2);
    if (rest % US_PER_SECOND) {
        *p++ = '.';
        p = trim_zeros(put_padded(p, (uint64_t)(rest % US_PER_SECOND), 6));
    }
    if (!zoneless)
        *p++ = 'Z';
    return (size_t)(p - out);
}

/* --- and back --- */

bool
text_parse_i64(const char *text, size_t len, int64_t *ret_value)
{
    bool negative = len > 0 && text[0] == '-';
    uint64_t limit = (uint64_t)INT64_MAX + negative;
    uint64_t value = 0;
    size_t i = len > 0 && (text[0] == '-' || text[0] == '+');

    if (i == len)
        return false;
    for (; i < len; i++) {
        unsigned digit = (unsigned char)text[i] - (unsigned)'0';

        if (digit > 9 || value > (limit - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *ret_value = (int64_t)(negative ? -value : value);
    return true;
}

bool
text_is_decimal(const char *text, size_t len)
{
    size_t i = len > 0 && text[0] == '-';
    size_t start = i;

    while (i < len && text[i] >= '0' && text[i] <= '9')
        i++;
    if (i == start || (text[start] == '0' && i > start + 1))
        return false; /* JSON knows no leading zeros */
    if (i < len && text[i] == '.') {
        start = ++i;
        while (i < len && text[i] >= '0' && text[i] <= '9')
            i++;
        if (i == start)
            return false;
    }
    return i == len;
}

bool
text_parse_real(const char *text, size_t len, double *ret_value)
{
    char tmp[64], *end;
    double value;

    if (len == 0 || len >= sizeof(tmp))
        return false;
    memcpy(tmp, text, len);
    tmp[len] = '\0';
    if (strspn(tmp, "0123456789+-.eENaInfity") < len)
        return false;
    value = strtod(tmp, &end);
    if (*end)
        return false;
    *ret_value = value;
    return true;
}

/* Exactly `count` digits at *at; moves behind them. */
static bool
take_digits(const char **at, const char *end, int count, unsigned *ret_value)
{
    unsigned value = 0;

    if (end - *at < count)
        return false;
    for (int i = 0; i < count; i++) {
        unsigned digit = (unsigned char)(*at)[i] - (unsigned)'0';

        if (digit > 9)
            return false;
        value = value * 10 + digit;
    }
    *at += count;
    *ret_value = value;
    return true;
}

static bool
take_char(const char **at, const char *end, char c)
{
    if (*at == end || **at != c)
        return false;
    (*at)++;
    return true;
}

static bool
take_date(const char **at, const char *end, int64_t *ret_days)
{
    unsigned year, month, day;
    struct civil civil;

    if (!take_digits(at, end, 4, &year) || !take_char(at, end, '-') ||
        !take_digits(at, end, 2, &month) || !take_char(at, end, '-') ||
        !take_digits(at, end, 2, &day))
        return false;
    civil = (struct civil){.year = (int)year, .month = (int)month, .day = (int)day};
    if (!civil_valid(&civil))
        return false;
    *ret_days = civil_days(civil.year, civil.month, civil.day);
    return true;
}

bool
text_parse_date(const char *text, size_t len, int64_t *ret_days)
{
    const char *at = text;
    int64_t days;

    if (!take_date(&at, text + len, &days) || at != text + len)
        return false;
    *ret_days = days;
    return true;
}

/* hh:mm[:ss[.f…]], up to six digits of fraction kept exactly, more refused. */
static bool
take_time(const char **at, const char *end, int64_t *ret_us)
{
    unsigned hour, minute, second = 0, fraction = 0;

    if (!take_digits(at, end, 2, &hour) || !take_char(at, end, ':') ||
        !take_digits(at, end, 2, &minute))
        return false;
    if (take_char(at, end, ':')) {
        if (!take_digits(at, end, 2, &second))
            return false;
        if (take_char(at, end, '.')) {
            int digits = 0;

            while (*at + digits < end && (*at)[digits] >= '0' && (*at)[digits] <= '9')
                digits++;
            if (digits < 1 || digits > 6 || !take_digits(at, end, digits, &fraction))
                return false;
            for (; digits < 6; digits++)
                fraction *= 10;
        }
    }
    if (hour > 23 || minute > 59 || second > 59)
        return false;
    *ret_us = ((int64_t)hour * 3600 + minute * 60 + second) * US_PER_SECOND + fraction;
    return true;
}

/* Z or ±hh[[:]mm[[:]ss]] in microseconds east of UTC. */
static bool
take_offset(const char **at, const char *end, int64_t *ret_us)
{
    unsigned parts[3] = {0, 0, 0};
    bool west;

    if (take_char(at, end, 'Z')) {
        *ret_us = 0;
        return true;
    }
    west = take_char(at, end, '-');
    if (!west && !take_char(at, end, '+'))
        return false;
    for (int i = 0; i < 3 && *at < end; i++) {
        if (i > 0)
            (void)take_char(at, end, ':');
        if (!take_digits(at, end, 2, &parts[i]))
            return false;
    }
    *ret_us = ((int64_t)parts[0] * 3600 + parts[1] * 60 + parts[2]) * US_PER_SECOND;
    if (west)
        *ret_us = -*ret_us;
    return true;
}

bool
text_parse_timestamp(const char *text, size_t len, int64_t *ret_us, bool *ret_zoneless)
{
    const char *at = text, *end = text + len;
    int64_t days, us, offset = 0;
    bool zoneless;

    if (!take_date(&at, end, &days))
        return false;
    if (!take_char(&at, end, 'T') && !take_char(&at, end, ' '))
        return false;
    if (!take_time(&at, end, &us))
        return false;
    zoneless = at == end;
    if (!zoneless && (!take_offset(&at, end, &offset) || at != end))
        return false;
    *ret_us = days * US_PER_DAY + us - offset;
    *ret_zoneless = zoneless;
    return true;
}

static bool
parse_bool(const char *text, size_t len, int64_t *ret_value)
{
    static const struct {
        const char *word;
        int value;
    } words[] = {{"true", 1}, {"false", 0}, {"t", 1}, {"f", 0}, {"1", 1}, {"0", 0}};

    for (size_t i = 0; i < array_len(words); i++) {
        if (strlen(words[i].word) == len && memcmp(words[i].word, text, len) == 0) {
            *ret_value = words[i].value;
            return true;
        }
    }
    return false;
}

bool
cell_parse(struct cell *cell, int type, const char *text, size_t len)
{
    struct cell made = {.type = (uint8_t)type};
    bool ok = false;

    switch ((enum cell_type)type) {
    case CELL_BOOL:
        ok = parse_bool(text, len, &made.i);
        break;
    case CELL_INT:
        ok = text_parse_i64(text, len, &made.i);
        break;
    case CELL_REAL:
        ok = text_parse_real(text, len, &made.real);
        break;
    case CELL_DATE:
        ok = text_parse_date(text, len, &made.i);
        break;
    case CELL_TIMESTAMP:
        ok = text_parse_timestamp(text, len, &made.i, &made.zoneless);
        break;
    case CELL_DECIMAL:
    case CELL_TEXT:
        while (type == CELL_DECIMAL && len > 1 && text[0] == '0' && text[1] != '.') {
            text++;
            len--;
        }
        ok = type == CELL_TEXT || text_is_decimal(text, len);
        made.text = text;
        made.len = (uint32_t)len;
        break;
    case CELL_NULL:
    case CELL_BYTES:
    case CELL_TYPE_COUNT:
        break;
    }
    if (ok)
        *cell = made;
    return ok;
}

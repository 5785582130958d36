/*
 * A zone is one sorted list of changes of the offset. Those of the file come
 * first; where its footer holds a rule with summer time, 403 more years are
 * worked out from it at once. The calendar repeats itself after 400 years to the
 * day of the week, so any later time has the offset of the time 400 years
 * earlier. Nothing but the offset is kept: names and "is it summer" decide
 * nothing here.
 */
#include "base/zone.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/civil.h"
#include "base/err.h"
#include "base/fsio.h"
#include "base/strs.h"
#include "base/posix_tz.h"

#include <ctype.h>
#include <endian.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define ZONE_FOLDER  "/usr/share/zoneinfo"
#define FILE_MAX     ((size_t)1 << 20)
#define HEADER_BYTES 44
#define TYPE_BYTES   6
#define COUNT_MAX    100000
#define OFFSET_MAX_S (26 * 3600)
#define DAY_S        INT64_C(86400)
#define PERIOD_YEARS 400
#define PERIOD_S     (146097 * DAY_S)
#define YEAR_FIRST   1900
#define YEAR_LAST    2500 /* of a change in a file; later ones are no zone's */

struct change {
    int64_t at_s;
    int offset_s;
};

struct zone {
    int first_offset_s; /* before the first change */
    struct change *changes;
    size_t count;
    bool repeats;     /* from cutoff_s on, with PERIOD_S */
    int64_t cutoff_s; /* one period behind the first year the rule alone decides */
};

void
zone_free(struct zone *zone)
{
    if (!zone)
        return;
    free(zone->changes);
    free(zone);
}

void
zone_free_ptr(struct zone **zone)
{
    zone_free(*zone);
}

/* --- asking --- */

struct zone_span
zone_span_at(const struct zone *zone, int64_t time_s)
{
    struct zone_span span = {INT64_MIN, INT64_MAX, zone->first_offset_s};
    int64_t shift_s = 0;
    size_t low = 0;
    size_t high = zone->count;

    if (zone->repeats && time_s >= zone->cutoff_s)
        shift_s = ((time_s - zone->cutoff_s) / PERIOD_S + 1) * PERIOD_S;
    /* The first change behind the time. */
    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (zone->changes[mid].at_s <= time_s - shift_s)
            low = mid + 1;
        else
            high = mid;
    }
    if (low > 0) {
        span.start_s = zone->changes[low - 1].at_s + shift_s;
        span.offset_s = zone->changes[low - 1].offset_s;
    }
    if (low < zone->count)
        span.end_s = zone->changes[low].at_s + shift_s;
    return span;
}

/* --- reading --- */

struct file {
    const char *name;
    const uint8_t *data;
    size_t len;
};

/* One of the blocks of a file: what its header counts, and where its parts are. */
struct block {
    char version;
    uint32_t isut_count;
    uint32_t isstd_count;
    uint32_t leap_count;
    uint32_t time_count;
    uint32_t type_count;
    uint32_t char_count;
    size_t time_bytes; /* of one time: 4, or 8 from version 2 on */
    size_t times;      /* offsets into the file */
    size_t indexes;
    size_t types;
    size_t end;
};

static int
broken(const struct file *file, const char *what, struct err *err)
{
    return err_set(
        err, ERR_INVALID,
        "the file of time zone %s is broken (%s); install the package tzdata "
        "anew",
        file->name, what);
}

static uint32_t
read_u32(const uint8_t *at)
{
    uint32_t value;

    memcpy(&value, at, sizeof(value));
    return be32toh(value);
}

static int64_t
read_time(const uint8_t *at, size_t bytes)
{
    uint64_t value;

    if (bytes == 4)
        return (int32_t)read_u32(at);
    memcpy(&value, at, sizeof(value));
    return (int64_t)be64toh(value);
}

static int
read_header(const struct file *file, size_t at, size_t time_bytes,
            struct block *ret_block, struct err *err)
{
    const uint8_t *data = file->data + at;
    struct block block = {.time_bytes = time_bytes};

    if (file->len - at < HEADER_BYTES || memcmp(data, "TZif", 4) != 0)
        return broken(file, "no TZif header", err);
    block.version = (char)data[4];
    block.isut_count = read_u32(data + 20);
    block.isstd_count = read_u32(data + 24);
    block.leap_count = read_u32(data + 28);
    block.time_count = read_u32(data + 32);
    block.type_count = read_u32(data + 36);
    block.char_count = read_u32(data + 40);
    if (block.isut_count > COUNT_MAX || block.isstd_count > COUNT_MAX ||
        block.leap_count > COUNT_MAX || block.time_count > COUNT_MAX ||
        block.type_count > COUNT_MAX || block.char_count > COUNT_MAX)
        return broken(file, "counts out of all bounds", err);
    block.times = at + HEADER_BYTES;
    block.indexes = block.times + block.time_count * time_bytes;
    block.types = block.indexes + block.time_count;
    block.end = block.types + (size_t)block.type_count * TYPE_BYTES + block.char_count +
                block.leap_count * (time_bytes + 4) + block.isstd_count +
                block.isut_count;
    if (block.end > file->len)
        return broken(file, "too short", err);
    *ret_block = block;
    return 0;
}

static int
type_offset(const struct file *file, const struct block *block, unsigned type,
            int *ret_offset_s, struct err *err)
{
    int offset_s;

    if (type >= block->type_count)
        return broken(file, "a type that is not there", err);
    offset_s =
        (int)(int32_t)read_u32(file->data + block->types + (size_t)type * TYPE_BYTES);
    if (offset_s < -OFFSET_MAX_S || offset_s > OFFSET_MAX_S)
        return broken(file, "an offset of more than 26 hours", err);
    *ret_offset_s = offset_s;
    return 0;
}

static int
offset_at_end(const struct zone *zone)
{
    return zone->count > 0 ? zone->changes[zone->count - 1].offset_s
                           : zone->first_offset_s;
}

/* Only what changes the offset is a change. There must be room. */
static void
add_change(struct zone *zone, int64_t at_s, int offset_s)
{
    /* Two at one moment: the later word holds. */
    if (zone->count > 0 && zone->changes[zone->count - 1].at_s == at_s)
        zone->count--;
    if (offset_at_end(zone) != offset_s)
        zone->changes[zone->count++] = (struct change){at_s, offset_s};
}

static int
read_changes(const struct file *file, const struct block *block, struct zone *zone,
             struct err *err)
{
    int64_t before_s = INT64_MIN;
    int r = type_offset(file, block, 0, &zone->first_offset_s, err);

    zone->changes =
        xcalloc(block->time_count + 2 * (PERIOD_YEARS + 4), sizeof(struct change));
    for (uint32_t i = 0; r == 0 && i < block->time_count; i++) {
        int64_t at_s = read_time(file->data + block->times + i * block->time_bytes,
                                 block->time_bytes);
        int offset_s;

        if (i > 0 && at_s <= before_s)
            return broken(file, "times not in order", err);
        before_s = at_s;
        r = type_offset(file, block, file->data[block->indexes + i], &offset_s, err);
        if (r == 0)
            add_change(zone, at_s, offset_s);
    }
    return r;
}

static int
year_of(int64_t time_s)
{
    int year;
    int month;
    int day;

    civil_from_days(time_s / DAY_S, &year, &month, &day);
    return year;
}

/* What the rule says of a year, as far as it is behind what the file said. */
static void
add_year(struct zone *zone, const struct posix_tz *tz, int year, int64_t after_s)
{
    struct change changes[2];
    int64_t begin_s;
    int64_t end_s;
    bool begin_first;

    posix_tz_year(tz, year, &begin_s, &end_s);
    begin_first = begin_s <= end_s;
    changes[!begin_first] = (struct change){begin_s, tz->summer_s};
    changes[begin_first] = (struct change){end_s, tz->standard_s};
    for (int i = 0; i < 2; i++)
        if (changes[i].at_s > after_s)
            add_change(zone, changes[i].at_s, changes[i].offset_s);
}

static int
add_rule(const struct file *file, const struct block *block, struct zone *zone,
         struct err *err)
{
    const char *start = (const char *)file->data + block->end;
    size_t room = file->len - block->end;
    const char *newline = room > 1 ? memchr(start + 1, '\n', room - 1) : NULL;
    int64_t after_s = INT64_MIN;
    struct posix_tz tz;
    int first_year = YEAR_FIRST;

    if (room == 0 || start[0] != '\n' || !newline)
        return broken(file, "no footer", err);
    if (newline == start + 1)
        return 0; /* nothing is known of later times */
    if (!posix_tz_parse(start + 1, (size_t)(newline - start - 1), &tz))
        return broken(file, "a footer that is no rule", err);
    if (!tz.has_summer)
        return 0;
    if (block->time_count > 0) {
        after_s = read_time(file->data + block->indexes - block->time_bytes,
                            block->time_bytes);
        if (after_s / DAY_S > civil_days(YEAR_LAST, 1, 1))
            return broken(file, "changes in a far future", err);
        if (after_s / DAY_S > civil_days(YEAR_FIRST, 1, 1))
            first_year = year_of(after_s);
    }
    for (int year = first_year; year <= first_year + PERIOD_YEARS + 2; year++)
        add_year(zone, &tz, year, after_s);
    zone->repeats = true;
    zone->cutoff_s = civil_days(first_year + 2 + PERIOD_YEARS, 1, 1) * DAY_S;
    return 0;
}

int
zone_parse(const char *name, const void *data, size_t len, struct zone **ret_zone,
           struct err *err)
{
    scoped(zone_free_ptr) struct zone *zone = xcalloc(1, sizeof(*zone));
    struct file file = {name, data, len};
    struct block block = {0};
    int r = read_header(&file, 0, 4, &block, err);

    if (r == 0 && block.version >= '2')
        r = read_header(&file, block.end, 8, &block, err);
    if (r == 0 && block.type_count == 0)
        r = broken(&file, "no types", err);
    if (r == 0 && block.leap_count > 0)
        r = err_set(err, ERR_INVALID,
                    "time zone %s counts leap seconds, which computers' clocks do not; "
                    "take the name without right/",
                    name);
    if (r == 0)
        r = read_changes(&file, &block, zone, err);
    if (r == 0 && block.version >= '2')
        r = add_rule(&file, &block, zone, err);
    if (r < 0)
        return r;
    *ret_zone = zone;
    zone = NULL;
    return 0;
}

/* --- finding the file --- */

static bool
is_name(const char *name)
{
    size_t len = strlen(name);

    if (len == 0 || len > ZONE_NAME_MAX || name[0] == '/' || strstr(name, ".."))
        return false;
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)name[i]) && !strchr("_+-/", name[i]))
            return false;
    return true;
}

static int
explain_missing(const char *name, const char *folder, struct err *err)
{
    scoped(buf_release) struct buf tab = {0};
    struct err ignored = {0};

    buf_init(&tab, FILE_MAX);
    err_clear(err);
    if (fs_read_file("/usr/share/zoneinfo/zone1970.tab", FILE_MAX, &tab, &ignored) <
            0 &&
        str_eq(folder, ZONE_FOLDER))
        return err_set(err, ERR_INVALID,
                       "there is no time zone %s: this machine has no zone database; "
                       "install the package tzdata",
                       name);
    return err_set(err, ERR_INVALID,
                   "there is no time zone %s in %s; write an IANA name such as "
                   "Europe/Berlin (old names such as US/Pacific need the package "
                   "tzdata-legacy where it exists)",
                   name, folder);
}

int
zone_load(const char *name, struct zone **ret_zone, struct err *err)
{
    scoped(buf_release) struct buf bytes = {0};
    scoped(buf_release) struct buf path = {0};
    const char *folder = getenv("TZDIR");
    int r;

    if (str_empty(folder))
        folder = ZONE_FOLDER;
    if (!is_name(name))
        return err_set(err, ERR_INVALID,
                       "%.80s is not the name of a time zone; write an IANA name such "
                       "as Europe/Berlin, or UTC",
                       name);
    buf_init(&path, 0);
    buf_init(&bytes, FILE_MAX);
    buf_addf(&path, "%s/%s", folder, name);
    r = fs_read_file(buf_str(&path), FILE_MAX, &bytes, err);
    if (r == -ERR_NOT_FOUND)
        return explain_missing(name, folder, err);
    if (r < 0)
        return err_prefix(err, "time zone %s", name);
    return zone_parse(name, bytes.data, bytes.len, ret_zone, err);
}

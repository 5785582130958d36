/* Files of zones: made by hand, broken in every way, and all of this machine's. */
#include "base/zone.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/fsio.h"
#include "base/posix_tz.h"

#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static void
add_u32(struct buf *buf, uint32_t value)
{
    value = htobe32(value);
    buf_add(buf, &value, sizeof(value));
}

static void
add_i64(struct buf *buf, int64_t value)
{
    uint64_t bits = htobe64((uint64_t)value);

    buf_add(buf, &bits, sizeof(bits));
}

static void
add_header(struct buf *buf, char version, uint32_t leaps, uint32_t times,
           uint32_t types)
{
    char zeros[15] = {0};

    buf_add(buf, "TZif", 4);
    buf_add(buf, &version, 1);
    buf_add(buf, zeros, sizeof(zeros));
    add_u32(buf, 0);
    add_u32(buf, 0);
    add_u32(buf, leaps);
    add_u32(buf, times);
    add_u32(buf, types);
    add_u32(buf, 4);
}

static void
add_type(struct buf *buf, int offset_s)
{
    char rest[2] = {0};

    add_u32(buf, (uint32_t)offset_s);
    buf_add(buf, rest, sizeof(rest));
}

/* A slim file: an empty first block, one change at 0 from -1 h to +1 h, a footer. */
static void
make_file(struct buf *buf, char version, uint32_t leaps, const char *footer)
{
    buf_init(buf, 0);
    add_header(buf, version, 0, 0, 1);
    add_type(buf, 0);
    buf_add(buf, "XXX\0", 4);
    add_header(buf, version, leaps, 1, 2);
    add_i64(buf, 0);
    buf_add(buf, "\1", 1);
    add_type(buf, -3600);
    add_type(buf, 3600);
    buf_add(buf, "XXX\0", 4);
    for (uint32_t i = 0; i < leaps; i++) {
        add_i64(buf, 78796800);
        add_u32(buf, 1);
    }
    buf_add_str(buf, footer);
}

static int
parse(const struct buf *buf, struct zone **ret_zone, struct err *err)
{
    return zone_parse("Test/Made", buf->data, buf->len, ret_zone, err);
}

static void
test_slim_files_of_versions_2_to_4_are_read(void **state)
{
    for (char version = '2'; version <= '4'; version++) {
        scoped(buf_release) struct buf buf = {0};
        scoped(zone_free_ptr) struct zone *zone = NULL;
        struct err err = {0};

        make_file(&buf, version, 0, "\nXXX-1\n");
        assert_int_equal(parse(&buf, &zone, &err), 0);
        assert_int_equal(zone_span_at(zone, -1).offset_s, -3600);
        assert_int_equal(zone_span_at(zone, 0).offset_s, 3600);
        assert_true(zone_span_at(zone, -1).start_s == INT64_MIN);
        assert_true(zone_span_at(zone, -1).end_s == 0);
        assert_true(zone_span_at(zone, 0).end_s == INT64_MAX);
        assert_int_equal(zone_span_at(zone, INT64_MAX / 2).offset_s, 3600);
    }
}

static void
test_a_file_of_version_1_is_read(void **state)
{
    scoped(buf_release) struct buf buf = {0};
    scoped(zone_free_ptr) struct zone *zone = NULL;
    struct err err = {0};

    buf_init(&buf, 0);
    add_header(&buf, 0, 0, 1, 2);
    add_u32(&buf, (uint32_t)-100);
    buf_add(&buf, "\1", 1);
    add_type(&buf, -3600);
    add_type(&buf, 7200);
    buf_add(&buf, "XXX\0", 4);
    assert_int_equal(parse(&buf, &zone, &err), 0);
    assert_int_equal(zone_span_at(zone, -101).offset_s, -3600);
    assert_int_equal(zone_span_at(zone, -100).offset_s, 7200);
}

static void
test_the_footer_goes_on_for_ever(void **state)
{
    scoped(buf_release) struct buf buf = {0};
    scoped(zone_free_ptr) struct zone *zone = NULL;
    struct err err = {0};
    int64_t july_2500 = INT64_C(16740864000);
    int64_t period_s = INT64_C(146097) * 86400;

    make_file(&buf, '3', 0, "\nXXX-1YYY,M3.5.0,M10.5.0/3\n");
    assert_int_equal(parse(&buf, &zone, &err), 0);
    for (int64_t n = 0; n < 50; n++) {
        struct zone_span summer = zone_span_at(zone, july_2500 + n * period_s);
        struct zone_span winter = zone_span_at(zone, summer.end_s);

        assert_int_equal(summer.offset_s, 7200);
        assert_int_equal(winter.offset_s, 3600);
        assert_true(winter.start_s == summer.end_s);
        assert_int_equal(zone_span_at(zone, winter.end_s).offset_s, 7200);
        assert_true(summer.end_s - summer.start_s > 200 * INT64_C(86400) &&
                    summer.end_s - summer.start_s < 220 * INT64_C(86400));
    }
}

static void
test_every_cut_and_every_flip_ends_in_a_zone_or_a_message(void **state)
{
    scoped(buf_release) struct buf buf = {0};

    make_file(&buf, '2', 0, "\nXXX-1YYY,M3.5.0,M10.5.0/3\n");
    for (size_t len = 0; len < buf.len; len++) {
        char *copy = malloc(len + 1); /* at the end of a block: ASan sees one too far */
        struct zone *zone = NULL;
        struct err err = {0};

        memcpy(copy + 1, buf.data, len);
        assert_int_equal(zone_parse("Cut", copy + 1, len, &zone, &err), -ERR_INVALID);
        assert_non_null(strstr(err.text, "tzdata"));
        free(copy);
    }
    for (size_t at = 0; at < buf.len; at++)
        for (int bit = 0; bit < 8; bit++) {
            struct zone *zone = NULL;
            struct err err = {0};

            buf.data[at] ^= (char)(1 << bit);
            if (parse(&buf, &zone, &err) == 0)
                (void)zone_span_at(zone, 1800000000);
            zone_free(zone);
            buf.data[at] ^= (char)(1 << bit);
        }
}

static void
test_leap_seconds_are_refused_with_the_remedy(void **state)
{
    scoped(buf_release) struct buf buf = {0};
    struct zone *zone = NULL;
    struct err err = {0};

    make_file(&buf, '4', 1, "\nXXX-1\n");
    assert_int_equal(parse(&buf, &zone, &err), -ERR_INVALID);
    assert_non_null(strstr(err.text, "without right/"));
}

static void
test_names_cannot_leave_the_folder(void **state)
{
    static const char *const names[] = {
        "",
        "/etc/passwd",
        "../../../etc/passwd",
        "Europe/../../x",
        "Europe/Berlin\n",
        "No/Such",
        "Europe",
        "US/Pacific New",
        "zone.tab",
        "CEST",
    };

    for (size_t i = 0; i < array_len(names); i++) {
        struct zone *zone = NULL;
        struct err err = {0};

        if (zone_load(names[i], &zone, &err) >= 0)
            fail_msg("\"%s\" is a zone", names[i]);
        assert_true(strlen(err.text) > 20);
    }
}

static void
test_rules_of_posix_are_read_or_refused(void **state)
{
    static const struct {
        const char *rule;
        bool good;
    } rules[] = {
        {"UTC0", true},
        {"<+0545>-5:45", true},
        {"EST5EDT,M3.2.0,M11.1.0", true},
        {"IST-1GMT0,M10.5.0,M3.5.0/1", true},
        {"<-02>2<-01>,M3.5.0/-1,M10.5.0/0", true},
        {"XXX3EDT4,0/0,J365/23", true},
        {"", false},
        {"E5", false},
        {"EST", false},
        {"EST5EDT", false},
        {"EST5EDT,M3.2.0", false},
        {"EST5EDT,M13.2.0,M11.1.0", false},
        {"EST5EDT,M3.6.0,M11.1.0", false},
        {"EST5EDT,M3.2.7,M11.1.0", false},
        {"EST5EDT,J0,J365", false},
        {"EST5EDT,M3.2.0/168,M11.1.0", false},
        {"EST5EDT,M3.2.0,M11.1.0 ", false},
        {"<EST5EDT", false},
    };

    for (size_t i = 0; i < array_len(rules); i++) {
        struct posix_tz tz;

        if (posix_tz_parse(rules[i].rule, strlen(rules[i].rule), &tz) != rules[i].good)
            fail_msg("%s", rules[i].rule);
    }
}

/* Every zone of this machine, a day every three weeks from 1950 to 2150. */
static void
test_all_zones_agree_with_the_c_library(void **state)
{
    FILE *list = fopen("/usr/share/zoneinfo/zone1970.tab", "r");
    char line[512];
    int zones = 0;

    assert_non_null(list);
    while (fgets(line, sizeof(line), list)) {
        scoped(zone_free_ptr) struct zone *zone = NULL;
        struct err err = {0};
        char name[128];

        if (line[0] == '#' || sscanf(line, "%*s %*s %100s", name) != 1)
            continue;
        if (zone_load(name, &zone, &err) < 0)
            fail_msg("%s", err.text);
        setenv("TZ", name, 1);
        tzset();
        for (int64_t at_s = -631152000; at_s < 5680281600; at_s += 1814400 + 3600) {
            time_t time = (time_t)at_s;
            struct tm tm;

            localtime_r(&time, &tm);
            if (tm.tm_gmtoff != zone_span_at(zone, at_s).offset_s)
                fail_msg("%s at %lld: %ld, not %d", name, (long long)at_s, tm.tm_gmtoff,
                         zone_span_at(zone, at_s).offset_s);
        }
        zones++;
    }
    fclose(list);
    assert_true(zones > 300);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slim_files_of_versions_2_to_4_are_read),
        cmocka_unit_test(test_a_file_of_version_1_is_read),
        cmocka_unit_test(test_the_footer_goes_on_for_ever),
        cmocka_unit_test(test_every_cut_and_every_flip_ends_in_a_zone_or_a_message),
        cmocka_unit_test(test_leap_seconds_are_refused_with_the_remedy),
        cmocka_unit_test(test_names_cannot_leave_the_folder),
        cmocka_unit_test(test_rules_of_posix_are_read_or_refused),
        cmocka_unit_test(test_all_zones_agree_with_the_c_library),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

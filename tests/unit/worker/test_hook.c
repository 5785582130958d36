/* What the receiver of a webhook gets, and what is done about its answer. */
#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "io/base64.h"
#include "queue/request.h"
#include "worker/hook.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* --- signing --- */

/* The example of the Standard Webhooks specification. */
#define SPEC_SECRET "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
#define SPEC_ID     "msg_p5jXN8AQM9LWM0D4loKWxJek"
#define SPEC_TIME   1614265330
#define SPEC_BODY   "{\"test\": 2432232314}"
#define SPEC_SIGN   "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="

static const char *
sign(const char *value, const char *id, const char *body, struct arena *arena)
{
    struct hook_secrets secrets;
    struct err err = {0};

    if (hook_secrets_read(value, arena, &secrets, &err) < 0)
        fail_msg("%s", err.text);
    return hook_signature(&secrets, id, SPEC_TIME, body, strlen(body), arena);
}

static void
test_the_signature_is_that_of_the_specification(void **state)
{
    scoped(arena_release) struct arena arena = {0};

    assert_string_equal(sign(SPEC_SECRET, SPEC_ID, SPEC_BODY, &arena), SPEC_SIGN);
}

static void
test_any_text_may_be_a_secret(void **state)
{
    scoped(arena_release) struct arena arena = {0};
    const char *plain = sign("  plain-text\n", SPEC_ID, SPEC_BODY, &arena);

    assert_string_equal(plain, sign("plain-text", SPEC_ID, SPEC_BODY, &arena));
    assert_string_not_equal(plain, SPEC_SIGN);
    /* "plain-text" in base64 is the same secret. */
    assert_string_equal(plain,
                        sign("whsec_cGxhaW4tdGV4dA==", SPEC_ID, SPEC_BODY, &arena));
}

static void
test_two_secrets_give_two_signatures(void **state)
{
    scoped(arena_release) struct arena arena = {0};
    const char *both = sign(SPEC_SECRET " plain-text", SPEC_ID, SPEC_BODY, &arena);
    const char *plain = sign("plain-text", SPEC_ID, SPEC_BODY, &arena);

    assert_string_equal(both, arena_printf(&arena, "%s %s", SPEC_SIGN, plain));
}

static void
test_a_value_that_is_no_secret_is_told_without_it(void **state)
{
    static const struct {
        const char *value;
        const char *says;
    } rows[] = {
        {"", "no secret"},
        {" \n", "no secret"},
        {"whsec_", "not base64"},
        {"whsec_geheim!", "not base64"},
        {"whsec_AAAA=AAA", "not base64"},
        {"geheim-1 geheim-2 geheim-3", "more than 2"},
    };
    scoped(arena_release) struct arena arena = {0};

    for (size_t i = 0; i < array_len(rows); i++) {
        struct hook_secrets secrets;
        struct err err = {0};

        assert_int_equal(hook_secrets_read(rows[i].value, &arena, &secrets, &err),
                         -ERR_CONFIG);
        assert_non_null(strstr(err.text, rows[i].says));
        assert_null(strstr(err.text, "geheim"));
    }
}

static void
test_base64_is_read_strictly(void **state)
{
    static const struct {
        const char *text;
        const char *bytes; /* NULL: refused */
    } rows[] = {
        {"", ""},
        {"Zg==", "f"},
        {"Zg", "f"},
        {"Zm8=", "fo"},
        {"Zm8", "fo"},
        {"Zm9v", "foo"},
        {"Zm9vYmFy", "foobar"},
        {"/+8=", "\xff\xef"},
        {"Z", NULL},
        {"Zg=", NULL},
        {"Zg===", NULL},
        {"Zm9v=", NULL},
        {"Zh==", NULL},
        {"Zm9=", NULL},
        {"Zm9v Zm9v", NULL},
        {"Zm-v", NULL},
    };

    for (size_t i = 0; i < array_len(rows); i++) {
        size_t len = strlen(rows[i].text);
        uint8_t got[32];
        size_t n = 99;
        bool ok = base64_read(rows[i].text, len, got, &n);

        if (ok != (rows[i].bytes != NULL))
            fail_msg("\"%s\" was %s", rows[i].text, ok ? "read" : "refused");
        if (ok) {
            assert_int_equal(n, strlen(rows[i].bytes));
            assert_memory_equal(got, rows[i].bytes, n);
        }
    }
}

/* --- the event --- */

static json_t *
event_of(const struct request *request, size_t *ret_len)
{
    scoped(buf_release) struct buf body = {0};
    struct err err = {0};
    json_t *json = NULL;

    buf_init(&body, HOOK_EVENT_MAX);
    hook_event_add(&body, "0123456789abcdef0123456789abcdef", "event-id", request);
    assert_false(body.overflow);
    if (json_parse(buf_str(&body), body.len, 8, &json, &err) < 0)
        fail_msg("%s: %s", err.text, buf_str(&body));
    if (ret_len)
        *ret_len = body.len;
    return json;
}

static const char *
text_at(const json_t *json, const char *key)
{
    return json_string_value(json_object_get(json, key));
}

static struct request
ended(enum request_outcome outcome)
{
    return (struct request){
        .id = 23,
        .job = "orders-export",
        .attempt = 2,
        .first_try = 17,
        .outcome = outcome,
        .status = request_status_of(outcome),
        .finished_at_us = INT64_C(1793491200123456),
        .detail = "it \"failed\"",
    };
}

static void
test_the_event_is_a_cloud_event_about_the_request(void **state)
{
    struct request request = ended(OUTCOME_COMPLETED);
    scoped(json_drop) json_t *json = NULL;
    const json_t *data;
    const json_t *result;

    request.result = (struct request_result){
        .known = true, .name = "orders.csv", .bytes = 12, .rows = -1, .sha256 = "ab"};
    json = event_of(&request, NULL);
    assert_string_equal(text_at(json, "specversion"), "1.0");
    assert_string_equal(text_at(json, "id"), "event-id");
    assert_string_equal(text_at(json, "source"),
                        "pawl/0123456789abcdef0123456789abcdef");
    assert_string_equal(text_at(json, "type"), "pawl.request.completed.v1");
    assert_string_equal(text_at(json, "subject"), "23");
    assert_non_null(strstr(text_at(json, "time"), "2026-11-01T00:00:00"));
    data = json_object_get(json, "data");
    assert_int_equal(json_integer_value(json_object_get(data, "requestId")), 23);
    assert_int_equal(json_integer_value(json_object_get(data, "firstTry")), 17);
    assert_int_equal(json_integer_value(json_object_get(data, "attempt")), 2);
    assert_string_equal(text_at(data, "job"), "orders-export");
    assert_string_equal(text_at(data, "status"), "DONE");
    assert_string_equal(text_at(data, "outcome"), "COMPLETED");
    assert_string_equal(text_at(data, "detail"), "it \"failed\"");
    result = json_object_get(data, "result");
    assert_string_equal(text_at(result, "name"), "orders.csv");
    assert_string_equal(text_at(result, "sha256"), "ab");
    assert_int_equal(json_integer_value(json_object_get(result, "bytes")), 12);
    assert_true(json_is_null(json_object_get(result, "rows")));
}

static void
test_the_type_tells_how_it_ended(void **state)
{
    static const char *const types[OUTCOME_COUNT] = {
        [OUTCOME_COMPLETED] = "completed", [OUTCOME_STOPPED] = "stopped",
        [OUTCOME_ERROR] = "failed",        [OUTCOME_CANCELLED] = "cancelled",
        [OUTCOME_TIMEOUT] = "failed",      [OUTCOME_WORKER_LOST] = "failed",
        [OUTCOME_EXPIRED] = "expired",     [OUTCOME_REFUSED] = "refused",
    };

    for (int i = OUTCOME_NONE + 1; i < OUTCOME_COUNT; i++) {
        struct request request = ended((enum request_outcome)i);
        scoped(json_drop) json_t *json = NULL;
        char wanted[64];

        request.first_try = 0;
        json = event_of(&request, NULL);
        snprintf(wanted, sizeof(wanted), "pawl.request.%s.v1", types[i]);
        assert_string_equal(text_at(json, "type"), wanted);
        assert_int_equal(json_integer_value(json_object_get(
                             json_object_get(json, "data"), "firstTry")),
                         23);
        assert_true(
            json_is_null(json_object_get(json_object_get(json, "data"), "result")));
    }
}

static void
test_an_event_stays_below_20_kB_whatever_is_in_the_request(void **state)
{
    static char detail[64 * 1024];
    static char name[4096];
    struct request request = ended(OUTCOME_COMPLETED);
    scoped(json_drop) json_t *json = NULL;
    size_t len = 0;

    memset(detail, 1, sizeof(detail) - 1); /* six bytes each in JSON */
    memset(name, 2, sizeof(name) - 1);
    request.detail = detail;
    request.result = (struct request_result){.known = true, .name = name};
    json = event_of(&request, &len);
    assert_in_range(len, 1000, HOOK_EVENT_MAX);
}

/* --- answers --- */

static void
test_only_2xx_is_heard_and_only_410_is_the_end_at_once(void **state)
{
    static const struct {
        int status;
        enum hook_verdict verdict;
        bool away;
    } rows[] = {
        {200, HOOK_HEARD, false}, {204, HOOK_HEARD, false}, {299, HOOK_HEARD, false},
        {301, HOOK_AGAIN, false}, {302, HOOK_AGAIN, false}, {307, HOOK_AGAIN, false},
        {400, HOOK_AGAIN, false}, {401, HOOK_AGAIN, false}, {404, HOOK_AGAIN, false},
        {410, HOOK_NEVER, false}, {429, HOOK_AGAIN, true},  {500, HOOK_AGAIN, false},
        {502, HOOK_AGAIN, true},  {503, HOOK_AGAIN, true},  {0, HOOK_AGAIN, true},
        {199, HOOK_AGAIN, false},
    };

    for (size_t i = 0; i < array_len(rows); i++) {
        const struct hook_try try = {.status = rows[i].status, .attempts = 1};
        int64_t wait_us = 0;

        assert_int_equal(hook_judge(&try, &wait_us), rows[i].verdict);
        assert_int_equal(hook_is_away(rows[i].status), rows[i].away);
    }
}

/* As if each try failed at once: how long until it is given up, and after how many. */
static void
test_a_receiver_is_asked_for_about_three_days(void **state)
{
    struct hook_try try = {.status = 500};
    int64_t first_us = 0;
    int64_t longest_us = 0;
    int64_t wait_us = 0;

    for (try.attempts = 1; hook_judge(&try, &wait_us) == HOOK_AGAIN; try.attempts++) {
        assert_in_range(wait_us, 750 * US_PER_MS, 6 * US_PER_HOUR);
        if (try.attempts == 1)
            first_us = wait_us;
        if (wait_us > longest_us)
            longest_us = wait_us;
        try.age_us += wait_us;
        assert_true(try.attempts < 100);
    }
    assert_in_range(first_us, 750 * US_PER_MS, US_PER_S);
    assert_in_range(longest_us, 4 * US_PER_HOUR, 6 * US_PER_HOUR);
    assert_in_range(try.age_us, 3 * US_PER_DAY - 6 * US_PER_HOUR, 3 * US_PER_DAY);
    assert_in_range(try.attempts, 20, 40);
}

/* No worker was there for a week, or the clock has jumped: it is tried for about an
 * hour before it is given up. */
static void
test_what_nobody_could_tell_in_time_is_tried_all_the_same(void **state)
{
    struct hook_try try = {.status = 500, .age_us = 7 * US_PER_DAY};
    int64_t tried_us = 0;
    int64_t wait_us = 0;

    for (try.attempts = 1; hook_judge(&try, &wait_us) == HOOK_AGAIN; try.attempts++)
        tried_us += wait_us;
    assert_int_equal(try.attempts, 12);
    assert_in_range(tried_us, 25 * US_PER_MINUTE, 70 * US_PER_MINUTE);
}

static void
test_a_receiver_that_asks_for_time_gets_it(void **state)
{
    struct hook_try try = {.status = 503, .attempts = 1, .asked_wait_us = US_PER_HOUR};
    int64_t wait_us = 0;

    assert_int_equal(hook_judge(&try, &wait_us), HOOK_AGAIN);
    assert_int_equal(wait_us, US_PER_HOUR);
    assert_int_equal(hook_pause_us(&try, 1), US_PER_HOUR);
    try.asked_wait_us = US_PER_DAY; /* the event waits a day, the others an hour */
    assert_int_equal(hook_judge(&try, &wait_us), HOOK_AGAIN);
    assert_int_equal(wait_us, US_PER_DAY);
    assert_int_equal(hook_pause_us(&try, 1), US_PER_HOUR);
    try.status = 500; /* means nothing there */
    assert_int_equal(hook_judge(&try, &wait_us), HOOK_AGAIN);
    assert_in_range(wait_us, 1, US_PER_S);
    try.status = 0;
    assert_in_range(hook_pause_us(&try, 1), 1, US_PER_S);
    assert_in_range(hook_pause_us(&try, 1000), 3 * US_PER_MINUTE, 5 * US_PER_MINUTE);
}

static void
test_what_is_being_told_is_left_to_its_teller_for_a_while(void **state)
{
    assert_int_equal(hook_lease_us(100 * US_PER_MS), 10 * US_PER_S);
    assert_int_equal(hook_lease_us(15 * US_PER_S), 31 * US_PER_S);
    assert_true(hook_lease_us(US_PER_HOUR) > US_PER_HOUR);
}

static void
test_retry_after_is_seconds_or_a_date(void **state)
{
    const int64_t now_us = INT64_C(1793491200) * US_PER_S; /* 2026-11-01, a Sunday */
    static const struct {
        const char *text;
        int64_t wait_s;
    } rows[] = {
        {NULL, 0},
        {"", 0},
        {"0", 0},
        {"-5", 0},
        {"7", 7},
        {"soon", 0},
        {"7 s", 0},
        {"999999999999", 86400},
        {"Sun, 01 Nov 2026 00:01:00 GMT", 60},
        {"Sat, 31 Oct 2026 00:01:00 GMT", 0},
        {"Fri, 01 Jan 2100 00:00:00 GMT", 86400},
        {"Sun, 01 Nov 2026 00:01:00 GMT+1", 0},
    };

    for (size_t i = 0; i < array_len(rows); i++)
        assert_int_equal(hook_asked_wait_us(rows[i].text, now_us),
                         rows[i].wait_s * US_PER_S);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_signature_is_that_of_the_specification),
        cmocka_unit_test(test_any_text_may_be_a_secret),
        cmocka_unit_test(test_two_secrets_give_two_signatures),
        cmocka_unit_test(test_a_value_that_is_no_secret_is_told_without_it),
        cmocka_unit_test(test_base64_is_read_strictly),
        cmocka_unit_test(test_the_event_is_a_cloud_event_about_the_request),
        cmocka_unit_test(test_the_type_tells_how_it_ended),
        cmocka_unit_test(test_an_event_stays_below_20_kB_whatever_is_in_the_request),
        cmocka_unit_test(test_only_2xx_is_heard_and_only_410_is_the_end_at_once),
        cmocka_unit_test(test_a_receiver_is_asked_for_about_three_days),
        cmocka_unit_test(test_what_nobody_could_tell_in_time_is_tried_all_the_same),
        cmocka_unit_test(test_a_receiver_that_asks_for_time_gets_it),
        cmocka_unit_test(test_what_is_being_told_is_left_to_its_teller_for_a_while),
        cmocka_unit_test(test_retry_after_is_seconds_or_a_date),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

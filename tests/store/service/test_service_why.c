/* `why`: each reason is a stored fact, and the one that really holds it up. */
#include "tests/store/queue/common.h"

#include "base/json.h"
#include "config/config.h"
#include "liveness/worker_row.h"
#include "queue/definition.h"
#include "queue/pause.h"
#include "service/catalog.h"
#include "service/service.h"

#include <string.h>

static const char definition[] =
    "{\"description\":\"\",\"duplicates\":\"allow\",\"expire_after_us\":0,"
    "\"kind\":\"batch\",\"lane\":\"normal\",\"makes_result\":false,"
    "\"name\":\"task\",\"needs_keys\":[\"DART_API_KEY\"],\"next\":[],"
    "\"param_order\":[],\"params\":{},\"priority\":0,"
    "\"retry\":{\"attempts\":1,\"backoff_us\":1,\"drained\":false,"
    "\"max_backoff_us\":1,\"on\":[]},\"reuse_window_us\":0,\"steps\":[],"
    "\"timeout_us\":0,\"title\":\"Task\"}";

static void
worker_up(struct harness *h, const char *id, const char *lanes, const char *jobs,
          const char *keys)
{
    struct worker_row row = {.id = id,
                             .seat = id,
                             .host = "h",
                             .pid = 1,
                             .boot_id = "b",
                             .lanes = lanes,
                             .in_use = "{}",
                             .keys = keys,
                             .jobs = jobs,
                             .version = "1"};
    struct err err = {0};

    assert_ok(worker_register(h->store, &row, &err), &err);
}

/* The reasons for id as a JSON array; free by json_decref. */
static json_t *
why(struct harness *h, int64_t id)
{
    struct config config = {.worker = {.dead_after_us = 60 * US_PER_S}};
    struct service service = {.config = &config, .store = h->store};
    struct answer answer = {0};
    json_t *parsed = NULL;
    struct err err = {0};
    json_t *reasons;

    assert_ok(catalog_new(h->store, &service.catalog, &err), &err);
    buf_init(&answer.body, SERVICE_BODY_MAX);
    assert_ok(service_why(&service, id, &answer, &err), &err);
    assert_ok(
        json_parse(answer.body.data, answer.body.len, JSON_DEPTH_MAX, &parsed, &err),
        &err);
    reasons = json_incref(json_object_get(parsed, "reasons"));
    json_decref(parsed);
    buf_release(&answer.body);
    catalog_free(service.catalog);
    return reasons;
}

static const char *
code_at(const json_t *reasons, size_t at)
{
    return json_string_value(json_object_get(json_array_get(reasons, at), "code"));
}

static void
assert_why(struct harness *h, int64_t id, const char *code)
{
    scoped(json_drop) json_t *reasons = why(h, id);

    assert_true(json_array_size(reasons) > 0);
    assert_string_equal(code_at(reasons, 0), code);
}

static void
define_task(struct harness *h)
{
    struct job_definition row = {
        .name = "task", .version = 1, .hash = "x", .definition = definition};
    struct publish_counts counts;
    struct err err = {0};

    assert_ok(queue_publish(h->store, &row, 1, 1, &counts, &err), &err);
}

static void
test_a_ready_request_names_what_no_live_worker_has(struct harness *h)
{
    int64_t id;

    define_task(h);
    id = submit_one(h, "task");
    assert_why(h, id, "NO_WORKER");
    worker_up(h, "w1", "{\"large\":2}", "[\"other\"]", "[]");
    assert_why(h, id, "KEY_MISSING");
    worker_up(h, "w2", "{\"large\":2}", "[\"other\"]", "[\"DART_API_KEY\"]");
    assert_why(h, id, "JOB_UNKNOWN");
    worker_up(h, "w3", "{\"large\":2}", "[\"task\"]", "[\"DART_API_KEY\"]");
    assert_why(h, id, "LANE_UNSERVED");
    worker_up(h, "w4", "{\"normal\":1}", "[\"other\"]", "[]");
    assert_why(h, id, "JOB_NOT_IN_LANE");
    /* Nobody is there any more once the beats are old. */
    harness_clock_advance(h, 61 * US_PER_S);
    assert_why(h, id, "NO_WORKER");
}

static void
test_a_full_lane_names_its_holders_and_the_place_in_line(struct harness *h)
{
    int64_t running = submit_one(h, "task");
    int64_t first = submit_one(h, "task");
    int64_t second = submit_one(h, "task");
    scoped(json_drop) json_t *reasons = NULL;
    const json_t *full;

    define_task(h);
    worker_up(h, "w1", "{\"normal\":1}", "[\"task\"]", "[\"DART_API_KEY\"]");
    claim_one(h, "w1");
    assert_why(h, first, "LANE_FULL");
    reasons = why(h, second);
    full = json_array_get(reasons, 0);
    assert_string_equal(code_at(reasons, 0), "LANE_FULL");
    assert_int_equal(json_integer_value(json_object_get(full, "ahead")), 1);
    assert_int_equal(json_integer_value(json_object_get(full, "running")), 1);
    assert_int_equal(json_integer_value(json_object_get(full, "slots")), 1);
    assert_int_equal(
        json_integer_value(json_object_get(
            json_array_get(json_object_get(full, "holders"), 0), "requestId")),
        running);
}

static void
test_a_paused_request_names_who_paused_since_when_and_the_remedy(struct harness *h)
{
    scoped(json_drop) json_t *reasons = NULL;
    struct err err = {0};
    int64_t first, other;

    define_task(h);
    worker_up(h, "w1", "{\"normal\":2}", "[\"task\",\"other\"]", "[\"DART_API_KEY\"]");
    first = submit_one(h, "task");
    other = submit_one(h, "other");
    assert_why(h, other, "IN_LINE");
    assert_ok(queue_pause(h->store, PAUSE_JOB, "task", "ann", &err), &err);
    assert_ok(queue_pause(h->store, PAUSE_LANE, "normal", "bob", &err), &err);
    reasons = why(h, first);
    assert_string_equal(code_at(reasons, 0), "PAUSED");
    assert_string_equal(code_at(reasons, 1), "PAUSED");
    assert_string_equal(
        json_string_value(json_object_get(json_array_get(reasons, 0), "text")),
        "The job task is paused by ann since 2026-11-01T00:00:00Z; `pawl resume job "
        "task` lets it go on.");
    assert_string_equal(
        json_string_value(json_object_get(json_array_get(reasons, 1), "lane")),
        "normal");
    assert_string_equal(
        json_string_value(json_object_get(json_array_get(reasons, 1), "pausedBy")),
        "bob");
    /* What is paused is before nobody. */
    assert_ok(queue_resume(h->store, PAUSE_LANE, "normal", "bob", &err), &err);
    json_decref(reasons);
    reasons = why(h, other);
    assert_int_equal(json_array_size(reasons), 0);
}

static void
test_the_place_in_line_counts_inside_a_span_and_before_it(struct harness *h)
{
    int64_t first = submit_span(h, "task", 5);
    scoped(json_drop) json_t *reasons = NULL;

    define_task(h);
    worker_up(h, "w1", "{\"normal\":1}", "[\"task\"]", "[\"DART_API_KEY\"]");
    reasons = why(h, first + 3);
    assert_string_equal(code_at(reasons, 0), "IN_LINE");
    assert_int_equal(
        json_integer_value(json_object_get(json_array_get(reasons, 0), "ahead")), 3);
}

static void
test_waiting_running_and_final_requests_tell_their_own(struct harness *h)
{
    struct queue_job job = job_of("task", QUEUE_DUPLICATES_ALLOW);
    struct submit_order order = order_of(&job);
    int64_t later;
    int64_t id;
    struct claim claim;
    struct err err = {0};

    order.not_before_us = HARNESS_NOW + US_PER_HOUR;
    later = submit_order(h, &order);
    assert_why(h, later, "NOT_BEFORE");
    id = submit_one(h, "task");
    claim = claim_one(h, "w1");
    assert_why(h, id, "RUNNING");
    assert_int_equal(queue_cancel(h->store, id, "op", &err), QUEUE_CANCEL_REQUESTED);
    {
        scoped(json_drop) json_t *reasons = why(h, id);

        assert_string_equal(code_at(reasons, 1), "CANCEL_ASKED");
    }
    finish_ok(h, id, &claim, OUTCOME_CANCELLED);
    assert_why(h, id, "CANCELLED");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(test_a_ready_request_names_what_no_live_worker_has),
        store_test(test_a_paused_request_names_who_paused_since_when_and_the_remedy),
        store_test(test_a_full_lane_names_its_holders_and_the_place_in_line),
        store_test(test_the_place_in_line_counts_inside_a_span_and_before_it),
        store_test(test_waiting_running_and_final_requests_tell_their_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* `why`: each reason is a stored fact, and the one that really holds it up. */
#include "tests/store/queue/common.h"

#include "base/json.h"
#include "base/zone.h"
#include "budget/budget.h"
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
    "\"max_backoff_us\":1,\"on\":[]},\"calls\":{\"budget\":\"calls\",\"per_item\":1},"
    "\"reuse_window_us\":0,\"steps\":[],"
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

static int
ask_why(const struct service *service, int64_t id, struct answer *answer,
        struct err *err)
{
    return service_why(service, id, answer, err);
}

static int
ask_jobs(const struct service *service, int64_t id, struct answer *answer,
         struct err *err)
{
    (void)id;
    return service_jobs(service, answer, err);
}

/* A member of what the service answers; free by json_decref. */
static json_t *
answered(struct harness *h, int64_t id, const char *member, bool sole_owner,
         int (*ask)(const struct service *, int64_t, struct answer *, struct err *))
{
    struct config_budget budget = {.name = "calls", .per_day = 1, .zone = "Asia/Seoul"};
    struct config config = {.worker = {.dead_after_us = 60 * US_PER_S},
                            .budgets = &budget,
                            .budget_count = 1};
    struct service service = {
        .config = &config, .store = h->store, .sole_owner = sole_owner};
    struct answer answer = {0};
    json_t *parsed = NULL;
    struct err err = {0};
    json_t *found;

    assert_ok(catalog_new(h->store, &service.catalog, &err), &err);
    buf_init(&answer.body, SERVICE_BODY_MAX);
    assert_ok(ask(&service, id, &answer, &err), &err);
    assert_ok(
        json_parse(answer.body.data, answer.body.len, JSON_DEPTH_MAX, &parsed, &err),
        &err);
    found = json_incref(json_object_get(parsed, member));
    json_decref(parsed);
    buf_release(&answer.body);
    catalog_free(service.catalog);
    return found;
}

static json_t *
why(struct harness *h, int64_t id)
{
    return answered(h, id, "reasons", false, ask_why);
}

static const char *
text_at(const json_t *reasons, size_t at)
{
    return json_string_value(json_object_get(json_array_get(reasons, at), "text"));
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

static void
test_who_waits_for_others_is_told_for_which(struct harness *h)
{
    scoped(json_drop) json_t *reasons = NULL;
    struct err err = {0};
    int64_t ids[3];

    ids[0] = submit_one(h, "task");
    ids[1] = submit_one(h, "task");
    assert_ok(try_after(h, ids, 2, &ids[2], &err), &err);
    reasons = why(h, ids[2]);
    assert_string_equal(code_at(reasons, 0), "WAITS_FOR_OTHERS");
    assert_string_equal(text_at(reasons, 0),
                        "It waits until requests 1 and 2 are COMPLETED.");
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(
            json_integer_value(json_array_get(
                json_object_get(json_array_get(reasons, 0), "requests"), i)),
            ids[i]);
}

static void
test_who_waits_for_many_is_told_that_there_are_more(struct harness *h)
{
    scoped(json_drop) json_t *reasons = NULL;
    struct err err = {0};
    int64_t ids[12];

    for (size_t i = 0; i < 11; i++)
        ids[i] = submit_one(h, "task");
    assert_ok(try_after(h, ids, 11, &ids[11], &err), &err);
    reasons = why(h, ids[11]);
    assert_string_equal(text_at(reasons, 0),
                        "It waits until requests 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and "
                        "others are COMPLETED.");
}

static void
test_a_next_try_is_told_with_its_time(struct harness *h)
{
    struct queue_job job = job_of("task", QUEUE_DUPLICATES_ALLOW);
    scoped(json_drop) json_t *reasons = NULL;
    struct submit_order order = order_of(&job);
    int64_t first = submit_one(h, "task");
    struct claim claim = claim_one(h, "w1");
    int64_t next;

    finish_ok(h, first, &claim, OUTCOME_ERROR);
    order.not_before_us = HARNESS_NOW + US_PER_HOUR;
    next = submit_order(h, &order);
    harness_sql(h, "UPDATE pawl.request SET retry_of = 1, first_try = 1, attempt = 2 "
                   "WHERE id = 2");
    reasons = why(h, next);
    assert_string_equal(code_at(reasons, 0), "RETRY_AT");
    assert_string_equal(text_at(reasons, 0),
                        "It is try 2 of request 1, due at 2026-11-01T01:00:00Z.");
    json_decref(reasons);
    reasons = why(h, first);
    assert_int_equal(json_array_size(reasons), 2);
    assert_string_equal(code_at(reasons, 0), "ERROR");
    assert_string_equal(code_at(reasons, 1), "TRIED_AGAIN");
    assert_string_equal(text_at(reasons, 1),
                        "Request 2 is its try 2: QUEUED, due at 2026-11-01T01:00:00Z.");
}

static void
test_a_spent_budget_is_told_until_when(struct harness *h)
{
    scoped(zone_free_ptr) struct zone *zone = NULL;
    struct budget_rule rule = {.name = "calls", .per_day = 1};
    scoped(json_drop) json_t *reasons = NULL;
    struct budget_grant grant;
    struct err err = {0};
    struct claim claim;
    int64_t first, second;

    assert_ok(zone_load("Asia/Seoul", &zone, &err), &err);
    rule.zone = zone;
    define_task(h);
    worker_up(h, "w1", "{\"normal\":2}", "[\"task\"]", "[\"DART_API_KEY\"]");
    first = submit_one(h, "task");
    claim = claim_one(h, "w1");
    second = submit_one(h, "task");
    reasons = why(h, second);
    assert_int_equal(json_array_size(reasons), 0);
    {
        struct budget_order order = {
            .rule = &rule, .request_id = first, .token = claim.token, .max_calls = -1};

        assert_int_equal(budget_take(h->store, &order, &grant, &err), BUDGET_TAKEN);
    }
    json_decref(reasons);
    reasons = why(h, second);
    assert_string_equal(code_at(reasons, 0), "BUDGET_SPENT");
    assert_string_equal(text_at(reasons, 0),
                        "No call of the budget calls is left until "
                        "2026-11-01T15:00:00Z: begun before, it stops at its first.");
}

/* After a kill -9 of the only server its row is still fresh. */
static void
test_a_worker_of_a_store_that_nobody_has_open_is_told_as_gone(struct harness *h)
{
    scoped(json_drop) json_t *running = NULL;
    scoped(json_drop) json_t *ready = NULL;
    int64_t id = submit_one(h, "task");
    int64_t later = submit_one(h, "task");

    worker_up(h, "w1", "{\"normal\":1}", "[\"task\"]", "[]");
    claim_one(h, "w1");
    running = answered(h, id, "reasons", true, ask_why);
    assert_int_equal(json_array_size(running), 1);
    assert_string_equal(code_at(running, 0), "WORKER_GONE");
    assert_non_null(strstr(text_at(running, 0), "Start `pawl serve`"));
    ready = answered(h, later, "reasons", true, ask_why);
    assert_string_equal(code_at(ready, 0), "NO_WORKER");
}

static void
test_a_silent_worker_is_told_of_what_it_runs(struct harness *h)
{
    scoped(json_drop) json_t *reasons = NULL;
    int64_t id = submit_one(h, "task");

    worker_up(h, "w1", "{\"normal\":2}", "[\"task\"]", "[]");
    claim_one(h, "w1");
    reasons = why(h, id);
    assert_int_equal(json_array_size(reasons), 1);
    json_decref(reasons);
    harness_clock_advance(h, 61 * US_PER_S);
    reasons = why(h, id);
    assert_string_equal(code_at(reasons, 1), "WORKER_SILENT");
    assert_string_equal(text_at(reasons, 1),
                        "No beat of that worker has arrived for 61 s; start a worker: "
                        "it closes the request.");
    worker_up(h, "run", "{}", "[\"task\"]", "[]"); /* a `pawl run` closes nothing */
    json_decref(reasons);
    reasons = why(h, id);
    assert_non_null(strstr(text_at(reasons, 1), "start a worker"));
    worker_up(h, "w2", "{\"normal\":2}", "[\"task\"]", "[]");
    json_decref(reasons);
    reasons = why(h, id);
    assert_string_equal(text_at(reasons, 1),
                        "No beat of that worker has arrived for 61 s; a live worker "
                        "closes the request.");
}

/* A15: true only by the word of a live worker. */
static void
assert_configured(struct harness *h, bool configured)
{
    scoped(json_drop) json_t *jobs = answered(h, 0, "items", false, ask_jobs);
    const json_t *keys = json_object_get(json_array_get(jobs, 0), "keys");

    assert_int_equal(json_array_size(keys), 1);
    assert_string_equal(
        json_string_value(json_object_get(json_array_get(keys, 0), "name")),
        "DART_API_KEY");
    assert_int_equal(
        json_is_true(json_object_get(json_array_get(keys, 0), "configured")),
        configured);
}

static void
test_A15_a_key_is_configured_where_a_live_worker_holds_it(struct harness *h)
{
    define_task(h);
    assert_configured(h, false);
    worker_up(h, "w1", "{}", "[\"task\"]", "[\"OTHER\",\"DART_API_KEY\"]");
    assert_configured(h, true);
    harness_clock_advance(h, 61 * US_PER_S); /* its row is stale by now */
    assert_configured(h, false);
    worker_up(h, "w2", "{}", "[\"task\"]", "[]");
    assert_configured(h, false);
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
        store_test(test_who_waits_for_others_is_told_for_which),
        store_test(test_who_waits_for_many_is_told_that_there_are_more),
        store_test(test_a_next_try_is_told_with_its_time),
        store_test(test_a_spent_budget_is_told_until_when),
        store_test(test_a_silent_worker_is_told_of_what_it_runs),
        store_test_sqlite(
            test_a_worker_of_a_store_that_nobody_has_open_is_told_as_gone),
        store_test(test_A15_a_key_is_configured_where_a_live_worker_holds_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Taking requests in: the duplicates rule, idempotency keys, bulk. */
#include "tests/store/queue/common.h"

#include <stdio.h>
#include <string.h>

static struct submit_order
keyed(const struct queue_job *job, const char *key, const char *digest)
{
    struct submit_order order = order_of(job);

    order.idempotency_key = key;
    order.body_digest = digest;
    return order;
}

static void
test_B5_the_row_is_there_when_the_answer_comes(struct harness *h)
{
    struct queue_job job = job_of("task", QUEUE_DUPLICATES_ALLOW);
    struct submit_order order = order_of(&job);
    scoped(arena_release) struct arena arena = {0};
    struct submit_answer answer;
    struct request request;
    struct err err = {0};

    order.given = "{\"country\":\"KR\"}";
    order.requester = "정민";
    order.priority = 7;
    order.next = "[\"other\"]";
    order.has_estimate = true;
    order.estimate = 10000;
    order.has_max_calls = true;
    order.max_calls = 0;
    order.restart = 0;
    order.lane = "large";
    assert_ok(queue_submit(h->store, &order, &answer, &err), &err);
    assert_int_equal(answer.how, SUBMIT_NEW);
    assert_false(answer.reused);
    assert_string_equal(answer.lane, "large");

    request = get(h, &arena, answer.request_id);
    assert_string_equal(request.job, "task");
    assert_string_equal(request.given, "{\"country\":\"KR\"}");
    assert_string_equal(request.requester, "정민");
    assert_int_equal(request.priority, 7);
    assert_string_equal(request.next, "[\"other\"]");
    assert_int_equal(request.estimate, 10000);
    assert_int_equal(request.max_calls, 0);
    assert_int_equal(request.restart, 0);
    assert_int_equal(request.attempt, 1);
    assert_int_equal(request.status, REQUEST_QUEUED);
    assert_int_equal(request.outcome, OUTCOME_NONE);
    assert_int_equal(request.place, PLACE_READY);
    assert_int_equal(request.created_at_us, HARNESS_NOW);
    assert_int_equal(request.source, SOURCE_API);
}

/* B15: which lane is decided before; the row keeps it. */
static void
test_B15_B16_the_lane_is_stored_and_stays_after_a_restart(struct harness *h)
{
    struct queue_job job = job_of("task", QUEUE_DUPLICATES_ALLOW);
    struct submit_order order = order_of(&job);
    scoped(arena_release) struct arena arena = {0};
    int64_t small = submit_order(h, &order);
    int64_t large;

    order.lane = "large";
    large = submit_order(h, &order);
    harness_reopen(h);
    assert_string_equal(get(h, &arena, small).lane, "normal");
    assert_string_equal(get(h, &arena, large).lane, "large");
    assert_int_equal(
        harness_i64(h, "SELECT count(*) FROM pawl.ready WHERE lane = 'large'"), 1);
}

static void
test_A7_a_refusal_stores_nothing(struct harness *h)
{
    struct queue_job job = job_of("task", QUEUE_DUPLICATES_REFUSE);
    struct submit_order bad[5];
    struct submit_answer answer;
    struct err err = {0};

    for (size_t i = 0; i < array_len(bad); i++)
        bad[i] = keyed(&job, "k", "d");
    bad[0].priority = 101;
    bad[1].requester = "";
    bad[2].lane = "";
    bad[3].expires_at_us = HARNESS_NOW;
    bad[4].has_max_calls = true;
    bad[4].max_calls = -1;
    for (size_t i = 0; i < array_len(bad); i++)
        assert_int_equal(try_submit(h, &bad[i], &answer, &err), -ERR_INVALID);
    assert_int_equal(rows_in(h, "request"), 0);
    assert_int_equal(rows_in(h, "active"), 0);
    assert_int_equal(rows_in(h, "idempotency"), 0);
}

struct racer {
    struct harness *h;
    const struct submit_order *order;
    struct submit_answer answer;
    struct err err;
    int r;
};

static void *
race(void *arg)
{
    struct racer *racer = (struct racer *)arg;

    racer->r = queue_submit(racer->h->store, racer->order, &racer->answer, &racer->err);
    return NULL;
}

static void
test_A9_fifty_at_once_give_one_request_and_49_refusals(struct harness *h)
{
    struct queue_job job = job_of("task", QUEUE_DUPLICATES_REFUSE);
    struct submit_order order = order_of(&job);
    struct racer racers[50] = {0};
    struct submit_answer answer;
    struct err err = {0};
    int64_t winner = 0;
    struct claim claim;
    char id[32];

    for (size_t i = 0; i < array_len(racers); i++)
        racers[i] = (struct racer){.h = h, .order = &order};
    in_parallel(array_len(racers), race, racers, sizeof(racers[0]));
    for (size_t i = 0; i < array_len(racers); i++) {
        if (racers[i].r == 0) {
            assert_int_equal(winner, 0);
            winner = racers[i].answer.request_id;
        }
    }
    assert_int_not_equal(winner, 0);
    snprintf(id, sizeof(id), "%lld", (long long)winner);
    for (size_t i = 0; i < array_len(racers); i++) {
        if (racers[i].r == 0)
            continue;
        assert_int_equal(racers[i].r, -ERR_JOB_ALREADY_RUNNING);
        assert_string_equal(racers[i].err.detail, id);
    }
    assert_int_equal(rows_in(h, "request"), 1);

    claim = claim_one(h, "w1"); /* RUNNING refuses as QUEUED does */
    assert_int_equal(try_submit(h, &order, &answer, &err), -ERR_JOB_ALREADY_RUNNING);
    finish_ok(h, winner, &claim, OUTCOME_COMPLETED);
    assert_ok(try_submit(h, &order, &answer, &err), &err);
}

static void
test_A9_the_database_itself_refuses_a_second_active_row(struct harness *h)
{
    struct db_sql sql = {.name = "second",
                         .text = "INSERT INTO pawl.active (key, request_id)"
                                 " VALUES ('job:task', 99)"};
    struct queue_job job = job_of("task", QUEUE_DUPLICATES_REFUSE);
    struct submit_order order = order_of(&job);
    struct err err = {0};

    submit_order(h, &order);
    assert_int_equal(db_exec(h->db, &sql, NULL, 0, &err), -ERR_DB_CONSTRAINT);
}

static void
test_B29_twenty_equal_requests_at_once_are_one(struct harness *h)
{
    struct queue_job job = job_of("task", QUEUE_DUPLICATES_REUSE);
    struct submit_order order = order_of(&job);
    struct racer racers[20] = {0};
    struct submit_answer answer;
    int created = 0;
    struct err err = {0};

    order.canonical = "{\"country\":\"KR\",\"n\":1}";
    for (size_t i = 0; i < array_len(racers); i++)
        racers[i] = (struct racer){.h = h, .order = &order};
    in_parallel(array_len(racers), race, racers, sizeof(racers[0]));
    for (size_t i = 0; i < array_len(racers); i++) {
        assert_ok(racers[i].r, &racers[i].err);
        assert_int_equal(racers[i].answer.request_id, racers[0].answer.request_id);
        created += !racers[i].answer.reused;
    }
    assert_int_equal(created, 1);
    assert_int_equal(rows_in(h, "request"), 1);

    order.canonical = "{\"country\":\"US\",\"n\":1}";
    assert_ok(try_submit(h, &order, &answer, &err), &err);
    assert_int_equal(answer.how, SUBMIT_NEW);
    order.canonical = "{\"country\":\"KR\",\"n\":1}";
    order.requester = "another";
    assert_ok(try_submit(h, &order, &answer, &err), &err);
    assert_int_equal(answer.how, SUBMIT_NEW);
}

static void
test_B30_only_a_queued_request_is_reused(struct harness *h)
{
    struct queue_job job = job_of("task", QUEUE_DUPLICATES_REUSE);
    struct submit_order order = order_of(&job);
    int64_t first = submit_order(h, &order);
    int64_t second, third;
    struct claim claim;

    assert_int_equal(submit_order(h, &order), first);
    claim = claim_one(h, "w1");
    assert_int_equal(claim.first_id, first);
    assert_int_equal(rows_in(h, "active"), 0); /* the key ended with the claim */
    second = submit_order(h, &order);
    assert_int_not_equal(second, first);
    claim = claim_one(h, "w1");
    finish_ok(h, second, &claim, OUTCOME_COMPLETED);
    third = submit_order(h, &order);
    assert_int_not_equal(third, second);
    assert_int_equal(submit_order(h, &order), third);
}

static void
test_B31_an_old_queued_request_loses_its_key(struct harness *h)
{
    struct queue_job job = job_of("task", QUEUE_DUPLICATES_REUSE);
    struct submit_order order = order_of(&job);
    int64_t old = submit_order(h, &order);
    struct claim claims[2];
    int64_t fresh;
    size_t count;

    harness_clock_advance(h, 9 * US_PER_MINUTE);
    assert_int_equal(submit_order(h, &order), old);
    harness_clock_advance(h, 2 * US_PER_MINUTE);
    fresh = submit_order(h, &order);
    assert_int_not_equal(fresh, old);
    assert_int_equal(submit_order(h, &order), fresh);

    /* Both are settled once; the end of the old one frees nothing of the new one. */
    assert_int_equal(claim_some(h, "w1", 1, claims, &count), 1);
    assert_int_equal(claims[0].first_id, old);
    finish_ok(h, old, &claims[0], OUTCOME_COMPLETED);
    assert_int_equal(submit_order(h, &order), fresh);
    assert_int_equal(claim_some(h, "w1", 1, claims, &count), 1);
    finish_ok(h, fresh, &claims[0], OUTCOME_COMPLETED);
    assert_int_equal(rows_in(h, "outcome"), 2);
    assert_consistent(h);
}

static void
test_idempotency_key_replays_the_answer_whatever_the_duplicates_rule(struct harness *h)
{
    struct queue_job job = job_of("task", QUEUE_DUPLICATES_REFUSE);
    struct submit_order order = keyed(&job, "key-1", "digest-a");
    struct submit_answer first, again;
    struct claim claim;
    struct err err = {0};

    assert_ok(try_submit(h, &order, &first, &err), &err);
    assert_ok(try_submit(h, &order, &again, &err), &err);
    assert_int_equal(again.request_id, first.request_id);
    assert_int_equal(again.how, SUBMIT_REPLAYED);
    assert_string_equal(again.lane, "normal");

    claim = claim_one(h, "w1");
    finish_ok(h, first.request_id, &claim, OUTCOME_COMPLETED);
    assert_ok(try_submit(h, &order, &again, &err), &err);
    assert_int_equal(again.request_id, first.request_id);

    order.body_digest = "digest-b";
    assert_int_equal(try_submit(h, &order, &again, &err), -ERR_IDEMPOTENCY_MISMATCH);
    order.subject = "somebody else"; /* keys belong to who gave them */
    assert_ok(try_submit(h, &order, &again, &err), &err);
    assert_int_not_equal(again.request_id, first.request_id);
}

static void
test_an_idempotency_key_lasts_a_day(struct harness *h)
{
    struct queue_job job = job_of("task", QUEUE_DUPLICATES_ALLOW);
    struct submit_order order = keyed(&job, "key-1", "digest-a");
    struct submit_answer first, again;
    struct err err = {0};

    assert_ok(try_submit(h, &order, &first, &err), &err);
    harness_clock_advance(h, US_PER_DAY);
    assert_ok(try_submit(h, &order, &again, &err), &err);
    assert_int_equal(again.request_id, first.request_id);
    harness_clock_advance(h, 1);
    order.body_digest = "digest-b";
    assert_ok(try_submit(h, &order, &again, &err), &err);
    assert_int_equal(again.how, SUBMIT_NEW);
    assert_ok(try_submit(h, &order, &first, &err), &err);
    assert_int_equal(first.request_id, again.request_id);
}

static void
test_a_refused_submit_does_not_use_up_its_idempotency_key(struct harness *h)
{
    struct queue_job job = job_of("task", QUEUE_DUPLICATES_REFUSE);
    struct submit_order plain = order_of(&job);
    struct submit_order order = keyed(&job, "key-1", "digest-a");
    int64_t active = submit_order(h, &plain);
    struct submit_answer answer;
    struct claim claim;
    struct err err = {0};

    assert_int_equal(try_submit(h, &order, &answer, &err), -ERR_JOB_ALREADY_RUNNING);
    claim = claim_one(h, "w1");
    finish_ok(h, active, &claim, OUTCOME_COMPLETED);
    assert_ok(try_submit(h, &order, &answer, &err), &err);
    assert_int_equal(answer.how, SUBMIT_NEW);
}

static void
test_an_idempotency_key_of_a_reused_request_points_at_it(struct harness *h)
{
    struct queue_job job = job_of("task", QUEUE_DUPLICATES_REUSE);
    struct submit_order plain = order_of(&job);
    struct submit_order order = keyed(&job, "key-1", "digest-a");
    int64_t active = submit_order(h, &plain);
    struct submit_answer answer;
    struct err err = {0};

    assert_ok(try_submit(h, &order, &answer, &err), &err);
    assert_int_equal(answer.how, SUBMIT_REUSED);
    assert_int_equal(answer.request_id, active);
    claim_one(h, "w1");
    assert_ok(try_submit(h, &order, &answer, &err), &err);
    assert_int_equal(answer.how, SUBMIT_REPLAYED);
    assert_int_equal(answer.request_id, active);
    assert_int_equal(rows_in(h, "request"), 1);
}

/* Two orders of one call with the same key: both end at the request they were given. */
static void
test_equal_idempotency_keys_in_one_call_follow_a_reused_request(struct harness *h)
{
    struct queue_job job = job_of("task", QUEUE_DUPLICATES_REUSE);
    struct submit_order plain = order_of(&job);
    struct submit_order orders[] = {keyed(&job, "key-1", "digest-a"),
                                    keyed(&job, "key-1", "digest-a")};
    int64_t active = submit_order(h, &plain);
    struct submit_answer answers[2];
    struct err err = {0};

    assert_ok(queue_submit_many(h->store, orders, 2, answers, NULL, &err), &err);
    assert_int_equal(answers[0].how, SUBMIT_REUSED);
    assert_int_equal(answers[0].request_id, active);
    assert_int_equal(answers[1].how, SUBMIT_REPLAYED);
    assert_int_equal(answers[1].request_id, active);
    assert_int_equal(rows_in(h, "request"), 1);
}

static void
test_twenty_equal_idempotency_keys_at_once_are_one(struct harness *h)
{
    struct queue_job job = job_of("task", QUEUE_DUPLICATES_ALLOW);
    struct submit_order order = keyed(&job, "key-1", "digest-a");
    struct racer racers[20] = {0};

    for (size_t i = 0; i < array_len(racers); i++)
        racers[i] = (struct racer){.h = h, .order = &order};
    in_parallel(array_len(racers), race, racers, sizeof(racers[0]));
    for (size_t i = 0; i < array_len(racers); i++) {
        assert_ok(racers[i].r, &racers[i].err);
        assert_int_equal(racers[i].answer.request_id, racers[0].answer.request_id);
    }
    assert_int_equal(rows_in(h, "request"), 1);
}

/* --- bulk --- */

#define BULK 1000

static void
test_bulk_is_one_span_where_the_requests_are_alike(struct harness *h)
{
    scoped(arena_release) struct arena arena = {0};
    struct queue_job job = job_of("task", QUEUE_DUPLICATES_ALLOW);
    struct submit_order *orders = arena_array(&arena, struct submit_order, BULK);
    struct submit_answer *answers = arena_array(&arena, struct submit_answer, BULK);
    struct err err = {0};

    for (size_t i = 0; i < BULK; i++) {
        orders[i] = order_of(&job);
        orders[i].given = arena_printf(&arena, "{\"n\":%zu,\"t\":\"a\\tb\\\\\"}", i);
        if (i >= 400 && i < 500)
            orders[i].priority = 1;
        if (i >= 900)
            orders[i].not_before_us = HARNESS_NOW + US_PER_HOUR;
    }
    assert_ok(queue_submit_many(h->store, orders, BULK, answers, NULL, &err), &err);
    assert_int_equal(rows_in(h, "request"), BULK);
    assert_int_equal(rows_in(h, "ready"), 3);
    assert_int_equal(rows_in(h, "later"), 1);
    assert_consistent(h);
    for (size_t i = 0; i < BULK; i += 333)
        assert_string_equal(get(h, &arena, answers[i].request_id).given,
                            orders[i].given);
}

static void
test_bulk_is_all_or_nothing_and_names_the_refused_one(struct harness *h)
{
    struct queue_job free_job = job_of("task", QUEUE_DUPLICATES_ALLOW);
    struct queue_job job = job_of("batch", QUEUE_DUPLICATES_REFUSE);
    struct submit_order orders[10];
    struct submit_answer answers[10];
    struct err err = {0};
    size_t refused = 99;

    for (size_t i = 0; i < 10; i++)
        orders[i] = keyed(&free_job, i % 2 ? "odd" : "even", "d");
    orders[3] = order_of(&job);
    orders[7] = order_of(&job); /* the same job twice */
    assert_int_equal(queue_submit_many(h->store, orders, 10, answers, &refused, &err),
                     -ERR_JOB_ALREADY_RUNNING);
    assert_int_equal(refused, 7);
    err_clear(&err);
    orders[7] = order_of(&free_job);
    orders[5].body_digest = "another";
    assert_int_equal(queue_submit_many(h->store, orders, 10, answers, &refused, &err),
                     -ERR_IDEMPOTENCY_MISMATCH);
    assert_int_equal(refused, 5);
    err_clear(&err);
    orders[5].body_digest = "d";
    orders[8].priority = -101;
    assert_int_equal(queue_submit_many(h->store, orders, 10, answers, &refused, &err),
                     -ERR_INVALID);
    assert_int_equal(refused, 8);
    assert_int_equal(rows_in(h, "request"), 0);
    assert_int_equal(rows_in(h, "active"), 0);
    assert_int_equal(rows_in(h, "idempotency"), 0);

    err_clear(&err);
    orders[8].priority = 0;
    assert_ok(queue_submit_many(h->store, orders, 10, answers, &refused, &err), &err);
    assert_int_equal(answers[2].request_id, answers[0].request_id); /* key "even" */
    assert_int_equal(answers[2].how, SUBMIT_REPLAYED);
    assert_int_equal(rows_in(h, "request"), 4);
}

static void
test_bulk_reuses_within_itself(struct harness *h)
{
    struct queue_job job = job_of("task", QUEUE_DUPLICATES_REUSE);
    struct submit_order orders[6];
    struct submit_answer answers[6];
    struct err err = {0};

    for (size_t i = 0; i < 6; i++) {
        orders[i] = order_of(&job);
        orders[i].canonical = i % 3 == 0   ? "{\"n\":0}"
                              : i % 3 == 1 ? "{\"n\":1}"
                                           : "{}";
    }
    assert_ok(queue_submit_many(h->store, orders, 6, answers, NULL, &err), &err);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(answers[i].how, SUBMIT_NEW);
        assert_int_equal(answers[i + 3].how, SUBMIT_REUSED);
        assert_int_equal(answers[i + 3].request_id, answers[i].request_id);
    }
    assert_int_equal(rows_in(h, "request"), 3);
    assert_consistent(h);
}

static void
test_bulk_over_the_limit_is_refused(struct harness *h)
{
    struct queue_job job = job_of("task", QUEUE_DUPLICATES_ALLOW);
    struct submit_order *orders = xcalloc(QUEUE_SUBMIT_MAX + 1, sizeof(*orders));
    struct submit_answer *answers = xcalloc(QUEUE_SUBMIT_MAX + 1, sizeof(*answers));
    struct err err = {0};

    for (size_t i = 0; i <= QUEUE_SUBMIT_MAX; i++)
        orders[i] = order_of(&job);
    assert_int_equal(
        queue_submit_many(h->store, orders, QUEUE_SUBMIT_MAX + 1, answers, NULL, &err),
        -ERR_TOO_LARGE);
    err_clear(&err);
    assert_ok(
        queue_submit_many(h->store, orders, QUEUE_SUBMIT_MAX, answers, NULL, &err),
        &err);
    assert_int_equal(rows_in(h, "ready"), 1);
    assert_ok(queue_submit_many(h->store, orders, 0, answers, NULL, &err), &err);
    free(orders);
    free(answers);
}

/* --- PostgreSQL: somebody's open transaction has the key --- */

static void
test_a_key_held_by_an_open_transaction_is_answered_in_time(struct harness *h)
{
    struct queue_job job = job_of("task", QUEUE_DUPLICATES_REFUSE);
    struct submit_order order = order_of(&job);
    int64_t before = clock_mono_us(clock_real());
    struct submit_answer answer;
    struct err err = {0};

    harness_sql(h, "BEGIN; SELECT pg_advisory_xact_lock("
                   "hashtextextended('job:task', 0))");
    assert_int_equal(try_submit(h, &order, &answer, &err), -ERR_JOB_BEING_SUBMITTED);
    assert_true(clock_mono_us(clock_real()) - before < 10 * US_PER_S);
    harness_sql(h, "ROLLBACK");
    assert_ok(try_submit(h, &order, &answer, &err), &err);
}

static void
test_pawl_run_takes_its_request_at_once(struct harness *h)
{
    struct queue_job job = job_of("batch", QUEUE_DUPLICATES_REFUSE);
    struct submit_order order = order_of(&job);
    scoped(arena_release) struct arena arena = {0};
    struct submit_answer answer, other;
    struct request request;
    struct claim claim = {0};
    struct err err = {0};

    order.source = SOURCE_CLI;
    assert_ok(
        queue_submit_claimed(h->store, &order, "cli-1", &answer, &claim.token, &err),
        &err);
    request = get(h, &arena, answer.request_id);
    assert_int_equal(request.status, REQUEST_RUNNING);
    assert_string_equal(request.worker, "cli-1");
    assert_int_equal(rows_in(h, "ready"), 0);
    assert_int_equal(try_submit(h, &order, &other, &err), -ERR_JOB_ALREADY_RUNNING);
    finish_ok(h, answer.request_id, &claim, OUTCOME_COMPLETED);
    assert_ok(try_submit(h, &order, &other, &err), &err);
}

static void
test_pawl_run_takes_the_one_that_is_queued_already(struct harness *h)
{
    struct queue_job job = job_of("again", QUEUE_DUPLICATES_REUSE);
    struct submit_order order = order_of(&job);
    scoped(arena_release) struct arena arena = {0};
    struct submit_answer queued, answer;
    struct request request;
    struct claim claim = {0};
    struct err err = {0};

    assert_ok(try_submit(h, &order, &queued, &err), &err);
    order.source = SOURCE_CLI;
    assert_ok(
        queue_submit_claimed(h->store, &order, "cli-1", &answer, &claim.token, &err),
        &err);
    assert_int_equal(answer.request_id, queued.request_id);
    request = get(h, &arena, answer.request_id);
    assert_int_equal(request.status, REQUEST_RUNNING);
    assert_string_equal(request.worker, "cli-1");
    assert_int_equal(rows_in(h, "ready") + rows_in(h, "active"), 0);
    finish_ok(h, answer.request_id, &claim, OUTCOME_COMPLETED);
    assert_int_equal(rows_in(h, "request"), 1);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(test_B5_the_row_is_there_when_the_answer_comes),
        store_test(test_B15_B16_the_lane_is_stored_and_stays_after_a_restart),
        store_test(test_A7_a_refusal_stores_nothing),
        store_test(test_A9_fifty_at_once_give_one_request_and_49_refusals),
        store_test(test_A9_the_database_itself_refuses_a_second_active_row),
        store_test(test_B29_twenty_equal_requests_at_once_are_one),
        store_test(test_B30_only_a_queued_request_is_reused),
        store_test(test_B31_an_old_queued_request_loses_its_key),
        store_test(
            test_idempotency_key_replays_the_answer_whatever_the_duplicates_rule),
        store_test(test_an_idempotency_key_lasts_a_day),
        store_test(test_a_refused_submit_does_not_use_up_its_idempotency_key),
        store_test(test_an_idempotency_key_of_a_reused_request_points_at_it),
        store_test(test_equal_idempotency_keys_in_one_call_follow_a_reused_request),
        store_test(test_twenty_equal_idempotency_keys_at_once_are_one),
        store_test(test_bulk_is_one_span_where_the_requests_are_alike),
        store_test(test_bulk_is_all_or_nothing_and_names_the_refused_one),
        store_test(test_bulk_reuses_within_itself),
        store_test(test_bulk_over_the_limit_is_refused),
        store_test_pg(test_a_key_held_by_an_open_transaction_is_answered_in_time),
        store_test_pgbouncer(
            test_a_key_held_by_an_open_transaction_is_answered_in_time),
        store_test(test_pawl_run_takes_its_request_at_once),
        store_test(test_pawl_run_takes_the_one_that_is_queued_already),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The next try after a failure: made with the outcome, one thing with the try before.
 */
#include "tests/store/queue/common.h"

#include "queue/lost.h"
#include "queue/tries.h"

#include <stdlib.h>
#include <string.h>

#define ON_LOSS  "\"WORKER_LOST\""
#define ON_ERROR "\"ERROR\",\"WORKER_LOST\""

static int64_t
newest(struct harness *h)
{
    return harness_i64(h, "SELECT max(id) FROM pawl.request");
}

static void
lose(struct harness *h, const char *worker)
{
    scoped(arena_release) struct arena arena = {0};
    struct lost_request *list = NULL;
    struct err err = {0};
    size_t count;

    assert_ok(queue_close_lost(h->store, worker, "it died", NULL, NULL, &arena, &list,
                               &count, &err),
              &err);
}

static void
test_I10_a_lost_try_is_followed_by_another_in_the_same_transaction(struct harness *h)
{
    const struct queue_job *job = define_job(
        h, &(struct job_text){
               .name = "task", .attempts = 3, .on = ON_LOSS, .backoff_us = 10000000});
    struct submit_order order = order_of(job);
    scoped(arena_release) struct arena arena = {0};
    struct request second;
    struct request third;
    int64_t first_id;
    int64_t id;

    order.next = "[\"other\"]";
    order.priority = 7;
    order.has_max_calls = true;
    order.max_calls = 5;
    order.idempotency_key = "k";
    order.body_digest = "d";
    first_id = submit_order(h, &order);
    claim_one(h, "w1");
    lose(h, "w1");
    id = newest(h);
    assert_int_not_equal(id, first_id);
    second = get(h, &arena, id);
    assert_int_equal(second.status, REQUEST_QUEUED);
    assert_int_equal(second.place, PLACE_READY); /* the first loss goes on at once */
    assert_int_equal(second.retry_of, first_id);
    assert_int_equal(second.first_try, first_id);
    assert_int_equal(second.attempt, 2);
    assert_int_equal(second.source, SOURCE_RETRY);
    assert_int_equal(second.priority, 7);
    assert_int_equal(second.max_calls, -1);
    assert_string_equal(second.requester, "tester");
    assert_string_equal(second.next, "[\"other\"]");
    assert_int_equal(claim_one(h, "w2").first_id, id);
    lose(h, "w2");
    third = get(h, &arena, newest(h));
    assert_int_equal(third.attempt, 3);
    assert_int_equal(third.retry_of, id);
    assert_int_equal(third.first_try, first_id);
    assert_int_equal(third.place, PLACE_LATER); /* whatever fails again waits */
    assert_string_equal(third.later_reason, "time");
    assert_in_range(third.not_before_us - HARNESS_NOW, 7500000, 10000000);
    assert_consistent(h);
}

static void
test_I10_the_last_attempt_is_not_followed(struct harness *h)
{
    const struct queue_job *job = define_job(
        h, &(struct job_text){.name = "task", .attempts = 2, .on = ON_ERROR});
    struct submit_order order = order_of(job);
    int64_t id = submit_order(h, &order);
    struct claim claim = claim_one(h, "w1");

    finish_ok(h, id, &claim, OUTCOME_ERROR);
    id = newest(h);
    claim = claim_one(h, "w1");
    assert_int_equal(claim.first_id, id);
    finish_ok(h, id, &claim, OUTCOME_ERROR);
    assert_int_equal(newest(h), id);
    assert_int_equal(rows_in(h, "request"), 2);
    assert_consistent(h);
}

static void
test_only_the_outcomes_of_the_policy_are_tried_again(struct harness *h)
{
    static const enum request_outcome outcomes[] = {OUTCOME_ERROR, OUTCOME_TIMEOUT,
                                                    OUTCOME_COMPLETED, OUTCOME_STOPPED,
                                                    OUTCOME_REFUSED};
    const struct queue_job *job =
        define_job(h, &(struct job_text){.name = "task", .attempts = 3, .on = ON_LOSS});
    struct submit_order order = order_of(job);

    for (size_t i = 0; i < array_len(outcomes); i++) {
        int64_t id = submit_order(h, &order);
        struct claim claim = claim_one(h, "w1");

        finish_ok(h, id, &claim, outcomes[i]);
        assert_int_equal(newest(h), id);
    }
    harness_sql(h, "UPDATE pawl.job_definition SET withdrawn_at = 1");
    submit_order(h, &order);
    claim_one(h, "w1");
    lose(h, "w1");
    assert_int_equal(rows_in(h, "ready"), 0);
}

static void
test_a_drained_try_uses_no_attempt_and_a_stopped_one_is_not_followed(struct harness *h)
{
    const struct queue_job *job = define_job(
        h, &(struct job_text){.name = "task", .attempts = 1, .drained = true});
    struct submit_order order = order_of(job);
    scoped(arena_release) struct arena arena = {0};
    int64_t id = submit_order(h, &order);
    struct err err = {0};
    struct claim claim;

    for (int i = 0; i < 5; i++) {
        claim = claim_one(h, "w1");
        finish_ok(h, id, &claim, OUTCOME_STOPPED);
        id++;
        assert_int_equal(newest(h), id);
        assert_int_equal(get(h, &arena, id).attempt, 1);
    }
    claim = claim_one(h, "w1");
    assert_int_equal(queue_stop(h->store, id, "op", &err), QUEUE_STOP_REQUESTED);
    finish_ok(h, id, &claim, OUTCOME_STOPPED);
    assert_int_equal(newest(h), id);
}

/* A next try at once would find as few calls left, and the next, until midnight. */
static void
test_A31_a_try_that_has_spent_its_calls_is_not_followed(struct harness *h)
{
    const struct queue_job *job = define_job(
        h, &(struct job_text){.name = "task", .attempts = 3, .drained = true});
    struct submit_order submit = order_of(job);
    int64_t id = submit_order(h, &submit);
    struct claim claim = claim_one(h, "w1");
    struct finish_order order = finish_of(id, &claim, OUTCOME_STOPPED);
    struct err err = {0};

    order.spent = true;
    assert_int_equal(queue_finish(h->store, &order, &err), QUEUE_FINISHED);
    assert_int_equal(newest(h), id);
    assert_int_equal(rows_in(h, "ready"), 0);
    assert_consistent(h);
}

static void
test_confirm_values_are_not_inherited(struct harness *h)
{
    const struct queue_job *job = define_job(
        h, &(struct job_text){.name = "task",
                              .attempts = 3,
                              .on = ON_ERROR,
                              .params = "{\"n\":{\"type\":\"integer\"},\"purge\":"
                                        "{\"confirm\":true,\"type\":\"boolean\"}}",
                              .param_order = "[\"n\",\"purge\"]"});
    struct submit_order order = order_of(job);
    scoped(arena_release) struct arena arena = {0};
    struct claim claim;
    int64_t id;

    order.given = "{\"n\":3,\"purge\":true}";
    id = submit_order(h, &order);
    claim = claim_one(h, "w1");
    finish_ok(h, id, &claim, OUTCOME_ERROR);
    assert_string_equal(get(h, &arena, newest(h)).given, "{\"n\":3}");
}

struct rolled_back {
    struct finish_order order;
};

static int
finish_and_fail(struct db *db, void *arg, struct err *err)
{
    struct rolled_back *call = (struct rolled_back *)arg;
    int r = queue_finish_in(db, &call->order, 1, NULL, err);

    assert_ok(r, err);
    assert_true(r > 0);
    return err_set(err, ERR_INTERNAL, "on purpose");
}

static void
test_a_rollback_leaves_neither_outcome_nor_next_try(struct harness *h)
{
    const struct queue_job *job = define_job(
        h, &(struct job_text){
               .name = "task", .duplicates = "refuse", .attempts = 3, .on = ON_ERROR});
    struct submit_order order = order_of(job);
    int64_t id = submit_order(h, &order);
    struct claim claim = claim_one(h, "w1");
    struct rolled_back call = {.order = finish_of(id, &claim, OUTCOME_ERROR)};
    struct err err = {0};

    assert_int_equal(store_write(h->store, STORE_NORMAL, finish_and_fail, &call, &err),
                     -ERR_INTERNAL);
    assert_int_equal(rows_in(h, "request"), 1);
    assert_int_equal(rows_in(h, "outcome"), 0);
    assert_int_equal(harness_i64(h, "SELECT request_id FROM pawl.active"), id);
    finish_ok(h, id, &claim, OUTCOME_ERROR);
    assert_int_equal(rows_in(h, "request"), 2);
    /* Again, as after a lost answer: it stands already, and nothing more follows. */
    finish_ok(h, id, &claim, OUTCOME_ERROR);
    assert_int_equal(rows_in(h, "request"), 2);
    assert_consistent(h);
}

static void
test_the_key_moves_and_a_person_who_would_resume_meets_the_next_try(struct harness *h)
{
    const struct queue_job *job = define_job(
        h, &(struct job_text){.name = "task",
                              .duplicates = "refuse",
                              .attempts = 3,
                              .on = ON_ERROR,
                              .backoff_us = 60000000,
                              .params = "{\"n\":{\"default\":1,\"type\":\"integer\"}}",
                              .param_order = "[\"n\"]"});
    struct submit_order order = order_of(job);
    scoped(arena_release) struct arena arena = {0};
    struct submit_answer answer;
    struct err err = {0};
    struct claim claim;
    int64_t id;
    int64_t next_id;

    order.given = "{\"n\":24}";
    id = submit_order(h, &order);
    claim = claim_one(h, "w1");
    finish_ok(h, id, &claim, OUTCOME_ERROR);
    next_id = newest(h);
    assert_int_equal(get(h, &arena, next_id).place, PLACE_LATER);
    assert_int_equal(harness_i64(h, "SELECT request_id FROM pawl.active"), next_id);

    order.given = "{\"n\":36}";
    assert_int_equal(try_submit(h, &order, &answer, &err), -ERR_JOB_ALREADY_RUNNING);
    assert_int_equal(strtoll(err.detail, NULL, 10), next_id);
    order.given = "{}";
    order.restart = 0;
    assert_int_equal(try_submit(h, &order, &answer, &err), -ERR_JOB_ALREADY_RUNNING);
    order.restart = -1;
    order.source = SOURCE_SCHEDULE;
    assert_int_equal(try_submit(h, &order, &answer, &err), -ERR_JOB_ALREADY_RUNNING);
    assert_int_equal(get(h, &arena, next_id).place, PLACE_LATER);

    order.source = SOURCE_API;
    assert_ok(try_submit(h, &order, &answer, &err), &err);
    assert_int_equal(answer.request_id, next_id);
    assert_true(answer.reused);
    assert_int_equal(get(h, &arena, next_id).place, PLACE_READY);
    order.given = "{\"n\":24}";
    assert_ok(try_submit(h, &order, &answer, &err), &err);
    assert_int_equal(answer.request_id, next_id);
    claim = claim_one(h, "w1");
    assert_int_equal(claim.first_id, next_id);
    assert_int_equal(try_submit(h, &order, &answer, &err), -ERR_JOB_ALREADY_RUNNING);
    finish_ok(h, next_id, &claim, OUTCOME_COMPLETED);
    assert_int_equal(rows_in(h, "active"), 0);
    assert_consistent(h);
}

static void
test_B30_a_next_try_of_a_reuse_job_is_reused_while_it_is_queued(struct harness *h)
{
    const struct queue_job *job =
        define_job(h, &(struct job_text){.name = "task",
                                         .duplicates = "reuse",
                                         .attempts = 3,
                                         .on = ON_ERROR,
                                         .backoff_us = 60000000});
    struct submit_order order = order_of(job);
    scoped(arena_release) struct arena arena = {0};
    struct submit_answer answer;
    struct err err = {0};
    int64_t id = submit_order(h, &order);
    struct claim claim = claim_one(h, "w1");
    int64_t next_id;

    finish_ok(h, id, &claim, OUTCOME_ERROR);
    next_id = newest(h);
    assert_ok(try_submit(h, &order, &answer, &err), &err);
    assert_int_equal(answer.request_id, next_id);
    assert_int_equal(get(h, &arena, next_id).place, PLACE_READY);
    claim_one(h, "w1");
    assert_ok(try_submit(h, &order, &answer, &err), &err);
    assert_int_not_equal(answer.request_id, next_id);
    /* This one has the key now, so the third try goes without. */
    lose(h, "w1");
    assert_int_equal(harness_i64(h, "SELECT request_id FROM pawl.active"),
                     answer.request_id);
    assert_consistent(h);
}

static void
test_I12_cancel_of_any_try_ends_the_live_one_for_good(struct harness *h)
{
    const struct queue_job *job = define_job(
        h, &(struct job_text){
               .name = "task", .attempts = 9, .on = ON_ERROR, .backoff_us = 1000000});
    struct submit_order order = order_of(job);
    scoped(arena_release) struct arena arena = {0};
    struct err err = {0};
    int64_t first_id = submit_order(h, &order);
    struct claim claim = claim_one(h, "w1");
    int64_t id;

    finish_ok(h, first_id, &claim, OUTCOME_ERROR);
    id = newest(h);
    /* The first one is final; its next try is QUEUED and ends at once. */
    assert_int_equal(queue_cancel(h->store, first_id, "op", &err), QUEUE_CANCELLED);
    assert_int_equal(get(h, &arena, id).outcome, OUTCOME_CANCELLED);
    assert_int_equal(get(h, &arena, first_id).outcome, OUTCOME_ERROR);
    assert_int_equal(queue_cancel(h->store, first_id, "op", &err), -ERR_ALREADY_FINAL);
    err_clear(&err);
    assert_int_equal(newest(h), id);

    first_id = submit_order(h, &order);
    claim_one(h, "w1");
    lose(h, "w1");
    id = newest(h);
    claim = claim_one(h, "w2");
    assert_int_equal(queue_cancel(h->store, first_id, "op", &err),
                     QUEUE_CANCEL_REQUESTED);
    assert_true(get(h, &arena, id).cancel_asked);
    finish_ok(h, id, &claim, OUTCOME_ERROR); /* it failed before it saw the flag */
    assert_int_equal(newest(h), id);

    first_id = submit_order(h, &order);
    claim_one(h, "w3");
    assert_int_equal(queue_cancel(h->store, first_id, "op", &err),
                     QUEUE_CANCEL_REQUESTED);
    lose(h, "w3");
    assert_int_equal(get(h, &arena, first_id).outcome, OUTCOME_CANCELLED);
    assert_int_equal(newest(h), first_id);
    assert_consistent(h);
}

struct racer {
    struct harness *h;
    bool cancels;
    int64_t id;
    int result;
};

static void *
race(void *arg)
{
    struct racer *racer = (struct racer *)arg;
    scoped(arena_release) struct arena arena = {0};
    struct lost_request *list = NULL;
    struct err err = {0};
    size_t count;

    if (racer->cancels)
        racer->result = queue_cancel(racer->h->store, racer->id, "op", &err);
    else
        racer->result = queue_close_lost(racer->h->store, "w1", "it died", NULL, NULL,
                                         &arena, &list, &count, &err);
    return NULL;
}

static void
test_I12_a_cancel_that_races_the_rescue_leaves_no_new_try(struct harness *h)
{
    const struct queue_job *job = define_job(
        h, &(struct job_text){.name = "task", .attempts = 100, .on = ON_LOSS});
    struct submit_order order = order_of(job);

    for (int i = 0; i < 30; i++) {
        int64_t id = submit_order(h, &order);
        struct racer racers[] = {{h, true, id, 0}, {h, false, id, 0}};

        claim_one(h, "w1");
        in_parallel(2, race, racers, sizeof(racers[0]));
        assert_true(racers[0].result >= 0); /* acknowledged */
        assert_int_equal(racers[1].result, 0);
        assert_int_equal(
            rows_in(h, "ready") + rows_in(h, "later") + rows_in(h, "claim"), 0);
    }
    assert_consistent(h);
}

static void
test_a_lost_span_becomes_one_span_of_next_tries(struct harness *h)
{
    struct claim claims[50];
    size_t count;

    define_job(h, &(struct job_text){.name = "task", .attempts = 3, .on = ON_LOSS});
    submit_span(h, "task", 50);
    assert_int_equal(claim_some(h, "w1", 50, claims, &count), 50);
    lose(h, "w1");
    assert_int_equal(rows_in(h, "request"), 100);
    assert_int_equal(rows_in(h, "ready"), 1);
    assert_int_equal(harness_i64(h, "SELECT last_id - first_id FROM pawl.ready"), 49);
    assert_consistent(h);
}

static void
test_the_tries_are_one_thing_to_the_reader(struct harness *h)
{
    const struct queue_job *job = define_job(
        h, &(struct job_text){.name = "task", .attempts = 3, .on = ON_ERROR});
    struct submit_order order = order_of(job);
    scoped(arena_release) struct arena arena = {0};
    int64_t first_id = submit_order(h, &order);
    struct claim claim = claim_one(h, "w1");
    struct request_try *tries = NULL;
    struct err err = {0};
    size_t count;
    int64_t id;

    finish_ok(h, first_id, &claim, OUTCOME_ERROR);
    claim = claim_one(h, "w1");
    id = claim.first_id;
    for (int64_t asked = first_id; asked <= id; asked += id - first_id) {
        assert_ok(queue_tries(h->store, asked, &arena, &tries, &count, &err), &err);
        assert_int_equal(count, 2);
        assert_int_equal(tries[0].id, first_id);
        assert_int_equal(tries[0].outcome, OUTCOME_ERROR);
        assert_int_equal(tries[0].status, REQUEST_FAILED);
        assert_int_equal(tries[1].id, id);
        assert_int_equal(tries[1].attempt, 2);
        assert_int_equal(tries[1].status, REQUEST_RUNNING);
        assert_int_equal(tries[1].source, SOURCE_RETRY);
    }
    finish_ok(h, id, &claim, OUTCOME_COMPLETED);
    assert_int_equal(rows_in(h, "request"), 2);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(test_I10_a_lost_try_is_followed_by_another_in_the_same_transaction),
        store_test(test_I10_the_last_attempt_is_not_followed),
        store_test(test_only_the_outcomes_of_the_policy_are_tried_again),
        store_test(
            test_a_drained_try_uses_no_attempt_and_a_stopped_one_is_not_followed),
        store_test(test_A31_a_try_that_has_spent_its_calls_is_not_followed),
        store_test(test_confirm_values_are_not_inherited),
        store_test(test_a_rollback_leaves_neither_outcome_nor_next_try),
        store_test(test_the_key_moves_and_a_person_who_would_resume_meets_the_next_try),
        store_test(test_B30_a_next_try_of_a_reuse_job_is_reused_while_it_is_queued),
        store_test(test_I12_cancel_of_any_try_ends_the_live_one_for_good),
        store_test(test_I12_a_cancel_that_races_the_rescue_leaves_no_new_try),
        store_test(test_a_lost_span_becomes_one_span_of_next_tries),
        store_test(test_the_tries_are_one_thing_to_the_reader),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The next of a chain: released once, by the transaction that records COMPLETED. */
#include "tests/store/queue/common.h"

#include "queue/lost.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int64_t
newest(struct harness *h)
{
    return harness_i64(h, "SELECT max(id) FROM pawl.request");
}

/* Claims it, which must be the next one, and ends it. */
static void
carry_out(struct harness *h, int64_t id, enum request_outcome outcome)
{
    struct claim claim = claim_one(h, "w1");

    assert_int_equal(claim.first_id, id);
    finish_ok(h, id, &claim, outcome);
}

static void
define_three(struct harness *h, const char *third_duplicates)
{
    define_job(h, &(struct job_text){.name = "task"});
    define_job(h, &(struct job_text){.name = "other"});
    define_job(h, &(struct job_text){.name = "third", .duplicates = third_duplicates});
}

static int64_t
submit_chain(struct harness *h, const char *name, const char *next)
{
    struct queue_job job = job_of(name, QUEUE_DUPLICATES_ALLOW);
    struct submit_order order = order_of(&job);

    order.next = next;
    return submit_order(h, &order);
}

static void
assert_request(struct harness *h, int64_t id, const char *job, const char *requester,
               const char *next)
{
    scoped(arena_release) struct arena arena = {0};
    struct request request = get(h, &arena, id);

    assert_string_equal(request.job, job);
    assert_string_equal(request.requester, requester);
    assert_int_equal(request.source, SOURCE_CHAIN);
    assert_int_equal(request.status, REQUEST_QUEUED);
    if (next)
        assert_string_equal(request.next, next);
    else
        assert_null(request.next);
}

static void
test_A12_a_chain_goes_from_link_to_link(struct harness *h)
{
    char requester[40];
    int64_t id;

    define_three(h, "allow");
    id = submit_chain(h, "task", "[\"other\",\"third\"]");
    carry_out(h, id, OUTCOME_COMPLETED);
    snprintf(requester, sizeof(requester), "chain:#%" PRId64, id);
    id = newest(h);
    assert_request(h, id, "other", requester, "[\"third\"]");
    carry_out(h, id, OUTCOME_COMPLETED);
    snprintf(requester, sizeof(requester), "chain:#%" PRId64, id);
    id = newest(h);
    assert_request(h, id, "third", requester, NULL);
    carry_out(h, id, OUTCOME_COMPLETED);
    assert_int_equal(newest(h), id);
    assert_int_equal(rows_in(h, "audit"), 0);
    assert_consistent(h);
}

static void
test_A12_the_list_of_the_job_counts_where_the_request_has_none(struct harness *h)
{
    int64_t id;

    define_three(h, "allow");
    define_job(h, &(struct job_text){.name = "task", .next = "[\"other\"]"});
    id = submit_chain(h, "task", NULL);
    carry_out(h, id, OUTCOME_COMPLETED);
    id = newest(h);
    assert_int_equal(harness_i64(h, "SELECT count(*) FROM pawl.request WHERE job = "
                                    "'other'"),
                     1);
    carry_out(h, id, OUTCOME_COMPLETED);
    id = submit_chain(h, "task", "[]"); /* none, this time */
    carry_out(h, id, OUTCOME_COMPLETED);
    assert_int_equal(newest(h), id);
}

static void
test_A12_only_completed_releases(struct harness *h)
{
    static const enum request_outcome outcomes[] = {OUTCOME_STOPPED, OUTCOME_ERROR,
                                                    OUTCOME_TIMEOUT, OUTCOME_CANCELLED,
                                                    OUTCOME_WORKER_LOST};
    struct err err = {0};
    struct claim claim;
    int64_t id;

    define_three(h, "allow");
    for (size_t i = 0; i < array_len(outcomes); i++) {
        id = submit_chain(h, "task", "[\"other\"]");
        carry_out(h, id, outcomes[i]);
        assert_int_equal(newest(h), id);
    }
    id = submit_chain(h, "task", "[\"other\"]");
    assert_int_equal(queue_cancel(h->store, id, "op", &err), QUEUE_CANCELLED);
    assert_int_equal(newest(h), id);
    /* It was faster than the cancel, and yet nothing follows. */
    id = submit_chain(h, "task", "[\"other\"]");
    claim = claim_one(h, "w1");
    assert_int_equal(queue_cancel(h->store, id, "op", &err), QUEUE_CANCEL_REQUESTED);
    finish_ok(h, id, &claim, OUTCOME_COMPLETED);
    assert_int_equal(newest(h), id);
}

struct fail_call {
    struct finish_order order;
};

static int
finish_and_fail(struct db *db, void *arg, struct err *err)
{
    struct fail_call *call = (struct fail_call *)arg;

    assert_ok(queue_finish_in(db, &call->order, 1, NULL, err), err);
    return err_set(err, ERR_INTERNAL, "on purpose");
}

static void
test_I21_a_link_is_released_once_however_often_the_end_is_told(struct harness *h)
{
    struct fail_call call;
    struct err err = {0};
    struct claim claim;
    int64_t id;

    define_three(h, "allow");
    id = submit_chain(h, "task", "[\"other\"]");
    claim = claim_one(h, "w1");
    call.order = finish_of(id, &claim, OUTCOME_COMPLETED);
    assert_int_equal(store_write(h->store, STORE_NORMAL, finish_and_fail, &call, &err),
                     -ERR_INTERNAL);
    assert_int_equal(rows_in(h, "request"), 1); /* neither */
    finish_ok(h, id, &claim, OUTCOME_COMPLETED);
    finish_ok(h, id, &claim, OUTCOME_COMPLETED); /* the answer was lost */
    finish_ok(h, id, &claim, OUTCOME_COMPLETED);
    assert_int_equal(rows_in(h, "request"), 2);
}

static void
test_A12_a_refuse_job_may_follow_itself(struct harness *h)
{
    int64_t id;

    const struct queue_job *job = define_job(
        h, &(struct job_text){
               .name = "task", .duplicates = "refuse", .next = "[\"task\"]"});
    struct submit_order order = order_of(job);

    id = submit_order(h, &order);
    for (int i = 0; i < 3; i++) {
        carry_out(h, id, OUTCOME_COMPLETED);
        id = newest(h);
        assert_int_equal(harness_i64(h, "SELECT request_id FROM pawl.active"), id);
        assert_consistent(h);
    }
    assert_int_equal(rows_in(h, "audit"), 0);
}

static void
test_A12_a_key_that_is_taken_drops_the_link_with_a_line(struct harness *h)
{
    struct queue_job third = job_of("third", QUEUE_DUPLICATES_REFUSE);
    struct submit_order order = order_of(&third);
    scoped(arena_release) struct arena arena = {0};
    scoped(xfree_ptr) char *detail = NULL;
    char expected[80];
    struct claim claim;
    int64_t holder;
    int64_t id;

    define_three(h, "refuse");
    id = submit_chain(h, "task", "[\"third\"]");
    claim = claim_one(h, "w1");
    holder = submit_order(h, &order);
    finish_ok(h, id, &claim, OUTCOME_COMPLETED);
    assert_int_equal(get(h, &arena, id).outcome, OUTCOME_COMPLETED);
    assert_int_equal(newest(h), holder);
    detail = harness_text(h,
                          "SELECT detail FROM pawl.audit WHERE act = 'chain-dropped' "
                          "AND subject = 'request %" PRId64 "'",
                          id);
    snprintf(expected, sizeof(expected), "job third has request %" PRId64 " already",
             holder);
    assert_string_equal(detail, expected);
}

static void
test_a_link_that_cannot_be_asked_for_is_dropped_with_a_line(struct harness *h)
{
    static const char *const nexts[] = {
        "[\"gone\"]", "[{\"job\":\"other\",\"params\":{\"q\":1}}]", "[5]"};

    define_three(h, "allow");
    for (size_t i = 0; i < array_len(nexts); i++) {
        int64_t id = submit_chain(h, "task", nexts[i]);

        carry_out(h, id, OUTCOME_COMPLETED);
        assert_int_equal(newest(h), id);
        assert_int_equal(rows_in(h, "audit"), (int64_t)i + 1);
    }
}

static void
test_parameters_are_mapped_on(struct harness *h)
{
    static const char params[] =
        "{\"country\":{\"type\":\"string\"},\"n\":{\"default\":4,\"type\":\"integer\"},"
        "\"note\":{\"type\":\"string\"}}";
    static const char order_text[] = "[\"country\",\"n\",\"note\"]";
    scoped(arena_release) struct arena arena = {0};
    struct submit_order order;
    int64_t id;

    order = order_of(define_job(h, &(struct job_text){.name = "task",
                                                      .params = params,
                                                      .param_order = order_text}));
    define_job(h, &(struct job_text){
                      .name = "other", .params = params, .param_order = order_text});
    order.given = "{\"country\":\"KR\"}";
    order.next = "[{\"job\":\"other\",\"params\":{\"country\":\"{country}\","
                 "\"n\":\"{n}\",\"note\":\"{{n}}\"}},{\"job\":\"other\",\"params\":"
                 "{\"n\":\"{n}\",\"note\":\"{country}\",\"country\":\"x\"}}]";
    id = submit_order(h, &order);
    carry_out(h, id, OUTCOME_COMPLETED);
    id = newest(h);
    assert_string_equal(get(h, &arena, id).given,
                        "{\"country\":\"KR\",\"n\":4,\"note\":\"{n}\"}");
    carry_out(h, id, OUTCOME_COMPLETED);
    id = newest(h);
    assert_string_equal(get(h, &arena, id).given,
                        "{\"n\":4,\"note\":\"KR\",\"country\":\"x\"}");
}

static void
test_a_chain_outlives_the_tries_of_a_link(struct harness *h)
{
    int64_t id;

    define_three(h, "allow");
    define_job(h, &(struct job_text){.name = "task", .attempts = 3, .on = "\"ERROR\""});
    id = submit_chain(h, "task", "[\"other\",\"third\"]");
    carry_out(h, id, OUTCOME_ERROR);
    id = newest(h);
    carry_out(h, id, OUTCOME_COMPLETED);
    id = newest(h);
    assert_int_equal(harness_i64(h, "SELECT count(*) FROM pawl.request WHERE job = "
                                    "'other'"),
                     1);
    carry_out(h, id, OUTCOME_COMPLETED);
    assert_int_equal(rows_in(h, "request"), 4);
}

static void
test_many_that_end_together_release_a_link_each(struct harness *h)
{
    struct finish_order orders[40];
    struct claim claims[40];
    struct err err = {0};
    int64_t first;
    size_t count;

    define_three(h, "refuse");
    define_job(h, &(struct job_text){.name = "task", .next = "[\"other\"]"});
    first = submit_span(h, "task", array_len(orders));
    assert_int_equal(claim_some(h, "w1", array_len(orders), claims, &count),
                     array_len(orders));
    for (size_t i = 0; i < array_len(orders); i++)
        orders[i] = finish_of(first + (int64_t)i, &claims[0], OUTCOME_COMPLETED);
    assert_ok(queue_finish_many(h->store, orders, array_len(orders), NULL, &err), &err);
    assert_int_equal(
        harness_i64(h, "SELECT count(*) FROM pawl.request WHERE job = 'other'"),
        array_len(orders));
    assert_consistent(h);
}

/* --- PostgreSQL: somebody has the lock of the key --- */

static void
test_a_busy_key_is_not_waited_for_and_taken_when_it_is_free(struct harness *h)
{
    scoped(arena_release) struct arena arena = {0};
    struct err err = {0};
    int64_t due_us = 0;
    int64_t now_us = 0;
    int64_t moved = 0;
    int64_t id;

    define_three(h, "refuse");
    harness_sql(h, "SELECT pg_advisory_lock(hashtextextended('job:third', 0))");
    id = submit_chain(h, "task", "[\"third\"]");
    carry_out(h, id, OUTCOME_COMPLETED);
    id = newest(h);
    assert_string_equal(get(h, &arena, id).later_reason, "key");
    assert_int_equal(rows_in(h, "active"), 0);
    assert_ok(queue_next_due(h->store, &due_us, &now_us, &err), &err);
    assert_int_equal(due_us, HARNESS_NOW);
    assert_ok(queue_promote(h->store, &moved, &err), &err);
    assert_int_equal(moved, 0);
    assert_ok(queue_next_due(h->store, &due_us, &now_us, &err), &err);
    assert_true(due_us > HARNESS_NOW);

    harness_sql(h, "SELECT pg_advisory_unlock(hashtextextended('job:third', 0))");
    harness_clock_set(h, due_us);
    assert_ok(queue_promote(h->store, &moved, &err), &err);
    assert_int_equal(moved, 1);
    assert_int_equal(harness_i64(h, "SELECT request_id FROM pawl.active"), id);
    carry_out(h, id, OUTCOME_COMPLETED);
    assert_consistent(h);
}

static void
test_a_busy_key_that_was_taken_meanwhile_ends_the_link_refused(struct harness *h)
{
    struct queue_job third = job_of("third", QUEUE_DUPLICATES_REFUSE);
    struct submit_order order = order_of(&third);
    scoped(arena_release) struct arena arena = {0};
    struct err err = {0};
    int64_t moved = 0;
    int64_t id;

    define_three(h, "refuse");
    harness_sql(h, "SELECT pg_advisory_lock(hashtextextended('job:third', 0))");
    id = submit_chain(h, "task", "[\"third\"]");
    carry_out(h, id, OUTCOME_COMPLETED);
    id = newest(h);
    harness_sql(h, "SELECT pg_advisory_unlock(hashtextextended('job:third', 0))");
    submit_order(h, &order);
    assert_ok(queue_promote(h->store, &moved, &err), &err);
    assert_int_equal(moved, 0);
    assert_int_equal(get(h, &arena, id).outcome, OUTCOME_REFUSED);
    assert_int_equal(
        harness_i64(h, "SELECT count(*) FROM pawl.audit WHERE act = 'chain-dropped'"),
        1);
    assert_consistent(h);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(test_A12_a_chain_goes_from_link_to_link),
        store_test(test_A12_the_list_of_the_job_counts_where_the_request_has_none),
        store_test(test_A12_only_completed_releases),
        store_test(test_I21_a_link_is_released_once_however_often_the_end_is_told),
        store_test(test_A12_a_refuse_job_may_follow_itself),
        store_test(test_A12_a_key_that_is_taken_drops_the_link_with_a_line),
        store_test(test_a_link_that_cannot_be_asked_for_is_dropped_with_a_line),
        store_test(test_parameters_are_mapped_on),
        store_test(test_a_chain_outlives_the_tries_of_a_link),
        store_test(test_many_that_end_together_release_a_link_each),
        store_test_pg(test_a_busy_key_is_not_waited_for_and_taken_when_it_is_free),
        store_test_pg(test_a_busy_key_that_was_taken_meanwhile_ends_the_link_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

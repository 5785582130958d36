/* What is to be told of a request that has ended: one row with its outcome, told by one
 * at a time, until it was heard or given up. */
#include "tests/store/queue/common.h"

#include "queue/delivery.h"
#include "queue/lost.h"

#include <stdlib.h>
#include <string.h>

#define ALL_OF_THEM                                                                    \
    "\"COMPLETED\",\"STOPPED\",\"ERROR\",\"CANCELLED\",\"TIMEOUT\",\"EXPIRED\","       \
    "\"REFUSED\",\"WORKER_LOST\""
#define HOOK(on) "{\"on\":[" on "],\"to\":\"shop\"}"
#define LEASE    (31 * US_PER_S)

static const char *const shop = "shop";

static const struct queue_job *
define_told(struct harness *h, const char *name)
{
    return define_job(h,
                      &(struct job_text){.name = name, .webhook = HOOK(ALL_OF_THEM)});
}

/* Exactly this one was written, to be told at once. */
static void
assert_told(struct harness *h, int64_t id)
{
    assert_int_equal(harness_i64(h,
                                 "SELECT count(*) FROM pawl.delivery WHERE request_id"
                                 " = %lld AND webhook = 'shop' AND attempts = 0 AND"
                                 " due_at = created_at",
                                 (long long)id),
                     1);
}

static int64_t
end_one(struct harness *h, const char *job, enum request_outcome outcome)
{
    int64_t id = submit_one(h, job);
    struct claim claim = claim_one(h, "w1");

    assert_int_equal(claim.first_id, id);
    finish_ok(h, id, &claim, outcome);
    return id;
}

/* --- written --- */

static void
test_each_outcome_of_a_run_writes_one_delivery(struct harness *h)
{
    static const enum request_outcome outcomes[] = {
        OUTCOME_COMPLETED, OUTCOME_STOPPED, OUTCOME_ERROR,
        OUTCOME_CANCELLED, OUTCOME_TIMEOUT, OUTCOME_REFUSED};

    define_told(h, "task");
    for (size_t i = 0; i < array_len(outcomes); i++) {
        assert_told(h, end_one(h, "task", outcomes[i]));
        assert_int_equal(rows_in(h, "delivery"), i + 1);
    }
    assert_consistent(h);
}

static void
test_a_lost_worker_is_told_of(struct harness *h)
{
    scoped(arena_release) struct arena arena = {0};
    struct lost_request *list = NULL;
    struct err err = {0};
    size_t count = 0;
    int64_t id;

    define_told(h, "task");
    id = submit_one(h, "task");
    claim_one(h, "w1");
    assert_ok(queue_close_lost(h->store, "w1", "it died", NULL, NULL, &arena, &list,
                               &count, &err),
              &err);
    assert_told(h, id);
    assert_int_equal(rows_in(h, "delivery"), 1);
}

static void
test_what_ends_unclaimed_is_told_of(struct harness *h)
{
    const struct queue_job *job = define_told(h, "task");
    struct submit_order order = order_of(job);
    int64_t cancelled = submit_one(h, "task");
    int64_t failed;
    int64_t waiter = 0;
    int64_t late;
    int64_t expired = 0;
    struct claim claim;
    struct err err = {0};

    define_told(h, "other");
    assert_int_equal(queue_cancel(h->store, cancelled, "tester", &err),
                     QUEUE_CANCELLED);
    assert_told(h, cancelled);

    failed = submit_one(h, "task");
    assert_ok(try_after(h, &failed, 1, &waiter, &err), &err);
    claim = claim_one(h, "w1");
    finish_ok(h, failed, &claim, OUTCOME_ERROR);
    assert_told(h, failed);
    assert_told(h, waiter); /* REFUSED with it */

    order.expires_at_us = HARNESS_NOW + US_PER_HOUR;
    late = submit_order(h, &order);
    harness_clock_advance(h, 2 * US_PER_HOUR);
    assert_ok(queue_expire(h->store, &expired, &err), &err);
    assert_int_equal(expired, 1);
    assert_told(h, late);
    assert_int_equal(rows_in(h, "delivery"), 4);
    assert_consistent(h);
}

static void
test_many_that_end_at_once_are_all_told_of(struct harness *h)
{
    struct finish_order orders[20];
    struct claim claims[20];
    size_t n = 0;
    bool lost[20];
    struct err err = {0};
    int64_t first;

    define_told(h, "task");
    define_job(h, &(struct job_text){.name = "other"});
    first = submit_span(h, "task", 10);
    submit_span(h, "other", 10);
    for (int64_t id = 0; claim_some(h, "w1", 20, claims, &n) > 0; n = 0)
        for (size_t i = 0; i < n; i++)
            for (id = claims[i].first_id; id <= claims[i].last_id; id++)
                orders[id - first] = finish_of(id, &claims[i], OUTCOME_COMPLETED);
    assert_ok(queue_finish_many(h->store, orders, 20, lost, &err), &err);
    assert_int_equal(rows_in(h, "delivery"), 10);
    for (int64_t id = first; id < first + 10; id++)
        assert_told(h, id);
}

static void
test_only_the_outcomes_that_are_named_are_told(struct harness *h)
{
    int64_t id;

    define_job(h, &(struct job_text){.name = "task",
                                     .webhook = HOOK("\"ERROR\",\"TIMEOUT\"")});
    define_job(h, &(struct job_text){.name = "other"});
    end_one(h, "task", OUTCOME_COMPLETED);
    end_one(h, "task", OUTCOME_CANCELLED);
    end_one(h, "other", OUTCOME_ERROR);
    end_one(h, "third", OUTCOME_ERROR); /* there is no such definition */
    assert_int_equal(rows_in(h, "delivery"), 0);
    id = end_one(h, "task", OUTCOME_ERROR);
    assert_told(h, id);
    assert_int_equal(rows_in(h, "delivery"), 1);
}

struct plan {
    char text[4000];
};

static int
read_plan(struct db *db, void *arg, struct err *err)
{
    struct plan *plan = (struct plan *)arg;
    bool pg = db_kind(db) == DB_PG;
    const struct db_sql *stmt = store_sql(db, STMT_DELIVERY_ADD_BETWEEN);
    scoped(db_rows_end) struct db_rows rows = {0};
    struct db_sql explain;
    char text[3000];
    int r;

    snprintf(text, sizeof(text), "%s %s", pg ? "EXPLAIN" : "EXPLAIN QUERY PLAN",
             pg && stmt->text_pg ? stmt->text_pg : stmt->text);
    explain = (struct db_sql){.name = "plan",
                              .text = text,
                              .n_params = stmt->n_params,
                              .param_types = stmt->param_types};
    r = db_ask(db, &explain, &rows, err, p_i64(1), p_i64(1000));
    while (r == 0 && (r = db_next(&rows, err)) > 0) {
        size_t used = strlen(plan->text);

        snprintf(plan->text + used, sizeof(plan->text) - used, "%s\n",
                 db_text(&rows, pg ? 0 : 3));
        r = 0;
    }
    return r;
}

/* Thousands may expire at once: one look for all of a range, and no more than that
 * where the job has no webhook. */
static void
test_the_definition_is_read_once_for_a_range(struct harness *h)
{
    struct plan plan = {0};
    struct err err = {0};
    bool lite = h->kind == HARNESS_SQLITE;

    assert_ok(store_read(h->store, read_plan, &plan, &err), &err);
    if (!strstr(plan.text, lite ? "MATERIALIZE told" : "CTE told") ||
        !strstr(plan.text, lite ? "SEARCH d USING" : "on job_definition d") ||
        !strstr(plan.text, lite ? "SCAN t\n" : "One-Time Filter"))
        fail_msg("%s", plan.text);
}

static void
test_a_range_that_expires_is_told_of(struct harness *h)
{
    const struct queue_job *job = define_told(h, "task");
    const struct queue_job *other = define_job(h, &(struct job_text){.name = "other"});
    struct submit_order order = order_of(job);
    struct submit_order silent = order_of(other);
    int64_t expired = 0;
    struct err err = {0};

    order.expires_at_us = silent.expires_at_us = HARNESS_NOW + US_PER_HOUR;
    for (int i = 0; i < 3; i++) {
        submit_order(h, &order);
        submit_order(h, &silent);
    }
    harness_clock_advance(h, 2 * US_PER_HOUR);
    assert_ok(queue_expire(h->store, &expired, &err), &err);
    assert_int_equal(expired, 6);
    assert_int_equal(harness_i64(h, "SELECT count(*) FROM pawl.delivery e"
                                    " JOIN pawl.request r ON r.id = e.request_id"
                                    " WHERE r.job = 'task'"),
                     3);
    assert_int_equal(rows_in(h, "delivery"), 3);
}

/* Of several tries only the last one, whatever becomes of it. */
static void
test_a_try_that_another_follows_is_not_told_of(struct harness *h)
{
    const struct queue_job *job =
        define_job(h, &(struct job_text){.name = "task",
                                         .attempts = 2,
                                         .on = "\"ERROR\"",
                                         .drained = true,
                                         .webhook = HOOK(ALL_OF_THEM)});
    struct submit_order order = order_of(job);
    int64_t id = submit_order(h, &order);
    struct claim claim = claim_one(h, "w1");

    finish_ok(h, id, &claim, OUTCOME_STOPPED); /* drained: asked for again by itself */
    assert_int_equal(rows_in(h, "delivery"), 0);
    claim = claim_one(h, "w1");
    finish_ok(h, claim.first_id, &claim, OUTCOME_ERROR);
    assert_int_equal(rows_in(h, "delivery"), 0);
    claim = claim_one(h, "w1");
    finish_ok(h, claim.first_id, &claim, OUTCOME_ERROR);
    assert_told(h, claim.first_id);
    assert_int_equal(rows_in(h, "delivery"), 1);
}

static void
test_helpers_with_the_partitions_of_a_step_are_not_told_of(struct harness *h)
{
    int64_t id;
    struct claim claim;

    define_told(h, "task");
    id = submit_one(h, "task");
    harness_sql(h, "UPDATE pawl.request SET source = 'partition' WHERE id = %lld",
                (long long)id);
    claim = claim_one(h, "w1");
    finish_ok(h, id, &claim, OUTCOME_COMPLETED);
    assert_int_equal(rows_in(h, "delivery"), 0);
}

/* A file without the job was published while it ran. */
static void
test_a_withdrawn_job_still_tells(struct harness *h)
{
    static const enum request_outcome outcomes[] = {OUTCOME_COMPLETED, OUTCOME_ERROR};

    define_told(h, "task");
    harness_sql(h, "UPDATE pawl.job_definition SET withdrawn_at = 1");
    for (size_t i = 0; i < array_len(outcomes); i++)
        assert_told(h, end_one(h, "task", outcomes[i]));
}

static void
test_a_finish_that_is_told_again_writes_no_second_delivery(struct harness *h)
{
    struct delivery delivery = {0};
    struct finish_order order;
    struct claim claim;
    struct err err = {0};
    int64_t id;

    define_told(h, "task");
    id = submit_one(h, "task");
    claim = claim_one(h, "w1");
    finish_ok(h, id, &claim, OUTCOME_COMPLETED);
    order = finish_of(id, &claim, OUTCOME_COMPLETED);
    assert_ok(queue_finish(h->store, &order, &err), &err);
    assert_int_equal(rows_in(h, "delivery"), 1);

    assert_int_equal(queue_delivery_take(h->store, shop, 0, LEASE, &delivery, &err),
                     DELIVERY_TAKEN);
    assert_ok(queue_delivery_done(h->store, &delivery, &err), &err);
    assert_ok(queue_finish(h->store, &order, &err), &err);
    assert_int_equal(rows_in(h, "delivery"), 0); /* heard already */
}

struct rolled {
    struct finish_order order;
};

static int
finish_then_fail(struct db *db, void *arg, struct err *err)
{
    const struct rolled *rolled = (const struct rolled *)arg;
    bool lost = false;
    int r = queue_finish_in(db, &rolled->order, 1, &lost, err);

    return r < 0 ? r : err_set(err, ERR_INVALID, "not today");
}

static void
test_an_outcome_that_is_not_committed_is_not_told_of(struct harness *h)
{
    struct rolled rolled;
    struct claim claim;
    struct err err = {0};
    int64_t id;

    define_told(h, "task");
    id = submit_one(h, "task");
    claim = claim_one(h, "w1");
    rolled.order = finish_of(id, &claim, OUTCOME_COMPLETED);
    assert_int_equal(
        store_write(h->store, STORE_NORMAL, finish_then_fail, &rolled, &err),
        -ERR_INVALID);
    assert_int_equal(rows_in(h, "delivery"), 0);
    rolled.order.token.number++; /* somebody else's claim */
    err_clear(&err);
    assert_int_equal(queue_finish(h->store, &rolled.order, &err), QUEUE_CLAIM_LOST);
    assert_int_equal(rows_in(h, "delivery"), 0);
    finish_ok(h, id, &claim, OUTCOME_COMPLETED);
    assert_told(h, id);
}

/* --- told --- */

static int64_t
due_of(struct harness *h, const char *webhook)
{
    struct err err = {0};
    int64_t due_us = -1;
    int64_t now_us = 0;

    assert_ok(queue_deliveries_due(h->store, &webhook, 1, &due_us, &now_us, &err),
              &err);
    return due_us;
}

static int
take(struct harness *h, int64_t since_us, struct delivery *ret)
{
    struct err err = {0};
    int r = queue_delivery_take(h->store, shop, since_us, LEASE, ret, &err);

    assert_ok(r, &err);
    return r;
}

static void
test_a_delivery_that_was_taken_is_nobodys_until_its_lease_ends(struct harness *h)
{
    struct delivery first = {0};
    struct delivery second = {0};
    struct err err = {0};
    int64_t id;

    define_told(h, "task");
    assert_int_equal(due_of(h, shop), 0);
    assert_int_equal(take(h, 0, &first), DELIVERY_NONE);
    id = end_one(h, "task", OUTCOME_COMPLETED);
    assert_int_equal(due_of(h, shop), HARNESS_NOW);
    assert_int_equal(due_of(h, "other-webhook"), 0);
    assert_int_equal(take(h, 0, &first), DELIVERY_TAKEN);
    assert_int_equal(first.request_id, id);
    assert_int_equal(first.attempts, 1);
    assert_int_equal(first.created_at_us, HARNESS_NOW);
    assert_int_equal(take(h, 0, &second), DELIVERY_NONE);
    assert_int_equal(due_of(h, shop), HARNESS_NOW + LEASE);

    harness_clock_advance(h, LEASE); /* whoever had it is dead */
    assert_int_equal(take(h, HARNESS_NOW, &second), DELIVERY_NONE);
    assert_int_equal(take(h, 0, &second), DELIVERY_TAKEN);
    assert_int_equal(second.attempts, 2);
    /* It only slept: what it says of a failure counts no more. */
    assert_ok(queue_delivery_again(h->store, &first, 1, "late", &err), &err);
    assert_ok(queue_delivery_give_back(h->store, &first, &err), &err);
    assert_ok(queue_delivery_give_up(h->store, &first, "late", &err), &err);
    assert_int_equal(due_of(h, shop), HARNESS_NOW + 2 * LEASE);
    assert_int_equal(rows_in(h, "audit"), 0);
    /* But what was heard was heard. */
    assert_ok(queue_delivery_done(h->store, &first, &err), &err);
    assert_int_equal(rows_in(h, "delivery"), 0);
}

static void
test_what_was_not_heard_waits_and_says_why(struct harness *h)
{
    scoped(arena_release) struct arena arena = {0};
    struct delivery_waiting *list = NULL;
    struct delivery delivery = {0};
    char why[DELIVERY_ERROR_MAX + 100];
    struct err err = {0};
    size_t count = 0;
    int64_t id;

    define_told(h, "task");
    id = end_one(h, "task", OUTCOME_COMPLETED);
    assert_int_equal(take(h, HARNESS_NOW, &delivery), DELIVERY_TAKEN);
    memset(why, 'x', sizeof(why));
    why[sizeof(why) - 1] = '\0';
    assert_ok(queue_delivery_again(h->store, &delivery, 7 * US_PER_S, why, &err), &err);
    assert_ok(queue_deliveries_of(h->store, id, &arena, &list, &count, &err), &err);
    assert_int_equal(count, 1);
    assert_string_equal(list[0].webhook, "shop");
    assert_int_equal(list[0].attempts, 1);
    assert_int_equal(list[0].due_at_us, HARNESS_NOW + 7 * US_PER_S);
    assert_int_equal(strlen(list[0].last_error), DELIVERY_ERROR_MAX);
    assert_int_equal(take(h, 0, &delivery), DELIVERY_NONE);
    harness_clock_advance(h, 7 * US_PER_S);
    assert_int_equal(take(h, 0, &delivery), DELIVERY_TAKEN);
    assert_int_equal(delivery.attempts, 2);
    assert_ok(queue_delivery_give_back(h->store, &delivery, &err), &err);
    assert_int_equal(take(h, 0, &delivery), DELIVERY_TAKEN); /* at once */
    assert_int_equal(delivery.attempts, 2);
    assert_ok(queue_deliveries_of(h->store, id + 1, &arena, &list, &count, &err), &err);
    assert_int_equal(count, 0);
}

static void
test_what_is_given_up_leaves_a_line_in_the_audit(struct harness *h)
{
    struct delivery delivery = {0};
    struct err err = {0};
    int64_t id;
    char *detail;

    define_told(h, "task");
    id = end_one(h, "task", OUTCOME_ERROR);
    assert_int_equal(take(h, 0, &delivery), DELIVERY_TAKEN);
    assert_ok(queue_delivery_give_up(h->store, &delivery, "410 Gone", &err), &err);
    assert_int_equal(rows_in(h, "delivery"), 0);
    detail = harness_text(h, "SELECT act || ': ' || subject || ': ' || detail FROM"
                             " pawl.audit");
    assert_non_null(strstr(detail, "webhook-given-up: request "));
    assert_non_null(strstr(detail, ": webhook shop, 1 tries: 410 Gone"));
    free(detail);
    assert_int_equal(harness_i64(h, "SELECT count(*) FROM pawl.outcome WHERE id = %lld",
                                 (long long)id),
                     1);
}

static void
test_only_what_was_written_since_and_never_tried_is_taken(struct harness *h)
{
    struct delivery delivery = {0};
    struct err err = {0};
    int64_t old, id;

    define_told(h, "task");
    old = end_one(h, "task", OUTCOME_COMPLETED);
    assert_int_equal(take(h, HARNESS_NOW + 1, &delivery), DELIVERY_NONE);
    harness_clock_advance(h, US_PER_S);
    id = end_one(h, "task", OUTCOME_COMPLETED);
    assert_int_equal(take(h, HARNESS_NOW + 1, &delivery), DELIVERY_TAKEN);
    assert_int_equal(delivery.request_id, id);
    assert_ok(queue_delivery_again(h->store, &delivery, 1, "no", &err), &err);
    harness_clock_advance(h, US_PER_S);
    assert_int_equal(take(h, HARNESS_NOW + 1, &delivery), DELIVERY_NONE);
    assert_int_equal(take(h, 0, &delivery), DELIVERY_TAKEN);
    assert_int_equal(delivery.request_id, old);
}

/* No wait is that long: the clock was wrong when it was written. */
static void
test_what_is_due_more_than_two_days_ahead_is_due_now(struct harness *h)
{
    struct delivery delivery = {0};
    struct err err = {0};
    int64_t far;

    define_told(h, "task");
    far = end_one(h, "task", OUTCOME_COMPLETED);
    harness_sql(h, "UPDATE pawl.delivery SET due_at = %lld",
                (long long)(HARNESS_NOW + 2 * US_PER_DAY));
    assert_int_equal(due_of(h, shop), HARNESS_NOW + 2 * US_PER_DAY);
    assert_int_equal(take(h, 0, &delivery), DELIVERY_NONE);
    harness_sql(h, "UPDATE pawl.delivery SET due_at = due_at + 1");

    end_one(h, "task", OUTCOME_COMPLETED); /* another, which waits as it should */
    assert_int_equal(take(h, 0, &delivery), DELIVERY_TAKEN);
    assert_ok(queue_delivery_again(h->store, &delivery, US_PER_HOUR, "no", &err), &err);
    assert_int_equal(due_of(h, shop), HARNESS_NOW);
    assert_int_equal(take(h, HARNESS_NOW, &delivery), DELIVERY_NONE); /* not new */
    assert_int_equal(take(h, 0, &delivery), DELIVERY_TAKEN);
    assert_int_equal(delivery.request_id, far);
    assert_int_equal(take(h, 0, &delivery), DELIVERY_NONE);
    assert_int_equal(due_of(h, shop), HARNESS_NOW + LEASE);
}

struct taker {
    struct harness *h;
    int taken;
};

static void *
take_all(void *arg)
{
    struct taker *taker = (struct taker *)arg;
    struct delivery delivery = {0};
    struct err err = {0};
    int r;

    while ((r = queue_delivery_take(taker->h->store, shop, 0, LEASE, &delivery,
                                    &err)) == DELIVERY_TAKEN)
        taker->taken++;
    if (r < 0)
        taker->taken = -1000;
    return NULL;
}

static void
test_each_is_taken_by_one_of_many(struct harness *h)
{
    struct taker takers[4];
    int taken = 0;

    define_told(h, "task");
    for (int i = 0; i < 12; i++)
        end_one(h, "task", OUTCOME_COMPLETED);
    for (size_t i = 0; i < array_len(takers); i++)
        takers[i] = (struct taker){.h = h};
    in_parallel(array_len(takers), take_all, takers, sizeof(takers[0]));
    for (size_t i = 0; i < array_len(takers); i++)
        taken += takers[i].taken;
    assert_int_equal(taken, 12);
    assert_int_equal(harness_i64(h, "SELECT max(attempts) FROM pawl.delivery"), 1);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(test_each_outcome_of_a_run_writes_one_delivery),
        store_test(test_a_lost_worker_is_told_of),
        store_test(test_what_ends_unclaimed_is_told_of),
        store_test(test_many_that_end_at_once_are_all_told_of),
        store_test(test_only_the_outcomes_that_are_named_are_told),
        store_test(test_the_definition_is_read_once_for_a_range),
        store_test(test_a_range_that_expires_is_told_of),
        store_test(test_a_try_that_another_follows_is_not_told_of),
        store_test(test_helpers_with_the_partitions_of_a_step_are_not_told_of),
        store_test(test_a_withdrawn_job_still_tells),
        store_test(test_a_finish_that_is_told_again_writes_no_second_delivery),
        store_test(test_an_outcome_that_is_not_committed_is_not_told_of),
        store_test(test_a_delivery_that_was_taken_is_nobodys_until_its_lease_ends),
        store_test(test_what_was_not_heard_waits_and_says_why),
        store_test(test_what_is_given_up_leaves_a_line_in_the_audit),
        store_test(test_only_what_was_written_since_and_never_tried_is_taken),
        store_test(test_what_is_due_more_than_two_days_ahead_is_due_now),
        store_test(test_each_is_taken_by_one_of_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

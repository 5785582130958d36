/* `after`: a request that waits for others, let go once, when all are COMPLETED. */
#include "tests/store/queue/common.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

static int64_t
submit_after(struct harness *h, int64_t a, int64_t b)
{
    const int64_t after[] = {a, b};
    struct err err = {0};
    int64_t id;

    assert_ok(try_after(h, after, b ? 2 : 1, &id, &err), &err);
    return id;
}

static void
assert_waits(struct harness *h, int64_t id, bool waits)
{
    scoped(arena_release) struct arena arena = {0};
    struct request request = get(h, &arena, id);

    assert_int_equal(request.status, REQUEST_QUEUED);
    assert_int_equal(request.place, waits ? PLACE_LATER : PLACE_READY);
    if (waits)
        assert_string_equal(request.later_reason, "after");
}

/* Two requests, claimed apart by one worker each. */
static void
two(struct harness *h, int64_t ids[2], struct claim claims[2])
{
    for (int i = 0; i < 2; i++) {
        ids[i] = submit_one(h, "task");
        claims[i] = claim_one(h, i == 0 ? "w1" : "w2");
        assert_int_equal(claims[i].first_id, ids[i]);
    }
}

static void
test_I21_a_fan_in_runs_once_when_both_are_completed(struct harness *h)
{
    for (int order = 0; order < 2; order++) {
        struct claim claims[2];
        int64_t ids[2];
        int64_t id;

        two(h, ids, claims);
        id = submit_after(h, ids[0], ids[1]);
        assert_waits(h, id, true);
        finish_ok(h, ids[order], &claims[order], OUTCOME_COMPLETED);
        assert_waits(h, id, true);
        finish_ok(h, ids[order], &claims[order], OUTCOME_COMPLETED); /* told twice */
        assert_waits(h, id, true);
        finish_ok(h, ids[!order], &claims[!order], OUTCOME_COMPLETED);
        assert_waits(h, id, false);
        assert_int_equal(rows_in(h, "wait"), 0);
        assert_int_equal(claim_one(h, "w3").first_id, id);
        assert_consistent(h);
    }
}

struct finisher {
    struct harness *h;
    struct claim claim;
    int64_t id;
};

static void *
finish_one(void *arg)
{
    struct finisher *finisher = (struct finisher *)arg;

    finish_ok(finisher->h, finisher->id, &finisher->claim, OUTCOME_COMPLETED);
    return NULL;
}

static void
test_I21_two_that_finish_at_the_same_time_let_it_go_once(struct harness *h)
{
    for (int i = 0; i < 30; i++) {
        struct claim claims[2];
        struct finisher finishers[2];
        int64_t ids[2];
        int64_t id;

        two(h, ids, claims);
        id = submit_after(h, ids[0], ids[1]);
        for (int k = 0; k < 2; k++)
            finishers[k] = (struct finisher){h, claims[k], ids[k]};
        in_parallel(2, finish_one, finishers, sizeof(finishers[0]));
        assert_waits(h, id, false);
        assert_int_equal(claim_one(h, "w3").first_id, id);
        assert_int_equal(rows_in(h, "wait"), 0);
    }
    assert_consistent(h);
}

struct submitter {
    struct harness *h;
    struct claim claim;
    int64_t id;
    int64_t waiter; /* 0: this one finishes */
};

static void *
submit_or_finish(void *arg)
{
    struct submitter *one = (struct submitter *)arg;

    if (one->waiter)
        one->waiter = submit_after(one->h, one->id, 0);
    else
        finish_ok(one->h, one->id, &one->claim, OUTCOME_COMPLETED);
    return NULL;
}

static void
test_I21_who_begins_to_wait_while_the_other_ends_is_not_forgotten(struct harness *h)
{
    for (int i = 0; i < 30; i++) {
        struct submitter both[2] = {{.h = h}, {.h = h, .waiter = 1}};

        both[0].id = both[1].id = submit_one(h, "task");
        both[0].claim = claim_one(h, "w1");
        in_parallel(2, submit_or_finish, both, sizeof(both[0]));
        assert_waits(h, both[1].waiter, false);
        assert_int_equal(claim_one(h, "w3").first_id, both[1].waiter);
    }
    assert_consistent(h);
}

static void
test_what_is_completed_is_not_waited_for_and_what_failed_is_refused(struct harness *h)
{
    struct claim claims[2];
    struct err err = {0};
    int64_t ids[2];
    int64_t id;

    two(h, ids, claims);
    finish_ok(h, ids[0], &claims[0], OUTCOME_COMPLETED);
    assert_waits(h, submit_after(h, ids[0], 0), false);
    id = submit_after(h, ids[0], ids[1]);
    assert_waits(h, id, true);
    finish_ok(h, ids[1], &claims[1], OUTCOME_STOPPED);
    assert_int_equal(try_after(h, ids, 2, &id, &err), -ERR_INVALID);
    assert_non_null(strstr(err.text, "/after/1"));
    ids[1] = 999999;
    assert_int_equal(try_after(h, ids, 2, &id, &err), -ERR_INVALID);
    assert_non_null(strstr(err.text, "no request 999999"));
}

static void
test_a_predecessor_that_fails_for_good_closes_all_behind_it(struct harness *h)
{
    scoped(arena_release) struct arena arena = {0};
    struct request request;
    struct claim claims[2];
    int64_t ids[2];
    int64_t a;
    int64_t b;

    two(h, ids, claims);
    a = submit_after(h, ids[0], ids[1]);
    b = submit_after(h, a, 0);
    finish_ok(h, ids[0], &claims[0], OUTCOME_ERROR);
    request = get(h, &arena, a);
    assert_int_equal(request.status, REQUEST_FAILED);
    assert_int_equal(request.outcome, OUTCOME_REFUSED);
    assert_string_equal(request.detail, "request 1, which it waited for, ended ERROR");
    assert_int_equal(get(h, &arena, b).outcome, OUTCOME_REFUSED);
    assert_int_equal(rows_in(h, "wait"), 0);
    assert_int_equal(rows_in(h, "later"), 0);
    finish_ok(h, ids[1], &claims[1], OUTCOME_COMPLETED);
    assert_int_equal(rows_in(h, "ready"), 0);
    assert_consistent(h);
}

static void
test_a_cancelled_or_expired_predecessor_closes_what_waits(struct harness *h)
{
    struct queue_job job = job_of("task", QUEUE_DUPLICATES_ALLOW);
    struct submit_order order = order_of(&job);
    scoped(arena_release) struct arena arena = {0};
    struct err err = {0};
    int64_t expired = 0;
    struct claim claim;
    int64_t id = submit_one(h, "task");
    int64_t waiter = submit_after(h, id, 0);

    assert_int_equal(queue_cancel(h->store, id, "op", &err), QUEUE_CANCELLED);
    assert_int_equal(get(h, &arena, waiter).outcome, OUTCOME_REFUSED);

    order.expires_at_us = HARNESS_NOW + 10;
    id = submit_order(h, &order);
    waiter = submit_after(h, id, 0);
    harness_clock_advance(h, 10);
    assert_ok(queue_expire(h->store, &expired, &err), &err);
    assert_int_equal(get(h, &arena, id).outcome, OUTCOME_EXPIRED);
    assert_int_equal(get(h, &arena, waiter).outcome, OUTCOME_REFUSED);
    assert_int_equal(rows_in(h, "wait"), 0);

    /* Completed, but a cancel had been asked: nothing is released. */
    id = submit_one(h, "task");
    waiter = submit_after(h, id, 0);
    claim = claim_one(h, "w1");
    assert_int_equal(queue_cancel(h->store, id, "op", &err), QUEUE_CANCEL_REQUESTED);
    finish_ok(h, id, &claim, OUTCOME_COMPLETED);
    assert_int_equal(get(h, &arena, waiter).outcome, OUTCOME_REFUSED);
    assert_consistent(h);
}

static void
test_who_waits_can_be_cancelled(struct harness *h)
{
    struct err err = {0};
    int64_t id = submit_one(h, "task");
    int64_t waiter = submit_after(h, id, 0);
    struct claim claim = claim_one(h, "w1");

    assert_int_equal(queue_cancel(h->store, waiter, "op", &err), QUEUE_CANCELLED);
    assert_int_equal(rows_in(h, "wait"), 0);
    finish_ok(h, id, &claim, OUTCOME_COMPLETED);
    assert_int_equal(rows_in(h, "ready"), 0);
    assert_consistent(h);
}

static void
test_who_waits_follows_the_next_try(struct harness *h)
{
    struct claim claim;
    int64_t first_id;
    int64_t waiter;
    int64_t late;
    int64_t id;

    define_job(h, &(struct job_text){.name = "task", .attempts = 3, .on = "\"ERROR\""});
    first_id = submit_one(h, "task");
    waiter = submit_after(h, first_id, 0);
    claim = claim_one(h, "w1");
    finish_ok(h, first_id, &claim, OUTCOME_ERROR);
    assert_waits(h, waiter, true);
    late = submit_after(h, first_id, 0); /* named by its first try */
    assert_waits(h, late, true);
    id = harness_i64(h, "SELECT max(after_id) FROM pawl.wait");
    assert_int_not_equal(id, first_id);
    claim = claim_one(h, "w1");
    assert_int_equal(claim.first_id, id);
    finish_ok(h, id, &claim, OUTCOME_COMPLETED);
    assert_waits(h, waiter, false);
    assert_waits(h, late, false);
    assert_consistent(h);
}

static void
test_after_and_not_before_are_both_kept(struct harness *h)
{
    struct queue_job job = job_of("other", QUEUE_DUPLICATES_ALLOW);
    struct submit_order order = order_of(&job);
    scoped(arena_release) struct arena arena = {0};
    int64_t after = submit_one(h, "task");
    struct claim claim = claim_one(h, "w1");
    struct err err = {0};
    int64_t moved = 0;
    int64_t id;

    order.after = &after;
    order.n_after = 1;
    order.not_before_us = HARNESS_NOW + 1000;
    id = submit_order(h, &order);
    assert_waits(h, id, true);
    finish_ok(h, after, &claim, OUTCOME_COMPLETED);
    assert_string_equal(get(h, &arena, id).later_reason, "time");
    harness_clock_advance(h, 1000);
    assert_ok(queue_promote(h->store, &moved, &err), &err);
    assert_int_equal(moved, 1);
    assert_waits(h, id, false);
}

/* --- the same from SQL --- */

static void
test_a_request_from_sql_waits_for_others_and_runs_once(struct harness *h)
{
    struct claim claims[2];
    int64_t ids[2];
    int64_t id, done;

    define_job(h, &(struct job_text){.name = "other"});
    two(h, ids, claims);
    id = harness_i64(h, "SELECT pawl.submit('other', after => '{%lld,%lld,%lld}')",
                     (long long)ids[0], (long long)ids[1], (long long)ids[0]);
    assert_waits(h, id, true);
    finish_ok(h, ids[0], &claims[0], OUTCOME_COMPLETED);
    assert_waits(h, id, true);
    finish_ok(h, ids[1], &claims[1], OUTCOME_COMPLETED);
    assert_waits(h, id, false);
    done = harness_i64(h, "SELECT pawl.try_submit('other', after => '{%lld}')",
                       (long long)ids[0]);
    assert_waits(h, done, false);
    assert_int_equal(rows_in(h, "wait"), 0);
    assert_consistent(h);
}

static void
assert_sql_refuses(struct harness *h, const char *after, const char *text)
{
    struct db_sql sql = {.name = "submit",
                         .text = "SELECT pawl.submit('other', after => "
                                 "CAST($1 AS bigint[]))",
                         .n_params = 1,
                         .flags = DB_ONCE};
    const struct db_value value = p_text(after);
    scoped(db_rows_end) struct db_rows rows = {0};
    struct err err = {0};
    int r = db_query(h->db, &sql, &value, 1, &rows, &err);

    if (r == 0)
        r = db_next(&rows, &err);
    assert_true(r < 0);
    assert_string_equal(err.detail, "PW400");
    if (!strstr(err.text, text))
        fail_msg("%s", err.text);
}

static void
test_sql_that_waits_for_what_cannot_come_is_refused(struct harness *h)
{
    struct claim claim;
    char after[64];
    int64_t id;

    define_job(h, &(struct job_text){.name = "other"});
    id = submit_one(h, "task");
    claim = claim_one(h, "w1");
    finish_ok(h, id, &claim, OUTCOME_ERROR);
    snprintf(after, sizeof(after), "{%lld}", (long long)id);
    assert_sql_refuses(h, after, "ended ERROR");
    assert_sql_refuses(h, "{99}", "/after/0: there is no request 99");
    assert_sql_refuses(h, "{NULL}", "/after/0: there is no request NULL");
    assert_int_equal(rows_in(h, "request"), 1);
    assert_int_equal(rows_in(h, "wait"), 0);
}

static void
test_sql_waits_for_the_last_try_and_is_no_answer_to_others(struct harness *h)
{
    struct claim claim;
    int64_t id, waiter, other;

    define_job(h,
               &(struct job_text){
                   .name = "task", .attempts = 2, .on = "\"ERROR\"", .backoff_us = 1});
    define_job(h, &(struct job_text){.name = "other", .duplicates = "reuse"});
    id = submit_one(h, "task");
    claim = claim_one(h, "w1");
    finish_ok(h, id, &claim, OUTCOME_ERROR);
    waiter =
        harness_i64(h, "SELECT pawl.submit('other', after => '{%lld}')", (long long)id);
    assert_int_equal(harness_i64(h, "SELECT after_id FROM pawl.wait"),
                     harness_i64(h, "SELECT id FROM pawl.request WHERE retry_of = %lld",
                                 (long long)id));
    other = harness_i64(h, "SELECT pawl.submit('other')");
    assert_true(other != waiter);
}

struct ender {
    struct harness *h;
    struct claim claim;
    int64_t id;
};

static void *
end_it(void *arg)
{
    struct ender *ender = (struct ender *)arg;

    finish_ok(ender->h, ender->id, &ender->claim, OUTCOME_COMPLETED);
    return NULL;
}

/* The end comes while the transaction of who waits is open: it is not forgotten. */
static void
test_I21_sql_that_begins_to_wait_while_the_other_ends_is_not_forgotten(
    struct harness *h)
{
    define_job(h, &(struct job_text){.name = "other"});
    for (int i = 0; i < 20; i++) {
        struct ender ender = {.h = h, .id = submit_one(h, "task")};
        pthread_t thread;
        int64_t id;

        ender.claim = claim_one(h, "w1");
        harness_sql(h, "BEGIN");
        id = harness_i64(h, "SELECT pawl.submit('other', after => '{%lld}')",
                         (long long)ender.id);
        assert_int_equal(pthread_create(&thread, NULL, end_it, &ender), 0);
        if (i % 2)
            sched_yield();
        harness_sql(h, "COMMIT");
        pthread_join(thread, NULL);
        assert_waits(h, id, false);
        assert_int_equal(claim_one(h, "w2").first_id, id);
    }
    assert_int_equal(rows_in(h, "wait"), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(test_I21_a_fan_in_runs_once_when_both_are_completed),
        store_test(test_I21_two_that_finish_at_the_same_time_let_it_go_once),
        store_test(test_I21_who_begins_to_wait_while_the_other_ends_is_not_forgotten),
        store_test(test_what_is_completed_is_not_waited_for_and_what_failed_is_refused),
        store_test(test_a_predecessor_that_fails_for_good_closes_all_behind_it),
        store_test(test_a_cancelled_or_expired_predecessor_closes_what_waits),
        store_test(test_who_waits_can_be_cancelled),
        store_test(test_who_waits_follows_the_next_try),
        store_test(test_after_and_not_before_are_both_kept),
        store_test_pg(test_a_request_from_sql_waits_for_others_and_runs_once),
        store_test_pg(test_sql_that_waits_for_what_cannot_come_is_refused),
        store_test_pg(test_sql_waits_for_the_last_try_and_is_no_answer_to_others),
        store_test_pg(
            test_I21_sql_that_begins_to_wait_while_the_other_ends_is_not_forgotten),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

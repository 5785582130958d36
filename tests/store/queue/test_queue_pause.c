/* Jobs and lanes held back: nothing of them starts, nothing of them is lost. */
#include "tests/store/queue/common.h"

#include "queue/definition.h"
#include "queue/pause.h"
#include "queue/takeover.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct queue_job *
task(struct harness *h)
{
    return define_job(h, &(struct job_text){.name = "task"});
}

static int
pause_it(struct harness *h, enum pause_kind kind, const char *name, const char *actor)
{
    struct err err = {0};
    int r = queue_pause(h->store, kind, name, actor, &err);

    assert_ok(r, &err);
    return r;
}

static int
resume_it(struct harness *h, enum pause_kind kind, const char *name, const char *actor)
{
    struct err err = {0};
    int r = queue_resume(h->store, kind, name, actor, &err);

    assert_ok(r, &err);
    return r;
}

/* How many requests a sweep of the lane takes. */
static int64_t
claimable(struct harness *h)
{
    struct claim claims[16];
    size_t count;

    return claim_some(h, "w1", 16, claims, &count);
}

static void
test_a_paused_job_waits_and_the_others_do_not(struct harness *h)
{
    struct claim claim;
    int64_t held, other;

    task(h);
    held = submit_one(h, "task");
    other = submit_one(h, "other");
    assert_int_equal(pause_it(h, PAUSE_JOB, "task", "ann"), PAUSE_CHANGED);
    claim = claim_one(h, "w1");
    assert_int_equal(claim.first_id, other);
    assert_int_equal(claimable(h), 0);
    assert_int_equal(resume_it(h, PAUSE_JOB, "task", "bob"), PAUSE_CHANGED);
    claim = claim_one(h, "w1");
    assert_int_equal(claim.first_id, held);
    assert_consistent(h);
}

static void
test_a_paused_lane_waits_and_keeps_its_order(struct harness *h)
{
    int64_t first = submit_one(h, "task");
    int64_t second = submit_one(h, "other");

    pause_it(h, PAUSE_LANE, "normal", "ann");
    assert_int_equal(claimable(h), 0);
    submit_one(h, "third");
    assert_int_equal(claimable(h), 0);
    resume_it(h, PAUSE_LANE, "normal", "ann");
    assert_int_equal(claim_one(h, "w1").first_id, first);
    assert_int_equal(claim_one(h, "w1").first_id, second);
}

static void
test_a_pause_of_another_lane_holds_nothing_here(struct harness *h)
{
    submit_one(h, "task");
    pause_it(h, PAUSE_LANE, "large", "ann");
    assert_int_equal(claimable(h), 1);
}

static void
test_what_runs_goes_on_while_its_job_is_paused(struct harness *h)
{
    scoped(arena_release) struct arena arena = {0};
    struct claim claim;
    int64_t id;

    task(h);
    id = submit_one(h, "task");
    claim = claim_one(h, "w1");
    pause_it(h, PAUSE_JOB, "task", "ann");
    finish_ok(h, id, &claim, OUTCOME_COMPLETED);
    assert_int_equal(get(h, &arena, id).outcome, OUTCOME_COMPLETED);
}

static void
test_who_came_first_stays_named_and_each_change_is_audited(struct harness *h)
{
    scoped(arena_release) struct arena arena = {0};
    struct pause *pauses;
    struct err err = {0};
    size_t count;

    task(h);
    assert_int_equal(pause_it(h, PAUSE_JOB, "task", "ann"), PAUSE_CHANGED);
    assert_int_equal(pause_it(h, PAUSE_JOB, "task", "bob"), PAUSE_AS_IT_WAS);
    pause_it(h, PAUSE_LANE, "normal", "bob");
    assert_ok(queue_pauses(h->store, &arena, &pauses, &count, &err), &err);
    assert_int_equal(count, 2);
    assert_int_equal(pauses[0].kind, PAUSE_JOB);
    assert_string_equal(pauses[0].name, "task");
    assert_string_equal(pauses[0].by, "ann");
    assert_int_equal(pauses[0].at_us, HARNESS_NOW);
    assert_int_equal(pauses[1].kind, PAUSE_LANE);
    assert_int_equal(resume_it(h, PAUSE_JOB, "task", "bob"), PAUSE_CHANGED);
    assert_int_equal(resume_it(h, PAUSE_JOB, "task", "bob"), PAUSE_AS_IT_WAS);
    assert_int_equal(harness_i64(h, "SELECT count(*) FROM pawl.audit WHERE "
                                    "subject = 'job task' AND act = 'pause' AND "
                                    "actor = 'ann'"),
                     1);
    assert_int_equal(harness_i64(h, "SELECT count(*) FROM pawl.audit WHERE "
                                    "subject = 'job task' AND act = 'resume' AND "
                                    "actor = 'bob'"),
                     1);
    assert_int_equal(harness_i64(h, "SELECT count(*) FROM pawl.audit"), 3);
}

static void
test_a_job_that_is_not_there_cannot_be_paused(struct harness *h)
{
    struct err err = {0};

    assert_int_equal(queue_pause(h->store, PAUSE_JOB, "tsak", "ann", &err),
                     -ERR_JOB_NOT_FOUND);
    assert_int_equal(rows_in(h, "paused"), 0);
    assert_int_equal(rows_in(h, "audit"), 0);
}

static void
test_a_pause_outlives_the_process(struct harness *h)
{
    task(h);
    pause_it(h, PAUSE_JOB, "task", "ann");
    harness_reopen(h);
    submit_one(h, "task");
    assert_int_equal(claimable(h), 0);
}

static void
test_what_is_paused_can_be_cancelled_and_expires(struct harness *h)
{
    scoped(arena_release) struct arena arena = {0};
    const struct queue_job *job = task(h);
    struct submit_order order = order_of(job);
    struct err err = {0};
    int64_t cancelled, expiring, expired = 0;

    pause_it(h, PAUSE_JOB, "task", "ann");
    cancelled = submit_one(h, "task");
    order.expires_at_us = HARNESS_NOW + US_PER_MINUTE;
    expiring = submit_order(h, &order);
    assert_ok(queue_cancel(h->store, cancelled, "bob", &err), &err);
    assert_int_equal(get(h, &arena, cancelled).outcome, OUTCOME_CANCELLED);
    harness_clock_advance(h, 2 * US_PER_MINUTE);
    assert_ok(queue_expire(h->store, &expired, &err), &err);
    assert_int_equal(get(h, &arena, expiring).outcome, OUTCOME_EXPIRED);
    assert_consistent(h);
}

static void
test_whose_time_comes_during_a_pause_waits_on(struct harness *h)
{
    struct submit_order order = order_of(task(h));
    struct err err = {0};
    int64_t id, moved = 0;

    order.not_before_us = HARNESS_NOW + US_PER_MINUTE;
    id = submit_order(h, &order);
    pause_it(h, PAUSE_JOB, "task", "ann");
    harness_clock_advance(h, 2 * US_PER_MINUTE);
    assert_ok(queue_promote(h->store, &moved, &err), &err);
    assert_int_equal(claimable(h), 0);
    resume_it(h, PAUSE_JOB, "task", "ann");
    assert_int_equal(claim_one(h, "w1").first_id, id);
}

static void
test_a_chain_reaches_a_paused_job_and_waits_there(struct harness *h)
{
    struct claim claim;
    int64_t id;

    define_job(h, &(struct job_text){.name = "task", .next = "[\"other\"]"});
    define_job(h, &(struct job_text){.name = "other"});
    id = submit_one(h, "task");
    pause_it(h, PAUSE_JOB, "other", "ann");
    claim = claim_one(h, "w1");
    finish_ok(h, id, &claim, OUTCOME_COMPLETED);
    assert_int_equal(claimable(h), 0);
    assert_int_equal(
        harness_i64(h, "SELECT count(*) FROM pawl.ready WHERE job = 'other'"), 1);
    resume_it(h, PAUSE_JOB, "other", "ann");
    assert_int_equal(claimable(h), 1);
}

static void
test_the_next_try_of_a_paused_job_waits(struct harness *h)
{
    struct claim claim;
    struct err err = {0};
    int64_t id, moved = 0;

    define_job(h,
               &(struct job_text){
                   .name = "task", .attempts = 2, .on = "\"ERROR\"", .backoff_us = 1});
    id = submit_one(h, "task");
    claim = claim_one(h, "w1");
    pause_it(h, PAUSE_JOB, "task", "ann");
    finish_ok(h, id, &claim, OUTCOME_ERROR);
    harness_clock_advance(h, US_PER_MINUTE);
    assert_ok(queue_promote(h->store, &moved, &err), &err);
    assert_int_equal(moved, 1);
    assert_int_equal(claimable(h), 0);
    resume_it(h, PAUSE_JOB, "task", "ann");
    assert_int_equal(claimable(h), 1);
}

static int
take_over(struct harness *h, const char *from, const char *to)
{
    static const char *const jobs[] = {"task"};
    struct take_over order = {
        .from = from, .to = to, .jobs = jobs, .n_jobs = 1, .most = 10};
    struct err err = {0};
    int r = queue_take_over(h->store, &order, &err);

    assert_ok(r, &err);
    return r;
}

static void
test_nothing_is_taken_over_out_of_a_paused_lane_or_into_one(struct harness *h)
{
    struct submit_order order = order_of(task(h));

    order.lane = "nobodys";
    submit_order(h, &order);
    harness_clock_advance(h, US_PER_MINUTE);
    pause_it(h, PAUSE_LANE, "nobodys", "ann");
    assert_int_equal(take_over(h, "nobodys", "normal"), 0);
    resume_it(h, PAUSE_LANE, "nobodys", "ann");
    pause_it(h, PAUSE_LANE, "normal", "ann");
    assert_int_equal(take_over(h, "nobodys", "normal"), 0);
    resume_it(h, PAUSE_LANE, "normal", "ann");
    pause_it(h, PAUSE_JOB, "task", "ann");
    assert_int_equal(take_over(h, "nobodys", "normal"), 0);
    resume_it(h, PAUSE_JOB, "task", "ann");
    assert_int_equal(take_over(h, "nobodys", "normal"), 1);
}

static void
test_who_runs_it_at_once_is_told_who_paused_and_what_to_do(struct harness *h)
{
    struct submit_order order = order_of(task(h));
    struct submit_answer answer;
    struct claim_token token;
    struct err err = {0};

    pause_it(h, PAUSE_JOB, "task", "ann");
    assert_int_equal(
        queue_submit_claimed(h->store, &order, "cli-1", &answer, &token, &err),
        -ERR_PAUSED);
    assert_non_null(strstr(err.text, "ann"));
    assert_non_null(strstr(err.text, "`pawl resume job task`"));
    assert_int_equal(rows_in(h, "request"), 0);
    assert_int_equal(rows_in(h, "claim"), 0);
    resume_it(h, PAUSE_JOB, "task", "ann");
    pause_it(h, PAUSE_LANE, "normal", "ann");
    err_clear(&err);
    assert_int_equal(
        queue_submit_claimed(h->store, &order, "cli-1", &answer, &token, &err),
        -ERR_PAUSED);
    assert_non_null(strstr(err.text, "`pawl resume lane normal`"));
}

static void
test_the_rest_of_a_paused_lane_does_not_call_a_worker(struct harness *h)
{
    static const char *const jobs[] = {"task"};
    struct claim_want want = {
        .worker = "w1", .lane = "normal", .jobs = jobs, .n_jobs = 1, .max = 1};
    struct err err = {0};

    task(h);
    submit_one(h, "task");
    assert_int_equal(queue_claim_left(h->store, &want, &err), 1);
    pause_it(h, PAUSE_JOB, "task", "ann");
    assert_int_equal(queue_claim_left(h->store, &want, &err), 0);
    resume_it(h, PAUSE_JOB, "task", "ann");
    pause_it(h, PAUSE_LANE, "normal", "ann");
    assert_int_equal(queue_claim_left(h->store, &want, &err), 0);
}

static void
test_a_request_from_sql_waits_as_well(struct harness *h)
{
    task(h);
    pause_it(h, PAUSE_JOB, "task", "ann");
    assert_true(harness_i64(h, "SELECT pawl.submit('task')") > 0);
    assert_int_equal(claimable(h), 0);
    resume_it(h, PAUSE_JOB, "task", "ann");
    assert_int_equal(claimable(h), 1);
}

/* --- races --- */

struct racer {
    struct harness *h;
    atomic_bool *over;
    struct err err;
    int r;
};

/* Puts a request in and takes what there is, until told to end. */
static void *
race_on(void *arg)
{
    struct racer *racer = (struct racer *)arg;
    static const char *const jobs[] = {"task"};
    struct claim_want want = {
        .worker = "w", .lane = "normal", .jobs = jobs, .n_jobs = 1, .max = 1};
    struct queue_job job = job_of("task", QUEUE_DUPLICATES_ALLOW);
    struct submit_order order = order_of(&job);

    while (racer->r >= 0 && !atomic_load(racer->over)) {
        scoped(arena_release) struct arena arena = {0};
        struct submit_answer answer;
        struct claim claim;
        size_t count;

        racer->r = queue_submit(racer->h->store, &order, &answer, &racer->err);
        if (racer->r >= 0)
            racer->r = queue_claim(racer->h->store, &want, &arena, &claim, &count,
                                   &racer->err);
    }
    return NULL;
}

#define RACERS 4
#define ROUNDS 10

/* What was not RUNNING when the pause was answered, never is during the pause. */
static void
test_nothing_starts_after_a_pause_was_answered(struct harness *h)
{
    task(h);
    for (int round = 0; round < ROUNDS; round++) {
        atomic_bool over = false;
        struct racer racers[RACERS];
        pthread_t threads[RACERS];
        int64_t submitted, running;

        for (size_t i = 0; i < RACERS; i++) {
            racers[i] = (struct racer){.h = h, .over = &over};
            assert_int_equal(pthread_create(&threads[i], NULL, race_on, &racers[i]), 0);
        }
        running = rows_in(h, "claim");
        while (rows_in(h, "claim") < running + 5)
            continue;
        pause_it(h, round % 2 ? PAUSE_LANE : PAUSE_JOB, round % 2 ? "normal" : "task",
                 "ann");
        running = rows_in(h, "claim");
        submitted = rows_in(h, "request");
        while (rows_in(h, "request") < submitted + 5)
            continue;
        atomic_store(&over, true);
        for (size_t i = 0; i < RACERS; i++) {
            pthread_join(threads[i], NULL);
            assert_ok(racers[i].r, &racers[i].err);
        }
        assert_int_equal(rows_in(h, "claim"), running);
        resume_it(h, round % 2 ? PAUSE_LANE : PAUSE_JOB, round % 2 ? "normal" : "task",
                  "ann");
    }
    assert_consistent(h);
}

struct pauser {
    struct harness *h;
    atomic_bool done;
    struct err err;
    int r;
};

static void *
pause_now(void *arg)
{
    struct pauser *pauser = (struct pauser *)arg;

    pauser->r = queue_pause(pauser->h->store, PAUSE_JOB, "task", "ann", &pauser->err);
    atomic_store(&pauser->done, true);
    return NULL;
}

static const char open_claim[] =
    "BEGIN; INSERT INTO pawl.claim (first_id, last_id, job, lane, worker, token, nonce,"
    " claimed_at) VALUES (1, 1, 'task', 'normal', 'w9', 1, 'n', 1)";

/* A claim that looked before the pause was there, and has not committed yet. */
static void
test_a_pause_waits_for_the_claim_under_way(struct harness *h)
{
    struct pauser pauser = {.h = h};
    pthread_t thread;

    task(h);
    harness_sql(h, "%s", open_claim);
    assert_int_equal(pthread_create(&thread, NULL, pause_now, &pauser), 0);
    while (harness_i64(h, "SELECT count(*) FROM pg_locks l JOIN pg_database d ON "
                          "d.oid = l.database WHERE NOT granted AND "
                          "d.datname = current_database()") == 0)
        assert_false(atomic_load(&pauser.done));
    assert_false(atomic_load(&pauser.done));
    harness_sql(h, "ROLLBACK");
    pthread_join(thread, NULL);
    assert_ok(pauser.r, &pauser.err);
}

static void
test_a_claim_that_hangs_does_not_keep_anybody_from_pausing(struct harness *h)
{
    struct err err = {0};

    task(h);
    harness_sql(h, "%s", open_claim);
    assert_ok(queue_pause(h->store, PAUSE_JOB, "task", "ann", &err), &err);
    harness_sql(h, "ROLLBACK");
    assert_int_equal(rows_in(h, "paused"), 1);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(test_a_paused_job_waits_and_the_others_do_not),
        store_test(test_a_paused_lane_waits_and_keeps_its_order),
        store_test(test_a_pause_of_another_lane_holds_nothing_here),
        store_test(test_what_runs_goes_on_while_its_job_is_paused),
        store_test(test_who_came_first_stays_named_and_each_change_is_audited),
        store_test(test_a_job_that_is_not_there_cannot_be_paused),
        store_test(test_a_pause_outlives_the_process),
        store_test(test_what_is_paused_can_be_cancelled_and_expires),
        store_test(test_whose_time_comes_during_a_pause_waits_on),
        store_test(test_a_chain_reaches_a_paused_job_and_waits_there),
        store_test(test_the_next_try_of_a_paused_job_waits),
        store_test(test_nothing_is_taken_over_out_of_a_paused_lane_or_into_one),
        store_test(test_who_runs_it_at_once_is_told_who_paused_and_what_to_do),
        store_test_pg(test_the_rest_of_a_paused_lane_does_not_call_a_worker),
        store_test_pg(test_a_request_from_sql_waits_as_well),
        store_test(test_nothing_starts_after_a_pause_was_answered),
        store_test_pg(test_a_pause_waits_for_the_claim_under_way),
        store_test_pg(test_a_claim_that_hangs_does_not_keep_anybody_from_pausing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Schedules in the store: fired once whatever the number of schedulers and the state of
 * their clocks. The clock of the store stands still until a test moves it, so nothing
 * here waits.
 */
#include "tests/store/schedule/house.h"

#include <pthread.h>
#include <string.h>

#define RACE_ROUNDS 2

/* --- one slot, one request --- */

static void
test_A11_a_slot_becomes_a_request_like_any_other(struct harness *h)
{
    scoped(house_release) struct house house = {0};
    scoped(arena_release) struct arena arena = {0};
    struct request request;

    house_open(h, &house, 1, "  s: {job: free, cron: \"0 * * * *\", params: {n: 7}}\n");
    catch_up(&house);
    assert_int_equal(rows_in(h, "request"), 0);
    harness_clock_advance(h, US_PER_HOUR - 1);
    catch_up(&house);
    assert_int_equal(rows_in(h, "request"), 0);
    harness_clock_advance(h, 1);
    catch_up(&house);
    catch_up(&house);
    assert_int_equal(rows_in(h, "request"), 1);
    request = get(h, &arena, harness_i64(h, "SELECT id FROM pawl.request"));
    assert_string_equal(request.requester, "scheduler");
    assert_string_equal(request.job, "free");
    assert_string_equal(request.given, "{\"n\":7}");
    assert_int_equal(request.source, SOURCE_SCHEDULE);
    assert_int_equal(rows_in(h, "ready"), 1);
    assert_slots(h, "s", "fired 1 01:00");
    assert_int_equal(harness_i64(h, "SELECT request_id FROM pawl.schedule_slot"),
                     request.id);
}

struct racer {
    struct scheduler *scheduler;
    int failures;
};

static void *
race(void *arg)
{
    struct racer *racer = (struct racer *)arg;
    int64_t wait_us;

    for (int i = 0; i < RACE_ROUNDS; i++) {
        struct err err = {0};

        if (scheduler_round(racer->scheduler, &wait_us, &err) < 0)
            racer->failures++;
    }
    return NULL;
}

/* Both decide what is due, again and again, until so many slots have come. */
static void
race_for(struct harness *h, struct house *house, struct store *other,
         const int64_t skews_us[2], int slots, uint32_t *seed)
{
    struct racer racers[2] = {{scheduler_of(house, h->store, skews_us[0]), 0},
                              {scheduler_of(house, other, skews_us[1]), 0}};

    while (slots > 0) {
        int step;

        *seed = *seed * 1664525 + 1013904223;
        step = 1 + (int)(*seed >> 16) % 10;
        if (step > slots)
            step = slots;
        slots -= step;
        harness_clock_advance(h, step * US_PER_S);
        in_parallel(2, race, racers, sizeof(racers[0]));
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(racers[i].failures, 0);
        scheduler_free(racers[i].scheduler);
    }
}

static void
test_A2_two_schedulers_with_wrong_clocks_ask_once_for_each_of_1000_slots(
    struct harness *h)
{
    /* Much too early and somewhat late; both right; one right. */
    static const int64_t skews_us[][2] = {{3600 * US_PER_S, -2 * US_PER_S},
                                          {0, 0},
                                          {0, 2 * US_PER_S},
                                          {-5 * US_PER_S, -1 * US_PER_S}};
    scoped(house_release) struct house house = {0};
    scoped(store_closep) struct store *second = NULL;
    struct err err = {0};
    uint32_t seed = 42;

    house_open(h, &house, 1, "  s: {job: free, cron: \"* * * * * *\"}\n");
    /* An SQLite store has one process, and so one struct store. */
    if (h->kind != HARNESS_SQLITE)
        assert_ok(store_open(&h->options, &second, &err), &err);
    for (size_t i = 0; i < array_len(skews_us); i++)
        race_for(h, &house, second ? second : h->store, skews_us[i], 250, &seed);
    catch_up(&house);
    assert_int_equal(rows_in(h, "request"), 1000);
    assert_int_equal(
        harness_i64(h, "SELECT count(DISTINCT request_id) FROM pawl.schedule_slot "
                       "WHERE state = 'fired' AND slots = 1"),
        1000);
    assert_int_equal(
        harness_i64(h, "SELECT count(*) FROM pawl.schedule_slot s JOIN pawl.request r "
                       "ON r.id = s.request_id WHERE r.created_at >= s.slot_time"),
        1000);
    assert_int_equal(rows_in(h, "schedule_slot"), 1000);
    assert_int_equal(harness_i64(h, "SELECT max(slot_time) - min(slot_time) FROM "
                                    "pawl.schedule_slot"),
                     999 * US_PER_S);
}

/* --- one transaction --- */

static void
break_requests(struct harness *h, bool broken)
{
    if (h->kind == HARNESS_SQLITE)
        harness_sql(h, broken ? "CREATE TRIGGER pawl.broken BEFORE INSERT ON request "
                                "BEGIN SELECT RAISE(ABORT, 'broken'); END"
                              : "DROP TRIGGER pawl.broken");
    else
        harness_sql(
            h, broken ? "CREATE FUNCTION public.broken() RETURNS trigger LANGUAGE "
                        "plpgsql AS 'BEGIN RAISE ''broken''; END'; CREATE TRIGGER "
                        "broken BEFORE INSERT ON pawl.request FOR EACH ROW EXECUTE "
                        "FUNCTION public.broken()"
                      : "DROP TRIGGER broken ON pawl.request; DROP FUNCTION "
                        "public.broken()");
}

static void
test_slot_row_request_and_cursor_are_one_transaction(struct harness *h)
{
    scoped(house_release) struct house house = {0};
    struct scheduler *scheduler;
    struct err err = {0};
    int64_t wait_us;
    int64_t before_us;

    house_open(h, &house, 1,
               "  s: {job: free, cron: \"0 * * * *\", missed: {all: 5}}\n");
    before_us = harness_i64(h, "SELECT decided_to FROM pawl.schedule");
    harness_clock_advance(h, 2 * US_PER_HOUR);
    break_requests(h, true);
    scheduler = scheduler_of(&house, h->store, 0);
    assert_true(scheduler_round(scheduler, &wait_us, &err) < 0);
    assert_non_null(strstr(err.text, "schedule s"));
    assert_int_equal(rows_in(h, "schedule_slot"), 0);
    assert_int_equal(rows_in(h, "request"), 0);
    assert_int_equal(harness_i64(h, "SELECT decided_to FROM pawl.schedule"), before_us);
    break_requests(h, false);
    err_clear(&err);
    assert_ok(scheduler_round(scheduler, &wait_us, &err), &err);
    scheduler_free(scheduler);
    assert_slots(h, "s", "fired 1 01:00; fired 1 02:00");
    assert_int_equal(rows_in(h, "request"), 2);
}

static void
test_a_slot_that_has_its_row_is_never_asked_for_again(struct harness *h)
{
    scoped(house_release) struct house house = {0};

    house_open(h, &house, 1,
               "  s: {job: free, cron: \"0 * * * *\", missed: {all: 5}}\n");
    harness_clock_advance(h, 2 * US_PER_HOUR);
    catch_up(&house);
    harness_sql(h, "UPDATE pawl.schedule SET decided_to = decided_to - 7200000000");
    catch_up(&house);
    assert_int_equal(rows_in(h, "request"), 2);
    assert_slots(h, "s", "fired 1 01:00; fired 1 02:00");
}

static void
test_a_clock_of_the_store_set_back_repeats_nothing(struct harness *h)
{
    scoped(house_release) struct house house = {0};

    house_open(h, &house, 1, "  s: {job: free, cron: \"0 * * * *\"}\n");
    harness_clock_advance(h, US_PER_HOUR);
    catch_up(&house);
    harness_clock_advance(h, -30 * US_PER_MINUTE);
    catch_up(&house);
    harness_clock_advance(h, 31 * US_PER_MINUTE);
    catch_up(&house);
    assert_slots(h, "s", "fired 1 01:00");
    harness_clock_advance(h, 59 * US_PER_MINUTE);
    catch_up(&house);
    assert_slots(h, "s", "fired 1 01:00; fired 1 02:00");
}

/* --- refusals --- */

static void
test_A11_a_refusal_is_dropped_and_the_slot_says_so(struct harness *h)
{
    scoped(house_release) struct house house = {0};
    scoped(xfree_ptr) char *detail = NULL;

    house_open(h, &house, 1, "  s: {job: alone, cron: \"0 * * * *\"}\n");
    for (int i = 0; i < 3; i++) {
        harness_clock_advance(h, US_PER_HOUR);
        catch_up(&house);
    }
    assert_slots(h, "s", "fired 1 01:00; refused 1 02:00; refused 1 03:00");
    detail = harness_text(
        h, "SELECT max(detail) FROM pawl.schedule_slot WHERE state = 'refused'");
    assert_non_null(strstr(detail, "job alone has request"));
    assert_int_equal(rows_in(h, "request"), 1);
    assert_int_equal(rows_in(h, "active"), 1);
}

static void
test_B15_a_failing_estimate_refuses_the_slot_and_stops_no_other(struct harness *h)
{
    scoped(house_release) struct house house = {0};
    scoped(xfree_ptr) char *detail = NULL;

    house_open(h, &house, 1,
               "  s: {job: sized, cron: \"0 * * * *\"}\n"
               "  t: {job: free, cron: \"0 * * * *\"}\n");
    harness_clock_advance(h, US_PER_HOUR);
    catch_up(&house);
    assert_slots(h, "s", "refused 1 01:00");
    assert_slots(h, "t", "fired 1 01:00");
    detail = harness_text(
        h, "SELECT max(detail) FROM pawl.schedule_slot WHERE state = 'refused'");
    assert_non_null(strstr(detail, "estimate of job sized"));
}

static void
test_a_slot_that_finds_the_same_request_waiting_merges_into_it(struct harness *h)
{
    scoped(house_release) struct house house = {0};

    house_open(h, &house, 1, "  s: {job: again, cron: \"0,5 * * * *\"}\n");
    harness_clock_advance(h, US_PER_HOUR);
    catch_up(&house);
    harness_clock_advance(h, 5 * US_PER_MINUTE);
    catch_up(&house);
    assert_slots(h, "s", "merged 1 00:05; fired 1 01:00; merged 1 01:05");
    assert_int_equal(harness_i64(h, "SELECT count(DISTINCT request_id) FROM "
                                    "pawl.schedule_slot WHERE request_id IS NOT NULL"),
                     1);
}

static void
test_a_job_that_is_gone_or_takes_other_parameters_is_refused(struct harness *h)
{
    scoped(house_release) struct house house = {0};

    house_open(h, &house, 1,
               "  s: {job: free, cron: \"0 * * * *\"}\n"
               "  t: {job: free, cron: \"0 * * * *\", params: {n: 2}}\n");
    harness_sql(h, "UPDATE pawl.job_definition SET definition = "
                   "replace(definition, '\"integer\"', '\"boolean\"'), hash = 'other'");
    harness_sql(h,
                "UPDATE pawl.schedule SET definition = replace(definition, '\"free\"', "
                "'\"gone\"'), hash = 'other' WHERE name = 's'");
    harness_clock_advance(h, US_PER_HOUR);
    catch_up(&house);
    assert_slots(h, "s", "refused 1 01:00");
    assert_slots(h, "t", "refused 1 01:00");
    assert_int_equal(rows_in(h, "request"), 0);
}

/* --- the thread --- */

struct signal {
    pthread_mutex_t lock;
    pthread_cond_t came;
    bool ready;
};

static void
on_ready(void *arg, unsigned mask)
{
    struct signal *signal = (struct signal *)arg;

    pthread_mutex_lock(&signal->lock);
    signal->ready = true;
    pthread_cond_signal(&signal->came);
    pthread_mutex_unlock(&signal->lock);
}

static void
test_the_thread_fires_what_is_due_and_stops_when_told(struct harness *h)
{
    scoped(house_release) struct house house = {0};
    struct signal signal = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    int subscription = store_subscribe(h->store, WAKE_READY, on_ready, &signal);
    struct scheduler *scheduler;
    struct err err = {0};

    house_open(h, &house, 1, "  s: {job: free, cron: \"0 * * * *\"}\n");
    harness_clock_advance(h, US_PER_HOUR);
    scheduler = scheduler_of(&house, h->store, 0);
    assert_ok(scheduler_start(scheduler, &err), &err);
    for (int i = 1; i <= 2; i++) {
        pthread_mutex_lock(&signal.lock);
        while (!signal.ready || rows_in(h, "request") < i)
            pthread_cond_wait(&signal.came, &signal.lock);
        pthread_mutex_unlock(&signal.lock);
        /* It sleeps for an hour now; told that something changed, it looks. */
        harness_clock_advance(h, US_PER_HOUR);
        store_wake(h->store, WAKE_DEFS);
    }
    scheduler_free(scheduler);
    store_unsubscribe(h->store, subscription);
    assert_true(rows_in(h, "request") >= 2);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(test_A11_a_slot_becomes_a_request_like_any_other),
        store_test(
            test_A2_two_schedulers_with_wrong_clocks_ask_once_for_each_of_1000_slots),
        store_test(test_slot_row_request_and_cursor_are_one_transaction),
        store_test(test_a_slot_that_has_its_row_is_never_asked_for_again),
        store_test(test_a_clock_of_the_store_set_back_repeats_nothing),
        store_test(test_A11_a_refusal_is_dropped_and_the_slot_says_so),
        store_test(test_a_slot_that_finds_the_same_request_waiting_merges_into_it),
        store_test(test_B15_a_failing_estimate_refuses_the_slot_and_stops_no_other),
        store_test(test_a_job_that_is_gone_or_takes_other_parameters_is_refused),
        store_test(test_the_thread_fires_what_is_due_and_stops_when_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

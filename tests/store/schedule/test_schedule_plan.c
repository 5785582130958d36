/*
 * What is due of a schedule: slots that were missed, paused, or changed by a newer
 * file. The clock of the store stands still until a test moves it.
 */
#include "tests/store/schedule/house.h"

#include <string.h>

/* --- missed --- */

static void
test_missed_slots_follow_the_policy(struct harness *h)
{
    scoped(house_release) struct house house = {0};

    house_open(h, &house, 1,
               "  one: {job: free, cron: \"0 * * * *\"}\n"
               "  skip: {job: free, cron: \"0 * * * *\", missed: skip}\n"
               "  all: {job: free, cron: \"0 * * * *\", missed: {all: 3}}\n"
               "  few: {job: free, cron: \"0 4,5 * * *\", missed: {all: 3}}\n");
    harness_clock_advance(h, 5 * US_PER_HOUR + 30 * US_PER_MINUTE);
    catch_up(&house);
    assert_slots(h, "one", "merged 4 01:00-04:00; fired 1 05:00");
    assert_slots(h, "skip", "skipped 5 01:00-05:00");
    assert_slots(h, "all",
                 "skipped 2 01:00-02:00; fired 1 03:00; fired 1 04:00; fired 1 05:00");
    assert_slots(h, "few", "fired 1 04:00; fired 1 05:00");
    assert_int_equal(rows_in(h, "request"), 6);
    harness_clock_advance(h, 30 * US_PER_MINUTE);
    catch_up(&house);
    assert_int_equal(rows_in(h, "request"), 9);
    assert_slots(h, "skip", "skipped 5 01:00-05:00; fired 1 06:00");
}

static void
test_what_was_missed_goes_up_in_a_slot_on_time(struct harness *h)
{
    scoped(house_release) struct house house = {0};

    house_open(h, &house, 1,
               "  one: {job: free, cron: \"0 * * * *\"}\n"
               "  skip: {job: free, cron: \"0 * * * *\", missed: skip}\n");
    /* A minute late is on time, a microsecond more is not. */
    harness_clock_advance(h, 3 * US_PER_HOUR + US_PER_MINUTE);
    catch_up(&house);
    assert_slots(h, "one", "merged 2 01:00-02:00; fired 1 03:00");
    assert_slots(h, "skip", "skipped 2 01:00-02:00; fired 1 03:00");
    harness_clock_advance(h, US_PER_HOUR + 1);
    catch_up(&house);
    assert_slots(h, "one", "merged 2 01:00-02:00; fired 1 03:00; fired 1 04:00");
    assert_slots(h, "skip", "skipped 2 01:00-02:00; fired 1 03:00; skipped 1 04:00");
}

static void
test_many_missed_slots_come_in_pieces_and_in_order(struct harness *h)
{
    scoped(house_release) struct house house = {0};

    house_open(h, &house, 1,
               "  s: {job: free, cron: \"* * * * *\", missed: {all: 250}}\n");
    harness_clock_advance(h, 1000 * US_PER_MINUTE + 30 * US_PER_S);
    catch_up(&house);
    /* The last one is on time, and comes on top. */
    assert_int_equal(rows_in(h, "request"), 251);
    assert_int_equal(harness_i64(h, "SELECT sum(slots) FROM pawl.schedule_slot"), 1000);
    assert_int_equal(harness_i64(h,
                                 "SELECT slots FROM pawl.schedule_slot WHERE state = "
                                 "'skipped'"),
                     749);
    assert_int_equal(
        harness_i64(h, "SELECT count(*) FROM pawl.schedule_slot a JOIN "
                       "pawl.schedule_slot b ON b.slot_time > a.slot_time AND "
                       "b.request_id < a.request_id"),
        0);
}

/* --- paused --- */

static void
test_a_paused_schedule_skips_its_slots_and_says_who_did_it(struct harness *h)
{
    scoped(house_release) struct house house = {0};
    struct err err = {0};

    house_open(h, &house, 1, "  s: {job: free, cron: \"0 * * * *\"}\n");
    assert_int_equal(schedule_pause(h->store, "s", "ann", &err), SCHEDULE_PAUSED);
    assert_int_equal(schedule_pause(h->store, "s", "bob", &err), SCHEDULE_AS_IT_WAS);
    harness_clock_advance(h, 2 * US_PER_HOUR);
    catch_up(&house);
    assert_slots(h, "s", "skipped 2 01:00-02:00");
    assert_int_equal(harness_i64(h,
                                 "SELECT count(*) FROM pawl.schedule_slot WHERE detail "
                                 "= 'paused by ann'"),
                     1);
    assert_int_equal(schedule_resume(h->store, "s", "bob", &err), SCHEDULE_RESUMED);
    assert_int_equal(schedule_resume(h->store, "s", "bob", &err), SCHEDULE_AS_IT_WAS);
    catch_up(&house);
    assert_int_equal(rows_in(h, "request"), 0);
    harness_clock_advance(h, US_PER_HOUR);
    catch_up(&house);
    assert_slots(h, "s", "skipped 2 01:00-02:00; fired 1 03:00");
    assert_int_equal(harness_i64(h,
                                 "SELECT count(*) FROM pawl.audit WHERE subject = "
                                 "'schedule s' AND ((act = 'pause' AND actor = 'ann') "
                                 "OR (act = 'resume' AND actor = 'bob'))"),
                     2);
    assert_int_equal(rows_in(h, "audit"), 2);
    assert_int_equal(schedule_pause(h->store, "no", "ann", &err), -ERR_NOT_FOUND);
}

static void
test_what_the_file_pauses_only_the_file_resumes(struct harness *h)
{
    scoped(house_release) struct house house = {0};
    scoped(house_release) struct house later = {0};
    struct err err = {0};

    house_open(h, &house, 1, "  s: {job: free, cron: \"0 * * * *\", paused: true}\n");
    harness_clock_advance(h, US_PER_HOUR);
    catch_up(&house);
    assert_slots(h, "s", "skipped 1 01:00");
    assert_int_equal(schedule_resume(h->store, "s", "ann", &err), -ERR_INVALID);
    assert_non_null(strstr(err.text, "paused: true"));
    house_open(h, &later, 2, "  s: {job: free, cron: \"0 * * * *\"}\n");
    harness_clock_advance(h, US_PER_HOUR);
    catch_up(&later);
    assert_slots(h, "s", "skipped 1 01:00; fired 1 02:00");
}

static void
test_a_pause_between_plan_and_firing_is_seen(struct harness *h)
{
    scoped(house_release) struct house house = {0};
    struct err err = {0};
    struct scheduler *scheduler;
    int64_t wait_us;

    house_open(h, &house, 1, "  s: {job: free, cron: \"* * * * * *\"}\n");
    scheduler = scheduler_of(&house, h->store, 0);
    /* A scheduler that knows the schedule as it was; the store knows better. */
    assert_ok(scheduler_round(scheduler, &wait_us, &err), &err);
    harness_clock_advance(h, US_PER_S);
    assert_int_equal(schedule_pause(h->store, "s", "ann", &err), SCHEDULE_PAUSED);
    assert_ok(scheduler_round(scheduler, &wait_us, &err), &err);
    scheduler_free(scheduler);
    assert_int_equal(rows_in(h, "request"), 0);
    assert_int_equal(rows_in(h, "schedule_slot"), 1);
}

/* --- published --- */

static void
test_a_new_rule_counts_from_now_new_parameters_change_no_time(struct harness *h)
{
    scoped(house_release) struct house first = {0};
    scoped(house_release) struct house params = {0};
    scoped(house_release) struct house rule = {0};

    house_open(h, &first, 1, "  s: {job: free, cron: \"0 * * * *\"}\n");
    harness_clock_advance(h, US_PER_HOUR + 30 * US_PER_MINUTE);
    /* 01:00 was missed under the same rule: it is made up for. */
    house_open(h, &params, 2,
               "  s: {job: free, cron: \"0 * * * *\", params: {n: 3}}\n");
    catch_up(&params);
    assert_slots(h, "s", "fired 1 01:00");
    /* By the new rule 01:15 would have been one, but it was not in force. */
    house_open(h, &rule, 3, "  s: {job: free, cron: \"15,45 * * * *\"}\n");
    catch_up(&rule);
    harness_clock_advance(h, 15 * US_PER_MINUTE);
    catch_up(&rule);
    assert_slots(h, "s", "fired 1 01:00; fired 1 01:45");
}

static void
test_an_older_file_replaces_nothing_and_what_is_left_out_fires_no_more(
    struct harness *h)
{
    scoped(house_release) struct house newer = {0};
    scoped(house_release) struct house older = {0};
    scoped(house_release) struct house without = {0};

    house_open(h, &newer, 5, "  s: {job: free, cron: \"0 * * * *\"}\n");
    house_open(h, &older, 4,
               "  s: {job: free, cron: \"* * * * *\"}\n"
               "  t: {job: free, cron: \"0 * * * *\"}\n");
    harness_clock_advance(h, US_PER_HOUR);
    catch_up(&newer);
    assert_slots(h, "s", "fired 1 01:00");
    assert_slots(h, "t", "fired 1 01:00");
    house_open(h, &without, 6, "  u: {job: free, cron: \"0 * * * *\"}\n");
    harness_clock_advance(h, US_PER_HOUR);
    catch_up(&newer);
    assert_slots(h, "s", "fired 1 01:00");
    assert_slots(h, "u", "fired 1 02:00");
}

static void
test_a_definition_that_cannot_be_read_stops_no_other(struct harness *h)
{
    scoped(house_release) struct house house = {0};

    house_open(h, &house, 1,
               "  a: {job: free, cron: \"0 * * * *\"}\n"
               "  b: {job: free, cron: \"0 * * * *\"}\n");
    harness_sql(
        h, "UPDATE pawl.schedule SET definition = replace(definition, '0 * * * *', "
           "'0 * * *'), hash = 'broken' WHERE name = 'a'");
    harness_clock_advance(h, US_PER_HOUR);
    catch_up(&house);
    assert_slots(h, "a", "");
    assert_slots(h, "b", "fired 1 01:00");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(test_missed_slots_follow_the_policy),
        store_test(test_what_was_missed_goes_up_in_a_slot_on_time),
        store_test(test_many_missed_slots_come_in_pieces_and_in_order),
        store_test(test_a_paused_schedule_skips_its_slots_and_says_who_did_it),
        store_test(test_what_the_file_pauses_only_the_file_resumes),
        store_test(test_a_pause_between_plan_and_firing_is_seen),
        store_test(test_a_new_rule_counts_from_now_new_parameters_change_no_time),
        store_test(
            test_an_older_file_replaces_nothing_and_what_is_left_out_fires_no_more),
        store_test(test_a_definition_that_cannot_be_read_stops_no_other),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

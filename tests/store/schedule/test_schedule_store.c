/*
 * Schedules in the store: published, fired once whatever the number of schedulers and
 * the state of their clocks, missed, paused. The clock of the store stands still until
 * a test moves it, so nothing here waits.
 */
#include "base/civil.h"
#include "base/fsio.h"
#include "config/config.h"
#include "config/errors.h"
#include "queue/definition.h"
#include "schedule/schedule.h"
#include "schedule/tick.h"
#include "service/catalog.h"
#include "service/estimates.h"
#include "service/service.h"
#include "tests/store/queue/common.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROUNDS      3
#define RACE_ROUNDS 2

static const char head[] =
    "store: sqlite:./unused.db\n"
    "jobs:\n"
    "  free: {duplicates: allow, params: {n: {type: integer}}, steps: "
    "[{name: "
    "s, read: {sql: \"SELECT 1 AS a\", database: main}, write: {file: x.csv, format: "
    "csv}}]}\n"
    "  alone: {duplicates: refuse, steps: [{name: s, read: {sql: \"SELECT 1 AS a\", "
    "database: main}, write: {file: x.csv, format: csv}}]}\n"
    "  again: {duplicates: reuse, steps: [{name: s, read: {sql: \"SELECT 1 AS a\", "
    "database: main}, write: {file: x.csv, format: csv}}]}\n"
    "schedules:\n";

/* A configuration with these schedules, its jobs and schedules published. */
struct house {
    struct config *config;
    struct service service;
};

static void
house_release(struct house *house)
{
    estimates_free(house->service.estimates);
    config_free(house->config);
}

static void
write_file(const char *path, int version, const char *schedules)
{
    scoped(buf_release) struct buf text = {0};
    struct err err = {0};

    buf_init(&text, 0);
    buf_addf(&text, "config_version: %d\n%s%s", version, head, schedules);
    assert_ok(fs_replace_file(path, text.data, text.len, 0600, &err), &err);
}

static void
house_open(struct harness *h, struct house *house, int version, const char *schedules)
{
    scoped(config_errors_release) struct config_errors errors = {0};
    char folder[] = "/tmp/pawl-schedule-XXXXXX";
    char path[64];
    struct publish_counts counts = {0};
    struct err err = {0};

    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/pawl.yaml", folder);
    write_file(path, version, schedules);
    assert_ok(config_load(path, NULL, NULL, &house->config, &errors, &err), &err);
    fs_remove_tree_quietly(folder);
    house->service = (struct service){
        .config = house->config,
        .store = h->store,
        .estimates = estimates_new(house->config, house->config->store.url)};
    assert_ok(catalog_publish(h->store, house->config, &counts, &err), &err);
    assert_ok(schedule_publish(h->store, house->config, &counts, &err), &err);
}

static struct scheduler *
scheduler_of(struct house *house, struct store *store, int64_t skew_us)
{
    struct scheduler_options options = {.store = store,
                                        .order = service_schedule_order,
                                        .arg = &house->service,
                                        .skew_us = skew_us};
    struct scheduler *scheduler = NULL;
    struct err err = {0};

    assert_ok(scheduler_new(&options, &scheduler, &err), &err);
    return scheduler;
}

/* Enough rounds of one scheduler for all that is due: a hundred slots each. */
static void
catch_up(struct house *house)
{
    struct scheduler *scheduler = scheduler_of(house, house->service.store, 0);
    int64_t wait_us;

    for (int i = 0; i < ROUNDS; i++) {
        struct err err = {0};

        assert_ok(scheduler_round(scheduler, &wait_us, &err), &err);
    }
    scheduler_free(scheduler);
}

/* "fired 1 05:00; merged 4 01:00-04:00", in the order of their times. */
static void
assert_slots(struct harness *h, const char *schedule, const char *expected)
{
    scoped(buf_release) struct buf text = {0};
    scoped(db_rows_end) struct db_rows rows = {0};
    struct db_sql sql = {
        .name = "slots",
        .text = "SELECT state, slots, slot_time, last_time FROM pawl.schedule_slot "
                "WHERE schedule = $1 ORDER BY slot_time",
        .n_params = 1,
        .flags = DB_ONCE};
    struct err err = {0};
    int r;

    buf_init(&text, 0);
    assert_ok(db_ask(h->db, &sql, &rows, &err, p_text(schedule)), &err);
    while ((r = db_next(&rows, &err)) > 0) {
        char first[CIVIL_TEXT_SIZE];
        char last[CIVIL_TEXT_SIZE];

        civil_format_us(db_i64(&rows, 2), 0, first);
        civil_format_us(db_i64(&rows, 3), 0, last);
        buf_addf(&text, "%s%s %d %.5s", text.len ? "; " : "", db_text(&rows, 0),
                 (int)db_i64(&rows, 1), first + 11);
        if (strcmp(first, last) != 0)
            buf_addf(&text, "-%.5s", last + 11);
    }
    assert_ok(r, &err);
    assert_string_equal(buf_str(&text), expected);
}

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
        store_test(test_a_job_that_is_gone_or_takes_other_parameters_is_refused),
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
        store_test(test_the_thread_fires_what_is_due_and_stops_when_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* doctor: a house in order has no warning but those of the test's own database role,
 * and each thing out of order is told by the line made for it. */
#include "tests/store/queue/common.h"

#include "base/buf.h"
#include "base/fsio.h"
#include "base/json.h"
#include "config/config.h"
#include "liveness/worker_row.h"
#include "queue/definition.h"
#include "service/doctor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct house {
    struct harness *h;
    char folder[64];
    struct clock_settable clock;
    struct config_job job;
    const char *keys[1];
    const char *key_value;
    struct config config;
    struct arena arena;
    struct doctor_report report;
};

static const char *
environment(void *arg, const char *name)
{
    const struct house *house = arg;

    return strcmp(name, "SOME_KEY") == 0 ? house->key_value : NULL;
}

static void
worker_up(struct harness *h, const char *id, const char *lanes)
{
    struct worker_row row = {.id = id,
                             .seat = id,
                             .host = "h",
                             .pid = 1,
                             .boot_id = "b",
                             .lanes = lanes,
                             .in_use = "{}",
                             .keys = "[]",
                             .jobs = "[]",
                             .version = "1"};
    struct err err = {0};

    assert_ok(worker_register(h->store, &row, &err), &err);
}

static void
publish(struct harness *h, const char *name, const char *hash)
{
    struct job_definition row = {
        .name = name, .version = 1, .hash = hash, .definition = "{}"};
    struct publish_counts counts;
    struct err err = {0};

    assert_ok(queue_publish(h->store, &row, 1, 1, &counts, &err), &err);
}

static void
set_up(struct house *house, struct harness *h)
{
    *house = (struct house){.h = h, .keys = {"SOME_KEY"}, .key_value = "x"};
    snprintf(house->folder, sizeof(house->folder), "/tmp/pawl-doctor-XXXXXX");
    assert_non_null(mkdtemp(house->folder));
    clock_settable_init(&house->clock, HARNESS_NOW);
    house->job = (struct config_job){.name = "task", .lane = "normal", .hash = "aa"};
    house->config = (struct config){
        .version = 1,
        .store = {.connect_timeout_us = 5 * US_PER_S,
                  .statement_timeout_us = 5 * US_PER_S},
        .results = house->folder,
        .state = house->folder,
        .worker = {.dead_after_us = 60 * US_PER_S},
        .keys = house->keys,
        .key_count = 1,
        .jobs = &house->job,
        .job_count = 1,
    };
    publish(h, "task", "aa");
    worker_up(h, "w1", "{\"normal\":2}");
}

static void
tear_down(struct house *house)
{
    fs_remove_tree_quietly(house->folder);
    arena_release(&house->arena);
}

/* SQLite: the clock of the store is the machine's on the doctor's own connection. */
static void
examine(struct house *house)
{
    bool sqlite = house->h->kind == HARNESS_SQLITE;
    struct doctor_order order = {
        .config = &house->config,
        .url = house->h->url,
        .clock = sqlite ? clock_real() : &house->clock.clock,
        .version = "1.2.3",
        .env = environment,
        .env_arg = house,
    };

    doctor_run(&order, &house->arena, &house->report);
}

/* The worst line of a name whose text has the words; -1 if there is none. */
static int
level_of(const struct house *house, const char *name, const char *words)
{
    int worst = -1;

    for (size_t i = 0; i < house->report.count; i++) {
        const struct doctor_line *line = &house->report.lines[i];

        if (strcmp(line->name, name) == 0 && strstr(line->text, words) &&
            (int)line->level > worst)
            worst = (int)line->level;
        assert_true((line->level == DOCTOR_OK) == (line->remedy == NULL));
    }
    return worst;
}

static void
assert_line(struct house *house, enum doctor_level level, const char *name,
            const char *words)
{
    int got = level_of(house, name, words);

    if (got != (int)level) {
        for (size_t i = 0; i < house->report.count; i++)
            print_error("%s %s: %s\n", doctor_level_name(house->report.lines[i].level),
                        house->report.lines[i].name, house->report.lines[i].text);
        fail_msg("%s \"%s\" is %d, not %s", name, words, got, doctor_level_name(level));
    }
}

/* Beats as of now on whichever clock the doctor's connection has. */
static void
beat_now(struct harness *h)
{
    if (h->kind == HARNESS_SQLITE)
        harness_sql(h, "UPDATE pawl.worker SET beat_at = %lld",
                    (long long)clock_wall_us(clock_real()));
}

static void
test_a_house_in_order(struct harness *h)
{
    struct house house;

    set_up(&house, h);
    beat_now(h);
    examine(&house);
    assert_line(&house, DOCTOR_OK, "pawl", "1.2.3");
    assert_line(&house, DOCTOR_OK, "schema", "as this pawl needs");
    assert_line(&house, DOCTOR_OK, "clock", "ms off");
    assert_line(&house, DOCTOR_OK, "definitions", "1 jobs");
    assert_line(&house, DOCTOR_OK, "keys", "1 named");
    assert_line(&house, DOCTOR_OK, "workers", "1 live, 0 dead");
    assert_line(&house, DOCTOR_OK, "lanes", "served");
    assert_int_not_equal(level_of(&house, "disk", "results"), -1);
    assert_line(&house, DOCTOR_WARNING, "disk", "is not marked as a store's");
    if (h->kind == HARNESS_SQLITE) {
        assert_line(&house, DOCTOR_OK, "database", "SQLite 3.");
        assert_line(&house, DOCTOR_OK, "settings", "journal_mode is wal");
        assert_line(&house, DOCTOR_OK, "settings", "belongs to the owner");
    } else {
        assert_line(&house, DOCTOR_OK, "database", "PostgreSQL ");
        assert_line(&house, DOCTOR_OK, "settings", "synchronous_commit is on");
        assert_line(&house, DOCTOR_OK, "timeouts", "statement_timeout");
        assert_line(&house, DOCTOR_WARNING, "privileges", "a superuser");
        assert_int_not_equal(level_of(&house, "connections", "used"), -1);
        assert_line(&house, h->kind == HARNESS_PG ? DOCTOR_OK : DOCTOR_WARNING,
                    "listen", "");
    }
    tear_down(&house);
}

static void
test_each_thing_out_of_order_has_its_line(struct harness *h)
{
    struct config_webhook shop = {.name = "shop"};
    struct house house;

    set_up(&house, h);
    house.key_value = "";
    snprintf(house.job.hash, sizeof(house.job.hash), "bb");
    house.job.lane = "large";
    house.config.results = "/nonexistent/results";
    harness_sql(h, "INSERT INTO pawl.job_definition (name, version, hash, definition, "
                   "published_at) VALUES ('older', 1, 'x', '{}', 1)");
    submit_one(h, "task");
    harness_sql(h, "UPDATE pawl.ready SET lane = 'nowhere'");
    harness_sql(h, "UPDATE pawl.worker SET beat_at = 1");
    harness_sql(h,
                "INSERT INTO pawl.paused (kind, name, paused_by, paused_at) VALUES "
                "('lane', 'large', 'ann', %lld)",
                (long long)HARNESS_NOW);
    harness_sql(h, "INSERT INTO pawl.delivery (request_id, webhook, created_at, due_at)"
                   " VALUES (1, 'shop', 1, 1), (2, 'shop', 2, 1), (1, 'gone', 1, 1)");
    house.config.webhooks = &shop;
    house.config.webhook_count = 1;
    clock_set_wall(&house.clock, HARNESS_NOW + 31 * US_PER_S);
    examine(&house);
    assert_line(&house, DOCTOR_WARNING, "keys", "SOME_KEY");
    assert_line(&house, DOCTOR_WARNING, "definitions", "job task in the store");
    assert_line(&house, DOCTOR_WARNING, "definitions", "the store has job older");
    assert_line(&house, DOCTOR_WARNING, "workers", "0 live, 1 dead");
    assert_line(&house, DOCTOR_WARNING, "lanes", "job task goes to lane large");
    assert_line(&house, DOCTOR_ERROR, "lanes", "1 requests wait in lane nowhere");
    assert_line(&house, DOCTOR_WARNING, "paused",
                "lane large is paused by ann since 2026-11-01T00:00:00");
    assert_line(&house, DOCTOR_WARNING, "webhooks",
                "2 requests wait to be told to shop, since 1970");
    assert_line(&house, DOCTOR_WARNING, "webhooks",
                "1 requests wait to be told to gone, which the file does not name");
    assert_line(&house, DOCTOR_WARNING, "disk", "/nonexistent/results");
    if (h->kind != HARNESS_SQLITE)
        assert_line(&house, DOCTOR_ERROR, "clock", "31000 ms off");
    assert_int_equal(house.report.worst, DOCTOR_ERROR);
    tear_down(&house);
}

static void
test_the_oldest_transaction_is_told_with_who_holds_it(struct harness *h)
{
    struct house house;

    set_up(&house, h);
    examine(&house);
    assert_line(&house, DOCTOR_OK, "oldest-transaction", "");
    harness_sql(h, "SET application_name = 'forgotten'; BEGIN; SELECT 1");
    examine(&house);
    assert_line(&house, DOCTOR_OK, "oldest-transaction", "forgotten");
    harness_sql(h, "ROLLBACK");
    tear_down(&house);
}

static void
test_a_schema_that_is_not_ours_is_an_error(struct harness *h)
{
    struct house house;

    set_up(&house, h);
    harness_sql(h, "INSERT INTO pawl.migration (number, name, applied_at) "
                   "VALUES (9000, 'later', 1)");
    examine(&house);
    harness_sql(h, "DELETE FROM pawl.migration WHERE number = 9000");
    assert_line(&house, DOCTOR_ERROR, "schema", "9000");
    tear_down(&house);
}

static void
test_without_an_owner_the_settings_are_read_back(struct harness *h)
{
    scoped(buf_release) struct buf text = {0};
    scoped(json_drop) json_t *parsed = NULL;
    struct err err = {0};
    struct house house;

    set_up(&house, h);
    store_close(h->store);
    h->store = NULL;
    examine(&house);
    assert_line(&house, DOCTOR_OK, "owner", "nobody");
    assert_line(&house, DOCTOR_OK, "settings", "synchronous is FULL");
    assert_int_equal(chmod(strchr(h->url, ':') + 1, 0644), 0);
    examine(&house);
    assert_line(&house, DOCTOR_WARNING, "privileges", "can be read by others");

    buf_init(&text, 0);
    doctor_json(&house.report, &text);
    assert_ok(json_parse(text.data, text.len, JSON_DEPTH_MAX, &parsed, &err), &err);
    assert_int_equal(json_array_size(json_object_get(parsed, "lines")),
                     house.report.count);
    tear_down(&house);
}

static void
test_a_store_that_is_not_there_is_an_error_and_stays_so(struct harness *h)
{
    struct house house;

    set_up(&house, h);
    snprintf(h->url, sizeof(h->url), "sqlite:%s/none.db", house.folder);
    examine(&house);
    assert_line(&house, DOCTOR_ERROR, "store", "does not exist yet");
    assert_false(fs_exists(strchr(h->url, ':') + 1));
    tear_down(&house);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(test_a_house_in_order),
        store_test(test_each_thing_out_of_order_has_its_line),
        store_test_pg(test_the_oldest_transaction_is_told_with_who_holds_it),
        store_test(test_a_schema_that_is_not_ours_is_an_error),
        store_test_sqlite(test_without_an_owner_the_settings_are_read_back),
        store_test_sqlite(test_a_store_that_is_not_there_is_an_error_and_stays_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

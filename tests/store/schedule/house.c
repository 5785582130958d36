/* See house.h. */
#include "tests/store/schedule/house.h"

#include "base/civil.h"
#include "base/fsio.h"
#include "config/errors.h"
#include "queue/definition.h"
#include "service/catalog.h"
#include "service/estimates.h"

#include <stdlib.h>
#include <string.h>

#define ROUNDS 3

static const char head[] =
    "store: sqlite:./unused.db\n"
    "databases: {none: \"sqlite::memory:\"}\n"
    "jobs:\n"
    "  free: {duplicates: allow, params: {n: {type: integer}}, steps: "
    "[{name: "
    "s, read: {sql: \"SELECT 1 AS a\", database: main}, write: {file: x.csv, format: "
    "csv}}]}\n"
    "  alone: {duplicates: refuse, steps: [{name: s, read: {sql: \"SELECT 1 AS a\", "
    "database: main}, write: {file: x.csv, format: csv}}]}\n"
    "  sized: {duplicates: allow, estimate: {sql: \"SELECT n FROM nowhere\", database: "
    "none}, lane: {large_over: 9}, steps: [{name: s, read: {sql: \"SELECT 1 AS a\", "
    "database: main}, write: {file: x.csv, format: csv}}]}\n"
    "  again: {duplicates: reuse, steps: [{name: s, read: {sql: \"SELECT 1 AS a\", "
    "database: main}, write: {file: x.csv, format: csv}}]}\n"
    "schedules:\n";

void
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

void
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

struct scheduler *
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

void
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

void
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

/* Outcomes that wait for the store: kept over a restart, recorded once, in order. */
#include "tests/store/worker/desk.h"

#include "base/fsio.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

static struct finish_order
ended(int64_t request_id, const struct claim *claim, enum request_outcome outcome)
{
    struct finish_order order = finish_of(request_id, claim, outcome);

    order.detail = "how it ended";
    return order;
}

static void
keep(struct desk *desk, const struct finish_order *order)
{
    struct err err = {0};

    assert_ok(spool_put(desk->worker.spool, order, &err), &err);
}

static int
files_in_spool(struct desk *desk, const char *ending)
{
    char path[128];
    struct dirent *entry;
    int count = 0;
    DIR *dir;

    snprintf(path, sizeof(path), "%s/spool", desk->folder);
    dir = opendir(path);
    assert_non_null(dir);
    while ((entry = readdir(dir))) {
        const char *dot = strrchr(entry->d_name, '.');

        count += dot && dot != entry->d_name && strcmp(dot, ending) == 0;
    }
    closedir(dir);
    return count;
}

/* The process ends and starts again. */
static void
open_again(struct desk *desk)
{
    char path[128];
    struct err err = {0};

    spool_free(desk->worker.spool);
    desk->worker.spool = NULL;
    snprintf(path, sizeof(path), "%s/spool", desk->folder);
    assert_ok(spool_open(path, &desk->worker.spool, &err), &err);
}

static void
test_A34_A35_a_kept_outcome_is_recorded_before_the_sweep_judges(struct harness *h)
{
    scoped(desk_close) struct desk desk;
    scoped(arena_release) struct arena arena = {0};
    struct request request;
    struct finish_order order;
    struct claim claim;
    int64_t id;

    desk_open(&desk, h);
    id = submit_one(h, "task");
    claim = claim_one(h, "w1");
    order = ended(id, &claim, OUTCOME_ERROR);
    order.execution_id = desk_begin(&desk, id, &claim, 1, "file");
    keep(&desk, &order);
    keep(&desk, &order); /* once is enough */
    assert_int_equal(spool_count(desk.worker.spool), 1);
    worker_reap(&desk.worker);
    request = get(h, &arena, id);
    assert_int_equal(request.outcome, OUTCOME_ERROR);
    assert_string_equal(request.detail, "how it ended");
    assert_int_equal(request.execution_id, order.execution_id);
    assert_int_equal(spool_count(desk.worker.spool), 0);
    assert_int_equal(files_in_spool(&desk, ".json"), 0);
    assert_consistent(h);
}

/* RELIABILITY row 12. */
static void
test_A34_the_spool_outlives_the_process_with_all_that_belongs_to_a_result(
    struct harness *h)
{
    scoped(desk_close) struct desk desk;
    scoped(arena_release) struct arena arena = {0};
    struct request_result result = {.known = true,
                                    .path = "files/1/\"ö\".csv",
                                    .name = "\"ö\".csv",
                                    .type = "text/csv",
                                    .bytes = 12,
                                    .rows = -1,
                                    .sha256 = "abc"};
    struct finish_order order;
    struct request request;
    struct claim claim;
    int64_t id;

    desk_open(&desk, h);
    id = submit_one(h, "task");
    claim = claim_one(h, "w1");
    order = ended(id, &claim, OUTCOME_COMPLETED);
    order.detail = NULL;
    order.result = &result;
    keep(&desk, &order);
    open_again(&desk);
    assert_int_equal(spool_count(desk.worker.spool), 1);
    worker_reap(&desk.worker);
    request = get(h, &arena, id);
    assert_int_equal(request.outcome, OUTCOME_COMPLETED);
    assert_null(request.detail);
    assert_string_equal(request.result.path, result.path);
    assert_string_equal(request.result.name, result.name);
    assert_string_equal(request.result.type, result.type);
    assert_int_equal(request.result.bytes, 12);
    assert_int_equal(request.result.rows, -1);
    assert_string_equal(request.result.sha256, "abc");
}

static void
test_A34_outcomes_are_recorded_in_the_order_in_which_they_came(struct harness *h)
{
    scoped(desk_close) struct desk desk;
    struct finish_order order;
    struct claim claims[12];
    int64_t ids[12];

    desk_open(&desk, h);
    for (int i = 0; i < 12; i++) {
        ids[i] = submit_one(h, "task");
        claims[i] = claim_one(h, "w1");
    }
    /* The later request ends first. */
    for (int i = 11; i >= 0; i--) {
        order = ended(ids[i], &claims[i], OUTCOME_ERROR);
        keep(&desk, &order);
        if (i == 5)
            open_again(&desk); /* the numbers go on behind those that lie there */
    }
    for (int i = 11; i >= 0; i--) {
        scoped(buf_release) struct buf first = {0};
        char path[160];

        buf_init(&first, 0);
        snprintf(path, sizeof(path), "%s/spool/%020d-%lld-%lld.json", desk.folder,
                 12 - i, (long long)ids[i], (long long)claims[i].token.number);
        assert_true(fs_exists(path));
    }
    open_again(&desk);
    worker_reap(&desk.worker);
    assert_int_equal(rows_in(h, "outcome"), 12);
    assert_int_equal(rows_in(h, "claim"), 0);
}

static void
test_A35_a_stale_outcome_is_dropped_with_its_file(struct harness *h)
{
    scoped(desk_close) struct desk desk;
    scoped(arena_release) struct arena arena = {0};
    struct request_result result = {.known = true,
                                    .path = "files/1/x.csv",
                                    .name = "x.csv",
                                    .type = "text/csv",
                                    .bytes = 2,
                                    .rows = 1,
                                    .sha256 = "abc"};
    struct finish_order order;
    struct claim claim;
    int64_t id;

    desk_open(&desk, h);
    id = submit_one(h, "task");
    claim = claim_one(h, "w1");
    desk_publish(&desk, id, &claim, "a\n");
    order = ended(id, &claim, OUTCOME_COMPLETED);
    order.result = &result;
    keep(&desk, &order);
    finish_ok(h, id, &claim, OUTCOME_WORKER_LOST); /* somebody else was first */
    worker_reap(&desk.worker);
    assert_int_equal(get(h, &arena, id).outcome, OUTCOME_WORKER_LOST);
    assert_int_equal(spool_count(desk.worker.spool), 0);
    assert_int_equal(files_in_spool(&desk, ".json"), 0);
    assert_false(desk_has_result(&desk, id));
}

static void
test_A34_what_was_recorded_before_the_crash_is_not_recorded_twice(struct harness *h)
{
    scoped(desk_close) struct desk desk;
    scoped(arena_release) struct arena arena = {0};
    struct finish_order order;
    struct claim claim;
    int64_t id;

    desk_open(&desk, h);
    id = submit_one(h, "task");
    claim = claim_one(h, "w1");
    order = ended(id, &claim, OUTCOME_ERROR);
    keep(&desk, &order);
    finish_ok(h, id, &claim, OUTCOME_ERROR); /* ours; then we died before the drop */
    open_again(&desk);
    worker_reap(&desk.worker);
    assert_int_equal(get(h, &arena, id).outcome, OUTCOME_ERROR);
    assert_int_equal(spool_count(desk.worker.spool), 0);
    assert_int_equal(rows_in(h, "outcome"), 1);
}

static void
test_a_damaged_file_is_put_aside_and_stops_nobody(struct harness *h)
{
    scoped(desk_close) struct desk desk;
    scoped(arena_release) struct arena arena = {0};
    struct finish_order order;
    struct claim claim;
    struct err err = {0};
    char path[160];
    int64_t id;

    desk_open(&desk, h);
    snprintf(path, sizeof(path), "%s/spool/%020d-7-7.json", desk.folder, 1);
    assert_ok(fs_replace_file(path, "{\"request\":7", 12, 0600, &err), &err);
    open_again(&desk);
    id = submit_one(h, "task");
    claim = claim_one(h, "w1");
    order = ended(id, &claim, OUTCOME_ERROR);
    keep(&desk, &order);
    worker_reap(&desk.worker);
    assert_int_equal(get(h, &arena, id).outcome, OUTCOME_ERROR);
    assert_int_equal(spool_count(desk.worker.spool), 0);
    assert_int_equal(files_in_spool(&desk, ".refused"), 1);
}

static void
test_a_full_spool_takes_no_more_and_loses_nothing(struct harness *h)
{
    scoped(desk_close) struct desk desk;
    struct finish_order order;
    struct err err = {0};
    struct claim claim;
    char path[192];
    int64_t id;

    desk_open(&desk, h);
    id = submit_one(h, "task");
    claim = claim_one(h, "w1");
    order = ended(id, &claim, OUTCOME_ERROR);
    for (int i = 1; i < SPOOL_MAX; i++) {
        snprintf(path, sizeof(path), "%s/spool/%020d-%d-9.json", desk.folder, i,
                 i + 10);
        fclose(fopen(path, "we"));
    }
    open_again(&desk);
    assert_int_equal(spool_count(desk.worker.spool), SPOOL_MAX - 1);
    keep(&desk, &order);
    order.request_id = 5;
    assert_int_equal(spool_put(desk.worker.spool, &order, &err), -ERR_TOO_LARGE);
    assert_non_null(strstr(err.text, "bring the store back"));
    assert_int_equal(files_in_spool(&desk, ".json"), SPOOL_MAX);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(test_A34_A35_a_kept_outcome_is_recorded_before_the_sweep_judges),
        store_test(
            test_A34_the_spool_outlives_the_process_with_all_that_belongs_to_a_result),
        store_test(test_A34_outcomes_are_recorded_in_the_order_in_which_they_came),
        store_test(test_A35_a_stale_outcome_is_dropped_with_its_file),
        store_test(test_A34_what_was_recorded_before_the_crash_is_not_recorded_twice),
        store_test(test_a_damaged_file_is_put_aside_and_stops_nobody),
        store_test_sqlite(test_a_full_spool_takes_no_more_and_loses_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

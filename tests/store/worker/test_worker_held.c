/*
 * A real worker, threads and all, whose sweep runs as often as it can: what is just
 * being launched is never taken for lost. A claim that nobody carries shows that the
 * sweep does run. PAWL_FULL: ten thousand requests, as the clause says.
 */
#include "tests/store/queue/common.h"

#include "base/fsio.h"
#include "base/log.h"
#include "config/config.h"
#include "config/errors.h"
#include "run/result_store.h"
#include "worker/worker.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define JOBS     100
#define SLOTS    8
#define SWEEP_US (10 * US_PER_MS)

struct site {
    struct harness *h;
    char folder[64];
    struct config *config;
    struct result_store *results;
    struct log log;
    int log_fd;
    struct worker *worker;
};

static const char *
no_env(void *arg, const char *name)
{
    return NULL;
}

static void
load(struct site *site)
{
    struct config_errors errors = {0};
    struct err err = {0};
    char path[128];
    FILE *file;

    snprintf(path, sizeof(path), "%s/pawl.yaml", site->folder);
    file = fopen(path, "we");
    assert_non_null(file);
    fprintf(file,
            "store: sqlite:./unused.db\nlanes: {normal: %d}\n"
            "databases: {shop: \"sqlite:./shop.db\"}\njobs:\n",
            SLOTS);
    for (int i = 0; i < JOBS; i++)
        fprintf(file,
                "  fast-%d:\n    duplicates: allow\n    retry: none\n    steps:\n"
                "      - name: one\n"
                "        read: {database: shop, sql: \"SELECT 1 AS n\"}\n"
                "        write: {file: x.csv}\n",
                i);
    fclose(file);
    assert_ok(config_load(path, no_env, NULL, &site->config, &errors, &err), &err);
    site->config->worker.reap_us = SWEEP_US; /* the file may not ask for so little */
}

static void
open_site(struct site *site, struct harness *h)
{
    struct worker_options options;
    struct err err = {0};
    char path[128];
    int fd;

    *site = (struct site){.h = h};
    snprintf(site->folder, sizeof(site->folder), "/tmp/pawl-held-XXXXXX");
    assert_non_null(mkdtemp(site->folder));
    snprintf(path, sizeof(path), "%s/shop.db", site->folder);
    fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
    load(site);
    assert_ok(result_store_open(site->config->results, store_id(h->store),
                                &site->results, &err),
              &err);
    site->log_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    log_init(&site->log, site->log_fd, LOG_ERROR, LOG_TEXT, clock_real());
    options = (struct worker_options){.config = site->config,
                                      .store = h->store,
                                      .results = site->results,
                                      .clock = clock_real(),
                                      .log = &site->log,
                                      .version = "1"};
    assert_ok(worker_new(&options, &site->worker, &err), &err);
    assert_ok(worker_start(site->worker, &err), &err);
}

static void
close_site(struct site *site)
{
    worker_stop(site->worker);
    assert_true(worker_join(site->worker));
    worker_free(site->worker);
    result_store_close(site->results);
    config_free(site->config);
    close(site->log_fd);
    fs_remove_tree_quietly(site->folder);
}

/* A claim of the worker that it knows nothing of. */
static void
plant_stray(struct site *site)
{
    struct queue_job job = job_of("fast-0", QUEUE_DUPLICATES_ALLOW);
    struct submit_order order = order_of(&job);
    struct submit_answer answer;
    struct claim_token token;
    struct err err = {0};

    assert_ok(queue_submit_claimed(site->h->store, &order, worker_id(site->worker),
                                   &answer, &token, &err),
              &err);
}

static void
wait_for_outcomes(struct harness *h, int64_t count)
{
    while (rows_in(h, "outcome") < count)
        usleep(2000);
}

static void
test_A36_ten_thousand_that_are_launched_amid_sweeps_are_not_swept(struct harness *h)
{
    size_t each = getenv("PAWL_FULL") ? 100 : 1;
    struct site site;
    int64_t count = 0;

    open_site(&site, h);
    for (int i = 0; i < JOBS; i++) {
        char name[16];

        snprintf(name, sizeof(name), "fast-%d", i);
        submit_span(h, name, each);
        count += (int64_t)each;
        if (i % 50 == 25) {
            plant_stray(&site);
            count++;
        }
    }
    wait_for_outcomes(h, count);
    close_site(&site);
    assert_int_equal(
        harness_i64(h,
                    "SELECT count(*) FROM pawl.outcome WHERE outcome = 'WORKER_LOST'"),
        2); /* the two that nobody carried */
    assert_int_equal(
        harness_i64(h, "SELECT count(*) FROM pawl.outcome WHERE outcome = 'COMPLETED'"),
        count - 2);
    assert_int_equal(rows_in(h, "claim"), 0);
    assert_consistent(h);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        store_test_sqlite(
            test_A36_ten_thousand_that_are_launched_amid_sweeps_are_not_swept),
        store_test_pg(
            test_A36_ten_thousand_that_are_launched_amid_sweeps_are_not_swept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Who asks for a job that a dead worker holds: the workers are told to look now, and
 * the caller waits for them a moment. Here the part of such a worker is played by a
 * thread that closes what it is told of.
 */
#include "tests/store/queue/common.h"

#include "base/fsio.h"
#include "batch/lost.h"
#include "config/config.h"
#include "liveness/worker_row.h"
#include "run/result_store.h"
#include "service/bury.h"
#include "service/enter.h"
#include "service/service.h"
#include "store/wake.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEAD_AFTER (60 * US_PER_S)
#define CALLERS    20

static struct config config = {.worker = {.dead_after_us = DEAD_AFTER,
                                          .heartbeat_us = 10 * US_PER_S,
                                          .reap_us = 1}};

static struct service
service_of(struct harness *h)
{
    return (struct service){.config = &config, .store = h->store};
}

/* Who closes here removes files as well. */
static struct result_store *
open_results(struct harness *h, char folder[64])
{
    struct result_store *results = NULL;
    struct err err = {0};

    snprintf(folder, 64, "/tmp/pawl-bury-XXXXXX");
    assert_non_null(mkdtemp(folder));
    assert_ok(result_store_open(folder, store_id(h->store), &results, &err), &err);
    return results;
}

static void
close_results(const struct service *service, const char *folder)
{
    result_store_close((struct result_store *)(uintptr_t)service->results);
    fs_remove_tree_quietly(folder);
}

static void
worker_up(struct harness *h, const char *id)
{
    struct worker_row row = {.id = id,
                             .seat = id,
                             .host = "h",
                             .pid = 1,
                             .boot_id = "b",
                             .lanes = "{\"normal\":4}",
                             .in_use = "{}",
                             .keys = "[]",
                             .jobs = "[]",
                             .version = "1"};
    struct err err = {0};

    assert_ok(worker_register(h->store, &row, &err), &err);
}

/* --- one that repairs when it is told to --- */

struct reaper {
    struct harness *h;
    int subscription;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t told_cond;
    bool told, over;
    int rounds;
};

static void
on_lost(void *arg, unsigned mask)
{
    struct reaper *reaper = (struct reaper *)arg;

    (void)mask;
    pthread_mutex_lock(&reaper->lock);
    reaper->told = true;
    pthread_cond_signal(&reaper->told_cond);
    pthread_mutex_unlock(&reaper->lock);
}

static void *
reaper_main(void *arg)
{
    struct reaper *reaper = (struct reaper *)arg;

    for (;;) {
        scoped(arena_release) struct arena arena = {0};
        struct lost_request *lost;
        struct err err = {0};
        size_t count;
        bool over;

        pthread_mutex_lock(&reaper->lock);
        while (!reaper->told && !reaper->over)
            pthread_cond_wait(&reaper->told_cond, &reaper->lock);
        reaper->told = false;
        over = reaper->over;
        pthread_mutex_unlock(&reaper->lock);
        if (over)
            return NULL;
        reaper->rounds++;
        assert_ok(batch_close_lost(reaper->h->store, "dead", "It died.", &arena, &lost,
                                   &count, &err),
                  &err);
    }
}

static void
start_reaper(struct reaper *reaper, struct harness *h)
{
    *reaper = (struct reaper){.h = h,
                              .lock = PTHREAD_MUTEX_INITIALIZER,
                              .told_cond = PTHREAD_COND_INITIALIZER};
    assert_int_equal(pthread_create(&reaper->thread, NULL, reaper_main, reaper), 0);
    reaper->subscription = store_subscribe(h->store, WAKE_LOST, on_lost, reaper);
}

static void
end_reaper(struct reaper *reaper)
{
    store_unsubscribe(reaper->h->store, reaper->subscription);
    pthread_mutex_lock(&reaper->lock);
    reaper->over = true;
    pthread_cond_signal(&reaper->told_cond);
    pthread_mutex_unlock(&reaper->lock);
    pthread_join(reaper->thread, NULL);
}

/* --- what is asked --- */

static int
enter(struct harness *h, const struct service *service, int64_t *ret_id,
      struct err *err)
{
    struct queue_job job = job_of("task", QUEUE_DUPLICATES_REFUSE);
    struct submit_order order = order_of(&job);
    struct submit_answer answer = {0};
    int r = service_enter(service, &order, 1, NULL, &answer, NULL, err);

    (void)h;
    if (r == 0)
        *ret_id = answer.request_id;
    return r;
}

/* A request of the one-at-a-time job, RUNNING by worker "dead". */
static int64_t
held_by_dead(struct harness *h)
{
    struct service service = service_of(h);
    struct err err = {0};
    int64_t id = 0;

    worker_up(h, "dead");
    assert_ok(enter(h, &service, &id, &err), &err);
    claim_one(h, "dead");
    return id;
}

static enum request_outcome
outcome_of(struct harness *h, int64_t id)
{
    scoped(arena_release) struct arena arena = {0};

    return get(h, &arena, id).outcome;
}

struct asker {
    struct harness *h;
    atomic_flag *one_waits;
    int64_t id;
    int64_t took_us;
    int r;
    struct err err;
};

static void *
call_main(void *arg)
{
    struct asker *caller = (struct asker *)arg;
    struct service service = service_of(caller->h);
    int64_t began_us = clock_mono_us(clock_real());

    service.one_waits = caller->one_waits;
    caller->r = enter(caller->h, &service, &caller->id, &caller->err);
    caller->took_us = clock_mono_us(clock_real()) - began_us;
    return NULL;
}

static void
test_A27_of_20_callers_one_gets_in_after_one_closing(struct harness *h)
{
    struct asker callers[CALLERS] = {0};
    int64_t held = held_by_dead(h);
    struct reaper reaper;
    int64_t entered = 0;
    int n = 0;

    harness_clock_advance(h, DEAD_AFTER + 1);
    worker_up(h, "live");
    start_reaper(&reaper, h);
    for (int i = 0; i < CALLERS; i++)
        callers[i].h = h;
    in_parallel(CALLERS, call_main, callers, sizeof(*callers));
    end_reaper(&reaper);
    for (int i = 0; i < CALLERS; i++)
        if (callers[i].r == 0) {
            entered = callers[i].id;
            n++;
        } else {
            assert_true(callers[i].err.code == ERR_JOB_ALREADY_RUNNING ||
                        callers[i].err.code == ERR_JOB_BEING_SUBMITTED);
        }
    assert_int_equal(n, 1);
    assert_true(entered > held);
    assert_int_equal(outcome_of(h, held), OUTCOME_WORKER_LOST);
    assert_int_equal(rows_in(h, "outcome"), 1);
    assert_consistent(h);
}

static void
test_A27_a_living_worker_is_left_alone(struct harness *h)
{
    struct service service = service_of(h);
    int64_t held = held_by_dead(h);
    struct reaper reaper;
    struct err err = {0};
    int64_t id;

    harness_clock_advance(h, DEAD_AFTER);
    worker_up(h, "live");
    start_reaper(&reaper, h);
    assert_int_equal(enter(h, &service, &id, &err), -ERR_JOB_ALREADY_RUNNING);
    end_reaper(&reaper);
    assert_int_equal(reaper.rounds, 0);
    assert_non_null(strstr(err.text, "dead is silent"));
    assert_int_equal(strtoll(err.detail, NULL, 10), held);
    assert_int_equal(outcome_of(h, held), OUTCOME_NONE);
}

static void
test_A27_where_no_worker_lives_the_caller_is_told_to_start_one(struct harness *h)
{
    struct service service = service_of(h);
    int64_t began_us = clock_mono_us(clock_real());
    struct err err = {0};
    int64_t id;

    held_by_dead(h);
    harness_clock_advance(h, DEAD_AFTER + 1);
    assert_int_equal(enter(h, &service, &id, &err), -ERR_JOB_ALREADY_RUNNING);
    assert_non_null(strstr(err.text, "no live worker is there"));
    assert_true(clock_mono_us(clock_real()) - began_us < 2 * US_PER_S);
}

/* A judge that does not trust the beats yet does nothing. */
static void
test_A27_nobody_closes_it_and_the_caller_is_told_so_after_two_seconds(struct harness *h)
{
    struct service service = service_of(h);
    int64_t held = held_by_dead(h);
    struct err err = {0};
    int64_t began_us;
    int64_t took_us;
    int64_t id;

    harness_clock_advance(h, DEAD_AFTER + 1);
    worker_up(h, "live");
    began_us = clock_mono_us(clock_real());
    assert_int_equal(enter(h, &service, &id, &err), -ERR_JOB_ALREADY_RUNNING);
    took_us = clock_mono_us(clock_real()) - began_us;
    assert_true(took_us >= 2 * US_PER_S && took_us < 4 * US_PER_S);
    assert_non_null(strstr(err.text, "a live worker closes the request"));
    assert_int_equal(outcome_of(h, held), OUTCOME_NONE);
}

/* A server has few threads, and others ask for other things meanwhile. */
static void
test_A27_of_the_callers_of_a_server_one_waits_and_the_others_are_told_at_once(
    struct harness *h)
{
    atomic_flag one_waits = ATOMIC_FLAG_INIT;
    struct asker callers[4] = {0};
    int waited = 0;

    held_by_dead(h);
    harness_clock_advance(h, DEAD_AFTER + 1);
    worker_up(h, "live");
    for (int i = 0; i < 4; i++) {
        callers[i].h = h;
        callers[i].one_waits = &one_waits;
    }
    in_parallel(4, call_main, callers, sizeof(*callers));
    for (int i = 0; i < 4; i++) {
        assert_int_equal(callers[i].r, -ERR_JOB_ALREADY_RUNNING);
        assert_non_null(strstr(callers[i].err.text, "a live worker closes the"));
        waited += callers[i].took_us >= 2 * US_PER_S;
    }
    assert_int_equal(waited, 1);
    assert_false(atomic_flag_test_and_set(&one_waits)); /* the next one may */
}

/* The command line owns the file: who stands in it as a worker is gone, if it beat a
 * moment ago. */
static void
test_A27_who_owns_an_SQLite_store_closes_it_itself(struct harness *h)
{
    struct service service = service_of(h);
    int64_t held = held_by_dead(h);
    struct err err = {0};
    char folder[64];
    int64_t id = 0;

    service.sole_owner = true;
    service.results = open_results(h, folder);
    assert_ok(enter(h, &service, &id, &err), &err);
    assert_true(id > held);
    assert_int_equal(outcome_of(h, held), OUTCOME_WORKER_LOST);
    assert_int_equal(rows_in(h, "worker"), 0);
    assert_consistent(h);
    close_results(&service, folder);
}

/* `pawl run` on a store without workers. */
static void
test_A27_alone_one_watches_for_a_beat_and_closes_it(struct harness *h)
{
    struct service service = service_of(h);
    struct config quick = config;
    int64_t held = held_by_dead(h);
    struct err err = {0};
    char folder[64];

    quick.worker.heartbeat_us = 100 * US_PER_MS;
    service.config = &quick;
    service.results = open_results(h, folder);
    harness_clock_advance(h, DEAD_AFTER);
    assert_int_equal(service_bury_alone(&service, held, "me", &err), 0); /* it lives */
    harness_clock_advance(h, 1);
    assert_int_equal(service_bury_alone(&service, held, "dead", &err),
                     0);  /* ourselves */
    worker_up(h, "live"); /* is the one to judge */
    assert_int_equal(service_bury_alone(&service, held, "me", &err), 0);
    assert_ok(worker_remove(h->store, "live", &err), &err);
    assert_int_equal(service_bury_alone(&service, held, "me", &err), 1);
    assert_int_equal(outcome_of(h, held), OUTCOME_WORKER_LOST);
    assert_int_equal(rows_in(h, "worker"), 0);
    assert_int_equal(service_bury_alone(&service, held, "me", &err), 0);
    assert_consistent(h);
    close_results(&service, folder);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(test_A27_of_20_callers_one_gets_in_after_one_closing),
        store_test(test_A27_a_living_worker_is_left_alone),
        store_test(test_A27_where_no_worker_lives_the_caller_is_told_to_start_one),
        store_test_pg(
            test_A27_nobody_closes_it_and_the_caller_is_told_so_after_two_seconds),
        store_test_sqlite(
            test_A27_of_the_callers_of_a_server_one_waits_and_the_others_are_told_at_once),
        store_test_sqlite(test_A27_who_owns_an_SQLite_store_closes_it_itself),
        store_test(test_A27_alone_one_watches_for_a_beat_and_closes_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

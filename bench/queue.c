/*
 * pawl's queue, through the functions that the api and the worker call, on a store of
 * its own. Prints one JSON line (bench.h).
 *
 *   bench_queue init URL                      make the store
 *   bench_queue submit URL THREADS SECONDS    one durable submit a call
 *   bench_queue bulk URL COUNT SECONDS        COUNT at once a call
 *   bench_queue work URL BATCH JOBS           claim and finish JOBS, BATCH at once
 *   bench_queue span URL BATCH JOBS           the same with jobs that came in bulk
 *   bench_queue pickup URL COUNT              submit -> claimed by another thread
 */
#include "bench/bench.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/strs.h"
#include "queue/claim.h"
#include "queue/finish.h"
#include "queue/job.h"
#include "queue/submit.h"
#include "store/store.h"
#include "store/wake.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define GIVEN   "{\"country\":\"KR\",\"min_population\":100000,\"format\":\"xlsx\"}"
#define WARM_UP 8
#define WORKER  "1@bench#00000000000000000000000000000000"

static const struct queue_job jobs[] = {
    {.name = "cities-export", .duplicates = QUEUE_DUPLICATES_ALLOW, .large_over = -1},
    {.name = "cities-import", .duplicates = QUEUE_DUPLICATES_ALLOW, .large_over = -1},
};

static struct submit_order
order_of(const struct queue_job *job, const char *lane)
{
    return (struct submit_order){
        .job = job,
        .given = GIVEN,
        .requester = "bench",
        .source = SOURCE_API,
        .restart = -1,
        .lane = lane,
    };
}

static struct store *
open_store(const char *url, int connections)
{
    struct store_options options = {
        .url = url, .migrate = true, .role = "bench", .connections = connections};
    struct store *store;
    struct err err = {0};

    bench_check(store_open(&options, &store, &err), &err);
    return store;
}

/* --- submit, bulk --- */

struct submitter {
    struct store *store;
    struct submit_order *orders;
    struct submit_answer *answers;
    size_t count;
};

/* alike: neighbours are one span; else each request has a row of its own. */
static struct submitter
submitter_new(struct store *store, size_t count, const char *lane, bool alike)
{
    struct submitter submitter = {
        .store = store,
        .orders = xcalloc(count, sizeof(struct submit_order)),
        .answers = xcalloc(count, sizeof(struct submit_answer)),
        .count = count,
    };

    for (size_t i = 0; i < count; i++)
        submitter.orders[i] = order_of(&jobs[alike ? 0 : i % 2], lane);
    return submitter;
}

static void
submitter_release(struct submitter *submitter)
{
    free(submitter->orders);
    free(submitter->answers);
}

struct crowd {
    struct store *store;
    size_t count;
};

static size_t
submit_once(void *state)
{
    struct submitter *submitter = (struct submitter *)state;
    struct err err = {0};

    bench_check(queue_submit_many(submitter->store, submitter->orders, submitter->count,
                                  submitter->answers, NULL, &err),
                &err);
    return submitter->count;
}

static void *
submit_begin(void *arg, int thread)
{
    struct crowd *crowd = (struct crowd *)arg;
    struct submitter *submitter = xcalloc(1, sizeof(*submitter));

    *submitter = submitter_new(crowd->store, crowd->count, "bench", true);
    for (int i = 0; i < WARM_UP; i++) /* connections and plans are made on first use */
        submit_once(submitter);
    return submitter;
}

static void
submit_end(void *state)
{
    submitter_release((struct submitter *)state);
    free(state);
}

static void
submit(const char *url, int threads, size_t count, double seconds)
{
    scoped(store_closep) struct store *store = open_store(url, threads + 1);
    struct crowd crowd = {store, count};

    bench_load_run(&(struct bench_load){
        .threads = threads,
        .seconds = seconds,
        .arg = &crowd,
        .begin = submit_begin,
        .once = submit_once,
        .end = submit_end,
    });
}

/* --- claim and finish --- */

struct hand {
    struct store *store;
    struct claim_cursor cursor;
    const char *names[array_len(jobs)];
    size_t batch;
    struct claim *claims;
    struct finish_order *orders;
    bool *lost;
};

static void *
work_begin(void *arg, int thread)
{
    struct hand *hand = (struct hand *)arg;

    for (size_t i = 0; i < array_len(jobs); i++)
        hand->names[i] = jobs[i].name;
    hand->claims = xcalloc(hand->batch, sizeof(*hand->claims));
    hand->orders = xcalloc(hand->batch, sizeof(*hand->orders));
    hand->lost = xcalloc(hand->batch, sizeof(*hand->lost));
    return hand;
}

static size_t
work_claim(struct hand *hand, struct arena *arena)
{
    struct claim_want want = {
        .worker = WORKER,
        .lane = "work",
        .jobs = hand->names,
        .n_jobs = array_len(jobs),
        .max = (int)hand->batch,
        .cursor = &hand->cursor,
    };
    struct err err = {0};
    size_t count;

    bench_check(queue_claim(hand->store, &want, arena, hand->claims, &count, &err),
                &err);
    return count;
}

static size_t
work_once(void *state)
{
    struct hand *hand = (struct hand *)state;
    scoped(arena_release) struct arena arena = {0};
    size_t count = work_claim(hand, &arena);
    struct err err = {0};
    size_t n = 0;

    for (size_t i = 0; i < count; i++)
        for (int64_t id = hand->claims[i].first_id; id <= hand->claims[i].last_id; id++)
            hand->orders[n++] = (struct finish_order){.request_id = id,
                                                      .token = hand->claims[i].token,
                                                      .outcome = OUTCOME_COMPLETED};
    if (n == 0)
        return 0;
    bench_check(queue_finish_many(hand->store, hand->orders, n, hand->lost, &err),
                &err);
    for (size_t i = 0; i < n; i++)
        if (hand->lost[i])
            bench_die("request %lld was lost", (long long)hand->orders[i].request_id);
    return n;
}

static void
work_end(void *state)
{
    struct hand *hand = (struct hand *)state;

    free(hand->claims);
    free(hand->orders);
    free(hand->lost);
}

static void
fill(struct store *store, size_t count, bool alike)
{
    while (count > 0) {
        size_t some = count < QUEUE_SUBMIT_MAX ? count : QUEUE_SUBMIT_MAX;
        struct submitter submitter = submitter_new(store, some, "work", alike);

        submit_once(&submitter);
        submitter_release(&submitter);
        count -= some;
    }
}

static void
work(const char *url, size_t batch, size_t count, bool alike)
{
    scoped(store_closep) struct store *store = open_store(url, 2);
    struct hand hand = {.store = store, .batch = batch};

    fill(store, count, alike);
    bench_load_run(&(struct bench_load){
        .threads = 1,
        .arg = &hand,
        .begin = work_begin,
        .once = work_once,
        .end = work_end,
    });
}

/* --- pick-up in one process --- */

struct pickup {
    struct hand hand;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool woken;
    bool stop;
    double claimed_s; /* 0 = not yet */
};

static void
pickup_wake(void *arg, unsigned mask)
{
    struct pickup *pickup = (struct pickup *)arg;

    pthread_mutex_lock(&pickup->lock);
    pickup->woken = true;
    pthread_cond_broadcast(&pickup->changed);
    pthread_mutex_unlock(&pickup->lock);
}

static void *
pickup_worker(void *arg)
{
    struct pickup *pickup = (struct pickup *)arg;

    for (;;) {
        scoped(arena_release) struct arena arena = {0};
        bool stop;

        pthread_mutex_lock(&pickup->lock);
        while (!pickup->woken && !pickup->stop)
            pthread_cond_wait(&pickup->changed, &pickup->lock);
        pickup->woken = false;
        stop = pickup->stop;
        pthread_mutex_unlock(&pickup->lock);
        if (stop)
            return NULL;
        pickup->hand.cursor = (struct claim_cursor){0};
        if (work_claim(&pickup->hand, &arena) == 0)
            continue;
        pthread_mutex_lock(&pickup->lock);
        pickup->claimed_s = bench_now_s();
        pthread_cond_broadcast(&pickup->changed);
        pthread_mutex_unlock(&pickup->lock);
    }
}

/* One at a time: an idle pool. */
static double
pickup_one(struct pickup *pickup)
{
    struct submit_order order = order_of(&jobs[0], "work");
    double began_s = bench_now_s();
    struct submit_answer answer;
    struct err err = {0};
    double took_s;

    bench_check(queue_submit(pickup->hand.store, &order, &answer, &err), &err);
    pthread_mutex_lock(&pickup->lock);
    while (pickup->claimed_s <= 0)
        pthread_cond_wait(&pickup->changed, &pickup->lock);
    took_s = pickup->claimed_s - began_s;
    pickup->claimed_s = 0;
    pthread_mutex_unlock(&pickup->lock);
    return took_s;
}

static void
pickup_run(const char *url, size_t count)
{
    scoped(store_closep) struct store *store = open_store(url, 4);
    struct pickup pickup = {.hand = {.store = store, .batch = 1}};
    struct bench_times times = {0};
    double began_s = bench_now_s();
    pthread_t thread;
    int subscription;

    pthread_mutex_init(&pickup.lock, NULL);
    pthread_cond_init(&pickup.changed, NULL);
    work_begin(&pickup.hand, 0);
    subscription = store_subscribe(store, WAKE_READY, pickup_wake, &pickup);
    if (pthread_create(&thread, NULL, pickup_worker, &pickup) != 0)
        bench_die("no thread");
    for (size_t i = 0; i < count; i++)
        bench_times_add(&times, pickup_one(&pickup));
    pthread_mutex_lock(&pickup.lock);
    pickup.stop = true;
    pthread_cond_broadcast(&pickup.changed);
    pthread_mutex_unlock(&pickup.lock);
    pthread_join(thread, NULL);
    store_unsubscribe(store, subscription);
    work_end(&pickup.hand);
    bench_print("jobs", count, bench_now_s() - began_s, &times);
    bench_times_release(&times);
}

int
main(int argc, char **argv)
{
    const char *mode = argc > 2 ? argv[1] : "";
    long first = argc > 3 ? bench_number(argv[3], "the first number") : 0;
    double seconds = argc > 4 ? strtod(argv[4], NULL) : 0;

    if (str_eq(mode, "init") && argc == 3)
        store_close(open_store(argv[2], 1));
    else if (str_eq(mode, "submit") && argc == 5)
        submit(argv[2], (int)first, 1, seconds);
    else if (str_eq(mode, "bulk") && argc == 5)
        submit(argv[2], 1, (size_t)first, seconds);
    else if (str_eq(mode, "work") && argc == 5)
        work(argv[2], (size_t)first, (size_t)bench_number(argv[4], "JOBS"), false);
    else if (str_eq(mode, "span") && argc == 5)
        work(argv[2], (size_t)first, (size_t)bench_number(argv[4], "JOBS"), true);
    else if (str_eq(mode, "pickup") && argc == 4)
        pickup_run(argv[2], (size_t)first);
    else
        bench_die("the head of bench/queue.c says how to call it");
    return 0;
}

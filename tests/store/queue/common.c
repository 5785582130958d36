/* See common.h. */
#include "tests/store/queue/common.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct queue_job
job_of(const char *name, enum queue_duplicates duplicates)
{
    return (struct queue_job){
        .name = name,
        .duplicates = duplicates,
        .lane = "normal",
        .large_over = -1,
        .reuse_window_us = 10 * US_PER_MINUTE,
    };
}

static const char *
text_or(const char *text, const char *otherwise)
{
    return text ? text : otherwise;
}

/* Texts and jobs that live as long as the process. */
static struct arena lasting;
static struct queue_job *lasting_jobs[512];
static size_t n_lasting_jobs;

static void
free_lasting(void)
{
    for (size_t i = 0; i < n_lasting_jobs; i++)
        queue_job_free(lasting_jobs[i]);
    arena_release(&lasting);
}

const struct queue_job *
define_job(struct harness *h, const struct job_text *text)
{
    struct queue_job *job = NULL;
    struct err err = {0};
    const char *definition = arena_printf(
        &lasting,
        "{\"description\":\"\",\"duplicates\":\"%s\",\"expire_after_us\":0,"
        "\"kind\":\"task\",\"lane\":\"normal\",\"makes_result\":false,\"name\":\"%s\","
        "\"needs_keys\":[],\"next\":%s,\"param_order\":%s,\"params\":%s,"
        "\"priority\":0,\"retry\":{\"attempts\":%d,\"backoff_us\":%lld,"
        "\"drained\":%s,\"max_backoff_us\":600000000,\"on\":[%s]},"
        "\"reuse_window_us\":600000000,\"timeout_us\":0,\"title\":\"%s\"%s%s}",
        text_or(text->duplicates, "allow"), text->name, text_or(text->next, "[]"),
        text_or(text->param_order, "[]"), text_or(text->params, "{}"),
        text->attempts ? text->attempts : 1, (long long)text->backoff_us,
        text->drained ? "true" : "false", text_or(text->on, ""), text->name,
        text->webhook ? ",\"webhook\":" : "", text_or(text->webhook, ""));

    assert_ok(queue_job_parse(definition, &job, &err), &err);
    if (n_lasting_jobs == 0)
        assert_int_equal(atexit(free_lasting), 0);
    assert_true(n_lasting_jobs < array_len(lasting_jobs));
    lasting_jobs[n_lasting_jobs++] = job;
    harness_sql(h,
                "DELETE FROM pawl.job_definition WHERE name = '%s';"
                "INSERT INTO pawl.job_definition (name, version, hash, definition, "
                "published_at) VALUES ('%s', 1, 'x', '%s', 1)",
                text->name, text->name, definition);
    return job;
}

struct submit_order
order_of(const struct queue_job *job)
{
    return (struct submit_order){
        .job = job,
        .given = "{}",
        .canonical = "{}",
        .requester = "tester",
        .source = SOURCE_API,
        .lane = "normal",
        .restart = -1,
    };
}

int
try_submit(struct harness *h, const struct submit_order *order,
           struct submit_answer *ret_answer, struct err *err)
{
    err_clear(err);
    return queue_submit(h->store, order, ret_answer, err);
}

int
try_after(struct harness *h, const int64_t *after, size_t count, int64_t *ret_id,
          struct err *err)
{
    struct queue_job job = job_of("other", QUEUE_DUPLICATES_ALLOW);
    struct submit_order order = order_of(&job);
    struct submit_answer answer = {0};
    int r;

    order.after = after;
    order.n_after = count;
    r = try_submit(h, &order, &answer, err);
    *ret_id = answer.request_id;
    return r;
}

int64_t
submit_order(struct harness *h, const struct submit_order *order)
{
    struct submit_answer answer;
    struct err err = {0};

    assert_ok(queue_submit(h->store, order, &answer, &err), &err);
    return answer.request_id;
}

int64_t
submit_one(struct harness *h, const char *name)
{
    struct queue_job job = job_of(name, QUEUE_DUPLICATES_ALLOW);
    struct submit_order order = order_of(&job);

    return submit_order(h, &order);
}

int64_t
submit_span(struct harness *h, const char *name, size_t count)
{
    scoped(arena_release) struct arena arena = {0};
    struct queue_job job = job_of(name, QUEUE_DUPLICATES_ALLOW);
    struct submit_order *orders = arena_array(&arena, struct submit_order, count);
    struct submit_answer *answers = arena_array(&arena, struct submit_answer, count);
    struct err err = {0};

    for (size_t i = 0; i < count; i++)
        orders[i] = order_of(&job);
    assert_ok(queue_submit_many(h->store, orders, count, answers, NULL, &err), &err);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(answers[i].request_id, answers[0].request_id + (int64_t)i);
    return answers[0].request_id;
}

int64_t
claim_some(struct harness *h, const char *worker, int max, struct claim *claims,
           size_t *ret_count)
{
    static const char *const jobs[] = {"task", "other", "third"};
    /* Texts of the claims live as long as the test. */
    static struct arena arena;
    struct claim_want want = {.worker = worker,
                              .lane = "normal",
                              .jobs = jobs,
                              .n_jobs = array_len(jobs),
                              .max = max};
    struct err err = {0};
    int64_t requests = 0;

    assert_ok(queue_claim(h->store, &want, &arena, claims, ret_count, &err), &err);
    for (size_t i = 0; i < *ret_count; i++)
        requests += claims[i].last_id - claims[i].first_id + 1;
    return requests;
}

struct claim
claim_one(struct harness *h, const char *worker)
{
    struct claim claim;
    size_t count;

    assert_int_equal(claim_some(h, worker, 1, &claim, &count), 1);
    return claim;
}

struct finish_order
finish_of(int64_t request_id, const struct claim *claim, enum request_outcome outcome)
{
    return (struct finish_order){
        .request_id = request_id, .token = claim->token, .outcome = outcome};
}

void
finish_ok(struct harness *h, int64_t request_id, const struct claim *claim,
          enum request_outcome outcome)
{
    struct finish_order order = finish_of(request_id, claim, outcome);
    struct err err = {0};
    int r = queue_finish(h->store, &order, &err);

    assert_ok(r, &err);
    assert_int_equal(r, QUEUE_FINISHED);
}

struct request
get(struct harness *h, struct arena *arena, int64_t request_id)
{
    struct request request;
    struct err err = {0};

    assert_ok(queue_get(h->store, request_id, arena, &request, &err), &err);
    return request;
}

int64_t
rows_in(struct harness *h, const char *table)
{
    return harness_i64(h, "SELECT count(*) FROM pawl.%s", table);
}

void
assert_consistent(struct harness *h)
{
    int64_t places =
        harness_i64(h, "SELECT count(*) FROM pawl.request r WHERE 1 <> "
                       "(SELECT count(*) FROM pawl.later l WHERE r.id BETWEEN "
                       "l.first_id AND l.last_id)"
                       "+ (SELECT count(*) FROM pawl.ready y WHERE r.id BETWEEN "
                       "y.first_id AND y.last_id)"
                       "+ (SELECT count(*) FROM pawl.claim c WHERE r.id BETWEEN "
                       "c.first_id AND c.last_id)"
                       "+ (SELECT count(*) FROM pawl.outcome o WHERE o.id = r.id)");
    int64_t strays =
        harness_i64(h, "SELECT (SELECT count(*) FROM pawl.outcome o WHERE NOT EXISTS"
                       " (SELECT 1 FROM pawl.request r WHERE r.id = o.id))"
                       "+ (SELECT count(*) FROM pawl.active a WHERE EXISTS"
                       " (SELECT 1 FROM pawl.outcome o WHERE o.id = a.request_id))"
                       "+ (SELECT count(*) FROM pawl.flag f WHERE EXISTS"
                       " (SELECT 1 FROM pawl.outcome o WHERE o.id = f.request_id))"
                       "+ (SELECT count(*) FROM pawl.progress p WHERE EXISTS"
                       " (SELECT 1 FROM pawl.outcome o WHERE o.id = p.request_id))");

    if (places)
        fail_msg("%lld requests are not in exactly one place", (long long)places);
    if (strays)
        fail_msg("%lld rows were left behind by final requests", (long long)strays);
}

struct starter {
    pthread_barrier_t *barrier;
    void *(*fn)(void *);
    void *arg;
    pthread_t thread;
};

static void *
start(void *arg)
{
    struct starter *starter = (struct starter *)arg;

    pthread_barrier_wait(starter->barrier);
    return starter->fn(starter->arg);
}

void
in_parallel(size_t count, void *(*fn)(void *), void *args, size_t arg_size)
{
    struct starter *starters = xcalloc(count, sizeof(*starters));
    pthread_barrier_t barrier;

    pthread_barrier_init(&barrier, NULL, (unsigned)count);
    for (size_t i = 0; i < count; i++) {
        starters[i] = (struct starter){
            .barrier = &barrier, .fn = fn, .arg = (char *)args + i * arg_size};
        assert_int_equal(pthread_create(&starters[i].thread, NULL, start, &starters[i]),
                         0);
    }
    for (size_t i = 0; i < count; i++)
        pthread_join(starters[i].thread, NULL);
    pthread_barrier_destroy(&barrier);
    free(starters);
}

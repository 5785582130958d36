/*
 * B9: thousands of random operations beside a model in memory. After each one the
 * store must say what the model says; every change seen must be a row of the table in
 * queue/lifecycle.c, and a final request never changes.
 */
#include "tests/store/queue/common.h"

#include "base/rand.h"
#include "queue/lifecycle.h"
#include "queue/lost.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUESTS 300
#define WORKERS  3

struct known {
    int64_t id;
    enum request_status status;
    enum request_outcome outcome;
    bool later;
    bool flagged;
    int worker;
    struct claim_token token;
    struct claim_token stale; /* of a claim that is over */
};

struct model {
    struct harness *h;
    struct known known[REQUESTS];
    size_t count;
    uint64_t seed;
    int64_t operations;
    int64_t moves;
};

/* xorshift: the seed of a failed run is printed and can be given again. */
static uint64_t
next(struct model *m, uint64_t below)
{
    m->seed ^= m->seed << 13;
    m->seed ^= m->seed >> 7;
    m->seed ^= m->seed << 17;
    return m->seed % below;
}

static void
set(struct model *m, struct known *known, enum request_status to,
    enum request_outcome outcome)
{
    size_t count;
    const struct request_move *moves = request_moves(&count);
    bool legal = false;

    for (size_t i = 0; i < count; i++)
        legal |= !moves[i].entry && moves[i].from == known->status &&
                 moves[i].to == to && moves[i].outcome == outcome;
    if (!legal)
        fail_msg("%s to %s is no row of the table", request_status_name(known->status),
                 request_status_name(to));
    known->status = to;
    known->outcome = outcome;
    m->moves++;
}

static struct known *
find(struct model *m, int64_t id)
{
    for (size_t i = 0; i < m->count; i++)
        if (m->known[i].id == id)
            return &m->known[i];
    fail_msg("the store speaks of request %lld", (long long)id);
    return NULL;
}

static void
op_submit(struct model *m)
{
    struct queue_job job = job_of("task", QUEUE_DUPLICATES_ALLOW);
    struct submit_order orders[5];
    struct submit_answer answers[5];
    size_t n = 1 + next(m, 5);
    bool later = next(m, 4) == 0;
    struct err err = {0};

    if (m->count + n > REQUESTS)
        return;
    for (size_t i = 0; i < n; i++) {
        orders[i] = order_of(&job);
        orders[i].priority = (int)next(m, 2);
        if (later)
            orders[i].not_before_us =
                __atomic_load_n(&m->h->now_us, __ATOMIC_SEQ_CST) + US_PER_S;
        else if (next(m, 5) == 0)
            orders[i].expires_at_us =
                __atomic_load_n(&m->h->now_us, __ATOMIC_SEQ_CST) + 5 * US_PER_S;
    }
    assert_ok(queue_submit_many(m->h->store, orders, n, answers, NULL, &err), &err);
    for (size_t i = 0; i < n; i++)
        m->known[m->count++] =
            (struct known){.id = answers[i].request_id, .later = later};
}

static void
op_claim(struct model *m)
{
    int worker = (int)next(m, WORKERS);
    int max = 1 + (int)next(m, 4);
    struct claim claims[4];
    char name[8];
    size_t count;

    snprintf(name, sizeof(name), "w%d", worker);
    assert_true(claim_some(m->h, name, max, claims, &count) <= max);
    for (size_t i = 0; i < count; i++) {
        for (int64_t id = claims[i].first_id; id <= claims[i].last_id; id++) {
            struct known *known = find(m, id);

            assert_false(known->later);
            set(m, known, REQUEST_RUNNING, OUTCOME_NONE);
            known->worker = worker;
            known->token = claims[i].token;
        }
    }
}

static void
op_finish(struct model *m, struct known *known)
{
    static const enum request_outcome outcomes[] = {
        OUTCOME_COMPLETED, OUTCOME_STOPPED, OUTCOME_ERROR,
        OUTCOME_CANCELLED, OUTCOME_TIMEOUT, OUTCOME_REFUSED};
    struct finish_order order = {
        .request_id = known->id,
        .token = next(m, 4) ? known->token : known->stale,
        .outcome = outcomes[next(m, array_len(outcomes))],
    };
    bool ours =
        known->status == REQUEST_RUNNING && order.token.number == known->token.number;
    bool again = known->status != REQUEST_RUNNING && order.token.number &&
                 order.token.number == known->token.number &&
                 order.outcome == known->outcome;
    struct err err = {0};
    int r = queue_finish(m->h->store, &order, &err);

    assert_ok(r, &err);
    assert_int_equal(r, ours || again ? QUEUE_FINISHED : QUEUE_CLAIM_LOST);
    if (ours)
        set(m, known, request_status_of(order.outcome), order.outcome);
}

static void
op_cancel(struct model *m, struct known *known)
{
    struct err err = {0};
    int r = queue_cancel(m->h->store, known->id, "model", &err);

    switch (known->status) {
    case REQUEST_QUEUED:
        assert_int_equal(r, QUEUE_CANCELLED);
        set(m, known, REQUEST_FAILED, OUTCOME_CANCELLED);
        break;
    case REQUEST_RUNNING:
        assert_int_equal(r, QUEUE_CANCEL_REQUESTED);
        known->flagged = true;
        break;
    case REQUEST_DONE:
    case REQUEST_FAILED:
    case REQUEST_STATUS_COUNT:
        assert_int_equal(r, -ERR_ALREADY_FINAL);
        break;
    }
}

static void
op_progress(struct model *m, struct known *known)
{
    struct queue_flags flags;
    struct err err = {0};
    int r =
        queue_progress(m->h->store, known->id, known->token, 1, 2, NULL, &flags, &err);

    assert_ok(r, &err);
    assert_int_equal(r, known->status == REQUEST_RUNNING ? QUEUE_PROGRESS_OK
                                                         : QUEUE_PROGRESS_LOST);
    if (r == QUEUE_PROGRESS_OK)
        assert_int_equal(flags.cancel, known->flagged);
}

static void
op_lose(struct model *m)
{
    scoped(arena_release) struct arena arena = {0};
    int worker = (int)next(m, WORKERS);
    struct lost_request *lost;
    struct err err = {0};
    size_t count, held = 0;
    char name[8];

    for (size_t i = 0; i < m->count; i++)
        held += m->known[i].status == REQUEST_RUNNING && m->known[i].worker == worker;
    snprintf(name, sizeof(name), "w%d", worker);
    assert_ok(queue_close_lost(m->h->store, name, "gone", NULL, NULL, &arena, &lost,
                               &count, &err),
              &err);
    assert_int_equal(count, held);
    for (size_t i = 0; i < count; i++) {
        struct known *known = find(m, lost[i].request_id);

        assert_int_equal(lost[i].outcome,
                         known->flagged ? OUTCOME_CANCELLED : OUTCOME_WORKER_LOST);
        assert_int_equal(lost[i].token.number, known->token.number);
        set(m, known, REQUEST_FAILED, lost[i].outcome);
        known->stale = known->token;
    }
}

static void
op_time(struct model *m)
{
    scoped(arena_release) struct arena arena = {0};
    int64_t moved, expired, n = 0, n_later = 0;
    struct err err = {0};

    harness_clock_advance(m->h, (int64_t)next(m, 2 * US_PER_S));
    assert_ok(queue_expire(m->h->store, &expired, &err), &err);
    assert_ok(queue_promote(m->h->store, &moved, &err), &err);
    for (size_t i = 0; i < m->count; i++) {
        struct known *known = &m->known[i];
        struct request request;

        if (known->status != REQUEST_QUEUED)
            continue;
        request = get(m->h, &arena, known->id);
        if (request.outcome == OUTCOME_EXPIRED) {
            set(m, known, REQUEST_FAILED, OUTCOME_EXPIRED);
            n++;
        } else if (known->later && request.place == PLACE_READY) {
            known->later = false;
            n_later++;
        }
    }
    assert_int_equal(n, expired);
    assert_int_equal(n_later, moved);
}

static void
compare(struct model *m)
{
    scoped(arena_release) struct arena arena = {0};

    for (size_t i = 0; i < m->count; i++) {
        struct request request = get(m->h, &arena, m->known[i].id);

        assert_int_equal(request.status, m->known[i].status);
        assert_int_equal(request.outcome, m->known[i].outcome);
        if (request.status == REQUEST_RUNNING)
            assert_int_equal(request.token.number, m->known[i].token.number);
    }
    assert_consistent(m->h);
}

static void
step(struct model *m)
{
    struct known *known = m->count ? &m->known[next(m, m->count)] : NULL;
    uint64_t op = next(m, 100);

    m->operations++;
    if (op < 10 || !known)
        op_submit(m);
    else if (op < 30)
        op_claim(m);
    else if (op < 65)
        op_finish(m, known);
    else if (op < 75)
        op_cancel(m, known);
    else if (op < 92)
        op_progress(m, known);
    else if (op < 94)
        op_lose(m);
    else if (op < 96)
        op_time(m);
}

/* Rounds of fresh requests, so that all states stay in play. */
static void
run(struct harness *h, int64_t operations)
{
    struct model *m = xcalloc(1, sizeof(*m));
    const char *given = getenv("PAWL_TEST_SEED");

    m->h = h;
    m->seed = given ? strtoull(given, NULL, 10) : rand_u64() | 1;
    print_message("PAWL_TEST_SEED=%llu\n", (unsigned long long)m->seed);
    while (m->operations < operations) {
        for (int i = 0; i < 1000; i++)
            step(m);
        compare(m);
        harness_sql(h, "DELETE FROM pawl.outcome; DELETE FROM pawl.flag;"
                       "DELETE FROM pawl.claim; DELETE FROM pawl.ready;"
                       "DELETE FROM pawl.later; DELETE FROM pawl.progress;"
                       "DELETE FROM pawl.request");
        m->count = 0;
    }
    assert_true(m->moves > operations / 20);
    free(m);
}

static void
test_B9_random_operations_make_only_moves_of_the_table(struct harness *h)
{
    /* 10,000 everywhere in the full suite; a commit of PostgreSQL costs a disk's time.
     */
    run(h, h->kind == HARNESS_SQLITE || getenv("PAWL_FULL") ? 10000 : 1000);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(test_B9_random_operations_make_only_moves_of_the_table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

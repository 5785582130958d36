/* `after`: a thousand random steps of the store and of a model of it. */
#include "tests/store/queue/common.h"

#include "queue/lost.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEPS 1000 /* in the full suite */
#define QUICK 400
#define MOST  4000

static int64_t
newest(struct harness *h)
{
    return harness_i64(h, "SELECT max(id) FROM pawl.request");
}

enum where { M_READY, M_WAITS, M_RUNNING, M_FINAL };

struct model_request {
    int64_t id;
    enum where where;
    enum request_outcome outcome;
    const char *job;
    bool chained; /* its next is third */
    int attempt;
    bool cancel;
    size_t after[2]; /* indices still waited for */
    size_t n_after;
    size_t next_try; /* 0 = none */
    struct claim claim;
};

struct model {
    struct harness *h;
    struct model_request list[MOST];
    size_t count; /* from 1 */
    int64_t seen; /* the newest id */
    uint32_t random;
};

static uint32_t
pick(struct model *model, uint32_t below)
{
    model->random = model->random * 1664525u + 1013904223u;
    return (model->random >> 8) % below;
}

/* A new request that the store must have made just now. */
static size_t
model_add(struct model *model, const char *job, int64_t id)
{
    struct model_request *one;
    size_t at = ++model->count;

    assert_true(at < MOST);
    if (!id)
        id = harness_i64(model->h, "SELECT min(id) FROM pawl.request WHERE id > %lld",
                         (long long)model->seen);
    assert_true(id > model->seen);
    model->seen = id;
    one = &model->list[at];
    *one = (struct model_request){.id = id, .job = job, .attempt = 1};
    return at;
}

static size_t
model_third_active(const struct model *model)
{
    for (size_t i = 1; i <= model->count; i++)
        if (strcmp(model->list[i].job, "third") == 0 && model->list[i].where != M_FINAL)
            return i;
    return 0;
}

static size_t
model_last_try(const struct model *model, size_t at)
{
    while (model->list[at].next_try)
        at = model->list[at].next_try;
    return at;
}

static void
model_close(struct model *model, size_t at, enum request_outcome outcome)
{
    struct model_request *one = &model->list[at];
    bool done = outcome == OUTCOME_COMPLETED && !one->cancel;
    bool again = !one->cancel && one->where == M_RUNNING && one->attempt < 2 &&
                 (outcome == OUTCOME_ERROR || outcome == OUTCOME_WORKER_LOST);

    one->where = M_FINAL;
    one->outcome = outcome;
    if (again) {
        size_t next = model_add(model, one->job, 0);

        model->list[next].attempt = one->attempt + 1;
        model->list[next].chained = one->chained;
        one->next_try = next;
    }
    if (done && one->chained && !model_third_active(model))
        model_add(model, "third", 0);
    for (size_t i = 1; i <= model->count; i++) {
        struct model_request *waiter = &model->list[i];
        size_t left = 0;
        bool refused = false;

        if (waiter->where != M_WAITS)
            continue;
        for (size_t k = 0; k < waiter->n_after; k++) {
            if (waiter->after[k] != at)
                waiter->after[left++] = waiter->after[k];
            else if (one->next_try)
                waiter->after[left++] = one->next_try;
            else if (!done)
                refused = true;
        }
        waiter->n_after = left;
        if (refused)
            model_close(model, i, OUTCOME_REFUSED);
        else if (left == 0)
            waiter->where = M_READY;
    }
}

static size_t
pick_running(struct model *model)
{
    size_t start = model->count ? pick(model, (uint32_t)model->count) : 0;

    for (size_t i = 0; i < model->count; i++) {
        size_t at = 1 + (start + i) % model->count;

        if (model->list[at].where == M_RUNNING)
            return at;
    }
    return 0;
}

static void
step_submit(struct model *model)
{
    struct queue_job job = job_of("task", QUEUE_DUPLICATES_ALLOW);
    struct submit_order order = order_of(&job);
    size_t at;

    if (pick(model, 2))
        order.next = "[\"third\"]";
    at = model_add(model, "task", submit_order(model->h, &order));
    model->list[at].chained = order.next != NULL;
}

static void
step_submit_third(struct model *model)
{
    struct queue_job job = job_of("third", QUEUE_DUPLICATES_REFUSE);
    struct submit_order order = order_of(&job);
    struct submit_answer answer;
    struct err err = {0};
    size_t active = model_third_active(model);
    int r;

    order.source = SOURCE_SCHEDULE; /* never answered with a next try */
    r = try_submit(model->h, &order, &answer, &err);
    if (active) {
        assert_int_equal(r, -ERR_JOB_ALREADY_RUNNING);
        assert_int_equal(strtoll(err.detail, NULL, 10), model->list[active].id);
    } else {
        assert_ok(r, &err);
        model_add(model, "third", answer.request_id);
    }
}

static void
step_submit_after(struct model *model)
{
    size_t range = model->count < 30 ? model->count : 30;
    size_t open[2];
    size_t n_open = 0;
    int64_t after[2];
    bool refused = false;
    struct err err = {0};
    int64_t id;
    int r;

    if (range == 0)
        return;
    for (int k = 0; k < 2; k++) {
        size_t at = model->count - pick(model, (uint32_t)range);
        const struct model_request *last = &model->list[model_last_try(model, at)];

        after[k] = model->list[at].id;
        if (last->where != M_FINAL) {
            open[n_open] = model_last_try(model, at);
            n_open += n_open == 0 || open[0] != open[1];
        } else {
            refused |= last->outcome != OUTCOME_COMPLETED;
        }
    }
    r = try_after(model->h, after, 2, &id, &err);
    if (refused) {
        assert_int_equal(r, -ERR_INVALID);
        return;
    }
    assert_ok(r, &err);
    r = (int)model_add(model, "other", id);
    model->list[r].where = n_open ? M_WAITS : M_READY;
    model->list[r].n_after = n_open;
    memcpy(model->list[r].after, open, sizeof(open));
}

static void
step_claim(struct model *model)
{
    struct claim claim;
    size_t count;
    char worker[40];

    snprintf(worker, sizeof(worker), "w%u", pick(model, 1000000));
    claim_some(model->h, worker, 1, &claim, &count);
    for (size_t i = 1; i <= model->count; i++) {
        if (count == 0) {
            assert_int_not_equal(model->list[i].where, M_READY);
        } else if (model->list[i].id == claim.first_id) {
            assert_int_equal(model->list[i].where, M_READY);
            model->list[i].where = M_RUNNING;
            model->list[i].claim = claim;
            return;
        }
    }
    assert_int_equal(count, 0);
}

static void
step_finish(struct model *model)
{
    static const enum request_outcome outcomes[] = {
        OUTCOME_COMPLETED, OUTCOME_COMPLETED, OUTCOME_COMPLETED, OUTCOME_ERROR,
        OUTCOME_STOPPED};
    enum request_outcome outcome = outcomes[pick(model, array_len(outcomes))];
    size_t at = pick_running(model);

    if (!at)
        return;
    finish_ok(model->h, model->list[at].id, &model->list[at].claim, outcome);
    model_close(model, at, outcome);
}

static void
step_lose(struct model *model)
{
    scoped(arena_release) struct arena arena = {0};
    scoped(xfree_ptr) char *worker = NULL;
    struct lost_request *list = NULL;
    struct err err = {0};
    size_t at = pick_running(model);
    size_t count;

    if (!at)
        return;
    worker =
        harness_text(model->h, "SELECT worker FROM pawl.claim WHERE first_id = %lld",
                     (long long)model->list[at].id);
    assert_ok(queue_close_lost(model->h->store, worker, "lost", NULL, NULL, &arena,
                               &list, &count, &err),
              &err);
    assert_int_equal(count, 1);
    model_close(model, at,
                model->list[at].cancel ? OUTCOME_CANCELLED : OUTCOME_WORKER_LOST);
}

static void
step_cancel(struct model *model)
{
    struct err err = {0};
    size_t asked = model->count ? 1 + pick(model, (uint32_t)model->count) : 0;
    size_t at;
    int r;

    if (!asked)
        return;
    at = model_last_try(model, asked);
    r = queue_cancel(model->h->store, model->list[asked].id, "op", &err);
    if (model->list[at].where == M_FINAL) {
        assert_int_equal(r, -ERR_ALREADY_FINAL);
    } else if (model->list[at].where == M_RUNNING) {
        assert_int_equal(r, QUEUE_CANCEL_REQUESTED);
        model->list[at].cancel = true;
    } else {
        assert_int_equal(r, QUEUE_CANCELLED);
        model_close(model, at, OUTCOME_CANCELLED);
    }
}

static void
compare(struct model *model)
{
    static const enum request_place places[] = {PLACE_READY, PLACE_LATER, PLACE_CLAIM,
                                                PLACE_OUTCOME};

    assert_int_equal(rows_in(model->h, "request"), model->count);
    for (size_t i = 1; i <= model->count; i++) {
        scoped(arena_release) struct arena arena = {0};
        const struct model_request *one = &model->list[i];
        struct request request = get(model->h, &arena, one->id);

        assert_int_equal(request.place, places[one->where]);
        assert_int_equal(request.outcome, one->outcome);
        assert_int_equal(request.attempt, one->attempt);
        assert_string_equal(request.job, one->job);
    }
    assert_int_equal(rows_in(model->h, "active"), model_third_active(model) != 0);
    assert_consistent(model->h);
}

static void
test_I7_I12_I21_a_thousand_random_steps_agree_with_a_model(struct harness *h)
{
    static void (*const steps[])(struct model *) = {
        step_submit, step_submit_third, step_submit_after, step_claim, step_claim,
        step_claim,  step_finish,       step_finish,       step_lose,  step_cancel};
    scoped(xfree_ptr) struct model *model = xcalloc(1, sizeof(*model));

    model->h = h;
    model->random = 20261101;
    define_job(h, &(struct job_text){.name = "task",
                                     .attempts = 2,
                                     .on = "\"ERROR\",\"WORKER_LOST\""});
    define_job(h, &(struct job_text){.name = "other",
                                     .attempts = 2,
                                     .on = "\"ERROR\",\"WORKER_LOST\""});
    define_job(h, &(struct job_text){.name = "third",
                                     .duplicates = "refuse",
                                     .attempts = 2,
                                     .on = "\"ERROR\",\"WORKER_LOST\""});
    for (int i = 1; i <= (getenv("PAWL_FULL") ? STEPS : QUICK); i++) {
        steps[pick(model, array_len(steps))](model);
        assert_int_equal(newest(h), model->seen); /* nothing that the model has not */
        if (i % 200 == 0)
            compare(model);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(test_I7_I12_I21_a_thousand_random_steps_agree_with_a_model),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

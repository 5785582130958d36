/* Executions: guarded start, checkpoints under the token, the end together with the
 * request. */
#include "tests/store/queue/common.h"

#include "batch/execution.h"
#include "batch/lifecycle.h"
#include "batch/lost.h"

#include <string.h>

struct running {
    int64_t request_id;
    struct claim claim;
    struct batch_started started;
    int64_t step_id;
};

static struct batch_start_order
start_of(int64_t request_id, const struct claim *claim, bool one_alive)
{
    return (struct batch_start_order){
        .job = "task",
        .one_alive = one_alive,
        .request_id = request_id,
        .token = claim->token,
        .identity = "{\"a\":1}",
        .params = "{\"a\":1,\"b\":2}",
    };
}

static struct batch_step_order
step_of(const struct running *running, const char *name, int ordinal)
{
    return (struct batch_step_order){
        .execution_id = running->started.execution_id,
        .request_id = running->request_id,
        .token = running->claim.token,
        .name = name,
        .ordinal = ordinal,
        .effect = "transactional",
    };
}

static struct running
run_one(struct harness *h)
{
    struct running running = {.request_id = submit_one(h, "task")};
    scoped(arena_release) struct arena arena = {0};
    struct batch_step_started step;
    struct batch_step_order step_order;
    struct batch_start_order order;
    struct err err = {0};

    running.claim = claim_one(h, "w1");
    assert_int_equal(running.claim.first_id, running.request_id);
    order = start_of(running.request_id, &running.claim, false);
    assert_int_equal(batch_start(h->store, &order, &arena, &running.started, &err),
                     BATCH_OK);
    running.started.params = NULL; /* it went with the arena */
    step_order = step_of(&running, "export", 1);
    assert_int_equal(batch_step_start(h->store, &step_order, &arena, &step, &err),
                     BATCH_OK);
    running.step_id = step.step_id;
    return running;
}

static struct checkpoint
chunk_of(const struct running *running, int64_t chunk)
{
    return (struct checkpoint){
        .request_id = running->request_id,
        .token = running->claim.token,
        .execution_id = running->started.execution_id,
        .step_id = running->step_id,
        .point = {.counts = {.read = chunk * 10,
                             .written = chunk * 9,
                             .commits = chunk},
                  .chunk = chunk,
                  .position = "{\"id\":10}",
                  .writer_state = "offset 77"},
    };
}

static struct execution
read_back(struct harness *h, struct arena *arena, int64_t execution_id)
{
    struct execution execution;
    struct err err = {0};

    assert_ok(batch_execution_get(h->store, execution_id, arena, &execution, &err),
              &err);
    return execution;
}

static void
test_a_run_is_recorded_chunk_by_chunk_and_ends_with_its_request(struct harness *h)
{
    scoped(arena_release) struct arena arena = {0};
    struct running running = run_one(h);
    struct checkpoint checkpoint;
    struct execution execution;
    struct finish_order finish;
    struct err err = {0};

    for (int64_t chunk = 1; chunk <= 3; chunk++) {
        checkpoint = chunk_of(&running, chunk);
        checkpoint.last = chunk == 3;
        harness_clock_advance(h, US_PER_S);
        assert_int_equal(batch_checkpoint(h->store, &checkpoint, &err), BATCH_OK);
    }
    execution = read_back(h, &arena, running.started.execution_id);
    assert_int_equal(execution.state, EXECUTION_STARTED);
    assert_int_equal(execution.ended_at_us, 0);
    assert_int_equal(execution.instance_number, 1);
    assert_string_equal(execution.params, "{\"a\":1,\"b\":2}");
    assert_int_equal(execution.n_steps, 1);
    assert_int_equal(execution.steps[0].state, EXECUTION_COMPLETED);
    assert_int_equal(execution.steps[0].point.counts.read, 30);
    assert_int_equal(execution.steps[0].point.counts.written, 27);
    assert_int_equal(execution.steps[0].point.counts.commits, 3);
    assert_int_equal(execution.steps[0].point.chunk, 3);
    assert_string_equal(execution.steps[0].point.position, "{\"id\":10}");
    assert_string_equal(execution.steps[0].point.writer_state, "offset 77");
    assert_int_equal(execution.steps[0].ended_at_us, HARNESS_NOW + 3 * US_PER_S);
    assert_int_equal(get(h, &arena, running.request_id).execution_id,
                     running.started.execution_id);

    finish = finish_of(running.request_id, &running.claim, OUTCOME_COMPLETED);
    assert_int_equal(batch_finish(h->store, running.started.execution_id,
                                  EXECUTION_COMPLETED, NULL, &finish, &err),
                     BATCH_OK);
    execution = read_back(h, &arena, running.started.execution_id);
    assert_int_equal(execution.state, EXECUTION_COMPLETED);
    assert_int_equal(execution.ended_at_us, HARNESS_NOW + 3 * US_PER_S);
    assert_int_equal(get(h, &arena, running.request_id).outcome, OUTCOME_COMPLETED);
    /* Said again after an answer that was lost: still true. */
    assert_int_equal(batch_finish(h->store, running.started.execution_id,
                                  EXECUTION_COMPLETED, NULL, &finish, &err),
                     BATCH_OK);
}

static void
test_a_lost_claim_writes_nothing(struct harness *h)
{
    scoped(arena_release) struct arena arena = {0};
    struct running running = run_one(h);
    struct checkpoint checkpoint = chunk_of(&running, 1);
    struct finish_order finish =
        finish_of(running.request_id, &running.claim, OUTCOME_COMPLETED);
    struct batch_start_order order;
    struct execution execution;
    struct lost_request *lost;
    struct batch_step_order step_order;
    struct batch_step_started step;
    struct err err = {0};
    size_t count;

    assert_ok(batch_close_lost(h->store, "w1", "its worker is dead", &arena, &lost,
                               &count, &err),
              &err);
    assert_int_equal(batch_checkpoint(h->store, &checkpoint, &err), BATCH_LOST);
    step_order = step_of(&running, "next", 2);
    assert_int_equal(batch_step_start(h->store, &step_order, &arena, &step, &err),
                     BATCH_LOST);
    assert_int_equal(batch_step_end(h->store, running.request_id, running.claim.token,
                                    running.step_id, EXECUTION_FAILED, "x", &err),
                     BATCH_LOST);
    assert_int_equal(batch_stopping(h->store, running.request_id, running.claim.token,
                                    running.started.execution_id, &err),
                     BATCH_LOST);
    assert_int_equal(batch_finish(h->store, running.started.execution_id,
                                  EXECUTION_COMPLETED, NULL, &finish, &err),
                     BATCH_LOST);
    order = start_of(running.request_id, &running.claim, false);
    assert_int_equal(batch_start(h->store, &order, &arena, &running.started, &err),
                     BATCH_LOST);
    execution = read_back(h, &arena, lost[0].execution_id);
    assert_int_equal(execution.state, EXECUTION_FAILED);
    assert_string_equal(execution.message, "its worker is dead");
    assert_int_equal(execution.n_steps, 1);
    assert_int_equal(execution.steps[0].point.chunk, 0);
    assert_int_equal(get(h, &arena, running.request_id).outcome, OUTCOME_WORKER_LOST);
    assert_int_equal(rows_in(h, "execution"), 1);
}

/* Rows of the store's own database and their checkpoint are one transaction. */
struct rows_and_point {
    struct checkpoint checkpoint;
    int64_t value;
    int result;
};

static int
write_rows(struct db *db, void *arg, struct err *err)
{
    struct rows_and_point *work = (struct rows_and_point *)arg;
    struct db_sql sql = {.name = "row",
                         .text = "INSERT INTO pawl.audit (at, actor, act, subject)"
                                 " VALUES ($1, 'test', 'row', 'x')",
                         .n_params = 1};
    int r = db_run(db, &sql, err, p_i64(work->value));

    if (r < 0)
        return r;
    work->result = batch_checkpoint_in(db, &work->checkpoint, err);
    if (work->result == BATCH_LOST)
        return err_set(err, ERR_STALE_TOKEN, "the claim is gone");
    return work->result;
}

static void
test_a_chunk_and_its_checkpoint_commit_together_or_not_at_all(struct harness *h)
{
    scoped(arena_release) struct arena arena = {0};
    struct running running = run_one(h);
    struct rows_and_point work = {.checkpoint = chunk_of(&running, 1), .value = 1};
    struct err err = {0};

    assert_ok(store_write(h->store, STORE_NORMAL, write_rows, &work, &err), &err);
    assert_int_equal(rows_in(h, "audit"), 1);
    /* The same chunk twice, and one left out. */
    assert_int_equal(store_write(h->store, STORE_NORMAL, write_rows, &work, &err),
                     -ERR_INTERNAL);
    err_clear(&err);
    work.checkpoint = chunk_of(&running, 3);
    assert_int_equal(store_write(h->store, STORE_NORMAL, write_rows, &work, &err),
                     -ERR_INTERNAL);
    err_clear(&err);
    work.checkpoint = chunk_of(&running, 2);
    work.checkpoint.token.number++;
    assert_int_equal(store_write(h->store, STORE_NORMAL, write_rows, &work, &err),
                     -ERR_STALE_TOKEN);
    assert_int_equal(rows_in(h, "audit"), 1);
    assert_int_equal(
        read_back(h, &arena, running.started.execution_id).steps[0].point.chunk, 1);
}

static void
test_A24_stopping_has_no_end_time_until_it_has_ended(struct harness *h)
{
    scoped(arena_release) struct arena arena = {0};
    struct running running = run_one(h);
    struct checkpoint checkpoint = chunk_of(&running, 1);
    struct finish_order finish =
        finish_of(running.request_id, &running.claim, OUTCOME_STOPPED);
    struct execution execution;
    struct err err = {0};

    assert_int_equal(batch_stopping(h->store, running.request_id, running.claim.token,
                                    running.started.execution_id, &err),
                     BATCH_OK);
    assert_int_equal(batch_stopping(h->store, running.request_id, running.claim.token,
                                    running.started.execution_id, &err),
                     BATCH_OK);
    execution = read_back(h, &arena, running.started.execution_id);
    assert_int_equal(execution.state, EXECUTION_STOPPING);
    assert_int_equal(execution.ended_at_us, 0);
    assert_int_equal(execution.steps[0].state, EXECUTION_STOPPING);
    assert_int_equal(execution.steps[0].ended_at_us, 0);
    assert_int_equal(get(h, &arena, running.request_id).status, REQUEST_RUNNING);
    harness_clock_advance(h, 8 * US_PER_S);
    assert_int_equal(batch_checkpoint(h->store, &checkpoint, &err), BATCH_OK);
    assert_int_equal(batch_finish(h->store, running.started.execution_id,
                                  EXECUTION_STOPPED, "stopped by op", &finish, &err),
                     BATCH_OK);
    execution = read_back(h, &arena, running.started.execution_id);
    assert_int_equal(execution.state, EXECUTION_STOPPED);
    assert_int_equal(execution.ended_at_us, HARNESS_NOW + 8 * US_PER_S);
    assert_int_equal(execution.steps[0].state, EXECUTION_STOPPED);
    assert_string_equal(execution.message, "stopped by op");
    assert_int_equal(get(h, &arena, running.request_id).status, REQUEST_DONE);
}

struct starter {
    struct harness *h;
    struct batch_start_order order;
    struct arena arena;
    struct batch_started started;
    struct err err;
    int r;
};

static void
starters_release(struct starter *starters, size_t count)
{
    for (size_t i = 0; i < count; i++)
        arena_release(&starters[i].arena);
}

static void *
start_it(void *arg)
{
    struct starter *starter = (struct starter *)arg;

    starter->r = batch_start(starter->h->store, &starter->order, &starter->arena,
                             &starter->started, &starter->err);
    return NULL;
}

static void
test_only_one_execution_of_a_refuse_job_is_alive(struct harness *h)
{
    struct starter starters[4] = {0};
    struct claim claims[4];
    int64_t first = submit_span(h, "task", 4);
    int started = 0;
    int64_t alive = 0;
    size_t count;

    assert_int_equal(claim_some(h, "w1", 4, claims, &count), 4);
    for (size_t i = 0; i < 4; i++)
        starters[i] = (struct starter){
            .h = h, .order = start_of(first + (int64_t)i, &claims[0], true)};
    in_parallel(4, start_it, starters, sizeof(starters[0]));
    for (size_t i = 0; i < 4; i++) {
        assert_ok(starters[i].r, &starters[i].err);
        if (starters[i].r == BATCH_OK) {
            started++;
            alive = starters[i].started.execution_id;
        }
    }
    assert_int_equal(started, 1);
    for (size_t i = 0; i < 4; i++)
        if (starters[i].r != BATCH_OK) {
            assert_int_equal(starters[i].r, BATCH_ALIVE);
            assert_int_equal(starters[i].started.alive_execution_id, alive);
        }
    assert_int_equal(rows_in(h, "execution"), 1);
    starters_release(starters, 4);
}

/* A16: starting side by side is no conflict; the numbers of instances stay apart. */
static void
test_A16_many_start_side_by_side_where_the_job_allows_it(struct harness *h)
{
    struct starter starters[8] = {0};
    struct claim claims[8];
    int64_t first = submit_span(h, "task", 8);
    size_t count;

    assert_int_equal(claim_some(h, "w1", 8, claims, &count), 8);
    for (size_t i = 0; i < 8; i++) {
        starters[i] = (struct starter){
            .h = h, .order = start_of(first + (int64_t)i, &claims[0], false)};
        if (i % 2)
            starters[i].order.job = "other";
    }
    in_parallel(8, start_it, starters, sizeof(starters[0]));
    for (size_t i = 0; i < 8; i++) {
        assert_ok(starters[i].r, &starters[i].err);
        assert_int_equal(starters[i].r, BATCH_OK);
    }
    assert_int_equal(harness_i64(h, "SELECT max(number) FROM pawl.instance"), 4);
    starters_release(starters, 8);
}

/* The answer to its beginning was lost, so the run goes on as if it had none. */
static void
test_an_execution_that_its_run_does_not_know_ends_with_the_request(struct harness *h)
{
    scoped(arena_release) struct arena arena = {0};
    struct running running = run_one(h);
    struct finish_order finish =
        finish_of(running.request_id, &running.claim, OUTCOME_ERROR);
    struct execution execution;
    struct err err = {0};

    assert_int_equal(
        batch_finish(h->store, 0, EXECUTION_FAILED, "no answer", &finish, &err),
        BATCH_OK);
    execution = read_back(h, &arena, running.started.execution_id);
    assert_int_equal(execution.state, EXECUTION_FAILED);
    assert_string_equal(execution.message, "no answer");
    assert_int_equal(execution.steps[0].state, EXECUTION_FAILED);
    assert_int_equal(get(h, &arena, running.request_id).execution_id, execution.id);
    assert_consistent(h);
}

static void
test_a_request_without_execution_is_finished_by_itself(struct harness *h)
{
    int64_t request_id = submit_one(h, "task");
    struct claim claim = claim_one(h, "w1");
    struct finish_order finish = finish_of(request_id, &claim, OUTCOME_REFUSED);
    struct err err = {0};

    assert_int_equal(batch_finish(h->store, 0, EXECUTION_FAILED, NULL, &finish, &err),
                     BATCH_OK);
    assert_int_equal(batch_finish(h->store, 0, EXECUTION_FAILED, NULL, &finish, &err),
                     BATCH_OK);
    finish.token.number++;
    assert_int_equal(batch_finish(h->store, 0, EXECUTION_FAILED, NULL, &finish, &err),
                     BATCH_LOST);
    assert_int_equal(rows_in(h, "execution"), 0);
    assert_consistent(h);
}

static void
test_the_table_decides_which_state_follows(struct harness *h)
{
    struct running running = run_one(h);
    struct err err = {0};

    (void)h;
    assert_true(execution_may_move(EXECUTION_STARTED, EXECUTION_STOPPING));
    assert_false(execution_may_move(EXECUTION_STARTED, EXECUTION_STOPPED));
    assert_false(execution_may_move(EXECUTION_COMPLETED, EXECUTION_FAILED));
    assert_int_equal(batch_step_end(h->store, running.request_id, running.claim.token,
                                    running.step_id, EXECUTION_FAILED, "broken", &err),
                     BATCH_OK);
    assert_int_equal(batch_step_end(h->store, running.request_id, running.claim.token,
                                    running.step_id, EXECUTION_COMPLETED, NULL, &err),
                     -ERR_INTERNAL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(test_a_run_is_recorded_chunk_by_chunk_and_ends_with_its_request),
        store_test(test_a_lost_claim_writes_nothing),
        store_test(test_a_chunk_and_its_checkpoint_commit_together_or_not_at_all),
        store_test(test_A24_stopping_has_no_end_time_until_it_has_ended),
        store_test(test_only_one_execution_of_a_refuse_job_is_alive),
        store_test(test_A16_many_start_side_by_side_where_the_job_allows_it),
        store_test(test_an_execution_that_its_run_does_not_know_ends_with_the_request),
        store_test(test_a_request_without_execution_is_finished_by_itself),
        store_test(test_the_table_decides_which_state_follows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

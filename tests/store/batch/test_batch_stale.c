/* What nobody carries: found by who asks for the job, or ended by hand. */
#include "tests/store/queue/common.h"

#include "batch/execution.h"
#include "batch/stale.h"
#include "liveness/worker_row.h"
#include "store/store.h"

#include <stdio.h>
#include <string.h>

#define DEAD_AFTER (60 * US_PER_S)

static void
worker_up(struct harness *h, const char *id)
{
    struct worker_row row = {.id = id,
                             .seat = id,
                             .host = "here",
                             .pid = 1,
                             .boot_id = "",
                             .lanes = "{}",
                             .in_use = "{}",
                             .keys = "[]",
                             .jobs = "[]",
                             .version = "test"};
    struct err err = {0};

    assert_ok(worker_register(h->store, &row, &err), &err);
}

static struct batch_start_order
order_for(int64_t request_id, struct claim_token token)
{
    return (struct batch_start_order){.job = "task",
                                      .one_alive = true,
                                      .request_id = request_id,
                                      .token = token,
                                      .identity = "{}",
                                      .params = "{}",
                                      .go_on = BATCH_GO_ON};
}

static int64_t
begin(struct harness *h, int64_t *ret_request)
{
    scoped(arena_release) struct arena arena = {0};
    struct batch_started started;
    struct batch_start_order order;
    struct claim claim;
    struct err err = {0};

    *ret_request = submit_one(h, "task");
    claim = claim_one(h, "w1");
    order = order_for(*ret_request, claim.token);
    assert_int_equal(batch_start(h->store, &order, &arena, &started, &err), BATCH_OK);
    return started.execution_id;
}

static enum execution_state
state_of(struct harness *h, int64_t execution_id, const char *part_of_message)
{
    scoped(arena_release) struct arena arena = {0};
    struct execution execution;
    struct err err = {0};

    assert_ok(batch_execution_get(h->store, execution_id, &arena, &execution, &err),
              &err);
    if (part_of_message)
        assert_non_null(strstr(execution.message, part_of_message));
    return execution.state;
}

/* An execution whose claim went without it: only damage can do that. */
static int64_t
orphan(struct harness *h)
{
    int64_t request_id;
    int64_t execution_id = begin(h, &request_id);

    harness_sql(h, "DELETE FROM pawl.claim");
    return execution_id;
}

static int
clean_fn(struct db *db, void *arg, struct err *err)
{
    (void)arg;
    return batch_clean_in(db, "task", err);
}

struct cleaner {
    struct harness *h;
    struct err err;
    int r;
};

static void *
clean(void *arg)
{
    struct cleaner *cleaner = (struct cleaner *)arg;

    cleaner->r =
        store_write(cleaner->h->store, STORE_NORMAL, clean_fn, NULL, &cleaner->err);
    return NULL;
}

static void
test_A27_many_ask_and_one_cleans(struct harness *h)
{
    struct cleaner cleaners[20];
    int64_t execution_id = orphan(h);
    int cleaned = 0;

    for (size_t i = 0; i < array_len(cleaners); i++)
        cleaners[i] = (struct cleaner){.h = h};
    in_parallel(array_len(cleaners), clean, cleaners, sizeof(cleaners[0]));
    for (size_t i = 0; i < array_len(cleaners); i++) {
        assert_ok(cleaners[i].r, &cleaners[i].err);
        cleaned += cleaners[i].r;
    }
    assert_int_equal(cleaned, 1);
    assert_int_equal(state_of(h, execution_id, "No worker carried it"),
                     EXECUTION_FAILED);
}

static void
test_A27_what_is_carried_is_left_alone(struct harness *h)
{
    struct cleaner cleaner = {.h = h};
    int64_t request_id;
    int64_t execution_id = begin(h, &request_id);

    /* Even by a worker that is dead: that one is for the reaper, who may judge it. */
    harness_clock_advance(h, 10 * DEAD_AFTER);
    clean(&cleaner);
    assert_int_equal(cleaner.r, 0);
    assert_int_equal(state_of(h, execution_id, NULL), EXECUTION_STARTED);
}

/* Who starts meets it too, and goes on with its work. */
static void
test_A27_a_start_ends_what_nobody_carries_and_goes_on_with_it(struct harness *h)
{
    scoped(arena_release) struct arena arena = {0};
    int64_t stale = orphan(h);
    int64_t request_id = submit_one(h, "task");
    struct claim claim = claim_one(h, "w1");
    struct batch_start_order order = order_for(request_id, claim.token);
    struct batch_started started;
    struct err err = {0};

    assert_int_equal(batch_start(h->store, &order, &arena, &started, &err), BATCH_OK);
    assert_int_equal(state_of(h, stale, "No worker carried it"), EXECUTION_FAILED);
    assert_true(started.resumed);
    assert_int_equal(started.previous_execution_id, stale);
}

static int
recover(struct harness *h, int64_t execution_id, struct lost_request *lost,
        struct batch_holder *holder)
{
    struct err err = {0};

    return batch_recover(h->store, execution_id, DEAD_AFTER, "anna", lost, holder,
                         &err);
}

static void
test_A39_by_hand_only_what_a_dead_worker_held(struct harness *h)
{
    scoped(arena_release) struct arena arena = {0};
    struct lost_request lost;
    struct batch_holder holder;
    struct request request;
    int64_t request_id;
    int64_t execution_id;

    worker_up(h, "w1");
    execution_id = begin(h, &request_id);
    assert_int_equal(recover(h, execution_id, &lost, &holder), BATCH_STILL_CARRIED);
    assert_string_equal(holder.worker, "w1");
    harness_clock_advance(h, DEAD_AFTER - US_PER_S);
    assert_int_equal(recover(h, execution_id, &lost, &holder), BATCH_STILL_CARRIED);
    assert_int_equal(holder.silence_us, DEAD_AFTER - US_PER_S);
    assert_int_equal(state_of(h, execution_id, NULL), EXECUTION_STARTED);
    assert_int_equal(rows_in(h, "audit"), 0);

    harness_clock_advance(h, 2 * US_PER_S);
    assert_int_equal(recover(h, execution_id, &lost, &holder), BATCH_RECOVERED);
    assert_int_equal(lost.request_id, request_id);
    assert_int_equal(state_of(h, execution_id, "administrator anna"), EXECUTION_FAILED);
    request = get(h, &arena, request_id);
    assert_int_equal(request.outcome, OUTCOME_WORKER_LOST);
    assert_int_equal(request.execution_id, execution_id);
    assert_int_equal(
        harness_i64(h, "SELECT count(*) FROM pawl.audit WHERE act = 'recover'"), 1);
    assert_int_equal(recover(h, execution_id, &lost, &holder), BATCH_OVER);
    assert_int_equal(recover(h, 4711, &lost, &holder), -ERR_NOT_FOUND);
    assert_consistent(h);
}

static void
test_A39_what_has_no_worker_at_all_is_dead(struct harness *h)
{
    struct lost_request lost;
    struct batch_holder holder;
    int64_t request_id;
    int64_t execution_id = begin(h, &request_id); /* w1 has no row */

    assert_int_equal(recover(h, execution_id, &lost, &holder), BATCH_RECOVERED);
    assert_int_equal(holder.silence_us, -1);
    execution_id = orphan(h);
    assert_int_equal(recover(h, execution_id, &lost, &holder), BATCH_RECOVERED);
    assert_int_equal(lost.token.number, 0);
    assert_int_equal(state_of(h, execution_id, "anna"), EXECUTION_FAILED);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(test_A27_many_ask_and_one_cleans),
        store_test(test_A27_what_is_carried_is_left_alone),
        store_test(test_A27_a_start_ends_what_nobody_carries_and_goes_on_with_it),
        store_test(test_A39_by_hand_only_what_a_dead_worker_held),
        store_test(test_A39_what_has_no_worker_at_all_is_dead),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Partitions: taken once, fenced by two claims, joined when all are done. */
#include "tests/store/queue/common.h"

#include "batch/execution.h"
#include "batch/lost.h"
#include "batch/partition.h"
#include "queue/hand.h"

#include <string.h>

static const struct batch_cut cuts[] = {
    {.has_upper = true, .upper = 10},
    {.has_lower = true, .lower = 10, .has_upper = true, .upper = 20},
    {.has_lower = true, .lower = 20},
};

struct site {
    struct arena arena;
    const struct queue_job *job;
    int64_t parent_id;
    struct claim parent;
    int64_t execution_id;
    int64_t step_id;
    struct batch_share run;
    struct batch_share hand; /* of the first hand, claimed */
};

static void
site_release(struct site *site)
{
    arena_release(&site->arena);
}

/* The next hand that waits. */
static struct batch_share
claim_hand(struct harness *h, const struct site *site, const char *worker)
{
    struct batch_share share = site->run;
    struct claim claim = claim_one(h, worker);

    share.request_id = claim.first_id;
    share.token = claim.token;
    return share;
}

/* Under way, cut in three, two hands asked for; the first of them is claimed by w2. */
static void
begin(struct harness *h, struct site *site)
{
    struct batch_start_order start = {.job = "task", .identity = "{}", .params = "{}"};
    struct batch_step_order step = {.name = "copy", .ordinal = 1};
    struct batch_step_started begun;
    struct batch_started started;
    struct submit_order order;
    struct hand_order hands = {.step = "copy", .count = 2};
    struct request parent;
    struct err err = {0};

    site->job = define_job(h, &(struct job_text){.name = "task",
                                                 .attempts = 3,
                                                 .on = "\"ERROR\",\"WORKER_LOST\"",
                                                 .next = "[\"other\"]"});
    define_job(h, &(struct job_text){.name = "other"});
    order = order_of(site->job);
    site->parent_id = submit_order(h, &order);
    site->parent = claim_one(h, "w1");
    start.request_id = step.request_id = site->parent_id;
    start.token = step.token = site->parent.token;
    assert_int_equal(batch_start(h->store, &start, &site->arena, &started, &err),
                     BATCH_OK);
    step.execution_id = site->execution_id = started.execution_id;
    assert_int_equal(batch_step_start(h->store, &step, &site->arena, &begun, &err),
                     BATCH_OK);
    site->step_id = begun.step_id;
    site->run = (struct batch_share){.instance_id = started.instance_id,
                                     .step = "copy",
                                     .request_id = site->parent_id,
                                     .token = site->parent.token,
                                     .parent_id = site->parent_id,
                                     .parent_token = site->parent.token};
    parent = get(h, &site->arena, site->parent_id);
    hands.job = site->job;
    hands.parent = &parent;
    hands.parent_token = site->parent.token.number;
    hands.execution_id = site->execution_id;
    assert_int_equal(
        batch_partitions_open(h->store, &site->run, "id", cuts, 3, &hands, &err),
        BATCH_OK);
    site->hand = claim_hand(h, site, "w2");
}

static struct batch_partition
take(struct harness *h, struct site *site, const struct batch_share *share)
{
    struct batch_partition partition = {0};
    struct err err = {0};

    assert_int_equal(
        batch_partition_take(h->store, share, &site->arena, &partition, &err),
        BATCH_OK);
    return partition;
}

static int
chunk(struct harness *h, const struct batch_share *share,
      const struct batch_partition *partition, int64_t n, bool last)
{
    struct checkpoint checkpoint = {
        .request_id = share->request_id,
        .token = share->token,
        .point = {.counts = {.read = 5 * n, .written = 4 * n}, .chunk = n},
        .last = last,
        .share = share,
        .partition = partition,
    };
    struct err err = {0};
    int r = batch_checkpoint(h->store, &checkpoint, &err);

    assert_ok(r, &err);
    return r;
}

static struct batch_partitions
stand(struct harness *h, const struct site *site)
{
    struct batch_partitions stand = {0};
    struct err err = {0};

    assert_ok(
        batch_partitions_stand(h->store, site->run.instance_id, "copy", &stand, &err),
        &err);
    return stand;
}

static void
end(struct harness *h, const struct batch_share *share, int64_t execution_id,
    enum request_outcome outcome)
{
    struct finish_order order = {
        .request_id = share->request_id, .token = share->token, .outcome = outcome};
    struct err err = {0};

    assert_int_equal(batch_finish(h->store, execution_id,
                                  outcome == OUTCOME_COMPLETED ? EXECUTION_COMPLETED
                                                               : EXECUTION_FAILED,
                                  NULL, &order, &err),
                     BATCH_OK);
}

static void
test_partitions_are_taken_once_and_joined_when_all_are_done(struct harness *h)
{
    scoped(site_release) struct site site = {0};
    struct batch_partition a, b, c, none;
    scoped(arena_release) struct arena arena = {0};
    struct batch_share other;
    struct execution execution;
    struct err err = {0};

    begin(h, &site);
    other = claim_hand(h, &site, "w3");
    a = take(h, &site, &site.run);
    b = take(h, &site, &site.hand);
    c = take(h, &site, &other);
    assert_int_equal(a.n + 10 * b.n + 100 * c.n, 321);
    assert_true(b.cut.has_lower && b.cut.lower == 10 && b.cut.upper == 20);
    assert_int_equal(stand(h, &site).held, 3);
    assert_int_equal(chunk(h, &site.run, &a, 1, true), BATCH_OK);
    assert_int_equal(chunk(h, &site.hand, &b, 1, false), BATCH_OK);
    assert_int_equal(chunk(h, &site.hand, &b, 2, true), BATCH_OK);
    assert_int_equal(
        batch_partition_take(h->store, &site.hand, &site.arena, &none, &err),
        BATCH_NONE_FREE);
    assert_int_equal(batch_partitions_join(h->store, &site.run, site.step_id, &err),
                     BATCH_OK);
    assert_ok(
        batch_execution_get(h->store, site.execution_id, &arena, &execution, &err),
        &err);
    assert_int_equal(execution.steps[0].state, EXECUTION_STARTED);
    assert_int_equal(chunk(h, &other, &c, 1, true), BATCH_OK);
    assert_int_equal(batch_partitions_join(h->store, &site.run, site.step_id, &err),
                     BATCH_OK);
    assert_ok(
        batch_execution_get(h->store, site.execution_id, &arena, &execution, &err),
        &err);
    assert_int_equal(execution.steps[0].state, EXECUTION_COMPLETED);
    assert_int_equal(execution.steps[0].point.counts.read, 20);
    assert_int_equal(execution.steps[0].point.counts.written, 16);
}

static void
test_what_a_dead_hand_held_is_taken_where_it_stood_and_the_dead_cannot_write(
    struct harness *h)
{
    scoped(site_release) struct site site = {0};
    struct batch_partition held, again;
    struct lost_request *lost = NULL;
    size_t count = 0;
    struct err err = {0};

    begin(h, &site);
    held = take(h, &site, &site.hand);
    assert_int_equal(chunk(h, &site.hand, &held, 1, false), BATCH_OK);
    assert_ok(
        batch_close_lost(h->store, "w2", "dead", &site.arena, &lost, &count, &err),
        &err);
    assert_int_equal(count, 1);
    assert_int_equal(chunk(h, &site.hand, &held, 2, false), BATCH_LOST);
    again = take(h, &site, &site.run);
    assert_int_equal(again.n, held.n);
    assert_int_equal(again.point.chunk, 1);
    assert_int_equal(again.point.counts.read, 5);
    assert_int_equal(chunk(h, &site.run, &again, 2, true), BATCH_OK);
    /* A hand is tried once. */
    assert_int_equal(harness_i64(h, "SELECT count(*) FROM pawl.request"), 3);
}

static void
test_nothing_is_written_for_a_run_that_has_been_closed(struct harness *h)
{
    scoped(site_release) struct site site = {0};
    struct batch_partition held, none;
    scoped(arena_release) struct arena arena = {0};
    struct lost_request *lost = NULL;
    struct request hand;
    size_t count = 0;
    struct err err = {0};

    begin(h, &site);
    held = take(h, &site, &site.hand);
    assert_ok(
        batch_close_lost(h->store, "w1", "dead", &site.arena, &lost, &count, &err),
        &err);
    assert_int_equal(chunk(h, &site.hand, &held, 1, false), BATCH_LOST);
    assert_int_equal(
        batch_partition_take(h->store, &site.hand, &site.arena, &none, &err),
        BATCH_LOST);
    assert_int_equal(stand(h, &site).held, 0);
    assert_int_equal(stand(h, &site).chunks, 0);
    hand = get(h, &arena, site.hand.request_id);
    assert_true(hand.stop_asked);
    hand = get(h, &arena, site.hand.request_id + 1); /* nobody had claimed it */
    assert_int_equal(hand.outcome, OUTCOME_CANCELLED);
    assert_consistent(h);
}

static void
test_a_stale_hold_of_the_same_claim_writes_nothing(struct harness *h)
{
    scoped(site_release) struct site site = {0};
    struct batch_partition first, second;
    struct err err = {0};

    begin(h, &site);
    first = take(h, &site, &site.hand);
    assert_int_equal(batch_partition_let_go(h->store, &site.hand, &first, NULL, &err),
                     BATCH_OK);
    second = take(h, &site, &site.run);
    assert_int_equal(second.n, first.n);
    assert_int_not_equal(second.hold, first.hold);
    assert_int_equal(chunk(h, &site.hand, &first, 1, false), BATCH_LOST);
    assert_int_equal(chunk(h, &site.run, &second, 1, false), BATCH_OK);
    /* Nor is a chunk left out or written twice. */
    assert_int_equal(chunk(h, &site.run, &second, 3, false), BATCH_LOST);
    assert_int_equal(chunk(h, &site.run, &second, 1, false), BATCH_LOST);
}

static void
test_a_failed_partition_is_told_and_free_again_for_the_next_try(struct harness *h)
{
    scoped(site_release) struct site site = {0};
    struct batch_partition partition;
    struct hand_order none = {.count = 0};
    struct err err = {0};

    begin(h, &site);
    partition = take(h, &site, &site.hand);
    assert_int_equal(
        batch_partition_let_go(h->store, &site.hand, &partition, "row 7: no", &err),
        BATCH_OK);
    assert_int_equal(stand(h, &site).failed, 1);
    assert_string_equal(stand(h, &site).message, "row 7: no");
    assert_int_equal(take(h, &site, &site.run).n, partition.n + 1);
    assert_int_equal(
        batch_partitions_open(h->store, &site.run, "id", cuts, 3, &none, &err),
        BATCH_OK);
    assert_int_equal(stand(h, &site).failed, 0);
    assert_int_equal(
        batch_partitions_open(h->store, &site.run, "day", cuts, 3, &none, &err),
        -ERR_INVALID);
    assert_non_null(strstr(err.text, "was cut by \"id\""));
    assert_int_equal(stand(h, &site).count, 3);
    assert_int_equal(take(h, &site, &site.hand).n, partition.n);
}

/* The answer to a commit can be lost: who asks again gets what it has taken, and the
 * hands are not let in twice. */
static void
test_A34_what_was_taken_or_opened_is_found_again(struct harness *h)
{
    scoped(site_release) struct site site = {0};
    struct batch_partition first, again;
    struct request parent;
    struct hand_order hands = {.step = "copy", .count = 2};
    struct err err = {0};

    begin(h, &site);
    first = take(h, &site, &site.hand);
    assert_int_equal(chunk(h, &site.hand, &first, 1, false), BATCH_OK);
    again = take(h, &site, &site.hand);
    assert_int_equal(again.n, first.n);
    assert_int_equal(again.hold, first.hold);
    assert_int_equal(again.point.chunk, 1);
    assert_int_not_equal(take(h, &site, &site.run).n, first.n);
    parent = get(h, &site.arena, site.parent_id);
    hands.job = site.job;
    hands.parent = &parent;
    hands.parent_token = site.parent.token.number;
    hands.execution_id = site.execution_id;
    assert_int_equal(
        batch_partitions_open(h->store, &site.run, "id", cuts, 3, &hands, &err),
        BATCH_OK);
    assert_int_equal(harness_i64(h, "SELECT count(*) FROM pawl.hand"), 2);
    assert_int_equal(stand(h, &site).count, 3);
    assert_consistent(h);
}

/* A drain stops the run but asks nobody else: it sees its hands off itself. */
static void
test_A19_a_hand_that_was_sent_away_takes_nothing_and_no_other_comes(struct harness *h)
{
    scoped(site_release) struct site site = {0};
    scoped(arena_release) struct arena arena = {0};
    struct batch_partition held, none;
    struct err err = {0};

    begin(h, &site);
    held = take(h, &site, &site.hand);
    assert_ok(queue_hands_end(h->store, site.parent_id, &err), &err);
    assert_true(get(h, &arena, site.hand.request_id).stop_asked);
    assert_int_equal(get(h, &arena, site.hand.request_id + 1).outcome,
                     OUTCOME_CANCELLED);
    assert_int_equal(chunk(h, &site.hand, &held, 1, true), BATCH_OK);
    assert_int_equal(
        batch_partition_take(h->store, &site.hand, &site.arena, &none, &err),
        BATCH_NONE_FREE);
    /* The run itself is asked by its worker. That is no stop of somebody, after which
     * it would not go on by itself. */
    assert_false(get(h, &arena, site.parent_id).stop_asked);
    assert_consistent(h);
}

static void
test_hands_end_with_their_parent_and_nothing_follows_them(struct harness *h)
{
    scoped(site_release) struct site site = {0};
    scoped(arena_release) struct arena arena = {0};

    begin(h, &site);
    end(h, &site.hand, 0, OUTCOME_COMPLETED);
    assert_int_equal(
        harness_i64(h, "SELECT count(*) FROM pawl.request WHERE job = 'other'"), 0);
    end(h, &site.run, site.execution_id, OUTCOME_COMPLETED);
    assert_int_equal(get(h, &arena, site.hand.request_id + 1).outcome,
                     OUTCOME_CANCELLED);
    assert_int_equal(
        harness_i64(h, "SELECT count(*) FROM pawl.request WHERE job = 'other'"), 1);
    assert_consistent(h);
}

static void
test_a_cancel_or_stop_is_for_the_hands_too(struct harness *h)
{
    scoped(site_release) struct site site = {0};
    scoped(arena_release) struct arena arena = {0};
    struct err err = {0};

    begin(h, &site);
    assert_ok(queue_stop(h->store, site.parent_id, "ann", &err), &err);
    assert_true(get(h, &arena, site.hand.request_id).stop_asked);
    assert_ok(queue_cancel(h->store, site.parent_id, "ann", &err), &err);
    assert_true(get(h, &arena, site.hand.request_id).cancel_asked);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(test_partitions_are_taken_once_and_joined_when_all_are_done),
        store_test(
            test_what_a_dead_hand_held_is_taken_where_it_stood_and_the_dead_cannot_write),
        store_test(test_nothing_is_written_for_a_run_that_has_been_closed),
        store_test(test_a_stale_hold_of_the_same_claim_writes_nothing),
        store_test(test_a_failed_partition_is_told_and_free_again_for_the_next_try),
        store_test(test_hands_end_with_their_parent_and_nothing_follows_them),
        store_test(test_a_cancel_or_stop_is_for_the_hands_too),
        store_test(test_A34_what_was_taken_or_opened_is_found_again),
        store_test(test_A19_a_hand_that_was_sent_away_takes_nothing_and_no_other_comes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

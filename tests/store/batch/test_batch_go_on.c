/* Who goes on with what, and how far a step had come. */
#include "tests/store/queue/common.h"

#include "batch/execution.h"
#include "batch/lost.h"

#include <string.h>

/* One request of a job "task", claimed, with its execution. */
struct carried {
    int64_t request_id;
    struct claim claim;
    struct batch_started started;
    int r;
};

struct wish {
    const char *params; /* effective */
    const char *given;
    enum batch_go_on go_on;
    int64_t of;
    bool confirmed;
    bool refuse;
};

static struct carried
begin(struct harness *h, struct arena *arena, const struct wish *wish)
{
    struct carried carried = {.request_id = submit_one(h, "task")};
    struct batch_start_order order = {
        .job = "task",
        .one_alive = wish->refuse,
        .request_id = carried.request_id,
        .identity = wish->params,
        .params = wish->params,
        .given = wish->given,
        .go_on = wish->go_on,
        .of = wish->of,
        .confirmed = wish->confirmed,
    };
    struct err err = {0};

    carried.claim = claim_one(h, "w1");
    order.token = carried.claim.token;
    carried.r = batch_start(h->store, &order, arena, &carried.started, &err);
    assert_ok(carried.r, &err);
    return carried;
}

static void
end(struct harness *h, const struct carried *carried, enum request_outcome outcome)
{
    struct finish_order finish =
        finish_of(carried->request_id, &carried->claim, outcome);
    enum execution_state state = outcome == OUTCOME_COMPLETED ? EXECUTION_COMPLETED
                                 : outcome == OUTCOME_STOPPED ? EXECUTION_STOPPED
                                                              : EXECUTION_FAILED;
    struct err err = {0};

    assert_int_equal(batch_finish(h->store, carried->started.execution_id, state, NULL,
                                  &finish, &err),
                     BATCH_OK);
}

static struct batch_step_started
begin_step(struct harness *h, struct arena *arena, const struct carried *carried,
           const char *name, int ordinal, bool again)
{
    struct batch_step_order order = {
        .execution_id = carried->started.execution_id,
        .request_id = carried->request_id,
        .token = carried->claim.token,
        .name = name,
        .ordinal = ordinal,
        .effect = "transactional",
        .again = again,
    };
    struct batch_step_started started;
    struct err err = {0};

    assert_int_equal(batch_step_start(h->store, &order, arena, &started, &err),
                     BATCH_OK);
    return started;
}

static void
commit(struct harness *h, const struct carried *carried, int64_t step_id, int64_t chunk,
       bool last)
{
    struct checkpoint checkpoint = {
        .request_id = carried->request_id,
        .token = carried->claim.token,
        .execution_id = carried->started.execution_id,
        .step_id = step_id,
        .point = {.counts = {.read = chunk * 10,
                             .written = chunk * 9,
                             .skipped = chunk,
                             .commits = chunk},
                  .chunk = chunk,
                  .position = chunk == 1 ? "at 1" : "at 2",
                  .writer_state = "state"},
        .last = last,
    };
    struct err err = {0};

    assert_int_equal(batch_checkpoint(h->store, &checkpoint, &err), BATCH_OK);
}

/* --- which instance --- */

static void
test_A32_what_stopped_or_failed_is_gone_on_with(struct harness *h)
{
    static const enum request_outcome ends[] = {OUTCOME_STOPPED, OUTCOME_ERROR,
                                                OUTCOME_TIMEOUT};
    scoped(arena_release) struct arena arena = {0};
    const struct wish wish = {
        .params = "{\"m\":24}", .go_on = BATCH_GO_ON, .refuse = true};
    struct carried first = begin(h, &arena, &wish);
    struct carried before = first;

    assert_false(first.started.resumed);
    for (size_t i = 0; i < array_len(ends); i++) {
        struct carried next;

        end(h, &before, ends[i]);
        next = begin(h, &arena, &wish);
        assert_true(next.started.resumed);
        assert_int_equal(next.started.instance_id, first.started.instance_id);
        assert_int_equal(next.started.previous_execution_id,
                         before.started.execution_id);
        before = next;
    }
    end(h, &before, OUTCOME_COMPLETED);
    before = begin(h, &arena, &wish);
    assert_false(before.started.resumed);
    assert_int_equal(before.started.instance_number, 2);
    assert_int_equal(before.started.previous_execution_id, 0);
}

/* months=24 STOPPED: {} and {months:24} go on with it, with the parameters of the first
 * run; {months:36} begins anew, and so does whoever wants no restart. */
static void
test_A32_a_differing_value_begins_anew(struct harness *h)
{
    static const struct {
        const char *params;
        const char *given;
        enum batch_go_on go_on;
        bool resumed;
    } cases[] = {
        {"{\"months\":12,\"x\":1}", "{}", BATCH_GO_ON, true},
        {"{\"months\":12,\"x\":1}", NULL, BATCH_GO_ON, true},
        {"{\"months\":24,\"x\":1}", "{\"months\":24}", BATCH_GO_ON, true},
        {"{\"months\":24,\"x\":1}", "{\"months\":24}", BATCH_ANEW, false},
        {"{\"months\":36,\"x\":1}", "{\"months\":36}", BATCH_GO_ON, false},
        {"{\"months\":24,\"x\":2}", "{\"months\":24,\"x\":2}", BATCH_GO_ON, false},
        {"{\"months\":24,\"y\":2}", "{\"y\":2}", BATCH_GO_ON, false},
    };
    scoped(arena_release) struct arena arena = {0};

    for (size_t i = 0; i < array_len(cases); i++) {
        const struct wish first_wish = {.params = "{\"months\":24,\"x\":1}",
                                        .given = "{\"months\":24}",
                                        .go_on = BATCH_ANEW,
                                        .refuse = true};
        const struct wish wish = {.params = cases[i].params,
                                  .given = cases[i].given,
                                  .go_on = cases[i].go_on,
                                  .refuse = true};
        struct carried first = begin(h, &arena, &first_wish);
        struct carried next;

        end(h, &first, OUTCOME_STOPPED);
        next = begin(h, &arena, &wish);
        assert_int_equal(next.started.resumed, cases[i].resumed);
        assert_string_equal(next.started.params, cases[i].resumed
                                                     ? "{\"months\":24,\"x\":1}"
                                                     : cases[i].params);
        end(h, &next, OUTCOME_COMPLETED);
    }
}

static void
test_a_cancelled_execution_is_not_gone_on_with(struct harness *h)
{
    scoped(arena_release) struct arena arena = {0};
    struct wish wish = {.params = "{}", .go_on = BATCH_GO_ON, .refuse = true};
    struct carried first = begin(h, &arena, &wish);
    struct carried next;

    end(h, &first, OUTCOME_CANCELLED);
    wish.go_on = BATCH_GO_ON_OF;
    wish.of = first.request_id;
    next = begin(h, &arena, &wish);
    assert_false(next.started.resumed);
    end(h, &next, OUTCOME_CANCELLED);
    wish.go_on = BATCH_GO_ON;
    next = begin(h, &arena, &wish);
    assert_false(next.started.resumed);
    assert_int_equal(next.started.instance_number, 3);
}

static void
test_A33_what_holds_a_confirmation_is_never_gone_on_with(struct harness *h)
{
    scoped(arena_release) struct arena arena = {0};
    struct wish wish = {.params = "{\"confirm_purge\":true}",
                        .given = "{\"confirm_purge\":true}",
                        .go_on = BATCH_ANEW,
                        .confirmed = true,
                        .refuse = true};
    struct carried first = begin(h, &arena, &wish);
    struct carried next;

    end(h, &first, OUTCOME_ERROR);
    wish = (struct wish){.params = "{}", .go_on = BATCH_GO_ON, .refuse = true};
    next = begin(h, &arena, &wish);
    assert_false(next.started.resumed);
    assert_string_equal(next.started.params, "{}");
    end(h, &next, OUTCOME_COMPLETED);
    /* Nor by its own next try, or by who names it. */
    wish.go_on = BATCH_GO_ON_OF;
    wish.of = first.request_id;
    wish.refuse = false;
    next = begin(h, &arena, &wish);
    assert_false(next.started.resumed);
}

/* reuse and allow: the work of a request that is named, whatever ran in between. */
static void
test_A32_a_named_request_is_gone_on_with_and_only_that(struct harness *h)
{
    scoped(arena_release) struct arena arena = {0};
    struct wish wish = {.params = "{\"a\":1}", .go_on = BATCH_ANEW};
    struct carried first = begin(h, &arena, &wish);
    struct carried other = begin(h, &arena, &wish);
    struct carried next;

    end(h, &first, OUTCOME_STOPPED);
    end(h, &other, OUTCOME_ERROR);
    wish = (struct wish){
        .params = "{\"a\":2}", .go_on = BATCH_GO_ON_OF, .of = first.request_id};
    next = begin(h, &arena, &wish);
    assert_true(next.started.resumed);
    assert_int_equal(next.started.instance_id, first.started.instance_id);
    assert_string_equal(next.started.params, "{\"a\":1}");
    /* Its instance is alive now: a second one must wait. */
    other = begin(h, &arena, &wish);
    assert_int_equal(other.r, BATCH_ALIVE);
    assert_int_equal(other.started.alive_execution_id, next.started.execution_id);
}

/* Two restarts of one request, the second claimed when the first was done. */
static void
test_A32_work_that_was_completed_meanwhile_is_not_done_again(struct harness *h)
{
    static const bool refuse[] = {false, true};
    scoped(arena_release) struct arena arena = {0};

    for (size_t i = 0; i < array_len(refuse); i++) {
        struct wish wish = {.params = "{}", .go_on = BATCH_ANEW, .refuse = refuse[i]};
        struct carried first = begin(h, &arena, &wish);
        struct carried next;
        struct carried late;

        end(h, &first, OUTCOME_ERROR);
        wish.go_on = BATCH_GO_ON_OF;
        wish.of = first.request_id;
        next = begin(h, &arena, &wish);
        assert_true(next.started.resumed);
        end(h, &next, OUTCOME_COMPLETED);
        late = begin(h, &arena, &wish);
        assert_int_equal(late.r, BATCH_DONE);
        assert_int_equal(late.started.done_request_id, next.request_id);
        assert_int_equal(harness_i64(h,
                                     "SELECT count(*) FROM pawl.execution "
                                     "WHERE request_id = %lld",
                                     (long long)late.request_id),
                         0);
    }
}

/* With one execution at a time the next instance supersedes the one before. */
static void
test_a_superseded_instance_is_not_gone_on_with(struct harness *h)
{
    scoped(arena_release) struct arena arena = {0};
    struct wish wish = {.params = "{}", .go_on = BATCH_ANEW, .refuse = true};
    struct carried first = begin(h, &arena, &wish);
    struct carried next;

    end(h, &first, OUTCOME_STOPPED);
    next = begin(h, &arena, &wish);
    end(h, &next, OUTCOME_COMPLETED);
    wish.go_on = BATCH_GO_ON_OF;
    wish.of = first.request_id;
    next = begin(h, &arena, &wish);
    assert_false(next.started.resumed);
}

/* --- how far a step had come --- */

static void
test_A22_completed_steps_are_skipped_and_the_broken_one_goes_on(struct harness *h)
{
    scoped(arena_release) struct arena arena = {0};
    const struct wish wish = {.params = "{}", .go_on = BATCH_GO_ON, .refuse = true};
    struct carried first = begin(h, &arena, &wish);
    struct batch_step_started step = begin_step(h, &arena, &first, "one", 1, false);
    struct execution execution;
    struct carried second;
    struct carried third;
    struct err err = {0};

    assert_false(step.completed);
    assert_false(step.resumed);
    assert_int_equal(step.point.chunk, 0);
    commit(h, &first, step.step_id, 1, true);
    step = begin_step(h, &arena, &first, "two", 2, false);
    commit(h, &first, step.step_id, 1, false);
    commit(h, &first, step.step_id, 2, false);
    end(h, &first, OUTCOME_STOPPED);

    second = begin(h, &arena, &wish);
    step = begin_step(h, &arena, &second, "one", 1, false);
    assert_true(step.completed);
    assert_false(step.resumed);
    step = begin_step(h, &arena, &second, "two", 2, false);
    assert_false(step.completed);
    assert_true(step.resumed);
    assert_int_equal(step.previous_token, first.claim.token.number);
    assert_int_equal(step.point.chunk, 2);
    assert_int_equal(step.point.counts.read, 20);
    assert_int_equal(step.point.counts.written, 18);
    assert_int_equal(step.point.counts.skipped, 2);
    assert_int_equal(step.point.counts.commits, 2);
    assert_string_equal(step.point.position, "at 2");
    assert_string_equal(step.point.writer_state, "state");
    end(h, &second, OUTCOME_ERROR); /* before its first chunk */

    third = begin(h, &arena, &wish);
    step = begin_step(h, &arena, &third, "two", 2, false);
    assert_true(step.resumed);
    assert_int_equal(step.point.chunk, 2);
    /* Who committed that chunk, not who only took it over. */
    assert_int_equal(step.previous_token, first.claim.token.number);
    commit(h, &third, step.step_id, 3, true);
    assert_ok(batch_execution_get(h->store, third.started.execution_id, &arena,
                                  &execution, &err),
              &err);
    assert_int_equal(execution.resumed_from, second.started.execution_id);
    assert_int_equal(execution.n_steps, 2);
    assert_int_equal(execution.steps[0].of_execution, first.started.execution_id);
    assert_int_equal(execution.steps[0].state, EXECUTION_COMPLETED);
    assert_int_equal(execution.steps[1].of_execution, third.started.execution_id);
    assert_int_equal(execution.steps[1].of_token, third.claim.token.number);
    assert_int_equal(execution.steps[1].point.counts.read, 30);
}

/* The answer to a commit was lost, and the call is made again. */
static void
test_A34_what_was_begun_is_found_when_it_is_begun_again(struct harness *h)
{
    scoped(arena_release) struct arena arena = {0};
    const struct wish wish = {
        .params = "{\"a\":1}", .go_on = BATCH_GO_ON, .refuse = true};
    struct carried first = begin(h, &arena, &wish);
    struct batch_step_started step = begin_step(h, &arena, &first, "one", 1, false);
    struct carried next;

    commit(h, &first, step.step_id, 1, false);
    end(h, &first, OUTCOME_STOPPED);
    next = begin(h, &arena, &wish);
    for (int i = 0; i < 2; i++) {
        struct batch_start_order order = {
            .job = "task",
            .one_alive = true,
            .request_id = next.request_id,
            .token = next.claim.token,
            .identity = "{\"a\":1}",
            .params = "{\"a\":1}",
            .go_on = BATCH_GO_ON,
        };
        struct batch_started again;
        struct batch_step_started step_again;
        struct err err = {0};

        assert_int_equal(batch_start(h->store, &order, &arena, &again, &err), BATCH_OK);
        assert_int_equal(again.execution_id, next.started.execution_id);
        assert_int_equal(again.instance_id, next.started.instance_id);
        assert_int_equal(again.instance_number, next.started.instance_number);
        assert_true(again.resumed);
        assert_int_equal(again.previous_execution_id, first.started.execution_id);
        assert_string_equal(again.params, "{\"a\":1}");

        step = begin_step(h, &arena, &next, "one", 1, false);
        step_again = begin_step(h, &arena, &next, "one", 1, false);
        assert_int_equal(step_again.step_id, step.step_id);
        assert_true(step_again.resumed);
        assert_int_equal(step_again.point.chunk, 1);
        assert_int_equal(step_again.previous_token, first.claim.token.number);
    }
    assert_int_equal(harness_i64(h, "SELECT count(*) FROM pawl.execution"), 2);
    assert_int_equal(harness_i64(h, "SELECT count(*) FROM pawl.step_execution"), 2);
}

/* Its file was gone, so it was done again, and counted its chunks from 1 again. */
static void
test_A22_a_step_done_again_is_gone_on_from_its_own_chunks(struct harness *h)
{
    scoped(arena_release) struct arena arena = {0};
    const struct wish wish = {.params = "{}", .go_on = BATCH_GO_ON, .refuse = true};
    struct carried first = begin(h, &arena, &wish);
    struct batch_step_started step = begin_step(h, &arena, &first, "one", 1, false);
    struct carried second;
    struct carried third;

    commit(h, &first, step.step_id, 1, true);
    end(h, &first, OUTCOME_ERROR);
    second = begin(h, &arena, &wish);
    step = begin_step(h, &arena, &second, "one", 1, true);
    commit(h, &second, step.step_id, 1, true);
    end(h, &second, OUTCOME_ERROR);
    third = begin(h, &arena, &wish);
    step = begin_step(h, &arena, &third, "one", 1, false);
    assert_true(step.completed);
    assert_int_equal(step.previous_token, second.claim.token.number);
}

static void
test_A37_a_step_that_must_run_again_begins_at_the_start(struct harness *h)
{
    scoped(arena_release) struct arena arena = {0};
    const struct wish wish = {.params = "{}", .go_on = BATCH_GO_ON, .refuse = true};
    struct carried first = begin(h, &arena, &wish);
    struct batch_step_started step = begin_step(h, &arena, &first, "fetch", 1, true);
    struct carried second;

    commit(h, &first, step.step_id, 1, true);
    end(h, &first, OUTCOME_STOPPED);
    second = begin(h, &arena, &wish);
    step = begin_step(h, &arena, &second, "fetch", 1, true);
    assert_false(step.completed);
    assert_false(step.resumed);
    assert_int_equal(step.point.chunk, 0);
    assert_int_not_equal(step.step_id, 0);
}

static void
test_a_new_instance_begins_every_step_at_the_start(struct harness *h)
{
    scoped(arena_release) struct arena arena = {0};
    const struct wish wish = {.params = "{}", .go_on = BATCH_ANEW, .refuse = true};
    struct carried first = begin(h, &arena, &wish);
    struct batch_step_started step = begin_step(h, &arena, &first, "one", 1, false);
    struct carried second;

    commit(h, &first, step.step_id, 1, true);
    end(h, &first, OUTCOME_STOPPED);
    second = begin(h, &arena, &wish);
    step = begin_step(h, &arena, &second, "one", 1, false);
    assert_false(step.completed);
    assert_false(step.resumed);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(test_A32_what_stopped_or_failed_is_gone_on_with),
        store_test(test_A32_a_differing_value_begins_anew),
        store_test(test_a_cancelled_execution_is_not_gone_on_with),
        store_test(test_A33_what_holds_a_confirmation_is_never_gone_on_with),
        store_test(test_A32_a_named_request_is_gone_on_with_and_only_that),
        store_test(test_A32_work_that_was_completed_meanwhile_is_not_done_again),
        store_test(test_A34_what_was_begun_is_found_when_it_is_begun_again),
        store_test(test_A22_a_step_done_again_is_gone_on_from_its_own_chunks),
        store_test(test_a_superseded_instance_is_not_gone_on_with),
        store_test(test_A22_completed_steps_are_skipped_and_the_broken_one_goes_on),
        store_test(test_A37_a_step_that_must_run_again_begins_at_the_start),
        store_test(test_a_new_instance_begins_every_step_at_the_start),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* History: what is old and needed by nothing goes, with all that hangs on it. */
#include "tests/store/worker/desk.h"

#include "run/prune.h"

#include <stdio.h>
#include <stdlib.h>

#define KEPT (90 * US_PER_DAY)

/* A request that ends now. */
static int64_t
ended(struct harness *h)
{
    int64_t id = submit_one(h, "other");
    struct claim claim = claim_one(h, "w1");

    finish_ok(h, id, &claim, OUTCOME_COMPLETED);
    return id;
}

/* One that waits for a time that does not come. */
static int64_t
waiting(struct harness *h)
{
    struct queue_job job = job_of("other", QUEUE_DUPLICATES_ALLOW);
    struct submit_order order = order_of(&job);

    order.not_before_us = HARNESS_NOW + 10000 * US_PER_DAY;
    return submit_order(h, &order);
}

static int64_t
instance_of(struct harness *h, int64_t id)
{
    return harness_i64(h,
                       "SELECT instance_id FROM pawl.execution WHERE request_id = %lld",
                       (long long)id);
}

/* The same with an execution: of a new instance, or of that one (0 = new). */
static int64_t
carried_out(struct desk *desk, int64_t instance)
{
    struct harness *h = desk->h;
    int64_t id = submit_one(h, "other");
    struct claim claim = claim_one(h, "w1");
    int64_t execution = desk_begin(desk, id, &claim, 1, "file");
    struct finish_order order = finish_of(id, &claim, OUTCOME_ERROR);
    struct err err = {0};

    order.execution_id = execution;
    assert_int_equal(
        batch_finish(h->store, execution, EXECUTION_FAILED, "no", &order, &err),
        BATCH_OK);
    if (instance)
        harness_sql(h,
                    "UPDATE pawl.execution SET instance_id = %lld WHERE id = %lld;"
                    "DELETE FROM pawl.instance WHERE NOT EXISTS (SELECT 1 FROM"
                    " pawl.execution e WHERE e.instance_id = instance.id)",
                    (long long)instance, (long long)execution);
    harness_sql(
        h,
        "INSERT INTO pawl.step_skip (instance_id, step, item, class, request_id,"
        " item_values, message, noted_at) VALUES (1, 'one', %lld, 'parse', %lld,"
        " '{}', 'x', 1);"
        "INSERT INTO pawl.request_calls VALUES (%lld, 1);"
        "INSERT INTO pawl.delivery (request_id, webhook, created_at, due_at)"
        " VALUES (%lld, 'shop', 1, 1)",
        (long long)id, (long long)id, (long long)id, (long long)id);
    return id;
}

static void
set(struct harness *h, int64_t id, const char *what, int64_t value)
{
    harness_sql(h, "UPDATE pawl.request SET %s = %lld WHERE id = %lld", what,
                (long long)value, (long long)id);
}

static void
prune(struct desk *desk)
{
    struct err err = {0};

    do
        assert_ok(worker_prune(&desk->worker, &err), &err);
    while (desk->worker.prune_at_us < worker_now_us(&desk->worker) + US_PER_MINUTE);
}

static bool
is_there(struct harness *h, int64_t id)
{
    int64_t requests = harness_i64(
        h, "SELECT count(*) FROM pawl.request WHERE id = %lld", (long long)id);

    assert_int_equal(requests,
                     harness_i64(h,
                                 "SELECT (SELECT count(*) FROM pawl.outcome WHERE id ="
                                 " %lld) + (SELECT count(*) FROM pawl.later WHERE %lld"
                                 " BETWEEN first_id AND last_id)",
                                 (long long)id, (long long)id));
    return requests == 1;
}

static void
open_desk(struct desk *desk, struct harness *h)
{
    desk_open(desk, h);
    desk->config.retention.history_us = KEPT;
}

static void
test_old_requests_go_page_by_page_and_young_ones_stay(struct harness *h)
{
    scoped(desk_close) struct desk desk;
    int64_t old, young, open;

    open_desk(&desk, h);
    open = waiting(h); /* since ever */
    old = ended(h);
    for (int i = 0; i < 2 * PRUNE_PAGE; i++)
        ended(h);
    desk_pass(&desk, 1);
    young = ended(h);
    desk_pass(&desk, KEPT - 1);
    prune(&desk);
    assert_true(is_there(h, old)); /* not a moment early */
    desk_pass(&desk, 1);
    prune(&desk);
    assert_false(is_there(h, old));
    assert_true(is_there(h, young));
    assert_true(is_there(h, open));
    assert_int_equal(rows_in(h, "request"), 2);
    assert_consistent(h);
}

/* Here no time passes meanwhile. */
static void
test_one_look_removes_as_many_pages_as_its_time_allows(struct harness *h)
{
    scoped(desk_close) struct desk desk;
    struct err err = {0};

    open_desk(&desk, h);
    for (int i = 0; i < 3 * PRUNE_REQUESTS; i++)
        ended(h);
    desk_pass(&desk, KEPT + 1);
    assert_ok(worker_prune(&desk.worker, &err), &err);
    assert_int_equal(rows_in(h, "request"), 0);
}

static void
test_what_hangs_on_a_request_goes_with_it_and_the_last_instance_stays(struct harness *h)
{
    scoped(desk_close) struct desk desk;
    int64_t first, last;
    char wanted[200];
    char *given_up;

    open_desk(&desk, h);
    first = carried_out(&desk, 0);
    last = carried_out(&desk, 0);
    desk_pass(&desk, 2 * KEPT);
    prune(&desk);
    assert_false(is_there(h, first));
    assert_true(is_there(h, last)); /* the next request goes on with it */
    assert_int_equal(rows_in(h, "instance"), 1);
    assert_int_equal(rows_in(h, "execution"), 1);
    assert_int_equal(rows_in(h, "step_execution"), 1);
    assert_int_equal(rows_in(h, "step_skip"), 1);
    assert_int_equal(rows_in(h, "request_calls"), 1);
    assert_int_equal(rows_in(h, "delivery"), 1);
    given_up = harness_text(h, "SELECT subject || ': ' || detail FROM pawl.audit"
                               " WHERE act = 'webhook-given-up'");
    assert_non_null(given_up);
    snprintf(wanted, sizeof(wanted),
             "request %lld: webhook shop, 0 tries: the request was removed"
             " (retention.history)",
             (long long)first);
    assert_string_equal(given_up, wanted);
    free(given_up);
    assert_int_equal(rows_in(h, "audit"), 1);
    assert_consistent(h);
}

static void
test_what_is_one_with_a_young_request_stays(struct harness *h)
{
    scoped(desk_close) struct desk desk;
    int64_t first_try, second_try, young_try, carried, young_carried, begun, restart;

    open_desk(&desk, h);
    first_try = ended(h);
    second_try = ended(h);
    set(h, second_try, "first_try", first_try);
    carried = carried_out(&desk, 0);
    begun = carried_out(&desk, 0);
    desk_pass(&desk, KEPT);
    young_try = ended(h);
    set(h, young_try, "first_try", first_try);
    young_carried = carried_out(
        &desk, instance_of(h, carried)); /* went on with the instance of carried */
    restart = waiting(h);
    set(h, restart, "restart_of", begun);
    carried_out(&desk, 0); /* the last instance is another one */
    desk_pass(&desk, KEPT);
    prune(&desk);
    assert_true(is_there(h, first_try) && is_there(h, second_try));
    assert_true(is_there(h, young_try));
    assert_true(is_there(h, carried) && is_there(h, young_carried));
    assert_true(is_there(h, begun));

    desk_pass(&desk, 1); /* and with them it goes */
    prune(&desk);
    assert_false(is_there(h, first_try) || is_there(h, second_try));
    assert_false(is_there(h, young_try));
    assert_false(is_there(h, carried) || is_there(h, young_carried));
    assert_true(is_there(h, begun) && is_there(h, restart)); /* it waits still */
    assert_consistent(h);
}

static void
test_what_something_open_names_stays(struct harness *h)
{
    scoped(desk_close) struct desk desk;
    int64_t awaited, filed, filled, slot, earlier_slot, other_try;

    open_desk(&desk, h);
    awaited = ended(h);
    filed = ended(h);
    filled = ended(h);
    other_try = ended(h);
    slot = ended(h);
    earlier_slot = ended(h);
    set(h, other_try, "first_try", filled);
    harness_sql(h,
                "INSERT INTO pawl.wait VALUES (4711, %lld);"
                "UPDATE pawl.outcome SET result_path = 'x' WHERE id = %lld;"
                "INSERT INTO pawl.backfill (job, requester, given, priority, parallel,"
                " hold_on_failure, total, passed_over, next_n, open, state, created_at)"
                " VALUES ('other', 'r', '{}', 0, 1, 0, 1, 0, 2, 0, 'RUNNING', 1);"
                "INSERT INTO pawl.backfill_item (backfill_id, n, given, state,"
                " request_id) SELECT id, 1, '{}', 'COMPLETED', %lld FROM pawl.backfill;"
                "INSERT INTO pawl.schedule_slot (schedule, slot_time, last_time, state,"
                " request_id, decided_at) VALUES ('s', 1, 1, 'fired', %lld, 1),"
                " ('s', 2, 2, 'fired', %lld, 2);"
                "INSERT INTO pawl.audit (at, actor, act, subject) VALUES"
                " (%lld, 'a', 'b', 'old'), (%lld, 'a', 'b', 'young')",
                (long long)awaited, (long long)filed, (long long)filled,
                (long long)earlier_slot, (long long)slot, (long long)HARNESS_NOW,
                (long long)(HARNESS_NOW + KEPT));
    desk_pass(&desk, KEPT + 1);
    prune(&desk);
    assert_true(is_there(h, awaited));
    assert_true(is_there(h, filed));
    assert_true(is_there(h, filled) && is_there(h, other_try));
    assert_true(is_there(h, slot));
    assert_false(is_there(h, earlier_slot));
    assert_int_equal(rows_in(h, "schedule_slot"), 1);
    assert_int_equal(rows_in(h, "audit"), 1);

    harness_sql(h, "DELETE FROM pawl.wait; UPDATE pawl.outcome SET result_gone_at = 1;"
                   "UPDATE pawl.backfill SET state = 'DONE', ended_at = 1");
    prune(&desk);
    assert_false(is_there(h, awaited) || is_there(h, filed) || is_there(h, filled));
    assert_true(is_there(h, slot));
    assert_int_equal(rows_in(h, "backfill"), 0);
    assert_int_equal(rows_in(h, "backfill_item"), 0);
    assert_consistent(h);
}

static void
test_a_request_stays_as_long_as_the_key_that_leads_to_it(struct harness *h)
{
    scoped(desk_close) struct desk desk;
    int64_t id;

    open_desk(&desk, h);
    desk.config.retention.history_us = 2 * US_PER_HOUR;
    desk.config.retention.idempotency_us = US_PER_DAY;
    id = ended(h);
    harness_sql(h,
                "INSERT INTO pawl.idempotency (subject, job, key, digest, request_id,"
                " created_at) VALUES ('s', 'other', 'k', 'd', %lld, %lld)",
                (long long)id, (long long)HARNESS_NOW);
    desk_pass(&desk, US_PER_DAY);
    prune(&desk);
    assert_int_equal(rows_in(h, "idempotency"), 1);
    assert_true(is_there(h, id)); /* asked again with that key, it is the answer */
    desk_pass(&desk, 1);
    prune(&desk);
    assert_int_equal(rows_in(h, "idempotency"), 0);
    assert_false(is_there(h, id));
}

struct plan {
    enum stmt stmt;
    char text[1000];
};

static int
read_plan(struct db *db, void *arg, struct err *err)
{
    struct plan *plan = (struct plan *)arg;
    const struct db_sql *stmt = store_sql(db, plan->stmt);
    scoped(db_rows_end) struct db_rows rows = {0};
    struct db_sql explain;
    char text[2000];
    int r;

    snprintf(text, sizeof(text), "EXPLAIN QUERY PLAN %s", stmt->text);
    explain = (struct db_sql){.name = "plan", .text = text, .n_params = stmt->n_params};
    r = db_ask(db, &explain, &rows, err, p_i64(KEPT), p_i64(PRUNE_PAGE));
    while (r == 0 && (r = db_next(&rows, err)) > 0) {
        size_t used = strlen(plan->text);

        snprintf(plan->text + used, sizeof(plan->text) - used, "%s\n",
                 db_text(&rows, 3));
        r = 0;
    }
    return r;
}

/* Each page asks; where nothing is old yet it must not look through all there is. */
static void
test_what_is_young_is_not_looked_through(struct harness *h)
{
    struct plan slots = {.stmt = STMT_PRUNE_SLOTS};
    struct plan acts = {.stmt = STMT_PRUNE_ACTS};
    struct err err = {0};

    assert_ok(store_read(h->store, read_plan, &slots, &err), &err);
    if (!strstr(slots.text, "SEARCH s USING"))
        fail_msg("%s", slots.text);
    assert_ok(store_read(h->store, read_plan, &acts, &err), &err);
    if (!strstr(acts.text, "SEARCH pawl.audit USING") || strstr(acts.text, "TEMP"))
        fail_msg("%s", acts.text);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(test_old_requests_go_page_by_page_and_young_ones_stay),
        store_test(test_one_look_removes_as_many_pages_as_its_time_allows),
        store_test(
            test_what_hangs_on_a_request_goes_with_it_and_the_last_instance_stays),
        store_test(test_what_is_one_with_a_young_request_stays),
        store_test(test_what_something_open_names_stays),
        store_test(test_a_request_stays_as_long_as_the_key_that_leads_to_it),
        store_test_sqlite(test_what_is_young_is_not_looked_through),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

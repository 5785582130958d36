/* Opening: the schema, the owner of an SQLite file, what is refused and how it says so.
 */
#include "tests/store/harness.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Take away what the harness has put in. */
static void
make_empty(struct harness *h)
{
    store_close(h->store);
    h->store = NULL;
    if (h->kind == HARNESS_SQLITE) {
        snprintf(h->url, sizeof(h->url), "sqlite:%s/other.db", h->folder);
        return;
    }
    harness_sql(h, "DROP SCHEMA pawl CASCADE");
}

static void
test_a_new_database_gets_the_schema_and_an_identity(struct harness *h)
{
    int before, now;

    assert_int_equal(harness_i64(h, "SELECT pawl_now()"), HARNESS_NOW);
    make_empty(h);
    harness_reopen(h);
    store_schema(h->store, &before, &now);
    assert_int_equal(before, 0);
    assert_true(now > 0);
    assert_int_equal(strlen(store_id(h->store)), 32);
    assert_int_equal(harness_i64(h, "SELECT max(number) FROM pawl.migration"), now);
}

static void
test_migrating_again_changes_nothing(struct harness *h)
{
    char id[64];
    int before, now;

    snprintf(id, sizeof(id), "%s", store_id(h->store));
    harness_sql(h, "INSERT INTO pawl.active (key, request_id) VALUES ('k', 7)");
    harness_reopen(h);
    store_schema(h->store, &before, &now);
    assert_int_equal(before, now);
    assert_string_equal(store_id(h->store), id);
    assert_int_equal(harness_i64(h, "SELECT request_id FROM pawl.active"), 7);
}

static void
test_a_schema_from_the_future_is_refused(struct harness *h)
{
    struct store *store = NULL;
    struct err err = {0};

    harness_sql(h, "INSERT INTO pawl.migration (number, name, applied_at)"
                   " VALUES (9999, '9999_x.sql', 0)");
    store_close(h->store);
    h->store = NULL;
    for (int migrate = 0; migrate <= 1; migrate++) {
        err_clear(&err);
        h->options.migrate = migrate;
        assert_int_equal(store_open(&h->options, &store, &err), -ERR_SCHEMA);
        assert_non_null(strstr(err.text, "9999"));
        assert_non_null(strstr(err.text, "newer"));
    }
}

static void
test_an_empty_database_is_refused_unless_it_may_be_migrated(struct harness *h)
{
    struct store *store = NULL;
    struct err err = {0};

    make_empty(h);
    h->options.migrate = false;
    assert_int_equal(store_open(&h->options, &store, &err), -ERR_SCHEMA);
    assert_non_null(strstr(err.text, "pawl migrate"));
    h->options.migrate = true;
    err_clear(&err);
    assert_ok(store_open(&h->options, &store, &err), &err);
    store_close(store);
}

struct opening {
    struct harness *h;
    struct store *store;
    struct err err;
    int r;
};

static void *
open_it(void *arg)
{
    struct opening *opening = (struct opening *)arg;

    opening->r = store_open(&opening->h->options, &opening->store, &opening->err);
    return NULL;
}

static void
test_many_who_migrate_at_once_do_it_once(struct harness *h)
{
    struct opening openings[4] = {0};
    pthread_t threads[4];

    make_empty(h);
    for (size_t i = 0; i < array_len(openings); i++) {
        openings[i].h = h;
        assert_int_equal(pthread_create(&threads[i], NULL, open_it, &openings[i]), 0);
    }
    for (size_t i = 0; i < array_len(openings); i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < array_len(openings); i++) {
        assert_ok(openings[i].r, &openings[i].err);
        assert_string_equal(store_id(openings[i].store), store_id(openings[0].store));
    }
    for (size_t i = 0; i < array_len(openings); i++)
        store_close(openings[i].store);
    assert_int_equal(
        harness_i64(h, "SELECT count(*) - count(DISTINCT number) FROM pawl.migration"),
        0);
}

static void
test_a_second_owner_is_told_who_holds_the_file(struct harness *h)
{
    struct store *store = NULL;
    struct err err = {0};
    char pid[32];

    assert_int_equal(store_open(&h->options, &store, &err), -ERR_STORE_HELD);
    snprintf(pid, sizeof(pid), "%d@", (int)getpid());
    assert_non_null(strstr(err.text, pid));
    assert_non_null(strstr(err.text, "since"));
    assert_non_null(strstr(err.text, "PostgreSQL"));
    store_close(h->store);
    h->store = NULL;
    err_clear(&err);
    assert_ok(store_open(&h->options, &store, &err), &err);
    store_close(store);
}

static void
test_a_store_in_memory_is_refused(struct harness *h)
{
    struct store_options options = {.url = "sqlite::memory:", .migrate = true};
    struct store *store = NULL;
    struct err err = {0};

    assert_int_equal(store_open(&options, &store, &err), -ERR_CONFIG);
}

/* A user with no server gets an answer, not a hanging program. */
static void
test_a_store_that_cannot_be_reached_says_so(struct harness *h)
{
    struct store_options options = {.url = "postgresql://postgres@127.0.0.1:1/none",
                                    .migrate = true};
    struct store *store = NULL;
    struct err err = {0};

    assert_int_equal(store_open(&options, &store, &err), -ERR_STORE);
    assert_non_null(strstr(err.text, "127.0.0.1"));
}

static void
test_a_role_that_is_not_there_is_told_with_who_makes_it(struct harness *h)
{
    const char *at = strchr(h->url, '@');
    char url[256];
    struct store_options options = {.url = url};
    struct store *store = NULL;
    struct err err = {0};

    snprintf(url, sizeof(url), "postgresql://pawl_nobody%s", at);
    assert_int_equal(store_open(&options, &store, &err), -ERR_STORE);
    assert_non_null(strstr(err.text, "pawl migrate"));
}

static void
test_ranges_of_ids_are_opened_ahead(struct harness *h)
{
    const long long size = 1 << 24;
    struct err err = {0};

    assert_int_equal(harness_i64(h, "SELECT pawl.open_ranges()"), 0);
    harness_sql(h, "SELECT setval('pawl.request_id', %lld)", 5 * size + 1);
    assert_ok(store_open_ranges(h->store, &err), &err);
    assert_int_equal(harness_i64(h, "SELECT pawl.open_ranges()"), 0);
    harness_sql(h,
                "INSERT INTO pawl.outcome (id, outcome, finished_at)"
                " VALUES (%lld, 'COMPLETED', 0)",
                7 * size);
    assert_int_equal(harness_i64(h, "SELECT count(*) FROM pawl.outcome_r7"), 1);
    /* Rows nobody opened a range for in time stay where they are. */
    harness_sql(h,
                "INSERT INTO pawl.outcome (id, outcome, finished_at)"
                " VALUES (%lld, 'COMPLETED', 0)",
                20 * size + 5);
    harness_sql(h, "SELECT setval('pawl.request_id', %lld)", 20 * size + 9);
    assert_int_equal(harness_i64(h, "SELECT pawl.open_ranges()"), 5);
    assert_int_equal(harness_i64(h, "SELECT count(*) FROM pawl.outcome"), 2);
}

static void
test_the_view_shows_each_state(struct harness *h)
{
    static const struct {
        int id;
        const char *status;
    } rows[] = {{1, "QUEUED"}, {2, "RUNNING"}, {3, "RUNNING"},
                {4, "DONE"},   {5, "FAILED"},  {6, "QUEUED"}};

    for (int id = 1; id <= 6; id++)
        harness_sql(h,
                    "INSERT INTO pawl.request (id, job, given, requester, source, lane,"
                    " created_at) VALUES (%d, 'j', '{}', 'me', 'api', 'normal', 1)",
                    id);
    harness_sql(h,
                "INSERT INTO pawl.ready VALUES (1, 1, 'j', 'normal', 0, 1, 1, NULL);"
                "INSERT INTO pawl.claim VALUES (2, 3, 'j', 'normal', 'w', 9, 'n', 5);"
                "INSERT INTO pawl.later VALUES (6, 6, 'j', 'normal', 0, NULL, NULL,"
                " 'paused', 1);"
                "INSERT INTO pawl.outcome (id, outcome, finished_at) VALUES"
                " (4, 'STOPPED', 7), (5, 'EXPIRED', 8)");
    for (size_t i = 0; i < array_len(rows); i++) {
        char *status = harness_text(
            h, "SELECT status FROM pawl.request_view WHERE id = %d", rows[i].id);

        assert_string_equal(status, rows[i].status);
        free(status);
    }
    assert_int_equal(harness_i64(h, "SELECT count(*) FROM pawl.request_view"), 6);
}

/* What the state machine rests on is held by the database itself. */
static void
test_A9_B9_impossible_rows_are_refused_by_the_database(struct harness *h)
{
    static const char *const statements[] = {
        "INSERT INTO pawl.ready VALUES (5, 4, 'j', 'normal', 0, 1, 1, NULL)",
        "INSERT INTO pawl.outcome (id, outcome, finished_at) VALUES (1, 'GREAT', 1)",
        "INSERT INTO pawl.outcome (id, outcome, finished_at) VALUES (9, 'ERROR', 1)",
        "INSERT INTO pawl.active VALUES ('job:a', 2)",
        "INSERT INTO pawl.execution (instance_id, job, request_id, token, state, "
        "params,"
        " started_at, last_updated) VALUES (1, 'j', 2, 2, 'STARTING', '{}', 1, 1)",
        "UPDATE pawl.execution SET ended_at = 5",
    };

    harness_sql(h, "INSERT INTO pawl.outcome (id, outcome, finished_at)"
                   " VALUES (9, 'COMPLETED', 1);"
                   "INSERT INTO pawl.active VALUES ('job:a', 1);"
                   "INSERT INTO pawl.instance (id, job, number, identity, params)"
                   " VALUES (1, 'j', 1, '{}', '{}');"
                   "INSERT INTO pawl.execution (instance_id, job, request_id, token,"
                   " state, params, started_at, last_updated)"
                   " VALUES (1, 'j', 1, 1, 'STOPPING', '{}', 1, 1)");
    for (size_t i = 0; i < array_len(statements); i++) {
        struct err err = {0};

        assert_int_equal(db_script(h->db, statements[i], &err), -ERR_DB_CONSTRAINT);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(test_a_new_database_gets_the_schema_and_an_identity),
        store_test(test_migrating_again_changes_nothing),
        store_test(test_a_schema_from_the_future_is_refused),
        store_test(test_an_empty_database_is_refused_unless_it_may_be_migrated),
        store_test_pg(test_many_who_migrate_at_once_do_it_once),
        store_test_pgbouncer(test_many_who_migrate_at_once_do_it_once),
        store_test_sqlite(test_a_second_owner_is_told_who_holds_the_file),
        store_test_sqlite(test_a_store_in_memory_is_refused),
        store_test_pg(test_a_store_that_cannot_be_reached_says_so),
        store_test_pg(test_a_role_that_is_not_there_is_told_with_who_makes_it),
        store_test_pg(test_ranges_of_ids_are_opened_ahead),
        store_test(test_the_view_shows_each_state),
        store_test(test_A9_B9_impossible_rows_are_refused_by_the_database),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

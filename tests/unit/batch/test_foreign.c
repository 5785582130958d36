/*
 * The checkpoint in a database that is not the store: what a later run has begun no
 * earlier one can write to, and a chunk follows only the one before it.
 */
#include "batch/foreign.h"

#include "base/arena.h"
#include "base/err.h"
#include "db/db.h"
#include "testdb.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct rig {
    struct testdb testdb;
    struct db *db;
    struct arena arena;
    struct err err;
};

#define ok(rig, call)                                                                  \
    do {                                                                               \
        int r_ = (call);                                                               \
        if (r_ < 0)                                                                    \
            fail_msg("%s: %s", #call, (rig)->err.text);                                \
    } while (0)

static bool
begin(struct rig *rig, enum testdb_kind kind)
{
    memset(rig, 0, sizeof(*rig));
    if (!testdb_init(&rig->testdb, kind))
        return false;
    rig->db = testdb_open(&rig->testdb);
    return true;
}

static void
end(struct rig *rig)
{
    db_close(rig->db);
    arena_release(&rig->arena);
    testdb_release(&rig->testdb);
}

static struct foreign_key
key_of(int64_t token)
{
    return (struct foreign_key){
        .store_id = "s1", .instance_id = 7, .step = "load", .token = token};
}

static int
open_as(struct rig *rig, int64_t token, struct step_point *point)
{
    struct foreign_key key = key_of(token);
    int r = foreign_open(rig->db, &key, &rig->arena, point, &rig->err);

    ok(rig, r);
    return r;
}

static int
commit_as(struct rig *rig, int64_t token, int64_t chunk)
{
    struct foreign_key key = key_of(token);
    struct step_point point = {.counts = {.read = chunk * 10, .commits = chunk},
                               .chunk = chunk,
                               .position = "{\"rows\":1}",
                               .writer_state = "{}"};
    int r = foreign_commit_in(rig->db, &key, &point, &rig->err);

    ok(rig, r);
    return r;
}

static void
a_point_is_kept_and_read_again(enum testdb_kind kind)
{
    struct step_point point = {.chunk = 99};
    struct rig rig;

    if (!begin(&rig, kind))
        skip();
    assert_int_equal(open_as(&rig, 1, &point), BATCH_OK);
    assert_int_equal(point.chunk, 0);
    assert_null(point.position);
    assert_int_equal(commit_as(&rig, 1, 1), BATCH_OK);
    assert_int_equal(commit_as(&rig, 1, 2), BATCH_OK);
    assert_int_equal(open_as(&rig, 1, &point), BATCH_OK); /* the same run again */
    assert_int_equal(open_as(&rig, 5, &point), BATCH_OK);
    assert_int_equal(point.chunk, 2);
    assert_int_equal(point.counts.read, 20);
    assert_int_equal(point.counts.commits, 2);
    assert_string_equal(point.position, "{\"rows\":1}");
    assert_string_equal(point.writer_state, "{}");
    end(&rig);
}

static void
a_run_that_wakes_late_writes_nothing(enum testdb_kind kind)
{
    struct step_point point = {0};
    struct rig rig;

    if (!begin(&rig, kind))
        skip();
    assert_int_equal(open_as(&rig, 1, &point), BATCH_OK);
    assert_int_equal(commit_as(&rig, 1, 1), BATCH_OK);
    assert_int_equal(open_as(&rig, 2, &point), BATCH_OK);
    assert_int_equal(commit_as(&rig, 1, 2), BATCH_LOST);
    assert_int_equal(open_as(&rig, 1, &point), BATCH_LOST);
    assert_int_equal(commit_as(&rig, 2, 2), BATCH_OK);
    assert_int_equal(commit_as(&rig, 2, 2), BATCH_LOST); /* a chunk only once */
    assert_int_equal(commit_as(&rig, 2, 4), BATCH_LOST); /* and none left out */
    end(&rig);
}

static void
stores_instances_and_steps_do_not_mix(enum testdb_kind kind)
{
    struct foreign_key keys[4];
    struct step_point point = {0};
    struct rig rig;

    if (!begin(&rig, kind))
        skip();
    for (size_t i = 0; i < array_len(keys); i++)
        keys[i] = key_of(3);
    keys[1].store_id = "s2";
    keys[2].instance_id = 8;
    keys[3].step = "other";
    for (size_t i = 0; i < array_len(keys); i++) {
        struct step_point next = {.chunk = 1};

        ok(&rig, foreign_open(rig.db, &keys[i], &rig.arena, &point, &rig.err));
        assert_int_equal(point.chunk, 0);
        assert_int_equal(foreign_commit_in(rig.db, &keys[i], &next, &rig.err),
                         BATCH_OK);
    }
    end(&rig);
}

/* Rows of long ago go; those of others, of the instance that is gone on with, and ours
 * of today, stay. */
static void
old_rows_are_removed(enum testdb_kind kind)
{
    static const struct db_sql count = {.name = "count",
                                        .text = "SELECT count(*) FROM pawl_checkpoint"};
    struct step_point point = {0};
    struct rig rig;
    int64_t rows = 0;

    if (!begin(&rig, kind))
        skip();
    assert_int_equal(open_as(&rig, 1, &point), BATCH_OK);
    ok(&rig, db_script(rig.db,
                       "INSERT INTO pawl_checkpoint (store_id, instance, step, token, "
                       "chunk, updated_at) VALUES ('s1', 1, 'x', 1, 1, 0), "
                       "('s2', 1, 'x', 1, 1, 0), ('s1', 7, 'x', 1, 1, 0)",
                       &rig.err));
    assert_int_equal(open_as(&rig, 2, &point), BATCH_OK);
    ok(&rig, db_query_i64(rig.db, &count, NULL, 0, &rows, &rig.err));
    assert_int_equal(rows, 3);
    end(&rig);
}

static void
test_without_the_right_to_make_the_table_the_remedy_is_told(void **state)
{
    struct step_point point = {0};
    struct foreign_key key = key_of(1);
    struct rig rig;

    if (!begin(&rig, TESTDB_PG))
        skip();
    ok(&rig, db_script(rig.db,
                       "CREATE SCHEMA closed; DO $$ BEGIN CREATE ROLE pawl_nobody; "
                       "EXCEPTION WHEN duplicate_object THEN NULL; END $$; "
                       "SET search_path = closed; SET ROLE pawl_nobody",
                       &rig.err));
    assert_int_equal(foreign_open(rig.db, &key, &rig.arena, &point, &rig.err),
                     -ERR_CONFIG);
    assert_non_null(strstr(rig.err.text, "checkpoint: none"));
    ok(&rig, db_script(rig.db, "RESET ROLE; DROP ROLE pawl_nobody", &rig.err));
    end(&rig);
}

#define on_both(fn)                                                                    \
    static void test_##fn##_on_sqlite(void **state)                                    \
    {                                                                                  \
        fn(TESTDB_SQLITE);                                                             \
    }                                                                                  \
    static void test_##fn##_on_pg(void **state)                                        \
    {                                                                                  \
        fn(TESTDB_PG);                                                                 \
    }

on_both(a_point_is_kept_and_read_again) on_both(a_run_that_wakes_late_writes_nothing)
    on_both(stores_instances_and_steps_do_not_mix) on_both(old_rows_are_removed)

#define both(fn)                                                                       \
    cmocka_unit_test(test_##fn##_on_sqlite), cmocka_unit_test(test_##fn##_on_pg)

        int main(void)
{
    const struct CMUnitTest tests[] = {
        both(a_point_is_kept_and_read_again),
        both(a_run_that_wakes_late_writes_nothing),
        both(stores_instances_and_steps_do_not_mix),
        both(old_rows_are_removed),
        cmocka_unit_test(test_without_the_right_to_make_the_table_the_remedy_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * `retry` of a step: what fails with one of its classes is tried again before `skip` or
 * the end of the step decides, each rollback is counted, and a wait ends with the run.
 */
#include "step_test.h"

/* What happens in the waits between two tries. */
static struct {
    int waits;
    int act_at;         /* at this one: */
    const char *script; /* put right what was in the way */
    enum io_stop stop;  /* somebody stops the run */
    bool cut;           /* somebody ends it at once */
    int skips;
    char message[256]; /* of the last one left out */
    char why[IO_WHY_MAX];
} story;

static struct step_test *the_test;

static void
wait_ms(struct io_ctx *io, int64_t ms)
{
    if (ms <= 0 || ++story.waits != story.act_at || !story.script)
        return;
    ok(&the_test->t, db_script(the_test->dbs[1], story.script, &the_test->t.err));
}

static bool
is_cut(struct io_ctx *io)
{
    return story.cut && story.waits >= story.act_at;
}

static enum io_stop
is_asked(struct io_ctx *io)
{
    return story.waits >= story.act_at ? story.stop : IO_GO_ON;
}

static int
take_skip(struct io_ctx *io, const struct io_skip *skip, struct err *err)
{
    story.skips++;
    snprintf(story.message, sizeof(story.message), "%s", skip->message);
    return 0;
}

static bool
begin_into(struct step_test *s, enum testdb_kind kind, const char *keys,
           const char *target)
{
    char text[700];

    if (!begin(s, kind, "{}"))
        return false;
    memset(&story, 0, sizeof(story));
    story.act_at = 1;
    the_test = s;
    s->t.io.wait_ms = wait_ms;
    s->t.io.cut = is_cut;
    s->t.io.stopped = is_asked;
    s->t.io.skip = take_skip;
    s->t.io.why = story.why;
    (void)snprintf(
        text, sizeof(text),
        "{\"name\":\"copy\",\"chunk\":10,\"retry\":{%s},\"read\":{\"sql\":\"SELECT "
        "id, name FROM city ORDER BY id\",\"database\":\"shop\"},\"write\":{"
        "%s,\"rows\":\"INSERT INTO copy (id, name) VALUES (:id, :name)\"}}",
        keys, target);
    set_def(s, text);
    return true;
}

static bool
begin_retry(struct step_test *s, enum testdb_kind kind, const char *keys)
{
    return begin_into(s, kind, keys, "\"database\":\"main\"");
}

#define TRIES "\"on\":[\"constraint\"],\"attempts\":3,\"backoff\":\"1ms\""

static void
a_chunk_that_goes_well_at_the_third_try_is_there_once(enum testdb_kind kind)
{
    struct step_result result;
    struct step_test s;

    if (!begin_retry(&s, kind, TRIES))
        skip();
    ok(&s.t, db_script(s.dbs[1], "INSERT INTO copy VALUES (13, 'there')", &s.t.err));
    story.act_at = 2;
    story.script = "DELETE FROM copy WHERE name = 'there'";
    ok(&s.t, step_run(&s.ctx, &result, &s.t.err));
    assert_int_equal(story.waits, 2);
    assert_int_equal(count(&s, "SELECT count(*) FROM copy"), ROWS);
    assert_int_equal(s.counters.read, ROWS);
    assert_int_equal(s.counters.written, ROWS);
    assert_int_equal(s.counters.commits, 3);
    assert_int_equal(s.counters.rollbacks, 2);
    assert_int_equal(s.counters.skipped, 0);
    end(&s);
}

static void
after_all_tries_skip_decides(enum testdb_kind kind)
{
    struct step_result result;
    struct step_test s;

    if (!begin_retry(&s, kind, TRIES "},\"skip\":{\"limit\":1,\"on\":[\"constraint\"]"))
        skip();
    ok(&s.t, db_script(s.dbs[1], "INSERT INTO copy VALUES (13, 'there')", &s.t.err));
    ok(&s.t, step_run(&s.ctx, &result, &s.t.err));
    assert_int_equal(story.waits, 2);
    assert_int_equal(story.skips, 1);
    assert_int_equal(count(&s, "SELECT count(*) FROM copy"), ROWS);
    assert_int_equal(s.counters.written, ROWS - 1);
    assert_int_equal(s.counters.skipped, 1);
    assert_int_equal(s.counters.rollbacks, 4); /* three times all, once the bad one */
    end(&s);
}

static void
after_all_tries_the_step_fails_and_says_so(enum testdb_kind kind)
{
    struct step_result result;
    struct step_test s;

    if (!begin_retry(&s, kind, TRIES))
        skip();
    ok(&s.t, db_script(s.dbs[1], "INSERT INTO copy VALUES (13, 'there')", &s.t.err));
    fails(&s.t, ERR_DB_CONSTRAINT, "tried 3 times",
          step_run(&s.ctx, &result, &s.t.err));
    assert_int_equal(story.waits, 2);
    assert_int_equal(s.checkpoints, 1);
    end(&s);
}

static void
another_class_is_not_tried_again(enum testdb_kind kind)
{
    struct step_result result;
    struct step_test s;

    if (!begin_retry(&s, kind, "\"on\":[\"upstream\",\"parse\"],\"backoff\":\"1ms\""))
        skip();
    ok(&s.t, db_script(s.dbs[1], "INSERT INTO copy VALUES (13, 'there')", &s.t.err));
    fails(&s.t, ERR_DB_CONSTRAINT, "row 14", step_run(&s.ctx, &result, &s.t.err));
    assert_int_equal(story.waits, 0);
    end(&s);
}

static void
a_stop_ends_the_wait_and_the_chunk_is_done_later(enum testdb_kind kind)
{
    struct step_result result;
    struct step_test s;

    if (!begin_retry(&s, kind, "\"on\":[\"constraint\"],\"attempts\":100"))
        skip();
    ok(&s.t, db_script(s.dbs[1], "INSERT INTO copy VALUES (13, 'there')", &s.t.err));
    story.act_at = 3; /* of ten slices or so */
    story.stop = IO_STOP;
    assert_int_equal(step_run(&s.ctx, &result, &s.t.err), STEP_STOPPED);
    assert_int_equal(story.waits, 3);
    assert_int_equal(s.checkpoints, 1);
    ok(&s.t, db_script(s.dbs[1], "DELETE FROM copy WHERE name = 'there'", &s.t.err));
    story.stop = IO_GO_ON;
    resume(&s);
    ok(&s.t, step_run(&s.ctx, &result, &s.t.err));
    assert_int_equal(count(&s, "SELECT count(*) FROM copy"), ROWS);
    assert_int_equal(s.counters.written, ROWS);
    end(&s);
}

static void
a_cancel_ends_the_wait_at_once(enum testdb_kind kind)
{
    struct step_result result;
    struct step_test s;

    if (!begin_retry(&s, kind, "\"on\":[\"constraint\"],\"attempts\":100"))
        skip();
    ok(&s.t, db_script(s.dbs[1], "INSERT INTO copy VALUES (13, 'there')", &s.t.err));
    story.act_at = 2;
    story.cut = true;
    fails(&s.t, ERR_TIMEOUT, "cut off", step_run(&s.ctx, &result, &s.t.err));
    assert_int_equal(story.waits, 2);
    end(&s);
}

#define NO_CHECKPOINT "\"database\":\"shop\",\"checkpoint\":\"none\""

static void
without_a_checkpoint_there_a_chunk_is_tried_again_too(enum testdb_kind kind)
{
    struct step_result result;
    struct step_test s;

    if (!begin_into(&s, kind, TRIES, NO_CHECKPOINT))
        skip();
    ok(&s.t, db_script(s.dbs[1], "INSERT INTO copy VALUES (13, 'there')", &s.t.err));
    story.act_at = 2;
    story.script = "DELETE FROM copy WHERE name = 'there'";
    ok(&s.t, step_run(&s.ctx, &result, &s.t.err));
    assert_int_equal(count(&s, "SELECT count(*) FROM copy"), ROWS);
    assert_int_equal(s.counters.written, ROWS);
    assert_int_equal(s.counters.rollbacks, 2);
    end(&s);
}

static void
without_a_checkpoint_there_skip_finds_the_bad_items_too(enum testdb_kind kind)
{
    struct step_result result;
    struct step_test s;

    if (!begin_into(&s, kind, TRIES "},\"skip\":{\"limit\":2,\"on\":[\"constraint\"]",
                    NO_CHECKPOINT))
        skip();
    /* The second one is the last of all: the step ends nonetheless. */
    ok(&s.t, db_script(s.dbs[1], "INSERT INTO copy VALUES (13, 'there'), (24, 'there')",
                       &s.t.err));
    ok(&s.t, step_run(&s.ctx, &result, &s.t.err));
    assert_int_equal(story.skips, 2);
    assert_non_null(strstr(story.message, "row 24"));
    assert_true(s.last);
    assert_int_equal(count(&s, "SELECT count(*) FROM copy WHERE name <> 'there'"),
                     ROWS - 2);
    assert_int_equal(s.counters.read, ROWS);
    assert_int_equal(s.counters.written, ROWS - 2);
    assert_int_equal(s.counters.skipped, 2);
    end(&s);
}

/* Only the commit tells, and only PostgreSQL keeps such a promise of a user's table. */
static void
a_constraint_that_is_deferred_is_of_its_item_too(enum testdb_kind kind)
{
    static const char *const targets[] = {"\"database\":\"main\"", NO_CHECKPOINT};

    for (size_t i = 0; i < array_len(targets); i++) {
        struct step_result result;
        struct step_test s;

        if (kind != TESTDB_PG ||
            !begin_into(&s, kind,
                        "\"on\":[\"upstream\"]},\"skip\":{\"limit\":1,\"on\":["
                        "\"constraint\"]",
                        targets[i]))
            skip();
        ok(&s.t, db_script(s.dbs[1],
                           "CREATE TABLE known (id int PRIMARY KEY);"
                           "INSERT INTO known SELECT id FROM city WHERE id <> 13;"
                           "ALTER TABLE copy ADD FOREIGN KEY (id) REFERENCES known "
                           "DEFERRABLE INITIALLY DEFERRED",
                           &s.t.err));
        ok(&s.t, step_run(&s.ctx, &result, &s.t.err));
        assert_int_equal(story.skips, 1);
        assert_non_null(strstr(story.message, "Key (id)=(13) is not present"));
        assert_int_equal(count(&s, "SELECT count(*) FROM copy"), ROWS - 1);
        assert_int_equal(s.counters.written, ROWS - 1);
        end(&s);
    }
}

#define CAST "\"process\":{\"map\":{\"cast\":{\"name\":\"integer\"}}},"

/* Names are no numbers, but of the items 0 to 11. */
static void
numbers(struct step_test *s)
{
    ok(&s->t,
       db_script(s->dbs[1], "UPDATE city SET name = '7' WHERE id <> 12", &s->t.err));
}

static void
an_item_is_processed_again_and_then_left_out(enum testdb_kind kind)
{
    struct step_result result;
    struct step_test s;

    if (!begin_retry(&s, kind,
                     "\"on\":[\"parse\"],\"attempts\":4,\"backoff\":\"1ms\"}," CAST
                     "\"skip\":{\"limit\":1,\"on\":[\"parse\"]"))
        skip();
    numbers(&s);
    ok(&s.t, step_run(&s.ctx, &result, &s.t.err));
    assert_int_equal(story.waits, 3);
    assert_int_equal(story.skips, 1);
    assert_non_null(strstr(story.message, "tried 4 times"));
    assert_int_equal(count(&s, "SELECT count(*) FROM copy"), ROWS - 1);
    assert_int_equal(s.counters.skipped, 1);
    assert_int_equal(s.counters.rollbacks, 0); /* nothing was written yet */
    end(&s);
}

static void
a_stop_while_an_item_waits_keeps_what_is_done(enum testdb_kind kind)
{
    struct step_result result;
    struct step_test s;

    if (!begin_retry(&s, kind,
                     "\"on\":[\"parse\"],\"attempts\":100}," CAST
                     "\"skip\":{\"limit\":1,\"on\":[\"parse\"]"))
        skip();
    numbers(&s);
    story.act_at = 2;
    story.stop = IO_STOP;
    assert_int_equal(step_run(&s.ctx, &result, &s.t.err), STEP_STOPPED);
    assert_int_equal(count(&s, "SELECT count(*) FROM copy"), 12);
    assert_int_equal(s.counters.read, 12);
    ok(&s.t, db_script(s.dbs[1], "UPDATE city SET name = '8' WHERE id = 12", &s.t.err));
    story.stop = IO_GO_ON;
    resume(&s);
    ok(&s.t, step_run(&s.ctx, &result, &s.t.err));
    assert_int_equal(count(&s, "SELECT count(*) FROM copy"), ROWS);
    assert_int_equal(s.counters.read, ROWS);
    assert_int_equal(s.counters.written, ROWS);
    assert_int_equal(story.skips, 0);
    end(&s);
}

/* The one too many stays pending; what was made of those behind it is not lost. */
static void
a_limit_met_in_the_search_keeps_the_rest_of_the_chunk(enum testdb_kind kind)
{
    struct step_result result;
    struct step_test s;

    if (!begin_retry(&s, kind,
                     "\"on\":[\"upstream\"]},\"process\":{\"map\":{\"set\":{\"name\":"
                     "\"n\"}}},\"skip\":{\"limit\":1,\"on\":[\"constraint\"]"))
        skip();
    ok(&s.t, db_script(s.dbs[1],
                       "INSERT INTO copy VALUES (13, 'there'), (16, 'there'), "
                       "(19, 'there')",
                       &s.t.err));
    fails(&s.t, ERR_INVALID, "more than 1 items", step_run(&s.ctx, &result, &s.t.err));
    assert_int_equal(count(&s, "SELECT count(*) FROM copy WHERE name = 'n'"), 17);
    assert_int_equal(s.counters.read, 18);
    assert_int_equal(s.counters.written, 17);
    assert_int_equal(s.counters.skipped, 1);
    assert_int_equal(s.counters.rollbacks, 4); /* the chunk, and each bad one */
    ok(&s.t, db_script(s.dbs[1],
                       "DELETE FROM copy WHERE id IN (16, 19) AND name = "
                       "'there'",
                       &s.t.err));
    resume(&s);
    ok(&s.t, step_run(&s.ctx, &result, &s.t.err));
    assert_int_equal(count(&s, "SELECT count(*) FROM copy WHERE name = 'n'"), ROWS - 1);
    assert_int_equal(s.counters.read, ROWS);
    assert_int_equal(s.counters.written, ROWS - 1);
    assert_int_equal(s.counters.skipped, 1);
    assert_int_equal(story.skips, 1);
    end(&s);
}

on_both(a_chunk_that_goes_well_at_the_third_try_is_there_once);
on_both(after_all_tries_skip_decides);
on_both(after_all_tries_the_step_fails_and_says_so);
on_both(another_class_is_not_tried_again);
on_both(a_stop_ends_the_wait_and_the_chunk_is_done_later);
on_both(a_cancel_ends_the_wait_at_once);
on_both(without_a_checkpoint_there_a_chunk_is_tried_again_too);
on_both(without_a_checkpoint_there_skip_finds_the_bad_items_too);
on_both(a_constraint_that_is_deferred_is_of_its_item_too);
on_both(an_item_is_processed_again_and_then_left_out);
on_both(a_stop_while_an_item_waits_keeps_what_is_done);
on_both(a_limit_met_in_the_search_keeps_the_rest_of_the_chunk);

int
main(void)
{
    const struct CMUnitTest tests[] = {
        both(a_chunk_that_goes_well_at_the_third_try_is_there_once),
        both(after_all_tries_skip_decides),
        both(after_all_tries_the_step_fails_and_says_so),
        both(another_class_is_not_tried_again),
        both(a_stop_ends_the_wait_and_the_chunk_is_done_later),
        both(a_cancel_ends_the_wait_at_once),
        both(without_a_checkpoint_there_a_chunk_is_tried_again_too),
        both(without_a_checkpoint_there_skip_finds_the_bad_items_too),
        both(a_constraint_that_is_deferred_is_of_its_item_too),
        both(an_item_is_processed_again_and_then_left_out),
        both(a_stop_while_an_item_waits_keeps_what_is_done),
        both(a_limit_met_in_the_search_keeps_the_rest_of_the_chunk),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

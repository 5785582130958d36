/*
 * The chunk step: what a checkpoint covers is never repeated and never skipped,
 * and it ends only at a chunk's border.
 */
#include "step_test.h"

static void
export_def(struct step_test *s, const char *file)
{
    char text[256];

    (void)snprintf(
        text, sizeof(text),
        "{\"name\":\"export\",\"chunk\":10,\"read\":{\"sql\":\"SELECT * FROM "
        "city WHERE id >= :min ORDER BY id\",\"database\":\"shop\"},\"write\":"
        "{\"file\":\"%s\"}}",
        file);
    set_def(s, text);
}

static void
an_export_counts_its_rows_and_names_its_file(enum testdb_kind kind)
{
    struct step_result result;
    scoped(buf_release) struct buf file = {0};
    struct step_test s;

    if (!begin(&s, kind, "{\"min\":0,\"country\":\"K/R\",\"format\":\"csv\"}"))
        skip();
    export_def(&s, "cities-{country}.{format}");
    assert_int_equal(step_run(&s.ctx, &result, &s.t.err), STEP_COMPLETED);
    assert_string_equal(result.name, "cities-K_R.csv");
    assert_string_equal(result.content_type, "text/csv; charset=utf-8");
    assert_string_equal(result.part_path, s.t.part);
    assert_int_equal(result.rows, ROWS);
    read_file(s.t.part, &file);
    assert_int_equal(result.bytes, file.len);
    assert_memory_equal(file.data, "id,name\r\n0,도시 0\r\n1,", 22);
    assert_int_equal(s.checkpoints, 3);
    assert_true(s.last);
    assert_int_equal(s.counters.read, ROWS);
    assert_int_equal(s.counters.written, ROWS);
    assert_int_equal(s.counters.commits, 3);
    assert_int_equal(s.progress_done, ROWS);
    end(&s);
}

static void
no_rows_are_a_result_too(enum testdb_kind kind)
{
    struct step_result result;
    struct step_test s;

    if (!begin(&s, kind, "{\"min\":1000}"))
        skip();
    export_def(&s, "none.xlsx");
    assert_int_equal(step_run(&s.ctx, &result, &s.t.err), STEP_COMPLETED);
    assert_int_equal(result.rows, 0);
    assert_true(result.bytes > 0);
    assert_int_equal(s.checkpoints, 1);
    assert_true(s.last);
    end(&s);
}

static void
B28_a_stop_ends_at_a_border_and_the_next_run_makes_the_same_file(enum testdb_kind kind)
{
    static const char *const files[] = {"a.csv", "a.jsonl", "a.xlsx"};

    for (size_t i = 0; i < array_len(files); i++) {
        scoped(buf_release) struct buf whole = {0};
        scoped(buf_release) struct buf again = {0};
        struct step_result result;
        struct step_test s;

        if (!begin(&s, kind, "{\"min\":0}"))
            skip();
        export_def(&s, files[i]);
        assert_int_equal(step_run(&s.ctx, &result, &s.t.err), STEP_COMPLETED);
        read_file(s.t.part, &whole);
        s.checkpoints = 0;
        s.progress_done = 0;
        s.stop_after = 1;
        s.stop_as = IO_STOP;
        assert_int_equal(step_run(&s.ctx, &result, &s.t.err), STEP_STOPPED);
        assert_int_equal(s.checkpoints, 1);
        assert_int_equal(s.counters.written, 10);
        assert_false(s.last);
        resume(&s);
        assert_int_equal(step_run(&s.ctx, &result, &s.t.err), STEP_COMPLETED);
        assert_int_equal(s.checkpoints, 3);
        assert_int_equal(s.counters.written, ROWS);
        assert_int_equal(s.counters.commits, 3);
        assert_int_equal(result.rows, ROWS);
        read_file(s.t.part, &again);
        assert_int_equal(again.len, whole.len);
        assert_memory_equal(again.data, whole.data, whole.len);
        end(&s);
    }
}

static void
B28_a_cancel_is_seen_at_the_next_border(enum testdb_kind kind)
{
    struct step_result result;
    struct step_test s;

    if (!begin(&s, kind, "{\"min\":0}"))
        skip();
    export_def(&s, "a.csv");
    s.stop_after = 2;
    s.stop_as = IO_CANCEL;
    assert_int_equal(step_run(&s.ctx, &result, &s.t.err), STEP_CANCELLED);
    assert_int_equal(s.checkpoints, 2);
    assert_int_equal(step_run(&s.ctx, &result, &s.t.err), STEP_CANCELLED);
    assert_int_equal(s.checkpoints, 2); /* not one row more */
    end(&s);
}

static void
a_part_that_is_gone_starts_the_step_at_zero_and_says_so(enum testdb_kind kind)
{
    struct step_result result;
    struct step_test s;

    if (!begin(&s, kind, "{\"min\":0}"))
        skip();
    export_def(&s, "a.csv");
    s.stop_after = 1;
    s.stop_as = IO_STOP;
    assert_int_equal(step_run(&s.ctx, &result, &s.t.err), STEP_STOPPED);
    fs_remove_quietly(s.t.part);
    resume(&s);
    assert_int_equal(step_run(&s.ctx, &result, &s.t.err), STEP_COMPLETED);
    assert_int_equal(result.rows, ROWS);
    assert_int_equal(s.counters.read, ROWS);
    assert_int_equal(s.counters.commits, s.checkpoints); /* as the place counts */
    assert_non_null(strstr(s.message, "started over"));
    end(&s);
}

static void
copy_def(struct step_test *s, const char *write)
{
    char text[400];

    (void)snprintf(
        text, sizeof(text),
        "{\"name\":\"copy\",\"chunk\":10,\"read\":{\"sql\":\"SELECT id, name "
        "FROM city ORDER BY id\",\"database\":\"shop\"},\"write\":%s}",
        write);
    set_def(s, text);
}

static void
rows_for_main_commit_with_their_checkpoint_or_not_at_all(enum testdb_kind kind)
{
    struct step_result result;
    struct step_test s;

    if (!begin(&s, kind, "{}"))
        skip();
    copy_def(&s, "{\"database\":\"main\",\"table\":\"copy\"}");
    assert_string_equal(step_effect(s.def), "transactional");
    s.lost_at = 2;
    assert_int_equal(step_run(&s.ctx, &result, &s.t.err), STEP_LOST);
    assert_int_equal(count(&s, "SELECT count(*) FROM copy"), 10);
    assert_int_equal(s.counters.written, 10);
    resume(&s);
    assert_int_equal(step_run(&s.ctx, &result, &s.t.err), STEP_COMPLETED);
    assert_int_equal(count(&s, "SELECT count(*) FROM copy"), ROWS);
    assert_int_equal(s.counters.written, ROWS);
    assert_string_equal(result.name, "");
    end(&s);
}

static void
without_a_checkpoint_there_rows_commit_before_the_checkpoint(enum testdb_kind kind)
{
    struct step_result result;
    struct step_test s;

    if (!begin(&s, kind, "{}"))
        skip();
    copy_def(&s, "{\"database\":\"shop\",\"checkpoint\":\"none\",\"rows\":\"INSERT "
                 "INTO copy (id, name) VALUES "
                 "(:id, :name)\"}");
    assert_string_equal(step_effect(s.def), "at-least-once");
    assert_int_equal(step_run(&s.ctx, &result, &s.t.err), STEP_COMPLETED);
    assert_int_equal(count(&s, "SELECT count(*) FROM copy"), ROWS);
    assert_int_equal(s.checkpoints, 3);
    end(&s);
}

static void
a_failing_row_ends_the_step_with_its_cause(enum testdb_kind kind)
{
    struct step_result result;
    struct step_test s;

    if (!begin(&s, kind, "{}"))
        skip();
    ok(&s.t, db_script(s.dbs[1], "INSERT INTO copy VALUES (15, 'there')", &s.t.err));
    copy_def(&s, "{\"database\":\"main\",\"rows\":\"INSERT INTO copy (id, name) VALUES "
                 "(:id, :name)\"}");
    fails(&s.t, ERR_DB_CONSTRAINT, "row 16", step_run(&s.ctx, &result, &s.t.err));
    assert_int_equal(count(&s, "SELECT count(*) FROM copy"), 11);
    assert_int_equal(s.checkpoints, 1);
    end(&s);
}

static int
note_nothing(struct io_ctx *io, const struct io_skip *skip, struct err *err)
{
    return 0;
}

/* Counted among the rows that are written, whatever was rolled back before. */
static int
note_row_4(struct io_ctx *io, const struct io_skip *skip, struct err *err)
{
    assert_int_equal(skip->item, 4);
    assert_non_null(strstr(skip->message, "row 4"));
    return 0;
}

/* While the bad row is searched for each commit counts what it covers, and no more: a
 * crash between two of them would count the rest again. */
static void
A22_a_search_for_a_bad_row_counts_what_it_commits(enum testdb_kind kind)
{
    struct step_result result;
    struct step_test s;

    if (!begin(&s, kind, "{}"))
        skip();
    s.t.io.skip = note_nothing;
    ok(&s.t, db_script(s.dbs[1], "INSERT INTO copy VALUES (3, 'there')", &s.t.err));
    set_def(&s, "{\"name\":\"copy\",\"chunk\":10,\"skip\":{\"limit\":1,\"on\":["
                "\"constraint\"]},\"read\":{\"sql\":\"SELECT id, name FROM city ORDER "
                "BY id\",\"database\":\"shop\"},\"write\":{\"database\":\"main\","
                "\"rows\":\"INSERT INTO copy (id, name) VALUES (:id, :name)\"}}");
    s.lost_at = 6; /* rows 0, 1, 2, (3), 4, 5 */
    s.t.io.skip = note_row_4;
    assert_int_equal(step_run(&s.ctx, &result, &s.t.err), STEP_LOST);
    for (int i = 0; i < 3; i++)
        assert_int_equal(s.reads[i], i + 1);
    assert_int_equal(s.counters.read, 6);
    assert_int_equal(s.counters.written, 5);
    assert_int_equal(s.counters.skipped, 1);
    resume(&s);
    assert_int_equal(step_run(&s.ctx, &result, &s.t.err), STEP_COMPLETED);
    assert_int_equal(count(&s, "SELECT count(*) FROM copy"), ROWS);
    assert_int_equal(s.counters.read, ROWS);
    assert_int_equal(s.counters.written, ROWS - 1);
    assert_int_equal(s.counters.skipped, 1);
    end(&s);
}

/* A row that the database refuses and a line that is none, in one chunk. */
static void
A38_a_bad_line_behind_a_refused_row_is_counted(enum testdb_kind kind)
{
    static const char lines[] = "name,id\na,1\nb,2\nc,3\nd,4\ne,x\nf,6\ng,7\n";
    struct step_result result;
    char csv[128], def[512];
    struct step_test s;

    if (!begin(&s, kind, "{}"))
        skip();
    s.t.io.skip = note_nothing;
    ok(&s.t, db_script(s.dbs[1], "INSERT INTO copy VALUES (3, 'there')", &s.t.err));
    (void)snprintf(csv, sizeof(csv), "%s/in.csv", s.t.folder);
    write_file(csv, lines, sizeof(lines) - 1);
    (void)snprintf(def, sizeof(def),
                   "{\"name\":\"load\",\"chunk\":10,\"skip\":{\"limit\":2,\"on\":["
                   "\"format\",\"constraint\"]},\"read\":{\"csv\":\"%s\","
                   "\"columns\":{\"id\":\"integer\"}},\"write\":{\"database\":"
                   "\"main\",\"rows\":\"INSERT INTO copy (id, name) VALUES (:id, "
                   ":name)\"}}",
                   csv);
    set_def(&s, def);
    ok(&s.t, step_run(&s.ctx, &result, &s.t.err));
    assert_int_equal(count(&s, "SELECT count(*) FROM copy"), 6);
    assert_int_equal(s.counters.read, 7);
    assert_int_equal(s.counters.written, 5);
    assert_int_equal(s.counters.skipped, 2);
    assert_int_equal(s.reads[2], 5); /* after rows 1 and 2: all others, and the line */
    end(&s);
}

static void
a_full_disk_fails_the_step_by_its_name(enum testdb_kind kind)
{
    struct step_result result;
    struct step_test s;

    if (!begin(&s, kind, "{\"min\":0}"))
        skip();
    export_def(&s, "a.csv");
    s.t.io.part_path = "/dev/full";
    fails(&s.t, ERR_DISK_FULL, "/dev/full", step_run(&s.ctx, &result, &s.t.err));
    assert_int_equal(s.checkpoints, 0);
    end(&s);
}

on_both(A22_a_search_for_a_bad_row_counts_what_it_commits);
on_both(A38_a_bad_line_behind_a_refused_row_is_counted);
on_both(an_export_counts_its_rows_and_names_its_file);
on_both(no_rows_are_a_result_too);
on_both(B28_a_stop_ends_at_a_border_and_the_next_run_makes_the_same_file);
on_both(B28_a_cancel_is_seen_at_the_next_border);
on_both(a_part_that_is_gone_starts_the_step_at_zero_and_says_so);
on_both(rows_for_main_commit_with_their_checkpoint_or_not_at_all);
on_both(without_a_checkpoint_there_rows_commit_before_the_checkpoint);
on_both(a_failing_row_ends_the_step_with_its_cause);
on_both(a_full_disk_fails_the_step_by_its_name);

int
main(void)
{
    const struct CMUnitTest tests[] = {
        both(A22_a_search_for_a_bad_row_counts_what_it_commits),
        both(A38_a_bad_line_behind_a_refused_row_is_counted),
        both(an_export_counts_its_rows_and_names_its_file),
        both(no_rows_are_a_result_too),
        both(B28_a_stop_ends_at_a_border_and_the_next_run_makes_the_same_file),
        both(B28_a_cancel_is_seen_at_the_next_border),
        both(a_part_that_is_gone_starts_the_step_at_zero_and_says_so),
        both(rows_for_main_commit_with_their_checkpoint_or_not_at_all),
        both(without_a_checkpoint_there_rows_commit_before_the_checkpoint),
        both(a_failing_row_ends_the_step_with_its_cause),
        both(a_full_disk_fails_the_step_by_its_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A file that is loaded: read on after a stop, or all of it again. */
#include "step_test.h"

static void
a_csv_is_loaded_with_types_and_goes_on_after_a_stop(enum testdb_kind kind)
{
    struct step_result result;
    char csv[128], def[512];
    scoped(buf_release) struct buf file = {0};
    struct step_test s;

    if (!begin(&s, kind, "{}"))
        skip();
    buf_init(&file, 0);
    buf_add_str(&file, "name,id\n");
    for (int i = 0; i < ROWS; i++)
        buf_addf(&file, "\"도시\n%d\",%d\n", i, i);
    (void)snprintf(csv, sizeof(csv), "%s/in.csv", s.t.folder);
    write_file(csv, file.data, file.len);
    (void)snprintf(
        def, sizeof(def),
        "{\"name\":\"load\",\"chunk\":7,\"read\":{\"csv\":\"%s\",\"columns\":{"
        "\"id\":\"integer\"}},\"write\":{\"database\":\"main\",\"table\":"
        "\"copy\"}}",
        csv);
    set_def(&s, def);
    s.stop_after = 2;
    s.stop_as = IO_STOP;
    assert_int_equal(step_run(&s.ctx, &result, &s.t.err), STEP_STOPPED);
    assert_int_equal(count(&s, "SELECT count(*) FROM copy"), 14);
    resume(&s);
    assert_int_equal(step_run(&s.ctx, &result, &s.t.err), STEP_COMPLETED);
    assert_int_equal(count(&s, "SELECT count(*) FROM copy"), ROWS);
    assert_int_equal(count(&s, "SELECT sum(id) FROM copy"), ROWS * (ROWS - 1) / 2);
    assert_int_equal(s.counters.read, ROWS);
    end(&s);
}

/* name,id in ascending order, or the other way round. */
static void
put_cities(struct step_test *s, const char *path, bool reversed)
{
    scoped(buf_release) struct buf file = {0};

    buf_init(&file, 0);
    buf_add_str(&file, "name,id\n");
    for (int i = 0; i < ROWS; i++)
        buf_addf(&file, "도시,%d\n", reversed ? ROWS - 1 - i : i);
    write_file(path, file.data, file.len);
}

/* The step stops, the file comes anew the other way round, the step goes on. */
static void
stop_and_come_again(struct step_test *s, const char *write)
{
    struct step_result result;
    char csv[128], def[512];

    (void)snprintf(csv, sizeof(csv), "%s/in.csv", s->t.folder);
    put_cities(s, csv, false);
    (void)snprintf(def, sizeof(def),
                   "{\"name\":\"load\",\"chunk\":7,\"read\":{\"csv\":\"%s\","
                   "\"columns\":{\"id\":\"integer\"},\"restart\":\"beginning\"},"
                   "\"write\":%s}",
                   csv, write);
    set_def(s, def);
    s->stop_after = 2;
    s->stop_as = IO_STOP;
    assert_int_equal(step_run(&s->ctx, &result, &s->t.err), STEP_STOPPED);
    assert_int_equal(s->counters.written, 14);
    put_cities(s, csv, true);
    resume(s);
    s->progress_done = 0;
    ok(&s->t, step_run(&s->ctx, &result, &s->t.err));
}

static void
A38_a_file_that_comes_in_another_order_is_loaded_whole(enum testdb_kind kind)
{
    struct step_test s;

    if (!begin(&s, kind, "{}"))
        skip();
    stop_and_come_again(&s, "{\"database\":\"main\",\"table\":\"copy\",\"mode\":"
                            "\"upsert\",\"key\":[\"id\"]}");
    assert_int_equal(count(&s, "SELECT count(DISTINCT id) FROM copy"), ROWS);
    assert_int_equal(count(&s, "SELECT sum(id) FROM copy"), ROWS * (ROWS - 1) / 2);
    end(&s);
}

/* A file has no key: it would have the first rows twice, so it is started over. */
static void
A38_a_result_file_is_started_over_when_all_is_read_again(enum testdb_kind kind)
{
    scoped(buf_release) struct buf file = {0};
    struct step_test s;

    if (!begin(&s, kind, "{}"))
        skip();
    stop_and_come_again(&s, "{\"file\":\"a.jsonl\"}");
    read_file(s.t.part, &file);
    assert_int_equal(s.counters.written, ROWS);
    assert_memory_equal(buf_str(&file), "{\"name\":\"도시\",\"id\":24}\n", 26);
    for (int i = 0; i < ROWS; i++) {
        char id[32];
        const char *found;

        (void)snprintf(id, sizeof(id), "\"id\":%d}", i);
        found = strstr(buf_str(&file), id);
        assert_non_null(found);
        assert_null(strstr(found + 1, id));
    }
    end(&s);
}

on_both(a_csv_is_loaded_with_types_and_goes_on_after_a_stop);
on_both(A38_a_file_that_comes_in_another_order_is_loaded_whole);
on_both(A38_a_result_file_is_started_over_when_all_is_read_again);

int
main(void)
{
    const struct CMUnitTest tests[] = {
        both(a_csv_is_loaded_with_types_and_goes_on_after_a_stop),
        both(A38_a_file_that_comes_in_another_order_is_loaded_whole),
        both(A38_a_result_file_is_started_over_when_all_is_read_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

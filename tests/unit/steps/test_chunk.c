/*
 * The chunk step: what a checkpoint covers is never repeated and never skipped,
 * and it ends only at a chunk's border.
 */
#include "../io/io_test.h"

#include "db/db.h"
#include "io/cell_text.h"
#include "steps/step.h"
#include "testdb.h"

#define ROWS 25

/* What a run would be above the step: databases, a stored checkpoint, wishes. */
struct step_test {
    struct io_test t;
    struct testdb testdb;
    struct db *dbs[4]; /* shop read, shop write, main read, main write */
    struct step_ctx ctx;
    json_t *def;
    char position[256];
    char state[2048];
    struct step_counters counters;
    int checkpoints;
    int stop_after; /* checkpoints; 0 = never */
    enum io_stop stop_as;
    int lost_at;       /* the checkpoint that finds the token stale */
    int64_t reads[40]; /* what each checkpoint counted as read */
    int64_t progress_done;
    char message[128];
    bool last;
};

static struct step_test *
test_of(struct io_ctx *io)
{
    struct io_test *t = io->owner;

    return container_of(t, struct step_test, t);
}

static int
give_database(struct io_ctx *io, const char *name, enum io_db_use use,
              struct db **ret_db, struct err *err)
{
    struct step_test *s = test_of(io);

    *ret_db = s->dbs[(strcmp(name, "main") == 0 ? 2 : 0) + (use == IO_DB_WRITE)];
    return 0;
}

static enum io_stop
is_stopped(struct io_ctx *io)
{
    struct step_test *s = test_of(io);

    return s->stop_after && s->checkpoints >= s->stop_after ? s->stop_as : IO_GO_ON;
}

static void
take_progress(struct io_ctx *io, int64_t done, int64_t total, const char *message)
{
    struct step_test *s = test_of(io);

    assert_true(done >= s->progress_done || message);
    s->progress_done = done;
    if (message)
        (void)snprintf(s->message, sizeof(s->message), "%s", message);
}

static void
take_note(void *arg, const char *text)
{
    struct step_test *s = arg;

    (void)snprintf(s->message, sizeof(s->message), "%s", text);
}

/* As run does it: rows and checkpoint in one transaction. */
static int
take_checkpoint(void *arg, const struct step_checkpoint *cp, struct err *err)
{
    struct step_test *s = arg;
    scoped(db_tx_end) struct db_tx tx = {0};

    ok(&s->t, db_begin(s->dbs[3], DB_WRITE, &tx, err));
    if (cp->apply) {
        int r = cp->apply(cp->apply_arg, s->dbs[3], err);

        if (r < 0)
            return r;
    }
    if (++s->checkpoints == s->lost_at)
        return STEP_LOST; /* rolled back */
    ok(&s->t, db_commit(&tx, err));
    (void)snprintf(s->position, sizeof(s->position), "%s", cp->reader_position);
    (void)snprintf(s->state, sizeof(s->state), "%s", cp->writer_state);
    s->counters = cp->counters;
    s->last = cp->last;
    if (s->checkpoints <= (int)array_len(s->reads))
        s->reads[s->checkpoints - 1] = cp->counters.read;
    return 0;
}

static bool
begin(struct step_test *s, enum testdb_kind kind, const char *params)
{
    memset(s, 0, sizeof(*s));
    if (!testdb_init(&s->testdb, kind))
        return false;
    io_test_init(&s->t, params);
    s->t.io.database = give_database;
    s->t.io.stopped = is_stopped;
    s->t.io.progress = take_progress;
    for (size_t i = 0; i < array_len(s->dbs); i++)
        s->dbs[i] = testdb_open(&s->testdb);
    if (kind == TESTDB_SQLITE) /* as the store is: a reader blocks no writer */
        ok(&s->t, db_script(s->dbs[1], "PRAGMA journal_mode=WAL", &s->t.err));
    s->ctx.io = &s->t.io;
    s->ctx.total_rows = ROWS;
    s->ctx.checkpoint = take_checkpoint;
    s->ctx.checkpoint_arg = s;
    s->ctx.note = take_note;
    s->ctx.note_arg = s;
    ok(&s->t, db_script(s->dbs[1],
                        "CREATE TABLE city (id int PRIMARY KEY, name text);"
                        "CREATE TABLE copy (id int PRIMARY KEY, name text)",
                        &s->t.err));
    for (int i = 0; i < ROWS; i++) {
        char text[80];

        (void)snprintf(text, sizeof(text), "INSERT INTO city VALUES (%d, '도시 %d')", i,
                       i);
        ok(&s->t, db_script(s->dbs[1], text, &s->t.err));
    }
    return true;
}

static void
end(struct step_test *s)
{
    for (size_t i = 0; i < array_len(s->dbs); i++)
        db_close(s->dbs[i]);
    json_decref(s->def);
    testdb_release(&s->testdb);
    io_test_release(&s->t);
}

static void
set_def(struct step_test *s, const char *text)
{
    json_decref(s->def);
    s->def = json_of(text);
    s->ctx.def = s->def;
    ok(&s->t, step_validate(s->def, &s->t.err));
}

/* The next run of the same step: it gets what the last checkpoint stored. */
static void
resume(struct step_test *s)
{
    s->ctx.reader_position = s->position;
    s->ctx.writer_state = s->state;
    s->ctx.counters = s->counters;
    s->stop_after = 0;
    s->lost_at = 0;
}

static int64_t
count(struct step_test *s, const char *text)
{
    const struct db_sql sql = {.name = "count", .text = text};
    int64_t got = -1;

    ok(&s->t, db_query_i64(s->dbs[0], &sql, NULL, 0, &got, &s->t.err));
    return got;
}

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
test_A13_a_key_has_a_place_only_in_what_is_sent(void **state)
{
    static const char *const wrong[] = {
        "{\"name\":\"a\",\"read\":{\"items\":{\"n\":[1]}},\"process\":{\"map\":{"
        "\"set\":{\"c\":\"{key:GEO}\"}}},\"write\":{\"file\":\"a.csv\"}}",
        "{\"name\":\"a\",\"fetch\":{\"url\":\"http://x/\",\"file\":\"{key:GEO}\"}}",
    };

    for (size_t i = 0; i < array_len(wrong); i++) {
        json_t *def = json_of(wrong[i]);
        struct err err = {0};

        assert_int_equal(step_validate(def, &err), -ERR_CONFIG);
        assert_non_null(strstr(err.text, "only in what is sent"));
        json_decref(def);
    }
}

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

static void
test_a_wrong_definition_is_told_by_its_key(void **state)
{
#define READ  "\"read\":{\"sql\":\"SELECT 1\",\"database\":\"shop\"}"
#define WRITE "\"write\":{\"file\":\"a.csv\"}"
#define INTO  "\"write\":{\"database\":\"shop\",\"table\":\"t\"}"
#define PARTS "\"partitions\":4,\"partition\":{\"key\":\"id\"},"
    static const struct {
        const char *def, *want; /* NULL: right */
    } cases[] = {
        {"{\"name\":\"s\"," READ "," WRITE "}", NULL},
        {"{\"name\":\"s\",\"chunk\":5," READ ",\"write\":{\"file\":\"a.{f}\"}}", NULL},
        {"{\"name\":\"s\"," READ
         ",\"write\":{\"file\":\"a.{f}\",\"format\":\"{f}\",\"sheet\":\"x\"}}",
         NULL},
        {"[]", "must be a map"},
        {"{\"name\":\"s\"}", "there is no \"read\""},
        {"{\"name\":\"s\"," READ "," WRITE ",\"process\":{\"htp\":{}}}",
         "\"htp\" is no processor"},
        {"{\"name\":\"s\"," READ "," WRITE ",\"process\":{\"http\":{}}}",
         "\"url\" is missing"},
        {"{\"name\":\"s\"," READ "," WRITE
         ",\"process\":{\"http\":{\"url\":\"ftp://x\"}}}",
         "must begin with http://"},
        {"{\"name\":\"s\"," READ "," WRITE ",\"process\":{\"http\":{\"url\":\"http://"
         "x\",\"outcomes\":{\"status\":{\"42\":\"ok\"}}}}}",
         "\"42\" is no HTTP status"},
        {"{\"name\":\"s\"," READ "," WRITE ",\"process\":{\"http\":{\"url\":\"http://"
         "x\",\"outcomes\":{\"code\":\"c\",\"codes\":{\"1\":\"fine\"}}}}}",
         "must be one of: ok, no-data"},
        {"{\"name\":\"s\"," READ "," WRITE
         ",\"process\":[{\"map\":{\"cast\":{\"a\":\"money\"}}}]}",
         "process.map.cast.a"},
        {"{\"name\":\"s\"," READ "," WRITE
         ",\"process\":[{\"filter\":{\"match\":{\"a\":\"(\"}}}]}",
         "process.filter.match.a"},
        {"{\"name\":\"s\"," READ "," WRITE ",\"concurrency\":65}", "concurrency"},
        {"{\"name\":\"s\"," READ "," WRITE ",\"skip\":{\"on\":[\"parse\"]}}",
         "skip.limit"},
        {"{\"name\":\"s\"," READ "," WRITE ",\"skip\":{\"limit\":1,\"on\":[\"all\"]}}",
         "skip.on"},
        {"{\"name\":\"s\",\"sql\":[]}", "there must be a statement"},
        {"{\"name\":\"s\",\"sql\":\"SELECT 1\",\"write\":{}}", "unknown key \"write\""},
        {"{\"name\":\"s\",\"fetch\":{\"url\":\"http://x\"}}", "\"file\" is missing"},
        {"{\"name\":\"s\",\"fetch\":{\"url\":\"http://x\",\"file\":\"../x\"}}",
         "plain name"},
        {"{\"name\":\"s\",\"http\":{\"url\":\"http://x/{a b}\"}}", "no name"},
        {"{" READ "," WRITE "}", "name"},
        {"{\"name\":\"s\"," READ "}", "step s: \"write\" is missing"},
        {"{\"name\":\"s\",\"chunks\":5," READ "," WRITE "}", "did you mean \"chunk\"?"},
        {"{\"name\":\"s\",\"chunk\":0," READ "," WRITE "}", "chunk: must be"},
        {"{\"name\":\"s\",\"read\":{\"database\":\"x\"}," WRITE "}", "nothing to read"},
        {"{\"name\":\"s\",\"read\":{\"sql\":5}," WRITE "}", "read.sql: must be a text"},
        {"{\"name\":\"s\",\"read\":{\"sql\":\"x\",\"csv\":\"y\"}," WRITE "}",
         "has both"},
        {"{\"name\":\"s\",\"read\":{\"sql\":\"x\",\"restart\":\"often\"}," WRITE "}",
         "read.restart: must be one of: position requery"},
        {"{\"name\":\"s\",\"read\":{\"csv\":\"x\",\"delimiter\":\";;\"}," WRITE "}",
         "read.delimiter: must be one ASCII character"},
        {"{\"name\":\"s\",\"read\":{\"csv\":\"x\",\"columns\":{\"a\":\"money\"}}," WRITE
         "}",
         "read.columns: must map"},
        {"{\"name\":\"s\"," READ ",\"write\":{\"file\":\"a.pdf\"}}",
         "\"pdf\" is no format"},
        {"{\"name\":\"s\"," READ ",\"write\":{\"file\":\"a.csv\",\"shet\":\"x\"}}",
         "unknown key \"shet\""},
        {"{\"name\":\"s\"," READ ",\"write\":{\"file\":\"a.{f.csv\"}}", "write.file"},
        {"{\"name\":\"s\"," READ ",\"write\":{\"database\":\"x\"}}",
         "either \"table\" or \"rows\""},
        {"{\"name\":\"s\"," READ
         ",\"write\":{\"database\":\"x\",\"table\":\"t\",\"mode\":\"upsert\"}}",
         "belong together"},
        {"{\"name\":\"s\"," READ
         ",\"write\":{\"database\":\"x\",\"rows\":\"t\",\"key\":[\"a\"]}}",
         "go with \"table\""},
        {"{\"name\":\"s\"," READ ",\"write\":{\"database\":\"x\",\"file\":\"t\"}}",
         "either \"file\" or \"database\""},
        {"{\"name\":\"s\"," PARTS READ "," INTO "}", NULL},
        {"{\"name\":\"s\"," PARTS READ "," WRITE "}", "a step that makes a file"},
        {"{\"name\":\"s\"," PARTS "\"read\":{\"csv\":\"x\"}," INTO "}",
         "what is read by csv cannot be cut"},
        {"{\"name\":\"s\",\"partitions\":4," READ "," INTO "}", "write {key: COLUMN}"},
        {"{\"name\":\"s\",\"partitions\":1," READ "," INTO "}", "from 2 to 64"},
        {"{\"name\":\"s\",\"partitions\":4,\"read\":{\"items\":{\"a\":[1]}}," INTO "}",
         NULL},
        {"{\"name\":\"s\"," PARTS "\"read\":{\"items\":{\"a\":[1]}}," INTO "}",
         "cut by their numbers"},
    };
    struct io_test t;

    io_test_init(&t, "{}");
    for (size_t i = 0; i < array_len(cases); i++) {
        json_t *def = json_of(cases[i].def);

        if (cases[i].want)
            fails(&t, ERR_CONFIG, cases[i].want, step_validate(def, &t.err));
        else
            ok(&t, step_validate(def, &t.err));
        json_decref(def);
    }
    io_test_release(&t);
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

on_both(A38_a_bad_line_behind_a_refused_row_is_counted)
    on_both(A22_a_search_for_a_bad_row_counts_what_it_commits) on_both(
        an_export_counts_its_rows_and_names_its_file) on_both(no_rows_are_a_result_too)
        on_both(B28_a_stop_ends_at_a_border_and_the_next_run_makes_the_same_file)
            on_both(B28_a_cancel_is_seen_at_the_next_border) on_both(
                a_part_that_is_gone_starts_the_step_at_zero_and_says_so)
                on_both(rows_for_main_commit_with_their_checkpoint_or_not_at_all) on_both(
                    without_a_checkpoint_there_rows_commit_before_the_checkpoint)
                    on_both(a_failing_row_ends_the_step_with_its_cause) on_both(
                        a_csv_is_loaded_with_types_and_goes_on_after_a_stop)
                        on_both(a_full_disk_fails_the_step_by_its_name) on_both(
                            A38_a_file_that_comes_in_another_order_is_loaded_whole)
                            on_both(
                                A38_a_result_file_is_started_over_when_all_is_read_again)

#define both(fn)                                                                       \
    cmocka_unit_test(test_##fn##_on_sqlite), cmocka_unit_test(test_##fn##_on_pg)

                                int main(void)
{
    const struct CMUnitTest tests[] = {
        both(A22_a_search_for_a_bad_row_counts_what_it_commits),
        both(A38_a_bad_line_behind_a_refused_row_is_counted),
        cmocka_unit_test(test_A13_a_key_has_a_place_only_in_what_is_sent),
        both(an_export_counts_its_rows_and_names_its_file),
        both(no_rows_are_a_result_too),
        both(B28_a_stop_ends_at_a_border_and_the_next_run_makes_the_same_file),
        both(B28_a_cancel_is_seen_at_the_next_border),
        both(a_part_that_is_gone_starts_the_step_at_zero_and_says_so),
        both(rows_for_main_commit_with_their_checkpoint_or_not_at_all),
        both(without_a_checkpoint_there_rows_commit_before_the_checkpoint),
        both(a_failing_row_ends_the_step_with_its_cause),
        both(a_csv_is_loaded_with_types_and_goes_on_after_a_stop),
        both(a_full_disk_fails_the_step_by_its_name),
        both(A38_a_file_that_comes_in_another_order_is_loaded_whole),
        both(A38_a_result_file_is_started_over_when_all_is_read_again),
        cmocka_unit_test(test_a_wrong_definition_is_told_by_its_key),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * A22, B20: a process that dies before any of its writes to disk or to a server, taken
 * in turn, loses and repeats nothing. The run is carried in a child that ends at the
 * n-th such call; another child closes what it held, asks again, and the result must
 * be that of a run left alone: the same rows once each, the same bytes of a file; also
 * where the store is of one kind of database and the rows go into the other. The quick
 * suite takes some of the calls, PAWL_FULL each of them.
 */
#include "tests/store/queue/common.h"

#include "base/fsio.h"
#include "base/json.h"
#include "batch/lost.h"
#include "config/config.h"
#include "config/errors.h"
#include "run/result_store.h"
#include "run/run.h"
#include "testdb.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROWS        35
#define KILLED      9
#define TROUBLE     1
#define QUICK_STEPS 31

/* --- calls that leave a trace: each may be the last --- */

static atomic_int die_at; /* 0 = never */
static atomic_int calls;

static void
event(void)
{
    if (die_at && atomic_fetch_add(&calls, 1) + 1 >= die_at)
        _exit(KILLED);
}

ssize_t
write(int fd, const void *data, size_t size)
{
    event();
    return syscall(SYS_write, fd, data, size);
}

ssize_t
pwrite(int fd, const void *data, size_t size, off_t offset)
{
    event();
    return syscall(SYS_pwrite64, fd, data, size, offset);
}

ssize_t
send(int fd, const void *data, size_t size, int flags)
{
    event();
    return syscall(SYS_sendto, fd, data, size, flags, NULL, 0);
}

int
fsync(int fd)
{
    event();
    return (int)syscall(SYS_fsync, fd);
}

int
fdatasync(int fd)
{
    event();
    return (int)syscall(SYS_fdatasync, fd);
}

int
ftruncate(int fd, off_t size)
{
    event();
    return (int)syscall(SYS_ftruncate, fd, size);
}

int
rename(const char *from, const char *to)
{
    event();
    return (int)syscall(SYS_rename, from, to);
}

int
unlink(const char *path)
{
    event();
    return (int)syscall(SYS_unlink, path);
}

ssize_t
copy_file_range(int in, off64_t *in_at, int out, off64_t *out_at, size_t size,
                unsigned flags)
{
    event();
    return syscall(SYS_copy_file_range, in, in_at, out, out_at, size, flags);
}

/* --- a place to run in --- */

struct place {
    struct harness *h;
    char folder[64];
    char config[128];
    char results[128];
    char other_url[320]; /* of the database that is not the store */
    bool across;         /* that one is of the other kind */
    struct testdb pg;    /* beside a store in SQLite */
};

static void
write_config(struct place *p)
{
    static const char *const files[] = {"csv", "jsonl", "xlsx"};
    FILE *file = fopen(p->config, "we");
    static const char job[] =
        "  %s:\n    retry: none\n    params: {run: {type: integer}}\n    steps:\n"
        "      - name: copy\n        chunk: 10\n        read: {database: shop, "
        "restart: %s, sql: \"SELECT %s FROM city WHERE :run > 0 ORDER BY id\"}\n"
        "        write: {%s}\n";

    assert_non_null(file);
    fprintf(file, "store: \"%s\"\nstate: %s/state\nresults: %s\n", p->h->url, p->folder,
            p->results);
    fprintf(file, "databases: {shop: \"sqlite:%s/shop.db\", other: \"%s\"}\njobs:\n",
            p->folder, p->other_url);
    for (size_t i = 0; i < array_len(files); i++) {
        char write_def[64];

        snprintf(write_def, sizeof(write_def), "file: made.%s", files[i]);
        fprintf(file, job, files[i], i == 1 ? "key, key: id" : "position", "id, name",
                write_def);
    }
    fprintf(file, job, "main", "position", "id, name, :run AS run",
            "database: main, table: copied");
    fprintf(file, job, "other", "key, key: [run, id]", "id, name, :run AS run",
            "database: other, table: moved");
    assert_int_equal(fclose(file), 0);
}

static void
make_shop(struct place *p)
{
    char url[128], sql[256];
    struct db_options options = {.url = url, .create = true};
    scoped(db_closep) struct db *db = NULL;
    struct err err = {0};

    snprintf(url, sizeof(url), "sqlite:%s/shop.db", p->folder);
    assert_ok(db_open(&options, &db, &err), &err);
    snprintf(sql, sizeof(sql),
             "CREATE TABLE city (id integer PRIMARY KEY, name text);"
             "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < "
             "%d) INSERT INTO city SELECT i, '도시 ' || i FROM n",
             ROWS);
    assert_ok(db_script(db, sql, &err), &err);
}

static void
make_other(struct place *p)
{
    struct db_options options = {.url = p->other_url, .create = true};
    scoped(db_closep) struct db *db = NULL;
    struct err err = {0};

    if (p->h->kind == HARNESS_SQLITE && p->across) {
        if (!testdb_init(&p->pg, TESTDB_PG))
            skip();
        snprintf(p->other_url, sizeof(p->other_url), "%s", p->pg.direct_url);
    } else if ((p->h->kind == HARNESS_SQLITE) != p->across)
        snprintf(p->other_url, sizeof(p->other_url), "sqlite:%s/other.db", p->folder);
    else
        snprintf(p->other_url, sizeof(p->other_url), "%s", p->h->direct_url);
    assert_ok(db_open(&options, &db, &err), &err);
    assert_ok(
        db_script(db, "CREATE TABLE moved (run bigint, id bigint, name text)", &err),
        &err);
}

static void
place_open(struct place *p, struct harness *h, bool across)
{
    *p = (struct place){.h = h, .across = across};
    snprintf(p->folder, sizeof(p->folder), "/tmp/pawl-kill-XXXXXX");
    assert_non_null(mkdtemp(p->folder));
    snprintf(p->config, sizeof(p->config), "%s/pawl.yaml", p->folder);
    snprintf(p->results, sizeof(p->results), "%s/results", p->folder);
    make_shop(p);
    make_other(p);
    write_config(p);
    harness_sql(h, "CREATE TABLE copied (run bigint, id bigint, name text)");
    store_close(h->store); /* it is the children's */
    h->store = NULL;
}

static void
place_close(struct place *p)
{
    harness_reopen(p->h);
    if (p->pg.direct_url[0])
        testdb_release(&p->pg);
    fs_remove_tree_quietly(p->folder);
}

/* --- in a child: no assertion may jump from here --- */

#define must(call, err)                                                                \
    do {                                                                               \
        int r_ = (call);                                                               \
        if (r_ < 0) {                                                                  \
            fprintf(stderr, "%s: %s\n", #call, (err).text);                            \
            _exit(TROUBLE);                                                            \
        }                                                                              \
    } while (0)

struct child {
    struct place *place;
    struct store *store;
    struct config *config;
    struct result_store *results;
    const char *job;
    int64_t run;
    struct err err;
};

static const char *
no_env(void *arg, const char *name)
{
    return NULL;
}

static void
child_open(struct child *c, struct place *p, const char *job, int64_t run)
{
    struct config_errors errors = {0};

    *c = (struct child){.place = p, .job = job, .run = run};
    if (config_load(p->config, no_env, NULL, &c->config, &errors, &c->err) < 0) {
        config_errors_print(&errors, stderr);
        _exit(TROUBLE);
    }
    must(store_open(&p->h->options, &c->store, &c->err), c->err);
    must(result_store_open(p->results, store_id(c->store), &c->results, &c->err),
         c->err);
}

static void
child_submit(struct child *c)
{
    const struct config_job *job = config_job_find(c->config, c->job);
    struct submit_answer answer;
    struct queue_job *rules = NULL;
    char given[64];
    struct submit_order order = {.given = given,
                                 .canonical = given,
                                 .requester = "tester",
                                 .source = SOURCE_API,
                                 .lane = "normal",
                                 .restart = -1};

    must(queue_job_parse(job->definition, &rules, &c->err), c->err);
    order.job = rules;
    snprintf(given, sizeof(given), "{\"run\":%lld}", (long long)c->run);
    must(queue_submit(c->store, &order, &answer, &c->err), c->err);
}

/* Claim it if it waits and carry it out; false: nothing waits. */
static bool
child_carry(struct child *c, int at)
{
    static struct arena arena;
    struct claim_want want = {
        .worker = "w1", .lane = "normal", .jobs = &c->job, .n_jobs = 1, .max = 1};
    struct claim claims[1];
    char temp[128];
    struct run_report report;
    size_t count = 0;
    struct run_env env = {.config = c->config,
                          .store = c->store,
                          .results = c->results,
                          .clock = clock_real(),
                          .worker = "w1",
                          .temp_folder = temp};
    struct run *run;

    snprintf(temp, sizeof(temp), "%s/tmp", c->place->folder);
    must(fs_mkdir_private(temp, &c->err), c->err);
    die_at = at;
    must(queue_claim(c->store, &want, &arena, claims, &count, &c->err), c->err);
    if (count == 0)
        return false;
    run = run_new(&env, claims[0].first_id, claims[0].job, claims[0].token);
    run_carry_out(run, &report);
    die_at = 0;
    run_free(run);
    if (report.outcome != OUTCOME_COMPLETED || !report.recorded || report.note[0]) {
        fprintf(stderr, "%s %s\n", report.detail, report.note);
        _exit(TROUBLE);
    }
    return true;
}

static int64_t
look(struct child *c, const char *url, const char *text, char *ret_text)
{
    struct db_options options = {.url = url};
    const struct db_sql sql = {.name = "look", .text = text};
    struct db_rows rows = {0};
    struct db *db = NULL;
    int64_t value = -1;
    int r;

    must(db_open(&options, &db, &c->err), c->err);
    must(db_query(db, &sql, NULL, 0, &rows, &c->err), c->err);
    r = db_next(&rows, &c->err);
    must(r, c->err);
    if (r == 1 && ret_text)
        snprintf(ret_text, 80, "%s", db_is_null(&rows, 0) ? "" : db_text(&rows, 0));
    else if (r == 1)
        value = db_i64(&rows, 0);
    db_rows_end(&rows);
    db_close(db);
    return value;
}

static const char *
schema(const struct child *c)
{
    return c->place->h->kind == HARNESS_SQLITE ? "" : "pawl.";
}

/* Every row is there once, or the file is what it was without a kill. */
static void
child_check(struct child *c)
{
    const char *table = strcmp(c->job, "main") == 0 ? "copied" : "moved";
    const char *url =
        strcmp(c->job, "main") == 0 ? c->place->h->direct_url : c->place->other_url;
    bool rows = strcmp(c->job, "main") == 0 || strcmp(c->job, "other") == 0;
    char sql[400], sha[80] = "", first[80] = "";

    if (rows) {
        snprintf(sql, sizeof(sql),
                 "SELECT count(*) * 1000 + count(DISTINCT id) FROM %s WHERE run = %lld",
                 table, (long long)c->run);
        if (look(c, url, sql, NULL) != ROWS * 1000 + ROWS)
            _exit(TROUBLE + 1);
    } else {
        snprintf(sql, sizeof(sql),
                 "SELECT o.result_sha256 FROM %soutcome o JOIN %srequest r ON r.id = "
                 "o.id WHERE r.job = '%s' AND o.outcome = 'COMPLETED' ORDER BY o.id",
                 schema(c), schema(c), c->job);
        look(c, c->place->h->direct_url, sql, first);
        snprintf(sql + strlen(sql), sizeof(sql) - strlen(sql), " DESC LIMIT 1");
        look(c, c->place->h->direct_url, sql, sha);
        if (!first[0] || strcmp(first, sha) != 0)
            _exit(TROUBLE + 1);
    }
    snprintf(sql, sizeof(sql),
             "SELECT s.read_count * 1000 + s.write_count FROM %sstep_execution s "
             "ORDER BY s.id DESC LIMIT 1",
             schema(c));
    if (look(c, c->place->h->direct_url, sql, NULL) != ROWS * 1000 + ROWS)
        _exit(TROUBLE + 2);
}

static void
child_first(struct child *c, int at)
{
    child_submit(c);
    child_carry(c, at);
    child_check(c);
}

static void
child_second(struct child *c)
{
    static struct arena arena;
    struct lost_request *lost = NULL;
    char sql[300], outcome[80] = "";
    size_t count = 0;

    must(batch_close_lost(c->store, "w1", "killed", &arena, &lost, &count, &c->err),
         c->err);
    snprintf(sql, sizeof(sql), "SELECT outcome FROM %soutcome ORDER BY id DESC LIMIT 1",
             schema(c));
    if (!child_carry(c, 0)) {
        look(c, c->place->h->direct_url, sql, outcome);
        if (strcmp(outcome, "COMPLETED") != 0) {
            child_submit(c);
            if (!child_carry(c, 0))
                _exit(TROUBLE);
        }
    }
    child_check(c);
}

/* How the child ended; at > 0: it dies at that call, < 0: it goes on after one. */
static int
in_child(struct place *p, const char *job, int64_t run, int at)
{
    int status = 0;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct child c;

        child_open(&c, p, job, run);
        if (at < 0)
            child_second(&c);
        else
            child_first(&c, at);
        store_close(c.store);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void
kill_at_each(struct harness *h, const char *job, bool across)
{
    bool full = getenv("PAWL_FULL") != NULL;
    int killed = 0;
    struct place p;

    place_open(&p, h, across);
    assert_int_equal(in_child(&p, job, 1000000, 0), 0);
    for (int at = 1;; at += full ? 1 : 9 + at % QUICK_STEPS) {
        int ended = in_child(&p, job, at, at);

        if (ended == 0) /* it makes no call so late */
            break;
        if (ended != KILLED)
            fail_msg("%s: ended with %d, was to die at call %d", job, ended, at);
        killed++;
        ended = in_child(&p, job, at, -1);
        if (ended != 0)
            fail_msg("%s: ended with %d after it had died at call %d", job, ended, at);
    }
    assert_true(killed > (full ? 30 : 2));
    place_close(&p);
}

static void
kill_everywhere(struct harness *h, const char *job)
{
    kill_at_each(h, job, false);
}

static void
test_A22_rows_for_the_store_are_there_once_whenever_it_dies(struct harness *h)
{
    kill_everywhere(h, "main");
}

static void
test_A22_rows_for_another_database_are_there_once_whenever_it_dies(struct harness *h)
{
    kill_everywhere(h, "other");
}

/* From SQLite into PostgreSQL, from PostgreSQL into SQLite. */
static void
test_A22_rows_for_the_other_kind_of_database_are_there_once_whenever_it_dies(
    struct harness *h)
{
    if (!getenv("PAWL_FULL"))
        skip();
    kill_at_each(h, "other", true);
}

static void
test_B20_a_csv_has_the_same_bytes_whenever_it_dies(struct harness *h)
{
    kill_everywhere(h, "csv");
}

static void
test_B20_json_lines_have_the_same_bytes_whenever_it_dies(struct harness *h)
{
    kill_everywhere(h, "jsonl");
}

static void
test_B20_a_workbook_has_the_same_bytes_whenever_it_dies(struct harness *h)
{
    kill_everywhere(h, "xlsx");
}

#define both(test) store_test_sqlite(test), store_test_pg(test)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        both(test_A22_rows_for_the_store_are_there_once_whenever_it_dies),
        both(test_A22_rows_for_another_database_are_there_once_whenever_it_dies),
        both(
            test_A22_rows_for_the_other_kind_of_database_are_there_once_whenever_it_dies),
        both(test_B20_a_csv_has_the_same_bytes_whenever_it_dies),
        both(test_B20_json_lines_have_the_same_bytes_whenever_it_dies),
        both(test_B20_a_workbook_has_the_same_bytes_whenever_it_dies),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

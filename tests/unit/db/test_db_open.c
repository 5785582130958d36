/* URLs, and what a PostgreSQL connection is set to and refused for. */
#include "contract.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct url_row {
    const char *url, *masked;
};

static void
test_passwords_are_masked(void **state)
{
    static const struct url_row rows[] = {
        {"postgresql://u:secret@h/d", "postgresql://u:***@h/d"},
        {"postgres://u:se@cr@et@h:5/d?x=y", "postgres://u:***@h:5/d?x=y"},
        {"postgresql://h/d?user=u&password=secret&x=1",
         "postgresql://h/d?user=u&password=***&x=1"},
        {"postgresql://h/d?sslpassword=secret", "postgresql://h/d?sslpassword=***"},
        {"postgresql://h/d?PassWord=secret", "postgresql://h/d?PassWord=***"},
        {"postgresql://u@h/d", "postgresql://u@h/d"},
        {"sqlite:./a.db", "sqlite:./a.db"},
        {"sqlite:/a:b@c.db", "sqlite:/a:b@c.db"},
    };
    char out[100];

    for (size_t i = 0; i < array_len(rows); i++)
        assert_string_equal(db_url_masked(rows[i].url, out, sizeof(out)),
                            rows[i].masked);
    for (size_t size = 1; size < 30; size++)
        assert_true(strlen(db_url_masked(rows[0].url, out, size)) < size);
}

static void
test_a_url_of_no_database_is_refused_with_the_remedy(void **state)
{
    static const char *const urls[] = {"", "mysql://u:secret@h/d", "sqlite:", "x.db"};

    for (size_t i = 0; i < array_len(urls); i++) {
        struct db_options options = {.url = urls[i]};
        struct err err = {0};
        struct db *db = NULL;

        assert_int_equal(db_open(&options, &db, &err), -ERR_CONFIG);
        assert_non_null(strstr(err.text, "sqlite:./path"));
        assert_null(strstr(err.text, "secret"));
    }
}

static void
test_a_failed_connect_never_tells_the_password(void **state)
{
    static const char *const urls[] = {
        "postgresql://u:secret@127.0.0.1:1/d",
        "postgresql://u:secret@127.0.0.1:1/d?nosuch=1",
        "postgresql://u:secret@[::1/d",
        "postgresql://u:sec%zzret@h/d",
        "postgresql://u:secret@127.0.0.1:1:2/d",
    };

    for (size_t i = 0; i < array_len(urls); i++) {
        struct db_options options = {.url = urls[i], .store = true};
        struct err err = {0};
        struct db *db = NULL;

        assert_int_equal(db_open(&options, &db, &err),
                         i == 0 || i == 4 ? -ERR_STORE : -ERR_CONFIG);
        assert_null(strstr(err.text, "secret"));
        assert_null(strstr(err.text, "sec%"));
        assert_non_null(strstr(err.text, "***"));
    }
}

static void
assert_setting(struct fixture *f, struct db *db, const char *name, const char *want)
{
    static const struct db_sql show = {
        .name = "show", .text = "SELECT current_setting($1)", .n_params = 1};
    scoped(db_rows_end) struct db_rows rows = {0};

    ok(f, db_ask(db, &show, &rows, &f->err, p_text(name)));
    assert_int_equal(db_next(&rows, &f->err), 1);
    assert_string_equal(db_text(&rows, 0), want);
}

/* A role of this process's own, and of each setting's: PgBouncer keeps the sessions of
 * a role that was dropped for the next of that name. */
static void
make_role(struct fixture *f, const char *commit, char *ret_name, size_t size)
{
    char text[300];

    snprintf(ret_name, size, "pawl_test_%ld_%s", (long)getpid(), commit);
    snprintf(text, sizeof(text),
             "CREATE ROLE %s LOGIN; ALTER ROLE %s SET synchronous_commit = %s",
             ret_name, ret_name, commit);
    script(f, text);
}

static void
drop_role(struct fixture *f, const char *name)
{
    char text[100];

    snprintf(text, sizeof(text), "DROP ROLE %s", name);
    script(f, text);
}

static void
as_role(const struct fixture *f, const char *name, char *ret, size_t size)
{
    const char *at = strchr(f->testdb.url, '@');

    assert_non_null(at);
    snprintf(ret, size, "postgresql://%s%s", name, at);
}

static void
test_a_store_commits_durably_whatever_its_role_says(struct fixture *f)
{
    char url[400], role[40];
    struct db_options options = {.url = url, .store = true};
    scoped(db_closep) struct db *db = NULL;

    make_role(f, "off", role, sizeof(role));
    as_role(f, role, url, sizeof(url));
    if (f->kind == TESTDB_PGBOUNCER) { /* cannot be set there: refused */
        fails(f, ERR_CONFIG, db_open(&options, &db, &f->err));
        assert_non_null(strstr(f->err.text, "ALTER ROLE \"pawl_test_"));
    } else {
        ok(f, db_open(&options, &db, &f->err));
        assert_setting(f, db, "synchronous_commit", "on");
    }
    drop_role(f, role);
}

static void
test_behind_a_pooler_a_durable_role_is_accepted(struct fixture *f)
{
    char url[400], role[40];
    struct db_options options = {.url = url, .store = true};
    scoped(db_closep) struct db *db = NULL;

    make_role(f, "on", role, sizeof(role));
    as_role(f, role, url, sizeof(url));
    ok(f, db_open(&options, &db, &f->err));
    assert_int_equal(db_pooled(db), f->kind == TESTDB_PGBOUNCER);
    drop_role(f, role);
}

static void
test_settings_asked_for_hold_on_a_direct_connection_only(struct fixture *f)
{
    static const struct db_setting settings[] = {
        {"plan_cache_mode", "force_generic_plan"}, {"enable_seqscan", "off"}};
    struct db_options options = {.url = f->testdb.url,
                                 .statement_timeout_ms = 12000,
                                 .lock_timeout_ms = 3000,
                                 .app_name = "pawl test",
                                 .session_settings = settings,
                                 .n_session_settings = array_len(settings)};
    bool direct = f->kind == TESTDB_PG;
    scoped(db_closep) struct db *db = NULL;

    ok(f, db_open(&options, &db, &f->err));
    assert_setting(f, db, "plan_cache_mode", direct ? "force_generic_plan" : "auto");
    assert_setting(f, db, "enable_seqscan", direct ? "off" : "on");
    assert_setting(f, db, "statement_timeout", direct ? "12s" : "0");
    assert_setting(f, db, "lock_timeout", direct ? "3s" : "0");
    assert_setting(f, db, "client_encoding", "UTF8");
}

static void
test_a_setting_that_does_not_exist_is_named(struct fixture *f)
{
    static const struct db_setting setting = {"no_such_setting", "1"};
    struct db_options options = {
        .url = f->testdb.url, .session_settings = &setting, .n_session_settings = 1};
    struct db *db = NULL;

    if (f->kind != TESTDB_PG)
        return;
    fails(f, ERR_DB, db_open(&options, &db, &f->err));
    assert_non_null(strstr(f->err.text, "no_such_setting"));
}

static void
test_a_read_only_connection_does_not_write(struct fixture *f)
{
    struct db_options options = {.url = f->testdb.url, .read_only = true};
    scoped(db_closep) struct db *db = NULL;

    if (f->kind != TESTDB_PG)
        return;
    ok(f, db_open(&options, &db, &f->err));
    fails(f, ERR_DB, db_script(db, "CREATE TABLE t (a int)", &f->err));
    assert_string_equal(f->err.detail, "25006");
}

static void
test_a_store_that_became_a_replica_is_left(struct fixture *f)
{
    struct db_options options = {.url = f->testdb.url, .store = true};
    scoped(db_closep) struct db *db = NULL;

    if (f->kind != TESTDB_PG)
        return;
    ok(f, db_open(&options, &db, &f->err));
    ok(f, db_script(db, "SET default_transaction_read_only = on", &f->err));
    fails(f, ERR_STORE, db_script(db, "CREATE TABLE t (a int)", &f->err));
    assert_false(db_usable(db));
}

#define pg_case(name)                                                                  \
    db_case_on(name, TESTDB_PG, "pg"), db_case_on(name, TESTDB_PGBOUNCER, "pgbouncer")

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_passwords_are_masked),
        cmocka_unit_test(test_a_url_of_no_database_is_refused_with_the_remedy),
        cmocka_unit_test(test_a_failed_connect_never_tells_the_password),
        pg_case(test_a_store_commits_durably_whatever_its_role_says),
        pg_case(test_behind_a_pooler_a_durable_role_is_accepted),
        pg_case(test_settings_asked_for_hold_on_a_direct_connection_only),
        pg_case(test_a_setting_that_does_not_exist_is_named),
        pg_case(test_a_read_only_connection_does_not_write),
        pg_case(test_a_store_that_became_a_replica_is_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* See roles.h. */
#include "tests/store/roles.h"

#include "base/arena.h"
#include "base/buf.h"
#include "store/roles.h"

#include <stdio.h>
#include <string.h>

const struct role roles[ROLES_COUNT] = {
    {API, "pawl_api"}, {WORKER, "pawl_worker"}, {READER, "pawl_reader"}};

void
apply(struct harness *h)
{
    struct roles_report report;
    struct err err = {0};

    assert_ok(roles_apply(h->store, &report, &err), &err);
    assert_int_equal(report.missing, 0);
    assert_true(report.granted);
    harness_sql(h, "GRANT SELECT ON public.test_clock TO PUBLIC");
}

struct db *
connect_as(struct harness *h, const char *role)
{
    const char *at = strchr(h->direct_url, '@');
    struct db_options options = {.store = true};
    struct err err = {0};
    struct db *db;
    char url[400];

    assert_non_null(at);
    snprintf(url, sizeof(url), "postgresql://%s%s", role, at);
    options.url = url;
    assert_ok(db_open(&options, &db, &err), &err);
    return db;
}

char *
ask(struct db *db, const char *text, struct err *err)
{
    struct db_sql sql = {.name = "ask", .text = text, .flags = DB_ONCE};
    scoped(db_rows_end) struct db_rows rows = {0};
    scoped(buf_release) struct buf out = {0};
    int r = db_query(db, &sql, NULL, 0, &rows, err);

    buf_init(&out, 0);
    while (r == 0 && (r = db_next(&rows, err)) > 0) {
        if (db_column_count(&rows) > 0)
            buf_addf(&out, "%s\n", db_text(&rows, 0));
        r = 0;
    }
    return r < 0 ? NULL : xstrdup(buf_str(&out));
}

bool
is_denied(const struct err *err)
{
    return strcmp(err->detail, "42501") == 0;
}

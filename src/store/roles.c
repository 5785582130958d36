/*
 * Roles are of the cluster, all else of this database. What changes a role's row at the
 * same moment as another store fails with "tuple concurrently updated", so a role that
 * is there is not altered; making one twice is caught in the SQL.
 */
#include "store/roles.h"

#include "base/buf.h"
#include "base/embed.h"
#include "base/err.h"
#include "store/store.h"

#include <stddef.h>

/* Generated from src/sql/roles/, in this order. */
size_t roles_pg(const struct embed_file **ret_files);

enum roles_part { PART_ROLES, PART_OWNER, PART_GRANTS, PART_SETTINGS };

static int
run_part(struct db *db, enum roles_part part, struct err *err)
{
    const struct embed_file *files;
    int r;

    roles_pg(&files);
    r = db_script(db, (const char *)files[part].data, err);
    if (r < 0)
        err_prefix(err, "%s", files[part].name);
    return r;
}

struct standing {
    int missing;
    bool may_make;
    bool owns;
};

static int
look(struct db *db, struct standing *ret, struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    int r = db_ask(db, store_sql(db, STMT_STORE_ROLES), &rows, err);

    if (r == 0)
        r = db_next(&rows, err);
    if (r < 0)
        return r;
    *ret = (struct standing){
        .missing = (int)db_i64(&rows, 0),
        .may_make = db_i64(&rows, 1) != 0,
        .owns = db_i64(&rows, 2) != 0,
    };
    return 0;
}

int
roles_grant_in(struct db *db, struct err *err)
{
    struct standing now = {0};
    int r = look(db, &now, err);

    if (r < 0 || now.missing > 0 || !now.owns)
        return r;
    return run_part(db, PART_GRANTS, err);
}

static int
apply_fn(struct db *db, void *arg, struct err *err)
{
    struct roles_report *report = (struct roles_report *)arg;
    struct standing now = {0};
    int r = db_run(db, store_sql(db, STMT_STORE_MIGRATION_LOCK), err);

    *report = (struct roles_report){0};
    if (r == 0)
        r = look(db, &now, err);
    if (r < 0)
        return r;
    if (now.missing > 0 && !now.may_make) {
        report->missing = now.missing;
        return 0;
    }
    if (now.missing > 0)
        r = run_part(db, PART_ROLES, err);
    if (r == 0 && now.may_make && now.owns)
        r = run_part(db, PART_OWNER, err);
    if (r == 0 && now.owns)
        r = run_part(db, PART_GRANTS, err);
    if (r == 0 && now.may_make)
        r = run_part(db, PART_SETTINGS, err);
    if (r < 0)
        return r;
    report->made = now.missing;
    report->granted = now.owns;
    return 0;
}

int
roles_apply(struct store *store, struct roles_report *ret, struct err *err)
{
    struct roles_report report;
    int r = store_write(store, STORE_NORMAL, apply_fn, &report, err);

    if (r == 0)
        *ret = report;
    return r;
}

void
roles_script(struct buf *out)
{
    const struct embed_file *files;
    size_t count = roles_pg(&files);

    buf_add_str(out, "BEGIN;\n\n");
    for (size_t i = 0; i < count; i++)
        buf_addf(out, "%s\n", (const char *)files[i].data);
    buf_add_str(out, "COMMIT;\n");
}

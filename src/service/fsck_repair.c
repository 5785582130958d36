/* The repairs that cannot do harm. Each is one transaction with its audit row. */
#include "service/fsck.h"

#include "base/err.h"
#include "base/strs.h"
#include "service/fsck_private.h"

#include <inttypes.h>
#include <stdio.h>

struct repair {
    const struct fsck_order *order;
    const struct fsck_finding *finding;
    const char *actor;
};

/* What to write for the finding; STMT_COUNT: it is a file. */
static enum stmt
statement_of(const struct fsck_finding *finding)
{
    if (str_eq(finding->check, "active"))
        return STMT_FSCK_DROP_ACTIVE;
    if (str_eq(finding->check, "flag"))
        return STMT_FSCK_DROP_FLAG;
    if (str_eq(finding->check, "progress"))
        return STMT_FSCK_DROP_PROGRESS;
    return STMT_COUNT;
}

/* 1: it was still due. */
static int
drop_row(struct db *db, const struct fsck_finding *finding, struct err *err)
{
    enum stmt stmt = statement_of(finding);
    int r;

    if (stmt == STMT_FSCK_DROP_ACTIVE)
        r = db_run(db, store_sql(db, stmt), err, p_text(finding->detail),
                   p_i64(finding->id));
    else
        r = db_run(db, store_sql(db, stmt), err, p_i64(finding->id));
    return r < 0 ? r : db_changes(db) > 0;
}

static int
drop_part(struct db *db, const struct repair *repair, struct err *err)
{
    const struct fsck_finding *finding = repair->finding;
    const struct db_value params[] = {p_i64(finding->token), p_i64(finding->id)};
    int64_t known = 0;
    int r = db_query_i64(db, store_sql(db, STMT_FSCK_PART_KNOWN), params,
                         array_len(params), &known, err);

    if (r < 0 || known > 0)
        return r < 0 ? r : 0;
    result_store_drop_parts(repair->order->results, finding->id, finding->token);
    return 1;
}

/* What a kill between publishing and the recording of another end left. */
static int
drop_file(struct db *db, const struct repair *repair, struct err *err)
{
    const struct fsck_finding *finding = repair->finding;
    const struct db_value params[] = {p_i64(finding->id), p_text(finding->detail)};
    int64_t known = 0;
    int r = db_query_i64(db, store_sql(db, STMT_FSCK_FILE_KNOWN), params,
                         array_len(params), &known, err);

    if (r < 0 || known > 0)
        return r < 0 ? r : 0;
    r = result_store_drop_file(repair->order->results, finding->detail, err);
    return r < 0 ? r : 1;
}

static int
repair_one(struct db *db, void *arg, struct err *err)
{
    const struct repair *repair = arg;
    const struct fsck_finding *finding = repair->finding;
    char subject[64];
    int r;

    if (statement_of(finding) != STMT_COUNT)
        r = drop_row(db, finding, err);
    else if (finding->token > 0)
        r = drop_part(db, repair, err);
    else
        r = drop_file(db, repair, err);
    if (r <= 0)
        return r;
    snprintf(subject, sizeof(subject), "request:%" PRId64, finding->id);
    r = store_audit(db, repair->actor, "fsck.repair", subject, finding->check, err);
    return r < 0 ? r : 1;
}

static int
check_owner(struct db *db, void *arg, struct err *err)
{
    int64_t owns = 0;
    int r;

    (void)arg;
    if (db_kind(db) == DB_SQLITE)
        return 0; /* it could not be open otherwise */
    r = db_query_i64(db, store_sql(db, STMT_FSCK_OWNS), NULL, 0, &owns, err);
    if (r < 0)
        return r;
    if (!owns)
        return err_set(err, ERR_FORBIDDEN,
                       "repairs are for the owner of the store: use a store URL with "
                       "the role that owns schema pawl");
    return 0;
}

int
fsck_repair(const struct fsck_order *order, const char *actor,
            struct fsck_report *report, struct err *err)
{
    int r = store_read(order->store, check_owner, NULL, err);

    for (size_t i = 0; r >= 0 && i < report->count; i++) {
        struct fsck_finding *finding = &report->findings[i];
        struct repair repair = {.order = order, .finding = finding, .actor = actor};

        if (!finding->repairable)
            continue;
        r = store_write(order->store, STORE_NORMAL, repair_one, &repair, err);
        if (r < 0)
            return r;
        /* Not due any more is as good as repaired. */
        finding->repaired = true;
        report->repaired++;
    }
    return r < 0 ? r : 0;
}

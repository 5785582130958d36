/*
 * The rules, and looking at them. To add one: a statement in src/sql/fsck.sql and a row
 * of the table below; a repair also needs its case in fsck_repair.c.
 */
#include "service/fsck.h"

#include "base/arena.h"
#include "base/fsio.h"
#include "base/strs.h"
#include "base/err.h"
#include "base/json.h"
#include "config/config.h"
#include "run/result_store.h"
#include "service/fsck_private.h"
#include "store/store.h"

#include <inttypes.h>
#include <string.h>

#define PAGE 1000

#define REPORT_IT                                                                      \
    "keep a copy of the store and report it as a bug; what runs is not touched"
#define REPAIR_IT "harmless; `pawl fsck --repair` takes it away"

/* clang-format off */
static const struct fsck_rule rules[] = {
    {"nowhere", STMT_FSCK_NOWHERE, RULE_PLAIN, "a request without an outcome waits or runs", REPORT_IT},
    {"overlap", STMT_FSCK_OVERLAP, RULE_PLAIN, "a request waits or runs in one place only", REPORT_IT},
    {"final-open", STMT_FSCK_FINAL_OPEN, RULE_PLAIN, "a final request neither waits nor runs", REPORT_IT},
    {"stray-span", STMT_FSCK_STRAY_SPAN, RULE_PLAIN, "what waits or runs was submitted", REPORT_IT},
    {"stray-outcome", STMT_FSCK_STRAY_OUTCOME, RULE_PLAIN, "what has an outcome was submitted", REPORT_IT},
    {"never-due", STMT_FSCK_NEVER_DUE, RULE_PLAIN, "what waits has a time, or others, to wait for", "cancel the request and submit it again"},
    {"wait", STMT_FSCK_WAIT, RULE_PLAIN, "what waits for another request waits, and the other is not over", "cancel the request and submit it again"},
    {"dead-claim", STMT_FSCK_DEAD_CLAIM, RULE_GRACE, "a claim's worker lives", "start a worker: it closes the claims of dead ones"},
    {"paused-start", STMT_FSCK_PAUSED_START, RULE_PLAIN, "nothing of a paused job or lane is started", REPORT_IT},
    {"token-twice", STMT_FSCK_TOKEN_TWICE, RULE_PLAIN, "a token belongs to one claim", REPORT_IT},
    {"slots", STMT_FSCK_SLOTS, RULE_PLAIN, "a worker holds no more than it has slots", "look again when what ended while the store was away is recorded; if it stays, report it as a bug"},
    {"try", STMT_FSCK_TRY, RULE_PLAIN, "what did not succeed, and was not cancelled, has one next try at most", REPORT_IT},
    {"link", STMT_FSCK_LINK, RULE_PLAIN, "a link is released once, by what completed", REPORT_IT},
    {"max-calls", STMT_FSCK_MAX_CALLS, RULE_PLAIN, "a request makes no more calls than it may", REPORT_IT},
    {"result", STMT_FSCK_RESULT, RULE_PLAIN, "only what completed has a result", REPORT_IT},
    {"active", STMT_FSCK_ACTIVE, RULE_REPAIR, "a key is held by a request that is not final", REPAIR_IT},
    {"flag", STMT_FSCK_FLAG, RULE_REPAIR, "only a running request bears a flag", REPAIR_IT},
    {"progress", STMT_FSCK_PROGRESS, RULE_REPAIR, "only a running request has progress", REPAIR_IT},
    {"idempotency", STMT_FSCK_IDEMPOTENCY, RULE_PLAIN, "an idempotency key leads to a request", "delete the row, so that the key can be used again"},
    {"execution", STMT_FSCK_EXECUTION, RULE_PLAIN, "an execution that is alive has its claim", REPORT_IT},
    {"ended", STMT_FSCK_ENDED, RULE_PLAIN, "what is alive has no end, what ended has one", REPORT_IT},
    {"step", STMT_FSCK_STEP, RULE_PLAIN, "the states of steps fit that of their execution", REPORT_IT},
    {"place", STMT_FSCK_PLACE, RULE_PLAIN, "the place of a step is the number of its commits", REPORT_IT},
    {"goes-back", STMT_FSCK_GOES_BACK, RULE_PLAIN, "who goes on begins at the last committed chunk", "if a backup of the database that the step writes into was restored, the chunks after it are to be made again: pawl submit --anew; else report it as a bug"},
    {"outcome-execution", STMT_FSCK_OUTCOME_EXECUTION, RULE_PLAIN, "an outcome fits its execution", REPORT_IT},
    {"resumed", STMT_FSCK_RESUMED, RULE_PLAIN, "only what stopped or failed is gone on with, and nothing cancelled or confirmed", REPORT_IT},
    {"slot-twice", STMT_FSCK_SLOT_TWICE, RULE_PLAIN, "a time of a schedule is decided once", REPORT_IT},
    {"slot-request", STMT_FSCK_SLOT_REQUEST, RULE_PLAIN, "a time that was fired has its request", REPORT_IT},
    {"backfill", STMT_FSCK_BACKFILL, RULE_PLAIN, "a backfill that goes on has as many items open as it says, and they are not over", REPORT_IT},
    {"delivery", STMT_FSCK_DELIVERY, RULE_PLAIN, "a webhook is told of a request that is final", REPORT_IT},
    {"audit", STMT_FSCK_AUDIT, RULE_PLAIN, "who was cancelled was cancelled by somebody", "somebody removed rows of the audit: look at who may write to the store"},
    {"number", STMT_FSCK_NUMBER, RULE_PLAIN, "no number is larger than the last one drawn", "the store was restored in parts: restore it whole, or set the sequence higher, before anything runs"},
    {"pages", STMT_FSCK_PAGES, RULE_SQLITE, "the database file is sound", "restore the store from a backup; look at the disk"},
};

/* Looked at by hand, after the table. */
static const struct fsck_rule budget = {"budget", STMT_BUDGET_READ, RULE_PLAIN,
    "a budget has no more calls than a day may have", "harmless if per_day was lowered today; else report it as a bug"};
static const struct fsck_rule file_missing = {"file-missing", STMT_COUNT, RULE_PLAIN,
    "a result has its file", "run the job again; look at what cleans the results folder"};
static const struct fsck_rule file_damaged = {"file-damaged", STMT_COUNT, RULE_PLAIN,
    "a result is what was published", "run the job again; look at the disk, and at who writes to the results folder"};
static const struct fsck_rule file_stray = {"file-stray", STMT_COUNT, RULE_REPAIR,
    "a file in the results folder belongs to a result", REPAIR_IT};
static const struct fsck_rule part = {"part", STMT_COUNT, RULE_REPAIR,
    "a part belongs to a claim", REPAIR_IT};
/* clang-format on */

const char *
fsck_check_name(size_t at)
{
    static const struct fsck_rule *const behind[] = {&budget, &file_missing,
                                                     &file_damaged, &file_stray, &part};

    if (at < array_len(rules))
        return rules[at].name;
    at -= array_len(rules);
    return at < array_len(behind) ? behind[at]->name : NULL;
}

static void
add(struct fsck_look *look, const struct fsck_rule *rule, int64_t id, int64_t token,
    const char *detail)
{
    struct fsck_report *report = look->report;

    if (report->count == report->room) {
        size_t room = report->room ? report->room * 2 : 16;
        struct fsck_finding *wider =
            arena_array(look->arena, struct fsck_finding, room);

        if (report->count > 0)
            memcpy(wider, report->findings, report->count * sizeof(*wider));
        report->findings = wider;
        report->room = room;
    }
    report->findings[report->count++] = (struct fsck_finding){
        .check = rule->name,
        .rule = rule->rule,
        .remedy = rule->remedy,
        .detail = arena_strdup(look->arena, detail ? detail : ""),
        .id = id,
        .token = token,
        .repairable = rule->kind == RULE_REPAIR,
    };
}

/* --- rules that are statements --- */

static int
ask(struct fsck_look *look, struct db *db, const struct fsck_rule *rule,
    struct db_rows *rows, struct err *err)
{
    const struct db_sql *sql = store_sql(db, rule->stmt);

    if (rule->kind == RULE_GRACE)
        return db_ask(db, sql, rows, err, p_i64(look->order->grace_us),
                      p_i64(FSCK_MOST + 1));
    return db_ask(db, sql, rows, err, p_i64(FSCK_MOST + 1));
}

static int
look_at_rule(struct fsck_look *look, struct db *db, const struct fsck_rule *rule,
             struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    int seen = 0;
    int r;

    if (rule->kind == RULE_SQLITE && db_kind(db) != DB_SQLITE)
        return 0;
    look->report->checks++;
    r = ask(look, db, rule, &rows, err);
    while (r == 0 && (r = db_next(&rows, err)) > 0) {
        if (seen++ < FSCK_MOST)
            add(look, rule, db_i64(&rows, 0), 0, db_text(&rows, 1));
        else
            look->report->more = true;
        r = 0;
    }
    return r;
}

/* Their limits are known to the configuration only. */
static int
look_at_budgets(struct fsck_look *look, struct db *db, struct err *err)
{
    const struct config *config = look->order->config;
    int r = 0;

    look->report->checks++;
    for (size_t i = 0; r == 0 && i < config->budget_count; i++) {
        const struct config_budget *limit = &config->budgets[i];
        scoped(db_rows_end) struct db_rows rows = {0};

        r = db_ask(db, store_sql(db, budget.stmt), &rows, err, p_text(limit->name));
        if (r == 0)
            r = db_next(&rows, err);
        if (r > 0 && db_i64(&rows, 2) > limit->per_day)
            add(look, &budget, 0, 0,
                arena_printf(look->arena, "%s: %" PRId64 " calls taken of %" PRId64,
                             limit->name, db_i64(&rows, 2), limit->per_day));
        r = r > 0 ? 0 : r;
    }
    return r;
}

/* --- the results folder --- */

static int
note_entry(void *arg, const struct result_entry *entry, struct err *err)
{
    struct fsck_look *look = arg;
    struct fsck_entry *kept = arena_new(look->arena, struct fsck_entry);

    (void)err;
    kept->entry = *entry;
    kept->entry.path = arena_strdup(look->arena, entry->path);
    kept->next = look->entries;
    look->entries = kept;
    return 0;
}

static void
add_file(struct fsck_look *look, const struct fsck_rule *rule, int64_t id,
         const char *path, const char *what)
{
    if (look->missing++ < FSCK_MOST)
        add(look, rule, id, 0, arena_printf(look->arena, "%.500s: %s", path, what));
    else
        look->report->more = true;
}

/* rows: as fsck_results gives them. */
static void
look_at_result(struct fsck_look *look, const struct db_rows *rows)
{
    int64_t id = db_i64(rows, 0);
    const char *path = db_text(rows, 1);
    scoped(fd_close) int fd = -1;
    struct result_file file = {0};
    struct err note = {0};

    if (result_store_read(look->order->results, path, db_i64(rows, 2), &fd, &note) < 0)
        add_file(look, &file_missing, id, path, note.text);
    else if (!look->order->hash_files)
        return;
    else if (result_store_hash(fd, path, &file, &note) < 0)
        add_file(look, &file_damaged, id, path, note.text);
    else if (!str_eq(file.sha256, db_text(rows, 3)))
        add_file(look, &file_damaged, id, path,
                 "its SHA-256 is not the one that was recorded");
}

/* One page of the results after the request `after`; how many there were. */
static int
look_at_results(struct fsck_look *look, struct db *db, int64_t *after, struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    int count = 0;
    int r = db_ask(db, store_sql(db, STMT_FSCK_RESULTS), &rows, err, p_i64(*after),
                   p_i64(PAGE));

    if (r < 0)
        return r;
    for (; (r = db_next(&rows, err)) > 0; count++) {
        *after = db_i64(&rows, 0);
        look_at_result(look, &rows);
    }
    return r < 0 ? r : count;
}

static int
look_at_entry(struct fsck_look *look, struct db *db, const struct result_entry *entry,
              struct err *err)
{
    const struct fsck_rule *rule = entry->token > 0 ? &part : &file_stray;
    struct db_value of_part[] = {p_i64(entry->token), p_i64(entry->owner)};
    struct db_value of_file[] = {p_i64(entry->owner), p_text(entry->path)};
    const struct db_value *params = entry->token > 0 ? of_part : of_file;
    enum stmt stmt = entry->token > 0 ? STMT_FSCK_PART_KNOWN : STMT_FSCK_FILE_KNOWN;
    int64_t known = 0;
    int r =
        db_query_i64(db, store_sql(db, stmt), params, array_len(of_part), &known, err);

    if (r < 0)
        return r;
    /* A run that ended since we saw the file has moved or removed it. */
    if (known > 0 || !result_store_there(look->order->results, entry->path))
        return 0;
    if (look->strays++ < FSCK_MOST)
        add(look, rule, entry->owner, entry->token, entry->path);
    else
        look->report->more = true;
    return 0;
}

static int
look_at_files(struct fsck_look *look, struct db *db, struct err *err)
{
    int64_t after = 0;
    int r;

    look->report->checks += look->order->hash_files ? 4 : 3;
    do
        r = look_at_results(look, db, &after, err);
    while (r == PAGE);
    for (const struct fsck_entry *kept = look->entries; r >= 0 && kept;
         kept = kept->next)
        r = look_at_entry(look, db, &kept->entry, err);
    return r < 0 ? r : 0;
}

/* --- all --- */

static int
look_at_all(struct db *db, void *arg, struct err *err)
{
    scoped(db_tx_end) struct db_tx tx = {0};
    struct fsck_look *look = arg;
    int r;

    *look->report = (struct fsck_report){0};
    look->missing = look->strays = 0;
    r = db_begin(db, DB_READ, &tx, err);
    for (size_t i = 0; r == 0 && i < array_len(rules); i++)
        r = look_at_rule(look, db, &rules[i], err);
    if (r == 0 && look->order->config)
        r = look_at_budgets(look, db, err);
    if (r == 0 && look->order->results)
        r = look_at_files(look, db, err);
    return r;
}

int
fsck_look(const struct fsck_order *order, struct arena *arena,
          struct fsck_report *ret_report, struct err *err)
{
    struct fsck_report report = {0};
    struct fsck_look look = {.order = order, .arena = arena, .report = &report};
    int r = 0;

    /* The folder first: what is published meanwhile has its row in the snapshot. */
    if (order->results)
        r = result_store_list(order->results, note_entry, &look, err);
    if (r == 0)
        r = store_read(order->store, look_at_all, &look, err);
    if (r < 0)
        return r;
    *ret_report = report;
    return 0;
}

void
fsck_json(const struct fsck_report *report, struct buf *buf)
{
    struct json_out out;

    json_out_init(&out, buf);
    json_begin_object(&out);
    json_kv_bool(&out, "ok", report->repaired == (int64_t)report->count);
    json_kv_i64(&out, "checks", (int64_t)report->checks);
    json_kv_bool(&out, "more", report->more);
    json_key(&out, "findings");
    json_begin_array(&out);
    for (size_t i = 0; i < report->count; i++) {
        const struct fsck_finding *finding = &report->findings[i];

        json_begin_object(&out);
        json_kv_str(&out, "check", finding->check);
        json_kv_i64(&out, "id", finding->id);
        json_kv_str(&out, "detail", finding->detail);
        json_kv_str(&out, "rule", finding->rule);
        json_kv_str(&out, "remedy", finding->remedy);
        json_kv_bool(&out, "repairable", finding->repairable);
        json_kv_bool(&out, "repaired", finding->repaired);
        json_end_object(&out);
    }
    json_end_array(&out);
    json_end_object(&out);
}

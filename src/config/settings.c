/*
 * Every setting of pawl.yaml. To add one: a row here, a field in config.h, then
 * `ninja config-reference` writes docs/config.md anew. Fallbacks are written
 * as a user would write them and go through the same reading.
 */
#include "config/settings.h"

#include "base/clock.h"
#include "config/config.h"
#include "config/sections.h"

#define IN(type, field) offsetof(struct type, field)
#define DAY             US_PER_DAY
#define KIB             INT64_C(1024)
#define MIB             (1024 * KIB)
#define TABLE(rows_)    .rows = rows_, .count = array_len(rows_)

static const char *const level_words[] = {
    [CONFIG_LOG_DEBUG] = "debug",  [CONFIG_LOG_INFO] = "info",
    [CONFIG_LOG_WARN] = "warn",    [CONFIG_LOG_ERROR] = "error",
    [CONFIG_LOG_ERROR + 1] = NULL,
};

static const char *const format_words[] = {
    [CONFIG_LOG_TEXT] = "text",
    [CONFIG_LOG_JSON] = "json",
    [CONFIG_LOG_JOURNAL] = "journal",
    [CONFIG_LOG_JOURNAL + 1] = NULL,
};

static const char *const gap_words[] = {
    [CONFIG_GAP_RUN_AFTER] = "run_after",
    [CONFIG_GAP_SKIP] = "skip",
    NULL,
};

static const char *const overlap_words[] = {
    [CONFIG_OVERLAP_FIRST] = "first",
    [CONFIG_OVERLAP_SECOND] = "second",
    [CONFIG_OVERLAP_BOTH] = "both",
    NULL,
};

static const char *const duplicates_words[] = {
    [CONFIG_DUPLICATES_DEFAULT] = "default", [CONFIG_DUPLICATES_REFUSE] = "refuse",
    [CONFIG_DUPLICATES_REUSE] = "reuse",     [CONFIG_DUPLICATES_ALLOW] = "allow",
    [CONFIG_DUPLICATES_ALLOW + 1] = NULL,
};

/* clang-format off */
static const struct setting store_rows[] = {
    {"url", SETTING_URL, IN(config, store.url), .env = "PAWL_STORE",
     .help = "for every role that has none of its own"},
    {"api", SETTING_URL, IN(config, store.api), .help = "for the role api"},
    {"worker", SETTING_URL, IN(config, store.worker), .help = "for the role worker"},
    {"listen", SETTING_URL, IN(config, store.listen), .env = "PAWL_STORE_LISTEN",
     .help = "direct connection for LISTEN where the others go through a pooler; "
             "without it the worker polls"},
    {"connect_timeout", SETTING_DURATION, IN(config, store.connect_timeout_us), "10s",
     US_PER_S / 10, 10 * US_PER_MINUTE, .help = "for connecting"},
    {"statement_timeout", SETTING_DURATION, IN(config, store.statement_timeout_us), "30s",
     US_PER_S / 10, US_PER_HOUR, .help = "for one statement of pawl's own"},
};
static const struct setting_table store_settings = {
    "store", "Where requests live. `store: URL` is short for `store: {url: URL}`. A URL is "
    "`sqlite:PATH` or `postgresql://USER@HOST/NAME`; keep passwords in a password file "
    "(`PGPASSFILE`), not here.", TABLE(store_rows)};

static const struct setting worker_rows[] = {
    {"seat", SETTING_NAME, IN(config, worker.seat),
     .help = "the worker's stable place; without it an id kept in the state folder"},
    {"heartbeat", SETTING_DURATION, IN(config, worker.heartbeat_us), "10s",
     US_PER_S, 10 * US_PER_MINUTE, .help = "how often a worker tells that it lives"},
    {"dead_after", SETTING_DURATION, IN(config, worker.dead_after_us), "60s",
     3 * US_PER_S, US_PER_HOUR,
     .help = "silence after which it counts as dead; at least 3 heartbeats"},
    {"takeover_after", SETTING_DURATION, IN(config, worker.takeover_after_us), "2h",
     US_PER_S, 365 * DAY, .reloadable = true,
     .help = "wait after which a request of a lane that nobody serves may go to any slot"},
    {"drain", SETTING_DURATION, IN(config, worker.drain_us), "45s",
     0, US_PER_HOUR, .reloadable = true,
     .help = "how long running work may go on to its next chunk border after SIGTERM"},
    {"reap", SETTING_DURATION, IN(config, worker.reap_us), "30s",
     US_PER_S, 10 * US_PER_MINUTE, .reloadable = true,
     .help = "how often dead workers and unrecorded results are looked for"},
    {"safety_scan", SETTING_DURATION, IN(config, worker.safety_scan_us), "30s",
     US_PER_S, 10 * US_PER_MINUTE, .reloadable = true,
     .help = "how often the queue is looked at unasked where wake-ups are pushed"},
    {"poll", SETTING_DURATION, IN(config, worker.poll_us), "2s",
     US_PER_S / 10, 10 * US_PER_MINUTE, .reloadable = true,
     .help = "the same where they are not (PostgreSQL without LISTEN)"},
    {"record_retry", SETTING_DURATION, IN(config, worker.record_retry_us), "1m",
     0, US_PER_HOUR, .reloadable = true,
     .help = "how long an outcome that cannot be recorded is tried again"},
};
static const struct setting_table worker_settings = {
    "worker", "How a worker behaves.", TABLE(worker_rows)};

static const struct setting api_rows[] = {
    {"listen", SETTING_TEXT, IN(config, api.listen), "127.0.0.1:8410",
     .env = "PAWL_LISTEN", .help = "address and port: `127.0.0.1:8410`, `[::1]:8410`"},
    {"socket", SETTING_PATH, IN(config, api.socket),
     .help = "Unix socket for the command line; without it `<SQLite file>.sock`"},
    {"max_body", SETTING_BYTES, IN(config, api.max_body), "1MiB",
     KIB, 64 * MIB, .reloadable = true, .help = "largest body of a request"},
    {"max_connections", SETTING_INTEGER, IN(config, api.max_connections), "1000",
     1, 100000, .help = "open at once; more are answered 503"},
    {"max_bulk", SETTING_INTEGER, IN(config, api.max_bulk), "10000",
     1, 10000, .reloadable = true, .help = "requests in one `POST /requests`"},
    {"header_timeout", SETTING_DURATION, IN(config, api.header_timeout_us), "10s",
     US_PER_S, US_PER_HOUR, .help = "for the head of a request to arrive"},
    {"body_timeout", SETTING_DURATION, IN(config, api.body_timeout_us), "30s",
     US_PER_S, US_PER_HOUR, .help = "for its body"},
    {"idle_timeout", SETTING_DURATION, IN(config, api.idle_timeout_us), "60s",
     US_PER_S, US_PER_HOUR, .help = "between two requests on a connection"},
    {"max_wait", SETTING_DURATION, IN(config, api.max_wait_us), "60s",
     US_PER_S, US_PER_HOUR, .reloadable = true, .help = "ceiling of `?wait=`"},
};
static const struct setting_table api_settings = {
    "api", "The HTTP side.", TABLE(api_rows)};

static const struct setting log_rows[] = {
    {"level", SETTING_WORD, IN(config, log.level), "info", .words = level_words,
     .reloadable = true, .help = "least weight of what is written"},
    {"format", SETTING_WORD, IN(config, log.format), "text", .words = format_words,
     .help = "for people, for programs, or for systemd's journal (levels as it knows them, no "
             "times)"},
};
static const struct setting_table log_settings = {"log", "On standard error.",
                                                  TABLE(log_rows)};

static const struct setting retention_rows[] = {
    {"results", SETTING_DURATION, IN(config, retention.results_us), "7d",
     0, 36500 * DAY, .reloadable = true, .help = "files; 0 = for ever"},
    {"history", SETTING_DURATION, IN(config, retention.history_us), "90d",
     0, 36500 * DAY, .reloadable = true,
     .help = "requests that have ended, executions, audit; at least as long as `idempotency`; "
             "0 = for ever"},
    {"idempotency", SETTING_DURATION, IN(config, retention.idempotency_us), "24h",
     US_PER_MINUTE, DAY, .reloadable = true, .help = "`Idempotency-Key`s"},
};
static const struct setting_table retention_settings = {
    "retention",
    "How long things are kept after their end. A worker looks each hour, `pawl prune` at "
    "once. The row of a result stays and says since when its file is gone (410). With a "
    "request goes all that hangs on it, but never the last instance of its job, nor what "
    "another request, a schedule, a backfill or a kept result still needs; a backfill knows "
    "only of what is there that it was COMPLETED.",
    TABLE(retention_rows)};

static const struct setting budget_rows[] = {
    {"per_day", SETTING_INTEGER, IN(config_budget, per_day), .min = 0, .max = INT64_MAX,
     .needed = true, .help = "calls in one calendar day of the zone"},
    {"zone", SETTING_TEXT, IN(config_budget, zone), "UTC", .help = "IANA name"},
    {"spacing", SETTING_DURATION, IN(config_budget, spacing_us), "0", 0, DAY,
     .help = "least time between two calls"},
};
static const struct setting_table budget_settings = {
    "budgets", "Calls allowed to an outside API.", TABLE(budget_rows)};

static const struct setting webhook_rows[] = {
    {"url", SETTING_TEXT, IN(config_webhook, url), .needed = true,
     .help = "https; http only to a service on this machine"},
    {"key", SETTING_TEXT, IN(config_webhook, key), .needed = true,
     .help = "one of `keys`: the secret that signs, `whsec_…` or any text; two of them, a blank "
             "apart, while it is changed"},
    {"timeout", SETTING_DURATION, IN(config_webhook, timeout_us), "15s", US_PER_S / 10, US_PER_MINUTE,
     .help = "for one call"},
};
static const struct setting_table webhook_settings = {
    "webhooks", "Whom jobs tell that a request has ended; see docs/webhooks.md.",
    TABLE(webhook_rows)};

static const struct setting estimate_rows[] = {
    {"database", SETTING_NAME, IN(config_job, estimate.database), "main",
     .help = "one of `databases`, or `main`"},
    {"sql", SETTING_TEXT, IN(config_job, estimate.sql), .needed = true,
     .help = "answers one number; may use `:parameter`"},
    {"timeout", SETTING_DURATION, IN(config_job, estimate.timeout_us), "1s",
     US_PER_MS, US_PER_MINUTE, .help = "how long the answer may take"},
    {"otherwise", SETTING_NAME, IN(config_job, estimate.otherwise), "large",
     .help = "lane when there is no answer in that time"},
};
static const struct setting_table estimate_settings = {
    "jobs.NAME.estimate", "How much work a request means, asked before it is stored.",
    TABLE(estimate_rows)};

static const struct setting calls_rows[] = {
    {"budget", SETTING_NAME, IN(config_job, calls.budget), .needed = true,
     .help = "one of `budgets`"},
    {"per_item", SETTING_INTEGER, IN(config_job, calls.per_item), "1", 0, 1000000,
     .help = "calls for each item that the estimate counts"},
};
static const struct setting_table calls_settings = {
    "jobs.NAME.calls", "Calls that a request is forecast to make; the answer to a submit "
    "tells them. They limit nothing.", TABLE(calls_rows)};

static const struct setting retry_rows[] = {
    {"attempts", SETTING_INTEGER, IN(config_job, retry.attempts), "3", 1, 100,
     .help = "tries in all, the first included"},
    {"backoff", SETTING_DURATION, IN(config_job, retry.backoff_us), "10s", 0, DAY,
     .help = "wait before the second try; doubled for each further one; the first "
             "WORKER_LOST is tried again at once"},
    {"max_backoff", SETTING_DURATION, IN(config_job, retry.max_backoff_us), "10m",
     0, 30 * DAY, .help = "ceiling of that wait"},
    {"on", SETTING_SECTION, 0, "[WORKER_LOST]", .read = section_retry_on,
     .shape = "list of ERROR, TIMEOUT, WORKER_LOST",
     .help = "outcomes after which it is tried again"},
    {"drained", SETTING_BOOLEAN, IN(config_job, retry.drained),
     .help = "go on by itself after a worker was drained (not when its calls are used "
             "up); default true for a task, false for a batch"},
};
static const struct setting_table retry_settings = {
    "jobs.NAME.retry", "What happens after a failure. `retry: none` is short for `{attempts: 1}`.",
    TABLE(retry_rows)};

static const struct setting job_rows[] = {
    {"title", SETTING_TEXT, IN(config_job, title), .help = "for people; default: the name"},
    {"description", SETTING_TEXT, IN(config_job, description), "\"\"", .help = "for people"},
    {"params", SETTING_SECTION, 0, .read = section_params, .shape = "map: name to rule",
     .help = "see docs/parameters.md"},
    {"duplicates", SETTING_WORD, IN(config_job, duplicates), "default",
     .words = duplicates_words,
     .help = "a request for a job that has one already: refused, answered with the one "
             "still queued, or allowed; default: refuse for a batch, allow for a task"},
    {"reuse_window", SETTING_DURATION, IN(config_job, reuse_window_us), .min = 0,
     .max = 365 * DAY,
     .help = "how old a queued request may be to be reused; default: the file's "
             "`reuse_window`"},
    {"lane", SETTING_SECTION, 0, "normal", .read = section_lane,
     .shape = "name, or {large_over: number}",
     .help = "a lane, or `{large_over: N}`: lane `large` for estimates of N and more, "
             "else `normal` (or `{large_over: N, lane: NAME}`)"},
    {"estimate", SETTING_SECTION, 0, .group = &estimate_settings, .read = section_estimate,
     .shape = "map", .help = "see [estimate](#jobsnameestimate)"},
    {"calls", SETTING_SECTION, 0, .group = &calls_settings, .read = section_calls,
     .shape = "map", .help = "see [calls](#jobsnamecalls)"},
    {"priority", SETTING_INTEGER, IN(config_job, priority), "0", -100, 100,
     .help = "higher goes first"},
    {"timeout", SETTING_DURATION, IN(config_job, timeout_us), "0", 0, 365 * DAY,
     .help = "longest run, from the claim; 0 = none"},
    {"expire_after", SETTING_DURATION, IN(config_job, expire_after_us), "0", 0, 365 * DAY,
     .help = "longest wait in the queue; 0 = none"},
    {"retry", SETTING_SECTION, 0, .group = &retry_settings, .read = section_retry,
     .shape = "map or `none`", .help = "see [retry](#jobsnameretry)"},
    {"needs_keys", SETTING_SECTION, 0, .read = section_needs_keys, .shape = "list of names",
     .help = "of `keys`; only a worker that holds them all takes the job"},
    {"next", SETTING_SECTION, 0, .read = section_next, .shape = "list of jobs or {job, params}",
     .help = "asked for one after the other when this one has COMPLETED; a value `\"{name}\"` in `params` is that parameter of the job before"},
    {"webhook", SETTING_SECTION, 0, .read = section_webhook, .shape = "name, or {to, on}",
     .help = "one of `webhooks`, which is told of every end that no next try follows; "
             "`{to: NAME, on: [FAILED]}`: only of these outcomes"},
    {"result", SETTING_BOOLEAN, IN(config_job, makes_result),
     .help = "a file comes out; default: true if a step writes a file"},
    {"steps", SETTING_SECTION, 0, .read = section_steps, .shape = "list of steps",
     .help = "a batch: what is done, one step after the other; each has a `name` of its own"},
    {"task", SETTING_SECTION, 0, .read = section_task, .shape = "map",
     .help = "a task: one call of a program, many requests per process"},
};
static const struct setting_table job_settings = {
    "jobs", "A job has either `steps` (a batch) or `task`. Its name is "
    "`[a-z0-9][a-z0-9-]{0,62}`.", TABLE(job_rows)};

static const struct setting schedule_rows[] = {
    {"job", SETTING_NAME, IN(config_schedule, job), .needed = true, .help = "one of `jobs`"},
    {"cron", SETTING_TEXT, IN(config_schedule, cron), .needed = true,
     .help = "minute, hour, day, month, weekday, or a word such as `@daily`; the "
             "language is in docs/schedules.md"},
    {"zone", SETTING_TEXT, IN(config_schedule, zone), "UTC", .help = "IANA name"},
    {"gap", SETTING_WORD, IN(config_schedule, gap), "run_after", .words = gap_words,
     .help = "a fixed time that does not exist on a day, because clocks are put forward: "
             "at the first moment after it, or not on that day"},
    {"overlap", SETTING_WORD, IN(config_schedule, overlap), "first", .words = overlap_words,
     .help = "a fixed time that comes twice on a day, because clocks are put back"},
    {"missed", SETTING_SECTION, 0, "one", .read = section_missed,
     .shape = "one, skip or {all: N}",
     .help = "what to do about times that passed while nobody was there"},
    {"paused", SETTING_BOOLEAN, IN(config_schedule, paused), "false",
     .help = "known, but not followed, until the file says otherwise; `pawl pause schedule` "
             "does it without the file"},
    {"params", SETTING_SECTION, 0, .read = section_schedule_params, .shape = "map",
     .help = "parameters of the requests"},
};
static const struct setting_table schedule_settings = {
    "schedules", "When jobs are asked for by the clock.", TABLE(schedule_rows)};
static const struct setting config_rows[] = {
    {"config_version", SETTING_INTEGER, IN(config, version), .min = 1, .max = INT64_MAX,
     .reloadable = true,
     .help = "a number that grows with each change, such as 20261101093000: the store "
             "keeps the job definitions with the highest; without it the file's time "
             "decides (milliseconds since 1970)"},
    {"store", SETTING_SECTION, 0, "sqlite:./pawl.db", .env = "PAWL_STORE",
     .group = &store_settings, .read = section_store, .shape = "URL or map",
     .help = "where requests live; see [store](#store)"},
    {"databases", SETTING_SECTION, 0, .reloadable = true, .read = section_databases,
     .shape = "map: name to URL",
     .help = "databases that jobs may use; `main` is always the store's own"},
    {"results", SETTING_PATH, IN(config, results), "./pawl-data/results",
     .env = "PAWL_RESULTS",
     .help = "folder of the files that jobs make; the same one for all processes of a store"},
    {"state", SETTING_PATH, IN(config, state), "./pawl-data/state", .env = "PAWL_STATE",
     .help = "folder of this worker's own state; never shared"},
    {"lanes", SETTING_SECTION, 0, "{normal: 4, large: 2}", .reloadable = true,
     .read = section_lanes, .shape = "map: name to number",
     .help = "slots of this worker in each lane, 0 to 1000; `normal` and `large` are "
             "always there"},
    {"reuse_window", SETTING_DURATION, IN(config, reuse_window_us), "10m", 0, 365 * DAY,
     .reloadable = true, .help = "default of the jobs' `reuse_window`"},
    {"worker", SETTING_GROUP, .group = &worker_settings, .help = "see [worker](#worker)"},
    {"api", SETTING_GROUP, .group = &api_settings, .help = "see [api](#api)"},
    {"log", SETTING_GROUP, .group = &log_settings, .help = "see [log](#log)"},
    {"retention", SETTING_GROUP, .group = &retention_settings,
     .help = "see [retention](#retention)"},
    {"keys", SETTING_SECTION, 0, .reloadable = true, .read = section_keys,
     .shape = "list of names",
     .help = "environment variables that hold secrets for jobs: names only, values stay "
             "in the worker's environment or credential files"},
    {"budgets", SETTING_SECTION, 0, .reloadable = true, .group = &budget_settings,
     .read = section_budgets, .shape = "map: name to budget", .help = "see [budgets](#budgets)"},
    {"webhooks", SETTING_SECTION, 0, .reloadable = true, .group = &webhook_settings,
     .read = section_webhooks, .shape = "map: name to webhook", .help = "see [webhooks](#webhooks)"},
    {"jobs", SETTING_SECTION, 0, .reloadable = true, .group = &job_settings,
     .read = section_jobs, .shape = "map: name to job", .help = "see [jobs](#jobs)"},
    {"schedules", SETTING_SECTION, 0, .reloadable = true, .group = &schedule_settings,
     .read = section_schedules, .shape = "map: name to schedule",
     .help = "see [schedules](#schedules)"},
};
const struct setting_table config_settings = {"The file", "", TABLE(config_rows)};

/* clang-format on */

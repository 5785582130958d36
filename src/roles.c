/*
 * Order of starting: store → definitions → results → the worker's seat → api →
 * scheduler → the worker's loop, so that a process which cannot listen has not taken
 * any work. Order of ending: the scheduler at once; the worker drains while the api
 * goes on answering and the store stays open; then the api; then the rest. A second
 * signal hurries.
 */
#include "roles.h"

#include "api/api.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "config/config.h"
#include "net/loop.h"
#include "queue/definition.h"
#include "run/result_store.h"
#include "schedule/schedule.h"
#include "schedule/tick.h"
#include "service/catalog.h"
#include "service/estimates.h"
#include "service/service.h"
#include "store/store.h"
#include "store/wake.h"
#include "version.h"
#include "worker/worker.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define API_DRAIN_MS 5000
/* Clients of an api whose store is away are to be told so soon. */
#define API_STORE_WAIT_MS 2000

struct house {
    enum role role;
    const struct config *config;
    struct log log;
    struct arena arena;
    struct store *store;
    struct catalog *catalog;
    struct result_store *results;
    struct service service;
    atomic_flag one_waits; /* of the service */
    struct worker *worker;
    struct scheduler *scheduler;
    struct api *api;
    struct loop *loop;
    struct loop_signal *on_term;
    struct loop_signal *on_int;
    struct loop_signal *on_hup;
    struct loop_wake *defs;
    int subscription;
    pthread_t joiner;
    bool draining;
    bool joining; /* the thread joiner is there */
    bool clean;   /* every run was recorded */
};

static const char *const role_names[] = {
    [ROLE_SERVE] = "serve", [ROLE_API] = "api", [ROLE_WORKER] = "worker"};

static bool
has_worker(const struct house *house)
{
    return house->role != ROLE_API;
}

static bool
has_api(const struct house *house)
{
    return house->role != ROLE_WORKER;
}

/* --- starting --- */

static const char *
store_url(const struct config *config, enum role role)
{
    if (role == ROLE_API)
        return config->store.api;
    return role == ROLE_WORKER ? config->store.worker : config->store.url;
}

static int
open_store(struct house *house, struct err *err)
{
    const struct config *config = house->config;
    const char *url = store_url(config, house->role);
    enum db_kind kind = DB_PG;
    char app_name[24];
    struct store_options options = {
        .url = url,
        .listen_url = config->store.listen,
        .role = role_names[house->role],
        .connect_timeout_ms = (int)(config->store.connect_timeout_us / US_PER_MS),
        .statement_timeout_ms = (int)(config->store.statement_timeout_us / US_PER_MS),
        .idle_tx_ms = config_idle_tx_ms(config),
        .app_name = app_name,
        .plan_once = house->role != ROLE_WORKER, /* which has it from its role */
        .wait_ms = house->role == ROLE_API ? API_STORE_WAIT_MS : 0,
    };
    int r;

    snprintf(app_name, sizeof(app_name), "pawl-%s", role_names[house->role]);
    if (!url)
        return err_set(err, ERR_CONFIG,
                       "%s: `store` is not set; write e.g. store: sqlite:./pawl.db",
                       config->path);
    r = db_url_kind(url, &kind, err);
    if (r < 0)
        return r;
    if (kind == DB_SQLITE && house->role != ROLE_SERVE)
        return err_set(
            err, ERR_CONFIG,
            "an SQLite store belongs to one process: use `pawl serve`, which "
            "is api and worker in one, or put the store on PostgreSQL");
    options.migrate = kind == DB_SQLITE || house->role == ROLE_SERVE;
    return store_open(&options, &house->store, err);
}

static int
open_definitions(struct house *house, struct err *err)
{
    struct publish_counts counts = {0};
    struct publish_counts schedules = {0};
    int r;

    r = catalog_publish(house->store, house->config, &counts, err);
    if (r == 0)
        r = schedule_publish(house->store, house->config, &schedules, err);
    if (r < 0)
        return r;
    if (counts.kept > 0 || schedules.kept > 0)
        log_line(&house->log, LOG_WARN,
                 "the store has other definitions of the same or a newer "
                 "config_version; raise config_version in the file to replace them",
                 log_i64("jobs", counts.kept), log_i64("schedules", schedules.kept));
    if (counts.withdrawn > 0)
        log_line(
            &house->log, LOG_WARN,
            "jobs of the store that the file lacks are withdrawn; put them into it, "
            "or raise config_version in the file that has them",
            log_i64("jobs", counts.withdrawn));
    return catalog_new(house->store, &house->catalog, err);
}

static void
on_definitions(void *arg)
{
    struct house *house = arg;
    struct err err = {0};

    if (catalog_reload(house->catalog, &err) < 0)
        log_line(&house->log, LOG_ERROR,
                 "cannot read the definitions anew; the old ones stay in force",
                 log_str("reason", err.text));
}

static void
on_store_wake(void *arg, unsigned mask)
{
    (void)mask;
    loop_wake_send(arg);
}

static int
open_worker(struct house *house, struct err *err)
{
    struct worker_options options = {
        .config = house->config,
        .store = house->store,
        .results = house->results,
        .clock = clock_real(),
        .log = &house->log,
        .version = PAWL_VERSION,
    };

    return worker_new(&options, &house->worker, err);
}

static int
open_scheduler(struct house *house, struct err *err)
{
    struct scheduler_options options = {
        .store = house->store,
        .log = &house->log,
        .order = service_schedule_order,
        .arg = &house->service,
    };
    int r = scheduler_new(&options, &house->scheduler, err);

    return r < 0 ? r : scheduler_start(house->scheduler, err);
}

/* Next to an SQLite store its owner can be reached by the command line. */
static const char *
socket_path(struct house *house)
{
    const struct config *config = house->config;

    if (config->api.socket)
        return config->api.socket;
    if (store_kind(house->store) != DB_SQLITE)
        return NULL;
    return arena_printf(&house->arena, "%s.sock",
                        config->store.url + strlen("sqlite:"));
}

static int
open_api(struct house *house, struct err *err)
{
    struct api_options options = {
        .config = house->config,
        .service = &house->service,
        .loop = house->loop,
        .log = &house->log,
        .socket = socket_path(house),
        .version = PAWL_VERSION,
    };

    return api_new(&options, &house->api, err);
}

/* --- ending --- */

static void
end_loop(void *arg)
{
    struct house *house = arg;

    loop_stop(house->loop);
}

static void
drain_api(void *arg)
{
    struct house *house = arg;

    if (house->api)
        api_drain(house->api, API_DRAIN_MS, end_loop, house);
    else
        loop_stop(house->loop);
}

/* Waits for the worker off the loop, so that the api goes on answering. */
static void *
join_worker(void *arg)
{
    struct house *house = arg;

    house->clean = worker_join(house->worker);
    loop_post(house->loop, drain_api, house);
    return NULL;
}

static void
on_signal(void *arg, int signum)
{
    struct house *house = arg;

    (void)signum;
    if (house->draining) {
        if (house->worker)
            worker_hurry(house->worker);
        return;
    }
    house->draining = true;
    if (house->scheduler)
        scheduler_stop(house->scheduler);
    log_line(&house->log, LOG_INFO, "stopping; a second signal hurries");
    if (!house->worker) {
        drain_api(house);
        return;
    }
    worker_stop(house->worker);
    house->joining = pthread_create(&house->joiner, NULL, join_worker, house) == 0;
    if (!house->joining)
        join_worker(house);
}

/* It is what people send to reload; it must not end a server. */
static void
on_hangup(void *arg, int signum)
{
    struct house *house = arg;

    (void)signum;
    log_line(
        &house->log, LOG_WARN,
        "SIGHUP: the configuration is read at the start only; restart to apply it");
}

static void
leave(struct house *house)
{
    scheduler_free(house->scheduler);
    worker_free(house->worker);
    api_free(house->api);
    if (house->defs) {
        store_unsubscribe(house->store, house->subscription);
        loop_wake_free(house->defs);
    }
    loop_signal_free(house->on_term);
    loop_signal_free(house->on_int);
    loop_signal_free(house->on_hup);
    loop_free(house->loop);
    result_store_close(house->results);
    estimates_free(house->service.estimates);
    catalog_free(house->catalog);
    store_close(house->store);
    arena_release(&house->arena);
}

/* --- a role's life --- */

static int
open_house(struct house *house, struct err *err)
{
    const struct config *config = house->config;
    int r;

    r = loop_new(&house->loop, err);
    if (r == 0)
        r = open_store(house, err);
    if (r == 0)
        r = open_definitions(house, err);
    if (r == 0)
        r = result_store_open(config->results, store_id(house->store), &house->results,
                              err);
    if (r < 0)
        return r;
    house->service = (struct service){
        .config = config,
        .store = house->store,
        .catalog = house->catalog,
        .estimates = estimates_new(config, store_url(config, house->role)),
        .results = house->results,
        .clock = clock_real(),
        .one_waits = &house->one_waits,
    };
    atomic_flag_clear(&house->one_waits);
    r = loop_wake_new(house->loop, on_definitions, house, &house->defs, err);
    if (r == 0)
        house->subscription =
            store_subscribe(house->store, WAKE_DEFS, on_store_wake, house->defs);
    if (r == 0)
        r = loop_signal_new(house->loop, SIGTERM, on_signal, house, &house->on_term,
                            err);
    if (r == 0)
        r = loop_signal_new(house->loop, SIGINT, on_signal, house, &house->on_int, err);
    if (r == 0)
        r = loop_signal_new(house->loop, SIGHUP, on_hangup, house, &house->on_hup, err);
    if (r == 0 && has_worker(house))
        r = open_worker(house, err);
    if (r == 0 && has_api(house))
        r = open_api(house, err);
    if (r == 0 && has_worker(house))
        r = open_scheduler(house, err);
    if (r == 0 && house->worker)
        r = worker_start(house->worker, err);
    return r;
}

static void
say_ready(struct house *house)
{
    char url[1024];

    log_line(&house->log, LOG_INFO, "ready", log_str("role", role_names[house->role]),
             log_str("store", db_url_masked(store_url(house->config, house->role), url,
                                            sizeof(url))),
             log_i64("port", house->api ? api_port(house->api) : 0));
}

int
role_run(enum role role, const struct config *config, struct err *err)
{
    struct house house = {.role = role, .config = config, .clean = true};
    static const enum log_format formats[] = {[CONFIG_LOG_TEXT] = LOG_TEXT,
                                              [CONFIG_LOG_JSON] = LOG_JSON,
                                              [CONFIG_LOG_JOURNAL] = LOG_JOURNAL};
    int r;

    log_init(&house.log, STDERR_FILENO, (enum log_level)config->log.level,
             formats[config->log.format], clock_real());
    r = open_house(&house, err);
    if (r < 0) {
        if (house.worker)
            worker_join(house.worker); /* not started: takes its row away */
        leave(&house);
        return r;
    }
    say_ready(&house);
    loop_run(house.loop);
    if (house.joining)
        pthread_join(house.joiner, NULL);
    log_line(&house.log, LOG_INFO, "stopped");
    /* Runs that did not end use the store still: only the process's end stops them. */
    if (!house.clean)
        _exit(1);
    leave(&house);
    return 0;
}

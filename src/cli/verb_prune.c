/* What the workers do each hour, now: remove what is kept only for a time. */
#include "cli/command.h"

#include "base/err.h"
#include "base/json.h"
#include "cli/print.h"
#include "config/config.h"
#include "run/prune.h"
#include "run/result_store.h"
#include "store/store.h"

#include <inttypes.h>
#include <stdio.h>

static void
result_store_closep(struct result_store **results)
{
    result_store_close(*results);
}

static void
print_report(const struct cli *cli, const struct prune_report *report)
{
    scoped(json_drop) json_t *json = json_pack(
        "{s:I, s:I, s:I}", "results", (json_int_t)report->results, "idempotencyKeys",
        (json_int_t)report->keys, "requests", (json_int_t)report->requests);

    if (cli->json)
        print_json(json);
    else
        printf("removed: %" PRId64 " results, %" PRId64 " idempotency keys, %" PRId64
               " requests\n",
               report->results, report->keys, report->requests);
}

int
verb_prune(struct cli *cli, struct err *err)
{
    const struct config *config = cli->config;
    scoped(result_store_closep) struct result_store *results = NULL;
    scoped(store_closep) struct store *store = NULL;
    struct store_options options = {
        .url = config->store.url ? config->store.url : config->store.worker,
        .role = "prune",
        .connections = 2,
        .app_name = "pawl-prune",
    };
    struct prune_order order = {.results_us = config->retention.results_us,
                                .keys_us = config->retention.idempotency_us,
                                .history_us = config->retention.history_us};
    struct prune_report report = {.more = true};
    int r;

    if (!options.url)
        return err_set(err, ERR_CONFIG,
                       "%s: `store` is not set; write e.g. store: sqlite:./pawl.db",
                       config->path);
    r = store_open(&options, &store, err);
    if (r == -ERR_STORE_HELD)
        return err_prefix(err, "a server prunes the store that it owns each hour, "
                               "nothing needs to be done");
    if (r == 0)
        r = result_store_open(config->results, store_id(store), &results, err);
    if (r < 0)
        return r;
    order.store = store;
    order.results = results;
    while (r == 0 && report.more)
        r = prune_step(&order, &report, err);
    if (r == 0)
        print_report(cli, &report);
    return r;
}

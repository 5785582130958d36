/*
 * pawl fsck: does all that must hold of the store hold? Always by the store itself: an
 * SQLite store must not be open elsewhere, so that nothing moves while we look.
 */
#include "cli/command.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "cli/print.h"
#include "config/config.h"
#include "run/result_store.h"
#include "service/fsck.h"
#include "store/store.h"

#include <inttypes.h>
#include <unistd.h>

#define STATEMENT_MS 3600000 /* a look at a large store takes its time */

static void
result_store_closep(struct result_store **results)
{
    result_store_close(*results);
}

static void
print_finding(const struct fsck_finding *finding)
{
    scoped(buf_release) struct buf text = {0};

    buf_init(&text, 0);
    print_escape(&text, finding->detail);
    printf("%s %" PRId64 ": %s\n    must hold: %s\n    %s\n", finding->check,
           finding->id, buf_str(&text), finding->rule,
           finding->repaired ? "repaired" : finding->remedy);
}

static void
print_report(struct cli *cli, const struct fsck_report *report)
{
    scoped(buf_release) struct buf json = {0};

    if (cli->json) {
        buf_init(&json, 0);
        fsck_json(report, &json);
        puts(buf_str(&json));
        return;
    }
    for (size_t i = 0; i < report->count; i++)
        print_finding(&report->findings[i]);
    if (report->more)
        printf("... and more; of each rule only the first %d are told\n", FSCK_MOST);
    printf("%zu rules looked at, %zu finding%s, %" PRId64 " repaired\n", report->checks,
           report->count, report->count == 1 ? "" : "s", report->repaired);
}

int
verb_fsck(struct cli *cli, struct err *err)
{
    const struct config *config = cli->config;
    scoped(result_store_closep) struct result_store *results = NULL;
    scoped(store_closep) struct store *store = NULL;
    struct store_options options = {
        .url = config->store.url ? config->store.url : config->store.worker,
        .role = "fsck",
        .connections = 2,
        .connect_timeout_ms = (int)(config->store.connect_timeout_us / US_PER_MS),
        .statement_timeout_ms = STATEMENT_MS,
        .app_name = "pawl-fsck",
    };
    struct fsck_order order = {
        .config = config,
        .hash_files = option_given(&cli->options, OPTION_FILES),
        .grace_us = 2 * (config->worker.dead_after_us + config->worker.reap_us)};
    struct fsck_report report = {0};
    char actor[32];
    int r;

    if (!options.url)
        return err_set(err, ERR_CONFIG,
                       "%s: `store` is not set; write e.g. store: sqlite:./pawl.db",
                       config->path);
    r = store_open(&options, &store, err);
    if (r == 0)
        r = result_store_open(config->results, store_id(store), &results, err);
    if (r < 0)
        return r;
    order.store = store;
    order.results = results;
    snprintf(actor, sizeof(actor), "uid:%u", (unsigned)getuid());
    r = fsck_look(&order, &cli->arena, &report, err);
    if (r == 0 && option_given(&cli->options, OPTION_REPAIR))
        r = fsck_repair(&order, actor, &report, err);
    if (r < 0)
        return r;
    print_report(cli, &report);
    return report.more || report.repaired < (int64_t)report.count ? 1 : 0;
}

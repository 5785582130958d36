/* pawl migrate: bring the schema of the store up to date. */
#include "cli/command.h"

#include "base/clock.h"
#include "base/err.h"
#include "config/config.h"
#include "store/store.h"

int
verb_migrate(struct cli *cli, struct err *err)
{
    const struct config *config = cli->config;
    scoped(store_closep) struct store *store = NULL;
    struct store_options options = {
        .url = config->store.url ? config->store.url : config->store.worker,
        .listen_url = config->store.listen,
        .migrate = true,
        .role = "migrate",
        .connections = 2,
        .app_name = "pawl-migrate",
    };
    int before = 0;
    int now = 0;
    int r;

    if (!options.url)
        return err_set(err, ERR_CONFIG,
                       "%s: `store` is not set; write e.g. store: sqlite:./pawl.db",
                       config->path);
    r = store_open(&options, &store, err);
    if (r < 0)
        return r;
    store_schema(store, &before, &now);
    if (cli->json)
        printf("{\"before\":%d,\"now\":%d,\"storeId\":\"%s\"}\n", before, now,
               store_id(store));
    else if (before == now)
        printf("the schema is at %d already; nothing to do\n", now);
    else
        printf("schema %d -> %d\n", before, now);
    return 0;
}

/* pawl migrate: bring the schema of the store up to date, and the roles with it. */
#include "cli/command.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "config/config.h"
#include "store/roles.h"
#include "store/store.h"

static int
print_script(void)
{
    scoped(buf_release) struct buf out = {0};

    buf_init(&out, 0);
    roles_script(&out);
    printf("%s", buf_str(&out));
    return 0;
}

static void
say_roles(const struct roles_report *roles)
{
    if (roles->missing > 0)
        fprintf(stderr,
                "%d of the roles pawl_owner, pawl_api, pawl_worker, pawl_reader, "
                "pawl_submit are missing, and the role of the URL may not make them; "
                "to run api and worker with no more rights than they need, let an "
                "administrator run: pawl migrate --print-roles | psql DATABASE\n",
                roles->missing);
    else if (!roles->granted)
        fprintf(stderr, "the schema pawl belongs to another role: its roles keep the "
                        "rights they have\n");
    else if (roles->made > 0)
        printf("made %d roles, without passwords; see docs/postgresql.md\n",
               roles->made);
}

static void
say_schema(const struct cli *cli, struct store *store, const struct roles_report *roles)
{
    int before = 0;
    int now = 0;

    store_schema(store, &before, &now);
    if (cli->json) {
        printf("{\"before\":%d,\"now\":%d,\"storeId\":\"%s\"", before, now,
               store_id(store));
        if (store_kind(store) == DB_PG)
            printf(",\"roles\":{\"made\":%d,\"missing\":%d,\"granted\":%s}",
                   roles->made, roles->missing, roles->granted ? "true" : "false");
        printf("}\n");
        return;
    }
    if (before == now)
        printf("the schema is at %d already; nothing to do\n", now);
    else
        printf("schema %d -> %d\n", before, now);
    if (store_kind(store) == DB_PG)
        say_roles(roles);
}

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
    struct roles_report roles = {0};
    int r;

    if (option_given(&cli->options, OPTION_PRINT_ROLES))
        return print_script();
    if (!options.url)
        return err_set(err, ERR_CONFIG,
                       "%s: `store` is not set; write e.g. store: sqlite:./pawl.db",
                       config->path);
    r = store_open(&options, &store, err);
    if (r == 0 && store_kind(store) == DB_PG)
        r = roles_apply(store, &roles, err);
    if (r < 0)
        return r;
    say_schema(cli, store, &roles);
    return 0;
}

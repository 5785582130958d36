/* pawl check: everything that is wrong with the configuration, at once. */
#include "cli/command.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "cli/print.h"
#include "config/config.h"
#include "config/errors.h"
#include "net/http_server.h"
#include "run/check.h"
#include "schedule/check.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>

#define CONNECT_MS 5000

static void
print_problems_json(const struct config_errors *errors)
{
    scoped(buf_release) struct buf buf = {0};
    struct json_out out;

    buf_init(&buf, 0);
    json_out_init(&out, &buf);
    json_begin_object(&out);
    json_kv_bool(&out, "ok", errors->count == 0);
    json_key(&out, "problems");
    json_begin_array(&out);
    for (size_t i = 0; i < errors->count; i++) {
        json_begin_object(&out);
        json_kv_str(&out, "where", errors->list[i].where);
        json_kv_i64(&out, "line", errors->list[i].line);
        json_kv_i64(&out, "column", errors->list[i].column);
        json_kv_str(&out, "message", errors->list[i].text);
        json_end_object(&out);
    }
    json_end_array(&out);
    json_end_object(&out);
    puts(buf_str(&buf));
}

/* The file names it, so what cannot be opened is a problem of the file. */
static void
check_database(const struct config *config, const char *name, const char *url,
               struct config_errors *errors)
{
    struct db_options options = {
        .url = url, .read_only = true, .connect_timeout_ms = CONNECT_MS};
    struct db *db = NULL;
    struct err note = {0};

    if (db_open(&options, &db, &note) < 0 || db_ping(db, &note) < 0)
        config_errors_add(errors, config->path, 0, 0,
                          "database %s cannot be opened: %s", name, note.text);
    db_close(db);
}

/* What keeps a server from starting is told here already. */
static void
check_listen(const struct config *config, struct config_errors *errors)
{
    char host[HTTP_HOST_SIZE];
    struct err note = {0};
    int port = 0;

    if (http_server_parse_listen(config->api.listen, host, &port, &note) < 0)
        config_errors_add(errors, config->path, 0, 0, "%s", note.text);
}

static const char *
count_of(struct cli *cli, size_t count, const char *what)
{
    return arena_printf(&cli->arena, "%s %s%s",
                        print_count(&cli->arena, (int64_t)count), what,
                        count == 1 ? "" : "s");
}

static void
print_summary(struct cli *cli, const struct config *config)
{
    printf("%s: ok, %s, %s%s\n", config->path, count_of(cli, config->job_count, "job"),
           count_of(cli, config->database_count, "database"),
           option_given(&cli->options, OPTION_CONNECT) ? " opened" : "");
}

int
verb_check(struct cli *cli, struct err *err)
{
    scoped(config_errors_release) struct config_errors errors = {0};
    scoped(config_free_ptr) struct config *config = NULL;
    scoped(xfree_ptr) char *path = NULL;
    int r = config_find(cli->options.value[OPTION_CONFIG], NULL, NULL, &path, err);

    if (r == 0)
        r = config_load(path, NULL, NULL, &config, &errors, err);
    if (r < 0 && errors.count == 0)
        return r;
    if (config) {
        run_check(config, &errors);
        schedule_check(config, &errors);
        check_listen(config, &errors);
    }
    if (config && option_given(&cli->options, OPTION_CONNECT))
        for (size_t i = 0; i < config->database_count; i++)
            check_database(config, config->databases[i].name, config->databases[i].url,
                           &errors);
    config_errors_sort(&errors);
    if (!config)
        fputs("pawl: what the steps and the rules of the schedules say is looked at "
              "once this is mended\n",
              stderr);
    if (cli->json)
        print_problems_json(&errors);
    else if (errors.count > 0)
        config_errors_print(&errors, stdout);
    else
        print_summary(cli, config);
    return errors.count > 0 ? EXIT_CONFIG : 0;
}

/* pawl doctor: is all around pawl as it should be? Looks only. */
#include "cli/command.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "cli/print.h"
#include "config/config.h"
#include "service/doctor.h"
#include "version.h"

static void
print_line(const struct doctor_line *line)
{
    scoped(buf_release) struct buf text = {0};

    buf_init(&text, 0);
    print_escape(&text, line->text);
    printf("%-8s %s: %s\n", doctor_level_name(line->level), line->name, buf_str(&text));
    if (line->remedy)
        printf("         -> %s\n", line->remedy);
}

int
verb_doctor(struct cli *cli, struct err *err)
{
    const struct config *config = cli->config;
    scoped(buf_release) struct buf json = {0};
    struct doctor_report report = {0};
    struct doctor_order order = {
        .config = config,
        .url = config->store.worker ? config->store.worker : config->store.url,
        .clock = clock_real(),
        .version = PAWL_VERSION,
    };

    if (!order.url)
        return err_set(err, ERR_CONFIG,
                       "%s: `store` is not set; write e.g. store: sqlite:./pawl.db",
                       config->path);
    doctor_run(&order, &cli->arena, &report);
    if (cli->json) {
        buf_init(&json, 0);
        doctor_json(&report, &json);
        puts(buf_str(&json));
    } else {
        for (size_t i = 0; i < report.count; i++)
            print_line(&report.lines[i]);
    }
    return report.worst == DOCTOR_ERROR ? 1 : 0;
}

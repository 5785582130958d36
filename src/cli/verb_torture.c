/* pawl torture JOB: is it restart-safe? Tells by step, with the reason and what helps.
 */
#include "cli/command.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/strs.h"
#include "cli/bar.h"
#include "cli/interrupt.h"
#include "cli/params.h"
#include "cli/print.h"
#include "config/config.h"
#include "torture/torture.h"

#include <inttypes.h>
#include <stdlib.h>

#define ROUNDS_DEFAULT 50

struct watching {
    struct bar bar;
    struct interrupt interrupt;
};

static void
watching_release(struct watching *watching)
{
    bar_release(&watching->bar);
    interrupt_release(&watching->interrupt);
}

static void
show_round(void *arg, int done, int rounds, const char *step)
{
    struct watching *watching = arg;
    scoped(buf_release) struct buf message = {0};
    scoped(json_drop) json_t *request = NULL;

    buf_init(&message, 0);
    buf_addf(&message, "%d of %d kills  %s", done, rounds, step);
    request =
        json_pack("{s:s, s:{s:i, s:s}}", "status", "RUNNING", "progress", "percent",
                  rounds ? 100 * done / rounds : 0, "message", buf_str(&message));
    bar_show(&watching->bar, request);
}

static bool
is_interrupted(void *arg)
{
    struct watching *watching = arg;

    return interrupt_came(&watching->interrupt, 0);
}

/* --- the report --- */

static const char *
name_of(const struct torture_step *step)
{
    return step->name ? step->name : "(start and end)";
}

static void
print_step_json(struct json_out *out, const struct torture_step *step)
{
    json_begin_object(out);
    json_kv_str(out, "name", step->name);
    json_kv_str(out, "effect", step->effect);
    json_kv_bool(out, "safe", step->safe);
    json_kv_i64(out, "kills", step->kills);
    json_kv_i64(out, "bad", step->bad);
    json_kv_str(out, "seen", step->seen);
    json_kv_str(out, "reason", step->reason);
    json_kv_str(out, "remedy", step->remedy);
    json_kv_str(out, "note", step->note);
    json_end_object(out);
}

static void
print_table_json(struct json_out *out, const struct torture_table *table)
{
    json_begin_object(out);
    json_kv_str(out, "database", table->database);
    json_kv_str(out, "table", table->name);
    json_kv_i64(out, "rows", table->rows);
    json_kv_bool(out, "changed", table->changed);
    json_kv_str(out, "leftOut", table->left_out);
    json_end_object(out);
}

static void
print_report_json(const char *job, const struct torture_report *report)
{
    scoped(buf_release) struct buf buf = {0};
    struct json_out out;

    buf_init(&buf, 0);
    json_out_init(&out, &buf);
    json_begin_object(&out);
    json_kv_str(&out, "job", job);
    json_kv_bool(&out, "safe", report->safe);
    json_kv_i64(&out, "places", report->places);
    json_kv_i64(&out, "rounds", report->rounds);
    json_kv_bool(&out, "sampled", report->rounds < report->places);
    json_key(&out, "steps");
    json_begin_array(&out);
    for (size_t i = 0; i < report->n_steps; i++)
        print_step_json(&out, &report->steps[i]);
    json_end_array(&out);
    json_key(&out, "tables");
    json_begin_array(&out);
    for (size_t i = 0; i < report->n_tables; i++)
        print_table_json(&out, &report->tables[i]);
    json_end_array(&out);
    json_kv_str(&out, "result", report->result[0] ? report->result : NULL);
    json_kv_str(&out, "sha256", report->sha256[0] ? report->sha256 : NULL);
    json_kv_bool(&out, "resultCompared", report->result_compared);
    json_kv_bool(&out, "idle", report->idle);
    json_end_object(&out);
    puts(buf_str(&buf));
}

static void
print_line(const char *lead, const char *text)
{
    scoped(buf_release) struct buf shown = {0};

    if (str_empty(text))
        return;
    buf_init(&shown, 0);
    print_escape(&shown, text);
    printf("    %s%s\n", lead, buf_str(&shown));
}

static void
print_step(const struct torture_step *step)
{
    printf("%-10s %s", step->safe ? "safe" : "NOT SAFE", name_of(step));
    if (step->effect[0])
        printf(" (%s)", step->effect);
    printf(": %d kill%s", step->kills, step->kills == 1 ? "" : "s");
    if (step->bad)
        printf(", %d ended otherwise", step->bad);
    putchar('\n');
    print_line("seen: ", step->seen);
    print_line("why: ", step->reason);
    print_line("remedy: ", step->remedy);
    print_line("note: ", step->note);
}

static void
print_compared(struct cli *cli, const struct torture_report *report)
{
    size_t untouched = 0;

    for (size_t i = 0; i < report->n_tables; i++) {
        const struct torture_table *table = &report->tables[i];

        untouched += !table->changed;
        if (!table->changed)
            continue;
        printf("compared: table %s of database %s, %s rows", table->name,
               table->database, print_count(&cli->arena, table->rows));
        if (table->left_out[0])
            printf(", without %s (differs without a kill too)", table->left_out);
        putchar('\n');
    }
    if (untouched)
        printf("compared: %zu table%s that the job leaves alone\n", untouched,
               untouched == 1 ? "" : "s");
    if (report->idle)
        puts("note: the job changed no row and made no file, so this says little; give "
             "it data (--schema, --database)");
    if (report->result[0] && report->result_compared)
        printf("compared: result %s, byte by byte\n", report->result);
    else if (report->result[0])
        printf("not compared: result %s has other bytes without a kill too\n",
               report->result);
}

static void
print_report(struct cli *cli, const char *job, const struct torture_report *report)
{
    for (size_t i = 0; i < report->n_steps; i++)
        print_step(&report->steps[i]);
    print_compared(cli, report);
    printf("%s: %s; killed at %s of %s places%s\n", job,
           report->safe ? "restart-safe" : "NOT restart-safe",
           print_count(&cli->arena, report->rounds),
           print_count(&cli->arena, report->places),
           report->rounds < report->places
               ? ", evenly spread (--rounds N takes more of them)"
               : "");
}

/* --- all of it --- */

static int
fill_order(struct cli *cli, json_t **params, struct torture_order *order,
           struct err *err)
{
    const struct options *options = &cli->options;
    const char *rounds = options->value[OPTION_ROUNDS];
    const struct config_job *job = config_job_find(cli->config, order->job);
    int64_t count = ROUNDS_DEFAULT;
    int r = 0;

    if (!job)
        return err_set(err, ERR_JOB_NOT_FOUND, "there is no job %.100s in %s",
                       order->job, cli->config->path);
    if (rounds)
        r = parse_i64("--rounds", rounds, 1, TORTURE_ROUNDS_MAX, &count, err);
    if (r == 0)
        r = params_given(cli, order->job, job->params, params, err);
    if (r < 0)
        return r;
    order->config = cli->config;
    order->params = *params;
    order->schema = options->value[OPTION_SCHEMA];
    order->databases = options->databases;
    order->n_databases = options->database_count;
    order->allow_calls = option_given(options, OPTION_ALLOW_CALLS);
    order->rounds = (int)count;
    return 0;
}

int
verb_torture(struct cli *cli, struct err *err)
{
    scoped(watching_release) struct watching watching = {.interrupt = INTERRUPT_INIT};
    scoped(json_drop) json_t *params = NULL;
    struct torture_order order = {.job = cli_word(cli, 1),
                                  .told = show_round,
                                  .interrupted = is_interrupted,
                                  .arg = &watching};
    struct torture_report report = {0};
    int r = fill_order(cli, &params, &order, err);

    if (r == 0)
        r = interrupt_init(&watching.interrupt, err);
    if (r < 0)
        return r;
    bar_init(&watching.bar, option_given(&cli->options, OPTION_QUIET));
    r = torture(&order, &cli->arena, &report, err);
    bar_hide(&watching.bar);
    if (r == -ERR_CANCELLED)
        return EXIT_INTERRUPTED;
    if (r < 0)
        return r;
    if (cli->json)
        print_report_json(order.job, &report);
    else
        print_report(cli, order.job, &report);
    return report.safe ? 0 : 1;
}

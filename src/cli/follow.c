#include "cli/follow.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/civil.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/strs.h"
#include "cli/backend.h"
#include "cli/bar.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/print.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#define TURN_MS      1000
#define AWAY_US      (30 * US_PER_S)
#define AWAY_TURN_MS 500

static bool
is_final(const json_t *request)
{
    const char *status = json_text_of(request, "status");

    return str_eq(status, "DONE") || str_eq(status, "FAILED");
}

static bool
may_pass(enum err_code code)
{
    return err_exit_code(code) == 69;
}

struct away {
    int64_t since_us; /* monotonic; 0 = it answers */
};

/* Still patient? Says so once. */
static bool
stay_patient(struct away *away, struct bar *bar, const struct err *note)
{
    int64_t now_us = clock_mono_us(clock_real());

    if (!may_pass(note->code))
        return false;
    if (!away->since_us) {
        away->since_us = now_us;
        bar_hide(bar);
        fprintf(stderr, "pawl: %s; waiting for it to come back\n", note->text);
    }
    return now_us - away->since_us < AWAY_US;
}

int
follow(struct cli *cli, struct interrupt *interrupt, int64_t request_id,
       json_t **ret_request, struct err *err)
{
    scoped(bar_release) struct bar bar = {0};
    struct away away = {0};
    int wait_ms = 0; /* the first answer at once */

    bar_init(&bar, option_given(&cli->options, OPTION_QUIET));
    for (;;) {
        scoped(json_drop) json_t *request = NULL;
        struct err note = {0};
        int r = cli->backend->kind->show(cli->backend, request_id, wait_ms, &request,
                                         &note);

        if (r == -ERR_NOT_FOUND) /* nothing goes on */
            return err_set(err, note.code, "%s", note.text);
        if (r < 0 && !stay_patient(&away, &bar, &note))
            return err_set(err, note.code,
                           "%s; request %" PRId64 " goes on, see `pawl watch %" PRId64
                           "`",
                           note.text, request_id, request_id);
        if (r == 0) {
            away = (struct away){0};
            bar_show(&bar, request);
            if (is_final(request)) {
                *ret_request = json_incref(request);
                return FOLLOW_FINAL;
            }
            if (!backend_has_workers(cli->backend))
                return err_set(err, ERR_CONNECT,
                               "request %" PRId64 " is %s and no server runs on this "
                               "store, so nobody carries it out; start `pawl serve`",
                               request_id, json_text_of(request, "status"));
        }
        if (interrupt_came(interrupt, r < 0 ? AWAY_TURN_MS : 0))
            return FOLLOW_LEFT;
        wait_ms = TURN_MS;
    }
}

/* --- the end, for people --- */

static double
seconds_between(const json_t *request, const char *from, const char *to)
{
    const char *begin = json_text_of(request, from);
    const char *end = json_text_of(request, to);
    int64_t begin_us = 0;
    int64_t end_us = 0;

    if (!civil_parse_time(begin, strlen(begin), &begin_us) ||
        !civil_parse_time(end, strlen(end), &end_us))
        return -1;
    return (double)(end_us - begin_us) / (double)US_PER_S;
}

static void
add_end(struct cli *cli, const json_t *request, const char *path, struct buf *line)
{
    const json_t *result = json_object_get(request, "result");
    double took_s = seconds_between(request, "startedAt", "finishedAt");

    buf_addf(line, "request %" PRId64 " %s %s", json_count_of(request, "requestId"),
             json_text_of(request, "status"), json_text_of(request, "outcome"));
    if (json_count_of(result, "rows") >= 0)
        buf_addf(line, ", %s rows",
                 print_count(&cli->arena, json_count_of(result, "rows")));
    if (json_is_object(result))
        buf_addf(line, ", %s",
                 print_bytes(&cli->arena, json_count_of(result, "bytes")));
    if (took_s >= 0)
        buf_addf(line, ", in %.1f s", took_s);
    if (!str_empty(json_text_of(request, "detail"))) {
        buf_add_str(line, ": ");
        print_escape(line, json_text_of(request, "detail"));
    }
    if (path) {
        buf_add_str(line, "\nresult: ");
        print_escape(line, path);
    } else if (json_is_object(result)) {
        buf_add_str(line, "\nresult: ");
        print_escape(line, json_text_of(result, "name"));
        buf_addf(line, " (download: pawl watch %" PRId64 " --output FILE)",
                 json_count_of(request, "requestId"));
    }
}

void
follow_print_end(struct cli *cli, const json_t *request, const char *path)
{
    scoped(buf_release) struct buf line = {0};

    if (cli->json) {
        print_json(request);
        return;
    }
    buf_init(&line, 0);
    add_end(cli, request, path, &line);
    puts(buf_str(&line));
}

int64_t
follow_last_try(const json_t *request)
{
    const json_t *tries = json_object_get(request, "attempts");
    const json_t *last = json_array_get(tries, json_array_size(tries) - 1);

    return last ? json_count_of(last, "requestId")
                : json_count_of(request, "requestId");
}

/* follow, and again for each next try. */
static int
follow_tries(struct cli *cli, struct interrupt *interrupt, int64_t *request_id,
             bool tries, json_t **ret_request, struct err *err)
{
    for (;;) {
        scoped(json_drop) json_t *request = NULL;
        int r = follow(cli, interrupt, *request_id, &request, err);
        int64_t last_id;

        if (r != FOLLOW_FINAL)
            return r;
        last_id = follow_last_try(request);
        if (!tries || last_id == *request_id) {
            *ret_request = json_incref(request);
            return FOLLOW_FINAL;
        }
        fprintf(stderr,
                "pawl: request %" PRId64 " ended %s; it is tried again as request "
                "%" PRId64 "\n",
                *request_id, json_text_of(request, "outcome"), last_id);
        *request_id = last_id;
    }
}

int
follow_to_end(struct cli *cli, int64_t request_id, bool tries, struct err *err)
{
    scoped(interrupt_release) struct interrupt interrupt = INTERRUPT_INIT;
    scoped(json_drop) json_t *request = NULL;
    const char *output = cli->options.value[OPTION_OUTPUT];
    const char *path = NULL;
    int r = interrupt_init(&interrupt, err);

    if (r == 0)
        r = follow_tries(cli, &interrupt, &request_id, tries, &request, err);
    if (r == FOLLOW_LEFT) {
        fprintf(stderr,
                "pawl: request %" PRId64 " goes on; `pawl watch %" PRId64
                "` to see it again, `pawl cancel %" PRId64 "` to end it\n",
                request_id, request_id, request_id);
        return EXIT_INTERRUPTED;
    }
    if (r == 0 && output && cli_exit_of(request) == 0)
        r = follow_download(cli, &interrupt, request, output, &path, err);
    if (r < 0)
        return r;
    follow_print_end(cli, request, path);
    return cli_exit_of(request);
}

/*
 * pawl run JOB: carry it out here and now, under the same guards as a worker
 * does. Request, key and claim are one transaction; a worker row stands behind
 * the claim and is kept alive by beats, so that whoever finds us gone closes the
 * request. One thread carries the run out, one beats; this one obeys flags, watches
 * the time and shows the progress. It waits for no write: the run may hold that up,
 * and it is here that somebody asks for the run's end.
 *
 * When a server owns the SQLite store it is asked over its socket instead.
 */
#include "cli/command.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fsio.h"
#include "base/json.h"
#include "base/strs.h"
#include "cli/backend.h"
#include "cli/bar.h"
#include "cli/follow.h"
#include "cli/interrupt.h"
#include "cli/params.h"
#include "cli/print.h"
#include "config/config.h"
#include "liveness/seat.h"
#include "liveness/worker_row.h"
#include "queue/cancel.h"
#include "queue/job.h"
#include "queue/progress.h"
#include "queue/submit.h"
#include "run/run.h"
#include "service/bury.h"
#include "service/intake.h"
#include "service/service.h"
#include "store/store.h"
#include "store/wake.h"
#include "version.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define REQUESTER       "cli"
#define TURN_MS         200
#define SHOW_US         (500 * US_PER_MS)
#define PROGRESS_GAP_US (500 * US_PER_MS)
#define TEMP_FOLDER     "/tmp-run"

struct here {
    struct cli *cli;
    const struct service *service;
    const struct config_job *config_job;
    struct queue_job *job;
    char worker[WORKER_ID_MAX];
    int64_t request_id;
    struct claim_token token;
    struct run *run;
    struct run_report report;
    _Atomic bool over;
    pthread_mutex_t lock; /* of the two below */
    pthread_cond_t left;  /* nobody stays any more */
    bool has_left;
    int interrupts; /* how often Ctrl-C came */
};

/* --- before: what is asked, and who we are --- */

static int
check_keys(const struct config_job *job, struct err *err)
{
    for (size_t i = 0; i < job->needs_key_count; i++)
        if (str_empty(getenv(job->needs_keys[i])))
            return err_set(err, ERR_CONFIG,
                           "job %s needs the key %s: set it in the environment",
                           job->name, job->needs_keys[i]);
    return 0;
}

static int
find_job(struct here *here, const char *name, struct err *err)
{
    const struct config *config = here->cli->config;
    int r;

    here->config_job = config_job_find(config, name);
    if (!here->config_job)
        return err_set(err, ERR_JOB_NOT_FOUND, "there is no job %.100s in %s", name,
                       config->path);
    r = check_keys(here->config_job, err);
    return r < 0 ? r : queue_job_parse(here->config_job->definition, &here->job, err);
}

static int
announce(struct here *here, struct err *err)
{
    scoped(buf_release) struct buf jobs = {0};
    struct json_out out;
    char host[256] = "";
    struct worker_row row;
    int r = worker_id_make(here->worker, sizeof(here->worker), err);

    if (r < 0)
        return r;
    gethostname(host, sizeof(host) - 1);
    buf_init(&jobs, 0);
    json_out_init(&out, &jobs);
    json_begin_array(&out);
    json_put_str(&out, here->job->name);
    json_end_array(&out);
    row = (struct worker_row){
        .id = here->worker,
        .seat = REQUESTER,
        .host = host,
        .pid = getpid(),
        .boot_id = "",
        .lanes = "{}",
        .in_use = "{}",
        .keys = "[]",
        .jobs = buf_str(&jobs),
        .version = PAWL_VERSION,
    };
    return worker_register(here->service->store, &row, err);
}

/* Taken at once, or refused; then once more if what is in the way is closed. */
static int
enter(struct here *here, const struct submit_order *order, struct err *err)
{
    const struct service *service = here->service;
    struct submit_answer answer = {0};
    struct err note = {0};
    int64_t holder = 0;
    int r = queue_submit_claimed(service->store, order, here->worker, &answer,
                                 &here->token, err);

    if (r == -ERR_JOB_ALREADY_RUNNING)
        holder = strtoll(err->detail, NULL, 10);
    if (holder && (service_bury(service, holder) == 1 ||
                   service_bury_alone(service, holder, here->worker, &note) == 1)) {
        err_clear(err);
        r = queue_submit_claimed(service->store, order, here->worker, &answer,
                                 &here->token, err);
    }
    if (r == -ERR_JOB_ALREADY_RUNNING)
        service_tell_silence(service, strtoll(err->detail, NULL, 10), err);
    if (r == 0)
        here->request_id = answer.request_id;
    return r;
}

static int
take(struct here *here, struct err *err)
{
    struct params_errors errors = {0};
    scoped(json_drop) json_t *params = NULL;
    struct intake intake = {
        .job = here->job,
        .requester = REQUESTER,
        .subject = REQUESTER,
        .source = SOURCE_CLI,
        .restart = option_given(&here->cli->options, OPTION_ANEW) ? 0 : -1,
    };
    struct submit_order order = {0};
    const char *most = here->cli->options.value[OPTION_MAX_CALLS];
    char text[400];
    int r = params_given(here->cli, here->job->name, here->config_job->params, &params,
                         err);

    if (r == 0 && most) {
        r = parse_i64("--max-calls", most, 0, INT64_MAX, &intake.max_calls, err);
        intake.has_max_calls = true;
    }
    if (r < 0)
        return r;
    intake.params = params;
    r = intake_order(here->service->estimates, &intake, &here->cli->arena, &order,
                     &errors, err);
    if (r == INTAKE_INVALID) {
        params_errors_text(&errors, text, sizeof(text));
        return err_set(err, ERR_INVALID, "%s", text);
    }
    return r < 0 ? r : enter(here, &order, err);
}

/* --- meanwhile --- */

static void *
carry_out(void *arg)
{
    struct here *here = arg;

    run_carry_out(here->run, &here->report);
    atomic_store(&here->over, true);
    return NULL;
}

static void
obey_flags(struct here *here)
{
    struct queue_flags flags = {0};
    struct err ignored = {0};

    if (queue_look_flags(here->service->store, here->request_id, here->token, &flags,
                         &ignored) != 0)
        return;
    if (flags.cancel)
        run_ask(here->run, RUN_CANCEL);
    else if (flags.stop)
        run_ask(here->run, RUN_STOP);
}

static void
on_interrupt(struct here *here)
{
    here->interrupts++;
    if (here->interrupts == 1) {
        fputs("\npawl: stopping at the next chunk; once more cancels it\n", stderr);
        run_ask(here->run, RUN_STOP);
    } else {
        struct err ignored = {0}; /* then it is cancelled all the same */

        /* As anybody's cancel: the audit has it before the end is recorded. */
        (void)!queue_cancel(here->service->store, here->request_id, REQUESTER,
                            &ignored);
        run_ask(here->run, RUN_CANCEL);
        run_cut(here->run);
    }
}

static void
show(struct here *here, struct bar *bar)
{
    scoped(json_drop) json_t *request = NULL;
    struct backend *backend = here->cli->backend;
    struct err ignored = {0};

    if (backend->kind->show(backend, here->request_id, 0, &request, &ignored) == 0)
        bar_show(bar, request);
}

static void
beat(struct here *here)
{
    struct err ignored = {0}; /* the store may come back before we count as dead */

    if (worker_beat(here->service->store, here->worker, "{}", &ignored) ==
        WORKER_BEAT_GONE)
        run_ask(here->run, RUN_LOST);
}

static void *
beats(void *arg)
{
    struct here *here = arg;
    int64_t gap_us = here->cli->config->worker.heartbeat_us;

    pthread_mutex_lock(&here->lock);
    while (!here->has_left) {
        int64_t until_us;
        struct timespec until;

        pthread_mutex_unlock(&here->lock);
        beat(here);
        pthread_mutex_lock(&here->lock);
        until_us = clock_mono_us(clock_real()) + gap_us;
        until = (struct timespec){.tv_sec = until_us / US_PER_S,
                                  .tv_nsec = (until_us % US_PER_S) * 1000};
        while (!here->has_left &&
               pthread_cond_timedwait(&here->left, &here->lock, &until) == 0)
            ;
    }
    pthread_mutex_unlock(&here->lock);
    return NULL;
}

/* Without it the run is dead for others after a while; it is no reason not to begin. */
static bool
start_beats(struct here *here, pthread_t *ret_thread)
{
    pthread_condattr_t attr;

    pthread_mutex_init(&here->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&here->left, &attr);
    pthread_condattr_destroy(&attr);
    return pthread_create(ret_thread, NULL, beats, here) == 0;
}

static void
end_beats(struct here *here, pthread_t thread)
{
    pthread_mutex_lock(&here->lock);
    here->has_left = true;
    pthread_cond_signal(&here->left);
    pthread_mutex_unlock(&here->lock);
    pthread_join(thread, NULL);
    pthread_cond_destroy(&here->left);
    pthread_mutex_destroy(&here->lock);
}

/* A moment that comes again each gap_us. */
static bool
is_time(int64_t *at_us, int64_t gap_us)
{
    int64_t now_us = clock_mono_us(clock_real());

    if (*at_us > now_us)
        return false;
    *at_us = now_us + gap_us;
    return true;
}

static void
stay(struct here *here, struct interrupt *interrupt)
{
    scoped(bar_release) struct bar bar = {0};
    int64_t start_us = clock_mono_us(clock_real());
    int64_t show_at_us = 0;
    int64_t end_at_us = start_us + here->job->timeout_us;

    bar_init(&bar, option_given(&here->cli->options, OPTION_QUIET));
    while (!atomic_load(&here->over)) {
        if (interrupt_came(interrupt, TURN_MS))
            on_interrupt(here);
        if (here->job->timeout_us && is_time(&end_at_us, US_PER_DAY))
            run_ask(here->run, RUN_TIMEOUT);
        if (is_time(&show_at_us, SHOW_US)) {
            obey_flags(here);
            show(here, &bar);
        }
    }
}

/* --- all of it --- */

static int
carry(struct here *here, struct interrupt *interrupt, struct err *err)
{
    const struct config *config = here->cli->config;
    struct run_env env = {
        .config = config,
        .store = here->service->store,
        .results = here->service->results,
        .clock = clock_real(),
        .worker = here->worker,
        .temp_folder =
            arena_printf(&here->cli->arena, "%s%s", config->state, TEMP_FOLDER),
        .record_retry_us = config->worker.record_retry_us,
        .progress_gap_us = PROGRESS_GAP_US,
    };
    pthread_t thread, heart;
    bool has_heart;

    here->run = run_new(&env, here->request_id, here->job->name, here->token);
    if (here->job->timeout_us)
        run_limit(here->run, clock_mono_us(clock_real()) + here->job->timeout_us);
    has_heart = start_beats(here, &heart);
    if (pthread_create(&thread, NULL, carry_out, here) != 0)
        carry_out(here);
    else {
        stay(here, interrupt);
        pthread_join(thread, NULL);
    }
    if (has_heart)
        end_beats(here, heart);
    run_free(here->run);
    store_wake(here->service->store, WAKE_DONE | WAKE_READY);
    if (!here->report.recorded)
        return err_set(err, ERR_STALE_TOKEN,
                       "the end of request %" PRId64 " could not be recorded: %s",
                       here->request_id, here->report.detail);
    return 0;
}

static int
finish(struct here *here, struct interrupt *interrupt, struct err *err)
{
    struct cli *cli = here->cli;
    const char *output = cli->options.value[OPTION_OUTPUT];
    scoped(json_drop) json_t *request = NULL;
    const char *path = NULL;
    int r = cli->backend->kind->show(cli->backend, here->request_id, 0, &request, err);

    if (r == 0 && output && cli_exit_of(request) == 0)
        r = follow_download(cli, interrupt, request, output, &path, err);
    if (r < 0)
        return r;
    follow_print_end(cli, request, path);
    return cli_exit_of(request);
}

static int
run_here(struct cli *cli, struct err *err)
{
    scoped(interrupt_release) struct interrupt interrupt = INTERRUPT_INIT;
    struct here here = {.cli = cli, .service = backend_service(cli->backend)};
    struct err ignored = {0};
    int r;

    r = interrupt_init(&interrupt, err);
    if (r == 0)
        r = fs_mkdir_private(cli->config->state, err);
    if (r == 0)
        r = find_job(&here, cli_word(cli, 1), err);
    if (r == 0)
        r = announce(&here, err);
    if (r == 0) {
        r = take(&here, err);
        if (r == 0)
            r = carry(&here, &interrupt, err);
        /* Left behind it would only be found dead a minute later. */
        if (worker_remove(here.service->store, here.worker, &ignored) < 0)
            fprintf(stderr, "pawl: %s\n", ignored.text);
    }
    if (r == 0)
        r = finish(&here, &interrupt, err);
    queue_job_free(here.job);
    return r;
}

static int
refuse_if_paused(const char *kind, const char *name, const json_t *item,
                 struct err *err)
{
    if (!json_is_true(json_object_get(item, "paused")))
        return 0;
    return err_set(err, ERR_PAUSED,
                   "%s %.63s is paused by %.60s since %s; `pawl resume %s %.63s` lets "
                   "it go on",
                   kind, name, json_text_of(item, "pausedBy"),
                   json_text_of(item, "pausedAt"), kind, name);
}

/* The owner takes requests of what is paused; but who runs wants it now. */
static int
refuse_paused(struct cli *cli, const char *name, struct err *err)
{
    const struct backend_kind *ask = cli->backend->kind;
    scoped(json_drop) json_t *job = NULL;
    scoped(json_drop) json_t *lanes = NULL;
    const json_t *lane;
    size_t i;
    int r = ask->job(cli->backend, name, &job, err);

    if (r == 0)
        r = refuse_if_paused("job", name, job, err);
    if (r == 0)
        r = ask->lanes(cli->backend, &lanes, err);
    json_array_foreach(json_object_get(lanes, "items"), i, lane)
    {
        const char *its = json_text_of(lane, "lane");

        if (r == 0 && str_eq(its, json_text_of(job, "lane")))
            r = refuse_if_paused("lane", its, lane, err);
    }
    return r;
}

static int
run_there(struct cli *cli, struct err *err)
{
    scoped(json_drop) json_t *body = NULL;
    scoped(json_drop) json_t *answer = NULL;
    int r = params_body(cli, cli_word(cli, 1), &body, err);

    if (r == 0)
        r = refuse_paused(cli, cli_word(cli, 1), err);
    if (!option_given(&cli->options, OPTION_QUIET))
        fputs("pawl: a server owns the store; asking it to run this\n", stderr);
    if (r == 0) {
        json_object_set_new(body, "requester", json_string(REQUESTER));
        r = cli->backend->kind->submit(cli->backend, cli_word(cli, 1), body, NULL,
                                       &answer, err);
    }
    return r < 0 ? r
                 : follow_to_end(cli, json_count_of(answer, "requestId"), true, err);
}

int
verb_run(struct cli *cli, struct err *err)
{
    struct backend_local local = {
        .config = cli->config,
        .role = "run",
        .store = cli->config->store.worker,
        .publish = true,
    };
    int r;

    signal(SIGPIPE, SIG_IGN); /* a pager that is closed must not kill the run */
    r = follow_check_output(cli, err);
    if (r == 0)
        r = backend_local_new(&local, &cli->backend, err);
    if (r < 0)
        return r;
    return backend_service(cli->backend) ? run_here(cli, err) : run_there(cli, err);
}

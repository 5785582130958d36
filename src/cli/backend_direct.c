/* Our own store: the service called here, in this process. */
#include "cli/backend.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fsio.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/strs.h"
#include "cli/interrupt.h"
#include "config/config.h"
#include "queue/definition.h"
#include "queue/list.h"
#include "run/result_store.h"
#include "schedule/schedule.h"
#include "service/catalog.h"
#include "service/estimates.h"
#include "service/service.h"
#include "store/store.h"
#include "store/wake.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define PIECE_BYTES     ((size_t)256 << 10)
#define CLI_CONNECTIONS 4

struct direct {
    struct backend base;
    struct service service;
    struct store *store;
    struct catalog *catalog;
    struct result_store *results;
    const struct config *config;
    int done_fd; /* eventfd: something became final */
    int subscription;
    bool subscribed;
    char caller[32];
};

static struct direct *
self_of(struct backend *backend)
{
    return container_of(backend, struct direct, base);
}

static struct caller
caller_of(const struct direct *self)
{
    return (struct caller){.name = self->caller, .source = SOURCE_CLI};
}

/* Take the answer's text apart, and its memory. */
static int
parse(struct answer *answer, json_t **ret_json, struct err *err)
{
    int r = buf_check(&answer->body, "the answer", err);

    if (r == 0)
        r = json_parse(buf_str(&answer->body), answer->body.len, JSON_DEPTH_MAX,
                       ret_json, err);
    return r;
}

static void
answer_release(struct answer *answer)
{
    buf_release(&answer->body);
}

static struct answer
answer_empty(void)
{
    struct answer answer = {0};

    buf_init(&answer.body, SERVICE_BODY_MAX);
    return answer;
}

/* --- the face --- */

static int
direct_submit(struct backend *backend, const char *job, const json_t *body,
              const char *idempotency_key, json_t **ret_json, struct err *err)
{
    struct direct *self = self_of(backend);
    scoped(answer_release) struct answer answer = answer_empty();
    scoped(buf_release) struct buf text = {0};
    struct caller caller = caller_of(self);
    struct complaint complaint = {0};
    char digest[SHA256_HEX_SIZE];
    struct json_out out;
    int r;

    buf_init(&text, SERVICE_BODY_MAX);
    json_out_init(&out, &text);
    json_put_value(&out, body);
    sha256_hex(buf_str(&text), text.len, digest);
    r = service_submit(&self->service, &caller, job, body, idempotency_key,
                       idempotency_key ? digest : NULL, &answer, &complaint, err);
    return r < 0 ? r : parse(&answer, ret_json, err);
}

static int
show_now(struct direct *self, int64_t request_id, bool *ret_final, json_t **ret_json,
         struct err *err)
{
    scoped(answer_release) struct answer answer = answer_empty();
    int r = service_show(&self->service, request_id, &answer, ret_final, err);

    return r < 0 ? r : parse(&answer, ret_json, err);
}

static void
on_done(void *arg, unsigned mask)
{
    struct direct *self = arg;
    uint64_t one = 1;

    (void)mask;
    /* Full means that it is readable already. */
    if (write(self->done_fd, &one, sizeof(one)) < 0)
        return;
}

static void
wait_done(struct direct *self, int wait_ms)
{
    struct pollfd wait = {.fd = self->done_fd, .events = POLLIN};
    uint64_t count;

    if (poll(&wait, 1, wait_ms) == 1 && read(self->done_fd, &count, sizeof(count)) < 0)
        return;
}

static int
direct_show(struct backend *backend, int64_t request_id, int wait_ms, json_t **ret_json,
            struct err *err)
{
    struct direct *self = self_of(backend);
    json_t *json = NULL;
    bool final = false;
    int r;

    if (wait_ms > 0 && !self->subscribed) {
        self->subscription = store_subscribe(self->store, WAKE_DONE, on_done, self);
        self->subscribed = true;
    }
    r = show_now(self, request_id, &final, &json, err);
    if (r == 0 && !final && wait_ms > 0) {
        json_drop(&json);
        wait_done(self, wait_ms);
        r = show_now(self, request_id, &final, &json, err);
    }
    if (r == 0)
        *ret_json = json;
    return r;
}

static int
filter_of(const struct backend_filter *filter, struct list_filter *ret, struct err *err)
{
    int64_t limit = 0;
    int r = 0;

    *ret = (struct list_filter){.job = filter->job, .requester = filter->requester};
    if (filter->status) {
        ret->has_status = true;
        if (!request_status_parse(filter->status, &ret->status))
            return err_set(err, ERR_INVALID,
                           "status must be QUEUED, RUNNING, DONE or FAILED, not %.40s",
                           filter->status);
    }
    if (filter->after)
        r = parse_i64("after", filter->after, 0, INT64_MAX, &ret->after, err);
    if (r == 0 && filter->limit)
        r = parse_i64("limit", filter->limit, 1, QUEUE_LIST_MAX, &limit, err);
    ret->limit = (int)limit;
    return r;
}

static int
direct_list(struct backend *backend, const struct backend_filter *filter,
            json_t **ret_json, struct err *err)
{
    struct direct *self = self_of(backend);
    scoped(answer_release) struct answer answer = answer_empty();
    struct list_filter wanted;
    int r = filter_of(filter, &wanted, err);

    if (r == 0)
        r = service_list(&self->service, &wanted, &answer, err);
    return r < 0 ? r : parse(&answer, ret_json, err);
}

static int
direct_act(struct backend *backend, enum backend_act act, int64_t id, json_t **ret_json,
           struct err *err)
{
    static int (*const acts[])(const struct service *, const struct caller *, int64_t,
                               struct answer *, struct err *) = {
        [BACKEND_CANCEL] = service_cancel,
        [BACKEND_STOP] = service_stop,
        [BACKEND_RESTART] = service_restart,
        [BACKEND_RECOVER] = service_execution_recover,
        [BACKEND_CANCEL_BACKFILL] = service_backfill_cancel,
    };
    struct direct *self = self_of(backend);
    scoped(answer_release) struct answer answer = answer_empty();
    struct caller caller = caller_of(self);
    int r = acts[act](&self->service, &caller, id, &answer, err);

    static_assert_count(acts, BACKEND_ACT_COUNT);
    return r < 0 ? r : parse(&answer, ret_json, err);
}

static int
direct_jobs(struct backend *backend, json_t **ret_json, struct err *err)
{
    scoped(answer_release) struct answer answer = answer_empty();
    int r = service_jobs(&self_of(backend)->service, &answer, err);

    return r < 0 ? r : parse(&answer, ret_json, err);
}

static int
direct_workers(struct backend *backend, json_t **ret_json, struct err *err)
{
    scoped(answer_release) struct answer answer = answer_empty();
    int r = service_workers(&self_of(backend)->service, &answer, err);

    return r < 0 ? r : parse(&answer, ret_json, err);
}

static int
direct_job(struct backend *backend, const char *job, json_t **ret_json, struct err *err)
{
    scoped(answer_release) struct answer answer = answer_empty();
    int r = service_job(&self_of(backend)->service, job, &answer, err);

    return r < 0 ? r : parse(&answer, ret_json, err);
}

static int
direct_schedules(struct backend *backend, int next, json_t **ret_json, struct err *err)
{
    scoped(answer_release) struct answer answer = answer_empty();
    int r = service_schedules(&self_of(backend)->service, next, &answer, err);

    return r < 0 ? r : parse(&answer, ret_json, err);
}

static int
direct_budgets(struct backend *backend, json_t **ret_json, struct err *err)
{
    scoped(answer_release) struct answer answer = answer_empty();
    int r = service_budgets(&self_of(backend)->service, &answer, err);

    return r < 0 ? r : parse(&answer, ret_json, err);
}

static int
direct_lanes(struct backend *backend, json_t **ret_json, struct err *err)
{
    scoped(answer_release) struct answer answer = answer_empty();
    int r = service_lanes(&self_of(backend)->service, &answer, err);

    return r < 0 ? r : parse(&answer, ret_json, err);
}

static int
direct_hold(struct backend *backend, const char *what, const char *name, bool pause,
            json_t **ret_json, struct err *err)
{
    struct direct *self = self_of(backend);
    scoped(answer_release) struct answer answer = answer_empty();
    struct caller caller = caller_of(self);
    int r;

    r = service_hold(&self->service, &caller, what, name, pause, &answer, err);
    return r < 0 ? r : parse(&answer, ret_json, err);
}

static int
direct_backfill(struct backend *backend, const char *job, const json_t *body,
                json_t **ret_json, struct err *err)
{
    struct direct *self = self_of(backend);
    scoped(answer_release) struct answer answer = answer_empty();
    struct caller caller = caller_of(self);
    struct complaint complaint = {0};
    int r;

    r = service_backfill(&self->service, &caller, job, body, &answer, &complaint, err);
    return r < 0 ? r : parse(&answer, ret_json, err);
}

static int
direct_backfills(struct backend *backend, int64_t backfill_id, json_t **ret_json,
                 struct err *err)
{
    const struct service *service = &self_of(backend)->service;
    scoped(answer_release) struct answer answer = answer_empty();
    int r = backfill_id ? service_backfill_show(service, backfill_id, &answer, err)
                        : service_backfill_list(service, &answer, err);

    return r < 0 ? r : parse(&answer, ret_json, err);
}

static int
direct_execution(struct backend *backend, int64_t execution_id, json_t **ret_json,
                 struct err *err)
{
    scoped(answer_release) struct answer answer = answer_empty();
    int r = service_execution(&self_of(backend)->service, execution_id, &answer, err);

    return r < 0 ? r : parse(&answer, ret_json, err);
}

static int
direct_why(struct backend *backend, int64_t request_id, json_t **ret_json,
           struct err *err)
{
    scoped(answer_release) struct answer answer = answer_empty();
    int r = service_why(&self_of(backend)->service, request_id, &answer, err);

    return r < 0 ? r : parse(&answer, ret_json, err);
}

static int
copy_pieces(int fd, const struct backend_download *download, struct err *err)
{
    scoped(xfree_ptr) char *piece = xmalloc(PIECE_BYTES);

    for (;;) {
        ssize_t n = read(fd, piece, PIECE_BYTES);
        int r;

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_errno(err, ERR_IO, errno, "reading the result");
        if (n == 0)
            return 0;
        if (download->interrupt && interrupt_came(download->interrupt, 0))
            return err_set(err, ERR_CANCELLED, "the download was given up");
        r = download->piece(download->arg, piece, (size_t)n, err);
        if (r < 0)
            return r;
    }
}

static int
direct_result(struct backend *backend, int64_t request_id,
              const struct backend_download *download, struct err *err)
{
    struct direct *self = self_of(backend);
    scoped(arena_release) struct arena arena = {0};
    struct service_result result = {.fd = -1};
    int r = service_result(&self->service, request_id, &arena, &result, err);

    if (r < 0)
        return r;
    r = copy_pieces(result.fd, download, err);
    fd_close(&result.fd);
    return r;
}

static void
direct_free(struct backend *backend)
{
    struct direct *self = self_of(backend);

    if (self->subscribed)
        store_unsubscribe(self->store, self->subscription);
    result_store_close(self->results);
    estimates_free(self->service.estimates);
    catalog_free(self->catalog);
    store_close(self->store);
    fd_close(&self->done_fd);
    free(self);
}

static const struct backend_kind kind = {
    .submit = direct_submit,
    .show = direct_show,
    .list = direct_list,
    .act = direct_act,
    .jobs = direct_jobs,
    .schedules = direct_schedules,
    .budgets = direct_budgets,
    .lanes = direct_lanes,
    .hold = direct_hold,
    .backfill = direct_backfill,
    .backfills = direct_backfills,
    .workers = direct_workers,
    .job = direct_job,
    .execution = direct_execution,
    .why = direct_why,
    .result = direct_result,
    .free = direct_free,
};

/* --- opening --- */

static int
open_all(struct direct *self, const struct backend_local *local, struct err *err)
{
    const struct config *config = local->config;
    struct publish_counts counts = {0};
    enum db_kind db = DB_PG;
    struct store_options options = {
        .url = local->store,
        .listen_url = config->store.listen,
        .role = local->role,
        .connections = CLI_CONNECTIONS,
        .connect_timeout_ms = (int)(config->store.connect_timeout_us / US_PER_MS),
        .statement_timeout_ms = (int)(config->store.statement_timeout_us / US_PER_MS),
        .idle_tx_ms = config_idle_tx_ms(config),
        .app_name = "pawl-cli",
    };
    int r = db_url_kind(local->store, &db, err);

    if (r < 0)
        return r;
    options.migrate = db == DB_SQLITE;
    r = store_open(&options, &self->store, err);
    if (r == 0 && local->publish)
        r = catalog_publish(self->store, config, &counts, err);
    if (r == 0 && counts.withdrawn > 0)
        fprintf(
            stderr,
            "pawl: jobs of the store that the file lacks are withdrawn: %d; put them "
            "into it, or raise config_version in the file that has them\n",
            counts.withdrawn);
    if (r == 0 && local->publish)
        r = schedule_publish(self->store, config, &counts, err);
    if (r == 0)
        r = catalog_new(self->store, &self->catalog, err);
    if (r == 0)
        r = result_store_open(config->results, store_id(self->store), &self->results,
                              err);
    self->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (r == 0 && self->done_fd < 0)
        r = err_errno(err, ERR_INTERNAL, errno, "eventfd");
    return r;
}

int
backend_direct_new(const struct backend_local *local, struct backend **ret_backend,
                   struct err *err)
{
    struct direct *self = xcalloc(1, sizeof(*self));
    sigset_t all;
    sigset_t before;
    int r;

    self->base.kind = &kind;
    self->done_fd = -1;
    self->config = local->config;
    /* The same name as the owner gives to who comes over its socket. */
    snprintf(self->caller, sizeof(self->caller), "uid:%u", (unsigned)getuid());
    /* The store's threads must leave Ctrl-C to us (interrupt.h). */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    r = open_all(self, local, err);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (r < 0) {
        direct_free(&self->base);
        return r;
    }
    self->service = (struct service){
        .config = local->config,
        .store = self->store,
        .catalog = self->catalog,
        .estimates = estimates_new(local->config, local->store),
        .results = self->results,
        .clock = clock_real(),
        .sole_owner = store_kind(self->store) == DB_SQLITE,
    };
    *ret_backend = &self->base;
    return 0;
}

const struct service *
backend_service(struct backend *backend)
{
    return backend->kind == &kind ? &self_of(backend)->service : NULL;
}

/*
 * A watcher belongs to the thread from the moment it is put in. Its client's
 * leaving only marks it; the thread sees the mark, answers (nobody listens) and
 * frees it. No lock is held while the store is read or an answer is given.
 */
#include "api/watch.h"

#include "api/api_private.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/list.h"
#include "base/log.h"
#include "store/store.h"
#include "store/wake.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LOOK_EVERY_US (1 * US_PER_S)
#define PING_EVERY_US (15 * US_PER_S)

struct watcher {
    struct list node;
    struct watch *watch;
    struct http_request *req;
    int64_t request_id;
    int64_t until_us; /* monotonic; a long poll's end; 0 = a stream */
    struct buf last;  /* a stream: what was sent last */
    int64_t sent_at_us;
    bool gone; /* under the lock */
};

struct watch {
    struct api *api;
    pthread_t thread;
    int subscription;

    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct list fresh; /* struct watcher.node: not yet taken by the thread */
    bool woken;
    bool draining;
    bool ending;

    struct list watchers; /* the thread's */
};

static int64_t
now_us(void)
{
    return clock_mono_us(clock_real());
}

static void
on_store_wake(void *arg, unsigned mask)
{
    struct watch *watch = arg;

    (void)mask;
    pthread_mutex_lock(&watch->lock);
    watch->woken = true;
    pthread_cond_signal(&watch->wake);
    pthread_mutex_unlock(&watch->lock);
}

static void
on_gone(void *arg)
{
    struct watcher *watcher = arg;
    struct watch *watch = watcher->watch;

    pthread_mutex_lock(&watch->lock);
    watcher->gone = true;
    watch->woken = true;
    pthread_cond_signal(&watch->wake);
    pthread_mutex_unlock(&watch->lock);
}

/* --- the thread --- */

static void
free_watcher(struct watcher *watcher)
{
    list_remove(&watcher->node);
    buf_release(&watcher->last);
    free(watcher);
}

/* A long poll is answered with how the request stands now. */
static bool
serve_poll(struct watch *watch, struct watcher *watcher, bool gone, bool now)
{
    struct reply reply = {0};
    struct err err = {0};
    bool final = false;
    int r;

    buf_init(&reply.answer.body, SERVICE_BODY_MAX);
    r = service_show(watch->api->options.service, watcher->request_id, &reply.answer,
                     &final, &err);
    if (r == 0 && !final && !gone && !now && now_us() < watcher->until_us) {
        buf_release(&reply.answer.body);
        return false;
    }
    if (r == 0) {
        api_respond(watch->api, watcher->req, &reply);
    } else {
        buf_release(&reply.answer.body);
        api_respond_problem(watch->api, watcher->req, NULL, &err);
    }
    return true;
}

static enum http_presence
send_event(struct watcher *watcher, const struct buf *body)
{
    scoped(buf_release) struct buf event = {0};

    buf_init(&event, SERVICE_BODY_MAX + 64);
    buf_add_str(&event, "data: ");
    buf_add(&event, body->data, body->len);
    buf_add_str(&event, "\n\n");
    watcher->sent_at_us = now_us();
    return http_stream_send(watcher->req, event.data, event.len);
}

static bool
serve_stream(struct watch *watch, struct watcher *watcher, bool gone, bool now)
{
    struct answer answer = {0};
    struct err err = {0};
    enum http_presence presence = HTTP_CLIENT_HERE;
    bool final = now || gone;

    buf_init(&answer.body, SERVICE_BODY_MAX);
    if (!final && service_show(watch->api->options.service, watcher->request_id,
                               &answer, &final, &err) == 0) {
        if (answer.body.len != watcher->last.len ||
            memcmp(answer.body.data, watcher->last.data, answer.body.len) != 0) {
            presence = send_event(watcher, &answer.body);
            buf_release(&watcher->last);
            watcher->last = answer.body;
            answer.body = (struct buf){0};
        } else if (now_us() - watcher->sent_at_us >= PING_EVERY_US) {
            presence = http_stream_send(watcher->req, ": ping\n\n", 8);
            watcher->sent_at_us = now_us();
        }
    }
    buf_release(&answer.body);
    if (!final && presence == HTTP_CLIENT_HERE)
        return false;
    http_stream_end(watcher->req);
    return true;
}

/* One look; true: it has its answer. */
static bool
serve(struct watch *watch, struct watcher *watcher, bool gone, bool now)
{
    return watcher->until_us ? serve_poll(watch, watcher, gone, now)
                             : serve_stream(watch, watcher, gone, now);
}

/* Under the lock: sleep until there is something to do. */
static void
wait_for_news(struct watch *watch)
{
    bool streams = false;
    int64_t until_us = 0;
    struct timespec until;

    list_each(node, &watch->watchers)
    {
        struct watcher *watcher = list_entry(node, struct watcher, node);

        streams |= watcher->until_us == 0;
        if (watcher->until_us && (!until_us || watcher->until_us < until_us))
            until_us = watcher->until_us;
    }
    if (!list_empty(&watch->watchers) &&
        (streams || !store_has_listen(watch->api->options.service->store))) {
        int64_t look_us = now_us() + LOOK_EVERY_US;

        until_us = !until_us || look_us < until_us ? look_us : until_us;
    }
    until.tv_sec = until_us / US_PER_S;
    until.tv_nsec = (until_us % US_PER_S) * 1000;
    while (!watch->woken && !watch->ending)
        if (!until_us)
            pthread_cond_wait(&watch->wake, &watch->lock);
        else if (pthread_cond_timedwait(&watch->wake, &watch->lock, &until) ==
                 ETIMEDOUT)
            break;
    watch->woken = false;
}

static void
take_fresh(struct watch *watch)
{
    struct list *node;

    while ((node = list_pop_front(&watch->fresh)))
        list_push_back(&watch->watchers, node);
}

static bool
is_gone(struct watch *watch, const struct watcher *watcher)
{
    bool gone;

    pthread_mutex_lock(&watch->lock);
    gone = watcher->gone;
    pthread_mutex_unlock(&watch->lock);
    return gone;
}

static void *
watch_thread(void *arg)
{
    struct watch *watch = arg;
    bool ending = false;
    bool now;

    while (!ending) {
        pthread_mutex_lock(&watch->lock);
        wait_for_news(watch);
        take_fresh(watch);
        ending = watch->ending;
        now = ending || watch->draining;
        pthread_mutex_unlock(&watch->lock);
        list_each_safe(node, &watch->watchers)
        {
            struct watcher *watcher = list_entry(node, struct watcher, node);

            if (serve(watch, watcher, is_gone(watch, watcher), now))
                free_watcher(watcher);
        }
    }
    return NULL;
}

/* --- for handlers --- */

static void
put_in(struct watch *watch, struct http_request *req, int64_t request_id,
       int64_t until_us)
{
    struct watcher *watcher = xcalloc(1, sizeof(*watcher));
    bool ending;
    bool gone;

    watcher->watch = watch;
    watcher->req = req;
    watcher->request_id = request_id;
    watcher->until_us = until_us;
    list_init(&watcher->node);
    buf_init(&watcher->last, SERVICE_BODY_MAX);
    gone = http_request_on_gone(req, on_gone, watcher) == HTTP_CLIENT_GONE;
    pthread_mutex_lock(&watch->lock);
    watcher->gone |= gone;
    ending = watch->ending;
    if (!ending)
        list_push_back(&watch->fresh, &watcher->node);
    watch->woken = true;
    pthread_cond_signal(&watch->wake);
    pthread_mutex_unlock(&watch->lock);
    if (!ending)
        return;
    /* The thread takes nobody in any more. */
    serve(watch, watcher, gone, true);
    free_watcher(watcher);
}

void
watch_hold(struct watch *watch, struct http_request *req, int64_t request_id,
           int64_t wait_us)
{
    put_in(watch, req, request_id, now_us() + wait_us);
}

void
watch_stream(struct watch *watch, struct http_request *req, int64_t request_id)
{
    static const struct http_field fields[] = {{"X-Accel-Buffering", "no"}};
    struct http_response response = {
        .status = 200,
        .content_type = "text/event-stream",
        .fields = fields,
        .field_count = array_len(fields),
        .farewell = "event: bye\ndata: {}\nretry: 2000\n\n",
    };

    http_stream_begin(req, &response);
    put_in(watch, req, request_id, 0);
}

/* --- life --- */

int
watch_new(struct api *api, struct watch **ret_watch, struct err *err)
{
    struct watch *watch = xcalloc(1, sizeof(*watch));
    pthread_condattr_t attr;
    int r;

    watch->api = api;
    list_init(&watch->fresh);
    list_init(&watch->watchers);
    pthread_mutex_init(&watch->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&watch->wake, &attr);
    pthread_condattr_destroy(&attr);
    r = pthread_create(&watch->thread, NULL, watch_thread, watch);
    if (r != 0) {
        free(watch);
        return err_errno(err, ERR_NOMEM, r, "cannot start the watching thread");
    }
    watch->subscription =
        store_subscribe(api->options.service->store, WAKE_DONE, on_store_wake, watch);
    *ret_watch = watch;
    return 0;
}

void
watch_drain(struct watch *watch)
{
    pthread_mutex_lock(&watch->lock);
    watch->draining = true;
    watch->woken = true;
    pthread_cond_signal(&watch->wake);
    pthread_mutex_unlock(&watch->lock);
}

void
watch_end(struct watch *watch)
{
    if (!watch)
        return;
    store_unsubscribe(watch->api->options.service->store, watch->subscription);
    pthread_mutex_lock(&watch->lock);
    watch->ending = true;
    pthread_cond_signal(&watch->wake);
    pthread_mutex_unlock(&watch->lock);
    pthread_join(watch->thread, NULL);
}

void
watch_free(struct watch *watch)
{
    if (!watch)
        return;
    pthread_cond_destroy(&watch->wake);
    pthread_mutex_destroy(&watch->lock);
    free(watch);
}

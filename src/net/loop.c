/*
 * loop.h over libuv. Each handle is one small struct with the libuv handle inside;
 * freeing closes the handle and gives the memory back when libuv lets go of it, which
 * is one turn later, so that a callback may free its own handle.
 */
#include "net/loop.h"

#include "base/arena.h"
#include "base/err.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <uv.h>

struct post {
    loop_fn fn;
    void *arg;
};

struct post_list {
    struct post *items;
    size_t count;
    size_t cap;
};

struct loop {
    uv_loop_t uv;
    uv_async_t wake;
    atomic_bool stop;
    pthread_mutex_t lock; /* guards posted */
    struct post_list posted;
    struct post_list running; /* swapped with posted; the loop's thread only */
};

struct loop_watch {
    uv_poll_t uv; /* first: freed through it */
    loop_watch_fn fn;
    void *arg;
    unsigned events;
};

struct loop_timer {
    uv_timer_t uv;
    loop_fn fn;
    void *arg;
};

struct loop_signal {
    uv_signal_t uv;
    loop_signal_fn fn;
    void *arg;
};

struct loop_wake {
    uv_async_t uv;
    loop_fn fn;
    void *arg;
};

static int
uv_failure(struct err *err, int status, const char *what)
{
    return err_errno(err, ERR_IO, -status, "event loop: %s", what);
}

static void
free_handle(uv_handle_t *handle)
{
    free(handle);
}

static void
close_handle(void *handle)
{
    uv_close(handle, free_handle);
}

/* Swap first: what a posted call posts itself waits for the next round. */
static void
run_posted(struct loop *loop)
{
    struct post_list list;

    pthread_mutex_lock(&loop->lock);
    list = loop->posted;
    loop->posted = loop->running;
    loop->running = list;
    pthread_mutex_unlock(&loop->lock);

    for (size_t i = 0; i < list.count; i++)
        list.items[i].fn(list.items[i].arg);
    loop->running.count = 0;
}

static void
on_loop_wake(uv_async_t *wake)
{
    struct loop *loop = wake->data;

    run_posted(loop);
    if (atomic_load(&loop->stop))
        uv_stop(&loop->uv);
}

int
loop_new(struct loop **ret_loop, struct err *err)
{
    struct loop *loop = xcalloc(1, sizeof(*loop));
    int status;

    status = uv_loop_init(&loop->uv);
    if (status < 0) {
        free(loop);
        return uv_failure(err, status, "cannot start");
    }
    status = uv_async_init(&loop->uv, &loop->wake, on_loop_wake);
    if (status < 0) {
        uv_loop_close(&loop->uv);
        free(loop);
        return uv_failure(err, status, "cannot make its wake-up");
    }
    loop->wake.data = loop;
    pthread_mutex_init(&loop->lock, NULL);
    *ret_loop = loop;
    return 0;
}

void
loop_free(struct loop *loop)
{
    int status unused_arg;

    if (loop == NULL)
        return;
    uv_close((uv_handle_t *)&loop->wake, NULL);
    /* Only closing handles are left: one run lets libuv finish them. A handle that
     * its owner forgot would be waited for here, hence NOWAIT and the assert. */
    uv_run(&loop->uv, UV_RUN_NOWAIT);
    status = uv_loop_close(&loop->uv);
    assert(status == 0);
    pthread_mutex_destroy(&loop->lock);
    free(loop->posted.items);
    free(loop->running.items);
    free(loop);
}

/* sendfile has no flag against SIGPIPE. One that was raised meanwhile must not be
 * left to strike when it is let in again. */
static void
drop_pending(const sigset_t *set)
{
    const struct timespec no_wait = {0};

    while (sigtimedwait(set, NULL, &no_wait) > 0 || errno == EINTR)
        continue;
}

void
loop_run(struct loop *loop)
{
    sigset_t pipe_only, old;

    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_only, &old);
    while (!atomic_exchange(&loop->stop, false))
        uv_run(&loop->uv, UV_RUN_DEFAULT);
    if (!sigismember(&old, SIGPIPE))
        drop_pending(&pipe_only);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void
loop_stop(struct loop *loop)
{
    atomic_store(&loop->stop, true);
    uv_async_send(&loop->wake);
}

int64_t
loop_now_ms(const struct loop *loop)
{
    return (int64_t)uv_now(&loop->uv);
}

static void
on_poll(uv_poll_t *poll, int status, int events)
{
    struct loop_watch *watch = (struct loop_watch *)poll;
    unsigned seen = 0;

    if (status < 0) {
        watch->events = 0;
        uv_poll_stop(poll);
        watch->fn(watch->arg, LOOP_BROKEN);
        return;
    }
    if (events & UV_READABLE)
        seen |= LOOP_READABLE;
    if (events & UV_WRITABLE)
        seen |= LOOP_WRITABLE;
    if (events & UV_DISCONNECT)
        seen |= LOOP_HANGUP;
    watch->fn(watch->arg, seen);
}

int
loop_watch_new(struct loop *loop, int fd, loop_watch_fn fn, void *arg,
               struct loop_watch **ret_watch, struct err *err)
{
    struct loop_watch *watch = xcalloc(1, sizeof(*watch));
    int status;

    status = uv_poll_init(&loop->uv, &watch->uv, fd);
    if (status < 0) {
        free(watch);
        return uv_failure(err, status, "cannot watch a descriptor");
    }
    watch->fn = fn;
    watch->arg = arg;
    *ret_watch = watch;
    return 0;
}

void
loop_watch_set(struct loop_watch *watch, unsigned events)
{
    int wanted = 0;

    if (watch->events == events)
        return;
    watch->events = events;
    if (events == 0) {
        uv_poll_stop(&watch->uv);
        return;
    }
    if (events & LOOP_READABLE)
        wanted |= UV_READABLE;
    if (events & LOOP_WRITABLE)
        wanted |= UV_WRITABLE;
    if (events & LOOP_HANGUP)
        wanted |= UV_DISCONNECT;
    uv_poll_start(&watch->uv, wanted, on_poll);
}

void
loop_watch_free(struct loop_watch *watch)
{
    if (watch == NULL)
        return;
    close_handle(watch);
}

static void
on_timer(uv_timer_t *uv)
{
    struct loop_timer *timer = (struct loop_timer *)uv;

    timer->fn(timer->arg);
}

struct loop_timer *
loop_timer_new(struct loop *loop, loop_fn fn, void *arg)
{
    struct loop_timer *timer = xcalloc(1, sizeof(*timer));

    uv_timer_init(&loop->uv, &timer->uv);
    timer->fn = fn;
    timer->arg = arg;
    return timer;
}

void
loop_timer_set(struct loop_timer *timer, int64_t delay_ms)
{
    if (delay_ms < 0)
        uv_timer_stop(&timer->uv);
    else
        uv_timer_start(&timer->uv, on_timer, (uint64_t)delay_ms, 0);
}

void
loop_timer_free(struct loop_timer *timer)
{
    if (timer == NULL)
        return;
    close_handle(timer);
}

static void
on_signal(uv_signal_t *uv, int signum)
{
    struct loop_signal *sig = (struct loop_signal *)uv;

    sig->fn(sig->arg, signum);
}

int
loop_signal_new(struct loop *loop, int signum, loop_signal_fn fn, void *arg,
                struct loop_signal **ret_signal, struct err *err)
{
    struct loop_signal *sig = xcalloc(1, sizeof(*sig));
    int status;

    uv_signal_init(&loop->uv, &sig->uv);
    sig->fn = fn;
    sig->arg = arg;
    status = uv_signal_start(&sig->uv, on_signal, signum);
    if (status < 0) {
        close_handle(sig);
        return uv_failure(err, status, "cannot catch a signal");
    }
    *ret_signal = sig;
    return 0;
}

void
loop_signal_free(struct loop_signal *sig)
{
    if (sig == NULL)
        return;
    close_handle(sig);
}

static void
on_wake(uv_async_t *uv)
{
    struct loop_wake *wake = (struct loop_wake *)uv;

    wake->fn(wake->arg);
}

int
loop_wake_new(struct loop *loop, loop_fn fn, void *arg, struct loop_wake **ret_wake,
              struct err *err)
{
    struct loop_wake *wake = xcalloc(1, sizeof(*wake));
    int status;

    status = uv_async_init(&loop->uv, &wake->uv, on_wake);
    if (status < 0) {
        free(wake);
        return uv_failure(err, status, "cannot make a wake-up");
    }
    wake->fn = fn;
    wake->arg = arg;
    *ret_wake = wake;
    return 0;
}

void
loop_wake_send(struct loop_wake *wake)
{
    uv_async_send(&wake->uv);
}

void
loop_wake_free(struct loop_wake *wake)
{
    if (wake == NULL)
        return;
    close_handle(wake);
}

static void
post_list_add(struct post_list *list, loop_fn fn, void *arg)
{
    if (list->count == list->cap) {
        list->cap = list->cap == 0 ? 16 : list->cap * 2;
        list->items = xrealloc(list->items, list->cap * sizeof(*list->items));
    }
    list->items[list->count++] = (struct post){fn, arg};
}

void
loop_post(struct loop *loop, loop_fn fn, void *arg)
{
    pthread_mutex_lock(&loop->lock);
    post_list_add(&loop->posted, fn, arg);
    pthread_mutex_unlock(&loop->lock);
    uv_async_send(&loop->wake);
}

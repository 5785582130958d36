/*
 * The event loop: descriptors, timers, signals, calls from other threads. Thin
 * over libuv, so that a test may bring its own. One thread runs a loop and owns
 * all that is made on it; only loop_wake_send, loop_post and loop_stop may be
 * called from any thread. Whoever makes a watch, timer, signal or wake frees it,
 * at any time, also inside its own callback; nothing is called after that.
 * All of them must be freed before loop_free.
 */
#ifndef NET_LOOP_H
#define NET_LOOP_H

#include "base/compiler.h"

#include <stdint.h>

struct err;
struct loop;
struct loop_watch;
struct loop_timer;
struct loop_signal;
struct loop_wake;

typedef void (*loop_fn)(void *arg);
typedef void (*loop_watch_fn)(void *arg, unsigned events);
typedef void (*loop_signal_fn)(void *arg, int signum);

int loop_new(struct loop **ret_loop, struct err *err) must_check;
void loop_free(struct loop *loop);

/* Runs until loop_stop. Blocks SIGPIPE in the calling thread meanwhile. */
void loop_run(struct loop *loop);

/* Any thread. A stop asked for before loop_run ends the next loop_run at once. */
void loop_stop(struct loop *loop);

/* Monotonic milliseconds, read once per turn of the loop. */
int64_t loop_now_ms(const struct loop *loop);

/* What a watch waits for, and what it reports. */
#define LOOP_READABLE 1u
#define LOOP_WRITABLE 2u
#define LOOP_HANGUP   4u /* the other side sends no more */
#define LOOP_BROKEN   8u /* report only: error on the descriptor; the watch is paused */

/* Watch a descriptor (made non-blocking; stays the caller's, who closes it after
 * loop_watch_free). Starts paused. Level triggered. */
int loop_watch_new(struct loop *loop, int fd, loop_watch_fn fn, void *arg,
                   struct loop_watch **ret_watch, struct err *err) must_check;
void loop_watch_set(struct loop_watch *watch, unsigned events); /* 0 = pause */
void loop_watch_free(struct loop_watch *watch);

/* One shot; setting it again moves it. delay_ms < 0 switches it off. */
struct loop_timer *loop_timer_new(struct loop *loop, loop_fn fn, void *arg);
void loop_timer_set(struct loop_timer *timer, int64_t delay_ms);
void loop_timer_free(struct loop_timer *timer);

int loop_signal_new(struct loop *loop, int signum, loop_signal_fn fn, void *arg,
                    struct loop_signal **ret_signal, struct err *err) must_check;
void loop_signal_free(struct loop_signal *signal);

/* fn runs on the loop soon after a send; several sends may be one call. */
int loop_wake_new(struct loop *loop, loop_fn fn, void *arg, struct loop_wake **ret_wake,
                  struct err *err) must_check;
void loop_wake_send(struct loop_wake *wake); /* any thread */
void loop_wake_free(struct loop_wake *wake);

/* Run fn(arg) once on the loop, in the order of posting. Any thread. What is posted
 * and not yet run when the loop is freed is dropped. */
void loop_post(struct loop *loop, loop_fn fn, void *arg);

#endif

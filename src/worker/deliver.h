/*
 * Telling webhooks of requests that have ended: a thread of its own with its own HTTP
 * client, so that a slow receiver delays no claim and no beat. It takes what is due in
 * the store (queue/delivery.h), of the webhooks whose key this process holds, whoever
 * has recorded the outcome. Made by the worker; deliver_hurry is for any thread.
 */
#ifndef WORKER_DELIVER_H
#define WORKER_DELIVER_H

#include "base/compiler.h"

#include <stdint.h>

struct clock;
struct config;
struct deliver;
struct err;
struct log;
struct store;

/* Borrowed; all outlive it. */
struct deliver_options {
    const struct config *config;
    struct store *store;
    const struct clock *clock;
    struct log *log;
};

/* *ret NULL: there is no webhook that this process could tell. */
int deliver_new(const struct deliver_options *options, struct deliver **ret_deliver,
                struct err *err) must_check;
int deliver_start(struct deliver *deliver, struct err *err) must_check;

/*
 * The drain is over: tell, once, what has ended since it began (since_us), no longer
 * than until_us (both monotonic); come back when the thread has ended. What remains
 * waits in the store, which is hurried (store_hurry): the process is about to end.
 * All of these accept NULL, and one that was not started.
 */
void deliver_finish(struct deliver *deliver, int64_t since_us, int64_t until_us);
/* Break off, now. */
void deliver_hurry(struct deliver *deliver);
void deliver_free(struct deliver *deliver); /* after deliver_finish */

#endif

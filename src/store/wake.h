/*
 * Wake-ups: something changed, look. They carry nothing and may come without
 * need; none is lost within a process, and between processes (PostgreSQL) they
 * are lost only while the listening connection is away, which is why a safety
 * scan remains: every 30 s while store_has_listen, else every 2 s.
 */
#ifndef STORE_WAKE_H
#define STORE_WAKE_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stdint.h>

struct db;
struct err;
struct store;

enum store_topic {
    WAKE_READY = 1, /* something may be claimable, or due later */
    WAKE_DONE = 2,  /* a request became final, or its progress moved */
    WAKE_FLAG = 4,  /* stop or cancel was asked */
    WAKE_DEFS = 8,  /* definitions were published or withdrawn */
    WAKE_LOST = 16, /* somebody is in the way who is dead, or is asked to be ended */
};
#define WAKE_ALL 31u

/*
 * Tell everybody who subscribed to a topic of mask, here at once and in other
 * processes within some ms. Call it after the commit that changed something.
 * Never waits, never fails.
 */
void store_wake(struct store *store, unsigned mask);

/*
 * The same to other processes only, from within a write transaction: told with its
 * commit, even if we die then. Does nothing on SQLite. For what changes rarely: such a
 * commit waits for those of others. store_wake follows.
 */
int store_wake_in(struct store *store, struct db *db, unsigned mask,
                  struct err *err) must_check;

/* mask: the topics that were told, several at once perhaps. Runs on any thread,
 * with no lock held; must be quick and must not wait. */
typedef void (*store_wake_fn)(void *arg, unsigned mask);

/*
 * Have fn called from now on for the topics of mask. After a time without
 * pushes (a new listening connection) it is called with all of them. Returns a
 * number for store_unsubscribe.
 */
int store_subscribe(struct store *store, unsigned mask, store_wake_fn fn, void *arg);

/* fn is not running and will not be called any more when this returns. Not from
 * within fn. */
void store_unsubscribe(struct store *store, int subscription);

/* Do pushes of other processes arrive now? Always true on SQLite. */
bool store_has_listen(const struct store *store);

#endif

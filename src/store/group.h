/*
 * Group commit for a database with one writer: callers hand in their work, one
 * thread runs all that wait in one transaction, each in a savepoint of its own, and
 * wakes them after the one commit. All functions are for any thread; group_free only
 * when no group_write is under way.
 */
#ifndef STORE_GROUP_H
#define STORE_GROUP_H

#include "base/compiler.h"
#include "store/store.h"

struct group;

/* Opens the writing connection, also anew when one was lost. */
typedef int (*group_open_fn)(void *arg, struct db **ret_db, struct err *err);

int group_new(group_open_fn open, void *arg, struct group **ret_group,
              struct err *err) must_check;
void group_free(struct group *group); /* accepts NULL; closes the connection */

struct group_call {
    enum store_urgency urgency;
    store_fn fn;
    void *arg;
    store_watch_fn watch; /* NULL: none */
    void *watch_arg;
    int64_t wish_of; /* the request that it is about; 0: none */
};

/* As store_write, store_write_watched and store_write_wish. */
int group_write(struct group *group, const struct group_call *call,
                struct err *err) must_check;
bool group_is_wished(struct group *group, int64_t request_id);

void group_counts(struct group *group, struct store_counts *ret);

#endif

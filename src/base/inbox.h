/*
 * How other threads hand things to the thread that owns a loop: nodes embedded
 * in the things are put in under a lock, and wake() is called when the inbox
 * stops being empty (outside the lock, by the putting thread; it must only
 * signal). The owner takes all, in the order they came.
 */
#ifndef BASE_INBOX_H
#define BASE_INBOX_H

#include "base/compiler.h"

#include <pthread.h>
#include <stdbool.h>

struct inbox_node {
    struct inbox_node *next;
};

struct inbox {
    pthread_mutex_t lock;
    struct inbox_node *head;
    struct inbox_node *tail;
    void (*wake)(void *arg);
    void *wake_arg;
    bool closed;
};

/* wake may be NULL. */
void inbox_init(struct inbox *inbox, void (*wake)(void *arg), void *wake_arg);
/* Must be empty: the owner closes, takes the rest, releases. */
void inbox_release(struct inbox *inbox);

/* Any thread. False: closed, the node stays the caller's. */
bool inbox_put(struct inbox *inbox, struct inbox_node *node) must_check;
/* The owner: the chain, oldest first, linked by next; NULL when empty. */
struct inbox_node *inbox_take(struct inbox *inbox);
/* The owner: nothing more is accepted; what is in it can still be taken. */
void inbox_close(struct inbox *inbox);

#endif

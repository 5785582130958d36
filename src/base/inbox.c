#include "base/inbox.h"

#include <assert.h>

void
inbox_init(struct inbox *inbox, void (*wake)(void *arg), void *wake_arg)
{
    memset(inbox, 0, sizeof(*inbox));
    pthread_mutex_init(&inbox->lock, NULL);
    inbox->wake = wake;
    inbox->wake_arg = wake_arg;
}

void
inbox_release(struct inbox *inbox)
{
    assert(!inbox->head);
    pthread_mutex_destroy(&inbox->lock);
}

bool
inbox_put(struct inbox *inbox, struct inbox_node *node)
{
    bool was_empty;

    node->next = NULL;
    pthread_mutex_lock(&inbox->lock);
    if (inbox->closed) {
        pthread_mutex_unlock(&inbox->lock);
        return false;
    }
    was_empty = !inbox->head;
    if (was_empty)
        inbox->head = node;
    else
        inbox->tail->next = node;
    inbox->tail = node;
    pthread_mutex_unlock(&inbox->lock);

    if (was_empty && inbox->wake)
        inbox->wake(inbox->wake_arg);
    return true;
}

struct inbox_node *
inbox_take(struct inbox *inbox)
{
    struct inbox_node *chain;

    pthread_mutex_lock(&inbox->lock);
    chain = inbox->head;
    inbox->head = inbox->tail = NULL;
    pthread_mutex_unlock(&inbox->lock);
    return chain;
}

void
inbox_close(struct inbox *inbox)
{
    pthread_mutex_lock(&inbox->lock);
    inbox->closed = true;
    pthread_mutex_unlock(&inbox->lock);
}

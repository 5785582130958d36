#include "worker/slot.h"

#include "base/arena.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#define IDLE_SECONDS 10

struct slots {
    pthread_mutex_t lock;
    pthread_cond_t work; /* something is ready, or the end */
    pthread_cond_t gone; /* a thread has left */
    struct slot *ready_head;
    struct slot *ready_tail;
    int n_ready;
    int idle;
    int threads;
    bool ending;
    struct inbox done;
};

struct slots *
slots_new(void (*wake)(void *arg), void *arg)
{
    struct slots *slots = xcalloc(1, sizeof(*slots));
    pthread_condattr_t attr;

    pthread_mutex_init(&slots->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&slots->work, &attr);
    pthread_cond_init(&slots->gone, &attr);
    pthread_condattr_destroy(&attr);
    inbox_init(&slots->done, wake, arg);
    return slots;
}

void
slots_free(struct slots *slots)
{
    if (!slots)
        return;
    pthread_mutex_lock(&slots->lock);
    slots->ending = true;
    pthread_cond_broadcast(&slots->work);
    while (slots->threads > 0)
        pthread_cond_wait(&slots->gone, &slots->lock);
    pthread_mutex_unlock(&slots->lock);
    inbox_close(&slots->done);
    inbox_release(&slots->done);
    pthread_cond_destroy(&slots->work);
    pthread_cond_destroy(&slots->gone);
    pthread_mutex_destroy(&slots->lock);
    free(slots);
}

/* The next ready slot; NULL when the thread has idled long enough, or at the end. */
static struct slot *
wait_for_work(struct slots *slots)
{
    struct slot *slot = NULL;
    struct timespec until;
    int waited = 0;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += IDLE_SECONDS;
    pthread_mutex_lock(&slots->lock);
    slots->idle++;
    while (!slots->ready_head && !slots->ending && waited != ETIMEDOUT)
        waited = pthread_cond_timedwait(&slots->work, &slots->lock, &until);
    slots->idle--;
    slot = slots->ready_head;
    if (slot) {
        slots->ready_head = slot->next_ready;
        slots->n_ready--;
        if (!slots->ready_head)
            slots->ready_tail = NULL;
    } else {
        slots->threads--;
        pthread_cond_signal(&slots->gone);
    }
    pthread_mutex_unlock(&slots->lock);
    return slot;
}

static void
carry_out(struct slots *slots, struct slot *slot)
{
    run_carry_out(slot->run, &slot->report);
    /* The inbox closes only after every slot has come back. */
    if (!inbox_put(&slots->done, &slot->done))
        abort();
}

static void *
slot_thread(void *arg)
{
    struct slots *slots = arg;
    struct slot *slot;

    while ((slot = wait_for_work(slots)))
        carry_out(slots, slot);
    return NULL;
}

static bool
start_thread(struct slots *slots)
{
    pthread_attr_t attr;
    pthread_t thread;
    int r;

    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    r = pthread_create(&thread, &attr, slot_thread, slots);
    pthread_attr_destroy(&attr);
    if (r == 0)
        slots->threads++;
    return r == 0;
}

void
slots_fill(struct slots *slots, struct slot *slot)
{
    bool somebody;

    pthread_mutex_lock(&slots->lock);
    somebody =
        slots->idle > slots->n_ready || start_thread(slots) || slots->threads > 0;
    if (somebody) {
        slot->next_ready = NULL;
        if (slots->ready_tail)
            slots->ready_tail->next_ready = slot;
        else
            slots->ready_head = slot;
        slots->ready_tail = slot;
        slots->n_ready++;
        pthread_cond_signal(&slots->work);
    }
    pthread_mutex_unlock(&slots->lock);
    if (!somebody)
        carry_out(slots, slot);
}

struct inbox_node *
slots_take_done(struct slots *slots)
{
    return inbox_take(&slots->done);
}

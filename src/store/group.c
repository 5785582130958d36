/*
 * An fsync costs more than a hundred small statements. While one is under way callers
 * gather; the next transaction takes them all, so the rate of durable writes grows with
 * the number of callers. Everybody is woken only after the commit.
 *
 * A member that fails is rolled back to its savepoint and spoils nobody. Some failures
 * (a full disk) make SQLite roll back the whole transaction: then the members that had
 * gone well are put back at the head and run again, which store_fn allows, and only
 * the one that failed gets the failure. To be sure of an end, a member is run again
 * for the fault of others at most RERUN_MAX times.
 *
 * Two bounds keep a group short: GROUP_MAX members, and GROUP_US after its beginning
 * no further member is taken.
 */
#include "store/group.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/plant.h"
#include "base/list.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>

#define GROUP_MAX 256
#define GROUP_US  (10 * US_PER_MS)
#define RERUN_MAX 2
#define SAVEPOINT "member"

/* One call of group_write, on the stack of its caller. */
struct member {
    struct list link;
    struct list wish; /* in group.wishes */
    const struct group_call *call;
    int result;
    struct err err;
    int reruns;
    bool done;
    pthread_cond_t wake;
};

struct group {
    group_open_fn open;
    void *open_arg;
    pthread_t thread;
    struct db *db; /* the thread's; NULL after a loss */

    pthread_mutex_t lock; /* for all below */
    pthread_cond_t work;
    struct list waiting[STORE_BEAT + 1]; /* by urgency */
    struct list wishes; /* members that are wishes, until they are done */
    bool stop;
    struct store_counts counts;
};

/* The members of one transaction. */
struct batch {
    struct list ran;
    int count;
    int64_t began_us;
};

/* --- lists --- */

/* The one to run next, taken off its list; NULL: nobody waits. Under the lock. */
static struct member *
next_waiting(struct group *group)
{
    for (int urgency = STORE_BEAT; urgency >= STORE_NORMAL; urgency--) {
        struct list *link = list_pop_front(&group->waiting[urgency]);

        if (link) {
            group->counts.waiting--;
            return list_entry(link, struct member, link);
        }
    }
    return NULL;
}

static struct member *
take(struct group *group)
{
    struct member *member;

    pthread_mutex_lock(&group->lock);
    member = next_waiting(group);
    pthread_mutex_unlock(&group->lock);
    return member;
}

/* The first of the next group; NULL: the group is to end. */
static struct member *
wait_for_first(struct group *group)
{
    struct member *member;

    pthread_mutex_lock(&group->lock);
    while (!(member = next_waiting(group)) && !group->stop)
        pthread_cond_wait(&group->work, &group->lock);
    pthread_mutex_unlock(&group->lock);
    return member;
}

static void
wake_under_lock(struct member *member)
{
    member->done = true;
    pthread_cond_signal(&member->wake);
}

static void
finish_one(struct group *group, struct member *member)
{
    pthread_mutex_lock(&group->lock);
    wake_under_lock(member);
    pthread_mutex_unlock(&group->lock);
}

/* The failure of the whole transaction is each member's that had gone well. */
static void
finish_all(struct group *group, struct batch *batch, int r, const struct err *err)
{
    struct list *link;

    pthread_mutex_lock(&group->lock);
    if (r == 0 && batch->count > 0) {
        group->counts.commits++;
        group->counts.writes += batch->count;
    }
    while ((link = list_pop_front(&batch->ran))) {
        struct member *member = list_entry(link, struct member, link);

        if (r < 0) {
            member->result = r;
            member->err = *err;
        }
        wake_under_lock(member);
    }
    pthread_mutex_unlock(&group->lock);
}

/* The transaction is gone through the fault of one: the others go back to the head,
 * in their order. */
static void
put_back(struct group *group, struct batch *batch, const struct err *cause)
{
    struct list *link;

    pthread_mutex_lock(&group->lock);
    while ((link = batch->ran.prev) != &batch->ran) {
        struct member *member = list_entry(link, struct member, link);

        list_remove(link);
        if (member->reruns++ < RERUN_MAX) {
            list_push_front(&group->waiting[member->call->urgency], link);
            group->counts.waiting++;
            continue;
        }
        member->err = *cause;
        member->result = -(int)cause->code;
        wake_under_lock(member);
    }
    pthread_mutex_unlock(&group->lock);
}

/* --- the writer's thread --- */

/* < 0: the transaction as a whole is lost, err says by what. */
static int
run_member(struct group *group, struct batch *batch, struct member *member,
           struct err *err)
{
    int r;

    r = db_savepoint(group->db, SAVEPOINT, err);
    if (r < 0)
        return r;
    err_clear(&member->err);
    member->result = member->call->fn(group->db, member->call->arg, &member->err);
    if (member->result >= 0) {
        /* Fails where fn went on over a failed statement: then it has failed, too. */
        r = db_release(group->db, SAVEPOINT, &member->err);
        if (r < 0)
            member->result = r;
    }
    if (member->result < 0) {
        r = db_rollback_to(group->db, SAVEPOINT, err);
        if (r == 0)
            r = db_release(group->db, SAVEPOINT, err);
        if (r < 0)
            return r;
    }
    if (member->result < 0) {
        finish_one(group, member);
        return 0;
    }
    list_push_back(&batch->ran, &member->link);
    batch->count++;
    return 0;
}

static int
ensure_open(struct group *group, struct err *err)
{
    if (group->db && db_usable(group->db))
        return 0;
    db_close(group->db);
    group->db = NULL;
    return group->open(group->open_arg, &group->db, err);
}

static void
fail_member(struct group *group, struct member *member, int r, const struct err *err)
{
    /* A failure of its own, noted first, is nearer to the cause. */
    if (member->result >= 0) {
        member->result = r;
        member->err = *err;
    }
    finish_one(group, member);
}

/* One transaction, beginning with first. */
static void
run_group(struct group *group, struct member *first)
{
    scoped(db_tx_end) struct db_tx tx = {0};
    const struct clock *clock = clock_real();
    struct batch batch = {.began_us = clock_mono_us(clock)};
    struct member *member = first;
    struct err err = {0};
    int taken = 1;
    int r;

    list_init(&batch.ran);
    r = ensure_open(group, &err);
    if (r == 0)
        r = db_begin(group->db, DB_WRITE, &tx, &err);
    if (r < 0) {
        member->result = 0;
        fail_member(group, member, r, &err);
        return;
    }
    while (member) {
        member->result = 0;
        r = run_member(group, &batch, member, &err);
        if (r < 0) {
            fail_member(group, member, r, &err);
            db_tx_end(&tx);
            put_back(group, &batch, &err);
            return;
        }
        member = NULL;
        if (taken++ < GROUP_MAX && clock_mono_us(clock) - batch.began_us < GROUP_US)
            member = take(group);
    }
    if (planted("ack_before_commit")) {
        finish_all(group, &batch, 0, &err);
        (void)plant_pause(20);
    }
    if (batch.count > 0) /* else nothing is to be made durable */
        r = db_commit(&tx, &err);
    finish_all(group, &batch, r, &err);
}

static void *
group_main(void *arg)
{
    struct group *group = (struct group *)arg;
    struct member *first;

    while ((first = wait_for_first(group)))
        run_group(group, first);
    return NULL;
}

/* --- for callers --- */

int
group_new(group_open_fn open, void *arg, struct group **ret_group, struct err *err)
{
    struct group *group = xcalloc(1, sizeof(*group));
    int r;

    *group = (struct group){.open = open, .open_arg = arg};
    pthread_mutex_init(&group->lock, NULL);
    pthread_cond_init(&group->work, NULL);
    list_init(&group->waiting[STORE_NORMAL]);
    list_init(&group->waiting[STORE_BEAT]);
    list_init(&group->wishes);
    r = ensure_open(group, err);
    if (r == 0) {
        int error = pthread_create(&group->thread, NULL, group_main, group);

        if (error != 0)
            r = err_errno(err, ERR_INTERNAL, error, "the store's writer thread");
    }
    if (r < 0) {
        db_close(group->db);
        free(group);
        return r;
    }
    *ret_group = group;
    return 0;
}

void
group_free(struct group *group)
{
    if (!group)
        return;
    pthread_mutex_lock(&group->lock);
    group->stop = true;
    pthread_cond_signal(&group->work);
    pthread_mutex_unlock(&group->lock);
    pthread_join(group->thread, NULL);
    db_close(group->db);
    pthread_cond_destroy(&group->work);
    pthread_mutex_destroy(&group->lock);
    free(group);
}

static void
init_wake(pthread_cond_t *wake)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(wake, &attr);
    pthread_condattr_destroy(&attr);
}

/* Under the lock, which is let go of while it waits and while it watches. */
static void
wait_watching(struct group *group, struct member *member)
{
    int64_t until_us = clock_mono_us(clock_real()) + STORE_WATCH_MS * US_PER_MS;
    struct timespec until = {.tv_sec = until_us / US_PER_S,
                             .tv_nsec = (until_us % US_PER_S) * 1000};

    pthread_cond_timedwait(&member->wake, &group->lock, &until);
    if (member->done || clock_mono_us(clock_real()) < until_us)
        return;
    pthread_mutex_unlock(&group->lock);
    member->call->watch(member->call->watch_arg);
    pthread_mutex_lock(&group->lock);
}

int
group_write(struct group *group, const struct group_call *call, struct err *err)
{
    struct member member = {.call = call};

    /* A write within a write would wait for itself for ever. */
    assert(!pthread_equal(pthread_self(), group->thread));
    list_init(&member.link);
    list_init(&member.wish);
    init_wake(&member.wake);
    pthread_mutex_lock(&group->lock);
    assert(!group->stop);
    list_push_back(&group->waiting[call->urgency], &member.link);
    if (call->wish_of)
        list_push_back(&group->wishes, &member.wish);
    group->counts.waiting++;
    pthread_cond_signal(&group->work);
    while (!member.done) {
        if (call->watch)
            wait_watching(group, &member);
        else
            pthread_cond_wait(&member.wake, &group->lock);
    }
    list_remove(&member.wish);
    pthread_mutex_unlock(&group->lock);
    pthread_cond_destroy(&member.wake);
    if (member.result < 0 && err->code == ERR_NONE)
        *err = member.err;
    return member.result;
}

bool
group_is_wished(struct group *group, int64_t request_id)
{
    bool found = false;

    pthread_mutex_lock(&group->lock);
    list_each(link, &group->wishes) found =
        found || list_entry(link, struct member, wish)->call->wish_of == request_id;
    pthread_mutex_unlock(&group->lock);
    return found;
}

void
group_counts(struct group *group, struct store_counts *ret)
{
    pthread_mutex_lock(&group->lock);
    *ret = group->counts;
    pthread_mutex_unlock(&group->lock);
}

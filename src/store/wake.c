/*
 * Within the process a wake-up is a call of those who subscribed. Between processes it
 * is NOTIFY on PostgreSQL, sent and received by one thread on one direct connection:
 * store_wake only sets a bit and writes an eventfd, so no caller waits for the network,
 * and all that is told within SEND_EVERY_US is one notification per topic.
 *
 * The payload is the sender, so that it can tell its own echo; SQL users send an empty
 * one. A lost connection is opened again after a while, growing to RETRY_MAX_MS, and
 * then everybody is woken for all topics, since pushes may have been missed meanwhile.
 */
#include "store/private.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/list.h"
#include "base/retry.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/eventfd.h>

#define SEND_EVERY_US (5 * US_PER_MS)
#define SEND_RETRY_US US_PER_S
#define RETRY_MIN_MS  100
#define RETRY_MAX_MS  5000
#define POOL_WAIT_MS  1000

static const char *const channels[] = {"pawl_ready", "pawl_done", "pawl_flag",
                                       "pawl_defs",
                                       "pawl_lost"}; /* by bit of enum store_topic */
_Static_assert((1u << array_len(channels)) - 1 == WAKE_ALL, "a channel for each topic");

struct subscriber {
    struct list link;
    int number;
    unsigned mask;
    store_wake_fn fn;
    void *arg;
    int running; /* calls of fn under way */
};

struct wake {
    struct wake_options options;
    char *listen_url;
    char self[17]; /* payload of our own notifications */

    pthread_mutex_t lock; /* for the subscribers */
    pthread_cond_t idle;
    struct list subscribers;
    int next_number;

    int event_fd; /* -1: no thread (SQLite) */
    pthread_t thread;
    atomic_uint pending; /* topics to be sent */
    atomic_bool listening;
    atomic_bool stop;

    /* The thread's own. */
    struct db *db; /* NULL while nothing listens */
    struct backoff backoff;
    int64_t connect_at_us;
    int64_t send_at_us;
    unsigned heard;
};

/* --- within the process --- */

static void
deliver(struct wake *wake, unsigned mask)
{
    pthread_mutex_lock(&wake->lock);
    list_each(at, &wake->subscribers)
    {
        struct subscriber *sub = list_entry(at, struct subscriber, link);

        if (!(sub->mask & mask))
            continue;
        /* While running it stays in the list, so that going on from it is safe. */
        sub->running++;
        pthread_mutex_unlock(&wake->lock);
        sub->fn(sub->arg, sub->mask & mask);
        pthread_mutex_lock(&wake->lock);
        if (--sub->running == 0)
            pthread_cond_broadcast(&wake->idle);
    }
    pthread_mutex_unlock(&wake->lock);
}

int
store_subscribe(struct store *store, unsigned mask, store_wake_fn fn, void *arg)
{
    struct wake *wake = store->wake;
    struct subscriber *sub = xcalloc(1, sizeof(*sub));
    int number;

    *sub = (struct subscriber){.mask = mask, .fn = fn, .arg = arg};
    pthread_mutex_lock(&wake->lock);
    number = sub->number = ++wake->next_number;
    list_push_back(&wake->subscribers, &sub->link);
    pthread_mutex_unlock(&wake->lock);
    return number;
}

static struct subscriber *
find(struct wake *wake, int number)
{
    list_each(at, &wake->subscribers)
    {
        struct subscriber *sub = list_entry(at, struct subscriber, link);

        if (sub->number == number)
            return sub;
    }
    return NULL;
}

void
store_unsubscribe(struct store *store, int subscription)
{
    struct wake *wake = store->wake;
    struct subscriber *sub;

    pthread_mutex_lock(&wake->lock);
    sub = find(wake, subscription);
    if (sub) {
        sub->mask = 0; /* no new call */
        while (sub->running > 0)
            pthread_cond_wait(&wake->idle, &wake->lock);
        list_remove(&sub->link);
        free(sub);
    }
    pthread_mutex_unlock(&wake->lock);
}

static void
stir(struct wake *wake)
{
    uint64_t one = 1;
    ssize_t done = write(wake->event_fd, &one, sizeof(one));

    (void)done; /* a full counter is readable as well */
}

void
store_wake(struct store *store, unsigned mask)
{
    struct wake *wake = store->wake;

    if (wake->event_fd >= 0) {
        /* Whoever sets the first bit stirs the thread; it takes all of them. */
        if (atomic_fetch_or(&wake->pending, mask) == 0)
            stir(wake);
    }
    deliver(wake, mask);
}

bool
store_has_listen(const struct store *store)
{
    return store->kind == DB_SQLITE || atomic_load(&store->wake->listening);
}

/* --- between processes: the thread --- */

static int64_t
mono_us(void)
{
    return clock_mono_us(clock_real());
}

static void
lose_connection(struct wake *wake)
{
    atomic_store(&wake->listening, false);
    db_close(wake->db);
    wake->db = NULL;
    wake->connect_at_us = mono_us() + backoff_next_ms(&wake->backoff) * US_PER_MS;
}

static void
hear(void *arg, const char *channel, const char *payload)
{
    struct wake *wake = (struct wake *)arg;

    if (strcmp(payload, wake->self) == 0)
        return;
    for (size_t i = 0; i < array_len(channels); i++)
        if (strcmp(channel, channels[i]) == 0)
            wake->heard |= 1u << i;
}

static void
receive(struct wake *wake)
{
    struct err err = {0};

    wake->heard = 0;
    if (wake->db && db_notifications(wake->db, hear, wake, &err) < 0)
        lose_connection(wake);
    if (wake->heard)
        deliver(wake, wake->heard);
}

/* < 0: not now; the thread tries again later. */
static int
connect_listener(struct wake *wake)
{
    struct db_options options = wake->options.db;
    struct err err = {0};
    struct db *db;
    int r;

    options.url = wake->listen_url;
    r = wake->options.open(&options, &db, &err);
    if (r == 0 && db_pooled(db)) {
        /* A pooler drops LISTEN; what does arrive then is the safety scan. */
        db_close(db);
        free(wake->listen_url);
        wake->listen_url = NULL;
        return 0;
    }
    for (size_t i = 0; r == 0 && i < array_len(channels); i++) {
        r = db_listen(db, channels[i], &err);
        if (r < 0)
            db_close(db);
    }
    if (r < 0) {
        wake->connect_at_us = mono_us() + backoff_next_ms(&wake->backoff) * US_PER_MS;
        return r;
    }
    wake->db = db;
    backoff_reset(&wake->backoff);
    atomic_store(&wake->listening, true);
    return 0;
}

static int
notify_on(struct wake *wake, struct db *db, unsigned mask, struct err *err)
{
    const char *names[array_len(channels)];
    size_t count = 0;

    for (size_t i = 0; i < array_len(channels); i++)
        if (mask & (1u << i))
            names[count++] = channels[i];
    return db_run(db, store_sql(db, STMT_STORE_NOTIFY), err, p_text(wake->self),
                  p_text_array(names, count));
}

int
store_wake_in(struct store *store, struct db *db, unsigned mask, struct err *err)
{
    return store->kind == DB_SQLITE ? 0 : notify_on(store->wake, db, mask, err);
}

/* Tell the other processes; on failure the topics stay pending for a while. */
static void
send_pending(struct wake *wake)
{
    unsigned mask = atomic_exchange(&wake->pending, 0);
    struct err err = {0};
    int r;

    wake->send_at_us = mono_us() + SEND_EVERY_US;
    if (mask == 0)
        return;
    if (wake->db) {
        r = notify_on(wake, wake->db, mask, &err);
        if (r < 0)
            lose_connection(wake);
    } else {
        struct db *db;

        r = db_pool_get(wake->options.pool, POOL_WAIT_MS, &db, &err);
        if (r == 0) {
            r = notify_on(wake, db, mask, &err);
            db_pool_put(wake->options.pool, db);
        }
    }
    if (r < 0) {
        atomic_fetch_or(&wake->pending, mask);
        wake->send_at_us = mono_us() + SEND_RETRY_US;
    }
}

/* Until the next thing to do; -1: until something comes. */
static int
timeout_ms(const struct wake *wake)
{
    int64_t at_us = INT64_MAX;
    int64_t rest_us;

    if (atomic_load(&wake->pending))
        at_us = wake->send_at_us;
    if (!wake->db && wake->listen_url && wake->connect_at_us < at_us)
        at_us = wake->connect_at_us;
    if (at_us == INT64_MAX)
        return -1;
    rest_us = at_us - mono_us();
    return rest_us <= 0 ? 0 : (int)((rest_us + US_PER_MS - 1) / US_PER_MS);
}

static void
wait_for_news(struct wake *wake)
{
    struct pollfd fds[] = {
        {.fd = wake->event_fd, .events = POLLIN},
        {.fd = wake->db ? db_notify_fd(wake->db) : -1, .events = POLLIN},
    };
    uint64_t count;

    if (poll(fds, array_len(fds), timeout_ms(wake)) > 0 && fds[0].revents) {
        ssize_t got = read(wake->event_fd, &count, sizeof(count));

        (void)got;
    }
}

static void *
wake_main(void *arg)
{
    struct wake *wake = (struct wake *)arg;

    while (!atomic_load(&wake->stop)) {
        wait_for_news(wake);
        if (atomic_load(&wake->pending) && mono_us() >= wake->send_at_us)
            send_pending(wake);
        /* After sending, since an answer may have brought notifications with it. */
        receive(wake);
        if (!wake->db && wake->listen_url && mono_us() >= wake->connect_at_us) {
            if (connect_listener(wake) == 0 && wake->db)
                deliver(wake, WAKE_ALL);
        }
    }
    send_pending(wake);
    return NULL;
}

/* --- life --- */

static int
start_thread(struct wake *wake, struct err *err)
{
    int error;

    wake->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake->event_fd < 0)
        return err_errno(err, ERR_INTERNAL, errno, "the store's wake-up descriptor");
    /* The first try is here, so that who opens a store is told at once of what
     * happens from now on. That nothing listens is no failure. */
    if (wake->listen_url)
        (void)!connect_listener(wake);
    error = pthread_create(&wake->thread, NULL, wake_main, wake);
    if (error != 0) {
        fd_close(&wake->event_fd);
        return err_errno(err, ERR_INTERNAL, error, "the store's wake-up thread");
    }
    return 0;
}

static void
destroy(struct wake *wake)
{
    struct list *link;

    while ((link = list_pop_front(&wake->subscribers)))
        free(list_entry(link, struct subscriber, link));
    db_close(wake->db);
    fd_close(&wake->event_fd);
    pthread_cond_destroy(&wake->idle);
    pthread_mutex_destroy(&wake->lock);
    free(wake->listen_url);
    free(wake);
}

int
wake_new(const struct wake_options *options, struct wake **ret_wake, struct err *err)
{
    struct wake *wake = xcalloc(1, sizeof(*wake));
    int r;

    wake->options = *options;
    wake->event_fd = -1;
    wake->backoff = (struct backoff){
        .base_ms = RETRY_MIN_MS, .max_ms = RETRY_MAX_MS, .factor = 2, .jitter = 0.5};
    snprintf(wake->self, sizeof(wake->self), "%016llx", (unsigned long long)rand_u64());
    pthread_mutex_init(&wake->lock, NULL);
    pthread_cond_init(&wake->idle, NULL);
    list_init(&wake->subscribers);
    if (options->kind == DB_PG) {
        if (options->listen_url)
            wake->listen_url = xstrdup(options->listen_url);
        r = start_thread(wake, err);
        if (r < 0) {
            destroy(wake);
            return r;
        }
    }
    *ret_wake = wake;
    return 0;
}

void
wake_free(struct wake *wake)
{
    if (!wake)
        return;
    if (wake->event_fd >= 0) {
        atomic_store(&wake->stop, true);
        stir(wake);
        pthread_join(wake->thread, NULL);
    }
    destroy(wake);
}

/*
 * A few threads that run handlers, oldest request first. There is no limit to the
 * queue: each connection has at most one request in it, and connections are capped.
 */
#include "net/http_server_impl.h"

#include <stdlib.h>

struct http_pool {
    pthread_mutex_t lock;
    pthread_cond_t work;
    struct http_request *head;
    struct http_request *tail;
    bool stop;
    http_handler_fn fn;
    void *arg;
    int thread_count;
    pthread_t threads[];
};

static struct http_request *
take(struct http_pool *pool)
{
    struct http_request *req = pool->head;

    if (req == NULL)
        return NULL;
    pool->head = req->next;
    if (pool->head == NULL)
        pool->tail = NULL;
    req->next = NULL;
    return req;
}

static void *
pool_thread(void *arg)
{
    struct http_pool *pool = arg;
    struct http_request *req;

    for (;;) {
        pthread_mutex_lock(&pool->lock);
        while (!pool->stop && pool->head == NULL)
            pthread_cond_wait(&pool->work, &pool->lock);
        req = pool->stop ? NULL : take(pool);
        pthread_mutex_unlock(&pool->lock);
        if (req == NULL)
            return NULL;
        pool->fn(pool->arg, req);
    }
}

struct http_pool *
http_pool_new(int threads, http_handler_fn fn, void *arg)
{
    struct http_pool *pool =
        xcalloc(1, sizeof(*pool) + (size_t)threads * sizeof(pthread_t));

    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->work, NULL);
    pool->fn = fn;
    pool->arg = arg;
    for (int i = 0; i < threads; i++) {
        if (pthread_create(&pool->threads[i], NULL, pool_thread, pool) != 0)
            break;
        pool->thread_count++;
    }
    if (pool->thread_count == 0) {
        http_pool_free(pool);
        return NULL;
    }
    return pool;
}

void
http_pool_put(struct http_pool *pool, struct http_request *req)
{
    req->next = NULL;
    pthread_mutex_lock(&pool->lock);
    if (pool->tail != NULL)
        pool->tail->next = req;
    else
        pool->head = req;
    pool->tail = req;
    pthread_cond_signal(&pool->work);
    pthread_mutex_unlock(&pool->lock);
}

void
http_pool_free(struct http_pool *pool)
{
    struct http_request *req;

    if (pool == NULL)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->stop = true;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < pool->thread_count; i++)
        pthread_join(pool->threads[i], NULL);
    while ((req = take(pool)) != NULL)
        http_respond(req, &(struct http_response){.status = 503, .close = true});
    pthread_cond_destroy(&pool->work);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

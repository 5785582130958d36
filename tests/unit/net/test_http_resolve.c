/*
 * A resolver that does not answer. getaddrinfo is ours here: libcurl's thread waits in
 * it until the test lets it go.
 */
#include "base/arena.h"
#include "base/err.h"
#include "net/http_client.h"

#include <netdb.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <time.h>

#include <cmocka.h>

#define PATIENCE_S 5

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool asked;
static bool let_go;
static bool gone;

int
getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
            struct addrinfo **ret)
{
    struct timespec until;
    int r = 0;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    pthread_mutex_lock(&lock);
    asked = true;
    while (!let_go && r == 0)
        r = pthread_cond_timedwait(&changed, &lock, &until);
    gone = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return EAI_AGAIN;
}

static int
end_when_asked(void *arg, int64_t done_bytes, int64_t total_bytes)
{
    bool end;

    pthread_mutex_lock(&lock);
    end = asked;
    pthread_mutex_unlock(&lock);
    return end;
}

/* It ends while the resolver still sleeps. */
static void
expect_end(const struct http_call *call, int wanted)
{
    scoped(arena_release) struct arena arena = {0};
    struct http_client *client = NULL;
    struct http_reply reply;
    struct err err = {0};

    asked = let_go = gone = false;
    assert_int_equal(http_client_new(&client, &err), 0);
    assert_int_equal(http_client_call(client, call, &arena, &reply, &err), wanted);
    http_client_free(client);
    pthread_mutex_lock(&lock);
    assert_true(asked);
    assert_false(gone);
    let_go = true;
    pthread_cond_broadcast(&changed);
    while (!gone)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static void
test_a_name_that_is_not_resolved_holds_no_call_past_its_time(void **state)
{
    expect_end(&(struct http_call){.method = "GET",
                                   .url = "http://nobody.example/",
                                   .timeout_ms = 100},
               -ERR_TIMEOUT);
}

static void
test_a_name_that_is_not_resolved_lets_a_call_be_given_up(void **state)
{
    expect_end(&(struct http_call){.method = "GET",
                                   .url = "http://nobody.example/",
                                   .on_progress = end_when_asked},
               -ERR_CANCELLED);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_name_that_is_not_resolved_holds_no_call_past_its_time),
        cmocka_unit_test(test_a_name_that_is_not_resolved_lets_a_call_be_given_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

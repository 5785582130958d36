/*
 * The loop: each kind of event, and freeing from inside its own callback.
 */
#include "base/err.h"
#include "net/loop.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
    struct loop *loop;
    struct loop_watch *watch;
    struct loop_timer *timer;
    struct loop_signal *sig;
    struct loop_wake *wake;
    unsigned events;
    int count;
    int order[4];
};

static int
set_up(void **state)
{
    static struct fixture fixture;
    struct err err = {0};

    fixture = (struct fixture){0};
    *state = &fixture;
    return loop_new(&fixture.loop, &err);
}

static int
tear_down(void **state)
{
    struct fixture *f = *state;

    loop_watch_free(f->watch);
    loop_timer_free(f->timer);
    loop_signal_free(f->sig);
    loop_wake_free(f->wake);
    loop_free(f->loop);
    return 0;
}

static void
on_watch(void *arg, unsigned events)
{
    struct fixture *f = arg;

    f->events = events;
    f->count++;
    loop_stop(f->loop);
}

/* Run until the watch reports, and return what. */
static unsigned
next_events(struct fixture *f, unsigned wanted)
{
    f->events = 0;
    loop_watch_set(f->watch, wanted);
    loop_run(f->loop);
    return f->events;
}

static void
test_a_watch_tells_readable_writable_and_hangup(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    char byte;
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_int_equal(loop_watch_new(f->loop, pair[0], on_watch, f, &f->watch, &err), 0);
    assert_int_equal(next_events(f, LOOP_READABLE | LOOP_WRITABLE), LOOP_WRITABLE);
    assert_int_equal(write(pair[1], "x", 1), 1);
    assert_int_equal(next_events(f, LOOP_READABLE), LOOP_READABLE);
    assert_int_equal(next_events(f, LOOP_READABLE), LOOP_READABLE); /* by level */
    assert_int_equal(read(pair[0], &byte, 1), 1);
    shutdown(pair[1], SHUT_WR);
    assert_int_equal(next_events(f, LOOP_HANGUP), LOOP_HANGUP);
    loop_watch_free(f->watch);
    f->watch = NULL;
    close(pair[0]);
    close(pair[1]);
}

static void
on_fire(void *arg)
{
    struct fixture *f = arg;

    f->count++;
    loop_timer_free(f->timer); /* from inside itself */
    f->timer = NULL;
    loop_stop(f->loop);
}

static void
test_a_timer_fires_once_not_before_its_time(void **state)
{
    struct fixture *f = *state;
    int64_t start_ms = loop_now_ms(f->loop);

    f->timer = loop_timer_new(f->loop, on_fire, f);
    loop_timer_set(f->timer, 100000);
    loop_timer_set(f->timer, 20);
    loop_run(f->loop);
    assert_int_equal(f->count, 1);
    assert_true(loop_now_ms(f->loop) - start_ms >= 20);
}

static void
stop_it(void *arg)
{
    struct fixture *f = arg;

    loop_stop(f->loop);
}

static void
test_a_timer_that_is_switched_off_stays_silent(void **state)
{
    struct fixture *f = *state;
    struct loop_timer *later = loop_timer_new(f->loop, stop_it, f);

    f->timer = loop_timer_new(f->loop, on_fire, f);
    loop_timer_set(f->timer, 5);
    loop_timer_set(f->timer, -1);
    loop_timer_set(later, 20);
    loop_run(f->loop);
    assert_int_equal(f->count, 0);
    loop_timer_free(later);
}

static void
on_usr1(void *arg, int signum)
{
    struct fixture *f = arg;

    f->count += signum == SIGUSR1;
    loop_stop(f->loop);
}

static void
test_a_signal_reaches_the_loop(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};

    assert_int_equal(loop_signal_new(f->loop, SIGUSR1, on_usr1, f, &f->sig, &err), 0);
    raise(SIGUSR1);
    loop_run(f->loop);
    assert_int_equal(f->count, 1);
    err_clear(&err);
    assert_true(loop_signal_new(f->loop, SIGKILL, on_usr1, f, &f->sig, &err) < 0);
}

static void
on_wake(void *arg)
{
    struct fixture *f = arg;

    f->count++;
    loop_stop(f->loop);
}

static void *
wake_thread(void *arg)
{
    struct fixture *f = arg;

    loop_wake_send(f->wake);
    return NULL;
}

static void
test_another_thread_wakes_the_loop(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    pthread_t thread;

    assert_int_equal(loop_wake_new(f->loop, on_wake, f, &f->wake, &err), 0);
    assert_int_equal(pthread_create(&thread, NULL, wake_thread, f), 0);
    loop_run(f->loop);
    pthread_join(thread, NULL);
    assert_int_equal(f->count, 1);
}

static void
write_to_nobody(void *arg)
{
    struct fixture *f = arg;
    int pair[2];

    assert_int_equal(pipe(pair), 0);
    close(pair[0]);
    assert_int_equal(write(pair[1], "x", 1), -1);
    close(pair[1]);
    loop_stop(f->loop);
}

static void
test_writing_to_one_who_left_does_not_kill_during_the_run_or_after(void **state)
{
    struct fixture *f = *state;

    loop_post(f->loop, write_to_nobody, f);
    loop_run(f->loop);
}

static void
note_second(void *arg)
{
    struct fixture *f = arg;

    f->order[f->count++] = 2;
    loop_stop(f->loop);
}

static void
note_first(void *arg)
{
    struct fixture *f = arg;

    f->order[f->count++] = 1;
    loop_post(f->loop, note_second, f); /* from the loop itself */
}

static void
test_posted_calls_run_once_and_in_order(void **state)
{
    struct fixture *f = *state;

    loop_post(f->loop, note_first, f);
    loop_run(f->loop);
    assert_int_equal(f->count, 2);
    assert_int_equal(f->order[0], 1);
    assert_int_equal(f->order[1], 2);
}

#define POSTS 10000

static void
count_post(void *arg)
{
    struct fixture *f = arg;

    if (++f->count == 2 * POSTS)
        loop_stop(f->loop);
}

static void *
post_thread(void *arg)
{
    struct fixture *f = arg;

    for (int i = 0; i < POSTS; i++)
        loop_post(f->loop, count_post, f);
    return NULL;
}

static void
test_no_call_posted_by_many_threads_is_lost(void **state)
{
    struct fixture *f = *state;
    pthread_t threads[2];

    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, post_thread, f), 0);
    loop_run(f->loop);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(f->count, 2 * POSTS);
}

static void
test_a_stop_before_the_run_is_not_forgotten(void **state)
{
    struct fixture *f = *state;

    loop_stop(f->loop);
    loop_run(f->loop);
    f->timer = loop_timer_new(f->loop, on_fire, f);
    loop_timer_set(f->timer, 1);
    loop_run(f->loop); /* and it stopped only one run */
    assert_int_equal(f->count, 1);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_watch_tells_readable_writable_and_hangup,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_timer_fires_once_not_before_its_time,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_timer_that_is_switched_off_stays_silent,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_signal_reaches_the_loop, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_another_thread_wakes_the_loop, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(
            test_writing_to_one_who_left_does_not_kill_during_the_run_or_after, set_up,
            tear_down),
        cmocka_unit_test_setup_teardown(test_posted_calls_run_once_and_in_order, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_no_call_posted_by_many_threads_is_lost,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_stop_before_the_run_is_not_forgotten,
                                        set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "test.h"

#include "base/inbox.h"

struct note {
    int number;
    int writer;
    struct inbox_node node;
};

static struct note *
note_of(struct inbox_node *node)
{
    return container_of(node, struct note, node);
}

static void
count_wake(void *arg)
{
    __atomic_add_fetch((int *)arg, 1, __ATOMIC_RELAXED);
}

static void
test_notes_come_in_order_and_wake_once_per_filling(void **state)
{
    struct note notes[3] = {{.number = 0}, {.number = 1}, {.number = 2}};
    struct inbox inbox;
    struct inbox_node *chain;
    int wakes = 0;

    inbox_init(&inbox, count_wake, &wakes);
    assert_null(inbox_take(&inbox));
    assert_true(inbox_put(&inbox, &notes[0].node));
    assert_true(inbox_put(&inbox, &notes[1].node));
    assert_int_equal(wakes, 1);
    chain = inbox_take(&inbox);
    assert_int_equal(note_of(chain)->number, 0);
    assert_int_equal(note_of(chain->next)->number, 1);
    assert_null(chain->next->next);
    assert_true(inbox_put(&inbox, &notes[2].node));
    assert_int_equal(wakes, 2);
    assert_int_equal(note_of(inbox_take(&inbox))->number, 2);
    inbox_release(&inbox);
}

static void
test_a_closed_inbox_takes_nothing_more_but_gives_the_rest(void **state)
{
    struct note notes[2] = {{.number = 0}, {.number = 1}};
    struct inbox inbox;

    inbox_init(&inbox, NULL, NULL);
    assert_true(inbox_put(&inbox, &notes[0].node));
    inbox_close(&inbox);
    assert_false(inbox_put(&inbox, &notes[1].node));
    assert_ptr_equal(inbox_take(&inbox), &notes[0].node);
    assert_null(inbox_take(&inbox));
    inbox_release(&inbox);
}

#define WRITERS 4
#define NOTES   2000

struct writer {
    struct inbox *inbox;
    struct note notes[NOTES];
};

static void *
put_all(void *arg)
{
    struct writer *writer = arg;

    for (int i = 0; i < NOTES; i++)
        assert_true(inbox_put(writer->inbox, &writer->notes[i].node));
    return NULL;
}

/* What the owner's loop waits on: a wake that was lost would hang here, and the
 * test's time limit would say so. */
struct bell {
    pthread_mutex_t lock;
    pthread_cond_t rung;
    bool ringing;
};

static void
ring(void *arg)
{
    struct bell *bell = arg;

    pthread_mutex_lock(&bell->lock);
    bell->ringing = true;
    pthread_cond_signal(&bell->rung);
    pthread_mutex_unlock(&bell->lock);
}

static void
wait_for(struct bell *bell)
{
    pthread_mutex_lock(&bell->lock);
    while (!bell->ringing)
        pthread_cond_wait(&bell->rung, &bell->lock);
    bell->ringing = false;
    pthread_mutex_unlock(&bell->lock);
}

static void
test_many_writers_lose_no_note_and_keep_their_own_order(void **state)
{
    static struct writer writers[WRITERS];
    struct bell bell = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    pthread_t threads[WRITERS];
    int expected[WRITERS] = {0};
    struct inbox inbox;
    int got = 0;

    inbox_init(&inbox, ring, &bell);
    for (int w = 0; w < WRITERS; w++) {
        writers[w].inbox = &inbox;
        for (int i = 0; i < NOTES; i++) {
            writers[w].notes[i].number = i;
            writers[w].notes[i].writer = w;
        }
        assert_int_equal(pthread_create(&threads[w], NULL, put_all, &writers[w]), 0);
    }
    while (got < WRITERS * NOTES) {
        wait_for(&bell);
        for (struct inbox_node *at = inbox_take(&inbox); at; at = at->next, got++) {
            const struct note *note = note_of(at);

            assert_int_equal(note->number, expected[note->writer]++);
        }
    }
    for (int w = 0; w < WRITERS; w++)
        pthread_join(threads[w], NULL);
    inbox_release(&inbox);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_notes_come_in_order_and_wake_once_per_filling),
        cmocka_unit_test(test_a_closed_inbox_takes_nothing_more_but_gives_the_rest),
        cmocka_unit_test(test_many_writers_lose_no_note_and_keep_their_own_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

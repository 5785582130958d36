/* The seat: one process at a time, an id that outlives boots, worker ids that do not.
 */
#include "liveness/seat.h"

#include "base/arena.h"
#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64];

static int
setup(void **state)
{
    snprintf(folder, sizeof(folder), "/tmp/pawl-seat-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int
teardown(void **state)
{
    fs_remove_tree_quietly(folder);
    return 0;
}

static void
test_the_id_of_a_seat_stays_over_boots(void **state)
{
    struct seat first = SEAT_INIT, second = SEAT_INIT;
    struct err err = {0};

    assert_int_equal(seat_take(folder, NULL, &first, &err), 0);
    assert_int_equal(strlen(first.id), 32);
    seat_release(&first);
    assert_int_equal(seat_take(folder, NULL, &second, &err), 0);
    assert_string_equal(second.id, first.id);
    seat_release(&second);
    seat_release(NULL);
}

static void
test_a_second_process_on_the_seat_is_told_who_sits_there(void **state)
{
    struct seat seat = SEAT_INIT;
    struct err err = {0};
    char pid[32];
    int status;
    pid_t child;

    assert_int_equal(seat_take(folder, NULL, &seat, &err), 0);
    snprintf(pid, sizeof(pid), "%ld@", (long)getpid());
    child = fork();
    if (child == 0) {
        struct seat other = SEAT_INIT;

        if (seat_take(folder, NULL, &other, &err) != -ERR_STORE_HELD)
            _exit(1);
        _exit(strstr(err.text, pid) ? 0 : 2);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WEXITSTATUS(status), 0);
    seat_release(&seat);
}

/* However it ended: the lock is the kernel's. */
static void
test_a_dead_process_leaves_its_seat(void **state)
{
    struct seat seat = SEAT_INIT;
    struct err err = {0};
    int status;
    pid_t child = fork();

    if (child == 0) {
        if (seat_take(folder, NULL, &seat, &err) != 0)
            _exit(1);
        kill(getpid(), SIGKILL);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(seat_take(folder, NULL, &seat, &err), 0);
    seat_release(&seat);
}

static void
test_a_configured_name_is_the_id(void **state)
{
    struct seat seat = SEAT_INIT;
    struct err err = {0};

    assert_int_equal(seat_take(folder, "rack-7", &seat, &err), 0);
    assert_string_equal(seat.id, "rack-7");
    seat_release(&seat);
    assert_int_equal(seat_take(folder, "no good", &seat, &err), -ERR_CONFIG);
}

static void
test_a_spoiled_id_file_is_named(void **state)
{
    struct seat seat = SEAT_INIT;
    struct err err = {0};
    char path[96];

    snprintf(path, sizeof(path), "%s/seat.id", folder);
    assert_int_equal(fs_replace_file(path, "a b\n", 4, 0600, &err), 0);
    assert_int_equal(seat_take(folder, NULL, &seat, &err), -ERR_CONFIG);
    assert_non_null(strstr(err.text, path));
}

static void
test_A28_worker_ids_differ_at_every_boot(void **state)
{
    char first[WORKER_ID_MAX], second[WORKER_ID_MAX];
    char start[32], tiny[8];
    struct err err = {0};

    assert_int_equal(worker_id_make(first, sizeof(first), &err), 0);
    assert_int_equal(worker_id_make(second, sizeof(second), &err), 0);
    assert_string_not_equal(first, second);
    snprintf(start, sizeof(start), "%ld@", (long)getpid());
    assert_memory_equal(first, start, strlen(start));
    assert_int_equal(strlen(strchr(first, '#')), 33);
    assert_int_equal(worker_id_make(tiny, sizeof(tiny), &err), -ERR_INTERNAL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_id_of_a_seat_stays_over_boots, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(
            test_a_second_process_on_the_seat_is_told_who_sits_there, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_dead_process_leaves_its_seat, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_configured_name_is_the_id, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_spoiled_id_file_is_named, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_A28_worker_ids_differ_at_every_boot, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The file being made: append, make durable, cut back. */
#include "io_test.h"

#include "io/part.h"

#include <sys/stat.h>

static void
test_a_part_is_private_and_holds_what_was_appended(void **state)
{
    struct io_test t;
    scoped(part_release) struct part part;
    scoped(buf_release) struct buf got = {0};
    char *big = calloc(1, 1000000);
    struct stat st;

    io_test_init(&t, "{}");
    part_init(&part);
    ok(&t, part_create(&part, t.part, &t.err));
    ok(&t, part_append(&part, "head", 4, &t.err));
    memset(big, 'x', 1000000);
    ok(&t, part_append(&part, big, 1000000, &t.err));
    ok(&t, part_append(&part, "tail", 4, &t.err));
    ok(&t, part_sync(&part, &t.err));
    assert_int_equal(part.offset, 1000008);
    assert_int_equal(stat(t.part, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    read_file(t.part, &got);
    assert_int_equal(got.len, 1000008);
    assert_memory_equal(got.data, "headxxxx", 8);
    assert_memory_equal(got.data + got.len - 8, "xxxxtail", 8);
    free(big);
    io_test_release(&t);
}

static void
test_resume_cuts_off_what_no_checkpoint_covers(void **state)
{
    struct io_test t;
    scoped(part_release) struct part part;
    scoped(buf_release) struct buf got = {0};

    io_test_init(&t, "{}");
    part_init(&part);
    write_file(t.part, "goodRUBBISH", 11);
    assert_int_equal(part_resume(&part, t.part, NULL, 4, &t.err), PART_OPENED);
    ok(&t, part_append(&part, " more", 5, &t.err));
    ok(&t, part_sync(&part, &t.err));
    read_file(t.part, &got);
    assert_string_equal(buf_str(&got), "good more");
    io_test_release(&t);
}

/* B20: the part of an earlier run is copied, and nobody writes into it any more. */
static void
test_B20_a_successor_copies_what_is_committed_and_leaves_the_rest(void **state)
{
    struct io_test t;
    scoped(part_release) struct part part;
    scoped(buf_release) struct buf got = {0};
    scoped(buf_release) struct buf old = {0};
    size_t big = 700001;
    char *bytes = malloc(big + 7);
    char from[128];

    io_test_init(&t, "{}");
    part_init(&part);
    (void)snprintf(from, sizeof(from), "%s/old", t.folder);
    for (size_t i = 0; i < big; i++)
        bytes[i] = (char)(i * 31 % 251);
    memcpy(bytes + big, "RUBBISH", 7);
    write_file(from, bytes, big + 7);
    assert_int_equal(part_resume(&part, t.part, from, (int64_t)big, &t.err),
                     PART_OPENED);
    assert_int_equal(part.offset, big);
    ok(&t, part_append(&part, " more", 5, &t.err));
    ok(&t, part_sync(&part, &t.err));
    read_file(t.part, &got);
    assert_int_equal(got.len, big + 5);
    assert_memory_equal(got.data, bytes, big);
    assert_memory_equal(got.data + big, " more", 5);
    read_file(from, &old);
    assert_int_equal(old.len, big + 7);
    assert_memory_equal(old.data, bytes, big + 7);
    /* Short: what lies at our own path is not touched. */
    assert_int_equal(part_resume(&part, t.part, from, (int64_t)big + 8, &t.err),
                     PART_SHORT);
    assert_int_equal(part_resume(&part, t.part, "/nowhere/at/all", 1, &t.err),
                     PART_SHORT);
    free(bytes);
    io_test_release(&t);
}

static void
test_a_short_or_missing_part_is_told_apart_from_trouble(void **state)
{
    struct io_test t;
    scoped(part_release) struct part part;

    io_test_init(&t, "{}");
    part_init(&part);
    assert_int_equal(part_resume(&part, t.part, NULL, 4, &t.err), PART_SHORT);
    write_file(t.part, "abc", 3);
    assert_int_equal(part_resume(&part, t.part, NULL, 4, &t.err), PART_SHORT);
    fails(&t, ERR_IO, "/nowhere/at/all", part_create(&part, "/nowhere/at/all", &t.err));
    io_test_release(&t);
}

static void
test_a_full_disk_is_named_as_one(void **state)
{
    struct io_test t;
    scoped(part_release) struct part part;

    io_test_init(&t, "{}");
    part_init(&part);
    ok(&t, part_create(&part, "/dev/full", &t.err));
    ok(&t, part_append(&part, "x", 1, &t.err));
    fails(&t, ERR_DISK_FULL, "/dev/full", part_sync(&part, &t.err));
    io_test_release(&t);
}

static void
test_a_link_in_the_parts_place_is_not_followed(void **state)
{
    struct io_test t;
    scoped(part_release) struct part part;
    char target[128];

    io_test_init(&t, "{}");
    part_init(&part);
    (void)snprintf(target, sizeof(target), "%s/victim", t.folder);
    write_file(target, "precious", 8);
    assert_int_equal(symlink(target, t.part), 0);
    fails(&t, ERR_IO, t.part, part_create(&part, t.part, &t.err));
    io_test_release(&t);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_part_is_private_and_holds_what_was_appended),
        cmocka_unit_test(test_resume_cuts_off_what_no_checkpoint_covers),
        cmocka_unit_test(
            test_B20_a_successor_copies_what_is_committed_and_leaves_the_rest),
        cmocka_unit_test(test_a_short_or_missing_part_is_told_apart_from_trouble),
        cmocka_unit_test(test_a_full_disk_is_named_as_one),
        cmocka_unit_test(test_a_link_in_the_parts_place_is_not_followed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

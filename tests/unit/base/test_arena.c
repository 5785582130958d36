#include "test.h"

#include "base/arena.h"

#include <stdalign.h>

static void
test_memory_is_zeroed_and_aligned_at_every_size(void **state)
{
    scoped(arena_release) struct arena arena = {0};
    static const size_t sizes[] = {
        0, 1, 15, 16, 17, 4080, 4095, 4096, 4097, 8192, 1 << 20, (1 << 20) + 1, 3};

    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < array_len(sizes); i++) {
            char *ptr = arena_alloc(&arena, sizes[i]);

            assert_int_equal((uintptr_t)ptr % alignof(max_align_t), 0);
            for (size_t n = 0; n < sizes[i]; n++)
                assert_int_equal(ptr[n], 0);
            if (sizes[i] > 0)
                memset(ptr, 0xEE, sizes[i]);
        }
        arena_clear(&arena);
    }
}

static void
test_allocations_do_not_overlap(void **state)
{
    scoped(arena_release) struct arena arena = {0};
    char *kept[300];

    for (size_t i = 0; i < array_len(kept); i++) {
        kept[i] = arena_alloc(&arena, i * 7 + 1);
        memset(kept[i], (int)(i & 0x7F), i * 7 + 1);
    }
    for (size_t i = 0; i < array_len(kept); i++)
        for (size_t n = 0; n < i * 7 + 1; n++)
            assert_int_equal(kept[i][n], (int)(i & 0x7F));
}

static void
test_a_large_piece_leaves_the_room_of_the_newest_block_in_use(void **state)
{
    scoped(arena_release) struct arena arena = {0};
    char *first = arena_alloc(&arena, 16);
    char *large = arena_alloc(&arena, (size_t)3 << 20);
    char *second = arena_alloc(&arena, 16);

    assert_non_null(large);
    assert_ptr_equal(second, first + 16);
}

static void
test_texts_are_copied(void **state)
{
    scoped(arena_release) struct arena arena = {0};
    char source[] = "hello";
    char *copy = arena_strdup(&arena, source);

    source[0] = 'j';
    assert_string_equal(copy, "hello");
    assert_string_equal(arena_strndup(&arena, source, 2), "je");
    assert_string_equal(arena_printf(&arena, "%s-%d", copy, 5), "hello-5");
    assert_non_null(arena_array(&arena, int, 0));
}

static void
test_xfree_ptr_frees_and_forgets(void **state)
{
    char *text = xstrdup("x");

    xfree_ptr(&text);
    assert_null(text);
    xfree_ptr(&text);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_is_zeroed_and_aligned_at_every_size),
        cmocka_unit_test(test_allocations_do_not_overlap),
        cmocka_unit_test(test_a_large_piece_leaves_the_room_of_the_newest_block_in_use),
        cmocka_unit_test(test_texts_are_copied),
        cmocka_unit_test(test_xfree_ptr_frees_and_forgets),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

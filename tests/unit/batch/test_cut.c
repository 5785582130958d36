/* Cutting a range of keys into partitions. */
#include "batch/partition.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct {
    int64_t least, greatest;
    size_t wanted, count;
} cases[] = {
    {1, 100, 4, 4},
    {1, 10, 3, 3},
    {-5, 5, 11, 11},
    {7, 7, 4, 1},
    {0, 1, 64, 2},
    {0, 62, 64, 63},
    {INT64_MIN, INT64_MAX, 64, 64},
    {INT64_MIN, INT64_MAX, 2, 2},
    {INT64_MAX - 1, INT64_MAX, 2, 2},
    {INT64_MIN, INT64_MIN + 2, 2, 2},
};

/* Each part begins where the one before ends, has a key, and is at most one key longer
 * than any other. */
static void
test_parts_meet_and_are_of_one_width(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct batch_cut cuts[BATCH_PARTITIONS_MAX] = {0};
        size_t n =
            batch_cut_range(cases[i].least, cases[i].greatest, cases[i].wanted, cuts);
        uint64_t shortest = UINT64_MAX;
        uint64_t longest = 0;

        assert_int_equal(n, cases[i].count);
        assert_false(cuts[0].has_lower);
        assert_false(cuts[n - 1].has_upper);
        for (size_t k = 0; k < n; k++) {
            int64_t from = k > 0 ? cuts[k].lower : cases[i].least;
            /* The last key of it. */
            int64_t to = k + 1 < n ? cuts[k].upper - 1 : cases[i].greatest;
            uint64_t width = (uint64_t)to - (uint64_t)from;

            assert_true(to >= from);
            assert_true(k == 0 || (cuts[k].has_lower && cuts[k - 1].has_upper &&
                                   cuts[k - 1].upper == cuts[k].lower));
            shortest = width < shortest ? width : shortest;
            longest = width > longest ? width : longest;
        }
        assert_true(longest - shortest <= 1);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_meet_and_are_of_one_width),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "test.h"

#include "base/rand.h"

static void
test_below_keeps_the_limit_and_reaches_every_value(void **state)
{
    int seen[3] = {0};

    for (int i = 0; i < 300; i++)
        seen[rand_below(3)]++;
    for (int i = 0; i < 3; i++)
        assert_true(seen[i] > 0); /* fails by chance once in 10^52 runs */
    assert_int_equal(rand_below(1), 0);
    assert_true(rand_below(UINT64_MAX) < UINT64_MAX);
}

static void
test_hex128_is_32_small_hex_digits_and_differs(void **state)
{
    char one[RAND_HEX128_SIZE];
    char two[RAND_HEX128_SIZE];

    rand_hex128(one);
    rand_hex128(two);
    assert_int_equal(strspn(one, "0123456789abcdef"), 32);
    assert_int_equal(one[32], '\0');
    assert_string_not_equal(one, two);
    assert_true(rand_u64() != rand_u64());
}

static void
test_exactly_len_bytes_are_written(void **state)
{
    unsigned char data[300] = {0};
    int nonzero = 0;

    rand_bytes(data + 1, 290);
    rand_bytes(data, 0);
    assert_int_equal(data[0], 0);
    assert_int_equal(data[291], 0);
    for (int i = 1; i <= 290; i++)
        nonzero += data[i] != 0;
    assert_true(nonzero > 200);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_below_keeps_the_limit_and_reaches_every_value),
        cmocka_unit_test(test_hex128_is_32_small_hex_digits_and_differs),
        cmocka_unit_test(test_exactly_len_bytes_are_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "test.h"

#include "base/arena.h"
#include "base/map.h"

static void
free_and_count(void *value)
{
    int *freed = value;

    (*freed)++;
}

static void
test_an_all_zero_map_is_empty(void **state)
{
    struct map map = {0};
    size_t at = 0;

    assert_null(map_get(&map, "x"));
    assert_false(map_has(&map, "x"));
    assert_null(map_take(&map, "x"));
    assert_false(map_next(&map, &at, NULL, NULL));
    map_release(&map);
    map_release(NULL);
}

static void
test_values_are_freed_when_replaced_removed_and_released(void **state)
{
    scoped(map_release) struct map map;
    int freed[4] = {0};

    map_init(&map, free_and_count);
    assert_true(map_put(&map, "a", &freed[0]));
    assert_false(map_put(&map, "a", &freed[0])); /* the same: not freed */
    assert_int_equal(freed[0], 0);
    assert_false(map_put(&map, "a", &freed[1]));
    assert_int_equal(freed[0], 1);
    map_put(&map, "b", &freed[2]);
    assert_ptr_equal(map_take(&map, "b"), &freed[2]);
    assert_int_equal(freed[2], 0);
    map_put(&map, "c", &freed[3]);
    assert_true(map_remove(&map, "c"));
    assert_false(map_remove(&map, "c"));
    assert_int_equal(freed[3], 1);
    map_release(&map);
    assert_int_equal(freed[1], 1);
    assert_int_equal(map.count, 0);
}

static void
test_keys_are_copied(void **state)
{
    scoped(map_release) struct map map = {0};
    char key[] = "key";
    int value = 0;

    map_put(&map, key, &value);
    key[0] = 'x';
    assert_ptr_equal(map_get(&map, "key"), &value);
    assert_null(map_get(&map, "xey"));
}

/* Many puts and removals against a plain array that says what must be there. */
static void
test_a_map_agrees_with_a_model(void **state)
{
    enum { KEYS = 500 };
    scoped(map_release) struct map map = {0};
    bool there[KEYS] = {0};
    uint32_t random = 1;
    size_t count = 0;

    for (int i = 0; i < 40000; i++) {
        char key[16];
        size_t k;

        random = random * 1664525 + 1013904223;
        k = (random >> 8) % KEYS;
        snprintf(key, sizeof(key), "key-%zu", k);
        if (random >> 31) {
            assert_int_equal(map_put(&map, key, &there[k]), !there[k]);
            count += !there[k];
            there[k] = true;
        } else {
            assert_ptr_equal(map_take(&map, key), there[k] ? &there[k] : NULL);
            count -= there[k];
            there[k] = false;
        }
        assert_int_equal(map.count, count);
    }
    for (size_t k = 0; k < KEYS; k++) {
        char key[16];

        snprintf(key, sizeof(key), "key-%zu", k);
        assert_ptr_equal(map_get(&map, key), there[k] ? &there[k] : NULL);
    }
}

static void
test_going_through_meets_each_entry_once(void **state)
{
    scoped(map_release) struct map map = {0};
    int seen[100] = {0};
    const char *key;
    void *value;

    for (int i = 0; i < 100; i++) {
        char name[16];

        snprintf(name, sizeof(name), "%d", i);
        map_put(&map, name, &seen[i]);
    }
    for (size_t at = 0; map_next(&map, &at, &key, &value);) {
        assert_ptr_equal(value, &seen[strtol(key, NULL, 10)]);
        (*(int *)value)++;
    }
    for (int i = 0; i < 100; i++)
        assert_int_equal(seen[i], 1);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_all_zero_map_is_empty),
        cmocka_unit_test(test_values_are_freed_when_replaced_removed_and_released),
        cmocka_unit_test(test_keys_are_copied),
        cmocka_unit_test(test_a_map_agrees_with_a_model),
        cmocka_unit_test(test_going_through_meets_each_entry_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

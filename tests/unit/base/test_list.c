#include "test.h"

#include "base/list.h"

struct item {
    int number;
    struct list link;
};

static void
check(struct list *head, const char *expected)
{
    char text[64] = "";
    size_t used = 0;

    list_each(at, head) used +=
        (size_t)snprintf(text + used, sizeof(text) - used, "%d",
                         list_entry(at, struct item, link)->number);
    assert_string_equal(text, expected);
}

static void
test_items_come_in_the_order_of_their_ends(void **state)
{
    struct item items[4] = {{.number = 0}, {.number = 1}, {.number = 2}, {.number = 3}};
    struct list head;

    list_init(&head);
    assert_true(list_empty(&head));
    assert_null(list_pop_front(&head));
    list_push_back(&head, &items[1].link);
    list_push_back(&head, &items[2].link);
    list_push_front(&head, &items[0].link);
    list_insert_before(&items[1].link, &items[3].link);
    check(&head, "0312");
    assert_ptr_equal(list_pop_front(&head), &items[0].link);
    list_remove(&items[1].link);
    list_remove(&items[1].link); /* twice is harmless */
    check(&head, "32");
    assert_false(list_empty(&head));
}

static void
test_the_item_at_hand_may_be_removed(void **state)
{
    struct item items[6];
    struct list head;

    list_init(&head);
    for (int i = 0; i < 6; i++) {
        items[i].number = i;
        list_push_back(&head, &items[i].link);
    }
    list_each_safe(at, &head) if (list_entry(at, struct item, link)->number % 2 == 0)
        list_remove(at);
    check(&head, "135");
    list_each_safe(at, &head) list_remove(at);
    assert_true(list_empty(&head));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_items_come_in_the_order_of_their_ends),
        cmocka_unit_test(test_the_item_at_hand_may_be_removed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What a backfill asks for, spread out. */
#include "base/err.h"
#include "base/json.h"
#include "queue/job.h"
#include "service/spread.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const char definition[] =
    "{\"day\":{\"type\":\"date\"},\"list\":{\"items\":{\"type\":\"string\"},"
    "\"type\":\"list\"},\"month\":{\"type\":\"string\"},\"n\":{\"type\":\"integer\"}}";

static void
no_fault(void *arg, const char *pointer, const char *text)
{
    (void)arg;
    fail_msg("%s %s", pointer, text);
}

/* The outcome as text: the items, or what is wrong. */
static json_t *
spread(const char *text, size_t max, struct params_errors *errors)
{
    scoped(json_drop) json_t *rules = json_loads(definition, 0, NULL);
    scoped(json_drop) json_t *params = json_loads(text, 0, NULL);
    struct param list[4] = {0};
    struct queue_job job = {.name = "job", .params = list};
    json_t *items = NULL;
    const char *name;
    json_t *rule;

    assert_non_null(params);
    json_object_foreach(rules, name, rule)
    {
        list[job.param_count].name = name;
        assert_true(
            rule_field_init(&list[job.param_count++].field, rule, no_fault, NULL));
    }
    memset(errors, 0, sizeof(*errors));
    if (spread_params(&job, params, max, &items, errors) != PARAMS_OK)
        items = NULL;
    for (size_t i = 0; i < job.param_count; i++)
        rule_field_release(&list[i].field);
    return items;
}

static void
assert_spread(const char *text, const char *expected)
{
    struct params_errors errors;
    scoped(json_drop) json_t *items = spread(text, 1000, &errors);
    scoped(json_drop) json_t *wanted = json_loads(expected, 0, NULL);

    assert_non_null(wanted);
    if (!items)
        fail_msg("%s: %s", text, errors.list[0].detail);
    if (!json_equal(items, wanted))
        fail_msg("%s gives %s", text, json_dumps(items, 0));
}

static void
assert_refused(const char *text, size_t max, const char *pointer, const char *detail)
{
    struct params_errors errors;
    scoped(json_drop) json_t *items = spread(text, max, &errors);

    assert_null(items);
    assert_string_equal(errors.list[0].pointer, pointer);
    if (!strstr(errors.list[0].detail, detail))
        fail_msg("%s: %s", text, errors.list[0].detail);
}

static void
test_ranges_have_both_ends(void **state)
{
    (void)state;
    assert_spread("{\"n\":\"3..5\"}", "[{\"n\":3},{\"n\":4},{\"n\":5}]");
    assert_spread("{\"n\":\"-1..0\"}", "[{\"n\":-1},{\"n\":0}]");
    assert_spread("{\"day\":\"2028-02-28..2028-03-01\"}",
                  "[{\"day\":\"2028-02-28\"},{\"day\":\"2028-02-29\"},"
                  "{\"day\":\"2028-03-01\"}]");
    assert_spread("{\"month\":\"2026-11..2027-01\"}",
                  "[{\"month\":\"2026-11\"},{\"month\":\"2026-12\"},"
                  "{\"month\":\"2027-01\"}]");
    assert_spread("{\"month\":\"202612..202701\"}",
                  "[{\"month\":\"202612\"},{\"month\":\"202701\"}]");
    assert_spread("{\"month\":\"20261231..20270101\"}",
                  "[{\"month\":\"20261231\"},{\"month\":\"20270101\"}]");
    assert_spread("{\"n\":\"9223372036854775806..9223372036854775807\"}",
                  "[{\"n\":9223372036854775806},{\"n\":9223372036854775807}]");
}

static void
test_lists_and_products(void **state)
{
    (void)state;
    assert_spread("{\"n\":\"1,7..8\",\"month\":\"a,b\"}",
                  "[{\"n\":1,\"month\":\"a\"},{\"n\":1,\"month\":\"b\"},"
                  "{\"n\":7,\"month\":\"a\"},{\"n\":7,\"month\":\"b\"},"
                  "{\"n\":8,\"month\":\"a\"},{\"n\":8,\"month\":\"b\"}]");
    assert_spread("{\"month\":[\"a,b\",\"c\"]}",
                  "[{\"month\":\"a,b\"},{\"month\":\"c\"}]");
    assert_spread("{\"list\":[\"a\",\"b\"],\"n\":4}",
                  "[{\"list\":[\"a\",\"b\"],\"n\":4}]");
    assert_spread("{\"month\":\"up..down\"}", "[{\"month\":\"up..down\"}]");
}

static void
test_what_cannot_be_read_names_its_place(void **state)
{
    (void)state;
    assert_refused("{\"n\":\"5..3\"}", 10, "/params/n", "goes backwards");
    assert_refused("{\"n\":\"1..x\"}", 10, "/params/n", "FROM..TO");
    assert_refused("{\"day\":\"2026-02-30..2026-03-01\"}", 10, "/params/day",
                   "FROM..TO");
    assert_refused("{\"n\":\"1..11\"}", 10, "/params/n", "more values");
    assert_refused("{\"n\":\"-9223372036854775808..9223372036854775807\"}", 10,
                   "/params/n", "more values");
    assert_refused("{\"n\":\"1..4\",\"month\":\"a,b,c\"}", 10, "/params/month",
                   "more than 10 items");
    assert_refused("{\"month\":[]}", 10, "/params/month", "empty list");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranges_have_both_ends),
        cmocka_unit_test(test_lists_and_products),
        cmocka_unit_test(test_what_cannot_be_read_names_its_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

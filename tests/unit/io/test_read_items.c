/* Items: products of lists, ranges, parameters and queries. */
#include "reader_test.h"

#include "db/db.h"
#include "io/read_items.h"

static struct db *db;

static int
give_database(struct io_ctx *io, const char *name, enum io_db_use use,
              struct db **ret_db, struct err *err)
{
    *ret_db = db;
    return 0;
}

static void
init(struct io_test *t)
{
    static const struct db_options options = {.url = "sqlite::memory:"};

    io_test_init(t, "{\"days\":[1,2],\"one\":\"x\",\"from\":\"2026-11\",\"n\":3}");
    t->io.database = give_database;
    ok(t, db_open(&options, &db, &t->err));
    ok(t, db_script(db,
                    "CREATE TABLE d (code TEXT, name TEXT);"
                    "INSERT INTO d VALUES ('11', '서울'), ('26', '부산');",
                    &t->err));
}

static void
release(struct io_test *t)
{
    db_close(db);
    io_test_release(t);
}

static const struct {
    const char *items, *want;
} cases[] = {
    {"{\"a\":[1,\"x-{one}\",true,2.5]}",
     "|integer:1|\n|x-x|\n|boolean:1|\n|real:2.5|\n"},
    {"{\"a\":[\"p\",\"q\"],\"b\":{\"from\":1,\"to\":3}}",
     "|p|integer:1|\n|p|integer:2|\n|p|integer:3|\n|q|integer:1|\n|q|integer:2|\n"
     "|q|integer:3|\n"},
    {"{\"m\":{\"from\":\"{from}\",\"to\":\"2027-02\"}}",
     "|2026-11|\n|2026-12|\n|2027-01|\n|2027-02|\n"},
    {"{\"m\":{\"from\":202701,\"to\":202611,\"by\":\"month\",\"step\":-1}}",
     "|202701|\n|202612|\n|202611|\n"},
    {"{\"d\":{\"from\":\"2024-02-28\",\"to\":\"2024-03-01\"}}",
     "|date:19781|\n|date:19782|\n|date:19783|\n"},
    {"{\"n\":{\"from\":10,\"to\":1,\"step\":-4}}",
     "|integer:10|\n|integer:6|\n|integer:2|\n"},
    {"{\"n\":{\"from\":9223372036854775806,\"to\":9223372036854775807}}",
     "|integer:9223372036854775806|\n|integer:9223372036854775807|\n"},
    {"{\"n\":{\"from\":1,\"to\":\"{n}\"},\"p\":{\"param\":\"days\"},\"o\":{\"param\":"
     "\"one\"}}",
     "|integer:1|integer:1|x|\n|integer:1|integer:2|x|\n|integer:2|integer:1|x|\n"
     "|integer:2|integer:2|x|\n|integer:3|integer:1|x|\n|integer:3|integer:2|x|\n"},
    {"{\"c\":{\"sql\":\"SELECT code FROM d ORDER BY code\"},\"m\":[1,2]}",
     "|11|integer:1|\n|11|integer:2|\n|26|integer:1|\n|26|integer:2|\n"},
    {"{\"m\":[1],\"c\":{\"sql\":\"SELECT code, name FROM d WHERE code <> :one ORDER BY "
     "code DESC\"}}",
     "|integer:1|26|부산|\n|integer:1|11|서울|\n"},
    {"{\"m\":[1,2],\"c\":{\"sql\":\"SELECT code FROM d WHERE code = 'no'\"}}", ""},
    {"{\"m\":[]}", ""},
};

static void
test_each_combination_is_a_row_and_every_position_goes_on(void **state)
{
    for (size_t i = 0; i < array_len(cases); i++) {
        struct io_test t;
        json_t *def = json_object();

        init(&t);
        json_object_set_new(def, "items", json_of(cases[i].items));
        assert_chunks_agree(&t, def, cases[i].want);
        json_decref(def);
        release(&t);
    }
}

static void
test_a_range_of_numbers_is_read_and_its_extent_told(void **state)
{
    struct io_range range = {
        .has_lower = true, .lower = 1, .has_upper = true, .upper = 3};
    json_t *def = json_of("{\"items\":{\"a\":[\"p\",\"q\"],\"b\":[\"x\",\"y\"]}}");
    scoped(buf_release) struct buf out = {0};
    struct io_test t;
    int64_t least = -1;
    int64_t greatest = -1;

    init(&t);
    buf_init(&out, 0);
    assert_int_equal(read_items_extent(&t.io, def, NULL, &least, &greatest, &t.err), 1);
    assert_int_equal(least, 0);
    assert_int_equal(greatest, 3);
    t.io.range = &range;
    assert_int_equal(dump_all(&t, def, 1, &out), READER_END);
    assert_string_equal(buf_str(&out), "|p|y|\n|q|x|\n");
    json_decref(def);
    release(&t);
}

static const struct {
    const char *items;
    enum err_code code;
    const char *want;
} bad[] = {
    {"{\"a\":5}", ERR_CONFIG, "read.items.a: must be a list"},
    {"{\"a\":[[1]]}", ERR_CONFIG, "read.items.a: value 1 is array"},
    {"{\"a\":{\"from\":1,\"too\":2}}", ERR_CONFIG, "did you mean \"to\"?"},
    {"{\"a\":{\"from\":1,\"to\":2,\"step\":0}}", ERR_CONFIG, "whole number but 0"},
    {"{\"a\":{\"from\":2,\"to\":1}}", ERR_INVALID, "to go down give `step: -1`"},
    {"{\"a\":{\"from\":1,\"to\":\"2026-01\"}}", ERR_INVALID,
     "both must be whole numbers"},
    {"{\"a\":{\"from\":\"2026-13\",\"to\":\"2026-14\"}}", ERR_INVALID, "both must be"},
    {"{\"a\":{\"from\":-9223372036854775807,\"to\":9223372036854775807}}",
     ERR_TOO_LARGE, "more than 1000000 values"},
    {"{\"a\":{\"param\":\"none\"}}", ERR_CONFIG, "there is no parameter none"},
    {"{\"a\":{\"sql\":\"SELECT nothing\"}}", ERR_DB, "read.items.a: "},
    {"{\"code\":[1],\"c\":{\"sql\":\"SELECT code, name FROM d\"}}", ERR_CONFIG,
     "two columns named \"code\""},
    {"{\"a\":{\"from\":1,\"to\":100000},\"b\":{\"from\":1,\"to\":100000},\"c\":{"
     "\"from\":1,"
     "\"to\":1000}}",
     ERR_TOO_LARGE, "more than 1000000000000 combinations"},
};

static void
test_what_makes_no_items_is_refused_with_its_name(void **state)
{
    for (size_t i = 0; i < array_len(bad); i++) {
        scoped(reader_freep) struct reader *reader = NULL;
        const struct reader_kind *kind = NULL;
        struct io_test t;
        json_t *def = json_object();
        int r;

        init(&t);
        json_object_set_new(def, "items", json_of(bad[i].items));
        r = format_choose_reader(def, &kind, &t.err);
        if (r == 0) {
            ok(&t, kind->new_reader(&t.io, def, &reader, &t.err));
            r = reader_open(reader, NULL, &t.err);
        }
        if (r != -(int)bad[i].code || !strstr(t.err.text, bad[i].want))
            fail_msg("%s gave %d: %s", bad[i].items, r, t.err.text);
        json_decref(def);
        reader_freep(&reader);
        release(&t);
    }
}

static void
test_values_that_changed_since_the_stop_are_refused(void **state)
{
    scoped(reader_freep) struct reader *reader = NULL;
    scoped(buf_release) struct buf position = {0};
    scoped(buf_release) struct buf out = {0};
    struct io_test t;
    json_t *def = json_of("{\"items\":{\"c\":{\"sql\":\"SELECT code FROM d\"}}}");

    init(&t);
    buf_init(&position, 0);
    buf_init(&out, 0);
    reader = new_reader(&t, def);
    ok(&t, reader_open(reader, NULL, &t.err));
    assert_int_equal(dump_chunk(&t, reader, 1, &out), READER_MORE);
    ok(&t, reader_position(reader, &position, &t.err));
    reader_freep(&reader);
    ok(&t, db_script(db, "UPDATE d SET code = '27' WHERE code = '26'", &t.err));
    reader = new_reader(&t, def);
    fails(&t, ERR_INVALID, "its values are others than before the stop",
          reader_open(reader, buf_str(&position), &t.err));
    reader_freep(&reader);
    json_decref(def);
    release(&t);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_combination_is_a_row_and_every_position_goes_on),
        cmocka_unit_test(test_a_range_of_numbers_is_read_and_its_extent_told),
        cmocka_unit_test(test_what_makes_no_items_is_refused_with_its_name),
        cmocka_unit_test(test_values_that_changed_since_the_stop_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

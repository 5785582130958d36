/* Rows sent out: the key of a call, and what is refused. The calls themselves are in
 * tests/flow/test_send.py. */
#include "io_test.h"

#include "io/write_http.h"

static void
key_of(const char *work, int64_t row, const char *text, char key[SHA256_HEX_SIZE])
{
    struct buf rows = {0};

    buf_init(&rows, 0);
    buf_add_str(&rows, text);
    write_http_key(work, row, &rows, key);
    buf_release(&rows);
}

static void
the_same_rows_have_the_same_key_and_others_another(void **state)
{
    static const struct {
        const char *work;
        int64_t row;
        const char *rows;
    } others[] = {
        {"store-1/8/send", 17, "{\"n\":1}"}, {"store-2/7/send", 17, "{\"n\":1}"},
        {"store-1/7/sent", 17, "{\"n\":1}"}, {"store-1/7/send#2", 17, "{\"n\":1}"},
        {"store-1/7/send", 18, "{\"n\":1}"}, {"store-1/7/send", 1, "7{\"n\":1}"},
        {"store-1/7/send", 17, "{\"n\":2}"}, {"store-1/7/send17", 17, "{\"n\":1}"},
    };
    char key[SHA256_HEX_SIZE];
    char again[SHA256_HEX_SIZE];

    key_of("store-1/7/send", 17, "{\"n\":1}", key);
    key_of("store-1/7/send", 17, "{\"n\":1}", again);
    assert_string_equal(key, again);
    assert_int_equal(strlen(key), 64);
    for (size_t i = 0; i < array_len(others); i++) {
        key_of(others[i].work, others[i].row, others[i].rows, again);
        assert_string_not_equal(key, again);
    }
}

static void
choose(struct io_test *t, const char *text, const char *part)
{
    const struct writer_kind *kind = NULL;
    json_t *def = json_of(text);

    if (part) {
        fails(t, ERR_CONFIG, part,
              format_choose_writer(def, t->params, &kind, &t->err));
    } else {
        ok(t, format_choose_writer(def, t->params, &kind, &t->err));
        assert_string_equal(kind->name, "http");
        assert_string_equal(format_effect_name(format_effect(def)), "at-least-once");
        assert_null(format_foreign(def));
    }
    json_decref(def);
}

static void
what_cannot_be_sent_is_refused(void **state)
{
    struct io_test t;

    io_test_init(&t, "{}");
    choose(&t, "{\"http\": {\"url\": \"http://h/{id}\"}}", NULL);
    choose(
        &t,
        "{\"http\": {\"url\": \"http://h/\", \"per\": \"chunk\", \"as\": \"jsonl\"}}",
        NULL);
    choose(&t, "{\"http\": {\"url\": \"http://h/\"}, \"file\": \"x.csv\"}",
           "to send to");
    choose(&t, "{\"http\": {\"url\": \"http://h/{id\"}}", "begins no {name}");
    choose(&t, "{\"http\": {\"url\": \"http://h/\", \"per\": \"day\"}}",
           "one of: row chunk");
    choose(&t, "{\"http\": {\"url\": \"http://h/\", \"per\": \"chunk\", \"json\": {}}}",
           "the rows are the body");
    choose(&t, "{\"http\": {\"url\": \"http://h/\", \"as\": \"json\"}}",
           "goes with `per: chunk`");
    choose(&t, "{\"http\": {\"url\": \"http://h/\", \"rows\": {\"json\": \"a\"}}}",
           "rows");
    choose(&t,
           "{\"http\": {\"url\": \"http://h/\", \"headers\": {\"idempotency-key\": "
           "\"1\"}}}",
           "is given by pawl");
    choose(&t, "{\"http\": {\"url\": \"http://h/\", \"idempotency_key\": \"a b\"}}",
           "no name of a header");
    io_test_release(&t);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_rows_have_the_same_key_and_others_another),
        cmocka_unit_test(what_cannot_be_sent_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

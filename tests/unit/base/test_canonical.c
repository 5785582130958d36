/* tests/vectors/canonical.json against json_canonical. The same file is run
 * against the SQL function by the store's tests. */
#include "test.h"

#include "base/err.h"
#include "base/fsio.h"
#include "base/json.h"

static int
canonical_of(const char *text, struct buf *buf, struct err *err)
{
    scoped(json_drop) json_t *json = NULL;
    int r = json_parse(text, strlen(text), JSON_DEPTH_MAX, &json, err);

    return r < 0 ? r : json_canonical(json, buf, err);
}

static json_t *
load_vectors(void)
{
    scoped(buf_release) struct buf path = {0};
    scoped(buf_release) struct buf text = {0};
    struct err err = {0};
    json_t *json = NULL;

    buf_addf(&path, "%s/tests/vectors/canonical.json", getenv("PAWL_SOURCE_ROOT"));
    assert_int_equal(fs_read_file(buf_str(&path), 1 << 20, &text, &err), 0);
    assert_int_equal(json_parse(text.data, text.len, 64, &json, &err), 0);
    return json;
}

static void
test_every_vector_gives_its_text_or_is_refused(void **state)
{
    scoped(json_drop) json_t *file = load_vectors();
    json_t *vectors = json_object_get(file, "vectors");

    assert_true(json_array_size(vectors) > 70);
    for (size_t i = 0; i < json_array_size(vectors); i++) {
        const json_t *vector = json_array_get(vectors, i);
        const char *name = json_string_value(json_object_get(vector, "name"));
        const char *text = json_string_value(json_object_get(vector, "text"));
        const char *expected = json_string_value(json_object_get(vector, "canonical"));
        scoped(buf_release) struct buf buf = {0};
        struct err err = {0};
        int r = canonical_of(text, &buf, &err);

        if (!expected && r != -ERR_INVALID)
            fail_msg("%s: taken as %s", name, buf_str(&buf));
        if (expected && r < 0)
            fail_msg("%s: refused: %s", name, err.text);
        if (expected)
            assert_string_equal(buf_str(&buf), expected);
    }
}

static void
test_the_canonical_text_is_its_own_canonical_text(void **state)
{
    scoped(json_drop) json_t *file = load_vectors();
    json_t *vectors = json_object_get(file, "vectors");

    for (size_t i = 0; i < json_array_size(vectors); i++) {
        const json_t *vector = json_array_get(vectors, i);
        const char *expected = json_string_value(json_object_get(vector, "canonical"));
        scoped(buf_release) struct buf buf = {0};
        struct err err = {0};

        if (!expected)
            continue;
        assert_int_equal(canonical_of(expected, &buf, &err), 0);
        assert_string_equal(buf_str(&buf), expected);
    }
}

static void
test_the_ceiling_of_the_buf_is_a_failure(void **state)
{
    for (size_t max = 6; max <= 8; max++) {
        scoped(buf_release) struct buf buf = {.max = max};
        struct err err = {0};

        assert_int_equal(canonical_of("{\"a\":1}", &buf, &err),
                         max < 7 ? -ERR_TOO_LARGE : 0);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_vector_gives_its_text_or_is_refused),
        cmocka_unit_test(test_the_canonical_text_is_its_own_canonical_text),
        cmocka_unit_test(test_the_ceiling_of_the_buf_is_a_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

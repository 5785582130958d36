/* Parts become results, and only what was published can be read. */
#include "base/buf.h"
#include "base/err.h"
#include "base/fsio.h"
#include "run/result_store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT "id,name\n1,x\n"

struct place {
    char folder[64];
    struct result_store *results;
};

static int
setup(void **state)
{
    struct place *place = calloc(1, sizeof(*place));
    struct err err = {0};

    assert_non_null(place);
    snprintf(place->folder, sizeof(place->folder), "/tmp/pawl-results-XXXXXX");
    assert_non_null(mkdtemp(place->folder));
    assert_int_equal(result_store_open(place->folder, "me", &place->results, &err), 0);
    *state = place;
    return 0;
}

static int
teardown(void **state)
{
    struct place *place = *state;

    result_store_close(place->results);
    fs_remove_tree_quietly(place->folder);
    free(place);
    return 0;
}

static int
publish(struct place *place, int64_t request, const char *name,
        struct result_file *ret_file, struct err *err)
{
    char part[4096];

    assert_int_equal(result_store_part(place->results, request, "export", 7, part,
                                       sizeof(part), err),
                     0);
    assert_int_equal(fs_replace_file(part, TEXT, strlen(TEXT), 0600, err), 0);
    return result_store_publish(place->results, part, request, name, ret_file, err);
}

static void
test_what_was_published_can_be_read(void **state)
{
    static const char *const names[] = {
        "a.csv", "2024..2025.csv", "서울..부산.xlsx", "a...b", "x..", "-"};
    struct place *place = *state;

    for (size_t i = 0; i < array_len(names); i++) {
        scoped(fd_close) int fd = -1;
        struct result_file file;
        struct err err = {0};
        char text[64] = "";

        assert_int_equal(publish(place, (int64_t)i + 1, names[i], &file, &err), 0);
        assert_int_equal(file.bytes, strlen(TEXT));
        if (result_store_read(place->results, file.path, file.bytes, &fd, &err) < 0)
            fail_msg("%s: %s", names[i], err.text);
        assert_int_equal(read(fd, text, sizeof(text) - 1), strlen(TEXT));
        assert_string_equal(text, TEXT);
    }
}

static void
test_a_path_that_publish_never_makes_is_refused(void **state)
{
    static const char *const paths[] = {
        "pawl-store", "files/1/../2/a", "files/../pawl-store",   "files/1/.hidden",
        "files/1/",   "files//a",       "files/1/a/b",           "/files/1/a",
        "files/1",    "files/x/a",      "parts/1-export-7.part",
    };
    struct place *place = *state;

    for (size_t i = 0; i < array_len(paths); i++) {
        struct err err = {0};
        int fd = -1;

        assert_int_equal(result_store_read(place->results, paths[i], 2, &fd, &err),
                         -ERR_INTERNAL);
        assert_int_equal(fd, -1);
    }
}

static void
test_one_that_is_gone_or_damaged_is_not_served(void **state)
{
    struct place *place = *state;
    struct result_file file;
    struct err err = {0};
    int fd = -1;

    assert_int_equal(publish(place, 1, "a.csv", &file, &err), 0);
    assert_int_equal(
        result_store_read(place->results, file.path, file.bytes + 1, &fd, &err),
        -ERR_IO);
    err_clear(&err);
    result_store_drop_files(place->results, 1);
    assert_int_equal(
        result_store_read(place->results, file.path, file.bytes, &fd, &err), -ERR_GONE);
    assert_int_equal(fd, -1);
}

static void
test_a_name_that_climbs_or_hides_is_not_published(void **state)
{
    static const char *const names[] = {"../a", "a/b", ".a", "..", ""};
    struct place *place = *state;

    for (size_t i = 0; i < array_len(names); i++) {
        struct result_file file;
        struct err err = {0};

        assert_int_equal(publish(place, 1, names[i], &file, &err), -ERR_INTERNAL);
    }
}

static void
test_the_folder_of_another_store_is_refused(void **state)
{
    struct place *place = *state;
    struct result_store *other = NULL;
    struct err err = {0};

    assert_int_equal(result_store_open(place->folder, "you", &other, &err),
                     -ERR_CONFIG);
    assert_null(other);
}

static bool
part_there(struct place *s, int64_t instance, int64_t token)
{
    struct err err = {0};
    char path[512];

    assert_int_equal(
        result_store_part(s->results, instance, "a-b", token, path, sizeof(path), &err),
        0);
    return fs_exists(path);
}

/* B23: a run that slept removes what it and those before it made, nothing later. */
static void
test_B23_parts_of_later_claims_stay(void **state)
{
    static const int64_t tokens[] = {3, 4, 5, 40};
    struct place *s = *state;
    struct err err = {0};

    for (size_t i = 0; i < array_len(tokens); i++)
        for (int64_t instance = 7; instance <= 77; instance += 70) {
            char path[512];

            assert_int_equal(result_store_part(s->results, instance, "a-b", tokens[i],
                                               path, sizeof(path), &err),
                             0);
            assert_int_equal(fs_replace_file(path, "x", 1, 0600, &err), 0);
        }
    result_store_drop_parts_until(s->results, 7, 4);
    assert_false(part_there(s, 7, 3));
    assert_false(part_there(s, 7, 4));
    assert_true(part_there(s, 7, 5));
    assert_true(part_there(s, 7, 40));
    result_store_drop_parts(s->results, 7, 40);
    assert_true(part_there(s, 7, 5));
    assert_false(part_there(s, 7, 40));
    result_store_drop_parts(s->results, 7, 0);
    assert_false(part_there(s, 7, 5));
    for (size_t i = 0; i < array_len(tokens); i++)
        assert_true(part_there(s, 77, tokens[i]));
}

static void
test_a_damaged_marker_is_no_other_store_and_its_folder_is_not_to_be_removed(
    void **state)
{
    static const char *const damaged[] = {"", "m\x01", "me\n", "you and me"};
    struct place *place = *state;
    char path[200];

    snprintf(path, sizeof(path), "%s/pawl-store", place->folder);
    for (size_t i = 0; i < array_len(damaged); i++) {
        struct result_store *again = NULL;
        struct err err = {0};

        assert_int_equal(
            fs_replace_file(path, damaged[i], strlen(damaged[i]), 0600, &err), 0);
        assert_int_equal(result_store_open(place->folder, "me", &again, &err),
                         -ERR_CONFIG);
        assert_non_null(strstr(err.text, "pawl-store is damaged"));
        assert_non_null(strstr(err.text, "remove that file"));
        assert_null(again);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_a_damaged_marker_is_no_other_store_and_its_folder_is_not_to_be_removed,
            setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_was_published_can_be_read, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_path_that_publish_never_makes_is_refused,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_that_is_gone_or_damaged_is_not_served,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_a_name_that_climbs_or_hides_is_not_published, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_folder_of_another_store_is_refused,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_B23_parts_of_later_claims_stay, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

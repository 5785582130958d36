#include "test.h"

#include "base/err.h"
#include "base/utf8.h"

#include <errno.h>

static void
test_the_first_note_stays(void **state)
{
    struct err err = {0};

    assert_int_equal(err_set(&err, ERR_IO, "first %d", 1), -ERR_IO);
    assert_int_equal(err_set(&err, ERR_DB, "second"), -ERR_IO);
    assert_string_equal(err.text, "first 1");
    assert_int_equal(err_prefix(&err, "in %s", "here"), -ERR_IO);
    assert_string_equal(err.text, "in here: first 1");
    err_clear(&err);
    assert_int_equal(err.code, ERR_NONE);
}

static void
test_a_full_disk_and_lack_of_memory_have_their_own_codes(void **state)
{
    static const struct {
        int errno_value;
        int code;
    } rows[] = {
        {ENOSPC, ERR_DISK_FULL},
        {EDQUOT, ERR_DISK_FULL},
        {ENOMEM, ERR_NOMEM},
        {EACCES, ERR_CONNECT},
    };

    for (size_t i = 0; i < array_len(rows); i++) {
        struct err err = {0};

        assert_int_equal(err_errno(&err, ERR_CONNECT, rows[i].errno_value, "x"),
                         -rows[i].code);
        assert_memory_equal(err.text, "x: ", 3);
    }
}

static void
test_every_code_has_word_status_and_exit_code(void **state)
{
    for (int code = ERR_NONE + 1; code < ERR_COUNT; code++) {
        assert_non_null(err_word((enum err_code)code));
        assert_in_range(err_http_status((enum err_code)code), 400, 599);
        assert_in_range(err_exit_code((enum err_code)code), 1, 78);
        for (int other = ERR_NONE; other < code; other++)
            assert_string_not_equal(err_word((enum err_code)code),
                                    err_word((enum err_code)other));
    }
    assert_string_equal(err_word((enum err_code)9999), "INTERNAL_ERROR");
}

static void
test_long_notes_are_cut_not_overrun(void **state)
{
    struct err err = {0};
    char longer[2000];

    memset(longer, 'a', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    err_set(&err, ERR_IO, "%s", longer);
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
    err_prefix(&err, "%s", longer);
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
}

static void
test_a_note_is_utf8_wherever_it_was_cut(void **state)
{
    char longer[2000];

    for (size_t shift = 0; shift < 4; shift++) {
        struct err err = {0};
        size_t at = shift;

        memset(longer, 'a', at);
        for (; at + 3 < sizeof(longer); at += 3)
            memcpy(longer + at, "\xEC\x84\x9C", 3); /* 서 */
        longer[at] = '\0';
        err_set(&err, ERR_DB, "%s", longer);
        assert_true(utf8_valid(err.text, strlen(err.text)));
        assert_in_range(strlen(err.text), sizeof(err.text) - 4, sizeof(err.text) - 1);
        err_prefix(&err, "step %zu", shift);
        assert_true(utf8_valid(err.text, strlen(err.text)));
    }
}

static void
test_bytes_of_another_encoding_become_question_marks(void **state)
{
    struct err err = {0};

    err_set(&err, ERR_IO, "cannot read \xBC\xAD\xBF\xEF.csv");
    assert_string_equal(err.text, "cannot read \?\?\?\?.csv");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_first_note_stays),
        cmocka_unit_test(test_a_full_disk_and_lack_of_memory_have_their_own_codes),
        cmocka_unit_test(test_every_code_has_word_status_and_exit_code),
        cmocka_unit_test(test_long_notes_are_cut_not_overrun),
        cmocka_unit_test(test_a_note_is_utf8_wherever_it_was_cut),
        cmocka_unit_test(test_bytes_of_another_encoding_become_question_marks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

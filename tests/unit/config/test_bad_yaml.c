/*
 * Every tests/data/yaml/bad-*.yaml must be refused with exactly the lines of its
 * .expected file. After a change of a message: PAWL_WRITE_EXPECTED=1 writes the
 * files anew; read the difference before it is committed.
 */
#include "base/buf.h"
#include "base/err.h"
#include "base/fsio.h"
#include "base/strs.h"
#include "config/config.h"
#include "config/errors.h"

#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static const char *
no_env(void *arg, const char *name)
{
    return NULL;
}

static char *
messages_of(const char *path)
{
    struct config_errors errors = {0};
    struct config *config = NULL;
    struct err err = {0};
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    assert_int_equal(config_load(path, no_env, NULL, &config, &errors, &err),
                     -ERR_CONFIG);
    assert_null(config);
    assert_true(errors.count > 0);
    config_errors_print(&errors, out);
    fclose(out);
    config_errors_release(&errors);
    return text;
}

static void
check_file(const char *path)
{
    scoped(buf_release) struct buf wanted = {0};
    struct err err = {0};
    char expected[256];
    char *got = messages_of(path);

    snprintf(expected, sizeof(expected), "%.*s.expected", (int)(strlen(path) - 5),
             path);
    if (getenv("PAWL_WRITE_EXPECTED") != NULL)
        assert_int_equal(fs_replace_file(expected, got, strlen(got), 0644, &err), 0);
    buf_init(&wanted, 1 << 20);
    if (fs_read_file(expected, 1 << 20, &wanted, &err) < 0)
        fail_msg("%s", err.text);
    assert_string_equal(got, buf_str(&wanted));
    free(got);
}

static void
test_each_broken_file_is_refused_with_all_its_problems(void **state)
{
    glob_t found;
    size_t i;

    assert_int_equal(glob("bad-*.yaml", 0, NULL, &found), 0);
    assert_true(found.gl_pathc >= 18);
    for (i = 0; i < found.gl_pathc; i++)
        check_file(found.gl_pathv[i]);
    globfree(&found);
}

static void
test_a_password_in_a_wrong_url_is_not_repeated(void **state)
{
    char *got = messages_of("bad-references.yaml");

    assert_null(strstr(got, "secret"));
    free(got);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_broken_file_is_refused_with_all_its_problems),
        cmocka_unit_test(test_a_password_in_a_wrong_url_is_not_repeated),
    };
    char folder[4096];

    snprintf(folder, sizeof(folder), "%s/tests/data/yaml", getenv("PAWL_SOURCE_ROOT"));
    if (chdir(folder) != 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "test.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fsio.h"
#include "base/json.h"
#include "base/log.h"
#include "base/strs.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>

/* A log that writes into memory, with a clock that stands still. */
struct fixture {
    struct clock_settable clock;
    struct log log;
    int fd;
};

static int
setup(void **state)
{
    static struct fixture fixture;

    clock_settable_init(&fixture.clock, INT64_C(1764444485123456));
    fixture.fd = memfd_create("log", MFD_CLOEXEC);
    log_init(&fixture.log, fixture.fd, LOG_INFO, LOG_TEXT, &fixture.clock.clock);
    *state = &fixture;
    return fixture.fd < 0;
}

static int
teardown(void **state)
{
    struct fixture *fixture = *state;

    fd_close(&fixture->fd);
    return 0;
}

/* What was written so far; the caller frees. */
static char *
written(const struct fixture *fixture)
{
    off_t size = lseek(fixture->fd, 0, SEEK_END);
    char *text = xcalloc((size_t)size + 1, 1);

    assert_int_equal(pread(fixture->fd, text, (size_t)size, 0), size);
    return text;
}

static void
test_a_text_line_has_time_level_message_and_fields(void **state)
{
    struct fixture *fixture = *state;
    scoped(xfree_ptr) char *text = NULL;

    log_line(&fixture->log, LOG_INFO, "request done", log_str("job", "a"),
             log_i64("request", -5), log_double("seconds", 1.25), log_str("none", NULL),
             log_str("empty", ""), log_str("words", "a b"), log_str("dash", "-"));
    log_line(&fixture->log, LOG_ERROR, "plain");
    text = written(fixture);
    assert_string_equal(text,
                        "2025-11-29T19:28:05.123Z info  request done job=a request=-5 "
                        "seconds=1.25 none=- empty=\"\" words=\"a b\" dash=\"-\"\n"
                        "2025-11-29T19:28:05.123Z error plain\n");
}

static void
test_a_json_line_has_the_same(void **state)
{
    struct fixture *fixture = *state;
    scoped(xfree_ptr) char *text = NULL;

    fixture->log.format = LOG_JSON;
    log_line(&fixture->log, LOG_WARN, "x", log_str("job", "a\"b"), log_i64("n", 1),
             log_double("d", 0.5), log_str("none", NULL));
    text = written(fixture);
    assert_string_equal(text,
                        "{\"time\":\"2025-11-29T19:28:05.123Z\",\"level\":\"warn\","
                        "\"message\":\"x\",\"job\":\"a\\\"b\",\"n\":1,\"d\":0.5,"
                        "\"none\":null}\n");
}

static void
test_a_line_for_the_journal_has_its_level_as_a_number(void **state)
{
    struct fixture *fixture = *state;
    scoped(xfree_ptr) char *text = NULL;

    fixture->log.format = LOG_JOURNAL;
    log_line(&fixture->log, LOG_WARN, "x", log_i64("n", 1));
    log_line(&fixture->log, LOG_ERROR, "y\n<0>z");
    text = written(fixture);
    assert_string_equal(text, "<4>x n=1\n<3>y\\n<0>z\n");
}

static void
test_lines_below_the_level_are_not_written(void **state)
{
    struct fixture *fixture = *state;
    scoped(xfree_ptr) char *text = NULL;

    log_line(&fixture->log, LOG_DEBUG, "no");
    log_line(NULL, LOG_ERROR, "no log at all");
    text = written(fixture);
    assert_string_equal(text, "");
    assert_true(log_wants(&fixture->log, LOG_INFO));
    assert_false(log_wants(&fixture->log, LOG_DEBUG));
}

static void
test_nothing_reaches_the_terminal_raw(void **state)
{
    static const struct {
        const char *value;
        const char *text;
        const char *json;
    } rows[] = {
        {"a\nb", "\"a\\nb\"", "a\\nb"},
        {"\x1b[31m", "\\u001b[31m", "\\u001b[31m"},
        {"\x7f", "\\u007f", "\\u007f"},
        {"\xc2\x9b", "\\u009b", "\\u009b"},
        {"\xe2\x80\xa8\xe2\x80\xa9", "\\u2028\\u2029", "\\u2028\\u2029"},
        {"\xe2\x80\xae", "\\u202e", "\\u202e"},
        {"\xff", "\\xff", "\xef\xbf\xbd"},
        {"a\\b", "\"a\\\\b\"", "a\\\\b"},
        {"\r\t", "\"\\r\\t\"", "\\r\\t"},
        {"한😀", "한😀", "한😀"},
    };
    struct fixture *fixture = *state;

    for (size_t i = 0; i < array_len(rows); i++) {
        scoped(xfree_ptr) char *text = NULL;
        char expected[400];

        assert_int_equal(ftruncate(fixture->fd, 0), 0);
        lseek(fixture->fd, 0, SEEK_SET);
        fixture->log.format = LOG_TEXT;
        log_line(&fixture->log, LOG_INFO, rows[i].value, log_str("k", rows[i].value));
        fixture->log.format = LOG_JSON;
        log_line(&fixture->log, LOG_INFO, "m", log_str("k", rows[i].value));
        text = written(fixture);
        snprintf(expected, sizeof(expected),
                 " k=%s\n{\"time\":\"2025-11-29T19:28:05.123Z\",\"level\":\"info\","
                 "\"message\":\"m\",\"k\":\"%s\"}\n",
                 rows[i].text, rows[i].json);
        if (!str_ends_with(text, expected))
            fail_msg("row %zu: %s", i, text);
        for (const char *at = text; *at; at++)
            assert_true(*at == '\n' || (unsigned char)*at >= 0x20);
    }
}

static void
test_a_field_is_cut_at_8_kib(void **state)
{
    struct fixture *fixture = *state;

    for (int format = LOG_TEXT; format <= LOG_JSON; format++) {
        for (size_t len = LOG_FIELD_MAX - 1; len <= LOG_FIELD_MAX + 1; len++) {
            scoped(xfree_ptr) char *value = xcalloc(len + 1, 1);
            scoped(xfree_ptr) char *text = NULL;

            memset(value, 'w', len);
            assert_int_equal(ftruncate(fixture->fd, 0), 0);
            lseek(fixture->fd, 0, SEEK_SET);
            fixture->log.format = (enum log_format)format;
            log_line(&fixture->log, LOG_INFO, "m", log_str("k", value));
            text = written(fixture);
            assert_int_equal(!!strstr(text, "w…"), len > LOG_FIELD_MAX);
            assert_int_equal(strspn(strchr(text, 'w'), "w"),
                             len > LOG_FIELD_MAX ? LOG_FIELD_MAX : len);
        }
    }
}

static void
test_a_line_nobody_takes_is_counted(void **state)
{
    struct fixture *fixture = *state;
    scoped(fd_close) int full = open("/dev/full", O_WRONLY | O_CLOEXEC);

    fixture->log.fd = full;
    assert_int_equal(log_lost(&fixture->log), 0);
    log_line(&fixture->log, LOG_INFO, "x");
    log_line(&fixture->log, LOG_INFO, "x");
    assert_int_equal(log_lost(&fixture->log), 2);
}

#define WRITERS 4
#define LINES   200

static void *
write_many(void *arg)
{
    struct log *log = arg;

    for (int i = 0; i < LINES; i++)
        log_line(log, LOG_INFO, "from a thread", log_i64("n", i));
    return NULL;
}

static void
test_lines_of_many_threads_stay_whole(void **state)
{
    struct fixture *fixture = *state;
    scoped(xfree_ptr) char *text = NULL;
    pthread_t threads[WRITERS];
    int lines = 0;

    assert_int_equal(fcntl(fixture->fd, F_SETFL, O_APPEND), 0);
    fixture->log.format = LOG_JSON;
    for (int i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_many, &fixture->log),
                         0);
    for (int i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    text = written(fixture);
    for (char *at = text; *at; lines++) {
        scoped(json_drop) json_t *json = NULL;
        size_t len = strcspn(at, "\n");
        struct err err = {0};

        assert_int_equal(json_parse(at, len, 2, &json, &err), 0);
        at += len + 1;
    }
    assert_int_equal(lines, WRITERS * LINES);
}

static void
test_level_words_go_there_and_back(void **state)
{
    enum log_level level;

    for (int i = 0; i < LOG_LEVEL_COUNT; i++) {
        assert_int_equal(log_level_parse(log_level_word((enum log_level)i), &level), 0);
        assert_int_equal(level, i);
    }
    assert_int_equal(log_level_parse("loud", &level), -1);
}

#define with_log(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        with_log(test_a_text_line_has_time_level_message_and_fields),
        with_log(test_a_json_line_has_the_same),
        with_log(test_a_line_for_the_journal_has_its_level_as_a_number),
        with_log(test_lines_below_the_level_are_not_written),
        with_log(test_nothing_reaches_the_terminal_raw),
        with_log(test_a_field_is_cut_at_8_kib),
        with_log(test_a_line_nobody_takes_is_counted),
        with_log(test_lines_of_many_threads_stay_whole),
        with_log(test_level_words_go_there_and_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

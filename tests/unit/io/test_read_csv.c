/* CSV that comes from elsewhere: encodings, bad records, files made anew. */
#include "reader_test.h"

#include "io/charset.h"

#include <iconv.h>

static const char korean[] = "이름,값\r\n\"서울, \"\"강남\"\"\",1\r\n부산,\r\n\"두\n줄"
                             "\",3\r\n똠방각하,4";
static const char korean_rows[] = "|서울, \"강남\"|1|\n|부산|-|\n|두\n줄|3|\n"
                                  "|똠방각하|4|\n";

/* UTF-8 in another encoding, behind bom. */
static size_t
encode(const char *text, const char *charset, const char *bom, size_t bom_len,
       char *out, size_t size)
{
    iconv_t cd = iconv_open(charset, "UTF-8");
    char *from = (char *)(uintptr_t)text, *to = out + bom_len;
    size_t left = strlen(text), room = size - bom_len;

    memcpy(out, bom, bom_len);
    assert_int_equal(iconv(cd, &from, &left, &to, &room), 0);
    assert_int_equal(iconv_close(cd), 0);
    return (size_t)(to - out);
}

static void
test_files_in_other_encodings_are_read_and_restart_at_any_record(void **state)
{
    static const struct {
        const char *name, *iconv, *bom;
        size_t bom_len;
    } cases[] = {
        {"cp949", "CP949", "", 0},
        {"MS949", "CP949", "", 0},
        {"UHC", "CP949", "", 0},
        {"ks_c_5601-1987", "CP949", "", 0},
        {"UTF-16LE", "UTF-16LE", "\xff\xfe", 2},
        {"utf-16be", "UTF-16BE", "\xfe\xff", 2},
        {"utf-16le", "UTF-16LE", "", 0},
        {"utf-16", "UTF-16BE", "\xfe\xff", 2},
        {"utf-16", "UTF-16LE", "\xff\xfe", 2},
        {"utf-8", "UTF-8", "\xef\xbb\xbf", 3},
        {"gb18030", "GB18030", "", 0},
    };

    for (size_t i = 0; i < array_len(cases); i++) {
        char data[1024], more[64];
        struct io_test t;
        json_t *def;
        size_t len = encode(korean, cases[i].iconv, cases[i].bom, cases[i].bom_len,
                            data, sizeof(data));

        io_test_init(&t, "{}");
        (void)snprintf(more, sizeof(more), "{\"encoding\":\"%s\"}", cases[i].name);
        put_file(&t, "in.csv", data, len);
        def = file_def(&t, "csv", "in.csv", more);
        assert_chunks_agree(&t, def, korean_rows);
        json_decref(def);
        io_test_release(&t);
    }
}

/* EUC-KR has no 똠; iconv would make a control character of its first byte. */
static void
test_cp949_read_as_euc_kr_is_a_bad_record_with_line_and_column(void **state)
{
    struct io_test t;
    char data[1024];
    size_t len = encode(korean, "CP949", "", 0, data, sizeof(data));
    scoped(reader_freep) struct reader *reader = NULL;
    struct row_set rows;
    json_t *def;

    io_test_init(&t, "{}");
    row_set_init(&rows, 0);
    put_file(&t, "in.csv", data, len);
    def = file_def(&t, "csv", "in.csv", "{\"encoding\":\"euc-kr\"}");
    reader = new_reader(&t, def);
    ok(&t, reader_open(reader, NULL, &t.err));
    assert_int_equal(reader_read_chunk(reader, 100, &rows, &t.err), READER_BAD);
    assert_int_equal(rows.count, 3);
    assert_non_null(strstr(t.err.text, "in.csv:6:1: field 1: byte 0x8c is not euc-kr; "
                                       "is the file in cp949?"));
    assert_string_equal(reader->bad.error_class, "parse");
    assert_non_null(strstr(reader->bad.place, "in.csv:6"));
    row_set_release(&rows);
    json_decref(def);
    io_test_release(&t);
}

static const struct {
    const char *file, *def, *want;
    size_t len;
} bad_cases[] = {
    {"a,b\n1,2\n1,2,3\n3,4\n5\n6,7\n", "{}",
     "|1|2|\n!format in.csv:3\n|3|4|\n!format in.csv:5\n|6|7|\n", 0},
    {"a,b\n1,2\n\"x\"y,2\n3,4\n", "{}", "|1|2|\n!parse in.csv:3\n|3|4|\n", 0},
    {"a,b\n\"x\"y", "{}", "!parse in.csv:2\n", 0},
    {"a,b\n1,\xff\n3,4\n", "{}", "!parse in.csv:2\n|3|4|\n", 0},
    {"a,b\n1,x\0y\n3,4\n", "{}", "!parse in.csv:2\n|3|4|\n", 14},
    {"a,b\n1,x\n3,4\n", "{\"columns\":{\"b\":\"integer\"}}",
     "!format in.csv:2\n|3|integer:4|\n", 0},
    /* UTF-16 with a byte too many, and with half a pair. */
    {"a\0\n\0x\0\n\0y", "{\"encoding\":\"utf-16le\"}", "|x|\n!parse in.csv:3\n", 9},
    {"a\0\n\0\0\xd8\n\0y\0\n\0", "{\"encoding\":\"utf-16le\"}",
     "!parse in.csv:2\n|y|\n", 12},
};

static void
test_bad_records_are_told_and_the_reader_goes_on_behind_them(void **state)
{
    for (size_t i = 0; i < array_len(bad_cases); i++) {
        struct io_test t;
        json_t *def;
        size_t len = bad_cases[i].len ? bad_cases[i].len : strlen(bad_cases[i].file);

        io_test_init(&t, "{}");
        put_file(&t, "in.csv", bad_cases[i].file, len);
        def = file_def(&t, "csv", "in.csv", bad_cases[i].def);
        assert_chunks_agree(&t, def, bad_cases[i].want);
        json_decref(def);
        io_test_release(&t);
    }
}

/* Many lines, some of them long, so that the buffers end everywhere. */
static void
test_long_files_in_utf_16_restart_at_any_record(void **state)
{
    struct io_test t;
    scoped(buf_release) struct buf text = {0};
    char *data = malloc((size_t)8 << 20);
    size_t len;
    json_t *def;

    buf_init(&text, 0);
    buf_add_str(&text, "번호,글\n");
    for (int i = 0; i < 150; i++)
        buf_addf(&text, "%d,\"한글\n%0*d\"\n", i, 1 + i * 7 % 4000, i);
    io_test_init(&t, "{}");
    len = encode(buf_str(&text), "UTF-16LE", "\xff\xfe", 2, data, (size_t)8 << 20);
    put_file(&t, "in.csv", data, len);
    def = file_def(&t, "csv", "in.csv", "{\"encoding\":\"utf-16\"}");
    assert_chunks_agree(&t, def, NULL);
    json_decref(def);
    free(data);
    io_test_release(&t);
}

static void
test_A38_a_file_made_anew_in_another_order_is_read_whole_when_told_so(void **state)
{
    static const char first[] = "a\n1\n2\n3\n4\n", anew[] = "a\n4\n3\n2\n1\n";
    static const char *const defs[] = {"{\"restart\":\"beginning\"}", "{}"};

    for (size_t i = 0; i < array_len(defs); i++) {
        scoped(reader_freep) struct reader *reader = NULL;
        scoped(buf_release) struct buf position = {0};
        scoped(buf_release) struct buf out = {0};
        struct io_test t;
        json_t *def;

        io_test_init(&t, "{}");
        buf_init(&position, 0);
        buf_init(&out, 0);
        put_file(&t, "in.csv", first, strlen(first));
        def = file_def(&t, "csv", "in.csv", defs[i]);
        reader = new_reader(&t, def);
        ok(&t, reader_open(reader, NULL, &t.err));
        assert_int_equal(dump_chunk(&t, reader, 2, &out), READER_MORE);
        ok(&t, reader_position(reader, &position, &t.err));
        reader_freep(&reader);
        put_file(&t, "in.csv", anew, strlen(anew));
        reader = new_reader(&t, def);
        if (i == 0) {
            ok(&t, reader_open(reader, buf_str(&position), &t.err));
            buf_clear(&out);
            assert_int_equal(dump_chunk(&t, reader, 100, &out), READER_END);
            assert_string_equal(buf_str(&out), "|4|\n|3|\n|2|\n|1|\n");
        } else { /* not told so: refused, rather than rows missing */
            fails(&t, ERR_INVALID, "is not the file that was read",
                  reader_open(reader, buf_str(&position), &t.err));
        }
        json_decref(def);
        io_test_release(&t);
    }
}

static void
test_a_file_that_grew_at_its_end_goes_on(void **state)
{
    scoped(reader_freep) struct reader *reader = NULL;
    scoped(buf_release) struct buf position = {0};
    scoped(buf_release) struct buf out = {0};
    struct io_test t;
    json_t *def;

    io_test_init(&t, "{}");
    buf_init(&position, 0);
    buf_init(&out, 0);
    put_file(&t, "in.csv", "a\n1\n2\n", 6);
    def = file_def(&t, "csv", "in.csv", "{}");
    reader = new_reader(&t, def);
    ok(&t, reader_open(reader, NULL, &t.err));
    assert_int_equal(dump_chunk(&t, reader, 100, &out), READER_END);
    ok(&t, reader_position(reader, &position, &t.err));
    reader_freep(&reader);
    put_file(&t, "in.csv", "a\n1\n2\n3\n", 8);
    reader = new_reader(&t, def);
    ok(&t, reader_open(reader, buf_str(&position), &t.err));
    assert_int_equal(dump_chunk(&t, reader, 100, &out), READER_END);
    assert_string_equal(buf_str(&out), "|1|\n|2|\n|3|\n");
    json_decref(def);
    io_test_release(&t);
}

static void
test_an_encoding_that_nobody_knows_is_refused_with_those_there_are(void **state)
{
    const struct reader_kind *kind;
    struct io_test t;
    json_t *def = json_of("{\"csv\":\"x\",\"encoding\":\"klingon\"}");

    io_test_init(&t, "{}");
    fails(&t, ERR_CONFIG, "read.encoding: must be one of: utf-8 cp949",
          format_choose_reader(def, &kind, &t.err));
    json_decref(def);
    io_test_release(&t);
}

static void
test_broken_files_neither_crash_nor_hang(void **state)
{
    static const char *const defs[] = {
        "{}", "{\"encoding\":\"cp949\",\"columns\":{\"값\":\"integer\"}}",
        "{\"encoding\":\"utf-16\"}"};
    char data[1024];

    for (size_t i = 0; i < array_len(defs); i++) {
        struct io_test t;
        json_t *def;
        size_t len = encode(korean,
                            i == 0   ? "UTF-8"
                            : i == 1 ? "CP949"
                                     : "UTF-16LE",
                            "\xff\xfe", i == 2 ? 2 : 0, data, sizeof(data));

        io_test_init(&t, "{}");
        def = file_def(&t, "csv", "in.csv", defs[i]);
        read_broken_files(&t, def, "in.csv", data, len, 200);
        json_decref(def);
        io_test_release(&t);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            test_files_in_other_encodings_are_read_and_restart_at_any_record),
        cmocka_unit_test(
            test_cp949_read_as_euc_kr_is_a_bad_record_with_line_and_column),
        cmocka_unit_test(test_bad_records_are_told_and_the_reader_goes_on_behind_them),
        cmocka_unit_test(test_long_files_in_utf_16_restart_at_any_record),
        cmocka_unit_test(
            test_A38_a_file_made_anew_in_another_order_is_read_whole_when_told_so),
        cmocka_unit_test(test_a_file_that_grew_at_its_end_goes_on),
        cmocka_unit_test(
            test_an_encoding_that_nobody_knows_is_refused_with_those_there_are),
        cmocka_unit_test(test_broken_files_neither_crash_nor_hang),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

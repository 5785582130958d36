/* XML: items by path, from ZIP members too; what could do harm is refused. */
#include "zip_test.h"

static const struct {
    const char *file, *def, *want;
} cases[] = {
    {"<?xml version=\"1.0\"?>\n<r><list><a> 1 </a><b>x&amp;y</b></list>\n"
     "<other><a>9</a></other><list><b/><a><![CDATA[<2>]]></a></list></r>",
     "{\"item\":\"list\"}", "|1|x&y|\n|<2>|-|\n"},
    /* By parent, by the whole path. */
    {"<r><item><v>0</v></item><items><item><v>1</v></item></items></r>",
     "{\"item\":\"items/item\"}", "|1|\n"},
    {"<r><item><v>0</v></item><items><item><v>1</v></item></items></r>",
     "{\"item\":\"/r/item\"}", "|0|\n"},
    {"<r><x><item><v>0</v></item></x></r>",
     "{\"item\":\"/r/item\",\"columns\":[\"v\"]}", ""},
    /* Attributes, inner elements, own text, names chosen. */
    {"<r><i id=\"7\"><n lang=\"ko\">서울</n><p><q>2</q></p></i><i id=\"8\"/></r>",
     "{\"item\":\"i\",\"fields\":{\"id\":\"@id\",\"lang\":\"n/@lang\",\"q\":\"p/q\"},"
     "\"columns\":{\"id\":\"integer\",\"n\":\"text\",\"lang\":\"text\",\"q\":\"text\"}"
     "}",
     "|integer:7|서울|ko|2|\n|integer:8|-|-|-|\n"},
    {"<r><i>a</i><i>b</i></r>", "{\"item\":\"i\",\"fields\":{\"v\":\".\"}}",
     "|a|\n|b|\n"},
    /* An item in an item is part of it. */
    {"<r><i><v>1</v><i><v>2</v></i></i></r>", "{\"item\":\"i\"}", "|1|2|\n"},
    {"<r><i><v></v></i></r>", "{\"item\":\"i\",\"empty\":\"text\"}", "||\n"},
    /* Bad items. */
    {"<r>\n<i><v>1</v></i>\n<i><v>x</v></i>\n<i><v>3</v><w>4</w></i></r>",
     "{\"item\":\"i\",\"columns\":{\"v\":\"integer\"}}",
     "|integer:1|\n!format in.xml:3\n|integer:3|\n"},
    {"<r>\n<i><v>1</v></i>\n<i><v>1</v><v>2</v></i>\n<i><w>4</w></i></r>",
     "{\"item\":\"i\"}", "|1|\n!format in.xml:3\n!format in.xml:4\n"},
    {"<?xml version='1.0' encoding='EUC-KR'?><r><i>\xbc\xad\xbf\xef\x8c\x63</i></r>",
     "{\"item\":\"i\",\"columns\":[\".\"]}", "|서울똠|\n"},
};

static void
test_items_become_rows_and_every_position_goes_on_behind_them(void **state)
{
    for (size_t i = 0; i < array_len(cases); i++) {
        struct io_test t;
        struct zip_build zip;
        json_t *def;

        io_test_init(&t, "{}");
        put_file(&t, "in.xml", cases[i].file, strlen(cases[i].file));
        def = file_def(&t, "xml", "in.xml", cases[i].def);
        assert_chunks_agree(&t, def, cases[i].want);
        json_decref(def);
        if (strchr(cases[i].want, '!')) { /* places there are named otherwise */
            io_test_release(&t);
            continue;
        }
        zip_build_init(&zip);
        zip_build_add(&zip, "a.xml", "<r/>", 4, false, 0);
        zip_build_add(&zip, "b.xml", cases[i].file, strlen(cases[i].file), true, 0);
        zip_build_end(&zip);
        put_file(&t, "in.xml", zip.out.data, zip.out.len);
        def = file_def(&t, "xml", "in.xml", cases[i].def);
        json_object_set_new(def, "member", json_string("b.xml"));
        assert_chunks_agree(&t, def, cases[i].want);
        json_decref(def);
        zip_build_release(&zip);
        io_test_release(&t);
    }
}

static void
test_a_long_file_restarts_at_any_item(void **state)
{
    struct io_test t;
    scoped(buf_release) struct buf file = {0};
    json_t *def;

    io_test_init(&t, "{}");
    buf_init(&file, 0);
    buf_add_str(&file, "<result>");
    for (int i = 0; i < 120; i++)
        buf_addf(&file, "<list>\n<a>%d</a><b>%0*d</b></list>\n", i, i * 7 % 900 + 1, i);
    buf_add_str(&file, "</result>");
    put_file(&t, "in.xml", file.data, file.len);
    def = file_def(&t, "xml", "in.xml", "{\"item\":\"list\"}");
    assert_chunks_agree(&t, def, NULL);
    json_decref(def);
    io_test_release(&t);
}

static const struct {
    const char *file;
    int code;
    const char *want;
} broken[] = {
    {"<?xml version=\"1.0\"?>\n<!DOCTYPE l [<!ENTITY a \"aaaa\">]><r><i>&a;</i></r>",
     ERR_INVALID, "in.xml:2:13: a document type (<!DOCTYPE) is not read"},
    {"<!DOCTYPE html><html><body>Sorry</body></html>", ERR_INVALID,
     "is it an HTML page?"},
    {"<r><i>1</i><i>2</r>", ERR_INVALID, "in.xml:1:18: mismatched tag"},
    {"<r><i>1</i><i>2", ERR_INVALID, "was it downloaded whole?"},
    {"", ERR_INVALID, "in.xml:1:1: no element found; it ends too early"},
    {"<r><i>&nbsp;</i></r>", ERR_INVALID, "undefined entity"},
    {"<?xml version='1.0' encoding='klingon'?><r/>", ERR_INVALID, "unknown encoding"},
    {"<r></r>", ERR_INVALID, "has no element i to tell the columns by"},
};

static void
test_what_is_no_xml_or_may_do_harm_is_refused_with_its_place(void **state)
{
    for (size_t i = 0; i < array_len(broken); i++) {
        scoped(buf_release) struct buf out = {0};
        struct io_test t;
        json_t *def;

        io_test_init(&t, "{}");
        buf_init(&out, 0);
        put_file(&t, "in.xml", broken[i].file, strlen(broken[i].file));
        def = file_def(&t, "xml", "in.xml", "{\"item\":\"i\"}");
        fails(&t, broken[i].code, broken[i].want, dump_all(&t, def, 9, &out));
        json_decref(def);
        io_test_release(&t);
    }
}

static void
test_nesting_has_a_ceiling(void **state)
{
    scoped(buf_release) struct buf file = {0};
    scoped(buf_release) struct buf out = {0};
    struct io_test t;
    json_t *def;

    io_test_init(&t, "{}");
    buf_init(&file, 0);
    buf_init(&out, 0);
    buf_add_str(&file, "<i>");
    for (int i = 0; i < 100000; i++)
        buf_add_str(&file, "<a>");
    put_file(&t, "in.xml", file.data, file.len);
    def = file_def(&t, "xml", "in.xml", "{\"item\":\"i\"}");
    fails(&t, ERR_TOO_LARGE, "deeper than 200 levels", dump_all(&t, def, 9, &out));
    json_decref(def);
    io_test_release(&t);
}

/* 64 MiB of one letter in a file of 64 KiB. */
static void
test_a_zip_file_that_swells_is_refused(void **state)
{
    size_t len = (size_t)64 << 20;
    char *data = malloc(len);
    scoped(buf_release) struct buf out = {0};
    struct zip_build zip;
    struct io_test t;
    json_t *def;

    assert_non_null(data);
    memset(data, ' ', len);
    memcpy(data, "<r><i>", 6);
    memcpy(data + len - 8, "</i></r>", 8);
    buf_init(&out, 0);
    io_test_init(&t, "{}");
    zip_build_init(&zip);
    zip_build_add(&zip, "b.xml", data, len, true, 0);
    zip_build_end(&zip);
    put_file(&t, "in.zip", zip.out.data, zip.out.len);
    def = file_def(&t, "xml", "in.zip", "{\"item\":\"i\"}");
    fails(&t, ERR_TOO_LARGE, "swells to more than", dump_all(&t, def, 9, &out));
    json_decref(def);
    free(data);
    zip_build_release(&zip);
    io_test_release(&t);
}

static void
test_zip_files_that_cannot_be_read_say_why(void **state)
{
    static const char xml[] = "<r><i>1</i></r>";
    scoped(buf_release) struct buf out = {0};
    struct zip_build zip;
    struct io_test t;
    json_t *def, *named;

    buf_init(&out, 0);
    io_test_init(&t, "{}");
    def = file_def(&t, "xml", "in.zip", "{\"item\":\"i\"}");
    named = file_def(&t, "xml", "in.zip", "{\"item\":\"i\",\"member\":\"c.xml\"}");
    zip_build_init(&zip);
    zip_build_add(&zip, "a.xml", xml, strlen(xml), true, 0);
    zip_build_add(&zip, "b.xml", xml, strlen(xml), false, 1);
    zip_build_end(&zip);
    put_file(&t, "in.zip", zip.out.data, zip.out.len);
    fails(&t, ERR_INVALID, "2 members; say which by read.member: a.xml, b.xml",
          dump_all(&t, def, 9, &out));
    fails(&t, ERR_INVALID, "has no member c.xml; it has: a.xml, b.xml",
          dump_all(&t, named, 9, &out));
    json_object_set_new(named, "member", json_string("b.xml"));
    fails(&t, ERR_INVALID, "member b.xml: it is encrypted",
          dump_all(&t, named, 9, &out));
    put_file(&t, "in.zip", zip.out.data, zip.out.len / 2);
    fails(&t, ERR_INVALID, "no whole ZIP file: it has no directory at its end; was it",
          dump_all(&t, def, 9, &out));
    json_object_set_new(named, "member", json_string("a.xml"));
    zip.out.data[39] ^= 0x40; /* in the deflated data */
    put_file(&t, "in.zip", zip.out.data, zip.out.len);
    err_clear(&t.err);
    assert_int_equal(dump_all(&t, named, 9, &out), -ERR_INVALID);
    json_decref(def);
    json_decref(named);
    zip_build_release(&zip);
    io_test_release(&t);
}

static void
test_A38_an_xml_file_in_another_order_is_refused_or_read_whole(void **state)
{
    static const char first[] = "<r><i>1</i><i>2</i><i>3</i></r>";
    static const char anew[] = "<r><i>3</i><i>2</i><i>1</i></r>";
    static const char *const defs[] = {"{\"item\":\"i\"}",
                                       "{\"item\":\"i\",\"restart\":\"beginning\"}"};

    for (int i = 0; i < 4; i++) { /* plain, then zipped */
        scoped(reader_freep) struct reader *reader = NULL;
        scoped(buf_release) struct buf position = {0};
        scoped(buf_release) struct buf out = {0};
        struct io_test t;
        json_t *def;

        io_test_init(&t, "{}");
        buf_init(&position, 0);
        buf_init(&out, 0);
        def = file_def(&t, "xml", "in", defs[i % 2]);
        for (int round = 0; round < 2; round++) {
            const char *text = round ? anew : first;
            struct zip_build zip;

            zip_build_init(&zip);
            zip_build_add(&zip, "x", text, strlen(text), true, 0);
            zip_build_end(&zip);
            put_file(&t, "in", i < 2 ? text : zip.out.data,
                     i < 2 ? strlen(text) : zip.out.len);
            zip_build_release(&zip);
            reader = new_reader(&t, def);
            if (round && i % 2 == 0) {
                fails(&t, ERR_INVALID, "is not the file that was read",
                      reader_open(reader, buf_str(&position), &t.err));
            } else {
                ok(&t, reader_open(reader, round ? buf_str(&position) : NULL, &t.err));
                buf_clear(&out);
                assert_true(dump_chunk(&t, reader, round ? 9 : 2, &out) >= 0);
                assert_string_equal(buf_str(&out),
                                    round ? "|3|\n|2|\n|1|\n" : "|1|\n|2|\n");
                buf_clear(&position);
                ok(&t, reader_position(reader, &position, &t.err));
            }
            reader_freep(&reader);
        }
        json_decref(def);
        io_test_release(&t);
    }
}

static void
test_broken_files_neither_crash_nor_hang(void **state)
{
    static const char data[] =
        "<?xml version='1.0' encoding='utf-8'?><r a=\"1\"><list><a>1</a><b x='y'>한글"
        "</b><c/></list>\n<list><b>&lt;&#44032;</b><a><d>2</d></a></list></r>";
    struct zip_build zip;
    struct io_test t;
    json_t *def;

    io_test_init(&t, "{}");
    def = file_def(&t, "xml", "in.xml", "{\"item\":\"list\"}");
    read_broken_files(&t, def, "in.xml", data, strlen(data), 300);
    zip_build_init(&zip);
    zip_build_add(&zip, "b.xml", data, strlen(data), true, 0);
    zip_build_end(&zip);
    read_broken_files(&t, def, "in.xml", zip.out.data, zip.out.len, 400);
    zip_build_release(&zip);
    json_decref(def);
    io_test_release(&t);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_items_become_rows_and_every_position_goes_on_behind_them),
        cmocka_unit_test(test_a_long_file_restarts_at_any_item),
        cmocka_unit_test(test_what_is_no_xml_or_may_do_harm_is_refused_with_its_place),
        cmocka_unit_test(test_nesting_has_a_ceiling),
        cmocka_unit_test(test_a_zip_file_that_swells_is_refused),
        cmocka_unit_test(test_zip_files_that_cannot_be_read_say_why),
        cmocka_unit_test(
            test_A38_an_xml_file_in_another_order_is_refused_or_read_whole),
        cmocka_unit_test(test_broken_files_neither_crash_nor_hang),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

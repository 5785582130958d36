/* Workbooks: what Excel and others write, what we write, and what is damaged. */
#include "zip_test.h"

#include "io/spool.h"
#include "io/write_xlsx.h"
#include "io/xlsx_book.h"

static const char workbook[] =
    "<workbook xmlns:r=\"x\"><workbookPr/><sheets><sheet name=\"앞\" sheetId=\"1\" "
    "r:id=\"rId1\"/><sheet name=\"Data\" sheetId=\"2\" r:id=\"rId7\"/></sheets>"
    "</workbook>";
static const char relations[] =
    "<Relationships><Relationship Id=\"rId1\" Target=\"worksheets/sheet1.xml\"/>"
    "<Relationship Id=\"rId7\" Target=\"/xl/worksheets/other.xml\"/></Relationships>";
static const char styles[] =
    "<styleSheet><numFmts><numFmt numFmtId=\"170\" "
    "formatCode=\"yyyy&quot;h&quot;-mm\"/>"
    "<numFmt numFmtId=\"171\" formatCode=\"[Red]0.00_);[Blue]\\d\"/></numFmts><cellXfs>"
    "<xf numFmtId=\"0\"/><xf numFmtId=\"14\"/><xf numFmtId=\"22\"/><xf "
    "numFmtId=\"170\"/>"
    "<xf numFmtId=\"171\"/><xf numFmtId=\"20\"/></cellXfs></styleSheet>";
static const char texts[] =
    "<sst><si><t>이름</t></si><si><r><t>두 "
    "</t></r><r><t>조각</t></r><rPh><t>x</t></rPh>"
    "</si><si><t xml:space=\"preserve\"> a_x000D_b </t></si><si><t/></si></sst>";

static void
build_book(struct zip_build *zip, const char *sheet1, const char *sheet2)
{
    zip_build_init(zip);
    zip_build_add(zip, "xl/workbook.xml", workbook, strlen(workbook), true, 0);
    zip_build_add(zip, "xl/_rels/workbook.xml.rels", relations, strlen(relations), true,
                  0);
    zip_build_add(zip, "xl/styles.xml", styles, strlen(styles), true, 0);
    zip_build_add(zip, "xl/sharedStrings.xml", texts, strlen(texts), true, 0);
    zip_build_add(zip, "xl/worksheets/sheet1.xml", sheet1, strlen(sheet1), true, 0);
    zip_build_add(zip, "xl/worksheets/other.xml", sheet2, strlen(sheet2), true, 0);
    zip_build_end(zip);
}

#define SHEET(rows) "<worksheet><sheetData>" rows "</sheetData></worksheet>"
#define HEAD                                                                           \
    "<row r=\"1\"><c r=\"A1\" t=\"s\"><v>0</v></c><c r=\"C1\" t=\"inlineStr\"><is>"    \
    "<t>v</t></is></c></row>"

static const struct xlsx_case {
    const char *sheet, *def, *want;
} cases[] = {
    {SHEET(HEAD "<row r=\"2\"><c r=\"A2\" t=\"s\"><v>1</v></c><c r=\"C2\"><v>5</v></c>"
                "</row><row r=\"4\"><c r=\"C4\"><v>1.1000000000000001</v></c></row>"),
     "{}", "|두 조각|integer:5|\n|-|real:1.1000000000000001|\n"},
    /* Dates by style, on both sides of the day that 1900 did not have. */
    {SHEET(HEAD "<row><c r=\"A2\" s=\"1\"><v>45351</v></c><c r=\"C2\" s=\"2\">"
                "<v>45351.5</v></c></row><row><c r=\"A3\" s=\"3\"><v>59</v></c>"
                "<c r=\"C3\" s=\"3\"><v>61</v></c></row><row><c r=\"A4\" s=\"4\">"
                "<v>3</v></c><c r=\"C4\" s=\"5\"><v>0.4375</v></c></row>"),
     "{}",
     "|date:19782|timestamp:1709208000000000|\n|date:-25509|date:-25508|\n"
     "|integer:3|10:30:00|\n"},
    /* Types asked for. */
    {SHEET(HEAD
           "<row><c r=\"A2\"><v>0.10000000000000001</v></c><c r=\"C2\" t=\"str\">"
           "<v>2024-02-29</v></c></row><row><c r=\"A3\" t=\"s\"><v>2</v></c></row>"),
     "{\"columns\":{\"이름\":\"text\",\"v\":\"date\"}}",
     "|0.1|date:19782|\n| a\rb |-|\n"},
    {SHEET(HEAD "<row><c r=\"A2\" t=\"b\"><v>1</v></c><c r=\"C2\" t=\"d\">"
                "<v>2024-02-29</v></c></row><row><c r=\"A3\" t=\"s\"><v>3</v></c>"
                "<c r=\"C3\" s=\"1\"/></row>"),
     "{}", "|boolean:1|date:19782|\n"},
    /* Without references, without a head, behind titles. */
    {SHEET("<row><c t=\"inlineStr\"><is><r><t>a</t></r><r><t>b</t></r></is></c><c/>"
           "<c><v>7</v></c></row>"),
     "{\"header\":false,\"columns\":[\"a\",\"b\",\"c\"]}", "|ab|-|integer:7|\n"},
    {SHEET(
         "<row r=\"1\"><c r=\"A1\" t=\"str\"><v>title</v></c></row><row r=\"3\">"
         "<c r=\"B3\" t=\"str\"><v>n</v></c></row><row r=\"4\"><c r=\"B4\"><v>1</v></c>"
         "</row>"),
     "{\"row\":3}", "|integer:1|\n"},
    {"<x:worksheet xmlns:x=\"y\"><x:sheetData><x:row><x:c t=\"str\"><x:v>h</x:v></x:c>"
     "</x:row><x:row><x:c><x:v>1</x:v></x:c></x:row></x:sheetData></x:worksheet>",
     "{}", "|integer:1|\n"},
    /* Bad rows. */
    {SHEET(HEAD
           "<row r=\"2\"><c r=\"A2\" t=\"e\"><v>#N/A</v></c></row><row r=\"3\">"
           "<c r=\"B3\"><v>1</v></c></row><row r=\"4\"><c r=\"A4\" t=\"s\"><v>99</v>"
           "</c></row><row r=\"5\"><c r=\"A5\"><v>x</v></c></row><row r=\"6\">"
           "<c r=\"A6\"><v>6</v></c></row>"),
     "{}",
     "!format in.xlsx:2\n!format in.xlsx:3\n!format in.xlsx:4\n!format in.xlsx:5\n"
     "|integer:6|-|\n"},
};

static void
test_sheets_are_read_and_every_position_goes_on_behind_its_row(void **state)
{
    static const char *const sheets[] = {"1", "\"앞\"", "2", "\"Data\""};

    for (size_t i = 0; i < array_len(cases); i++) {
        struct zip_build zip;
        struct io_test t;
        json_t *def;
        size_t sheet = i % array_len(sheets);

        io_test_init(&t, "{}");
        build_book(&zip, sheet < 2 ? cases[i].sheet : "<worksheet/>",
                   sheet < 2 ? "<worksheet/>" : cases[i].sheet);
        put_file(&t, "in.xlsx", zip.out.data, zip.out.len);
        def = file_def(&t, "xlsx", "in.xlsx", cases[i].def);
        json_object_set_new(def, "sheet", json_of(sheets[sheet]));
        assert_chunks_agree(&t, def, cases[i].want);
        json_decref(def);
        zip_build_release(&zip);
        io_test_release(&t);
    }
}

static void
test_messages_name_the_cell(void **state)
{
    static const struct {
        const char *rows, *want;
    } bad[] = {
        {"<row r=\"2\"><c r=\"C2\" t=\"e\"><v>#DIV/0!</v></c></row>",
         "in.xlsx: C2: the cell holds the error #DIV/0!"},
        {"<row r=\"7\"><c r=\"AB7\"><v>1</v></c></row>",
         "in.xlsx: AB7: it stands in a column that the head gives no name"},
        {"<row r=\"2\"><c r=\"C2\" t=\"s\"><v>77</v></c></row>",
         "in.xlsx: C2: it is the shared text 77, of which there are only 4"},
    };

    for (size_t i = 0; i < array_len(bad); i++) {
        scoped(reader_freep) struct reader *reader = NULL;
        struct zip_build zip;
        struct row_set rows;
        char sheet[512];
        struct io_test t;
        json_t *def;

        io_test_init(&t, "{}");
        row_set_init(&rows, 0);
        (void)snprintf(sheet, sizeof(sheet), SHEET(HEAD "%s"), bad[i].rows);
        build_book(&zip, sheet, "<worksheet/>");
        put_file(&t, "in.xlsx", zip.out.data, zip.out.len);
        def = file_def(&t, "xlsx", "in.xlsx", "{}");
        reader = new_reader(&t, def);
        ok(&t, reader_open(reader, NULL, &t.err));
        assert_int_equal(reader_read_chunk(reader, 9, &rows, &t.err), READER_BAD);
        if (!strstr(t.err.text, bad[i].want))
            fail_msg("%s", t.err.text);
        row_set_release(&rows);
        json_decref(def);
        zip_build_release(&zip);
        io_test_release(&t);
    }
}

static void
test_a_workbook_that_cannot_be_read_says_why(void **state)
{
    scoped(buf_release) struct buf out = {0};
    struct zip_build zip;
    struct io_test t;
    json_t *def, *third;

    io_test_init(&t, "{}");
    buf_init(&out, 0);
    def = file_def(&t, "xlsx", "in.xlsx", "{}");
    third = file_def(&t, "xlsx", "in.xlsx", "{\"sheet\":\"셋\"}");
    build_book(&zip, SHEET(""), SHEET(HEAD));
    put_file(&t, "in.xlsx", zip.out.data, zip.out.len);
    fails(&t, ERR_INVALID, "has no sheet 셋; it has: 앞, Data",
          dump_all(&t, third, 9, &out));
    fails(&t, ERR_INVALID, "the sheet is blank; it needs a head row",
          dump_all(&t, def, 9, &out));
    put_file(&t, "in.xlsx", zip.out.data, zip.out.len - 30);
    fails(&t, ERR_INVALID, "no whole ZIP file", dump_all(&t, def, 9, &out));
    put_file(&t, "in.xlsx", "\xd0\xcf\x11\xe0 old", 8);
    fails(&t, ERR_INVALID, "an old .xls must be saved as .xlsx",
          dump_all(&t, def, 9, &out));
    zip_build_release(&zip);
    zip_build_init(&zip);
    zip_build_add(&zip, "a.txt", "x", 1, false, 0);
    zip_build_end(&zip);
    put_file(&t, "in.xlsx", zip.out.data, zip.out.len);
    fails(&t, ERR_INVALID, "is no Excel workbook", dump_all(&t, def, 9, &out));
    zip_build_release(&zip);
    json_decref(def);
    json_decref(third);
    io_test_release(&t);
}

static void
test_number_formats_are_told_apart(void **state)
{
    static const struct {
        const char *format;
        enum xlsx_style want;
    } formats[] = {
        {"0.00", XLSX_NUMBER},
        {"#,##0_);[Red](#,##0)", XLSX_NUMBER},
        {"\"day\" 0", XLSX_NUMBER},
        {"0\\d", XLSX_NUMBER},
        {"[$-409]mmm d", XLSX_DATE},
        {"mmm", XLSX_DATE},
        {"yyyy/mm/dd hh:mm", XLSX_TIMESTAMP},
        {"mm:ss", XLSX_TIME},
        {"[h]:mm", XLSX_TIME},
        {"[hh]", XLSX_TIME},
        {"[Magenta]0", XLSX_NUMBER},
        {"yyyy\"년\" m\"월\" d\"일\"", XLSX_DATE},
        {"0;\"d\"", XLSX_NUMBER},
    };

    for (size_t i = 0; i < array_len(formats); i++) {
        if (xlsx_format_style(formats[i].format, strlen(formats[i].format)) !=
            formats[i].want)
            fail_msg("%s", formats[i].format);
    }
}

/* The same bytes come back, however few of them stay in memory. */
static void
test_many_shared_texts_go_to_a_file(void **state)
{
    static const size_t limits[] = {0, 10, 1000, 1 << 20};

    for (size_t i = 0; i < array_len(limits); i++) {
        struct spool spool;
        struct io_test t;
        char got[16];

        io_test_init(&t, "{}");
        spool_init(&spool, t.folder, limits[i]);
        for (int k = 0; k < 1000; k++) {
            (void)snprintf(got, sizeof(got), "%07d", k);
            ok(&t, spool_add(&spool, got, 7, &t.err));
        }
        assert_int_equal(spool_size(&spool), 7000);
        assert_int_equal(spool.fd >= 0, limits[i] < 7000);
        for (int k = 999; k >= 0; k -= 7) {
            char want[16];

            (void)snprintf(want, sizeof(want), "%07d", k);
            ok(&t, spool_read(&spool, (uint64_t)k * 7, got, 7, &t.err));
            assert_memory_equal(got, want, 7);
        }
        spool_release(&spool);
        io_test_release(&t);
    }
}

static void
test_what_xlsx_writes_xlsx_reads(void **state)
{
    scoped(writer_freep) struct writer *writer = NULL;
    const struct column columns[] = {
        {"글", CELL_TEXT}, {"n", CELL_INT}, {"d", CELL_DATE}};
    json_t *def = json_of("{\"file\":\"x.xlsx\"}"), *read;
    scoped(buf_release) struct buf want = {0};
    struct writer_summary summary;
    struct row_set rows;
    struct io_test t;

    io_test_init(&t, "{}");
    buf_init(&want, 0);
    row_set_init(&rows, 0);
    ok(&t, write_xlsx_new(&t.io, def, &writer, &t.err));
    ok(&t, writer_open(writer, NULL, &t.err));
    ok(&t, writer_begin(writer, columns, 3, &t.err));
    row_set_clear(&rows, 3);
    for (int i = 0; i < 300; i++) {
        struct cell *cells = row_set_add(&rows);
        char text[64];

        (void)snprintf(text, sizeof(text), " 한글 😀 <%d>\r\n_x0041_", i);
        ok(&t,
           cell_set_text(&rows, &cells[0], CELL_TEXT, text, strlen(text), "x", &t.err));
        cell_set_i64(&cells[1], CELL_INT, i);
        cell_set_i64(&cells[2], CELL_DATE, 19782 + i);
        buf_addf(&want, "|%s|integer:%d|date:%d|\n", text, i, 19782 + i);
    }
    ok(&t, writer_write(writer, &rows, &t.err));
    ok(&t, writer_finish(writer, &summary, &t.err));
    read = file_def(&t, "xlsx", "part", "{}");
    assert_chunks_agree(&t, read, buf_str(&want));
    row_set_release(&rows);
    json_decref(def);
    json_decref(read);
    io_test_release(&t);
}

static void
test_broken_files_neither_crash_nor_hang(void **state)
{
    struct zip_build zip;
    struct io_test t;
    json_t *def;

    io_test_init(&t, "{}");
    build_book(&zip, cases[1].sheet, cases[2].sheet);
    def = file_def(&t, "xlsx", "in.xlsx", "{\"sheet\":2}");
    read_broken_files(&t, def, "in.xlsx", zip.out.data, zip.out.len, 400);
    json_decref(def);
    zip_build_release(&zip);
    io_test_release(&t);
}

/* The parts themselves changed, not their packing, which a checksum guards. */
static void
test_broken_parts_neither_crash_nor_hang(void **state)
{
    uint32_t seed = 7;
    struct io_test t;
    json_t *def;

    io_test_init(&t, "{}");
    def = file_def(&t, "xlsx", "in.xlsx", "{}");
    for (int i = 0; i < (getenv("PAWL_FULL") ? 20000 : 300); i++) {
        const char *parts[] = {workbook, relations, styles, texts, cases[i % 4].sheet};
        static const char *const names[] = {
            "xl/workbook.xml", "xl/_rels/workbook.xml.rels", "xl/styles.xml",
            "xl/sharedStrings.xml", "xl/worksheets/sheet1.xml"};
        struct zip_build zip;

        zip_build_init(&zip);
        for (size_t k = 0; k < array_len(parts); k++) {
            size_t len = strlen(parts[k]);
            char *copy = strdup(parts[k]);

            assert_non_null(copy);
            if (next_random(&seed) % 3 == 0)
                copy[next_random(&seed) % len] = (char)next_random(&seed);
            else if (k == 4) /* numbers, types and references stay XML */
                for (int n = 0; n < 3; n++) {
                    char *at = copy + next_random(&seed) % len;

                    if (*at >= '0' && *at <= '9')
                        *at = (char)('0' + next_random(&seed) % 10);
                }
            zip_build_add(&zip, names[k], copy, len, k % 2, 0);
            free(copy);
        }
        zip_build_end(&zip);
        put_file(&t, "in.xlsx", zip.out.data, zip.out.len);
        read_broken(&t, def);
        zip_build_release(&zip);
    }
    json_decref(def);
    io_test_release(&t);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            test_sheets_are_read_and_every_position_goes_on_behind_its_row),
        cmocka_unit_test(test_messages_name_the_cell),
        cmocka_unit_test(test_a_workbook_that_cannot_be_read_says_why),
        cmocka_unit_test(test_number_formats_are_told_apart),
        cmocka_unit_test(test_many_shared_texts_go_to_a_file),
        cmocka_unit_test(test_what_xlsx_writes_xlsx_reads),
        cmocka_unit_test(test_broken_files_neither_crash_nor_hang),
        cmocka_unit_test(test_broken_parts_neither_crash_nor_hang),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * The small parts of a workbook. What is the same in each stands first in the
 * file; what depends on the number of sheets can only stand behind them.
 */
#include "io/xlsx_parts.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/utf8.h"
#include "io/xlsx_sheet.h"
#include "io/xlsx_zip.h"

#include <string.h>

#define TITLE_CHARS 25 /* Excel's 31 less room for a number */

#define XML_HEAD "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n"
#define OOXML    "http://schemas.openxmlformats.org/"

static const char rels_xml[] = XML_HEAD
    "<Relationships xmlns=\"" OOXML "package/2006/relationships\">"
    "<Relationship Id=\"rId1\" Type=\"" OOXML
    "officeDocument/2006/relationships/officeDocument\" Target=\"xl/workbook.xml\"/>"
    "<Relationship Id=\"rId2\" Type=\"" OOXML
    "package/2006/relationships/metadata/core-properties\" "
    "Target=\"docProps/core.xml\"/>"
    "<Relationship Id=\"rId3\" Type=\"" OOXML
    "officeDocument/2006/relationships/extended-properties\" "
    "Target=\"docProps/app.xml\"/></Relationships>";

static const char app_xml[] =
    XML_HEAD "<Properties xmlns=\"" OOXML "officeDocument/2006/extended-properties\">"
             "<Application>pawl</Application></Properties>";

/* No dates in it: the same rows give the same bytes. */
static const char core_xml[] = XML_HEAD
    "<cp:coreProperties xmlns:cp=\"" OOXML "package/2006/metadata/core-properties\" "
    "xmlns:dc=\"http://purl.org/dc/elements/1.1/\"><dc:creator>pawl</dc:creator>"
    "</cp:coreProperties>";

/* In this order `file` and web servers recognise the type by the first bytes. */
int
xlsx_parts_head(struct xlsx_zip *zip, struct err *err)
{
    const struct {
        const char *name;
        const char *text;
    } parts[XLSX_HEAD_PARTS] = {
        {"_rels/.rels", rels_xml},
        {"docProps/app.xml", app_xml},
        {"docProps/core.xml", core_xml},
        {"xl/styles.xml", xlsx_styles_xml},
    };

    for (size_t i = 0; i < array_len(parts); i++) {
        int r = xlsx_zip_store(zip, parts[i].name, parts[i].text, strlen(parts[i].text),
                               err);

        if (r < 0)
            return r;
    }
    return 0;
}

/* Excel refuses some characters in the name of a sheet, and names over 31. */
static void
add_sheet_name(const char *title, struct buf *xml, size_t number)
{
    size_t len;

    if (!title) {
        buf_addf(xml, "Sheet%zu", number);
        return;
    }
    len = utf8_prefix(title, strlen(title), TITLE_CHARS);
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)title[i];

        if (c < 0x20 || strchr("\\/?*[]:<>&\"'", c))
            buf_add_char(xml, '_');
        else
            buf_add_char(xml, (char)c);
    }
    if (number > 1)
        buf_addf(xml, " %zu", number);
}

static void
workbook_xml(const char *title, size_t sheets, struct buf *xml)
{
    buf_add_str(xml, XML_HEAD
                "<workbook xmlns=\"" OOXML "spreadsheetml/2006/main\" xmlns:r=\"" OOXML
                "officeDocument/2006/relationships\"><bookViews><workbookView/>"
                "</bookViews><sheets>");
    for (size_t i = 1; i <= sheets; i++) {
        buf_add_str(xml, "<sheet name=\"");
        add_sheet_name(title, xml, i);
        buf_addf(xml, "\" sheetId=\"%zu\" r:id=\"rId%zu\"/>", i, i);
    }
    buf_add_str(xml, "</sheets></workbook>");
}

static void
workbook_rels_xml(const char *title, size_t sheets, struct buf *xml)
{
    buf_add_str(xml, XML_HEAD "<Relationships xmlns=\"" OOXML
                              "package/2006/relationships\">");
    for (size_t i = 1; i <= sheets; i++)
        buf_addf(xml,
                 "<Relationship Id=\"rId%zu\" Type=\"" OOXML
                 "officeDocument/2006/relationships/worksheet\" "
                 "Target=\"worksheets/sheet%zu.xml\"/>",
                 i, i);
    buf_addf(xml,
             "<Relationship Id=\"rId%zu\" Type=\"" OOXML
             "officeDocument/2006/relationships/styles\" Target=\"styles.xml\"/>"
             "</Relationships>",
             sheets + 1);
}

static void
content_types_xml(const char *title, size_t sheets, struct buf *xml)
{
#define SPREADSHEET_TYPE "application/vnd.openxmlformats-officedocument.spreadsheetml."
    buf_add_str(
        xml, XML_HEAD
        "<Types xmlns=\"" OOXML "package/2006/content-types\">"
        "<Default Extension=\"rels\" ContentType=\"application/"
        "vnd.openxmlformats-package.relationships+xml\"/>"
        "<Default Extension=\"xml\" ContentType=\"application/xml\"/>"
        "<Override PartName=\"/xl/workbook.xml\" ContentType=\"" SPREADSHEET_TYPE
        "sheet.main+xml\"/><Override PartName=\"/xl/styles.xml\" "
        "ContentType=\"" SPREADSHEET_TYPE "styles+xml\"/>"
        "<Override PartName=\"/docProps/core.xml\" ContentType=\"application/"
        "vnd.openxmlformats-package.core-properties+xml\"/>"
        "<Override PartName=\"/docProps/app.xml\" ContentType=\"application/"
        "vnd.openxmlformats-officedocument.extended-properties+xml\"/>");
    for (size_t i = 1; i <= sheets; i++)
        buf_addf(xml,
                 "<Override PartName=\"/xl/worksheets/sheet%zu.xml\" "
                 "ContentType=\"" SPREADSHEET_TYPE "worksheet+xml\"/>",
                 i);
    buf_add_str(xml, "</Types>");
}

int
xlsx_parts_tail(struct xlsx_zip *zip, const char *title, size_t sheets, struct err *err)
{
    const struct {
        const char *name;
        void (*make)(const char *title, size_t sheets, struct buf *xml);
    } parts[] = {
        {"xl/workbook.xml", workbook_xml},
        {"xl/_rels/workbook.xml.rels", workbook_rels_xml},
        {"[Content_Types].xml", content_types_xml},
    };

    for (size_t i = 0; i < array_len(parts); i++) {
        scoped(buf_release) struct buf xml = {0};
        int r;

        parts[i].make(title, sheets, &xml);
        r = buf_check(&xml, parts[i].name, err);
        if (r == 0)
            r = xlsx_zip_store(zip, parts[i].name, xml.data, xml.len, err);
        if (r < 0)
            return r;
    }
    return 0;
}

#!/usr/bin/python3
"""Workbooks read by another program: Python's zipfile and XML, as openpyxl would.

    check_xlsx.py SAMPLE      runs the sample writer and looks at what it made
"""

import datetime
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml
import zipfile

SAMPLE = sys.argv.pop(1)
MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
REL = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
TYPES = "{http://schemas.openxmlformats.org/package/2006/content-types}"


def unescape(text):
    return re.sub(r"_x([0-9A-Fa-f]{4})_", lambda m: chr(int(m.group(1), 16)), text)


def cell_value(cell):
    """(type, style, text) of a <c>: type n, b or s."""
    kind = cell.get("t", "n")
    style = cell.get("s", "0")
    if kind == "inlineStr":
        return "s", style, unescape(cell.find(MAIN + "is").find(MAIN + "t").text or "")
    return kind, style, cell.find(MAIN + "v").text


def sheet_rows(book, name):
    """Each row of a sheet as {reference: cell}, without holding the sheet."""
    with book.open(name) as stream:
        for _, element in xml.iterparse(stream):
            if element.tag == MAIN + "row":
                cells = {c.get("r"): cell_value(c) for c in element}
                yield int(element.get("r")), cells
                element.clear()


def sheets(book):
    """[(title, path)] by workbook.xml and its relationships."""
    rels = xml.fromstring(book.read("xl/_rels/workbook.xml.rels"))
    targets = {r.get("Id"): r.get("Target") for r in rels}
    workbook = xml.fromstring(book.read("xl/workbook.xml"))
    return [
        (s.get("name"), "xl/" + targets[s.get(REL + "id")])
        for s in workbook.find(MAIN + "sheets")
    ]


# What each sample of xlsx_sample.c must be: type, style, text.
EXPECTED = [
    ("n", "0", "9007199254740992"),
    ("s", "0", "9007199254740993"),
    ("s", "0", "-9007199254740993"),
    ("n", "0", "-42"),
    ("n", "0", "123456789012.345"),
    ("s", "0", "1234567890123.456"),
    ("n", "0", "0.000000000000000000012345"),
    ("n", "0", "-1.50"),
    ("n", "0", "0.1"),
    ("s", "0", "NaN"),
    ("s", "0", "-Infinity"),
    ("n", "2", "25569"),
    ("n", "2", "61"),
    ("s", "0", "1900-02-28"),
    ("n", "2", "2958465"),
    ("s", "0", "10000-01-01"),
    ("n", "3", "25569.5"),
    ("n", "3", "25569.000000000012"),
    ("n", "3", "25569.999999999988"),
    ("s", "0", "1874-12-07T18:40:00Z"),
    ("n", "3", "25569"),
    ("b", "0", "1"),
    ("b", "0", "0"),
    ("s", "0", "=1+1"),
    ("s", "0", '<a href="x">&amp;</a>'),
    ("s", "0", " 앞뒤 공백 "),
    ("s", "0", "줄\n바꿈\tTab"),
    ("s", "0", "cr\rbell\x07_x000D_ _x00_ _xZZZZ_"),
    ("s", "0", "\U0001F600 한글 \uFFFE."),
    ("s", "0", "bad\uFFFD\uFFFD\uFFFD\uFFFDend"),
    ("s", "0", ""),
    ("s", "0", "Ynl0ZXM="),
    None,
]


class Workbooks(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="pawl-xlsx-")
        self.addCleanup(self.folder.cleanup)

    def make(self, kind):
        path = pathlib.Path(self.folder.name) / f"{kind}.xlsx"
        path.unlink(missing_ok=True)
        subprocess.run([SAMPLE, kind, path], check=True, stdout=subprocess.DEVNULL)
        return path

    def test_every_rule_of_a_cell(self):
        with zipfile.ZipFile(self.make("cells")) as book:
            self.assertIsNone(book.testzip())
            ((title, path),) = sheets(book)
            self.assertEqual(title, "도시__1_")
            rows = dict(sheet_rows(book, path))
            raw = book.read(path).decode()
        self.assertEqual(rows[1], {"A1": ("s", "1", "n"), "B1": ("s", "1", "값 & <v>")})
        self.assertEqual(len(rows), 1 + len(EXPECTED))
        for n, want in enumerate(EXPECTED):
            self.assertEqual(rows[n + 2].get(f"B{n + 2}"), want, f"sample {n}")
        self.assertIn('<t xml:space="preserve"> 앞뒤 공백 </t>', raw)
        self.assertIn('state="frozen"', raw)
        self.assertIn(f'<autoFilter ref="A1:B{len(EXPECTED) + 1}"/>', raw)
        self.assertNotIn("<f", raw)

    def test_serials_are_the_days_and_times_they_stand_for(self):
        epoch = datetime.datetime(1899, 12, 30)
        self.assertEqual(
            epoch + datetime.timedelta(days=25569), datetime.datetime(1970, 1, 1)
        )
        for us, (_, _, text) in ((1, EXPECTED[17]), (86400000000 - 1, EXPECTED[18])):
            self.assertEqual(round((float(text) - 25569) * 86400e6), us)

    def test_all_parts_are_declared_and_every_xml_is_well_formed(self):
        with zipfile.ZipFile(self.make("cells")) as book:
            names = set(book.namelist())
            for name in names:
                xml.fromstring(book.read(name))
            types = xml.fromstring(book.read("[Content_Types].xml"))
        declared = {o.get("PartName")[1:] for o in types.iter(TYPES + "Override")}
        parts = {n for n in names if not n.endswith(".rels") and not n.startswith("[")}
        self.assertEqual(declared, parts)

    def test_the_same_rows_give_the_same_bytes(self):
        first = self.make("cells").read_bytes()
        self.assertEqual(first, self.make("cells").read_bytes())

    def test_no_rows_are_a_workbook_with_a_header(self):
        with zipfile.ZipFile(self.make("0")) as book:
            self.assertIsNone(book.testzip())
            ((title, path),) = sheets(book)
            self.assertEqual(title, "Sheet1")
            self.assertEqual(len(list(sheet_rows(book, path))), 1)

    def test_more_than_1048576_rows_go_on_in_a_further_sheet(self):
        total = 1048575 + 1000
        with zipfile.ZipFile(self.make(str(total))) as book:
            (first, one), (second, two) = sheets(book)
            self.assertEqual((first, second), ("Sheet1", "Sheet2"))
            raw = book.read(one)  # by pattern: parsing a million rows takes long
            numbers = re.findall(rb'<row r="(\d+)"><c r="A', raw)
            self.assertEqual(numbers, [b"%d" % n for n in range(1, 1048577)])
            self.assertIn(b'<c r="A1048576"><v>1048574</v></c>', raw[-200:])
            rows = list(sheet_rows(book, two))
            self.assertEqual(len(rows), 1001)
            self.assertEqual(rows[0][1]["A1"], ("s", "1", "n"))
            self.assertEqual(rows[1][1]["A2"], ("n", "0", "1048575"))
            self.assertEqual(rows[-1][1]["A1001"], ("n", "0", str(total - 1)))

    def test_entries_behind_4_gib_are_found_by_zip64(self):
        with zipfile.ZipFile(self.make("far")) as book:
            self.assertEqual(book.read("near"), b"near")
            self.assertEqual(book.read("far"), b"far away")
            self.assertGreater(book.getinfo("far").header_offset, 1 << 32)


if __name__ == "__main__":
    unittest.main(verbosity=2)

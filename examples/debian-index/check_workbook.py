#!/usr/bin/python3
"""Compare a workbook with the rows it was made from.

    check_workbook.py FILE.xlsx PACKAGES.db

Reads the workbook as any program would (zip, XML; the standard library only, in
constant memory): headers, number of rows and every cell must be those of the
database. Prints the count; exits 1 with the first difference.
"""
import itertools
import sqlite3
import sys
import zipfile
from xml.etree import ElementTree

COLUMNS = ["name", "version", "section", "priority", "architecture", "installed_kib",
           "download_bytes", "maintainer", "homepage", "description"]
MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"


def column_of(reference):
    """0 for "A7", 26 for "AA7"."""
    n = 0
    for c in reference:
        if c.isdigit():
            break
        n = n * 26 + ord(c) - ord("A") + 1
    return n - 1


def cell_of(element):
    if element.get("t") == "inlineStr":
        return "".join(t.text or "" for t in element.iter(MAIN + "t"))
    value = element.findtext(MAIN + "v")
    return None if value is None else int(value)


def rows_of(path):
    """The rows of all sheets, in order; of later sheets without their header."""
    with zipfile.ZipFile(path) as book:
        bad = book.testzip()
        if bad:
            sys.exit("%s: %s in it is damaged" % (path, bad))
        sheets = sorted((n for n in book.namelist() if "/worksheets/sheet" in n),
                        key=lambda n: (len(n), n))
        for i, sheet in enumerate(sheets):
            with book.open(sheet) as stream:
                first = i > 0
                for _, element in ElementTree.iterparse(stream):
                    if element.tag != MAIN + "row":
                        continue
                    row = [None] * len(COLUMNS)
                    for cell in element.iter(MAIN + "c"):
                        row[column_of(cell.get("r"))] = cell_of(cell)
                    element.clear()
                    if not first:
                        yield row
                    first = False


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: check_workbook.py FILE.xlsx PACKAGES.db")
    rows = rows_of(sys.argv[1])
    if next(rows, None) != COLUMNS:
        sys.exit("the first row is not the names of the columns")
    db = sqlite3.connect("file:%s?mode=ro" % sys.argv[2], uri=True)
    wanted = db.execute("SELECT %s FROM package ORDER BY id" % ", ".join(COLUMNS))
    count = 0
    for got, want in itertools.zip_longest(rows, wanted):
        if got is None or want is None:
            sys.exit("%s rows than the database has: it ends at row %d"
                     % ("fewer" if got is None else "more", count))
        want = [None if v == "" else v for v in want]
        got = [None if v == "" else v for v in got]
        if got != want:
            sys.exit("row %d differs:\n  workbook %r\n  database %r"
                     % (count + 1, got, want))
        count += 1
    print(count)


if __name__ == "__main__":
    main()

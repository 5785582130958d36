#!/usr/bin/python3
"""Make an SQLite file of all packages that this machine's Debian offers.

    make_db.py FILE     reads `apt-cache dumpavail`, writes FILE, prints the count

Standard library only. The file appears whole or not at all.
"""
import os
import sqlite3
import subprocess
import sys

FIELDS = {
    "Package": "name",
    "Version": "version",
    "Section": "section",
    "Priority": "priority",
    "Architecture": "architecture",
    "Installed-Size": "installed_kib",
    "Size": "download_bytes",
    "Maintainer": "maintainer",
    "Homepage": "homepage",
    "Description": "description",
}
NUMBERS = {"installed_kib", "download_bytes"}

SCHEMA = """
CREATE TABLE package (
    id             INTEGER PRIMARY KEY,
    name           TEXT NOT NULL,
    version        TEXT NOT NULL,
    section        TEXT,
    priority       TEXT,
    architecture   TEXT,
    installed_kib  INTEGER,
    download_bytes INTEGER,
    maintainer     TEXT,
    homepage       TEXT,
    description    TEXT
);
CREATE INDEX package_section ON package (section);
"""


def packages(lines):
    """One dict for each paragraph; of a folded field only the first line counts."""
    package = {}
    for line in lines:
        line = line.rstrip("\n")
        if not line:
            if "name" in package:
                yield package
            package = {}
        elif not line[0].isspace():
            key, _, value = line.partition(":")
            column = FIELDS.get(key)
            if column:
                value = value.strip()
                package[column] = int(value) if column in NUMBERS else value
    if "name" in package:
        yield package


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: make_db.py FILE")
    target = sys.argv[1]
    part = target + ".part"
    if os.path.exists(part):
        os.remove(part)
    columns = list(FIELDS.values())
    insert = "INSERT INTO package (%s) VALUES (%s)" % (
        ", ".join(columns), ", ".join("?" * len(columns)))
    apt = subprocess.Popen(["apt-cache", "dumpavail"], stdout=subprocess.PIPE,
                           encoding="utf-8", errors="replace")
    with sqlite3.connect(part) as db:
        db.executescript(SCHEMA)
        db.executemany(insert, ([package.get(c) for c in columns]
                                for package in packages(apt.stdout)))
        count = db.execute("SELECT count(*) FROM package").fetchone()[0]
    db.close()
    if apt.wait() != 0 or count == 0:
        os.remove(part)
        sys.exit("apt-cache dumpavail gave no packages: run `apt-get update` first")
    os.replace(part, target)
    print(count)


if __name__ == "__main__":
    main()

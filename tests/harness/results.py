#!/usr/bin/python3
"""What script/test asks about tests: which there are, and how they went.

    results.py select BUILD WORD...   the tests of a build folder whose path or name
                                      has one of the words, but none that is given
                                      as -WORD: `name TAB target` lines
    results.py meson LOG              counts of a meson-logs/testlog.json
    results.py junit FILE             counts of pytest's junit file

Counts are printed as `passed failed skipped`; what failed goes to stderr, a line each.
A cmocka program counts by its functions, any other program as one test.
"""

import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

RAN = re.compile(r"\[=+\].* (\d+) test\(s\) run\.")
PASSED = re.compile(r"\[  PASSED  \] (\d+) test\(s\)\.")
FAILED = re.compile(r"^ *(\d+) FAILED TEST\(S\)", re.M)
SKIPPED = re.compile(r"\[  SKIPPED \] (?:.*: )?(\d+) test\(s\), listed below")
NAMED = re.compile(r"\[  (?:FAILED|ERROR ) +\] (\w+)$", re.M)


def total(pattern, text):
    return sum(int(number) for number in pattern.findall(text))


def count_program(test):
    """(passed, failed, skipped, names of what failed) of one program."""
    text = (test.get("stdout") or "") + "\n" + (test.get("stderr") or "")
    good = test["result"] in ("OK", "EXPECTEDFAIL")
    if test["result"] == "SKIP":
        return 0, 0, 1, []
    if not RAN.search(text) or not PASSED.search(text):
        return (1, 0, 0, []) if good else (0, 1, 0, [test["result"]])
    passed, failed = total(PASSED, text), total(FAILED, text)
    names = sorted(set(NAMED.findall(text)))
    if not good and failed == 0:
        # Its functions passed, but it died or a sanitizer spoke at the end.
        failed, names = 1, [test["result"]]
    return passed, failed, total(SKIPPED, text), names


def count_meson(path):
    passed = failed = skipped = 0
    with open(path, encoding="utf-8") as log:
        for line in log:
            test = json.loads(line)
            one = count_program(test)
            passed, failed, skipped = passed + one[0], failed + one[1], skipped + one[2]
            for name in one[3]:
                print(f"{test['name']}: {name}", file=sys.stderr)
    print(passed, failed, skipped)


def count_junit(path):
    passed = failed = skipped = 0
    for case in ElementTree.parse(path).iter("testcase"):
        kinds = {child.tag for child in case}
        if kinds & {"failure", "error"}:
            failed += 1
            print(f"{case.get('classname')}.{case.get('name')}", file=sys.stderr)
        elif "skipped" in kinds:
            skipped += 1
        else:
            passed += 1
    print(passed, failed, skipped)


def select(build, words):
    build = os.path.realpath(build)
    text = subprocess.run(
        ["meson", "introspect", build, "--tests"],
        check=True, capture_output=True, text=True,
    ).stdout
    for test in json.loads(text):
        paths = [
            os.path.relpath(word, build)
            for word in test["cmd"]
            if word.startswith(build + os.sep)
        ]
        # A script of the source, named by way of the build folder, is no target.
        paths = [path for path in paths if not path.startswith(os.pardir)]
        where = " ".join([test["name"], *test["suite"], *paths])
        wanted = [word for word in words if not word.startswith("-")]
        left_out = [word[1:] for word in words if word.startswith("-")]
        if any(word in where for word in left_out):
            continue
        if not wanted or any(word in where for word in wanted):
            # Everything it needs is a target: a library of the folder, or itself.
            needs = [path for path in paths if os.path.splitext(path)[1] != ".json"]
            print(test["name"], " ".join(needs), sep="\t")


def main(arguments):
    if len(arguments) >= 3 and arguments[0] == "select":
        select(arguments[1], arguments[2:])
    elif len(arguments) == 2 and arguments[0] == "meson":
        count_meson(arguments[1])
    elif len(arguments) == 2 and arguments[0] == "junit":
        count_junit(arguments[1])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])

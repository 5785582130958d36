"""How script/test counts: nothing that fails may be lost between two formats."""

import json
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS = ROOT / "tests/harness/results.py"

GOOD = "[==========] Running 4 test(s).\n[==========] 4 test(s) run.\n"
ALL_PASS = "[  PASSED  ] 4 test(s).\n"
ONE_FAILS = """[  ERROR   ] --- 0x1 != 0x2
[  PASSED  ] 2 test(s).
[  SKIPPED ] 1 test(s), listed below:
[  SKIPPED ] test_c

 1 SKIPPED TEST(S)
[  FAILED  ] 1 test(s), listed below:
[  FAILED  ] test_b

 1 FAILED TEST(S)
"""
SETUP_FAILS = """Could not run test: Test setup failed
[  ERROR   ] test_d
[  PASSED  ] 3 test(s).
[  FAILED  ] 0 test(s), listed below:

 1 FAILED TEST(S)
"""

PROGRAMS = [
    ("OK", GOOD, ALL_PASS, "4 0 0", []),
    ("FAIL", GOOD, ONE_FAILS, "2 1 1", ["x: test_b"]),
    ("FAIL", GOOD, SETUP_FAILS, "3 1 0", ["x: test_d"]),
    ("FAIL", GOOD, ALL_PASS, "4 1 0", ["x: FAIL"]),  # a leak found at exit
    ("FAIL", "[==========] Running 4 test(s).\n", "", "0 1 0", ["x: FAIL"]),  # crashed
    ("TIMEOUT", "", "", "0 1 0", ["x: TIMEOUT"]),
    ("OK", "", "", "1 0 0", []),  # a plain program
    ("SKIP", "", "", "0 0 1", []),
    ("OK", GOOD + GOOD, ALL_PASS + ALL_PASS, "8 0 0", []),  # two groups
]


@pytest.mark.parametrize("result, out, err, numbers, names", PROGRAMS)
def test_a_program_counts_by_its_functions(tmp_path, result, out, err, numbers, names):
    log = tmp_path / "testlog.json"
    log.write_text(
        json.dumps({"name": "x", "result": result, "stdout": out, "stderr": err}) + "\n"
    )
    done = subprocess.run([RESULTS, "meson", log], capture_output=True, text=True)
    assert done.stdout.split() == numbers.split()
    assert done.stderr.splitlines() == names


def test_pytest_counts_errors_as_failed(tmp_path):
    log = tmp_path / "junit.xml"
    log.write_text(
        "<testsuites><testsuite>"
        '<testcase classname="f" name="a"/>'
        '<testcase classname="f" name="b"><failure message="no"/></testcase>'
        '<testcase classname="f" name="c"><error message="no"/></testcase>'
        '<testcase classname="f" name="d"><skipped/></testcase>'
        "</testsuite></testsuites>"
    )
    done = subprocess.run([RESULTS, "junit", log], capture_output=True, text=True)
    assert done.stdout.split() == ["1", "2", "1"]
    assert done.stderr.splitlines() == ["f.b", "f.c"]


def test_a_log_that_is_not_there_is_no_success(tmp_path):
    done = subprocess.run([RESULTS, "meson", tmp_path / "none"], capture_output=True)
    assert done.returncode != 0

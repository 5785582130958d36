"""tools/clauses keeps the page of clauses to the tests that exist."""

import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

PAGE = """\
# Clauses

- a list that is no list of tests

### A1 First

### B12 Second

- *no test yet*
"""


@pytest.fixture
def tree(tmp_path):
    for folder in ("tools", "docs", "tests/unit"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(ROOT / "tools/clauses", tmp_path / "tools")
    (tmp_path / "docs/clauses.md").write_text(PAGE)
    (tmp_path / "tests/test_it.py").write_text(
        "def test_A1_B12_both(site):\n    pass\n\n\ndef test_other():\n    pass\n")
    (tmp_path / "tests/unit/test_it.c").write_text(
        "static void\ntest_B12_in_c(void **state)\n{\n}\n"
        "    cmocka_unit_test(test_B12_in_c),\n")
    return tmp_path


def call(tree, *words):
    return subprocess.run([tree / "tools/clauses", *words], capture_output=True, text=True)


def test_the_page_is_refused_until_it_is_written_anew(tree):
    done = call(tree)
    assert done.returncode == 1 and "+  - test_A1_B12_both" in done.stdout
    assert call(tree, "--write").returncode == 0
    assert call(tree).returncode == 0
    text = (tree / "docs/clauses.md").read_text()
    assert "- a list that is no list of tests" in text
    first, second = text.split("### B12")
    assert "- `tests/test_it.py`\n  - test_A1_B12_both\n" in first
    assert "test_A1_B12_both" in second and second.count("test_B12_in_c") == 1
    assert "no test yet" not in text


def test_a_test_that_goes_is_missed(tree):
    call(tree, "--write")
    (tree / "tests/test_it.py").unlink()
    done = call(tree)
    assert done.returncode == 1 and "-  - test_A1_B12_both" in done.stdout
    call(tree, "--write")
    assert "### A1 First\n\n- *no test yet*\n" in (tree / "docs/clauses.md").read_text()


def test_a_clause_that_is_not_there_is_named(tree):
    (tree / "tests/test_new.py").write_text("def test_A99_nothing():\n    pass\n")
    done = call(tree)
    assert done.returncode == 1 and "A99 (tests/test_new.py)" in done.stderr

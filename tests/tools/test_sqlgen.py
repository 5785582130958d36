"""sqlgen: what is not said right in src/sql/ must end the build, with file and line."""

import pathlib
import subprocess

import pytest

AWK = pathlib.Path(__file__).resolve().parents[2] / "tools/sqlgen.awk"


def sqlgen(folder, part, **files):
    paths = []
    for name, text in files.items():
        path = folder / (name.replace("_", ".") + ".sql")
        path.write_text(text)
        paths.append(str(path))
    return subprocess.run(["awk", "-v", "part=" + part, "-f", AWK, *paths],
                          capture_output=True, text=True)


def test_names_become_constants_and_texts_stay_as_they_are(tmp_path):
    text = ("-- A comment.\n\n-- name: q_one (a text, b bigint) -> (c bigint)\n"
            "-- Why.\nSELECT \"c\" FROM t\nWHERE a = $1 AND b = $2;\n\n"
            "-- name: q_two ()\nSELECT 'back\\slash';\n")
    assert "STMT_Q_ONE,\n    STMT_Q_TWO," in sqlgen(tmp_path, "h", q=text).stdout
    made = sqlgen(tmp_path, "c", q=text).stdout
    assert r'"SELECT \"c\" FROM t\n"' in made and '"WHERE a = $1 AND b = $2"' in made
    assert r"back\\slash" in made and "Why" not in made
    assert "{DB_TEXT, DB_INT, DB_NULL}" in made and '"c bigint"' in made


def test_an_override_is_for_its_database_only(tmp_path):
    header = "-- name: q_one (a bigint)\n"
    made = sqlgen(tmp_path, "c", q=header + "SELECT $1 AS shared;",
                  q_pg=header + "SELECT $1 AS mine;\n-- name: q_pg ()\nSELECT 1;").stdout
    sqlite, pg = made.split("db_sql pg[STMT_COUNT]")
    assert "shared" in sqlite and "mine" not in sqlite and "NULL" in sqlite
    assert "mine" in pg and "shared" not in pg


def test_a_long_header_goes_on_in_the_next_lines(tmp_path):
    made = sqlgen(tmp_path, "c", q="-- name: q_one (a bigint,\n-- b text)\n"
                  "-- -> (c bigint,\n-- d text)\n-- Why (not).\nSELECT $1, $2;").stdout
    assert "{DB_INT, DB_TEXT, DB_NULL}" in made and '"c bigint, d text"' in made


@pytest.mark.parametrize("text, words", [
    ("-- name: q (a text, b text)\nSELECT $2, $1;", "$2 appears before $1"),
    ("-- name: q (a text)\nSELECT $1::text;", "CAST($1 AS type)"),
    ("-- name: q (a text, b text)\nSELECT $1;", "2 parameters, the text 1"),
    ("-- name: q (a varchar)\nSELECT $1;", "varchar"),
    ("-- name: q\nSELECT 1;", "a header reads"),
    ("-- name: Q ()\nSELECT 1;", "a header reads"),
    ("-- name: q ()\nSELECT 1;\n-- name: q ()\nSELECT 2;", "twice"),
])
def test_what_is_not_right_is_refused_with_its_place(tmp_path, text, words):
    done = sqlgen(tmp_path, "c", q=text)
    assert done.returncode == 1
    assert words in done.stderr and "q.sql:" in done.stderr


def test_an_override_must_have_the_same_header(tmp_path):
    done = sqlgen(tmp_path, "c", q="-- name: q (a text)\nSELECT $1;",
                  q_pg="-- name: q (a bigint)\nSELECT $1;")
    assert done.returncode == 1 and "header differs" in done.stderr

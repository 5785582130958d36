"""tests/model: each step of the model names its statement, and each of them exists."""

import importlib.util
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = ROOT / "tests/model"
TEXT = (MODEL / "pawl.pml").read_text(encoding="utf-8")


def statements():
    found = set()
    for path in (ROOT / "src/sql").glob("*.sql"):
        found |= set(re.findall(r"^-- name: (\w+)", path.read_text(encoding="utf-8"),
                                re.M))
    return found


def in_model():
    return set(re.findall(r"@sql (\w+)", TEXT))


def in_table():
    page = (MODEL / "README.md").read_text(encoding="utf-8")
    return set(re.findall(r"^\| `(\w+)` \|", page, re.M))


def code_named_in_table():
    page = (MODEL / "README.md").read_text(encoding="utf-8")
    return set(re.findall(r"`(\w+/\w+\.c)`", page))


def test_the_table_lists_the_statements_of_the_model():
    assert in_model() == in_table()


def test_every_statement_of_the_model_exists():
    assert in_model() and not in_model() - statements()


def test_every_file_in_the_table_exists():
    assert not [name for name in code_named_in_table()
                if not (ROOT / "src" / name).exists()]


def test_every_guard_of_the_model_has_a_variant_without_it():
    spec = importlib.util.spec_from_file_location("model_run", MODEL / "run.py")
    run = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(run)
    sizes = set(re.findall(r"^#ifndef (\w+)\n#define \1\b", TEXT, re.M))
    guards = set(re.findall(r"(?:ifn?def |defined\()(\w+)", TEXT)) - sizes
    assert guards == set(run.VARIANTS)
    assert {world for world, _ in run.VARIANTS.values()} <= set(run.WORLDS)
    assert all(set(defines) <= sizes for _, defines in run.WORLDS.values())

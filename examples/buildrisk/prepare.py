"""What has to be there before the thirteen jobs run: a configuration that calls the
stand-in in place of the real services, and the tables."""

import contextlib
import pathlib
import re
import sqlite3
import subprocess

HERE = pathlib.Path(__file__).resolve().parent

# The stand-in takes any key that does not begin with `bad`.
KEYS = {name: f"standin-{name.lower()}" for name in (
    "DART_API_KEY", "DATA_GO_KR_KEY", "KOSIS_API_KEY", "REB_API_KEY", "SGIS_CONSUMER_KEY",
    "SGIS_CONSUMER_SECRET", "VWORLD_KEY", "VWORLD_DOMAIN")}

# In the order of the catalogue; the last one is asked for by the one before it.
JOBS = ("corp-code-sync", "company-profile", "financial-statement", "disclosure-sync",
        "filing-parse", "boundary-load", "sgis-household", "kosis-unsold", "rone-index",
        "apt-trade", "stock-price", "standardize-metric", "rule-eval")


def configuration(standin_url):
    """pawl.yaml with the stand-in for each service, without the wait between calls, and
    with schedules that are known but do not fire."""
    text = (HERE / "pawl.yaml").read_text(encoding="utf-8")
    text = re.sub(r'"https://[^/"]+', f'"{standin_url}', text)
    text = re.sub(r"(\{job: .*)\}$", r"\1, paused: true}", text, flags=re.M)
    return re.sub(r", spacing: \w+", "", text)


def section(text, name):
    """The lines of one top-level key of a configuration, its own line included."""
    found = re.search(rf"^{name}:.*\n(?:(?:[ #-].*)?\n)*", text, re.M)
    return found.group(0)


def create_tables(store_url):
    """In the store's own database, where rows and what pawl notes commit together. Nothing
    may have the SQLite store open meanwhile."""
    sqlite = store_url.startswith("sqlite:")
    files = ("schema.sqlite.sql", "schema.sql") if sqlite else \
        ("schema.pg.sql", "schema.sql", "grants.pg.sql")
    script = "".join((HERE / name).read_text(encoding="utf-8") for name in files)
    if sqlite:
        with contextlib.closing(sqlite3.connect(store_url.removeprefix("sqlite:"))) as db, db:
            db.executescript(script)
    else:
        subprocess.run(["psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-1", "-f", "-", store_url],
                       input=script, encoding="utf-8", check=True, stdout=subprocess.DEVNULL)

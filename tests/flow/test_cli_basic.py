"""The command line as a person meets it: verbs, messages, exit codes.

No server but where a test says so; each test has a folder of its own.
"""

import json
import os
import pathlib
import re
import select
import signal
import sqlite3
import subprocess

import pytest
from pawl_env import wait_for

ROOT = pathlib.Path(os.environ.get("PAWL_SOURCE_ROOT",
                                   pathlib.Path(__file__).resolve().parents[2]))
PAWL = os.environ.get("PAWL_BIN") or str(
    pathlib.Path(os.environ.get("PAWL_BUILD_ROOT", ROOT / "build")) / "src/pawl")

CONFIG = """\
store: sqlite:./pawl.db
results: ./results
state: ./state
databases: {shop: "sqlite:./shop.db"}
jobs:
  cities:
    params:
      country: {type: string, pattern: "[A-Z]{2}", required: true}
      format: {type: enum, values: [xlsx, csv], default: csv}
    duplicates: allow
    steps:
      - name: export
        read: {database: shop, sql: "SELECT id, name FROM city WHERE country = :country ORDER BY id"}
        write: {file: "cities-{country}.{format}", format: "{format}"}
  broken:
    steps:
      - name: export
        read: {database: shop, sql: "SELECT id FROM nowhere"}
        write: {file: "x.csv", format: csv}
"""


@pytest.fixture
def place(tmp_path):
    (tmp_path / "pawl.yaml").write_text(CONFIG)
    with sqlite3.connect(tmp_path / "shop.db") as db:
        db.execute("CREATE TABLE city (id INTEGER PRIMARY KEY, name TEXT, country TEXT)")
        db.executemany("INSERT INTO city (name, country) VALUES (?, ?)",
                       [("Seoul", "KR"), ("Busan", "KR"), ("Paris", "FR")])
    db.close()
    return tmp_path


def environment(**more):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("PAWL_")}
    return {**clean, **more}


def pawl(place, *words, **env):
    return subprocess.run([PAWL, *words], cwd=place, env=environment(**env), timeout=60,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, encoding="utf-8")


@pytest.fixture
def server(place):
    """A running `pawl serve`; its address."""
    process = subprocess.Popen(
        [PAWL, "serve"], cwd=place, env=environment(PAWL_LISTEN="127.0.0.1:0"),
        stderr=subprocess.PIPE, encoding="utf-8")
    try:
        said = ""
        while True:
            ready, _, _ = select.select([process.stderr], [], [], 30)
            line = process.stderr.readline() if ready else ""
            assert line, "the server did not start: " + said
            said += line
            port = re.search(r" ready .*port=(\d+)", line)
            if port:
                break
        yield "http://127.0.0.1:" + port.group(1)
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert process.returncode == 0


# --- usage ---

@pytest.mark.parametrize("words, says", [
    ([], "no verb; `pawl help` lists them"),
    (["sumbit", "x"], "did you mean submit?"),
    (["submit"], "`pawl submit` needs JOB"),
    (["show", "12", "13"], "does not know what to do with 13"),
    (["show", "x"], "x is not the id of a request"),
    (["submit", "cities", "--outptu", "x"], "did you mean --output?"),
    (["jobs", "--wait"], "takes no --wait"),
    (["submit", "cities", "-p", "country"], "write -p NAME=VALUE"),
    (["submit", "cities", "-p", "country=KR", "--priority", "9999"], "-100"),
    (["jobs", "--server", "localhost"], "write http://HOST:PORT"),
])
def test_wrong_use_exits_2_and_says_what_to_do(place, words, says):
    done = pawl(place, *words)
    assert done.returncode == 2, done.stderr
    assert says in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("words", [[], ["version"]])
def test_A4_an_unknown_role_is_refused(place, words):
    done = pawl(place, *words, PAWL_ROLE="boss")
    assert done.returncode == 2
    assert "PAWL_ROLE is boss; it must be serve, api, worker or cli" in done.stderr


@pytest.mark.parametrize("role", ["api", "worker"])
def test_A4_the_role_of_the_environment_starts(place, role):
    """On SQLite these two are refused with the remedy: by the role, not by the verb."""
    done = pawl(place, PAWL_ROLE=role)
    assert done.returncode == 78
    assert "use `pawl serve`" in done.stderr


def test_A4_a_verb_goes_before_the_role(place):
    assert pawl(place, "version", PAWL_ROLE="worker").stdout.startswith("pawl ")
    assert pawl(place, PAWL_ROLE="cli").returncode == 2


def test_help_knows_each_verb(place):
    verbs = re.findall(r"^  ([a-z]+) ", pawl(place, "help").stdout, re.M)
    assert "submit" in verbs and len(verbs) >= 15
    for verb in verbs:
        done = pawl(place, "help", verb)
        assert done.returncode == 0 and done.stdout.startswith("pawl " + verb)
        assert pawl(place, verb, "--help").stdout == done.stdout


def test_the_reference_is_what_the_tables_say(place):
    assert pawl(place, "help", "--markdown").stdout == (ROOT / "docs/cli.md").read_text()


# --- configuration ---

def test_no_configuration_exits_78(tmp_path):
    done = pawl(tmp_path, "jobs")
    assert done.returncode == 78
    assert "pawl.yaml" in done.stderr


def test_check_prints_every_problem_with_its_place(place):
    (place / "pawl.yaml").write_text(
        CONFIG.replace("results:", "reslts:").replace("type: string", "type: strnig"))
    done = pawl(place, "check")
    assert done.returncode == 78
    assert re.search(r"pawl\.yaml:2:1: .*reslts.*results", done.stdout)
    assert re.search(r"pawl\.yaml:8:\d+: .*strnig", done.stdout)
    told = json.loads(pawl(place, "check", "--json").stdout)
    assert told["ok"] is False
    assert [p["line"] for p in told["problems"]] == [2, 8]


def test_check_refuses_an_address_that_serve_refuses(place):
    (place / "pawl.yaml").write_text(CONFIG + "api: {listen: \"0.0.0.0:8410\"}\n")
    done = pawl(place, "check")
    assert done.returncode == 78
    assert "0.0.0.0" in done.stdout and "use 127.0.0.1" in done.stdout


@pytest.mark.parametrize("verb", ["submit", "run"])
def test_an_output_that_cannot_be_is_refused_before_the_submit(place, server, verb):
    done = pawl(place, verb, "cities", "-p", "country=KR", "-o", "no/such/folder/x.csv")
    assert done.returncode == 2
    assert "no/such/folder; make it first" in done.stderr
    assert json.loads(pawl(place, "requests", "--json").stdout)["items"] == []


def test_check_looks_into_steps(place):
    (place / "pawl.yaml").write_text(CONFIG.replace("format: csv}", "format: scv}"))
    done = pawl(place, "check")
    assert done.returncode == 78
    assert re.search(r"pawl\.yaml:\d+:\d+: .*scv", done.stdout)


def test_check_connect_opens_the_databases(place):
    assert pawl(place, "check", "--connect").returncode == 0
    (place / "shop.db").unlink()
    assert pawl(place, "check").returncode == 0
    done = pawl(place, "check", "--connect")
    assert done.returncode == 78
    assert "database shop cannot be opened" in done.stdout


def test_other_verbs_print_the_problems_on_stderr(place):
    (place / "pawl.yaml").write_text(CONFIG.replace("results:", "reslts:"))
    done = pawl(place, "jobs")
    assert done.returncode == 78
    assert done.stdout == ""
    assert "pawl.yaml:2:1:" in done.stderr


def test_the_file_is_found_by_option_then_environment(place, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    assert pawl(elsewhere, "check", "-c", str(place / "pawl.yaml")).returncode == 0
    assert pawl(elsewhere, "check", PAWL_CONFIG=str(place / "pawl.yaml")).returncode == 0


def test_migrate_brings_the_schema_up_to_date_once(place):
    first = json.loads(pawl(place, "migrate", "--json").stdout)
    again = json.loads(pawl(place, "migrate", "--json").stdout)
    assert first["before"] == 0 < first["now"] == again["before"] == again["now"]
    assert first["storeId"] == again["storeId"]


# --- without a server ---

def test_a_submit_without_a_server_is_kept_for_one(place):
    done = pawl(place, "submit", "cities", "-p", "country=KR")
    assert done.returncode == 0
    assert done.stdout.startswith("request 1 QUEUED")
    assert "no server runs" in done.stderr
    shown = json.loads(pawl(place, "show", "1", "--json").stdout)
    assert (shown["status"], shown["params"]) == ("QUEUED", {"country": "KR"})


@pytest.mark.parametrize("words, code", [
    (["submit", "cites"], 4),
    (["submit", "cities"], 2),
    (["submit", "cities", "-p", "country=kr"], 2),
    (["submit", "cities", "-p", "country=KR", "--wait"], 69),
    (["run", "cites"], 4),
    (["run", "cities", "-p", "country=korea"], 2),
    (["show", "99"], 4),
    (["cancel", "99"], 4),
    (["requests", "--status", "OVER"], 2),
    (["jobs", "--server", "http://127.0.0.1:1"], 69),
])
def test_refusals_have_their_exit_codes(place, words, code):
    done = pawl(place, *words)
    assert done.returncode == code, done.stderr
    assert done.stderr.startswith("pawl: ") and done.stdout == ""
    told = json.loads(pawl(place, *words, "--json").stdout)
    assert told["exit"] == code and told["code"] and told["detail"]


def test_nothing_refused_is_stored(place):
    for words in (["cities"], ["cities", "-p", "country=KR", "--wait"]):
        pawl(place, "submit", *words)
    assert json.loads(pawl(place, "requests", "--json").stdout)["items"] == []


def test_run_carries_a_job_out_here(place):
    done = pawl(place, "run", "cities", "-p", "country=KR", "-o", "out.csv")
    assert done.returncode == 0, done.stderr
    assert "2 rows" in done.stdout
    assert (place / "out.csv").read_text().splitlines()[1:] == ["1,Seoul", "2,Busan"]
    shown = json.loads(pawl(place, "show", "1", "--json").stdout)
    assert (shown["outcome"], shown["requester"]) == ("COMPLETED", "cli")
    assert shown["worker"]
    told = pawl(place, "show", "1").stdout
    assert f"execution     {shown['executionId']}\n" in told
    assert "COMPLETED, 2 read, 2 written\n" in told


def test_run_again_takes_the_next_try_that_waits(place):
    (place / "pawl.yaml").write_text(CONFIG.replace(
        "  broken:\n", "  broken:\n    retry: {attempts: 3, backoff: 4m, on: [ERROR]}\n"))
    for attempt in (1, 2, 3):
        done = pawl(place, "run", "broken")
        assert done.returncode == 1 and "nowhere" in done.stdout, done.stderr
        number = re.search(r"request (\d+) FAILED", done.stdout)[1]
        shown = json.loads(pawl(place, "show", number, "--json").stdout)
        assert (shown["outcome"], shown["attempt"]) == ("ERROR", attempt)
    assert "0 findings" in pawl(place, "fsck").stdout


def test_run_of_a_job_that_fails_exits_1_with_the_cause(place):
    done = pawl(place, "run", "broken", "-o", "out.csv")
    assert done.returncode == 1
    assert "FAILED ERROR" in done.stdout and "nowhere" in done.stdout
    assert sorted(p.name for p in place.glob("*out*")) == []


def test_a_file_to_read_is_sought_beside_the_configuration(place, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (place / "pawl.yaml").write_text(CONFIG + """\
  load:
    steps:
      - name: load
        read: {csv: "in/cities.csv", columns: {name: text}}
        write: {file: "loaded.csv", format: csv}
""")
    words = ("run", "load", "-c", place / "pawl.yaml", "-o", "out.csv")
    done = pawl(elsewhere, *words)
    assert done.returncode == 1
    assert f"there is no file {place}/in/cities.csv" in done.stdout
    (place / "in").mkdir()
    (place / "in/cities.csv").write_text("name\nSeoul\n")
    done = pawl(elsewhere, *words)
    assert done.returncode == 0, done.stdout
    assert (elsewhere / "out.csv").read_text().splitlines() == ["name", "Seoul"]


def test_run_left_by_ctrl_c_stops_at_its_chunk_and_is_recorded(place):
    (place / "pawl.yaml").write_text(CONFIG.replace(
        "SELECT id FROM nowhere", "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1"
        " FROM n WHERE i < 100000000) SELECT i FROM n"))
    process = subprocess.Popen([PAWL, "run", "broken", "-o", "x.csv"], cwd=place,
                               env=environment(), stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, encoding="utf-8")
    assert "rows" in process.stderr.readline()  # it runs
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 5
    assert "DONE STOPPED" in out
    assert not list(place.glob("*x.csv"))  # the part stays: a restart goes on with it


@pytest.mark.parametrize("database", ["shop", "main"])
def test_a_second_ctrl_c_cancels_as_anybody_would(place, database):
    endless = ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
               " WHERE i < 2000000000) SELECT count(*) AS n FROM n")
    config = CONFIG.replace("SELECT id FROM nowhere", endless)
    if database == "main":  # the statement holds up each write, this cancel's as well
        config += f"""\
  own:
    steps: [{{name: own, sql: "{endless}"}}]
"""
    (place / "pawl.yaml").write_text(config)

    process = subprocess.Popen([PAWL, "run", "own" if database == "main" else "broken"],
                               cwd=place, env=environment(), stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, encoding="utf-8")

    def computes():  # nothing else takes so long; before that a stop would be seen
        return int(pathlib.Path(f"/proc/{process.pid}/stat").read_text().split()[13]) > 20
    wait_for(computes, "its query has begun")
    process.send_signal(signal.SIGINT)
    while "once more cancels" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=10)
    assert process.returncode == 1 and "CANCELLED" in out
    with sqlite3.connect(place / "pawl.db") as db:
        assert db.execute("SELECT actor, act, subject FROM audit").fetchall() == [
            ("cli", "cancel", "request 1")]
    db.close()
    assert "0 findings" in pawl(place, "fsck").stdout


def test_a_cancelled_request_is_final(place):
    pawl(place, "submit", "cities", "-p", "country=KR")
    assert pawl(place, "cancel", "1").returncode == 0
    assert pawl(place, "cancel", "1").returncode == 3
    assert pawl(place, "watch", "1").returncode == 1


def test_the_list_pages(place):
    for _ in range(3):
        pawl(place, "submit", "cities", "-p", "country=KR")
    page = pawl(place, "requests", "--limit", "2")
    assert re.findall(r"^ *(\d+) +cities", page.stdout, re.M) == ["3", "2"]
    assert "--after 2" in page.stderr
    page = pawl(place, "requests", "--limit", "2", "--after", "2")
    assert re.findall(r"^ *(\d+) +cities", page.stdout, re.M) == ["1"]


# --- with one ---

def test_the_owner_is_reached_over_its_socket(place, server):
    done = pawl(place, "submit", "cities", "-p", "country=KR", "--wait", "-o", ".")
    assert done.returncode == 0, done.stderr
    assert (place / "cities-KR.csv").exists()
    done = pawl(place, "run", "cities", "-p", "country=FR", "-o", "fr.csv")
    assert done.returncode == 0, done.stderr
    assert "a server owns the store" in done.stderr
    assert (place / "fr.csv").read_text().splitlines()[1:] == ["3,Paris"]


def test_answers_are_the_same_over_http_and_from_the_store(place, server):
    pawl(place, "submit", "cities", "-p", "country=KR", "--wait")
    for words in (["show", "1"], ["jobs"], ["requests"]):
        by_socket = pawl(place, *words, "--json")
        by_http = pawl("/", *words, "--json", "--server", server)
        by_environment = pawl("/", *words, "--json", PAWL_SERVER=server)
        assert by_socket.returncode == by_http.returncode == 0, by_http.stderr
        assert by_socket.stdout == by_http.stdout == by_environment.stdout


def test_a_failed_job_exits_1_over_http_and_leaves_no_file(place, server):
    done = pawl(place, "submit", "broken", "-o", "x.csv", "--server", server)
    assert done.returncode == 1
    assert not list(place.glob("*x.csv")) and not list(place.glob(".pawl-download*"))


def test_the_same_key_answers_the_same_request(place, server):
    words = ["submit", "cities", "-p", "country=KR", "--idempotency-key", "k", "--json"]
    first = json.loads(pawl(place, *words).stdout)
    again = json.loads(pawl(place, *words, "--server", server).stdout)
    assert first["requestId"] == json.loads(pawl(place, *words).stdout)["requestId"]
    assert again["requestId"] > 0
    words[3] = "country=FR"
    assert pawl(place, *words).returncode == 3


def test_two_servers_on_one_store_name_the_owner(place, server):
    done = pawl(place, "serve", PAWL_LISTEN="127.0.0.1:0")
    assert done.returncode == 78
    assert re.search(r"\d+@", done.stderr)

"""The checker is worth its name only if it refuses what is wrong: each history here is
a good one with one thing spoilt, and must be refused by the rule that names it."""

import copy
import json
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import bad_effects  # noqa: E402
import bad_ends  # noqa: E402, F401
import bad_flow  # noqa: E402
import checker  # noqa: E402
import reach  # noqa: E402
import rules  # noqa: E402
from world import BAD, World  # noqa: E402



@pytest.fixture(autouse=True)
def rules_stay():
    kept = set(rules.RETRIED)
    yield
    rules.RETRIED.clear()
    rules.RETRIED.update(kept)


def test_good_histories_are_accepted(tmp_path):
    _, found = World().judge(tmp_path)
    assert found == []


def test_an_empty_storm_is_accepted(tmp_path):
    world = World()
    for table in checker.TABLES:
        world.dump[table] = []
    world.events = {"client-1": []}
    assert world.judge(tmp_path)[1] == []


@pytest.mark.parametrize("more", [bad_flow.chain, bad_flow.fan_in, bad_flow.slots,
                                  bad_flow.rescue, bad_flow.calls])
def test_a_world_with_more_in_it_is_accepted(more, tmp_path):
    assert more(World()).judge(tmp_path)[1] == []


def test_tries_that_begin_again_are_accepted(tmp_path):
    assert bad_effects.afresh(World()).judge(tmp_path)[1] == []


def test_a_handed_back_try_keeps_its_number(tmp_path):
    world = World()
    world.row("outcome", id=1)["outcome"] = "STOPPED"
    world.row("execution", request_id=1)["state"] = "STOPPED"
    world.row("request", id=2)["attempt"] = 1
    assert world.judge(tmp_path)[1] == []


def test_a_poll_that_overlaps_the_end_may_still_see_it_running(tmp_path):
    world = World()
    final = world.events["client-2"][-3]
    assert final["op"] == "poll" and final["type"] == "ok"
    late = world.op("poll", 3, ok={"status": "RUNNING", "outcome": None})
    world.events["client-1"][-2]["t"] = final["t"] - 1
    assert late["t"] > final["t"]
    world.events["client-3"] = world.events["client-1"][-2:]
    world.events["client-1"] = world.events["client-1"][:-2]
    for event in world.events["client-3"]:
        event["p"] = "client-3"
    assert world.judge(tmp_path)[1] == []


def test_an_end_and_a_begin_in_one_microsecond_share_a_slot(tmp_path):
    world = World()
    world.dump["lanes"]["normal"] = 1
    world.row("outcome", id=3)["claimed_at"] = world.row("outcome", id=2)["finished_at"]
    assert world.judge(tmp_path)[1] == []


@pytest.mark.parametrize("spoil, rules, may", BAD)
def test_a_spoilt_history_is_refused(spoil, rules, may, tmp_path):
    world = World()
    spoil(world)
    _, found = world.judge(tmp_path)
    named = {violation.rule for violation in found}
    assert rules <= named <= may, found


def test_there_are_enough_bad_ones_and_each_rule_has_one():
    assert len(BAD) >= 30
    text = "".join(path.read_text() for path in HERE.glob("rules*.py")) + \
        (HERE / "checker.py").read_text()
    for rule in {rule for case in BAD for rule in case.values[1]}:
        assert f'"{rule}"' in text


def test_the_command_prints_the_timeline_of_the_smallest(tmp_path):
    world = World()
    world.dump["effect"][12]["times"] = 2
    world.write(tmp_path)
    done = subprocess.run([sys.executable, HERE / "checker.py", tmp_path],
                          stdout=subprocess.PIPE, encoding="utf-8")
    assert done.returncode == 1
    assert "stale-write: 1" in done.stdout and "row 13 is there 2 times" in done.stdout
    assert "client-1 submit ok {'key': 'a', 'id': 1}" in done.stdout
    assert "store outcome {'id': 2, 'outcome': 'COMPLETED'" in done.stdout
    assert "'b'" not in done.stdout  # nothing of the others


def test_a_good_folder_ends_with_zero(tmp_path):
    World().write(tmp_path)
    done = subprocess.run([sys.executable, HERE / "checker.py", tmp_path],
                          stdout=subprocess.PIPE, encoding="utf-8")
    assert done.returncode == 0 and "0 violations" in done.stdout, done.stdout


def test_a_torn_last_line_is_named(tmp_path):
    World().write(tmp_path)
    with open(tmp_path / "client-1.jsonl", "a", encoding="utf-8") as history:
        history.write('{"t": 99')
    _, found = checker.read_histories(tmp_path)
    assert [(v.rule, v.subject) for v in found] == [("history", "client-1.jsonl")]


@pytest.mark.parametrize("last, stage", [
    ("stage request=7 stage=committing", "S6"), ("stage request=7 stage=calling", "S11"),
    ("claiming lane=normal", "S3"), ("repairing", "S10"),
    ("draining: nothing more is claimed running=1", "S12"), ("cleaning the seat", "S13"),
    ("request running request=7 job=a", "S4"), ("request over request=7", "idle")])
def test_the_last_lines_of_a_log_tell_the_stage(last, stage):
    text = "\n".join(f"2026-11-30T02:26:07.493Z info  {line}" for line in (
        "ready role=worker", "claiming lane=normal", "claimed spans=1", last))
    assert reach.stages(text) == {stage}


def test_it_judges_many_requests_in_a_moment(tmp_path):
    """No rule looks at all requests for each request."""
    world = World()
    base = copy.deepcopy(world.row("outcome", id=5))
    for n in range(100, 10100):
        world.request(n, f"k{n}", "export", 2000 + n)
        world.dump["outcome"].append({**base, "id": n, "token": n, "execution_id": None,
                                      "claimed_at": 2000 + 2 * n,
                                      "finished_at": 2001 + 2 * n})
        world.op("submit", f"k{n}", job="export", rows=1, ok={"id": n})
    assert world.judge(tmp_path)[1] == []

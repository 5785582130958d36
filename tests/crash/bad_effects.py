"""Worlds with one thing spoilt: in rows, in files, in the form of the histories."""

import copy

from world import DIGEST, bad


# --- doing ---

@bad("stale-write")
def a_row_is_written_twice(w):
    w.dump["effect"][12]["times"] = 2


@bad("effect-gap")
def a_row_is_skipped(w):
    del w.dump["effect"][12]


@bad("effect-missing")
def the_last_chunk_is_missing(w):
    w.dump["effect"] = w.dump["effect"][:20]


@bad("stale-write")
def more_rows_than_asked_for(w):
    w.dump["effect"].append({"tag": "a", "n": 26, "times": 1})


@bad("effect-gap")
def half_a_chunk_of_a_cancelled_run(w):
    w.dump["effect"] += [{"tag": "c", "n": n, "times": 1} for n in range(1, 6)]


@bad("file-missing")
def a_result_row_without_a_file(w):
    w.dump["files"] = []


@bad("file-differs")
def a_file_is_shorter(w):
    w.dump["files"][0]["bytes"] = 49


@bad("file-differs")
def a_file_has_other_bytes(w):
    w.dump["files"][0]["sha256"] = "cd" * 32


@bad("file-differs")
def a_download_differs(w):
    w.op("download", 3, ok={"bytes": 50, "sha256": "cd" * 32})


@bad("file-stray")
def a_file_of_a_failed_run(w):
    w.dump["files"].append({"request_id": 5, "name": "d.csv", "bytes": 1,
                            "sha256": DIGEST})


@bad("part-left")
def a_part_is_left(w):
    w.dump["parts"].append("5-1-10.part")


def afresh(w):
    """Tries that begin again: the lost one had committed a chunk of ten."""
    w.dump["jobs"]["effect"]["resumes"] = False
    w.dump["step"] = [
        {"request_id": 1, "name": "s", "state": "FAILED", "write_count": 10},
        {"request_id": 2, "name": "s", "state": "COMPLETED", "write_count": 25}]
    for row in w.dump["effect"][:10]:
        row["times"] = 2
    return w


@bad("stale-write")
def a_lost_try_wrote_after_its_end(w):
    for row in afresh(w).dump["effect"][10:20]:
        row["times"] = 2


@bad("stale-write")
def a_cancelled_request_wrote_rows(w):
    afresh(w).dump["effect"].append({"tag": "c", "n": 1, "times": 1})


@bad("effect-gap")
def a_chunk_is_counted_and_not_written(w):
    for row in afresh(w).dump["effect"][:10]:
        row["times"] = 1


@bad("effect-gap")
def a_step_counts_half_a_chunk(w):
    afresh(w).dump["step"][0]["write_count"] = 7
    for row in w.dump["effect"][7:10]:
        row["times"] = 1


@bad("effect-missing")
def a_completed_step_counts_too_few(w):
    afresh(w).dump["step"][1]["write_count"] = 20
    del w.dump["effect"][20:]


# --- the form ---

@bad("history")
def an_end_without_a_begin(w):
    w.events["client-2"].append({"t": 10**9, "w": 1, "p": "client-2", "n": 99,
                                 "op": "poll", "key": 3, "type": "ok"})


@bad("history")
def a_clock_that_goes_back(w):
    w.op("fault", "worker", "client-2")
    w.events["client-2"][-1]["t"] = 5


@bad("history")
def a_dump_without_a_table(w):
    del w.dump["claim"]

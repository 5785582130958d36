"""tools/check-layers refuses what STYLE calls an arrow upward, and only that."""

import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

ALLOWED = [
    ("base/err.c", '#include "base/err.h"'),
    ("queue/claim.c", '#include "store/store.h"'),
    ("batch/checkpoint.c", '#include "queue/request.h"'),
    ("batch/checkpoint.c", '#include "db/db.h"'),
    ("steps/sql.c", '#include "db/db.h"'),
    ("worker/worker.c", '#include "run/run.h"'),
    ("roles.c", '#include "worker/worker.h"'),
    ("roles.c", '#include "api/api.h"'),
    ("main.c", '#include "cli/cli.h"'),
    ("service/submit.c", '#include "queue/submit.h"'),
    ("client/step.c", '#include "base/json.h"'),
    ("base/proc.c", "#include <net/if.h>"),
    ("queue/claim.c", "/* not an include: worker/worker.h */"),
]

REFUSED = [
    ("base/err.c", '#include "db/db.h"', "nothing of ours"),
    ("net/loop.c", '#include "queue/request.h"', "net may include: base"),
    ("queue/claim.c", '#include "db/db.h"', "queue may include: store base"),
    ("queue/claim.c", '#include "batch/batch.h"', "queue may include"),
    ("batch/start.c", '#include "queue/submit.h"', "batch may include"),
    ("steps/chunk.c", '#include "db/db.h"', "steps may include"),
    ("io/read_csv.c", '#include "run/run.h"', "io may include"),
    ("worker/slot.c", '#include "api/api.h"', "worker may include"),
    ("api/server.c", '#include "worker/worker.h"', "api may include"),
    ("cli/cli.c", '#include "worker/worker.h"', "cli may include"),
    ("roles.c", '#include "worker/slot.h"', "roles.c may include"),
    ("main.c", '#include "worker/worker.h"', "main.c may include"),
    ("service/submit.c", '#include "api/api.h"', "service may include"),
    ("client/step.c", '#include "base/proc.h"', "client may include"),
    ("base/err.c", '  #  include "db/db.h"', "nothing of ours"),
    ("queue/claim.c", '#include "../worker/worker.h"', "queue may include"),
    ("attic/old.c", '#include "base/err.h"', "attic is not in the table"),
]


def check(tmp_path, name, line):
    path = tmp_path / "src" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"/* A file. */\n{line}\n")
    return subprocess.run(
        [ROOT / "tools/check-layers", tmp_path], capture_output=True, text=True
    )


@pytest.mark.parametrize("name, line", ALLOWED)
def test_an_arrow_of_the_table_passes(tmp_path, name, line):
    done = check(tmp_path, name, line)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("name, line, why", REFUSED)
def test_any_other_arrow_is_refused_with_its_place(tmp_path, name, line, why):
    done = check(tmp_path, name, line)
    assert done.returncode != 0
    assert done.stdout.startswith(f"src/{name}:2: ")
    assert why in done.stdout


def test_angle_brackets_are_no_way_round(tmp_path):
    (tmp_path / "src/worker").mkdir(parents=True)
    (tmp_path / "src/worker/worker.h").write_text("\n")
    done = check(tmp_path, "api/server.c", "#include <worker/worker.h>")
    assert done.returncode != 0
    assert "api may include" in done.stdout


def test_the_house_keeps_its_arrows():
    done = subprocess.run(
        [ROOT / "tools/check-layers", ROOT], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "")

"""The example that README.md gives a reader to type works as it stands there."""

import os
import pathlib
import re
import socket
import subprocess
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECONDS = 60


def blocks(kind):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    by_hand = text.split("## By hand", 1)[1].split("\n## ", 1)[0]
    return re.findall(rf"```{kind}\n(.*?)```", by_hand, re.S)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def shell(tmp_path):
    """Runs a block of the README in a fresh folder, on a port of our own."""
    port = free_port()
    program = pathlib.Path(os.environ["PAWL_BIN"])
    env = dict(os.environ, PAWL_LISTEN=f"127.0.0.1:{port}")
    env["PATH"] = f"{program.parent}:{env['PATH']}"

    def run(text):
        done = subprocess.run(
            ["sh", "-e", "-c", text.replace("127.0.0.1:8410", f"127.0.0.1:{port}")],
            cwd=tmp_path, env=env, capture_output=True, text=True, timeout=SECONDS,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def test_the_example_by_hand_makes_a_workbook_and_a_csv(tmp_path, shell):
    make_database, build, submit, over_http = blocks("sh")
    (config,) = blocks("yaml")
    (tmp_path / "pawl.yaml").write_text(config, encoding="utf-8")
    shell(make_database)

    assert "pawl serve &" in build
    shell("pawl check")
    # The server is started as the README does, and ended with the block's shell.
    out = shell(
        "pawl serve 2>serve.log & server=$!\n"
        "trap 'kill $server; wait $server' EXIT\n"
        "while ! grep -q ready serve.log; do kill -0 $server; done  # it ended: so do we\n"
        + submit + over_http
    )

    assert "DONE" in out and '"requestId":2' in out and '"complete":true' in out
    assert zipfile.ZipFile(tmp_path / "cities.xlsx").testzip() is None
    rows = (tmp_path / "cities-KR.csv").read_text(encoding="utf-8").split()
    assert rows == ["id,name,country,population", "1,서울,KR,9386000", "2,부산,KR,3293000"]

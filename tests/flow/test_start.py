"""Starting that fails half-way leaves everything as it was."""

import socket

import flow_jobs as jobs
import pytest
from pawl_env import Site


@pytest.mark.parametrize("kind", ["sqlite", "pg"])
def test_a_server_that_cannot_listen_has_taken_no_work(cluster, kind):
    site = Site(kind, cluster, jobs.QUICK)
    try:
        if kind == "pg":
            site.pawl("migrate")
        site.pawl("run", "quick")  # publishes the job
        site.pawl("submit", "quick")
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            site.configure(jobs.QUICK, f"api: {{listen: '127.0.0.1:{other.getsockname()[1]}'}}")
            for _ in range(5):
                done = site.pawl("serve", code=78)
                assert "cannot listen on 127.0.0.1" in done.stderr
                assert (site.count("ready"), site.count("claim")) == (1, 0)
                assert site.count("worker") == 0
        site.configure(jobs.QUICK)
        site.start("serve")
        site.wait_done(2)
        site.close()
    finally:
        site.discard()


def test_the_limit_of_a_body_is_the_one_of_the_settings(cluster):
    site = Site("sqlite", cluster, jobs.QUICK, "api: {listen: '127.0.0.1:0', max_body: 2KiB}\n")
    try:
        site.up()
        assert site.post("quick", {"tag": "x" * 1000}).status == 202
        assert site.post("quick", {"tag": "x" * 3000}).status == 413
        many = {"requests": [{"job": "quick", "params": {"tag": "x" * 3000}}]}
        assert site.call("POST", "/api/v1/requests", many).status == 202
        site.close()
    finally:
        site.discard()

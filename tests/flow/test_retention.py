"""What is kept only for a time: files of results, told as gone afterwards."""

import flow_jobs as jobs
import pytest
from pawl_env import Site, wait_for


@pytest.mark.parametrize("kind", ["sqlite", "pg"])
def test_a_result_is_410_after_its_retention(cluster, kind):
    site = Site(kind, cluster, jobs.QUICK, "retention: {results: 1s}\n")
    try:
        site.up()
        old = site.submit_id("quick", rows=3)
        site.wait_done(old)
        assert site.download(old).status == 200
        if kind == "sqlite":  # the owner of the store is the one to remove it
            site.down()
        wait_for(lambda: "removed: 1 results" in site.pawl("prune").stdout, "it is too old", 10)
        assert site.files(old) == []
        if kind == "sqlite":
            site.start("serve")
        answer = site.download(old)
        assert (answer.status, answer.json["code"]) == (410, "GONE")
        request = site.get(old)
        assert request["outcome"] == "COMPLETED" and request["result"]["goneAt"]
        assert "0 findings" in site.pawl("fsck").stdout if kind == "pg" else True
        young = site.submit_id("quick", rows=3)
        site.wait_done(young)
        assert site.download(young).status == 200
        site.close()
    finally:
        site.discard()

"""One cluster for all flow tests; logs of what runs stand below a test that fails."""

import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import flow_cells as cells  # noqa: E402
import flow_jobs as jobs  # noqa: E402
import pawl_env  # noqa: E402

LOG_TAIL = 6000


@pytest.fixture(scope="session")
def cluster():
    # Side by side with others: tests look at what runs in the whole cluster, and end it.
    cluster = pawl_env.Cluster(own="PYTEST_XDIST_WORKER" in os.environ)
    yield cluster
    cluster.close()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if not report.failed:
        return
    for site in pawl_env.SITES:
        for path in sorted(site.folder.glob("*.log")):
            text = path.read_text(errors="replace")[-LOG_TAIL:]
            report.sections.append((f"{site.folder.name}/{path.name}", text))


# --- the site that most tests share: nobody stops it, nobody counts its idle moments ---

SHARED_JOBS = (
    jobs.QUICK + jobs.SLOW + jobs.SIZED + jobs.BROKEN + jobs.BURN
    + jobs.variant(jobs.QUICK, "single", duplicates=None)
    + jobs.variant(jobs.SLOW, "guarded", duplicates=None)
    + jobs.variant(jobs.QUICK, "parked", lane="parked")
    + jobs.variant(jobs.QUICK, "report", lane="parked", duplicates="reuse",
                   reuse_window="10m")
    + jobs.variant(jobs.QUICK, "eager-report", lane="parked", duplicates="reuse",
                   reuse_window="0")
    + jobs.variant(jobs.SLOW, "slow-report", duplicates="reuse")
    + cells.JOB
)


@pytest.fixture(scope="session", params=["sqlite", "pg"])
def site(request, cluster):
    """Its lane `parked` has no slots: what is in it stays QUEUED."""
    site = pawl_env.Site(request.param, cluster, SHARED_JOBS + jobs.own(request.param),
                         "lanes: {normal: 8, large: 2, parked: 0}\n")
    try:
        site.shop(cells.table(request.param))
        site.up()
        yield site
        site.close()
    finally:
        site.discard()

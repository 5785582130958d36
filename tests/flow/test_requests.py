"""A request from POST to download, as a client sees it."""

import hashlib
import json
import time
from concurrent.futures import ThreadPoolExecutor

from pawl_env import read_csv, wait_for


def test_A6_B5_the_answer_is_202_at_once_and_the_row_is_there_before_it(site):
    took = []
    for _ in range(5):
        begin = time.monotonic()
        answer = site.post("parked", {"rows": 7}, requester="kim")
        took.append(time.monotonic() - begin)
        request_id = answer.json["requestId"]
        assert answer.status == 202 and isinstance(request_id, int)
        assert answer.headers["Location"] == f"/api/v1/requests/{request_id}"
        assert answer.json == {"requestId": request_id, "job": "parked", "status": "QUEUED",
                               "lane": "parked", "estimate": None, "reused": False}
        (row,) = site.sql(f"SELECT job, given, requester, source FROM pawl.request "
                          f"WHERE id = {request_id}")
        assert row == {"job": "parked", "given": '{"rows":7}', "requester": "kim",
                       "source": "api"}
        assert site.count("ready", f"{request_id} BETWEEN first_id AND last_id") == 1
        assert site.count("execution", f"request_id = {request_id}") == 0
    assert min(took) < 0.2, took


def test_A7_bad_parameters_are_400_and_nothing_is_stored(site):
    before = site.one("SELECT max(id) AS n FROM pawl.request")
    cases = [
        ("quick", {"params": {"rows": -1}}, "/params/rows"),
        ("quick", {"params": {"rows": "5"}}, "/params/rows"),
        ("quick", {"params": {"rows": 1.5}}, "/params/rows"),
        ("quick", {"params": {"rows": None}}, "/params/rows"),
        ("quick", {"params": {"rosw": 5}}, "/params/rosw"),
        ("cells", {"params": {"format": "pdf"}}, "/params/format"),
        ("quick", {"params": []}, "/params"),
        ("quick", {"parms": {}}, "/parms"),
        ("quick", {"priority": 101}, "/priority"),
        ("quick", {"maxCalls": -1}, "/maxCalls"),
        ("quick", {"notBefore": "2026-11-30T00:00:00Z",
                   "expiresAt": "2026-11-30T00:00:00Z"}, "/expiresAt"),
        ("quick", {"notBefore": "tomorrow"}, "/notBefore"),
        ("quick", {"next": ["nobody"]}, "/next/0"),
    ]
    for job, body, pointer in cases:
        answer = site.call("POST", f"/api/v1/jobs/{job}/requests", body)
        assert answer.status == 400, (body, answer)
        assert answer.headers["Content-Type"] == "application/problem+json"
        problem = answer.json
        assert problem["code"] == "VALIDATION_ERROR" and problem["traceId"]
        assert pointer in [error["pointer"] for error in problem["errors"]], problem
    both = site.call("POST", "/api/v1/jobs/cells/requests",
                     {"params": {"format": "pdf", "raw": 1}}).json
    assert [e["pointer"] for e in both["errors"]] == ["/params/format", "/params/raw"]
    for body in (b"{", b"[]", b'{"params": {"rows": 1}} x', b"\xff"):
        answer = site.call("POST", "/api/v1/jobs/quick/requests", body,
                           {"Content-Type": "application/json"})
        assert (answer.status, answer.json["code"]) == (400, "VALIDATION_ERROR"), body
    assert site.one("SELECT max(id) AS n FROM pawl.request") == before


def test_A7_an_unknown_job_is_404_and_an_unknown_request_too(site):
    answer = site.post("nobody")
    assert (answer.status, answer.json["code"]) == (404, "JOB_NOT_FOUND")
    assert "/api/v1/jobs" in answer.json["detail"]
    for path in ("999999999", "0", "-1", "x", "99999999999999999999"):
        answer = site.call("GET", f"/api/v1/requests/{path}")
        assert (answer.status, answer.json["code"]) == (404, "NOT_FOUND"), path
    assert site.download(999999999).status == 404
    assert site.cancel(999999999).status == 404


def test_A9_of_fifty_at_once_one_is_taken_and_the_others_are_told_which(site):
    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(lambda _: site.post("guarded"), range(50)))
    taken = [a for a in answers if a.status == 202]
    refused = [a for a in answers if a.status != 202]
    assert len(taken) == 1, answers
    request_id = taken[0].json["requestId"]
    assert {a.status for a in refused} == {409}
    assert {a.json["code"] for a in refused} == {"JOB_ALREADY_RUNNING"}
    assert {a.json["activeRequestId"] for a in refused} == {request_id}
    assert site.count("request", "job = 'guarded'") == 1

    site.wait_running(request_id)
    assert site.post("guarded").status == 409
    (active,) = site.sql(f"SELECT key FROM pawl.active WHERE request_id = {request_id}")
    try:
        site.store_do(f"INSERT INTO pawl.active (key, request_id) VALUES ('{active['key']}', 1)")
        raise RuntimeError("a second active row was taken")
    except Exception as error:  # sqlite3's or psql's
        assert "unique" in str(error).lower(), error

    assert site.cancel(request_id).status == 202
    assert site.wait_final(request_id)["outcome"] == "CANCELLED"
    again = site.post("guarded", {"rows": 1, "ms": 0})
    assert again.status == 202
    site.wait_done(again.json["requestId"])
    last = site.post("guarded", {"rows": 1, "ms": 0})
    assert last.status == 202
    site.wait_done(last.json["requestId"])


def test_B2_B7_progress_only_grows_and_no_call_lasts_as_long_as_the_job(site):
    request_id = site.submit_id("slow", rows=120, ms=30)
    connection = site.api.connect(timeout=2)
    percents, states = [], []

    def final():
        request = site.api.call("GET", f"/api/v1/requests/{request_id}",
                                connection=connection).json
        states.append(request["status"])
        if request["progress"]:
            percents.append(request["progress"]["percent"])
        return request if request["status"] in ("DONE", "FAILED") else None
    request = wait_for(final, "the job ends", 60)
    connection.close()
    assert request["outcome"] == "COMPLETED", request
    assert percents == sorted(percents)
    assert len(set(percents)) >= 10, percents
    assert percents[-1] == 100 and set(states[-2:]) <= {"RUNNING", "DONE"}
    assert sorted(states, key=["QUEUED", "RUNNING", "DONE"].index) == states
    assert 100 not in percents[:-1]
    took = read_csv(site.result(request_id))
    assert [row[0] for row in took[1:]] == [str(i) for i in range(1, 121)]


def test_B7_an_error_ends_it_as_failed_with_the_cause(site):
    for job, says in (("broken", "division by zero"), ("no-table", "nowhere")):
        request_id = site.submit_id(job)
        request = site.wait_final(request_id)
        assert (request["status"], request["outcome"]) == ("FAILED", "ERROR")
        assert says in request["detail"] and "step export" in request["detail"]
        assert request["result"] is None and not request["complete"]
        answer = site.download(request_id)
        assert (answer.status, answer.json["code"]) == (409, "NO_RESULT")
        assert not set(site.parts_of(request_id)) & set(site.loose_parts())
        assert site.files(request_id) == []


def test_B8_the_result_is_there_when_it_is_done_and_not_before(site):
    request_id = site.submit_id("slow", rows=30, ms=20)
    site.wait_running(request_id)
    for method in ("GET", "HEAD"):
        assert site.download(request_id, method=method).status == 409
    assert site.download(request_id).json["code"] == "NO_RESULT"
    request = site.wait_done(request_id)
    result = request["result"]
    answer = site.call("GET", result["url"])
    assert answer.status == 200
    assert len(answer.body) == result["bytes"] == int(answer.headers["Content-Length"])
    assert hashlib.sha256(answer.body).hexdigest() == result["sha256"]
    assert answer.headers["ETag"] == f'"{result["sha256"]}"'
    assert answer.headers["Content-Type"] == result["contentType"] == "text/csv; charset=utf-8"
    assert result["rows"] == 30


def test_B8_a_download_goes_on_where_it_was_cut(site):
    request_id = site.submit_id("quick", rows=2000)
    sha = site.wait_done(request_id)["result"]["sha256"]
    whole = site.download(request_id)
    size, etag = len(whole.body), whole.headers["ETag"]
    assert whole.headers["Accept-Ranges"] == "bytes"

    def part(**headers):
        return site.download(request_id, {k.replace("_", "-"): v
                                          for k, v in headers.items()})
    first = part(Range="bytes=0-99")
    rest = part(Range="bytes=100-", If_Range=etag)
    assert (first.status, rest.status) == (206, 206)
    assert first.headers["Content-Range"] == f"bytes 0-99/{size}"
    assert first.body + rest.body == whole.body
    assert part(Range="bytes=-7").body == whole.body[-7:]
    assert part(Range=f"bytes={size - 1}-{size + 50}").body == whole.body[-1:]

    changed = part(Range="bytes=100-", If_Range='"another"')
    assert (changed.status, changed.body) == (200, whole.body)
    past = part(Range=f"bytes={size}-")
    assert (past.status, past.json["code"]) == (416, "RANGE_NOT_SATISFIABLE")
    assert part(Range="lines=1-2").status == 200

    same = part(If_None_Match=etag)
    assert (same.status, same.body) == (304, b"")
    assert same.headers["ETag"] == etag == f'"{sha}"'
    assert part(If_None_Match='"another"').status == 200
    head = site.download(request_id, method="HEAD")
    assert head.status == 200 and int(head.headers["Content-Length"]) == size


def test_B8_a_range_of_an_empty_result_is_answered(site):
    request_id = site.submit_id("cells", format="jsonl")
    site.wait_done(request_id)
    request_id = site.submit_id("quick", rows=0)
    site.wait_done(request_id)
    assert read_csv(site.result(request_id)) == [["i"]]


def test_B10_state_progress_parameters_and_result_are_rows(site):
    request_id = site.submit_id("slow", rows=400, ms=10, tag="가")
    site.wait_progress(request_id, 1)
    assert site.count("claim", f"{request_id} BETWEEN first_id AND last_id") == 1
    assert site.one(f"SELECT done FROM pawl.progress WHERE request_id = {request_id}") > 0
    given = site.one(f"SELECT given FROM pawl.request WHERE id = {request_id}")
    assert json.loads(given) == {"rows": 400, "ms": 10, "tag": "가"}
    request = site.wait_done(request_id)
    (row,) = site.sql(f"SELECT * FROM pawl.outcome WHERE id = {request_id}")
    assert row["outcome"] == "COMPLETED" and row["worker"] == request["worker"]
    assert row["result_sha256"] == request["result"]["sha256"]
    assert (site.folder / "results" / row["result_path"]).stat().st_size == \
        row["result_bytes"]
    assert site.count("progress", f"request_id = {request_id}") == 0


def test_B8_the_wait_of_a_get_holds_until_the_end_and_no_longer(site):
    request_id = site.submit_id("slow", rows=40, ms=20)
    begin = time.monotonic()
    assert site.get(request_id, wait="100ms")["status"] != "DONE"
    assert time.monotonic() - begin >= 0.1
    assert site.get(request_id, wait="50s")["status"] == "DONE"
    assert time.monotonic() - begin < 40


def test_B8_events_tell_each_change_until_the_end(site):
    request_id = site.submit_id("slow", rows=60, ms=30)
    connection = site.api.connect()
    connection.request("GET", f"/api/v1/requests/{request_id}/events")
    response = connection.getresponse()
    assert response.status == 200
    assert response.headers["Content-Type"].startswith("text/event-stream")
    seen = [json.loads(line[5:]) for line in response.read().decode().splitlines()
            if line.startswith("data:") and "requestId" in line]
    connection.close()
    assert seen[-1]["status"] == "DONE" and seen[-1]["complete"]
    done = [s["progress"]["done"] for s in seen if s["progress"] and s["progress"]["done"]]
    assert len(seen) >= 2 and done == sorted(done)


def test_A9_an_idempotency_key_answers_the_same_request(site):
    key = {"Idempotency-Key": f"flow-{site.kind}"}
    first = site.post("parked", {"rows": 1}, key)
    again = site.post("parked", {"rows": 1}, key)
    other = site.post("parked", {"rows": 2}, key)
    assert (first.status, again.status) == (202, 200)
    assert again.json["requestId"] == first.json["requestId"] and again.json["reused"]
    assert (other.status, other.json["code"]) == (422, "IDEMPOTENCY_MISMATCH")


def test_A9_a_replay_answers_how_the_request_stands(site):
    key = {"Idempotency-Key": f"replay-{site.kind}"}
    first = site.post("quick", {"tag": "replay"}, key)
    assert first.json["status"] == "QUEUED"
    site.wait_done(first.json["requestId"])
    again = site.post("quick", {"tag": "replay"}, key)
    assert (again.status, again.json["status"]) == (200, "DONE"), again
    bulk = site.call("POST", "/api/v1/requests", {"requests": [
        {"job": "quick", "params": {"tag": "b"}, "idempotencyKey": f"b-{site.kind}"}]})
    site.wait_done(bulk.json["requests"][0]["requestId"])
    bulk = site.call("POST", "/api/v1/requests", {"requests": [
        {"job": "quick", "params": {"tag": "b"}, "idempotencyKey": f"b-{site.kind}"}]})
    assert bulk.json["requests"][0]["status"] == "DONE", bulk


def test_A6_many_at_once_are_all_taken_or_none(site):
    before = site.one("SELECT max(id) AS n FROM pawl.request")
    items = [{"job": "quick", "params": {"rows": n}} for n in range(40)]
    bad = site.call("POST", "/api/v1/requests",
                    {"requests": items + [{"job": "quick", "params": {"rows": -1}}]})
    assert (bad.status, bad.json["index"]) == (400, 40)
    assert site.one("SELECT max(id) AS n FROM pawl.request") == before
    good = site.call("POST", "/api/v1/requests", {"requests": items})
    assert good.status == 202, good
    ids = [one["requestId"] for one in good.json["requests"]]
    assert ids == sorted(set(ids)) and len(ids) == 40
    for n, request_id in enumerate(ids):
        assert site.wait_done(request_id)["result"]["rows"] == n


def test_A6_the_list_is_paged_by_key_newest_first(site):
    ids = [site.submit_id("quick", tag="page") for _ in range(5)]
    page = site.call("GET", "/api/v1/requests?job=quick&limit=3").json
    assert [r["requestId"] for r in page["items"]] == ids[:1:-1]
    more = site.call("GET", f"/api/v1/requests?job=quick&limit=2&after={page['next']}").json
    assert [r["requestId"] for r in more["items"]] == ids[1::-1]
    assert len(site.call("GET", "/api/v1/requests?limit=-5").json["items"]) == 1
    assert site.call("GET", "/api/v1/requests?limit=x").status == 400
    assert site.call("GET", "/api/v1/requests?stauts=DONE").status == 400
    for request_id in ids:
        site.wait_done(request_id)
    done = site.call("GET", "/api/v1/requests?status=DONE&job=quick&limit=200").json
    assert set(ids) <= {r["requestId"] for r in done["items"]}
    assert {r["status"] for r in done["items"]} == {"DONE"}

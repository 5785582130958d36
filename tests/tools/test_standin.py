"""The stand-in of examples/buildrisk: its shapes, its counts, its failures on command."""

import concurrent.futures
import http.client
import io
import json
import pathlib
import subprocess
import sys
import threading
import urllib.parse
import zipfile
from xml.etree import ElementTree

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples/buildrisk"))

from standin.server import Server  # noqa: E402
from standin.services import FSC, PATHS, RTMS  # noqa: E402
from standin.world import SIZES, World, months_between  # noqa: E402

DAY = "2026-11-29"
KOSIS = "/openapi/Param/statisticsParameterData.do"
RONE = "/r-one/openapi/SttsApiTblData.do"
SGIS = "/OpenAPI3/stats/household.json"
TOKEN = "/OpenAPI3/auth/authentication.json"
VWORLD = "/req/data"


class Client:
    def __init__(self, server):
        self.server = server

    def raw(self, path, verb="GET", body=None, **query):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=20)
        try:
            connection.request(verb, path + ("?" + urllib.parse.urlencode(query) if query else ""),
                               body)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def json(self, path, **query):
        return json.loads(self.raw(path, **query)[1])

    def xml(self, path, **query):
        return ElementTree.fromstring(self.raw(path, **query)[1])

    def steer(self, **wanted):
        status, body = self.raw("/_control", "POST", json.dumps(wanted))
        assert status == 200, body

    def calls(self):
        return self.json("/_calls")

    # --- calls that go well ---

    def company(self, n=0, key="k"):
        return self.json("/api/company.json", crtfc_key=key, corp_code=World().corp_code(n))

    def trades(self, district="11110", month="202508", key="k", page=1, size=1000):
        return self.raw(RTMS, serviceKey=key, LAWD_CD=district, DEAL_YMD=month, pageNo=page,
                        numOfRows=size)

    def prices(self, code="000010", begin="20261123", end="20261128", **more):
        return self.raw(FSC, serviceKey="k", resultType="json", likeSrtnCd=code,
                        beginBasDt=begin, endBasDt=end, **more)

    def features(self, page=1, size=100):
        return self.json(VWORLD, service="data", request="GetFeature", data="LT_C_ADSIGG_INFO",
                         key="k", domain="localhost", page=page, size=size)["response"]


@pytest.fixture(scope="module")
def server():
    server = Server(day=DAY)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield server
    server.close()


@pytest.fixture
def client(server):
    client = Client(server)
    client.steer(reset=True)
    return client


def reason(body):
    return ElementTree.fromstring(body).findtext("cmmMsgHeader/returnReasonCode")


# --- shapes ---

def test_dart_tells_a_company_flat(client):
    company = client.company()
    assert company["status"] == "000" and company["corp_code"] == "00100000"
    assert company["corp_cls"] == "Y" and company["stock_code"] == "000010"


def test_dart_has_no_data_as_013(client):
    assert client.company(39)["status"] == "013"
    query = dict(crtfc_key="k", bsns_year="2025", reprt_code="11011")
    path = "/api/fnlttSinglAcntAll.json"
    only_ofs = World().corp_code(3)
    assert client.json(path, corp_code=only_ofs, fs_div="CFS", **query)["status"] == "013"
    assert len(client.json(path, corp_code=only_ofs, fs_div="OFS", **query)["list"]) \
        == SIZES["small"].accounts


def test_dart_lists_come_in_pages(client):
    query = dict(crtfc_key="k", corp_code="00100000", bgn_de="20251129", end_de="20261129")
    whole = client.json("/api/list.json", page_count=100, **query)
    assert whole["total_page"] == 1 and whole["total_count"] == len(whole["list"]) > 2
    client.steer(page_max=2)
    first = client.json("/api/list.json", page_count=100, **query)
    assert first["total_page"] == (whole["total_count"] + 1) // 2
    pages = [client.json("/api/list.json", page_no=n + 1, **query)["list"]
             for n in range(first["total_page"])]
    assert sum(pages, []) == whole["list"]


def corp_file(client):
    with zipfile.ZipFile(io.BytesIO(client.raw("/api/corpCode.xml", crtfc_key="k")[1])) as book:
        return [{field.tag: field.text for field in element}
                for element in ElementTree.fromstring(book.read("CORPCODE.xml"))]


def test_dart_has_all_corporations_in_a_zip(client):
    rows = corp_file(client)
    assert len(rows) == SIZES["small"].corps
    assert list(rows[0]) == ["corp_code", "corp_name", "corp_eng_name", "stock_code", "modify_date"]
    assert rows[-1]["stock_code"] == " "
    client.steer(order="reversed", broken=2)
    assert [row for row in corp_file(client)[::-1] if len(row["corp_code"]) == 8] == rows


def test_dart_documents_are_utf8_or_ms949(client):
    for day, charset in (("02", "utf-8"), ("03", "cp949")):
        receipt = f"202611{day}000000"
        body = client.raw("/api/document.xml", crtfc_key="k", rcept_no=receipt)[1]
        with zipfile.ZipFile(io.BytesIO(body)) as book:
            assert book.namelist() == [f"{receipt}.xml"]
            assert "계약금액(원)" in book.read(f"{receipt}.xml").decode(charset)
    lost = client.xml("/api/document.xml", crtfc_key="k", rcept_no="20261108000000")
    assert lost.findtext("status") == "014"


def test_trades_are_xml_with_commas_and_blanks(client):
    answer = ElementTree.fromstring(client.trades(month="202508")[1])
    assert answer.findtext("header/resultCode") == "000"
    items = answer.findall("body/items/item")
    assert len(items) == int(answer.findtext("body/totalCount")) > 0
    assert "," in items[0].findtext("dealAmount")
    assert items[0].findtext("cdealType") in (" ", "O")


def test_prices_are_an_array_an_object_or_nothing(client):
    def items(**query):
        return json.loads(client.prices(**query)[1])["response"]["body"]
    many = items(numOfRows=10)
    assert many["totalCount"] == 5 and len(many["items"]["item"]) == 5
    assert max(row["basDt"] for row in many["items"]["item"]) == "20261127"  # the end is not in it
    assert items(begin="20261127", numOfRows=10)["items"]["item"]["basDt"] == "20261127"
    assert items(begin="20261128", end="20261129", numOfRows=10)["items"] == ""


def test_kosis_has_rows_with_totals_and_dashes_or_an_err(client):
    query = dict(method="getList", apiKey="k", orgId="116", tblId="T", itmId="ALL", objL1="ALL",
                 prdSe="M", format="json")
    rows = client.json(KOSIS, startPrdDe="202601", endPrdDe="202606", **query)
    assert len(rows) == 6 * 18 and rows[0]["C1_NM"] == "계"
    assert client.json(KOSIS, startPrdDe="203001", endPrdDe="203006", **query)["err"] == "30"
    assert client.json(KOSIS, startPrdDe="180001", endPrdDe="202606", **query)["err"] == "31"


def test_rone_has_sections_and_a_sample_without_key(client):
    query = dict(Type="json", STATBL_ID="A", DTACYCLE_CD="MM", WRTTIME_IDTFR_ID="202601")
    head, body = client.json(RONE, KEY="k", **query)["SttsApiTblData"]
    assert head["head"][0]["list_total_count"] == len(body["row"]) == 6
    assert head["head"][1]["RESULT"]["CODE"] == "INFO-000"
    assert len(client.json(RONE, **query)["SttsApiTblData"][1]["row"]) == 5
    nothing = client.json(RONE, KEY="k", pIndex=2, **query)
    assert nothing["RESULT"]["CODE"] == "INFO-200"


def test_sgis_wants_a_token_that_may_be_forgotten(client):
    query = dict(year="2025", adm_cd="11", low_search="1")
    assert client.json(SGIS, accessToken="made-up", **query)["errCd"] == -401
    token = client.json(TOKEN, consumer_key="k", consumer_secret="s")["result"]["accessToken"]
    answer = client.json(SGIS, accessToken=token, **query)
    assert answer["errCd"] == 0 and answer["result"][-1]["adm_nm"] == "옛구"
    client.steer(forget=True)
    assert client.json(SGIS, accessToken=token, **query)["errCd"] == -401


def test_vworld_has_pages_of_features(client):
    first = client.features(size=4)
    assert first["status"] == "OK" and first["page"] == {"total": "2", "current": "1", "size": "4"}
    assert [f["properties"]["sig_cd"] for f in first["result"]["featureCollection"]["features"]]
    assert len(client.features(2, 4)["result"]["featureCollection"]["features"]) == 2
    assert client.features(3, 4)["status"] == "NOT_FOUND"


def test_keys_that_are_no_good_are_told_in_each_service_s_way(client):
    assert client.company(key="bad")["status"] == "010"
    assert client.company(key="")["status"] == "010"
    assert reason(client.trades(key="bad")[1]) == "30"
    assert client.json(KOSIS, apiKey="bad")["err"] == "11"
    assert client.json(VWORLD, request="GetFeature")["response"]["error"]["code"] == "INCORRECT_KEY"
    assert client.json(TOKEN)["errCd"] == -401


# --- the same answers each time ---

def test_the_same_question_has_the_same_answer(client):
    other = Server(day=DAY)
    threading.Thread(target=other.serve_forever, args=(0.05,), daemon=True).start()
    try:
        assert Client(other).trades() == client.trades()
    finally:
        other.close()


def test_another_seed_has_other_data():
    assert World("a").corp(0) != World("b").corp(0)


def test_months_between_go_over_the_new_year():
    assert months_between("202511", "202602") == ["202511", "202512", "202601", "202602"]


# --- counts ---

def test_calls_are_counted_by_key_day_and_item(client):
    client.trades(key="one")
    client.trades(key="two")
    client.trades(key="two", month="202511")
    client.steer(day="2026-11-30")
    client.trades(key="two", month="202511")
    told = client.calls()
    assert told["days"] == {DAY: {"rtms": {"one": 1, "two": 2}}, "2026-11-30": {"rtms": {"two": 1}}}
    assert told["total"] == 4 and told["services"] == {"rtms": 4}
    assert sorted(told["items"].values()) == [2, 2]
    assert told["overlaps"] == 0


def test_what_is_under_way_twice_at_once_is_told(client):
    client.steer(delay_ms=200)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        done = [pool.submit(client.trades, month=m) for m in ("202510", "202510", "202511")]
        assert {future.result()[0] for future in done} == {200}
    assert client.calls()["mostAtOnce"] == 3
    assert client.calls()["overlaps"] == 1


# --- failures on command ---

@pytest.mark.parametrize("kind, code, expected", [
    ("no_data", None, "013"), ("limit", None, "020"), ("fatal", None, "010"),
    ("fatal", "901", "901"), ("transient", None, "800")])
def test_dart_says_no_in_its_own_words(client, kind, code, expected):
    client.steer(answer={"service": "dart", "kind": kind, "code": code})
    assert client.company()["status"] == expected
    assert client.company()["status"] == "000"


@pytest.mark.parametrize("code", ["20", "22", "30", "31", "32", "33"])
def test_the_gateway_says_no_with_a_reason_in_xml(client, code):
    client.steer(answer={"service": "fsc", "kind": "fatal", "code": code})
    assert reason(client.prices()[1]) == code


def test_the_gateway_may_also_say_no_with_http_alone(client):
    client.steer(answer=[{"service": "rtms", "kind": "limit", "code": 429},
                         {"service": "rtms", "kind": "fatal", "code": 401}])
    assert client.trades()[0] == 429
    assert client.trades()[0] == 401
    assert client.trades()[0] == 200


def test_a_rule_waits_for_its_item_and_its_turn(client):
    client.steer(answer={"service": "rtms", "match": {"DEAL_YMD": "202511"}, "after": 1,
                         "times": 2, "kind": "status", "code": 503})
    assert [client.trades(month=m)[0] for m in ("202510", "202511", "202511", "202511", "202511")] \
        == [200, 200, 503, 503, 200]


def test_a_limit_holds_for_each_key_and_day(client):
    client.steer(limit={"rtms": 2})
    assert [reason(client.trades(key="a")[1]) for _ in range(3)] == [None, None, "22"]
    assert reason(client.trades(key="b")[1]) is None
    client.steer(day="2026-11-30")
    assert reason(client.trades(key="a")[1]) is None
    client.steer(limit={"rtms": None})
    assert [reason(client.trades(key="a")[1]) for _ in range(3)] == [None] * 3


def test_html_half_an_answer_and_a_slow_one(client):
    client.steer(answer=[{"service": "rtms", "kind": "html"}, {"service": "rtms", "kind": "cut"},
                         {"service": "rtms", "kind": "slow", "ms": 50}])
    assert client.trades()[1].startswith(b"<!DOCTYPE html>")
    with pytest.raises(http.client.IncompleteRead):
        client.trades()
    assert client.trades()[0] == 200


def test_a_refusal_can_be_cut_in_half_too(client):
    client.steer(answer={"service": "dart", "kind": "cut"})
    with pytest.raises(http.client.IncompleteRead):
        client.company(39)
    assert client.company(39)["status"] == "013"


def test_a_wish_that_it_does_not_know_is_refused(client):
    for wish in ({"nonsense": 1}, {"answer": {"service": "dart", "kind": "nonsense"}}):
        assert client.raw("/_control", "POST", json.dumps(wish))[0] == 400
    assert client.raw("/nowhere")[0] == 404


def test_it_runs_as_a_program():
    program = subprocess.Popen([sys.executable, ROOT / "examples/buildrisk/standin", "--port", "0"],
                               stdout=subprocess.PIPE, encoding="utf-8")
    try:
        words = dict(word.split("=") for word in program.stdout.readline().split()[2:])
        connection = http.client.HTTPConnection("127.0.0.1", int(words["port"]), timeout=20)
        connection.request("GET", "/_ready")
        assert connection.getresponse().status == 200
        connection.close()
    finally:
        program.terminate()
        assert program.wait(20) == 0
        program.stdout.close()


def test_every_path_answers_a_call_without_anything_in_its_own_words(client):
    for path in PATHS:
        status, body = client.raw(path)
        assert status == 200 and body, path

"""SGIS: households and boundaries, behind a token. V-World: boundaries, page by page."""

from standin.reply import FATAL, LIMIT, NO_DATA, TRANSIENT, Refusal, needed, of_json, \
    page_of, whole

SGIS_ERR = {NO_DATA: "-100", LIMIT: "-402", FATAL: "-400", TRANSIENT: "-1"}
VWORLD_CODE = {LIMIT: "OVER_REQUEST_LIMIT", FATAL: "INVALID_KEY", TRANSIENT: "SYSTEM_ERROR"}
PAGE_CEILING = 1000


def square(n):
    """A boundary of four corners, as GeoJSON has it."""
    x, y = 126 + (n % 20) / 10, 34 + (n // 20) / 10
    ring = [[x, y], [x + .1, y], [x + .1, y + .1], [x, y + .1], [x, y]]
    return {"type": "MultiPolygon",
            "coordinates": [[[[round(a, 3), round(b, 3)] for a, b in ring]]]}


# --- SGIS ---

def sgis_no(refusal):
    code = "-200" if refusal.code == "missing" else refusal.code or SGIS_ERR[refusal.kind]
    return of_json({"errCd": int(code), "errMsg": "검색결과가 존재하지 않습니다."
                    if code == "-100" else "오류", "id": "API", "trId": "", "result": None})


def sgis_yes(**fields):
    return of_json({"errCd": 0, "errMsg": "Success", "id": "API", "trId": "", **fields})


def token(_world, query, script):
    needed(query, "consumer_secret")
    return sgis_yes(result={"accessToken": script.new_token(),
                            "accessTimeout": str(script.token_ms)})


def check_token(query, script):
    if not script.is_token(query.get("accessToken", "")):
        raise Refusal(FATAL, "-401")


def household(world, query, script):
    check_token(query, script)
    year = needed(query, "year")
    if int(year) >= world.today().year:
        raise Refusal(NO_DATA)
    rows = []
    for code, name, province, _ in world.regions():
        if province == needed(query, "adm_cd"):
            dice = world.dice("household", year, code)
            rows.append({"adm_cd": code, "adm_nm": name,
                         "household_cnt": str(dice.randrange(5_000, 300_000)),
                         "family_member_cnt": str(dice.randrange(10_000, 700_000))})
    # A district that no list of regions knows.
    rows.append({"adm_cd": query["adm_cd"] + "999", "adm_nm": "옛구",
                 "household_cnt": "1", "family_member_cnt": "1"})
    return sgis_yes(result=script.ordered(rows))


def sgis_boundary(world, query, script):
    check_token(query, script)
    features = [{"type": "Feature", "geometry": square(n),
                 "properties": {"adm_cd": code, "adm_nm": f"{province} {name}"}}
                for n, (code, name, number, province) in enumerate(world.regions())
                if number == needed(query, "adm_cd")]
    if not features:
        raise Refusal(NO_DATA)
    return sgis_yes(type="FeatureCollection", features=script.ordered(features))


# --- V-World ---

def vworld_says(status, **fields):
    return of_json({"response": {
        "service": {"name": "data", "version": "2.0", "operation": "getfeature"},
        "status": status, **fields}})


def vworld_no(refusal):
    if refusal.kind == NO_DATA:
        return vworld_says("NOT_FOUND", record={"total": "0", "current": "0"},
                           page={"total": "0", "current": "0", "size": "0"})
    code = "PARAM_REQUIRED" if refusal.code == "missing" else \
        refusal.code or VWORLD_CODE[refusal.kind]
    return vworld_says("ERROR", error={"level": "1", "code": code, "text": "오류"})


def features(world, query, script):
    """A key is good only together with the domain that it was given to."""
    if query.get("request", "").lower() != "getfeature":
        raise Refusal(FATAL, "INVALID_RANGE")
    needed(query, "data")
    needed(query, "domain")
    number = whole(query, "page", 1)
    size = script.page_size(min(whole(query, "size", 10), PAGE_CEILING))
    found = [{"type": "Feature", "id": f"LT_C_ADSIGG_INFO.{n + 1}", "geometry": square(n),
              "properties": {"sig_cd": code, "sig_kor_nm": name, "sig_eng_nm": f"District {n}",
                             "full_nm": f"{province} {name}"}}
             for n, (code, name, _, province) in enumerate(world.regions())]
    rows, pages = page_of(script.ordered(found), number, size)
    if not rows:
        raise Refusal(NO_DATA)
    return vworld_says(
        "OK", record={"total": str(len(found)), "current": str(len(rows))},
        page={"total": str(pages), "current": str(number), "size": str(size)},
        result={"featureCollection": {"type": "FeatureCollection", "features": rows}})



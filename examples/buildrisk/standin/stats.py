"""KOSIS: unsold homes. R-ONE: price indices. Both answer with arrays."""

from standin.reply import FATAL, LIMIT, NO_DATA, TRANSIENT, Refusal, needed, of_json, \
    page_of, whole
from standin.world import PROVINCES, months_between

KOSIS_CELLS = 40_000  # more in one answer are refused
KOSIS_ERR = {NO_DATA: "30", LIMIT: "31", FATAL: "10", TRANSIENT: "20"}
KOSIS_TEXTS = {"10": "인증키가 누락되었습니다.", "11": "인증키 기간만료입니다.",
               "20": "필수요청변수 값이 누락되었습니다.", "30": "데이터가 존재하지 않습니다.",
               "31": "조회 결과가 초과하였습니다. (호출건수 40,000셀 제한)"}
RONE_SAMPLE = 5  # rows for who has no key
RONE_CODE = {NO_DATA: "INFO-200", LIMIT: "ERROR-337", FATAL: "ERROR-290",
             TRANSIENT: "ERROR-500"}


# --- KOSIS ---

def kosis_no(refusal):
    code = "20" if refusal.code == "missing" else refusal.code or KOSIS_ERR[refusal.kind]
    return of_json({"err": code, "errMsg": KOSIS_TEXTS.get(code, "오류")})


def unsold(world, query, script):
    """One row for each province and month, and the total (계). Some numbers are a dash."""
    if query.get("prdSe") != "M" or not query.get("itmId") or not query.get("objL1"):
        raise Refusal(TRANSIENT, "20")
    last = min(needed(query, "endPrdDe"), world.today().strftime("%Y%m"))
    months = months_between(needed(query, "startPrdDe"), last)
    places = (("00", "계"), *PROVINCES)
    if len(months) * len(places) > KOSIS_CELLS:
        raise Refusal(LIMIT)
    rows = []
    for month in months:
        for code, name in places:
            dice = world.dice("unsold", month, code)
            amount = "-" if code == "29" and dice.randrange(3) == 0 \
                else str(dice.randrange(20_000))
            rows.append({"ORG_ID": query.get("orgId", ""), "TBL_ID": query.get("tblId", ""),
                         "PRD_SE": "M", "PRD_DE": month, "C1": f"13102128{code}",
                         "C1_NM": name, "C1_OBJ_NM": "시도별", "ITM_ID": query["itmId"],
                         "ITM_NM": "미분양현황", "UNIT_NM": "호", "DT": amount})
    if not rows:
        raise Refusal(NO_DATA)
    return of_json(script.ordered(rows))


# --- R-ONE ---

def rone_no(refusal):
    code = "ERROR-300" if refusal.code == "missing" else \
        refusal.code or RONE_CODE[refusal.kind]
    return of_json({"RESULT": {"CODE": code, "MESSAGE": "해당하는 데이터가 없습니다."
                               if code == "INFO-200" else "오류"}})


def index_rows(world, table, month):
    """One in five rows has no name: those are for nobody."""
    if month > world.today().strftime("%Y%m"):
        return []
    rows = []
    for n, (code, name, _, province) in enumerate(world.regions()):
        dice = world.dice("index", table, month, code)
        nameless = n % 5 == 4
        rows.append({"STATBL_ID": table, "DTACYCLE_CD": "MM", "WRTTIME_IDTFR_ID": month,
                     "CLS_ID": 500_000 + n, "CLS_NM": None if nameless else name,
                     "CLS_FULLNM": None if nameless else f"{province}>{name}",
                     "ITM_ID": 100_001, "ITM_NM": "지수",
                     "DTA_VAL": round(dice.uniform(80, 120), 5), "UI_NM": None})
    return rows


def index(world, query, script):
    table, month = needed(query, "STATBL_ID"), needed(query, "WRTTIME_IDTFR_ID")
    found = script.ordered(index_rows(world, table, month))
    if not query.get("KEY"):
        found = found[:RONE_SAMPLE]
    number = whole(query, "pIndex", 1)
    size = script.page_size(min(whole(query, "pSize", 100), 1000))
    rows, _ = page_of(found, number, size)
    if not rows:
        raise Refusal(NO_DATA)
    return of_json({"SttsApiTblData": [
        {"head": [{"list_total_count": len(found)},
                  {"RESULT": {"CODE": "INFO-000", "MESSAGE": "정상 처리되었습니다."}}]},
        {"row": rows}]})

"""data.go.kr: apartment trades (XML) and stock prices (JSON) behind one gateway."""

import datetime
from xml.sax.saxutils import escape

from standin.reply import FATAL, LIMIT, NO_DATA, TRANSIENT, Refusal, Reply, needed, \
    of_json, of_xml, page_of, whole

# Where nothing was found the answer is a good one with a totalCount of 0.
REASON = {LIMIT: "22", FATAL: "30", TRANSIENT: "01", NO_DATA: "03"}
TEXTS = {
    "01": "APPLICATION_ERROR", "03": "NODATA_ERROR", "20": "SERVICE_ACCESS_DENIED_ERROR",
    "22": "LIMITED_NUMBER_OF_SERVICE_REQUESTS_EXCEEDS_ERROR",
    "30": "SERVICE_KEY_IS_NOT_REGISTERED_ERROR", "31": "DEADLINE_HAS_EXPIRED_ERROR",
    "32": "UNREGISTERED_IP_ERROR", "33": "UNSIGNED_CALL_ERROR",
}


def say_no(refusal):
    """The gateway speaks XML, whatever was asked for; with HTTP's numbers only a line."""
    code = "10" if refusal.code == "missing" else refusal.code or REASON[refusal.kind]
    if code in ("401", "403", "429"):
        return Reply({"401": b"Unauthorized", "403": b"Forbidden",
                      "429": b"API rate limit exceeded"}[code], "text/plain", int(code))
    return of_xml("<OpenAPI_ServiceResponse><cmmMsgHeader><errMsg>SERVICE ERROR</errMsg>"
                  f"<returnAuthMsg>{TEXTS.get(code, 'UNKNOWN_ERROR')}</returnAuthMsg>"
                  f"<returnReasonCode>{code}</returnReasonCode></cmmMsgHeader>"
                  "</OpenAPI_ServiceResponse>")


# --- apartment trades ---

def trades_of(world, district, month):
    """One in ten cells is empty; each has its own number of trades."""
    dice = world.dice("trade", district, month)
    if month > world.today().strftime("%Y%m") or dice.randrange(10) == 0:
        return []
    found = []
    for n in range(dice.randint(1, 2 * world.size.trades)):
        cancelled = dice.randrange(12) == 0
        day = dice.randint(1, 28)
        found.append({
            "aptNm": f"{world.name(dice, 2)}아파트 <{n}>", "aptSeq": f"{district}-{n}",
            "buildYear": str(dice.randint(1975, 2024)),
            "cdealDay": f"{month[2:4]}.{month[4:]}.{day:02d}" if cancelled else " ",
            "cdealType": "O" if cancelled else " ",
            "dealAmount": f"{dice.randrange(8_000, 300_000):,}", "dealDay": str(day),
            "dealMonth": str(int(month[4:])), "dealYear": month[:4],
            "excluUseAr": f"{dice.randrange(3000, 15000) / 100:.2f}",
            "floor": str(dice.randint(-1, 40)), "jibun": str(dice.randint(1, 999)),
            "sggCd": district, "umdNm": world.name(dice, 2) + "동"})
    return found


def trades(world, query, script):
    district, month = needed(query, "LAWD_CD"), needed(query, "DEAL_YMD")
    number = whole(query, "pageNo", 1)
    size = script.page_size(whole(query, "numOfRows", 10))
    found = script.ordered(trades_of(world, district, month))
    rows, _ = page_of(found, number, size)
    items = "".join("<item>" + "".join(f"<{k}>{escape(v)}</{k}>" for k, v in row.items())
                    + "</item>" for row in rows)
    return of_xml("<response><header><resultCode>000</resultCode><resultMsg>OK</resultMsg>"
                  f"</header><body><items>{items}</items><numOfRows>{size}</numOfRows>"
                  f"<pageNo>{number}</pageNo><totalCount>{len(found)}</totalCount></body>"
                  "</response>")


# --- stock prices ---

def prices_of(world, n, first, end):
    """Each weekday from first to the one before end, none after today."""
    code = world.stock_code(n)
    found = []
    day = first
    while day < end and day <= world.today():
        if day.weekday() < 5:
            dice = world.dice("price", n, day)
            close = dice.randrange(1_000, 200_000, 10)
            found.append({"basDt": f"{day:%Y%m%d}", "srtnCd": code, "isinCd": f"KR7{code}003",
                          "itmsNm": world.corp(n)["corp_name"],
                          "mrktCtg": "KOSPI" if n % 2 == 0 else "KOSDAQ", "clpr": str(close),
                          "vs": str(dice.randint(-900, 900)), "fltRt": f"{dice.uniform(-5, 5):.2f}",
                          "mkp": str(close), "hipr": str(close + 500), "lopr": str(close - 500),
                          "trqu": str(dice.randrange(10**7)), "trPrc": str(dice.randrange(10**10)),
                          "lstgStCnt": "10000000", "mrktTotAmt": str(close * 10_000_000)})
        day += datetime.timedelta(days=1)
    return found[::-1]


def prices(world, query, script):
    """likeSrtnCd may be a part of a code: then all stocks that have it are in the answer."""
    part = needed(query, "likeSrtnCd")
    first, end = (datetime.datetime.strptime(needed(query, name), "%Y%m%d").date()
                  for name in ("beginBasDt", "endBasDt"))
    if query.get("resultType") != "json":
        raise Refusal(TRANSIENT, "04")
    if world.stock_number(part) is not None:
        numbers = [world.stock_number(part)]
    else:
        numbers = [n for n in range(world.size.listed) if part in world.stock_code(n)]
    found = script.ordered([row for n in numbers for row in prices_of(world, n, first, end)])
    number = whole(query, "pageNo", 1)
    size = script.page_size(whole(query, "numOfRows", 10))
    rows, _ = page_of(found, number, size)
    # None is an empty text, one is an object, more are an array.
    items = {"item": rows[0] if len(rows) == 1 else rows} if rows else ""
    return of_json({"response": {
        "header": {"resultCode": "00", "resultMsg": "NORMAL SERVICE."},
        "body": {"numOfRows": size, "pageNo": number, "totalCount": len(found),
                 "items": items}}})

"""DART: companies, financial statements, lists of filings. Status in each answer."""

import datetime

from standin.reply import FATAL, LIMIT, NO_DATA, TRANSIENT, Refusal, needed, of_json, page_of, \
    whole

STATUS = {NO_DATA: "013", LIMIT: "020", FATAL: "010", TRANSIENT: "800"}
MESSAGES = {
    "000": "정상", "010": "등록되지 않은 키입니다.", "011": "사용할 수 없는 키입니다.",
    "012": "접근할 수 없는 IP입니다.", "013": "조회된 데이타가 없습니다.",
    "014": "파일이 존재하지 않습니다.", "020": "요청 제한을 초과하였습니다.",
    "021": "조회 가능한 회사 개수가 초과하였습니다.", "100": "필드의 부적절한 값입니다.",
    "101": "부적절한 접근입니다.", "800": "시스템 점검으로 인한 서비스가 중지 중입니다.",
    "901": "사용자 계정의 개인정보 보유기간이 만료되었습니다.",
}
REPORTS = ("11013", "11012", "11014", "11011")
FILINGS = ("단일판매ㆍ공급계약체결", "타인에대한채무보증결정", "분기보고서", "사업보고서",
           "주요사항보고서(유상증자결정)", "[기재정정]단일판매ㆍ공급계약체결")
ACCOUNTS = (("BS", "ifrs-full_Assets", "자산총계"), ("BS", "ifrs-full_Liabilities", "부채총계"),
            ("BS", "ifrs-full_Equity", "자본총계"), ("IS", "ifrs-full_Revenue", "매출액"),
            ("IS", "dart_OperatingIncomeLoss", "영업이익"), ("IS", "ifrs-full_ProfitLoss", "당기순이익"))


def code_of(refusal):
    code = refusal.code
    return "100" if code == "missing" else code or STATUS[refusal.kind]


def say_no(refusal):
    code = code_of(refusal)
    return of_json({"status": code, "message": MESSAGES.get(code, "정의되지 않은 오류")})


def yes(**fields):
    return of_json({"status": "000", "message": MESSAGES["000"], **fields})


def number_of(world, query):
    n = world.corp_number(needed(query, "corp_code"))
    if n is None:
        raise Refusal(NO_DATA)
    return n


def company(world, query, _script):
    """Every tenth that is not listed has no profile."""
    n = number_of(world, query)
    if n >= world.size.listed and n % 10 == 9:
        raise Refusal(NO_DATA)
    corp = world.corp(n)
    dice = world.dice("company", n)
    listed = n < world.size.listed
    market = ("Y" if n % 2 == 0 else "K") if listed else "E"
    industry = ("41221" if n % 2 == 0 else "42121") if world.is_builder(n) else "26110"
    return yes(corp_code=corp["corp_code"], corp_name=corp["corp_name"],
               corp_name_eng=corp["corp_eng_name"], stock_name=corp["corp_name"],
               stock_code=corp["stock_code"], ceo_nm=world.name(dice), corp_cls=market,
               jurir_no=f"{dice.randrange(10**13):013d}", bizr_no=f"{dice.randrange(10**10):010d}",
               adres="서울특별시 중구", hm_url="", ir_url="", phn_no="02-0000-0000", fax_no="",
               induty_code=industry, est_dt="19700101", acc_mt="12")


def has_statement(world, n, year, division):
    """
    Of every sixth there is none for the group (CFS), only the company's own (OFS); and of
    every fifth year of each there is none at all.
    """
    if (n + int(year)) % 5 == 4 or int(year) > world.today().year:
        return False
    return division == "OFS" or n % 6 != 3


def statement(world, query, _script):
    n = number_of(world, query)
    year, report = needed(query, "bsns_year"), needed(query, "reprt_code")
    division = needed(query, "fs_div")
    if report not in REPORTS or division not in ("CFS", "OFS"):
        raise Refusal(FATAL, "100")
    if not has_statement(world, n, year, division):
        raise Refusal(NO_DATA)
    rows = []
    for at in range(world.size.accounts):
        part, account, label = ACCOUNTS[at % len(ACCOUNTS)]
        dice = world.dice("account", n, year, report, division, at)
        detail = "-" if at < len(ACCOUNTS) else f"구성요소 {at // len(ACCOUNTS)}"
        rows.append({"rcept_no": f"{year}0515{n:06d}", "reprt_code": report, "bsns_year": year,
                     "corp_code": world.corp_code(n), "sj_div": part, "sj_nm": part,
                     "account_id": account, "account_nm": label, "account_detail": detail,
                     "thstrm_nm": "당기", "thstrm_amount": str(dice.randrange(1, 10**12)),
                     # Blank where there was no such account a year before.
                     "frmtrm_amount": "" if at % 4 == 3 else str(dice.randrange(10**12)),
                     "ord": str(at + 1), "currency": "KRW"})
    return yes(list=rows)


def filings_of(world, n, first, last):
    """Newest first."""
    found = []
    day = last
    while day >= first:
        dice = world.dice("filing", n, day)
        if dice.random() < world.size.filings:
            found.append({"corp_code": world.corp_code(n), "corp_name": world.corp(n)["corp_name"],
                          "stock_code": world.stock_code(n), "corp_cls": "YK"[n % 2],
                          "report_nm": dice.choice(FILINGS), "flr_nm": world.corp(n)["corp_name"],
                          "rcept_no": f"{day:%Y%m%d}{n:06d}", "rcept_dt": f"{day:%Y%m%d}",
                          "rm": ""})
        day -= datetime.timedelta(days=1)
    return found


def filings(world, query, script):
    n = number_of(world, query)
    first, last = (datetime.datetime.strptime(needed(query, name), "%Y%m%d").date()
                   for name in ("bgn_de", "end_de"))
    number = whole(query, "page_no", 1)
    size = script.page_size(min(whole(query, "page_count", 10), 100))
    found = script.ordered(filings_of(world, n, first, min(last, world.today())))
    if not found:
        raise Refusal(NO_DATA)
    rows, pages = page_of(found, number, size)
    return yes(page_no=number, page_count=size, total_count=len(found), total_page=pages,
               list=rows)

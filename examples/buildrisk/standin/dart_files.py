"""DART: the file of all corporations, and filings as they were handed in. Zips."""

import io
import zipfile
from xml.sax.saxutils import escape

from standin.dart import MESSAGES, code_of
from standin.reply import NO_DATA, Refusal, Reply, needed, of_xml

# A fixed time: the same file has the same bytes.
LONG_AGO = (2026, 1, 1, 0, 0, 0)


def say_no(refusal):
    """Where a zip was expected the refusal comes as XML."""
    code = code_of(refusal)
    message = MESSAGES.get(code, "정의되지 않은 오류")
    return of_xml(f"<result><status>{code}</status><message>{message}</message></result>")


def zip_of(name, content):
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo(name, LONG_AGO), content,
                         compress_type=zipfile.ZIP_DEFLATED)
    return Reply(body.getvalue(), "application/x-msdownload",
                 headers=(("Content-Disposition", f'attachment; filename="{name}.zip"'),))


def element(corp):
    # A corporation that is not listed has a blank there, not nothing.
    values = {**corp, "stock_code": corp["stock_code"] or " "}
    inner = "".join(f"<{name}>{escape(value)}</{name}>" for name, value in values.items())
    return f"<list>{inner}</list>\n"


def all_corps(world, _query, script):
    rows = script.ordered([world.corp(n) for n in range(world.size.corps)])
    # Lines that nobody can use, as many as were asked for, spread over the file.
    for n in range(script.broken):
        at = n * len(rows) // script.broken
        rows.insert(at, {**rows[at], "corp_code": f"12{n:03d}", "corp_name": f"못쓸 {n}"})
    text = "".join(map(element, rows))
    return zip_of("CORPCODE.xml",
                  f'<?xml version="1.0" encoding="UTF-8"?>\n<result>\n{text}</result>\n'.encode())


def document(world, query, _script):
    """
    A filing of a day that leaves 0 by 4 is lost (014). Odd days are MS949, even ones UTF-8.
    """
    receipt = needed(query, "rcept_no")
    n = world.corp_number(world.corp_code(int(receipt[8:]))) if receipt.isdigit() else None
    if n is None or len(receipt) != 14:
        raise Refusal(NO_DATA)
    day = int(receipt[6:8])
    if day % 4 == 0:
        raise Refusal(NO_DATA, "014")
    dice = world.dice("document", receipt)
    amount, sales = dice.randrange(10**9, 10**11), dice.randrange(10**10, 10**12)
    charset = "euc-kr" if day % 2 else "utf-8"
    # One in three does not tell the amount: parsing it fails, and the job goes on.
    told = "해당사항 없음" if dice.randrange(3) == 0 else f"{amount:,}"
    page = f"""<html><head><meta http-equiv="Content-Type" content="text/html; charset={charset}">
<title>{world.corp(n)['corp_name']}</title></head><body><table>
<tr><td>계약금액(원)</td><td>{told}</td></tr>
<tr><td>최근매출액(원)</td><td>{sales:,}</td></tr>
<tr><td>계약상대</td><td>{world.name(dice)}공사 &amp; 조합</td></tr>
</table></body></html>
"""
    return zip_of(f"{receipt}.xml", page.encode("cp949" if day % 2 else "utf-8"))

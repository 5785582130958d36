"""
The data behind all services: made from a seed, so the same question has the same answer
whenever and however often it is asked.

A corporation has a number from 0 on. Which of them are listed, build, or have reports is
told by that number, so that a test can say what must come out.
"""

import dataclasses
import datetime
import random
import zoneinfo

SEOUL = zoneinfo.ZoneInfo("Asia/Seoul")


@dataclasses.dataclass(frozen=True)
class Size:
    corps: int  # in the file of all corporations
    listed: int  # the first so many have a stock code
    builders: int  # of the listed ones each so-manieth builds
    trades: int  # in one district and month, about
    accounts: int  # lines of one financial statement
    regions: int  # districts with a boundary
    filings: float  # of one corporation on one day, on average


SIZES = {
    "small": Size(corps=40, listed=12, builders=3, trades=3, accounts=6, regions=6,
                  filings=0.02),
    "typical": Size(corps=119_447, listed=3_994, builders=93, trades=172, accounts=180,
                    regions=250, filings=0.05),
}

PROVINCES = (("11", "서울"), ("21", "부산"), ("22", "대구"), ("23", "인천"), ("24", "광주"),
             ("25", "대전"), ("26", "울산"), ("29", "세종"), ("31", "경기"), ("32", "강원"),
             ("33", "충북"), ("34", "충남"), ("35", "전북"), ("36", "전남"), ("37", "경북"),
             ("38", "경남"), ("39", "제주"))
SYLLABLES = "가나다라마바사아자차카타파하건대우현산림동서남북중성호진태영한신세일명화정도원경"


class World:
    def __init__(self, seed="buildrisk", size="small", day=None):
        self.seed = seed
        self.size = SIZES[size]
        self.fixed_day = day and datetime.date.fromisoformat(day)

    def today(self):
        return self.fixed_day or datetime.datetime.now(SEOUL).date()

    def dice(self, *words):
        """Chance that hangs on the seed and these words alone."""
        return random.Random(":".join(map(str, (self.seed, *words))))

    def name(self, dice, length=3):
        return "".join(dice.choice(SYLLABLES) for _ in range(length))

    # --- corporations ---

    def corp_code(self, n):
        return f"{100_000 + 7 * n:08d}"

    def corp_number(self, code):
        """None when there is no such corporation."""
        if not (code.isdigit() and len(code) == 8):
            return None
        n, rest = divmod(int(code) - 100_000, 7)
        return n if rest == 0 and 0 <= n < self.size.corps else None

    def stock_code(self, n):
        return f"{10 * (n + 1):06d}" if n < self.size.listed else ""

    def stock_number(self, code):
        n = int(code) // 10 - 1 if code.isdigit() else -1
        return n if 0 <= n < self.size.listed and self.stock_code(n) == code else None

    def is_builder(self, n):
        """Industry 41 or 421."""
        return n % self.size.builders == 0

    def corp(self, n):
        dice = self.dice("corp", n)
        name = self.name(dice) + ("건설" if self.is_builder(n) else "산업")
        changed = datetime.date(2024, 1, 1) + datetime.timedelta(days=dice.randrange(600))
        return {"corp_code": self.corp_code(n), "corp_name": name,
                "corp_eng_name": f"Corporation {n} & Co.", "stock_code": self.stock_code(n),
                "modify_date": changed.strftime("%Y%m%d")}

    # --- regions: 5 digits, of which the first 2 are the province ---

    def regions(self):
        """(code, name, province code, province name)"""
        found = []
        for n in range(self.size.regions):
            code, province = PROVINCES[n % len(PROVINCES)]
            dice = self.dice("region", n)
            name = self.name(dice, 2) + dice.choice("구시군")
            found.append((f"{code}{110 + 30 * (n // len(PROVINCES)):03d}", name, code, province))
        return found


def months_between(first, last):
    """yyyymm texts, both ends included."""
    year, month = int(first[:4]), int(first[4:6])
    found = []
    while f"{year:04d}{month:02d}" <= last:
        found.append(f"{year:04d}{month:02d}")
        year, month = (year, month + 1) if month < 12 else (year + 1, 1)
    return found

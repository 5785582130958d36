"""Every cell arrives as it was: texts, exact numbers, dates and NULLs, in each format."""

import datetime
import decimal

import flow_cells as cells
from pawl_env import read_csv, read_jsonl, read_xlsx

HEAD = ["id", "label", "whole", "amount", "day", "moment", "long_amount"]


def export(site, form):
    request_id = site.submit_id("cells", format=form)
    request = site.wait_done(request_id)
    assert request["result"]["rows"] == len(cells.TEXTS)
    return site.result(request_id)


def same_number(text, expected):
    """Equal in value: 0.10 is 0.1."""
    if expected is None:
        return text is None or text == ""
    return text is not None and decimal.Decimal(text) == decimal.Decimal(str(expected))


def same_moment(text, expected):
    """2026-11-29T20:00:01.25 is 20:00:01.250000."""
    day, _, clock = text.partition("T")
    whole, _, fraction = clock.partition(".")
    return f"{day} {whole}.{fraction.ljust(6, '0')}" == expected


def test_B8_jsonl_has_every_cell(site):
    got = read_jsonl(export(site, "jsonl"))
    assert [list(row) for row in got] == [HEAD] * len(cells.TEXTS)
    for row, (n, label, whole, amount, day, moment) in zip(got, cells.rows()):
        assert row["id"] == str(n)
        assert row["label"] == label
        assert row["whole"] == (None if whole is None else str(whole))
        assert same_number(row["amount"], amount), row
        assert row["day"] == day
        assert (row["moment"] is None) == (moment is None)
        assert moment is None or same_moment(row["moment"], moment), row
        assert same_number(row["long_amount"], cells.LONG_DECIMAL)


def test_B8_csv_has_every_cell_and_no_formula(site):
    got = read_csv(export(site, "csv"))
    assert got[0] == HEAD
    assert len(got) == len(cells.TEXTS) + 1
    for row, (n, label, whole, amount, day, _) in zip(got[1:], cells.rows()):
        guarded = "'" + label if label and label[0] in "=+-@\t" else label or ""
        assert row[:3] == [str(n), guarded, "" if whole is None else str(whole)]
        assert same_number(row[3], amount), row
        assert row[4] == (day or "")
        assert same_number(row[6], cells.LONG_DECIMAL)


def test_B8_csv_tells_null_from_the_empty_text(site):
    lines = export(site, "csv").decode().split("\r\n")
    empty, null = lines[-3], lines[-2]
    assert empty.startswith('14,"",')
    assert null.startswith("15,,")


def serial(day):
    return (datetime.date.fromisoformat(day) - datetime.date(1899, 12, 30)).days


def check_moment(cell, moment):
    whole_days, part = divmod(decimal.Decimal(cell[1]), 1)
    at = datetime.datetime.fromisoformat(moment)
    midnight = at.replace(hour=0, minute=0, second=0, microsecond=0)
    off = part * 86400 - decimal.Decimal((at - midnight).total_seconds())
    assert cell[0] == "d" and whole_days == serial(moment[:10])
    assert abs(off) < decimal.Decimal("0.001")


def test_B8_xlsx_has_every_cell_and_no_formula(site):
    got = read_xlsx(export(site, "xlsx"))
    assert [text for _, text in got[0].values()] == HEAD
    assert len(got) == len(cells.TEXTS) + 1
    for row, (n, label, whole, amount, day, moment) in zip(got[1:], cells.rows()):
        assert row["A"] == ("n", str(n))
        assert row.get("B") == (None if label is None else ("s", label))
        # Beyond 15 digits a workbook's number would be rounded: then it is a text.
        assert row.get("C") == (None if whole is None else
                                ("n" if abs(whole) < 10 ** 15 else "s", str(whole)))
        assert ("D" in row) == (amount is not None)
        assert amount is None or row["D"][0] == "n" and same_number(row["D"][1], amount)
        assert row.get("E") == (("d", str(serial(day))) if day else None)
        assert ("F" in row) == (moment is not None)
        if moment:
            check_moment(row["F"], moment)
        assert row["G"][0] == "s" and same_number(row["G"][1], cells.LONG_DECIMAL)


def test_B8_the_name_of_a_result_may_be_korean(site):
    request_id = site.submit_id("cells", format="csv")
    request = site.wait_done(request_id)
    assert request["result"]["name"] == "셀 csv.csv"
    disposition = site.download(request_id, method="HEAD").headers["Content-Disposition"]
    assert "filename*=UTF-8''%EC%85%80%20csv.csv" in disposition

"""An answer, and the ways in which a service says no."""

import dataclasses
import json

NO_DATA, LIMIT, FATAL, TRANSIENT = "no_data", "limit", "fatal", "transient"


@dataclasses.dataclass
class Reply:
    body: bytes
    content_type: str = "application/json;charset=UTF-8"
    status: int = 200
    cut: bool = False  # half of the body, then the connection closes
    headers: tuple = ()


class Refusal(Exception):
    """What a handler raises to say no; its service puts it into its own words."""

    def __init__(self, kind, code=None):
        super().__init__(kind, code)
        self.kind = kind
        self.code = code


def of_json(value, status=200):
    return Reply(json.dumps(value, ensure_ascii=False).encode(), status=status)


def of_xml(text, status=200):
    head = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
    return Reply((head + text).encode(), "application/xml;charset=UTF-8", status)


def of_html(text, status=200):
    body = f"<!DOCTYPE html><html><head><title>{text}</title></head><body>{text}</body></html>"
    return Reply(body.encode(), "text/html;charset=UTF-8", status)


def needed(query, name):
    """A parameter that a call cannot do without."""
    value = query.get(name, "")
    if value == "":
        raise Refusal(FATAL, "missing")
    return value


def whole(query, name, otherwise):
    text = query.get(name, "")
    return int(text) if text.isdigit() else otherwise


def page_of(rows, number, size):
    """Rows of page 1, 2, …; and the number of pages, at least one."""
    size = max(size, 1)
    pages = max((len(rows) + size - 1) // size, 1)
    return rows[(number - 1) * size:number * size] if number > 0 else [], pages

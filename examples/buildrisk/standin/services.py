"""
The services and their paths. To add one: a row in PATHS, a handler, and if it is of a
new service a row in SERVICES.
"""

import dataclasses
from typing import Callable

from standin import dart, dart_files, datagokr, maps, stats


@dataclasses.dataclass(frozen=True)
class Service:
    key: str  # the parameter with the caller's key
    bad_key: str  # what it says when the key is missing or no good


@dataclasses.dataclass(frozen=True)
class Route:
    service: str
    answer: Callable  # (world, query, script) -> Reply
    say_no: Callable  # (Refusal) -> Reply


SERVICES = {
    "dart": Service("crtfc_key", "010"),
    "rtms": Service("serviceKey", "30"),
    "fsc": Service("serviceKey", "30"),
    "kosis": Service("apiKey", "11"),
    "rone": Service("KEY", "ERROR-290"),
    "sgis": Service("consumer_key", "-401"),
    "vworld": Service("key", "INCORRECT_KEY"),
}

RTMS = "/1613000/RTMSDataSvcAptTradeDev/getRTMSDataSvcAptTradeDev"
FSC = "/1160100/service/GetStockSecuritiesInfoService/getStockPriceInfo"
PATHS = {
    "/api/company.json": Route("dart", dart.company, dart.say_no),
    "/api/fnlttSinglAcntAll.json": Route("dart", dart.statement, dart.say_no),
    "/api/list.json": Route("dart", dart.filings, dart.say_no),
    "/api/corpCode.xml": Route("dart", dart_files.all_corps, dart_files.say_no),
    "/api/document.xml": Route("dart", dart_files.document, dart_files.say_no),
    RTMS: Route("rtms", datagokr.trades, datagokr.say_no),
    FSC: Route("fsc", datagokr.prices, datagokr.say_no),
    "/openapi/Param/statisticsParameterData.do": Route("kosis", stats.unsold, stats.kosis_no),
    "/r-one/openapi/SttsApiTblData.do": Route("rone", stats.index, stats.rone_no),
    "/OpenAPI3/auth/authentication.json": Route("sgis", maps.token, maps.sgis_no),
    "/OpenAPI3/stats/household.json": Route("sgis", maps.household, maps.sgis_no),
    "/OpenAPI3/boundary/hadmarea.geojson": Route("sgis", maps.sgis_boundary, maps.sgis_no),
    "/req/data": Route("vworld", maps.features, maps.vworld_no),
}


def key_of(route, query):
    """
    The caller's key, and is it good? Any is, but one that begins with `bad`. R-ONE takes
    callers without one; SGIS wants it for the token only.
    """
    name = SERVICES[route.service].key
    key = query.get(name) or query.get("accessToken", "")
    if route.service == "rone" or (route.service == "sgis" and "accessToken" in query):
        return key, not key.startswith("bad")
    return key, key != "" and not key.startswith("bad")


def item_of(route, path, query):
    """What was asked for, without who asks."""
    secret = {SERVICES[route.service].key, "accessToken", "consumer_secret"}
    words = [f"{name}={query[name]}" for name in sorted(query) if name not in secret]
    return " ".join([path.rsplit("/", 1)[1], *words])

"""What the owner may want to declare of a column, by its name and type: a first idea, for people to correct."""

from __future__ import annotations

import re

from discreet.query.declared import family

__all__ = ["suggestion"]


def _words(*words: str) -> re.Pattern[str]:
    """A name of which one part, between capitals, underscores, spaces or digits, is one of these words."""
    return re.compile(rf"(?:^|[ _-])(?:{'|'.join(words)})(?:$|[ _-])")


_PERSONAL = _words(
    "e ?mail", "mail", "phone", "mobile", "fax", "(?:first|last|sur|full|birth|user|nick|given|family)_?name", "ssn",
    "iban", "address", "street", "passport", "licen[cs]e", "password", "ip", "lat", "lon",
    "lng", "latitude", "longitude",
)  # fmt: skip
_FREE = _words(
    "comment", "comments", "note", "notes", "text", "description", "message", "url", "link", "title", "remark", "memo",
    "body", "subject", "token", "hash",
)  # fmt: skip
_IDENTITY = _words("id", "ids", "uuid", "guid", "key", "nr", "no", "number", "ref", "reference")
_MOMENT = _words("time", "timestamp", "datetime", "at", "ts")
_DATE = _words("date", "day", "dob", "born", "birth", "birthday", "on", "since", "until")
_FLAG = _words("is", "has", "was", "flag", "active", "enabled", "deleted", "true")
_WHOLE = _words(
    "age", "count", "n", "num", "qty", "quantity", "items", "visits", "year", "month", "week", "weekday", "hour",
    "minute", "days", "children", "rank", "floor", "rooms",
)  # fmt: skip
_REAL = _words(
    "amount", "price", "cost", "spend", "spent", "paid", "fee", "tax", "total", "sum", "balance", "income", "salary",
    "wage", "revenue", "rate", "ratio", "percent", "score", "height", "weight", "width", "length", "distance",
    "duration", "delay", "hours", "minutes", "seconds", "size", "speed", "temperature", "value", "bmi", "dose",
    "discount", "volume", "mean", "average",
)  # fmt: skip
_CATEGORY = _words(
    "city", "country", "region", "state", "county", "district", "zip", "postcode", "sex", "gender", "category", "type",
    "kind", "status", "level", "class", "group", "segment", "department", "dept", "team", "role", "job", "occupation",
    "education", "marital", "race", "religion", "language", "lang", "currency", "channel", "device", "browser", "os",
    "platform", "source", "medium", "campaign", "brand", "model", "product", "plan", "tier", "grade", "colou?r",
    "carrier", "origin", "dest", "destination", "diagnosis", "ward", "method", "reason", "result", "outcome", "code",
    "mode",
)  # fmt: skip
_PLACES = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Za-z])(?=[0-9])")

_BOUNDS, _KEYS = "bounds = [..., ...]", 'keys = ["...", "..."]'


def suggestion(column: str, kind: str | None) -> tuple[str, str]:
    """Fields to declare, and a remark; `kind` is the DuckDB type, or None where the file has no types.

    >>> suggestion("signupDate", None)
    ('type = "DATE", bounds = [..., ...]', '')
    >>> suggestion("city", "VARCHAR")
    ('keys = ["...", "..."]', '')
    """
    name = _PLACES.sub("_", column).lower()
    if _PERSONAL.search(name) or name in ("name", "email"):
        return "hidden = true", "it may name a person"
    if kind is None:
        return _untyped(name)
    what = family(kind)
    if what in ("uuid", "other"):
        return "hidden = true", ""
    if what == "boolean":
        return "keys = [false, true]", ""
    if what == "text":
        return ("hidden = true", "free text") if _FREE.search(name) else _named(name, _KEYS)
    if what == "integer":
        return _named(name, _BOUNDS)
    return _BOUNDS, ""


def _named(name: str, fields: str) -> tuple[str, str]:
    """The fields, unless the name says that the values identify something."""
    is_identity = _IDENTITY.search(_last(name)) and not _CATEGORY.search(name)
    return ("hidden = true", "it identifies something; nobody groups by it") if is_identity else (fields, "")


def _last(name: str) -> str:
    """What a name ends with says most: unit_price is a price."""
    return re.split(r"[ _-]", name)[-1]


def _untyped(name: str) -> tuple[str, str]:
    if _FREE.search(name):
        return "hidden = true", "free text"
    kinds = (
        (_FLAG, 'type = "BOOLEAN"'),
        (_MOMENT, f'type = "TIMESTAMP", {_BOUNDS}'),
        (_DATE, f'type = "DATE", {_BOUNDS}'),
        (_CATEGORY, f'type = "VARCHAR", {_KEYS}'),
        (_WHOLE, f'type = "BIGINT", {_BOUNDS}'),
        (_REAL, f'type = "DOUBLE", {_BOUNDS}'),
        (_IDENTITY, "hidden = true"),
    )
    for part in (_last(name), name):
        for words, fields in kinds:
            if words.search(part):
                return fields, "it identifies something; nobody groups by it" if words is _IDENTITY else ""
    return 'type = "..."', "and bounds if it is a number or a date, keys if it is one of a few words"

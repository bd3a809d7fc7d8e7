"""How often a budget begins again, as people write it."""

from __future__ import annotations

import re
from datetime import timedelta

from discreet.errors import InvalidArgument

__all__ = ["period_of"]

_UNITS = {"hour": "hours", "h": "hours", "day": "days", "d": "days", "week": "weeks", "w": "weeks"}


def period_of(text: str) -> timedelta:
    """The length of time that a text says: "30 days", "12 hours", "4 weeks", or 30d, 12h, 4w.

    >>> period_of("4 weeks")
    datetime.timedelta(days=28)
    """
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-z]+?)s?\s*", text.lower())
    if found is None or found[2] not in _UNITS:
        raise InvalidArgument("period", text, "write a length of time: '30 days', '12 hours' or '4 weeks'")
    try:
        length = timedelta(**{_UNITS[found[2]]: float(found[1])})
    except OverflowError:
        raise InvalidArgument("period", text, "this is too long: leave it out for a budget that lasts") from None
    if length <= timedelta(0):
        raise InvalidArgument("period", text, "this is no time at all: leave it out for a budget that lasts")
    return length

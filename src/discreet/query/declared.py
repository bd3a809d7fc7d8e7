"""Values that a policy declares about a column: in the column's own type, or refused."""

from __future__ import annotations

import datetime as dt
import math
import re
import uuid
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["bounds_of", "family", "identifies", "keys_of", "never_identifies"]

_BITS = {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64, "HUGEINT": 128}
_INTEGERS = {name: (-(1 << bits - 1), (1 << bits - 1) - 1) for name, bits in _BITS.items()} | {
    f"U{name}": (0, (1 << bits) - 1) for name, bits in _BITS.items()
}
_FLOAT_BITS = 1023
_WRITTEN_DAY = re.compile(r"\d{4}-?\d{2}-?\d{2}")
_DAY = dt.timedelta(days=1) - dt.timedelta(microseconds=1)
_DECIMAL = re.compile(r"DECIMAL\((\d+),(\d+)\)")


def family(sql_type: str) -> str:
    """The family of a DuckDB type: integer, float, decimal, text, boolean, date, timestamp, zoned, uuid, or other."""
    if sql_type in _INTEGERS:
        return "integer"
    if _DECIMAL.fullmatch(sql_type):
        return "decimal"
    if sql_type == "VARCHAR":
        return "text"
    if sql_type in ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"):
        return "timestamp"
    simple = {"FLOAT": "float", "DOUBLE": "float", "BOOLEAN": "boolean", "DATE": "date", "UUID": "uuid"}
    return {**simple, "TIMESTAMP WITH TIME ZONE": "zoned"}.get(sql_type, "other")


def identifies(sql_type: str) -> bool:
    """Whether values of a type can say whose row it is: whole numbers, texts and UUIDs do, floats do not."""
    return family(sql_type) in ("integer", "text", "uuid") or (family(sql_type) == "decimal" and sql_type[-3:] == ",0)")


def never_identifies(sql_type: str) -> bool:
    """Whether values stored in a type say nothing of whose row it is, read as whatever: truth values, dates, times."""
    return sql_type in ("BOOLEAN", "DATE") or sql_type.startswith(("TIME", "INTERVAL"))


def bounds_of(bounds: Sequence[Any], sql_type: str) -> tuple[Any, Any]:
    """Lower and upper bound of a column of numbers (as numbers), dates or timestamps (as such), lower < upper.

    A date as the upper bound of timestamps is the whole day: its last microsecond.
    """
    kind = family(sql_type)
    if kind not in ("integer", "float", "decimal", "date", "timestamp", "zoned"):
        raise InvalidArgument(
            "bounds", list(bounds), f"a column of type {sql_type} has no bounds; declare keys, or another type"
        )
    convert: Callable[[str, Any, str], Any] = _number if kind in ("integer", "float", "decimal") else _READERS[kind]
    low, high = (convert("bounds", bound, sql_type) for bound in bounds)
    if kind in ("timestamp", "zoned") and _is_day(bounds[1]):
        high += _DAY
    if not low < high:
        raise InvalidArgument("bounds", list(bounds), "write [lower, upper] with lower < upper")
    return low, high


def _is_day(value: Any) -> bool:
    """Whether a date without a time is written."""
    if isinstance(value, str):
        return bool(_WRITTEN_DAY.fullmatch(value))
    return isinstance(value, dt.date) and not isinstance(value, dt.datetime)


def keys_of(keys: Sequence[Any], sql_type: str) -> tuple[Any, ...]:
    """The public values of a column, each once, in the order given and in the type of the column."""
    kind = family(sql_type)
    if kind not in _READERS:
        raise InvalidArgument("keys", f"{len(keys)} values", f"a column of type {sql_type} cannot have keys")
    found = [_READERS[kind]("keys", key, sql_type) for key in keys]
    seen: set[Any] = set()
    for key, value in zip(keys, found, strict=True):
        if value in seen:
            raise InvalidArgument("keys", key, "list every value once")
        seen.add(value)
    if not found:
        raise InvalidArgument("keys", [], "list at least one value, or leave keys out")
    return tuple(found)


def _number(argument: str, value: Any, sql_type: str) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise InvalidArgument(argument, value, f"the column is of type {sql_type}: write numbers")
    if isinstance(value, int) and value.bit_length() <= _FLOAT_BITS:
        return value
    if isinstance(value, int) or not math.isfinite(value):
        raise InvalidArgument(argument, value, "write finite numbers that a float can hold")
    return float(value)


def _integer(argument: str, value: Any, sql_type: str) -> int:
    number = _number(argument, value, sql_type)
    low, high = _INTEGERS[sql_type]
    if number != int(number) or not low <= int(number) <= high:
        raise InvalidArgument(argument, value, f"write whole numbers that fit {sql_type}")
    return int(number)


def _float(argument: str, value: Any, sql_type: str) -> float:
    return float(_number(argument, value, sql_type)) + 0.0


def _decimal(argument: str, value: Any, sql_type: str) -> Decimal:
    match = _DECIMAL.fullmatch(sql_type)
    width, scale = (int(match[1]), int(match[2])) if match else (38, 0)
    _number(argument, value, sql_type)
    try:
        number = Decimal(str(value))
        rounded = number.quantize(Decimal(1).scaleb(-scale))
    except InvalidOperation:
        number, rounded = Decimal(0), Decimal(1)
    if number != rounded or abs(rounded) >= Decimal(10) ** (width - scale):
        raise InvalidArgument(argument, value, f"write numbers that fit {sql_type}")
    return rounded


def _text(argument: str, value: Any, sql_type: str) -> str:
    if not isinstance(value, str):
        raise InvalidArgument(argument, value, f"the column is of type {sql_type}: write texts in quotes")
    if "\0" in value:
        raise InvalidArgument(argument, value, "write texts without the character NUL")
    return value


def _boolean(argument: str, value: Any, sql_type: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidArgument(argument, value, f"the column is of type {sql_type}: write true or false")
    return value


def _date(argument: str, value: Any, sql_type: str) -> dt.date:
    day = value
    if isinstance(value, str):
        try:
            day = dt.date.fromisoformat(value)
        except ValueError:
            day = None
    if not isinstance(day, dt.date) or isinstance(day, dt.datetime):
        raise InvalidArgument(argument, value, f"the column is of type {sql_type}: write dates such as 2024-12-31")
    return day


def _moment(argument: str, value: Any, sql_type: str) -> dt.datetime:
    """A timestamp; a date is its first moment."""
    moment = value
    if isinstance(value, str):
        try:
            moment = dt.datetime.fromisoformat(value)
        except ValueError:
            moment = None
    elif isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        moment = dt.datetime(value.year, value.month, value.day)  # noqa: DTZ001 - the zone follows below
    if not isinstance(moment, dt.datetime):
        raise InvalidArgument(
            argument, value, f"the column is of type {sql_type}: write timestamps such as 2024-12-31T18:00:00"
        )
    return moment


def _timestamp(argument: str, value: Any, sql_type: str) -> dt.datetime:
    moment = _moment(argument, value, sql_type)
    if moment.tzinfo is not None:
        raise InvalidArgument(argument, value, f"the column is of type {sql_type}: write timestamps without a zone")
    return moment


def _zoned(argument: str, value: Any, sql_type: str) -> dt.datetime:
    moment = _moment(argument, value, sql_type)
    return moment.replace(tzinfo=dt.UTC) if moment.tzinfo is None else moment.astimezone(dt.UTC)


def _uuid(argument: str, value: Any, sql_type: str) -> uuid.UUID:
    try:
        return value if isinstance(value, uuid.UUID) else uuid.UUID(_text(argument, value, sql_type))
    except ValueError:
        raise InvalidArgument(argument, value, "write UUIDs such as '123e4567-e89b-12d3-a456-426614174000'") from None


_READERS: dict[str, Callable[[str, Any, str], Any]] = {
    "integer": _integer,
    "float": _float,
    "decimal": _decimal,
    "text": _text,
    "boolean": _boolean,
    "date": _date,
    "timestamp": _timestamp,
    "zoned": _zoned,
    "uuid": _uuid,
}

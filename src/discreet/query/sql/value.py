"""What is known about an expression: its SQL, its type, its range, the values it can take, and whom it depends on.

Two kinds of range travel with a number. `limits` holds whatever the data is: it follows from types and operators alone
and decides which arithmetic cannot overflow. `bounds` follows from what the policy declares, and is only as true as the
policy: no guarantee rests on it, because the argument of every aggregate is clamped to the bounds that are stated in
the plan when it is measured. A wrong declaration costs accuracy, never privacy.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from discreet.query.sql.text import string
from discreet.query.sql.types import BIGINT, BOOLEAN, DATE, DOUBLE, HUGEINT, NULL, TIMESTAMP, VARCHAR, SqlType

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["EVERYWHERE", "Input", "Value", "derived", "literal", "literal_sql", "number_of"]

EVERYWHERE = (-math.inf, math.inf)
EPOCH = dt.date(1970, 1, 1)
EPOCH_TIME = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - SQL timestamps have no zone
MICROSECOND = dt.timedelta(microseconds=1)


@dataclass(frozen=True)
class Input:
    """A column with finitely many public values, on which an expression depends."""

    sql: str
    type_name: str
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Value:
    """One expression of the generated SQL.

    `values` lists everything the expression can be, where that is public and finite (None may be among them). `inputs`
    are the columns with finitely many values that it is computed from, or None if it depends on anything else.
    `of_unit`: all rows of a unit share it. `is_unit`: it is the unit itself. `public`: it depends on no private row.
    `constant`: on no row at all. `tame`: a date within the years 1 to 9999, or NULL. `weight` counts how many texts
    of the data, and how many characters of the question, the text may be made of. `origin` is the block and column of
    a noisy answer that it shows unchanged. `window`: a window function is in it, so it cannot stand in a condition.
    `unique`: it is a column of a public table, as it is, that is declared to have every value once. `zoned`: a time in
    UTC that SQL has as one with a zone; None of what is computed from times.
    """

    sql: str
    type: SqlType
    bounds: tuple[float, float] = EVERYWHERE
    limits: tuple[float, float] = EVERYWHERE
    values: tuple[Any, ...] | None = None
    inputs: tuple[Input, ...] | None = None
    of_unit: bool = False
    is_unit: bool = False
    public: bool = False
    constant: bool = False
    tame: bool = False
    weight: int = 1
    python: Any = None
    origin: tuple[int, str] | None = None
    window: bool = False
    unique: bool = False
    zoned: bool | None = None

    @property
    def is_literal(self) -> bool:
        """Whether its value is written in the question."""
        return self.constant and (self.python is not None or self.type == NULL)

    @property
    def bare(self) -> str:
        """Its SQL beside an operand of a type of its own, which a whole number in the question takes on.

        Such a number alone is as narrow as can be to the engine, where the sum of two of them may overflow; so it is
        cast to its type wherever nothing else decides what it is.
        """
        return literal_sql(self.python) if self.is_literal and self.type == BIGINT else self.sql

    @property
    def kind(self) -> str:
        """The family of its type."""
        return self.type.kind

    @property
    def double(self) -> str:
        """Its SQL as a DOUBLE."""
        if self.is_literal and isinstance(self.python, int | float):
            return literal_sql(float(self.python))
        return self.sql if self.type == DOUBLE else f"CAST({self.sql} AS DOUBLE)"

    @property
    def timestamp(self) -> str:
        """Its SQL as a TIMESTAMP; dates far outside the calendar become NULL."""
        return self.sql if self.type == TIMESTAMP else f"TRY_CAST({self.sql} AS TIMESTAMP)"


def derived(sql: str, type_: SqlType, parts: Iterable[Value], **facts: Any) -> Value:
    """The value that is computed from `parts`, with the facts that every computation hands on."""
    parts = tuple(parts)
    inputs: tuple[Input, ...] | None = ()
    for part in parts:
        if part.constant:
            continue
        inputs = None if inputs is None or part.inputs is None else tuple(dict.fromkeys(inputs + part.inputs))
    facts.setdefault("weight", sum(part.weight for part in parts) if type_.kind == "text" else 1)
    if type_ == BOOLEAN:
        facts.setdefault("bounds", (0.0, 1.0))
        facts.setdefault("values", (False, True))
    if type_.kind == "integer":
        facts.setdefault("limits", type_.range)
    low, high = facts.get("bounds", EVERYWHERE)
    if not low <= high:  # there is no such value: it is always NULL
        facts["bounds"] = EVERYWHERE
    return Value(
        sql=sql,
        type=type_,
        inputs=inputs,
        of_unit=bool(parts) and all(part.of_unit for part in parts) and not any(part.window for part in parts),
        public=all(part.public for part in parts),
        constant=all(part.constant for part in parts),
        window=any(part.window for part in parts),
        **facts,
    )


def literal(python: Any) -> Value:
    """A constant of the question."""
    known: dict[str, Any] = {"of_unit": True, "public": True, "constant": True, "inputs": (), "python": python}
    known["values"] = (python,)
    if python is None:
        return Value("NULL", NULL, **known)
    if isinstance(python, bool):
        return Value(literal_sql(python), BOOLEAN, bounds=(float(python),) * 2, **known)
    if isinstance(python, int):
        if not BIGINT.range[0] <= python <= BIGINT.range[1]:
            return literal(float(python)) if abs(python) >= HUGEINT.range[1] else _hugeint(python, known)
        sql = f"CAST({python} AS BIGINT)"
        return Value(sql, BIGINT, bounds=(float(python),) * 2, limits=(python, python), **known)
    if isinstance(python, float):
        return Value(literal_sql(python), DOUBLE, bounds=(python, python), **known)
    if isinstance(python, str):
        return Value(literal_sql(python), VARCHAR, weight=1 + len(python), **known)
    number = number_of(python)
    type_ = TIMESTAMP if isinstance(python, dt.datetime) else DATE
    return Value(literal_sql(python), type_, bounds=(number, number), tame=True, zoned=False, **known)


def _hugeint(python: int, known: dict[str, Any]) -> Value:
    return Value(f"CAST({python} AS HUGEINT)", HUGEINT, bounds=(float(python),) * 2, limits=(python, python), **known)


def literal_sql(value: Any) -> str:
    """A Python value as an SQL literal of ours; the analyst's own spelling is never copied."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return str(value) if value >= 0 else f"({value})"
    if isinstance(value, float | decimal.Decimal):
        number = float(value)
        if not math.isfinite(number):
            return f"CAST('{number}' AS DOUBLE)"
        text = repr(number)
        text = text if "e" in text else f"{text}e0"
        return text if number >= 0 else f"({text})"
    if isinstance(value, dt.datetime):
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
    if isinstance(value, dt.date):
        return f"DATE '{value.isoformat()}'"
    return string(str(value))


def number_of(value: Any) -> float:
    """A bound as a number: dates are whole days and timestamps whole microseconds since 1970."""
    if isinstance(value, dt.datetime):
        return float((value.replace(tzinfo=None) - EPOCH_TIME) // MICROSECOND)
    if isinstance(value, dt.date):
        return float((value - EPOCH).days)
    return float(value)


def hull(parts: Iterable[Value]) -> dict[str, Any]:
    """The facts of a choice among `parts`: ranges that cover all of them, and the values of all of them."""
    parts = [part for part in parts if part.type != NULL or part.values != (None,)]
    every = [part.values for part in parts]
    values: tuple[Any, ...] | None = None
    if all(some is not None for some in every):
        values = tuple(dict.fromkeys(one for some in every if some is not None for one in some))
    if not parts:
        return {"values": (None,)}
    return {
        "bounds": (min(part.bounds[0] for part in parts), max(part.bounds[1] for part in parts)),
        "limits": (min(part.limits[0] for part in parts), max(part.limits[1] for part in parts)),
        "values": values,
        "tame": all(part.tame for part in parts),
        "weight": max(part.weight for part in parts),
    }


def renamed(value: Value, sql: str) -> Value:
    """The same value under the name that it has outside of a subquery."""
    return replace(value, sql=sql, constant=False, python=None, inputs=None, window=False, unique=False)

"""The most frequent value of a column, on any domain whatsoever."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from discreet.accounting import Cost
from discreet.errors import InvalidArgument
from discreet.mechanisms.distance_test import REFUSED, DistanceTested
from discreet.mechanisms.values import blank_rows

if TYPE_CHECKING:
    from discreet.noise import Generator

__all__ = ["PrivateMode"]

_ADVICE = "pass a one-dimensional array or a sequence of values, one for each person"


@dataclass(frozen=True)
class Leaders:
    """The most frequent value and the two largest counts."""

    value: Any
    first: int
    second: int


@dataclass(frozen=True, init=False, repr=False)
class PrivateMode(DistanceTested):
    """The mode of a column of numbers, strings or any hashable values, or `REFUSED` if it leads by too little.

    No domain has to be listed: with c1 >= c2 the two largest counts, the mode can change only after

        max(0, c1 - c2 - 1)        people were added or removed, or
        max(0, (c1 - c2 - 1) // 2)      were replaced,

    and it is released by propose-test-release with that distance. What is released is the exact mode, without noise.
    Every person has one value. Values that are None or NaN are left out, each for itself; -0.0 counts as 0.0; values of
    different types are different (1, 1.0 and True are three), and so are values that print differently (Decimal("1")
    and Decimal("1.0")), so that the answer never shows how one row was written.
    Ties and empty data are always refused.

    >>> mode = PrivateMode(epsilon=1.0, delta=1e-6)
    >>> mode.release(["tea"] * 60 + ["coffee"] * 20 + ["mate"])
    'tea'
    >>> mode.release(["tea", "coffee"])
    REFUSED
    """

    kind: ClassVar[str] = "private_mode"

    def __init__(self, *, epsilon: float, delta: float, test: str = "optimal", adjacency: str = "add-remove") -> None:
        self._set_test(epsilon=epsilon, delta=delta, test=test, adjacency=adjacency)

    def check(self, value: Any) -> None:
        """Refuses what is no column."""
        if isinstance(value, np.ndarray | str | bytes | Mapping) or not isinstance(value, Iterable):
            leaders(blank_rows(value))

    def _checked(self, data: Any) -> Leaders:
        return leaders(data)

    def _distance(self, data: Leaders) -> int:
        """How many people must change before the mode may."""
        lead = data.first - data.second
        return max(0, lead - 1) if self.adjacency == "add-remove" else max(0, (lead - 1) // 2)

    def _answer(self, data: Leaders, generator: Generator) -> Any:
        return data.value if data.first > data.second else REFUSED

    def _answer_cost(self) -> Cost:
        return Cost.zero(adjacency=self.adjacency)

    def examples(self) -> list[tuple[list[str], list[str]]]:
        """Ties against the smallest lead, and leads on both sides of the middle of the test."""
        middle = int(self.error(0.5))
        if self.adjacency == "add-remove":
            return [(["b"] * n, ["b"] * (n + 1)) for n in (0, middle - 1)] + [(["a", "b"], ["b"])]
        return [
            (["a"] * n + ["b"] * m, ["a"] * (n - 1) + ["b"] * (m + 1)) for n, m in ((1, 0), (2, 1), (middle + 2, 1))
        ]

    def bad_values(self) -> list[Any]:
        """What is no column."""
        return [None, 7, "text", {"a": 1}, [["a"]], np.zeros((2, 2)), np.array([1j])]

    def error(self, confidence: float = 0.95) -> float:
        """The lead c1 - c2 at which the mode is released with at least this probability; it is then exact."""
        distance = self.distance_needed(confidence)
        return float(distance + 1 if self.adjacency == "add-remove" else 2 * distance + 1)


def leaders(values: object) -> Leaders:
    """The mode and the two largest counts of values, by the rules of `PrivateMode`."""
    if isinstance(values, np.ndarray) and values.dtype != object:
        return _leading_of_array(values)
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable) or getattr(values, "ndim", 1) != 1:
        raise InvalidArgument("values", f"a {type(values).__name__}", _ADVICE)
    counts: Counter[Hashable] = Counter()
    found: dict[Hashable, Any] = {}
    try:
        for value in values:
            if value is None or _is_nan(value):
                continue
            plain = _without_sign_of_zero(value)
            same = _identity(plain)
            counts[same] += 1
            found.setdefault(same, plain)
    except (TypeError, ValueError):
        raise InvalidArgument(
            "values", "an unhashable value", "pass numbers, strings or other hashable values"
        ) from None
    top = counts.most_common(2)
    if not top:
        return Leaders(None, 0, 0)
    return Leaders(found[top[0][0]], top[0][1], top[1][1] if len(top) > 1 else 0)


def _is_nan(value: object) -> bool:
    if isinstance(value, float | np.floating | Decimal):
        return math.isnan(value)
    return isinstance(value, np.datetime64 | np.timedelta64) and bool(np.isnat(value))


def _without_sign_of_zero(value: Any) -> Any:
    if isinstance(value, float):
        return value + 0.0
    return value + type(value)(0) if isinstance(value, np.floating) else value


def _identity(value: Any) -> Hashable:
    """Equal for values that nobody can tell apart, within tuples and sets too.

    If 1 and 1.0, or Decimal("1") and Decimal("1.0"), were one value, the answer would be written as one of the rows is.
    """
    if isinstance(value, tuple):
        return type(value), tuple(map(_identity, value))
    if isinstance(value, frozenset):
        return type(value), frozenset(map(_identity, value))
    return (type(value), value) if type(value) in (str, bytes, int, bool) else (type(value), value, repr(value))


def _leading_of_array(values: np.ndarray[Any, Any]) -> Leaders:
    if values.ndim != 1 or values.dtype.kind not in "biufUSMm":
        raise InvalidArgument("values", f"an array of {values.dtype} with {values.ndim} dimensions", _ADVICE)
    if values.dtype.kind in "fMm":
        values = values[~(np.isnan if values.dtype.kind == "f" else np.isnat)(values)]
    if values.dtype.kind == "f":
        values = values + values.dtype.type(0)
    if not values.size:
        return Leaders(None, 0, 0)
    distinct, counts = np.unique(values, return_counts=True)
    place = int(np.argmax(counts))
    first = int(counts[place])
    counts[place] = 0
    return Leaders(
        distinct[place].item() if values.dtype.kind not in "Mm" else distinct[place], first, int(counts.max())
    )

"""One column of an answer with its intervals, as something that can be drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from discreet.divergence.drawing import Drawable
from discreet.errors import InvalidArgument
from discreet.query.pooling import ENDS

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.query.pooling import Pair

__all__ = ["ErrorBars"]


@dataclass(frozen=True, eq=False)
class ErrorBars(Drawable):
    """The numbers of one column, the ends of their intervals, and the groups that they are of.

    `places` has what tells the groups apart: the values of the one other column that is no measure, or texts made of
    several. `keys` are the names of these columns. Rows without a number are left out.
    """

    column: str
    confidence: float
    keys: tuple[str, ...]
    places: list[Any]
    values: list[float]
    lows: list[float]
    highs: list[float]

    @classmethod
    def of(
        cls, table: pa.Table, column: str | None, *, names: list[str], confidence: float, pair: Pair = ENDS[0]
    ) -> ErrorBars:
        """Of the table with intervals; without a name, the first column that has one."""
        measures = [name for name in names if pair.of(name)[0] in table.column_names]
        if column is None and measures:
            column = measures[0]
        if column is None or column not in measures:
            advice = f"draw a column that has an interval: {', '.join(measures) or 'none has'}"
            raise InvalidArgument("column", column, advice)
        rows = [row for row in table.to_pylist() if row[column] is not None]
        keys = tuple(name for name in names if name not in measures)
        if len(keys) == 1:
            places = [row[keys[0]] for row in rows]
        else:
            places = [", ".join(str(row[key]) for key in keys) for row in rows]
        values, lows, highs = (_numbers([row[name] for row in rows]) for name in (column, *pair.of(column)))
        return cls(column, confidence, keys, places, values, lows, highs)


def _numbers(values: list[Any]) -> list[float]:
    if any(value is not None and not isinstance(value, int | float) for value in values):
        raise InvalidArgument("column", values[0], "draw a column of numbers")
    return [float("nan") if value is None else float(value) for value in values]

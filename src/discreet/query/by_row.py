"""Every row is a unit: the engine adds up rows by their keys as it would without privacy.

Rows are summed by the values of their keys first, and only these sums meet the list of public groups: a join of every
row with that list would take longer than the sums. Sums are exact integers, so the order makes no difference.

**In doubles.** The engine adds whole numbers in doubles in less time than integers, and as exactly, as long as no sum
of some of the rows reaches 2^53. Where all rows contribute with the same sign, that can be seen from the total: partial
sums lie between 0 and it, also where they were rounded, since rounding keeps order. So a total below 2^53 is exact.
Where signs differ, no sum is larger than the number of values times the largest one by its bounds. Where a total may
not be exact, all are taken again in integers. Which way was gone depends on the data; the totals do not: a row is
rounded to whole steps by the same expression in both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.query.bounding import Grid, groups_of, shown_keys
from discreet.query.codes import Coded, coded
from discreet.query.moments import Moment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from discreet.engines import Session
    from discreet.query.private import Private

__all__ = [
    "RowTotals",
    "are_exact",
    "by_key",
    "by_public_group",
    "of_groups",
    "row_grid",
    "row_total",
    "row_totals",
]

_EXACT = 2.0**53


def row_grid(moment: Moment, noise: float, *, rows: int) -> Grid:
    """The lattice of a sum of rows whose bound is public: whole steps, of which a unit with `rows` rows has so many."""
    assert moment.row_steps is not None
    if moment.counts:
        return Grid(float(rows), 0)
    grid = Grid.of(float(max(1, rows * moment.row_steps)), noise, whole=True)
    steps = max(1, rows * moment.steps_of_row(grid.exponent))
    return replace(grid, bound=math.ldexp(steps, grid.exponent))


def are_exact(plan: Private, grids: Mapping[int, Grid], totals: Mapping[str, NDArray[Any]]) -> bool:
    """Whether totals are what they should be: integers are, and doubles of which no part can have reached 2^53."""
    for i, grid in grids.items():
        found, moment = totals[f"s{i}"], plan.moments[i]
        if found.dtype.kind != "f" or not len(found):
            continue
        if moment.sign != 0:
            largest = np.max(np.abs(found))
        else:
            largest = float(np.max(totals[f"s{_counted(plan, i)}"])) * moment.steps_of_row(grid.exponent)
        if not largest < _EXACT:
            return False
    return True


def _counted(plan: Private, i: int) -> int | None:
    """Which moment counts the values that moment i adds up, if one does."""
    present = Moment("present", plan.moments[i].argument, integer=plan.moments[i].integer)
    return plan.moments.index(present) if present in plan.moments else None


@dataclass(frozen=True)
class RowTotals:
    """SQL of sums over rows by name, and of `values` of rows that several of them take, by name as well.

    The engine would compute such a value once however often it is written, but takes its time to find that out.
    """

    totals: dict[str, str]
    values: dict[str, str] = field(default_factory=dict)

    @property
    def listed(self) -> list[str]:
        """The sums with their names."""
        return [f"{total} AS {name}" for name, total in self.totals.items()]

    def source(self, rows: str, *columns: str) -> str:
        """SQL of the rows of a relation r, with their values and more columns."""
        values = (f"{value} AS {name}" for name, value in self.values.items())
        return f"(SELECT {', '.join([*columns, 'r.*', *values])} FROM {rows}) r"


def row_totals(plan: Private, grids: Mapping[int, Grid], *, rows: int, double: bool) -> RowTotals:
    """The sums over rows, in steps of their grids; in doubles where that can be checked, if wanted."""
    moments = plan.moments
    in_doubles = {
        i
        for i in grids
        if double and moments[i].row_steps is not None and (moments[i].sign != 0 or _counted(plan, i) is not None)
    }
    totals, values = {}, {}
    for i, grid in grids.items():
        kind = "DOUBLE" if i in in_doubles and not moments[i].counts else "BIGINT"
        totals[f"s{i}"] = f"CAST({row_total(moments[i], grid, rows=rows, double=i in in_doubles)} AS {kind})"
    for i, j in ((i, j) for i in grids for j in grids if moments[i].is_present_in(moments[j])):
        values[f"v{j}"] = moments[j].value(grids[j].exponent, double=j in in_doubles)
        totals[f"s{i}"] = f"CAST(count(v{j}) AS BIGINT)"
        totals[f"s{j}"] = f"CAST({_added(f'v{j}')} AS {'DOUBLE' if j in in_doubles else 'BIGINT'})"
    return RowTotals(totals, values)


def row_total(moment: Moment, grid: Grid, *, rows: int, double: bool = False) -> str:
    """SQL of the sum over rows, in steps of the grid; `double` only for a moment with public bounds."""
    if moment.counts:
        return "count(*)" if moment.kind == "units" else moment.total()
    if moment.row_steps is not None:
        return _added(moment.value(grid.exponent, double=double))
    bound = math.floor(grid.bound / rows)  # it was chosen: cut rows to it
    # least() and greatest() skip NULL, so that a row without a value would count as -bound
    row = moment.value()
    value = f"CASE WHEN {row} < {-bound} THEN {-bound} WHEN {row} > {bound} THEN {bound} ELSE {row} END"
    if grid.exponent > 0:
        value = f"CAST(trunc(CAST({value} AS DOUBLE) / {1 << grid.exponent}) AS BIGINT)"
    return _added(value)


def _added(value: str) -> str:
    return f"coalesce(sum({value}), 0)"


def by_key(plan: Private, summed: RowTotals, *more: str, read: Coded | None = None) -> str:
    """SQL of the totals of all rows with the same keys, and more of them; of all rows where there are no keys.

    Rows and keys are `read` as they are, or as those say.
    """
    read = Coded(plan.block.rows) if read is None else read
    places = ", ".join(str(place) for place, _ in enumerate(plan.block.keys, start=1))
    grouped = f" GROUP BY {places}" if places else ""
    rows = f"({read.rows}) r"
    source = summed.source(rows) if summed.values else rows
    shown = zip(plan.block.keys, shown_keys(plan), strict=True)
    keys = [f"{read.keys[key.column]} AS {key.column}" if key.column in read.keys else sql for key, sql in shown]
    return f"SELECT {', '.join([*keys, *more, *summed.listed])} FROM {source}{grouped}"


def by_public_group(session: Session, plan: Private, summed: RowTotals, *, ranged: bool = False) -> str:
    """SQL of the totals of rows with public keys, and the number g of their group; -1 is that of rows without one.

    A group may come more than once: its totals are then to be added. `ranged` says that the rows are made of columns
    alone and the statement is planned by their ranges: then groups that are few are counted in an array, where their
    keys are whole numbers or `coded`. With a hash table, and joins with lists of texts after it, the same takes half as
    long again.
    """
    if not plan.block.keys:
        return by_key(plan, summed, "0 AS g")
    read = coded(session, plan.block, ranged=ranged)
    totals, where = by_key(plan, summed, read=read), ""
    for column, value in read.late.items():
        totals = f"SELECT * REPLACE ({value} AS {column}) FROM ({totals})"
        # No total is NULL. A condition on keys alone would be asked of every row, before they are added up.
        where = f" WHERE r.{column} IS NOT NULL OR r.{next(iter(summed.totals))} IS NULL"
    source, cell = groups_of(session, plan, f"({totals}) r", coded=read.keys.keys() | read.late.keys())
    number = f"coalesce({cell}, -1)" if read.keys else cell
    return f"SELECT {', '.join([f'{number} AS g', *summed.totals])} FROM {source}{where}"


def of_groups(found: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The totals by group without those of rows that have none."""
    inside = found["g"] >= 0
    return found if bool(inside.all()) else {name: numbers[inside] for name, numbers in found.items()}

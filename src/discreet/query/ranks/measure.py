"""Quantiles, MIN and MAX of a block: rows are put into cells by the engine, and places are found among these."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from discreet.query.bounding import SLACK
from discreet.query.choices import bound_of, bucket
from discreet.query.moments import Moment
from discreet.query.ranks.bisection import bisected
from discreet.query.ranks.cells import Cells, TalliedCells
from discreet.query.ranks.choice import chosen
from discreet.query.ranks.scale import Scale
from discreet.query.ranks.units import Units

if TYPE_CHECKING:
    from discreet.noise import Generator
    from discreet.query.plan import Aggregate
    from discreet.query.private import Private
    from discreet.query.ranks.answer import RankAnswer
    from discreet.query.run import Run

__all__ = ["measure_rank", "measure_ranks"]

_MOST_ROWS = 2.0**24
"""No unit counts with more rows in quantiles."""

_TALLIED = 1 << 22
"""Up to so many cells rows are counted here, which is quicker than in the engine; beyond, few of the cells are used."""


def _most_rows(plan: Private) -> float:
    """The largest bound that is used, whatever is chosen; by the price it is at least 1 (see `drawable`)."""
    if not plan.gaussian:
        return _MOST_ROWS
    drawn = (Units.most(Scale(rank.bounds, rank.kind), plan.noise_of_rank(i)) for i, rank in enumerate(plan.ranks))
    return min(_MOST_ROWS, *drawn)


def measure_ranks(run: Run) -> tuple[RankAnswer, ...]:
    """Every quantile, MIN and MAX of the plan, in the groups of the run."""
    plan, rows = run.plan, _Rows.of(run)
    answers = []
    made: dict[tuple[object, ...], Cells] = {}  # quantiles of one column are found among the same cells
    for i, aggregate in enumerate(plan.ranks):
        noise = plan.noise_of_rank(i)
        # Of a unit its own extreme in each group is all that matters: one row, weighed down by the number of groups.
        once = aggregate.function in ("min", "max") and not plan.block.row_level
        bound = min(rows.bound, _once(run)) if once else rows.bound
        scale = Scale(aggregate.bounds, aggregate.kind)
        units = Units.of(scale, bound, noise, gaussian=plan.gaussian, probability=aggregate.probability)
        key = (aggregate.argument, scale, bound, units.weight, once and aggregate.function)
        if key not in made:
            made[key] = rows.cells(run, aggregate, scale, bound, weight=units.weight, once=once)
        answers.append(
            measure_rank(
                made[key],
                aggregate,
                bound=bound * SLACK,
                units=units,
                noise=noise,
                gaussian=plan.gaussian,
                generator=run.generator,
                weighed=not (once or rows.weight is None),
            )
        )
    return tuple(answers)


def _once(run: Run) -> float:
    """The norm of one row in each of a unit's groups: no more than the engine leaves it, or than are answered."""
    groups = float(min(run.plan.groups or math.inf, max(1, run.size)))
    return math.sqrt(groups) if run.plan.gaussian else groups


@dataclass(frozen=True)
class _Rows:
    """The rows of a run, as SQL: where they are, the place of their group, and what they weigh; None if all weigh 1.

    One unit moves the weights by at most `bound`. `norm` is that of one row in each of the unit's groups.
    """

    source: str
    place: str
    bound: float
    weight: str | None = None
    norm: str = "1.0::DOUBLE"

    @classmethod
    def of(cls, run: Run) -> _Rows:
        """As they are where every row is a unit, else weighed by a bound on rows that is stated or chosen privately."""
        plan, session = run.plan, run.session
        source, place = run.rows_by_place()
        if plan.block.row_level:
            return cls(source, place, float(plan.block.rows_per_unit or 1))
        per, _ = run.grouped("q__per", "q__per.g")
        counted = "sum(CAST(c AS HUGEINT) * c)" if plan.gaussian else "sum(c)"
        session.execute(
            f"CREATE OR REPLACE TEMP TABLE q__rows_of AS SELECT u, {counted} AS n, count(*) AS k FROM {per} GROUP BY u"
        )
        size = "sqrt(CAST(o.n AS DOUBLE))" if plan.gaussian else "CAST(o.n AS DOUBLE)"
        limit = plan.known_bound(Moment("rows"))
        if limit is None:
            sizes = partial(session.numbers, f"SELECT {bucket(size)} AS b, count(*) AS n FROM q__rows_of o GROUP BY b")
            limit = max(1.0, bound_of(run.choose("rows", sizes)))
            run.bounds["rows of a unit, for quantiles"] = min(limit, _most_rows(plan))
        bound = min(limit, _most_rows(plan))
        norm = "sqrt(CAST(o.k AS DOUBLE))" if plan.gaussian else "CAST(o.k AS DOUBLE)"
        return cls(f"{source} JOIN q__rows_of o ON r.u = o.u", place, bound, _weighed(size, bound), norm)

    def cells(self, run: Run, aggregate: Aggregate, scale: Scale, bound: float, *, weight: int, once: bool) -> Cells:
        """The weights of groups and cells, `weight` for a full row; `once` for the extreme of each unit and group."""
        full = bound >= _once(run) if once else self.weight is None
        x = scale.clamped(f"r.{aggregate.argument}")
        value = f"{aggregate.function}({x})" if once else x
        part = f"any_value({_weighed(self.norm, bound)})" if once else self.weight
        each = "1" if full else f"CAST(trunc({weight} * {part}) AS BIGINT)"
        rows = f"SELECT {self.place} AS g, {value} AS x, {each} AS w FROM {self.source}"
        rows += f" GROUP BY r.u, {self.place}" if once else ""
        placed = f"(SELECT g, {scale.place('x')} AS b, w FROM ({rows}) WHERE x IS NOT NULL)"
        size = run.size * (scale.span + 1)
        if full and size <= _TALLIED:
            sql = f"SELECT {TalliedCells.place('g', 'b', scale)} FROM {placed}"
            return TalliedCells(run.session.tally(sql, size, plain=run.plan.block.plain), weight, scale)
        total = f"count(*) * {weight}" if full else "sum(w)"
        found = run.session.numbers(
            f"SELECT g, CAST(b AS INTEGER) AS b, CAST({total} AS BIGINT) AS w FROM {placed} GROUP BY 1, 2"
        )
        return Cells(run.size, found["g"], found["b"], found["w"], scale)


def _weighed(size: str, bound: float) -> str:
    """SQL of what a row weighs whose unit has this norm."""
    return f"CASE WHEN {size} > {bound!r}::DOUBLE THEN {bound!r}::DOUBLE / {size} ELSE 1.0::DOUBLE END"


def measure_rank(
    cells: Cells,
    aggregate: Aggregate,
    *,
    bound: float,
    units: Units,
    noise: float,
    gaussian: bool,
    generator: Generator | None,
    weighed: bool = False,
) -> RankAnswer:
    """The quantile of every group; one unit moves weights by at most `bound` rows (l2 over groups, or one group alone).

    `noise` is the noise multiplier of the whole measure; on the Laplace path its inverse is the epsilon. `weighed` says
    that rows of large units weigh less than 1, which the intervals allow for.
    """
    found = bisected if gaussian else chosen
    return found(
        cells,
        aggregate,
        bound * units.weight,
        units.parts,
        noise=noise,
        weighed=units.weight * weighed,
        generator=generator,
    )

"""Quantiles, MIN and MAX of a block: rows are put into cells, which `ranking` chooses from."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from discreet.query.bounding import SLACK
from discreet.query.choices import bound_of, bucket
from discreet.query.ranking import measure_rank
from discreet.query.ranks import Cells, RankAnswer, Scale, Units

if TYPE_CHECKING:
    from discreet.query.private import Private
    from discreet.query.run import Run

__all__ = ["measure_ranks"]

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
    plan, session = run.plan, run.session
    weight: str | None = None
    source, place = run.rows_by_place()
    if plan.block.row_level:
        bound = float(plan.block.rows_per_unit or 1)
    else:
        per, _ = run.grouped("q__per", "q__per.g")
        counted = "sum(CAST(c AS HUGEINT) * c)" if plan.gaussian else "sum(c)"
        session.execute(f"CREATE OR REPLACE TEMP TABLE q__rows_of AS SELECT u, {counted} AS n FROM {per} GROUP BY u")
        size = "sqrt(CAST(o.n AS DOUBLE))" if plan.gaussian else "CAST(o.n AS DOUBLE)"
        sizes = partial(session.numbers, f"SELECT {bucket(size)} AS b, count(*) AS n FROM q__rows_of o GROUP BY b")
        number = run.choose("rows", sizes)
        bound = min(max(1.0, bound_of(number)), _most_rows(plan))
        run.bounds["rows of a unit, for quantiles"] = bound
        weight = f"CASE WHEN {size} > {bound!r}::DOUBLE THEN {bound!r}::DOUBLE / {size} ELSE 1.0::DOUBLE END"
        source += " JOIN q__rows_of o ON r.u = o.u"
    answers = []
    for i, aggregate in enumerate(plan.ranks):
        scale = Scale(aggregate.bounds, aggregate.kind)
        noise = plan.noise_of_rank(i)
        # Of a unit with one group its own extreme is all that matters: one row, not weighed down.
        once = aggregate.function in ("min", "max") and plan.single and not plan.block.row_level
        reach = 1.0 if once else bound
        units = Units.of(scale, reach, noise, gaussian=plan.gaussian)
        x = scale.clamped(f"r.{aggregate.argument}")
        full = once or weight is None
        each = "1" if full else f"CAST(trunc({units.weight} * {weight}) AS BIGINT)"
        total = f"count(*) * {units.weight}" if full else "sum(w)"
        value = f"{aggregate.function}({x})" if once else x
        rows = f"SELECT {place} AS g, {value} AS x, {each} AS w FROM {source}"
        rows += f" GROUP BY r.u, {place}" if once else ""
        placed = f"(SELECT g, {scale.place('x')} AS b, w FROM ({rows}) WHERE x IS NOT NULL)"
        if full and run.size * scale.span <= _TALLIED:
            sql = f"SELECT CAST(g * {scale.span} + {scale.within('b')} - {scale.cells[0]} AS INTEGER) FROM {placed}"
            cells = Cells.tallied(session.tally(sql, run.size * scale.span), units.weight, scale)
        else:
            found = session.numbers(
                f"SELECT g, {scale.within('b')} AS b, CAST({total} AS BIGINT) AS w FROM {placed} GROUP BY 1, 2"
            )
            cells = Cells(run.size, found["g"], found["b"], found["w"], scale)
        answers.append(
            measure_rank(
                cells,
                aggregate,
                bound=reach * SLACK,
                units=units,
                noise=noise,
                gaussian=plan.gaussian,
                generator=run.generator,
                weighed=not full,
            )
        )
    return tuple(answers)

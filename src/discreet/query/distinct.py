"""COUNT(DISTINCT x) of a block."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from discreet.query.bounding import Grid
from discreet.query.by_row import by_public_group
from discreet.query.choices import bound_of, bucket

if TYPE_CHECKING:
    from discreet.query.laws import NoisySum
    from discreet.query.plan import Aggregate
    from discreet.query.private import Private
    from discreet.query.run import Run

__all__ = ["measure_distinct"]

_WIDEST = 2.0**39
"""Noise is drawn up to 10^12: where so little is paid, a unit keeps fewer distinct values."""

_MOST_KEPT = 1 << 31
"""No unit keeps more."""


def measure_distinct(run: Run, i: int) -> NoisySum:
    """COUNT(DISTINCT x): every unit keeps at most m of its (group, value) pairs, chosen at random."""
    plan, session = run.plan, run.session
    if plan.block.row_level:
        bound = float(plan.block.rows_per_unit or 1)
        found = session.numbers(_distinct_of_rows(run, f"r.{plan.distincts[i].argument}"))
    else:
        bound, kept = _kept_pairs(run, i)
        found = session.numbers(f"SELECT g, count(DISTINCT x) AS n FROM ({kept}) GROUP BY g")
    full = run.placed(found["g"], found["n"])
    measure = len(plan.moments) + len(plan.ranks) + i
    noisy = run.with_noise(full, Grid(bound, 0), measure, quantum=1.0)  # a count is never in coarser steps
    return noisy if plan.block.row_level else run.cut(noisy, f"distinct {i}", sign=1)


def most_pairs(plan: Private, distinct: Aggregate) -> float:
    """The largest number of pairs of a group and a value that a unit can have, by what is public."""
    groups = math.inf if plan.groups is None else plan.groups
    if plan.public:
        groups = min(groups, max(1, plan.cells))
    rows = math.inf if plan.options.max_rows is None else plan.options.max_rows
    each = min(rows, math.inf if distinct.values is None else distinct.values)
    all_rows = math.inf if plan.block.rows_per_unit is None else plan.block.rows_per_unit
    return min(all_rows, groups * each if each else 0)


def _distinct_of_rows(run: Run, argument: str) -> str:
    if run.plan.public:
        return by_public_group(run.session, run.plan, {"n": f"count(DISTINCT {argument})"})
    source, place = run.rows_by_place()
    return f"SELECT {place} AS g, count(DISTINCT {argument}) AS n FROM {source} GROUP BY {place}"


def _kept_pairs(run: Run, i: int) -> tuple[float, str]:
    """How many pairs of a group and a value a unit keeps, chosen privately, and SQL of those that are kept.

    No more than there can be: one for each row, every possible value in each of the groups in which a unit counts.
    """
    session, distinct = run.session, run.plan.distincts[i]
    argument = f"r.{distinct.argument}"
    source, place = run.rows_by_place()
    session.execute(
        f"CREATE OR REPLACE TEMP TABLE q__pairs AS SELECT DISTINCT r.u AS u, {place} AS g, {argument} AS x, "
        f"hash({argument}, {run.rows.lot}, {run.secret}::HUGEINT) AS lot FROM {source} "
        f"WHERE {argument} IS NOT NULL"
    )
    sizes = partial(
        session.numbers,
        f"SELECT {bucket('n')} AS b, count(*) AS n FROM (SELECT count(*) AS n FROM q__pairs GROUP BY u) GROUP BY b",
    )
    chosen = math.ceil(bound_of(run.choose(f"distinct {i}", sizes, smallest=1.0)))
    widest = int(_WIDEST / run.plan.noise_of_distinct(i))
    bound = float(max(1, min(chosen, _MOST_KEPT, widest, most_pairs(run.plan, distinct))))
    run.bounds[run.plan.bound_of_distinct(i)] = bound
    return (
        bound,
        f"SELECT g, x FROM q__pairs QUALIFY row_number() OVER (PARTITION BY u ORDER BY lot) <= {int(bound)}",
    )

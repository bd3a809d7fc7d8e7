"""The exact sums of a block, by group and in whole steps, and these with noise: what COUNT, SUM and AVG are made of."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from discreet.engines import exact_integers
from discreet.engines.arrow import array_of
from discreet.query.bounding import Grid, clipped, make_per, make_sizes, norm, spread
from discreet.query.by_row import RowTotals, are_exact, by_key, by_public_group, of_groups, row_grid, row_totals
from discreet.query.choices import FINE, bound_of, bucket, fine_bucket

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    import pyarrow as pa
    from numpy.typing import NDArray

    from discreet.query.laws import NoisySum
    from discreet.query.moments import Moment
    from discreet.query.private import Private
    from discreet.query.run import Run

__all__ = ["find_bounds", "measure_moments"]

T = TypeVar("T")


def measure_moments(run: Run) -> tuple[NoisySum, ...]:
    """Every moment of the plan with its noise; afterwards the groups of the run are known."""
    plan = run.plan
    if plan.block.row_level:
        grids, sums = _by_row(run)
    elif _folds(plan):
        grids, sums = _folded(run)
    else:
        make_per(run.session, plan, run.rows)
        if not plan.public:
            run.select_keys()
        grids, sums = _by_unit(run)
    run.spare()
    return tuple(_noisy(run, i, grids[i], sums[i]) for i in range(len(plan.moments)))


def find_bounds(run: Run, places: Collection[str]) -> None:
    """The private choices of the bounds of these moments, of public groups, and nothing else."""
    plan = run.plan
    wanted = {i: moment for i, moment in enumerate(plan.moments) if f"moment {i}" in places}
    if plan.block.row_level:
        for i, moment in wanted.items():
            _choose_of_rows(run, i, moment)
    elif _folds(plan):
        _choose_folded(run, _by_size(run))
    else:
        make_per(run.session, plan, run.rows)
        _make_sizes_of(run, tuple(wanted))
        for i, moment in wanted.items():
            _choose_of_units(run, i, moment)


def _by_row(run: Run) -> tuple[dict[int, Grid], list[NDArray[np.int64]]]:
    """Every row is a unit: sums over rows, with the bound of one row times the rows that a unit can have."""
    plan, session = run.plan, run.session
    rows = plan.block.rows_per_unit or 1
    known = all(moment.row_steps is not None for moment in plan.moments)
    grids: dict[int, Grid] = {}
    if known:
        grids = {i: row_grid(m, plan.noise_of_moment(i), rows=rows) for i, m in enumerate(plan.moments)}
        for i, moment in enumerate(plan.moments):
            run.bounds[plan.bound_of_moment(i)] = grids[i].bound * moment.quantum
    if not plan.public:
        if known and not plan.ranks and not plan.distincts:
            kept = _exactly(partial(_shown_sums, run, rows, grids), plan, grids, rows)
            run.size = kept.num_rows
            run.selected = {key.column: kept.column(key.column) for key in plan.block.keys}
            return grids, [array_of(kept.column(f"s{i}")).astype(np.int64) for i in grids]
        cell = run.rows.cell
        found = session.numbers(f"SELECT {cell} AS g, count(*) AS w FROM {run.rows.source} GROUP BY {cell}")
        run.keep(found["g"][run.shown(found["w"], rows)])
    if not known:
        grids = _row_grids(run, rows)
    if not plan.moments:
        return {}, []
    return grids, _spread(run, _exactly(partial(_row_sums, run, grids), plan, grids, rows))


def _exactly(take: Callable[[RowTotals], tuple[T, bool]], plan: Private, grids: dict[int, Grid], rows: int) -> T:
    """What `take` makes of the totals over rows; it says besides if they are exact.

    They are taken in doubles first, and again in integers if one is too large for that.
    """
    taken, exact = take(row_totals(plan, grids, rows=rows, double=True))
    return taken if exact else take(row_totals(plan, grids, rows=rows, double=False))[0]


def _row_sums(run: Run, grids: dict[int, Grid], summed: RowTotals) -> tuple[dict[str, NDArray[Any]], bool]:
    """Totals over rows of groups that are known, and whether they are exact."""
    if run.plan.public:
        statement = by_public_group(run.session, run.plan, summed, ranged=run.plan.block.plain)
    else:
        source, place = run.grouped(run.rows.source, run.rows.cell)
        rows = summed.source(source, f"{place} AS g")
        statement = f"SELECT {', '.join(['g', *summed.listed])} FROM {rows} GROUP BY g"
    found = of_groups(run.session.numbers(statement, plain=run.plan.block.plain))
    return found, are_exact(run.plan, grids, found)


def _shown_sums(run: Run, rows: int, grids: dict[int, Grid], summed: RowTotals) -> tuple[pa.Table, bool]:
    """Totals over rows of the groups that are shown, by one statement, and whether those of all groups are exact.

    They come in order of their keys, not that of the engine. If they have to be taken again, which groups are shown is
    drawn anew: whether that is so depends on all groups alike, and not on what was drawn.
    """
    exact = True

    def shown(groups: pa.RecordBatch) -> NDArray[np.bool_]:
        nonlocal exact
        exact = exact and are_exact(run.plan, grids, {name: array_of(groups.column(name)) for name in summed.totals})
        return run.shown(exact_integers(groups.column("w")), rows)

    statement = by_key(run.plan, summed, "count(*) AS w")
    order = [key.column for key in run.plan.block.keys]
    return run.session.filtered(statement, shown, order=order, plain=run.plan.block.plain), exact


def _row_grids(run: Run, rows: int) -> dict[int, Grid]:
    """The lattices of sums of which some bound has to be chosen."""
    plan = run.plan
    grids: dict[int, Grid] = {}
    for i, moment in enumerate(plan.moments):
        noise = plan.noise_of_moment(i)
        if moment.row_steps is not None:
            grids[i] = row_grid(moment, noise, rows=rows)
        else:
            grids[i] = Grid.of(rows * bound_of(_choose_of_rows(run, i, moment)), noise, whole=True)
        run.bounds[plan.bound_of_moment(i)] = grids[i].bound * moment.quantum
    return grids


def _choose_of_rows(run: Run, i: int, moment: Moment) -> float:
    """The number of the bound of a moment whose units are rows."""
    source, _ = run.grouped(run.rows.source, run.rows.cell)
    sizes = partial(
        run.session.numbers,
        f"SELECT {fine_bucket(f'abs({moment.value()})')} AS f, count(*) AS n FROM {source} "
        f"WHERE {moment.value()} IS NOT NULL GROUP BY f",
    )
    return run.choose(f"moment {i}", sizes, smallest=moment.smallest, rows=run.plan.block.rows_per_unit or 1)


def _by_unit(run: Run) -> tuple[dict[int, Grid], list[NDArray[np.int64]]]:
    """Sums over units, from the table `per`, each unit's numbers cut to a bound that is public or chosen."""
    plan, session = run.plan, run.session
    single = plan.single
    # Counts of units are bounded by the number of groups that `per` leaves to a unit; all others are cut.
    counted = single or plan.sampled
    enforced = tuple(i for i, moment in enumerate(plan.moments) if moment.kind != "units" or not counted)
    if not plan.moments:
        return {}, []
    per, place = run.grouped("q__per", "q__per.g")
    _make_sizes_of(run, enforced)
    bounds: dict[int, float] = {}
    for i, moment in enumerate(plan.moments):
        bound = plan.known_bound(moment)
        if bound is None:
            number = _choose_of_units(run, i, moment)
            bound = min(bound_of(number), plan.most(moment) or 1.0)  # of numbers that are all 0 by rule, one step
        bounds[i] = bound
    grids: dict[int, Grid] = {}
    for i, bound in plan.no_larger(bounds).items():
        grids[i] = Grid.of(bound, plan.noise_of_moment(i), whole=not enforced)
        run.bounds[plan.bound_of_moment(i)] = bound * plan.moments[i].quantum
    sums = ", ".join(clipped(plan, grids, enforced, single=single))
    relation = per if single or not enforced else f"{per} JOIN q__sizes ON q__sizes.u = q__per.u"
    summed = f"SELECT {place} AS g, {sums} FROM {relation} GROUP BY {place}"
    return grids, _spread(run, session.numbers(summed, plain=True))


def _make_sizes_of(run: Run, moments: tuple[int, ...]) -> None:
    """The sizes of these moments by unit; where a unit has one group, they are in `per` as they are."""
    if moments and not run.plan.single:
        make_sizes(run.session, run.plan, moments, source=run.grouped("q__per", "q__per.g")[0])


def _choose_of_units(run: Run, i: int, moment: Moment) -> float:
    """The number of the bound of a moment of units, from the sizes."""
    plan = run.plan
    relation = run.grouped("q__per", "q__per.g")[0] if plan.single else "q__sizes"
    wide = f", {bucket(spread(plan, i))} AS k" if plan.spread(moment) else ""
    size = fine_bucket(norm(plan, i, single=plan.single))
    sizes = partial(
        run.session.numbers,
        f"SELECT {size} AS f{wide}, count(*) AS n FROM {relation} GROUP BY ALL",
        plain=True,
    )
    return run.choose(f"moment {i}", sizes, smallest=moment.smallest)


def _folds(plan: Private) -> bool:
    """Whether one statement is enough: one moment, one group for each unit, public groups, a bound to choose."""
    one = len(plan.moments) == 1 and not plan.ranks and not plan.distincts and plan.options.max_rows is None
    return one and plan.single and plan.public and plan.known_bound(plan.moments[0]) is None


def _folded(run: Run) -> tuple[dict[int, Grid], list[NDArray[np.int64]]]:
    """Sums by group and bucket of size: the bound will be the upper end of a bucket, so they give the cut sum.

    A unit is in one bucket of one group. If its number is within the bound it adds that, else the bound, rounded
    down to whole steps; the sum of a group is rounded down once, which the extra step of the grid pays for.
    """
    plan, found = run.plan, _by_size(run)
    number = _choose_folded(run, found)
    grid = Grid.of(bound_of(number), plan.noise_of_moment(0), whole=False, rounded=True)
    run.bounds[plan.bound_of_moment(0)] = grid.bound * plan.moments[0].quantum
    most = math.floor(math.ldexp(grid.bound, -grid.exponent))
    totals: list[int | Fraction] = [0] * run.size
    for g, f, negative, n, s in zip(*(found[name].tolist() for name in ("g", "f", "negative", "n", "s")), strict=True):
        fine = int(s) << -grid.exponent if grid.exponent <= 0 else Fraction(int(s), 1 << grid.exponent)
        totals[int(g)] += fine if f <= number * FINE else (-most if negative else most) * int(n)
    return {0: grid}, [np.array([math.floor(total) for total in totals], dtype=np.int64)]


def _by_size(run: Run) -> dict[str, NDArray[Any]]:
    """For each group, bucket of size f and sign, the number n of units and the sum s of their numbers."""
    cell = run.rows.one_group if run.plan.block.keys else run.rows.cell
    statement = (
        f"SELECT g, {fine_bucket('abs(m)')} AS f, CAST(m < 0 AS INTEGER) AS negative, count(*) AS n, "
        f"CAST(sum(m) AS HUGEINT) AS s FROM (SELECT {cell} AS g, {run.plan.moments[0].of_unit()} AS m "
        f"FROM {run.rows.source} GROUP BY r.u) GROUP BY ALL"
    )
    what = " ".join([statement, *(key.digest for key in run.plan.block.keys)])
    if what not in run.seen:  # by a survey, before the question
        run.seen[what] = run.session.numpy(statement, plain=run.plan.block.plain)
    return run.seen[what]


def _choose_folded(run: Run, found: dict[str, NDArray[Any]]) -> float:
    return run.choose("moment 0", lambda: found, smallest=run.plan.moments[0].smallest)


def _spread(run: Run, found: dict[str, NDArray[Any]]) -> list[NDArray[np.int64]]:
    """The sums of all moments, by group."""
    return [run.placed(found["g"], found[f"s{i}"].astype(np.int64)) for i in range(len(run.plan.moments))]


def _noisy(run: Run, i: int, grid: Grid, sums: NDArray[np.int64]) -> NoisySum:
    moment = run.plan.moments[i]
    found = run.with_noise(sums, grid, i, quantum=moment.quantum)
    return found if run.plan.known_bound(moment) is not None else run.cut(found, f"moment {i}", sign=moment.sign)

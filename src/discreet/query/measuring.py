"""Answering one block: the engine sums, private choices fix the bounds, exact noise is added."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.engines import arrow_column, exact_integers
from discreet.engines.arrow import gathered
from discreet.noise import rounded_gaussian, rounded_laplace, secure_generator, staircase
from discreet.query import keys as key_selection
from discreet.query.bounding import SLACK, Coded, Grid, clipped, make_codes, make_per, make_sizes, norm
from discreet.query.by_row import by_key, by_public_group, row_grid, row_total
from discreet.query.choices import bound_of, bucket, choose_bound, choose_share, units_above
from discreet.query.laws import NoisySum
from discreet.query.losses import allowance, heaviness
from discreet.query.ranking import measure_rank
from discreet.query.ranks import Cells, RankAnswer, Scale, Units

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from discreet.engines import Session
    from discreet.noise import Generator
    from discreet.query.private import Private

__all__ = ["Measured", "measure"]

_SHARE_OF_UNITS = 0.9
"""Quantiles weigh down the units that have more rows than this share of all; tails of sizes are beyond it."""

_MOST_ROWS = 2.0**24
"""No unit counts with more rows in quantiles; within what noise can be drawn for."""

_WIDEST = 2.0**39
"""Noise is drawn up to 10^12: where so little is paid, a unit keeps fewer distinct values."""

_TALLIED = 1 << 22
"""Up to so many cells rows are counted here, which is quicker than in the engine; beyond, few of the cells are used."""


@dataclass(frozen=True)
class Measured:
    """The noisy numbers of a block: keys of its groups, moments, ranks and distinct counts, and the bounds used."""

    plan: Private
    keys: dict[str, Any]
    groups: int
    moments: tuple[NoisySum, ...]
    ranks: tuple[RankAnswer, ...]
    distincts: tuple[NoisySum, ...]
    bounds: dict[str, float] = field(default_factory=dict)


def measure(session: Session, plan: Private, generator: Generator | None = None) -> Measured:
    """Run a block: everything about rows in the engine, noise here."""
    return _Run(session, plan, generator).answered()


class _Run:
    def __init__(self, session: Session, plan: Private, generator: Generator | None) -> None:
        self.session, self.plan, self.generator = session, plan, generator
        self.bounds: dict[str, float] = {}
        self.heavy: dict[int, float] = {}  # by moment, how many times larger than usual the allowance is
        self.selected: dict[str, pa.ChunkedArray] | None = None  # keys that were selected while they were summed
        self.skew = 1.0  # mean over median of the groups' sizes, where that is known from the selection of keys

    @cached_property
    def secret(self) -> int:
        return (self.generator or secure_generator()).integer(120)

    @cached_property
    def rows(self) -> Coded:
        """The rows with numbered groups."""
        return make_codes(self.session, self.plan, self.secret)

    def answered(self) -> Measured:
        plan = self.plan
        if plan.block.row_level:
            grids, sums = self._by_row()
        elif self._folds:
            grids, sums = self._folded()
        else:
            make_per(self.session, plan, self.rows)
            if not plan.public:
                self._select_keys()
            grids, sums = self._by_unit()
        noisy = tuple(self._noisy(i, grids[i], sums[i]) for i in range(len(plan.moments)))
        ranks = self._ranked() if plan.ranks else ()
        distincts = tuple(self._distinct(i) for i in range(len(plan.distincts)))
        return Measured(plan, self._keys(), self.size, noisy, ranks, distincts, self.bounds)

    # ---------------------------------------------------------------- groups

    @cached_property
    def size(self) -> int:
        """The number of groups that are answered; of those that are not public, known once they are selected."""
        assert self.plan.public
        return self.plan.cells

    def _grouped(self, relation: str, code: str) -> tuple[str, str]:
        """A relation cut down to the groups that are answered, and SQL of the number of a group in the answer."""
        if self.plan.public:
            return relation, code
        return f"{relation} JOIN q__kept ON q__kept.code = {code}", "q__kept.place"

    def _select_keys(self) -> None:
        """The table `kept` of the groups that are shown: code, and place in the answer."""
        if self.plan.gaussian:
            weight = (
                f"CAST(CASE WHEN n <= {key_selection.MOST_GROUPS} THEN trunc({key_selection.WEIGHT} / sqrt(n)) ELSE 0 "
                "END AS BIGINT)"
            )
            found = self.session.numbers(
                f"SELECT g, CAST(sum({weight}) AS BIGINT) AS w FROM q__per JOIN "
                "(SELECT u, count(*) AS n FROM q__per GROUP BY u) USING (u) GROUP BY g"
            )
            kept, shown = key_selection.kept_by_weight(found["w"], self.plan.allocation, self.generator)
            if shown.size:
                self.skew = min(max(float(np.mean(shown) / np.median(shown)), 1.0), 10.0)
        else:
            found = self.session.numbers("SELECT g, count(*) AS w FROM q__per GROUP BY g")
            kept = key_selection.kept_by_count(
                found["w"], self.plan.allocation, self.generator, groups=self.plan.groups or 1
            )
        self._keep(found["g"][kept])

    def _keep(self, codes: NDArray[Any]) -> None:
        """Write down the kept groups, in order of their keys: that of the engine must not show."""
        import pyarrow as pa

        columns = ", ".join(key.column for key in self.plan.block.keys)
        self.session.insert(
            "q__kept",
            pa.table({"code": arrow_column(codes.astype(np.int64))}),
            f"SELECT code, {columns}, CAST(row_number() OVER (ORDER BY {columns}) - 1 AS INTEGER) AS place "
            "FROM q__incoming JOIN q__codes USING (code)",
        )
        self.size = len(codes)

    def _keys(self) -> dict[str, Any]:
        plan = self.plan
        if not plan.block.keys:
            return {}
        if self.selected is not None:
            return self.selected
        if not plan.public:
            table = self.session.table("SELECT * FROM q__kept ORDER BY place")
            return {key.column: table[key.column] for key in plan.block.keys}
        shape = [len(key.values or ()) for key in plan.block.keys]
        places = np.unravel_index(np.arange(plan.cells), shape)
        return {
            key.column: gathered(key.values or (), place) for key, place in zip(plan.block.keys, places, strict=True)
        }

    # ---------------------------------------------------------------- moments

    def _by_row(self) -> tuple[dict[int, Grid], list[NDArray[np.int64]]]:
        """Every row is a unit: sums over rows, with the bound of one row times the rows that a unit can have."""
        plan, session = self.plan, self.session
        rows = plan.block.rows_per_unit or 1
        known = all(moment.row_steps is not None for moment in plan.moments)
        grids: dict[int, Grid] = {}
        if known:
            grids = {i: row_grid(m, plan.noise_of_moment(i), rows=rows) for i, m in enumerate(plan.moments)}
            for i, moment in enumerate(plan.moments):
                self.bounds[moment.label] = grids[i].bound * moment.quantum
        if not plan.public:
            if known and not plan.ranks and not plan.distincts:
                return grids, self._selected(self._row_totals(grids, rows), rows)
            cell = self.rows.cell
            found = session.numbers(f"SELECT {cell} AS g, count(*) AS w FROM {self.rows.source} GROUP BY {cell}")
            self._keep(found["g"][self._shown(found["w"], rows)])
        if not known:
            grids = self._row_grids(rows)
        if not plan.moments:
            return {}, []
        totals = self._row_totals(grids, rows)
        if plan.public:
            return grids, self._spread(session.numbers(by_public_group(session, plan, totals)))
        source, place = self._grouped(self.rows.source, self.rows.cell)
        listed = ", ".join(f"{total} AS {name}" for name, total in totals.items())
        return grids, self._spread(session.numbers(f"SELECT {place} AS g, {listed} FROM {source} GROUP BY {place}"))

    def _row_totals(self, grids: dict[int, Grid], rows: int) -> dict[str, str]:
        moments = self.plan.moments
        return {f"s{i}": f"CAST({row_total(moments[i], grids[i], rows=rows)} AS BIGINT)" for i in grids}

    def _selected(self, totals: dict[str, str], rows: int) -> list[NDArray[np.int64]]:
        """The totals of the groups that are shown, by one statement: in order of their keys, not that of the engine."""
        keys = [key.column for key in self.plan.block.keys]
        summed = by_key(self.plan, ["count(*) AS w", *(f"{total} AS {name}" for name, total in totals.items())])
        kept = self.session.filtered(
            f"SELECT * FROM ({summed}) ORDER BY {', '.join(keys)}",
            lambda groups: self._shown(exact_integers(groups.column("w")), rows),
        )
        self.size = kept.num_rows
        self.selected = {key: kept.column(key) for key in keys}
        return [exact_integers(kept.column(name)) for name in totals]

    def _shown(self, counts: NDArray[np.int64], rows: int) -> NDArray[np.bool_]:
        """Which groups of so many rows are shown; each is decided by itself."""
        allocation, generator = self.plan.allocation, self.generator
        if self.plan.gaussian:
            return key_selection.kept_by_weight(counts * key_selection.WEIGHT, allocation, generator, groups=rows)[0]
        return key_selection.kept_by_count(counts, allocation, generator, groups=rows)

    def _row_grids(self, rows: int) -> dict[int, Grid]:
        """The lattices of sums of which some bound has to be chosen."""
        plan = self.plan
        source, _ = self._grouped(self.rows.source, self.rows.cell)
        grids: dict[int, Grid] = {}
        for i, moment in enumerate(plan.moments):
            noise = plan.noise_of_moment(i)
            if moment.row_steps is not None:
                grids[i] = row_grid(moment, noise, rows=rows)
            else:
                found = self.session.numbers(
                    f"SELECT {bucket(f'abs({moment.value()})')} AS b, count(*) AS n FROM {source} "
                    f"WHERE {moment.value()} IS NOT NULL GROUP BY b"
                )
                bound = rows * self._choose(found["b"], found["n"], noise, moment.smallest, rows=rows, moment=i)
                grids[i] = Grid.of(bound, noise, whole=True)
            self.bounds[moment.label] = grids[i].bound * moment.quantum
        return grids

    def _by_unit(self) -> tuple[dict[int, Grid], list[NDArray[np.int64]]]:
        plan, session = self.plan, self.session
        single = plan.single
        # Counts of units are bounded by the number of groups that `per` leaves to a unit; all others are cut.
        counted = single or plan.sampled
        enforced = tuple(i for i, moment in enumerate(plan.moments) if moment.kind != "units" or not counted)
        if not plan.moments:
            return {}, []
        per, place = self._grouped("q__per", "q__per.g")
        if enforced and not single:
            make_sizes(session, plan, enforced, source=per)
        grids: dict[int, Grid] = {}
        for i, moment in enumerate(plan.moments):
            bound = plan.known_bound(moment)
            if bound is None:
                relation = per if single else "q__sizes"
                found = session.numbers(
                    f"SELECT {bucket(norm(plan, i, single=single))} AS b, count(*) AS n FROM {relation} GROUP BY b"
                )
                bound = self._choose(found["b"], found["n"], plan.noise_of_moment(i), moment.smallest, moment=i)
                bound = min(bound, plan.most(moment))
            grids[i] = Grid.of(bound, plan.noise_of_moment(i), whole=not enforced)
            self.bounds[moment.label] = bound * moment.quantum
        sums = ", ".join(clipped(plan, grids, enforced, single=single))
        relation = per if single or not enforced else f"{per} JOIN q__sizes ON q__sizes.u = q__per.u"
        return grids, self._spread(session.numbers(f"SELECT {place} AS g, {sums} FROM {relation} GROUP BY {place}"))

    @property
    def _folds(self) -> bool:
        """Whether one statement is enough: one moment, one group for each unit, public groups, a bound to choose."""
        plan = self.plan
        one = len(plan.moments) == 1 and not plan.ranks and not plan.distincts and plan.options.max_rows is None
        return one and plan.single and plan.public and plan.known_bound(plan.moments[0]) is None

    def _folded(self) -> tuple[dict[int, Grid], list[NDArray[np.int64]]]:
        """Sums by group and bucket of size: the bound will be the upper end of a bucket, so they give the cut sum.

        A unit is in one bucket of one group. If its number is within the bound it adds that, else the bound, rounded
        down to whole steps; the sum of a group is rounded down once, which the extra step of the grid pays for.
        """
        plan, session = self.plan, self.session
        cell = self.rows.one_group(plan) if plan.block.keys else self.rows.cell
        found = session.numpy(
            f"SELECT g, {bucket('abs(m)')} AS b, CAST(m < 0 AS INTEGER) AS negative, count(*) AS n, "
            f"CAST(sum(m) AS HUGEINT) AS s FROM (SELECT {cell} AS g, {plan.moments[0].of_unit()} AS m "
            f"FROM {self.rows.source} GROUP BY r.u) GROUP BY ALL"
        )
        number = self._choose_number(
            found["b"], found["n"], plan.noise_of_moment(0), plan.moments[0].smallest, moment=0
        )
        grid = Grid.of(bound_of(number), plan.noise_of_moment(0), whole=False, rounded=True)
        self.bounds[plan.moments[0].label] = grid.bound * plan.moments[0].quantum
        most = math.floor(math.ldexp(grid.bound, -grid.exponent))
        totals: list[int | Fraction] = [0] * self.size
        for g, b, negative, n, s in zip(
            *(found[name].tolist() for name in ("g", "b", "negative", "n", "s")), strict=True
        ):
            fine = int(s) << -grid.exponent if grid.exponent <= 0 else Fraction(int(s), 1 << grid.exponent)
            totals[int(g)] += fine if b <= number else (-most if negative else most) * int(n)
        return {0: grid}, [np.array([math.floor(total) for total in totals], dtype=np.int64)]

    def _choose(
        self,
        buckets: NDArray[Any],
        units: NDArray[Any],
        noise: float,
        smallest: float,
        *,
        rows: int = 1,
        moment: int | None = None,
    ) -> float:
        return bound_of(self._choose_number(buckets, units, noise, smallest, rows=rows, moment=moment))

    def _choose_number(
        self,
        buckets: NDArray[Any],
        units: NDArray[Any],
        noise: float,
        smallest: float,
        *,
        rows: int = 1,
        moment: int | None = None,
    ) -> int:
        """A bound from the number of units in each bucket; a unit counts in at most `rows` of them."""
        groups = max(1, self.size) * self.skew
        allowed = noise * units_above(groups, single=self.plan.single)
        epsilon = self.plan.allocation.choice / rows
        number = choose_bound(
            buckets,
            units,
            epsilon=epsilon,
            allowed=allowed,
            smallest=smallest,
            bounded=self.plan.gaussian,
            generator=self.generator,
        )
        if moment is not None and self.plan.tailed(self.plan.moments[moment]):
            self._look(moment, number, buckets, units, allowed=allowed, chosen=epsilon, rows=rows)
        return number

    def _look(
        self,
        moment: int,
        number: int,
        buckets: NDArray[Any],
        units: NDArray[Any],
        *,
        allowed: float,
        chosen: float,
        rows: int,
    ) -> None:
        """How heavy the tail of the sizes is, for the intervals."""
        epsilon = self.plan.allocation.tail / rows
        tenth = choose_share(buckets, units, epsilon=epsilon, share=_SHARE_OF_UNITS, generator=self.generator)
        counted = int(units.sum()) + int(rounded_laplace((1 + 1e-12) / epsilon, 1, generator=self.generator)[0])
        self.heavy[moment] = heaviness(
            bound_of(number),
            tenth=bound_of(tenth),
            units=float(counted),
            above=allowed + 1 / chosen,
            looked=epsilon,
            chosen=chosen,
        )

    def _spread(self, found: dict[str, NDArray[Any]]) -> list[NDArray[np.int64]]:
        """Sums by group number; groups that nobody has are 0."""
        return [self._placed(found["g"], found[f"s{i}"]) for i in range(len(self.plan.moments))]

    def _placed(self, places: NDArray[np.int64], numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        full = np.zeros(self.size, dtype=np.int64)
        np.add.at(full, places, numbers)
        return full

    def _noisy(self, i: int, grid: Grid, sums: NDArray[np.int64]) -> NoisySum:
        moment = self.plan.moments[i]
        found = self._with_noise(sums, grid, i, quantum=moment.quantum)
        return (
            found
            if self.plan.known_bound(moment) is not None
            else self._cut(found, sign=moment.sign, heavy=self.heavy.get(i, 1.0))
        )

    def _with_noise(self, sums: NDArray[np.int64], grid: Grid, measure: int, *, quantum: float) -> NoisySum:
        """Exact sums in steps of the grid with the noise of this measure.

        The sums are integers, and so is the change of each by one unit: at most the whole part of the sensitivity. That
        is what the staircase is made for, and it holds for one number that a unit changes, not for several: a small
        change can cost as much as a large one. So it is used where a unit has one group by rule.
        """
        law, multiplier = self.plan.law(measure), self.plan.allocation.noise[measure]
        if law.kind == "staircase":
            sensitivity = max(1, math.floor(grid.sensitivity))
            first = min(sensitivity, max(1, round(law.gamma * sensitivity + 0.5)))
            noise = staircase(law.epsilon, sensitivity, first, sums.size, generator=self.generator)
            scale = multiplier * sensitivity
        else:
            scale = multiplier * grid.sensitivity
            draw = rounded_gaussian if self.plan.gaussian else rounded_laplace
            noise = draw(scale, sums.size, generator=self.generator)
        step = grid.step * quantum
        return NoisySum((sums + noise).astype(np.float64) * step, scale * step, law)

    def _cut(self, noisy: NoisySum, *, sign: int, heavy: float = 1.0) -> NoisySum:
        """The same numbers, with an allowance for what a chosen bound has cut off."""
        return replace(noisy, lost=allowance(noisy, sign=sign, skew=self.skew * heavy))

    # ---------------------------------------------------------------- ranks and distinct values

    def _ranked(self) -> tuple[RankAnswer, ...]:
        plan, session = self.plan, self.session
        weight: str | None = None
        source, place = self._rows_by_place()
        if plan.block.row_level:
            bound = float(plan.block.rows_per_unit or 1)
        else:
            per, _ = self._grouped("q__per", "q__per.g")
            counted = "sum(CAST(c AS HUGEINT) * c)" if plan.gaussian else "sum(c)"
            session.execute(
                f"CREATE OR REPLACE TEMP TABLE q__rows_of AS SELECT u, {counted} AS n FROM {per} GROUP BY u"
            )
            size = "sqrt(CAST(o.n AS DOUBLE))" if plan.gaussian else "CAST(o.n AS DOUBLE)"
            found = session.numbers(f"SELECT {bucket(size)} AS b, count(*) AS n FROM q__rows_of o GROUP BY b")
            number = choose_share(
                found["b"], found["n"], epsilon=plan.allocation.choice, share=_SHARE_OF_UNITS, generator=self.generator
            )
            bound = min(max(1.0, bound_of(number)), _MOST_ROWS)
            self.bounds["rows of a unit, for quantiles"] = bound
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
            if full and self.size * scale.span <= _TALLIED:
                sql = f"SELECT CAST(g * {scale.span} + {scale.within('b')} - {scale.cells[0]} AS INTEGER) FROM {placed}"
                cells = Cells.tallied(session.tally(sql, self.size * scale.span), units.weight, scale)
            else:
                found = session.numbers(
                    f"SELECT g, {scale.within('b')} AS b, CAST({total} AS BIGINT) AS w FROM {placed} GROUP BY 1, 2"
                )
                cells = Cells(self.size, found["g"], found["b"], found["w"], scale)
            answers.append(
                measure_rank(
                    cells,
                    aggregate,
                    bound=reach * SLACK,
                    units=units,
                    noise=noise,
                    gaussian=plan.gaussian,
                    generator=self.generator,
                    weighed=not full,
                )
            )
        return tuple(answers)

    def _rows_by_place(self) -> tuple[str, str]:
        """The rows of the groups that are answered, as far as the units' groups were kept, and a row's place."""
        plan = self.plan
        source, code = self.rows.source, self.rows.cell
        if plan.block.keys and not plan.block.row_level and (plan.single or plan.sampled):
            # A unit counts in the groups that it has in `per`, and if that is one by rule, with all its rows.
            source += " JOIN q__per ON q__per.u = r.u" + ("" if plan.single else f" AND q__per.g = {code}")
            code = "q__per.g"
        return self._grouped(source, code)

    def _distinct(self, i: int) -> NoisySum:
        """COUNT(DISTINCT x): every unit keeps at most m of its (group, value) pairs, chosen at random."""
        plan, session = self.plan, self.session
        noise = plan.noise_of_distinct(i)
        if plan.block.row_level:
            bound = float(plan.block.rows_per_unit or 1)
            found = session.numbers(self._distinct_of_rows(f"r.{plan.distincts[i].argument}"))
        else:
            bound, kept = self._kept_pairs(f"r.{plan.distincts[i].argument}", noise)
            found = session.numbers(f"SELECT g, count(DISTINCT x) AS n FROM ({kept}) GROUP BY g")
        full = self._placed(found["g"], found["n"])
        measure = len(plan.moments) + len(plan.ranks) + i
        noisy = self._with_noise(full, Grid(bound, 0), measure, quantum=1.0)  # a count is never in coarser steps
        return noisy if plan.block.row_level else self._cut(noisy, sign=1)

    def _distinct_of_rows(self, argument: str) -> str:
        if self.plan.public:
            return by_public_group(self.session, self.plan, {"n": f"count(DISTINCT {argument})"})
        source, place = self._rows_by_place()
        return f"SELECT {place} AS g, count(DISTINCT {argument}) AS n FROM {source} GROUP BY {place}"

    def _kept_pairs(self, argument: str, noise: float) -> tuple[float, str]:
        """How many pairs of a group and a value a unit keeps, chosen privately, and SQL of those that are kept."""
        session = self.session
        source, place = self._rows_by_place()
        session.execute(
            f"CREATE OR REPLACE TEMP TABLE q__pairs AS SELECT DISTINCT r.u AS u, {place} AS g, {argument} AS x, "
            f"hash({argument}, {self.rows.lot}, {self.secret}::HUGEINT) AS lot FROM {source} "
            f"WHERE {argument} IS NOT NULL"
        )
        found = session.numbers(
            f"SELECT {bucket('n')} AS b, count(*) AS n FROM (SELECT count(*) AS n FROM q__pairs GROUP BY u) GROUP BY b"
        )
        bound = float(min(math.ceil(self._choose(found["b"], found["n"], noise, 1.0)), max(1, int(_WIDEST / noise))))
        self.bounds["distinct values of a unit"] = bound
        return (
            bound,
            f"SELECT g, x FROM q__pairs QUALIFY row_number() OVER (PARTITION BY u ORDER BY lot) <= {int(bound)}",
        )

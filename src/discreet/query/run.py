"""`Run`: one block while it is answered: its groups, its private choices, and exact noise for its sums."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.engines import arrow_column
from discreet.noise import rounded_gaussian, rounded_laplace, secure_generator, staircase
from discreet.query import keys as key_selection
from discreet.query.allocation import of_row
from discreet.query.bounding import make_codes
from discreet.query.choices import (
    STRONGEST,
    bound_of,
    choose_bound,
    choose_share,
    lean,
    most_above,
    number_of,
    spread_above,
)
from discreet.query.gains import choose_kept, gains_wanted
from discreet.query.laws import NoisySum
from discreet.query.losses import SURELY, allowance, doubt, excess, looked_share, made_up, tells
from discreet.query.public_groups import group_columns
from discreet.query.remembered import Choice
from discreet.query.sizing import sized, whole_buckets

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from discreet.engines import Session
    from discreet.noise import Generator
    from discreet.query.bounding import Coded, Grid
    from discreet.query.private import Private

    Seen = dict[str, dict[str, NDArray[Any]]]  # what statements have given, by their text and the groups it is about

__all__ = ["Run"]

_SHARE_OF_UNITS = 0.9
"""Quantiles weigh down the units that have more rows than this share of all; tails of sizes are beyond it."""

_MORE_UNITS = (20_000, 0.94)
"""In quantiles the rows of nine units in ten weigh fully, and of all that are more than this number of 94 in 100.

A larger bound has more noise; a smaller one moves the quantile by how weights happen to go with values. Where there are
few units, noise is the larger of the two. Where both are about as large, the error hardly depends on the bound; but
noise is drawn anew for each answer, and what a table has is the same in all of them.
"""

_SHARE_ABOVE = 0.03
"""Of the units, at most so many are meant to exceed a bound where groups are selected.

The rule by which bounds are chosen weighs what all groups lose together against the noise of all. Where there are
thousands of groups it would let a third of the units exceed the bound. Groups that were selected are large beside the
noise, and then what is lost, a part of every group, is what one sees; not in an average, whose sum and number lose the
same part.
"""


class Run:
    """What the steps of an answer share; each takes from the engine what it needs and leaves its choices here."""

    def __init__(self, session: Session, plan: Private, generator: Generator | None, seen: Seen | None = None) -> None:
        self.session, self.plan, self.generator = session, plan, generator
        self.seen: Seen = {} if seen is None else seen  # what statements have given that may come again
        self.bounds: dict[str, float] = {}
        self.used: dict[str, Choice] = {}  # by place of the plan
        self.told: list[tuple[str, Choice]] = []  # what was bought, by digest
        self.doubts: dict[str, str] = {}  # why an interval may be short, by place, from what was released
        self.counted: float | None = None  # units, with noise, where a look has told
        self.left: dict[int, float] = {}  # what was not spent of the pots, by measure
        self.selected: dict[str, pa.ChunkedArray] | None = None  # keys that were selected while they were summed
        self.skew = 1.0  # mean over median of the groups' sizes, where that is known from the selection of keys

    @cached_property
    def secret(self) -> int:
        """The number that nobody can know, for what is left out at random."""
        return (self.generator or secure_generator()).integer(120)

    @cached_property
    def rows(self) -> Coded:
        """The rows with numbered groups."""
        return make_codes(self.session, self.plan, self.secret)

    # ---------------------------------------------------------------- groups

    @cached_property
    def size(self) -> int:
        """The number of groups that are answered; of those that are not public, known once they are selected."""
        assert self.plan.public
        return self.plan.cells

    def grouped(self, relation: str, code: str) -> tuple[str, str]:
        """A relation cut down to the groups that are answered, and SQL of the number of a group in the answer."""
        if self.plan.public:
            return relation, code
        return f"{relation} JOIN q__kept ON q__kept.code = {code}", "q__kept.place"

    def rows_by_place(self) -> tuple[str, str]:
        """The rows of the groups that are answered, as far as the units' groups were kept, and a row's place."""
        plan = self.plan
        source, code = self.rows.source, self.rows.cell
        if plan.block.keys and not plan.block.row_level and (plan.single or plan.sampled):
            # A unit counts in the groups that it has in `per`, and if that is one by rule, with all its rows.
            source += " JOIN q__per ON q__per.u = r.u" + ("" if plan.single else f" AND q__per.g = {code}")
            code = "q__per.g"
        return self.grouped(source, code)

    def select_keys(self) -> None:
        """The table `kept` of the groups that are shown: code, and place in the answer."""
        if self.plan.gaussian:
            most = self.plan.most_groups
            weight = f"CAST(trunc({key_selection.WEIGHT} / sqrt(n)) AS BIGINT)"
            found = self.session.numbers(
                f"SELECT g, CAST(sum({weight}) AS BIGINT) AS w FROM q__per JOIN "
                f"(SELECT u, count(*) AS n FROM q__per GROUP BY u HAVING count(*) <= {most}) USING (u) GROUP BY g"
            )
            kept, shown = key_selection.kept_by_weight(found["w"], self.plan.allocation, self.generator, most=most)
            if shown.size:
                self.skew = min(max(float(np.mean(shown) / np.median(shown)), 1.0), 10.0)
        else:
            found = self.session.numbers("SELECT g, count(*) AS w FROM q__per GROUP BY g")
            kept = key_selection.kept_by_count(
                found["w"], self.plan.allocation, self.generator, groups=self.plan.groups or 1
            )
        self.keep(found["g"][kept])

    def shown(self, counts: NDArray[np.int64], rows: int) -> NDArray[np.bool_]:
        """Which groups of so many rows are shown; each is decided by itself."""
        allocation, generator = self.plan.allocation, self.generator
        if self.plan.gaussian:
            return key_selection.kept_by_weight(counts * key_selection.WEIGHT, allocation, generator, groups=rows)[0]
        return key_selection.kept_by_count(counts, allocation, generator, groups=rows)

    def keep(self, codes: NDArray[Any]) -> None:
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

    def keys(self) -> dict[str, Any]:
        """The keys of the groups that are answered, by column."""
        plan = self.plan
        if not plan.block.keys:
            return {}
        if self.selected is not None:
            return self.selected
        if not plan.public:
            table = self.session.table("SELECT * FROM q__kept ORDER BY place")
            return {key.column: table[key.column] for key in plan.block.keys}
        return group_columns(plan.block.keys)

    def placed(self, places: NDArray[np.int64], numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Numbers by group, added up; groups that have none are 0."""
        full = np.zeros(self.size, dtype=np.int64)
        np.add.at(full, places, numbers)
        return full

    # ---------------------------------------------------------------- private choices

    def choose(
        self, place: str, sizes: Callable[[], dict[str, NDArray[Any]]], *, smallest: float = 0.0, rows: int = 1
    ) -> float:
        """The number of the bound for a place of the plan, from what is known or by a new choice.

        `sizes` is called if something is bought, and gives the number n of units in each bucket b, or in each part f of
        a bucket, and in each bucket k of their sums over their norms (see `choices`), where these are looked at. A unit
        counts in at most `rows` of them.
        """
        known = self.plan.known_at(place)
        new = None
        if not known.settled:
            found = sizes()
            if self.plan.has_pot(place):
                new = sized(self, place, found, smallest=smallest, rows=rows)
            else:
                new = self.bought(place, found, smallest=smallest, rows=rows)
            self.told.append((known.digest, new))
        self.used[place] = known.with_new(new)
        if self.used[place].units is not None:
            self.counted = self.used[place].units
        return self.used[place].number

    def choose_kept(self, place: str, counts: Callable[[], Sequence[int]], *, largest: float) -> Choice:
        """How many values of a unit are kept for a distinct count, from what is known or by a new choice (`gains`).

        `counts` is called if something is bought, and says for every candidate how many pairs would be counted.
        """
        known = self.plan.known_at(place)
        new = None
        if not known.settled:
            epsilon, noise = self.plan.allocation.choice, self.plan.noise_for(place)
            wanted = gains_wanted(noise, groups=max(1, self.size) * self.skew)
            number = choose_kept(
                counts(),
                epsilon=epsilon,
                wanted=wanted,
                largest=largest,
                bounded=self.plan.gaussian,
                generator=self.generator,
            )
            new = Choice(number, epsilon, noise, wanted)
            self.told.append((known.digest, new))
        self.used[place] = known.with_new(new)
        return self.used[place]

    def allowed(self, plan: Private, place: str, *, looked: float | None = None) -> float:
        """How many units may exceed the bound there, for the noise of a plan, as far as their number is known."""
        allowed = plan.allowed_at(place, groups=max(1, self.size) * self.skew, looked=looked)
        if self.counted is not None and plan.shows_totals and not plan.public:
            return min(allowed, max(1.0, _SHARE_ABOVE * self.counted))
        return allowed

    def spare(self) -> None:
        """Put what is left in the pots to their measures; all bounds of moments are there."""
        self.plan = replace(self.plan, allocation=self.plan.allocation.spared(self.left))
        self.left = {}

    def bought(
        self,
        place: str,
        found: dict[str, NDArray[Any]],
        *,
        smallest: float,
        rows: int,
        strongest: float = STRONGEST,
    ) -> Choice:
        """A new choice, with the looks that go with it; `strongest` is its largest preference for small bounds."""
        plan, units = self.plan, found["n"]
        buckets = whole_buckets(found["f"]) if "f" in found else found["b"]
        epsilon, tail = (of_row(level, rows) for level in (plan.allocation.choice, plan.allocation.tail))
        if place == "rows":
            return Choice(self._choose_usual(buckets, units, epsilon, further=_MORE_UNITS), epsilon)
        noise, groups = plan.noise_for(place), max(1, self.size) * self.skew
        counted = self.counted_units(units, tail) if plan.looks_at(place) else None
        self.counted = self.counted if counted is None else counted
        looked = None
        if counted is not None and "k" in found:
            looked = self._spread(found["k"], units, counted, epsilon=tail)
        allowed = self.allowed(plan, place, looked=looked)
        if counted is not None and not (plan.shows_totals and not plan.public):
            allowed = min(allowed, most_above(counted, epsilon=epsilon))
        number = choose_bound(
            buckets,
            units,
            epsilon=epsilon,
            allowed=allowed,
            smallest=smallest,
            largest=plan.most_at(place),
            sure=math.inf if counted is None else counted - SURELY / tail,
            reach=plan.reach_at(place),
            bounded=plan.gaussian,
            strongest=strongest,
            generator=self.generator,
        )
        if counted is None:
            return Choice(number, epsilon, noise, allowed)
        share, spread = _SHARE_OF_UNITS, 0.0
        if plan.gaussian and plan.public:
            share = looked_share(counted, above=allowed + 1 / epsilon)
            spread = spread_above(groups, single=plan.single, looked=looked)
        size = self._choose_usual(buckets, units, tail, below=number, share=share)
        return Choice(number, epsilon, noise, allowed, units=counted, size=size, looked=tail, spread=spread)

    def counted_units(self, units: NDArray[Any], epsilon: float) -> float:
        """How many units there are, with noise."""
        return self.counted_apart([units], epsilon)[0]

    def counted_apart(self, kinds: Sequence[NDArray[Any]], epsilon: float) -> list[float]:
        """How many units there are of each kind, with noise. A unit is of one kind, so all cost what one costs."""
        noise = rounded_laplace((1 + 1e-12) / epsilon, len(kinds), generator=self.generator)
        return [float(int(units.sum()) + int(drawn)) for units, drawn in zip(kinds, noise, strict=True)]

    def _spread(self, spreads: NDArray[Any], units: NDArray[Any], counted: float, *, epsilon: float) -> float | None:
        """What a tenth of the units exceeds of their sums over their norms; None where they are too few to tell."""
        widest, power = number_of(math.sqrt(max(1, self.size))), lean(counted, epsilon=epsilon)
        found = choose_share(
            spreads, units, epsilon=epsilon, share=_SHARE_OF_UNITS, below=widest, power=power, generator=self.generator
        )
        return bound_of(found) if tells(counted, looked=epsilon) else None

    def _choose_usual(
        self,
        buckets: NDArray[Any],
        units: NDArray[Any],
        epsilon: float,
        *,
        below: int | None = None,
        share: float = _SHARE_OF_UNITS,
        further: tuple[int, float] | None = None,
    ) -> int:
        """A bound that this share of units is within; few exceed the bound of the number `below`, if it is known."""
        return choose_share(
            buckets, units, epsilon=epsilon, share=share, further=further, below=below, generator=self.generator
        )

    # ---------------------------------------------------------------- noise

    def with_noise(self, sums: NDArray[np.int64], grid: Grid, measure: int, *, quantum: float) -> NoisySum:
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

    def cut(self, noisy: NoisySum, place: str, *, sign: int, times: float = 1.0) -> NoisySum:
        """The same numbers, with an allowance for what the bound of this place has cut off, `times` the usual."""
        kind, _, i = place.partition(" ")
        anything = kind == "moment" and self.plan.moments[int(i)].row_steps is None
        reason = doubt(self.used[place], single=self.size <= 1, anything=anything)
        if reason is not None:
            self.doubts[place] = reason
        noise = self.plan.noise_for(place)
        more = excess(self.used[place], noise, groups=max(1, self.size))
        allowed = replace(noisy, lost=allowance(noisy, sign=sign, skew=self.skew * more * times))
        return made_up(allowed, self.used[place], noise, sign=sign)

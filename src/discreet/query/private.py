"""The private side of a block: which sums are taken, on which path, at what price; all of it from public facts."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from discreet.accounting import Cost
from discreet.errors import InvalidArgument
from discreet.query.allocation import Allocation, allocate, gaussian_multiplier
from discreet.query.choices import units_above
from discreet.query.drawable import check_drawable, too_little
from discreet.query.keys import MOST_GROUPS
from discreet.query.laws import GAUSSIAN, LAPLACE, staircase_law
from discreet.query.moments import MOST_ROWS, Moment, is_centred, moments_of
from discreet.query.remembered import Known

if TYPE_CHECKING:
    from collections.abc import Iterable

    from discreet.query.laws import Law
    from discreet.query.options import Options
    from discreet.query.plan import Aggregate, Block, Question
    from discreet.query.remembered import Memory
    from discreet.query.target import Target

__all__ = ["MOST_CELLS", "Private", "plans_of", "private_plan", "total_cost"]

MOST_CELLS = 1 << 22
"""Answers with more public groups than this are refused."""

_FEW_GROUPS = 5
"""Up to so many public groups a unit is taken to be in all of them: the error is smaller by a half and more. From about
eight on, most units are in few of them, and a norm that is chosen is as good."""

_LARGE_UNIT = 9
"""How many times the rows of a usual unit a large one is taken to have."""

_RANKS = frozenset({"quantile", "min", "max"})
_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
_KEYS = frozenset(
    {*_INTEGERS, *(f"U{name}" for name in _INTEGERS), "BOOLEAN", "DECIMAL", "FLOAT", "DOUBLE", "VARCHAR"}
    | {"DATE", "TIMESTAMP", "TIME", "UUID", "ENUM"}
)
_FINEST, _LARGEST, _WIDEST = 1e-15, 1e18, 1e9
_SMALLEST = 1e-280  # of values that are all the same: their quantum is a double, too


@dataclass(frozen=True)
class Private:
    """How one block is answered.

    Measures are numbered: first the moments, then the ranks (quantiles, MIN, MAX), then the distinct counts. `groups`
    is the largest number of groups in which one unit counts, or None if only the norm of its contributions is bounded.
    `known` has one for every bound that nobody stated; those that are settled are known, the others are bought.
    """

    block: Block
    options: Options
    moments: tuple[Moment, ...]
    ranks: tuple[Aggregate, ...]
    distincts: tuple[Aggregate, ...]
    groups: int | None
    gaussian: bool
    allocation: Allocation
    target: Target
    known: tuple[Known, ...] = ()

    @cached_property
    def cost(self) -> Cost:
        """What answering the block costs."""
        return self.allocation.cost

    @property
    def single(self) -> bool:
        """Whether the operators leave every unit in one group."""
        return _single(self.block)

    @property
    def sampled(self) -> bool:
        """Whether groups of a unit are left out at random."""
        if self.single or self.block.row_level or self.options.max_groups is None:
            return False
        return not (self.public and max(1, self.cells) <= self.options.max_groups)

    @property
    def most_groups(self) -> int:
        """A unit with more groups than this has no say in which of them are shown."""
        limits = (self.groups, self.block.rows_per_unit, MOST_GROUPS)
        return min(limit for limit in limits if limit is not None)

    @cached_property
    def uncentred(self) -> tuple[str, ...]:
        """The arguments of averages and spreads without bounds: from where they are measured is chosen privately."""
        return _uncentred(self.block.aggregates)

    def is_uncentred(self, moment: Moment) -> bool:
        """Whether what the moment sums depends on such a choice."""
        return moment.kind in ("sum", "square") and moment.argument in self.uncentred

    @property
    def public(self) -> bool:
        """Whether the groups are public."""
        return all(key.values is not None for key in self.block.keys)

    @cached_property
    def cells(self) -> int:
        """The number of public groups."""
        return _cells(self.block)

    def law(self, i: int) -> Law:
        """The law of the noise of measure i, at scale 1."""
        if self.gaussian:
            return GAUSSIAN
        return staircase_law(1 / self.allocation.noise[i]) if self.allocation.is_staircase(i) else LAPLACE

    def known_bound(self, moment: Moment) -> float | None:
        """The norm of one unit's numbers, in quanta, if it needs no choosing: l2 on the Gaussian path, else l1."""
        return _known_bound(self.block, self.options, moment, gaussian=self.gaussian)

    def most(self, moment: Moment) -> float:
        """No unit has a larger norm by what is public, in quanta; of one row, where every row is a unit.

        What one row adds is limited, and so are the rows of a unit in a group, or in all, and the number of its groups.
        """
        row = moment.most_of_row
        if self.block.row_level:
            return row
        rows = min(MOST_ROWS, self.options.max_rows or MOST_ROWS)
        each = 1.0 if moment.kind == "units" else min(float(moment.largest), row * rows)
        groups = min(self.groups or math.inf, max(1, self.cells) if self.public else math.inf)
        most = each * _spread(int(groups), gaussian=self.gaussian) if math.isfinite(groups) else math.inf
        return most if self.block.rows_per_unit is None else min(most, row * self.block.rows_per_unit)

    def no_larger(self, bounds: dict[int, float]) -> dict[int, float]:
        """Bounds on moments, those of sums no larger than what the rows can add that the bound on their number leaves.

        The moments of one argument are shrunk by one factor, so that nothing more is cut off.
        """
        counts = {m.argument: bounds[i] for i, m in enumerate(self.moments) if m.kind == "present"}
        found = {}
        for i, bound in bounds.items():
            moment = self.moments[i]
            limited = moment.kind in ("sum", "square") and moment.argument in counts
            found[i] = min(bound, max(1.0, counts[moment.argument] * moment.most_of_row)) if limited else bound
        return found

    def tailed(self, moment: Moment) -> bool:
        """Whether the tail of the units' sizes is looked at: an interval has to know how much is cut off."""
        return self.known_bound(moment) is None and _tailed(self.block, moment)

    def spread(self, moment: Moment) -> bool:
        """Whether it is looked at in how many groups units are: what is cut off is spread over that many."""
        return self.tailed(moment) and _spreads(self.block, gaussian=self.gaussian)

    def buying(self, places: Iterable[str]) -> Private:
        """The plan with its price divided as it is where the bounds at these places are bought, and no others."""
        block, moments, aggregates = self.block, self.moments, self.block.aggregates
        others = len(self.ranks) + len(self.distincts)
        bought = list(places)
        tails = tuple(i for i, moment in enumerate(moments) if f"moment {i}" in bought and _tailed(block, moment))
        # Ratios and sums of two noisy numbers have intervals for Laplace noise alone.
        plain = not self.ranks and all(len(moments_of(aggregate, aggregates)) <= 1 for aggregate in aggregates)
        try:
            allocation = allocate(
                self.target,
                gaussian=self.gaussian,
                choices=len(bought) + len(self.uncentred),
                keys=not self.public,
                weights=(*_weights(block, self.options, moments, gaussian=self.gaussian), *[1.0] * others),
                groups=self.cells or 1 if self.public else 1,
                alone=self.single and plain,
                tails=tails,
                spreads=len(tails) if _spreads(block, gaussian=self.gaussian) else 0,
            )
        except InvalidArgument as error:
            if error.argument == "delta":
                raise
            raise too_little(self.target) from None  # no accountant takes the cost of such steps
        return replace(self, allocation=allocation)

    def known_at(self, place: str) -> Known:
        """What is known about the choice there."""
        return next(known for known in self.known if known.place == place)

    def looks_at(self, place: str) -> bool:
        """Whether a look at the tail goes with the choice there."""
        kind, _, i = place.partition(" ")
        return kind == "moment" and self.tailed(self.moments[int(i)])

    def noise_for(self, place: str) -> float:
        """The noise multiplier that the bound chosen there is for; 0 if it is for none."""
        kind, _, i = place.partition(" ")
        if kind == "rows":
            return 0.0
        return self.noise_of_moment(int(i)) if kind == "moment" else self.noise_of_distinct(int(i))

    def allowed_at(self, place: str, *, groups: float, looked: float | None = None) -> float:
        """How many units may exceed the bound chosen there, for the noise of this plan in so many groups."""
        return self.noise_for(place) * units_above(max(1, groups), single=self.single, looked=looked)

    def most_at(self, place: str) -> float:
        """No unit has more there by what is public."""
        kind, _, i = place.partition(" ")
        return self.most(self.moments[int(i)]) if kind == "moment" else math.inf

    def reach_at(self, place: str) -> float:
        """How many times the smallest bound the units' sizes may well be there."""
        return self.moments[int(place.partition(" ")[2])].reach

    def epsilon_of_choice(self, place: str) -> float:
        """The epsilon of the choice there, in which one unit counts once; of one with a pot, what it has at least."""
        epsilon = self.allocation.chosen if self.has_pot(place) else self.allocation.choice
        return epsilon / ((self.block.rows_per_unit or 1) if self.block.row_level else 1)

    def has_pot(self, place: str) -> bool:
        """Whether the bound there is found step by step, from a sketch of sizes (see `allocation`)."""
        return not self.gaussian and self.looks_at(place)

    def is_surveyed(self, place: str) -> bool:
        """Whether the bound there may be found for everybody (see `surveys`)."""
        if not (self.public and self.has_pot(place)):
            return False
        return not self.is_uncentred(self.moments[int(place.partition(" ")[2])])

    def level_at(self, place: str) -> float:
        """The epsilon that is paid for the moment whose bound is found there, if no bound has to be bought.

        Whatever is known of this bound or of others, it is the same.
        """
        return 1 / self.buying(()).noise_for(place)

    @property
    def shows_totals(self) -> bool:
        """Whether counts or sums of rows are shown."""
        return any(aggregate.function in ("count", "sum") for aggregate in self.block.aggregates)

    def noise_of_moment(self, i: int) -> float:
        """The noise multiplier of a moment."""
        return self.allocation.noise[i]

    def noise_of_rank(self, i: int) -> float:
        """The noise multiplier of a quantile, MIN or MAX."""
        return self.allocation.noise[len(self.moments) + i]

    def noise_of_distinct(self, i: int) -> float:
        """The noise multiplier of a distinct count."""
        return self.allocation.noise[len(self.moments) + len(self.ranks) + i]

    def bound_of_moment(self, i: int) -> str:
        """The name under which the bound of a moment is written down; the number tells those apart that share one."""
        label = self.moments[i].label
        alone = sum(moment.label == label for moment in self.moments) == 1
        return label if alone else f"{label} ({i})"

    def middle_of(self, argument: str) -> str:
        """The name under which it is written down from where an argument is measured."""
        return f"middle of {argument}"

    def bound_of_distinct(self, i: int) -> str:
        """The name under which the bound of a distinct count is written down."""
        return f"distinct values of {self.distincts[i].argument}"


def private_plan(block: Block, target: Target, options: Options, memory: Memory | None = None) -> Private:
    """The private plan of a block at a price, with what is remembered."""
    _check_keys(block)
    # Where the rows of a unit are limited, noise is in proportion to the largest value that a row can have by what is
    # public, which is least from the middle of its range.
    limited = block.rows_per_unit is not None or (options.max_rows is not None and _groups(block, options) is not None)
    aggregates = tuple(replace(_bounded(aggregate, options), middle=limited) for aggregate in block.aggregates)
    block = replace(block, aggregates=aggregates)
    moments = tuple(dict.fromkeys(m for aggregate in aggregates for m in moments_of(aggregate, aggregates)))
    ranks = tuple(aggregate for aggregate in aggregates if aggregate.function in _RANKS)
    distincts = tuple(aggregate for aggregate in aggregates if aggregate.function == "count_distinct")
    if options.bounding == "sample" and block.row_level:
        raise InvalidArgument("bounding", "sample", "every row is a person of its own here; there is nothing to sample")
    groups = _groups(block, options)
    measures = len(moments) + len(ranks) + len(distincts)
    gaussian = _takes_gaussian(target, groups, measures)
    public = all(key.values is not None for key in block.keys)
    if not public and target.has_slack and (groups != 1 or (block.row_level and block.rows_per_unit != 1)):
        # The selection by weight is far cheaper for several groups of a unit; and where every row is a unit with
        # several copies, they may all be in one group (or have to be, if the group is the same for all rows), which
        # the selection by count does not allow for.
        gaussian = True
    places = [
        f"moment {i}"
        for i, moment in enumerate(moments)
        if _known_bound(block, options, moment, gaussian=gaussian) is None
    ]
    if not block.row_level:
        limit = _known_bound(block, options, Moment("rows"), gaussian=gaussian)
        places += ["rows"] * (bool(ranks) and limit is None) + [f"distinct {i}" for i in range(len(distincts))]
    known = tuple(Known(place) for place in places)
    nothing = Allocation(gaussian, 0.0, 0, 0.0, 0.0, 0.0, ())
    plan = Private(block, options, moments, ranks, distincts, groups, gaussian, nothing, target, known).buying(places)
    check_drawable(plan, target)
    if public and plan.cells > MOST_CELLS:
        raise InvalidArgument(
            "GROUP BY", f"{plan.cells} groups", f"group by less: at most {MOST_CELLS} public groups are answered"
        )
    if memory is None or not known:
        return plan
    known = memory.known(plan)
    return replace(plan, known=known).buying(one.place for one in known if not one.settled)


def plans_of(question: Question, target: Target, options: Options, memory: Memory | None = None) -> tuple[Private, ...]:
    """The private plans of all blocks of a question, each at an equal share of the price."""
    share = target.divided(max(1, len(question.blocks)))
    return tuple(private_plan(block, share, options, memory) for block in question.blocks)


def total_cost(plans: tuple[Private, ...]) -> Cost:
    """What answering all of them costs."""
    total = Cost.zero()
    for plan in plans:
        total += plan.cost
    return total


def _bounded(aggregate: Aggregate, options: Options) -> Aggregate:
    stated = options.bounds_for(aggregate)
    bounds = stated or aggregate.bounds
    if bounds is None or aggregate.argument is None:
        return aggregate
    low, high = float(bounds[0]), float(bounds[1])
    most, width = max(abs(low), abs(high)), high - low
    one = width == 0 and (most == 0 or most >= _SMALLEST)
    if most <= _LARGEST and (one or (width >= _FINEST and most <= width * _WIDEST)):
        return replace(aggregate, bounds=(low, high))
    if stated is None:  # derived from the question, and of no use
        return replace(aggregate, bounds=None)
    raise InvalidArgument(
        "bounds",
        bounds,
        f"the range of {aggregate.label} is at least {_FINEST:g} wide, within ±{_LARGEST:g}, and not tiny beside "
        "its distance from 0",
    )


def _uncentred(aggregates: tuple[Aggregate, ...]) -> tuple[str, ...]:
    functions: dict[str, set[str]] = {}
    free = {one.argument for one in aggregates if one.bounds is None and len(moments_of(one, aggregates)) > 1}
    for one in aggregates:
        if one.argument in free and one.argument is not None:
            functions.setdefault(one.argument, set()).add(one.function)
    return tuple(argument for argument, found in functions.items() if is_centred(found, None))


def _weights(block: Block, options: Options, moments: tuple[Moment, ...], *, gaussian: bool) -> list[float]:
    """What each moment gets of the price, so that their relative errors together are small.

    A unit changes a number of units by 1 and a number or sum of rows by as much as a large unit has. Beside the whole
    that is r times more, where r is how many times the usual size a large unit has; unless a limit on rows is known, r
    is taken to be 9. The sum of relative errors r_i / e_i for given sum of e_i is least for e_i in proportion to the
    root of r_i, and that of r_i / mu_i for given sum of squares for mu_i^2 in proportion to r_i^(2/3).
    """
    rows = block.rows_per_unit if block.rows_per_unit is not None else options.max_rows
    larger = float(min(rows or _LARGE_UNIT, _LARGE_UNIT))
    return [1.0 if moment.kind == "units" else larger ** (2 / 3 if gaussian else 1 / 2) for moment in moments]


def _tailed(block: Block, moment: Moment) -> bool:
    return any(
        aggregate.function in ("count", "count_units", "sum") and moment in moments_of(aggregate, block.aggregates)
        for aggregate in block.aggregates
    )


def _spreads(block: Block, *, gaussian: bool) -> bool:
    """Whether units may be in many public groups."""
    public = all(key.values is not None for key in block.keys)
    return gaussian and public and not _single(block) and not block.row_level


def _check_keys(block: Block) -> None:
    """Values of other types may be equal and look different, and would show who came first."""
    for key in block.keys:
        if key.sql_type.endswith("]") or key.sql_type.split("(")[0].split(" ")[0] not in _KEYS:
            raise InvalidArgument(
                "GROUP BY", key.label, f"cast it to a number, a text, a date or a time: groups cannot be {key.sql_type}"
            )


def _single(block: Block) -> bool:
    return all(key.of_unit for key in block.keys) or (block.rows_per_unit == 1)


def _groups(block: Block, options: Options) -> int | None:
    """Of a unit with a column of its own, only limits count that the engine enforces: declarations may be wrong.

    That it is in no more groups than there are needs no enforcing. Where they are public and few, or a limit is stated
    that is larger, that is the limit.
    """
    if _single(block):
        return 1
    if block.row_level:
        return block.rows_per_unit
    limits = [] if options.max_groups is None else [options.max_groups]
    if all(key.values is not None for key in block.keys) and (limits or _cells(block) <= _FEW_GROUPS):
        limits.append(max(1, _cells(block)))
    return min(limits, default=None)


def _cells(block: Block) -> int:
    return math.prod(len(key.values or ()) for key in block.keys)


def _takes_gaussian(target: Target, groups: int | None, measures: int) -> bool:
    """Whether Gaussian noise is smaller: Laplace noise grows with the number of numbers, Gaussian with its root.

    A unit changes m = groups * measures numbers by 1 each. Laplace noise then has the standard deviation sqrt(2) m /
    eps and Gaussian noise s sqrt(m).
    """
    if target.mu is not None:
        return True
    if target.rho is not None:
        return True
    if not target.has_slack:
        return False
    if groups is None:
        return True
    assert target.epsilon is not None
    return 2 * groups * max(1, measures) > (gaussian_multiplier(target.epsilon, target.delta) * target.epsilon) ** 2


def _known_bound(block: Block, options: Options, moment: Moment, *, gaussian: bool) -> float | None:
    groups, rows, most_rows = _groups(block, options), block.rows_per_unit, options.max_rows
    bounds: list[float] = []
    if rows is not None and moment.row_steps is not None:
        bounds.append(float(rows * moment.row_steps))  # they may all fall into one group: both norms are at most that
    if block.row_level:
        return max(1.0, bounds[0]) if bounds else None
    if rows is not None:
        groups = rows if groups is None else min(groups, rows)
    if groups is not None and moment.kind == "units":
        bounds.append(_spread(groups, gaussian=gaussian))
    elif groups is not None and most_rows is not None and moment.row_steps is not None:
        bounds.append(_spread(groups, gaussian=gaussian) * most_rows * moment.row_steps)
    return max(1.0, min(bounds)) if bounds else None


def _spread(groups: int, *, gaussian: bool) -> float:
    """The norm of a 1 in each of so many groups."""
    return math.sqrt(groups) * (1 + 1e-12) if gaussian else float(groups)

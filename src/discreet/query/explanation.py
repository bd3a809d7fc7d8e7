"""`Explanation`: how a question would be answered, before anything is paid."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from discreet.accounting import Cost
from discreet.arguments import unit_fraction
from discreet.errors import left
from discreet.query.choices import bound_of
from discreet.query.intervals import noisy_columns
from discreet.query.keys import units_shown
from discreet.query.laws import half_width_of_sum
from discreet.query.losses import excess, usual
from discreet.query.report import in_words, large_delta, report_of, vain_conditions

if TYPE_CHECKING:
    from discreet.errors import BudgetExceeded
    from discreet.query.moments import Moment
    from discreet.query.plan import Aggregate, Question
    from discreet.query.private import Private
    from discreet.query.target import Target

__all__ = ["Explanation"]

_TEN_ROWS, _SOME_VALUE = 10, 10.0  # what an example speaks of


@dataclass(frozen=True, repr=False)
class Explanation:
    """Plan, bounds, cost, noise and expected error of a question; `print` it. Nothing was spent and no row was read.

    `tree` shows the operators, each with what one unit can change through it. `target` is the price that was asked for
    (None if no row of people would be read). `answered`: the stored answer would be read again, at no cost. `refusal`
    is the error with which the question would be refused because too little is left, else None. `left` is the unit of
    the budget and what is left of it for the analyst, now and after the question; None if it would cost nothing.
    `surveys` is what is paid before it, from the share of the budget for bounds, to find bounds for everybody; the plan
    is as it will be then. `no_room` is what that would cost where there is no room for it, and the question
    can be asked all the same. `delta_left` is what is left, before the question, of the delta that budgets have for
    groups that are not public; None where it needs none.
    """

    question: Question
    target: Target | None
    plans: tuple[Private, ...]
    cost: Cost
    tree: str = ""
    answered: bool = False
    refusal: BudgetExceeded | None = None
    left: tuple[str, float, float] | None = None
    surveys: Cost = field(default_factory=Cost.zero)
    no_room: Cost = field(default_factory=Cost.zero)
    delta_left: float | None = None

    @property
    def report(self) -> tuple[str, ...]:
        """The rules by which rows and units will be bounded."""
        return report_of(self.plans)

    @property
    def cautions(self) -> tuple[str, ...]:
        """What may be wrong: a delta that protects little, a condition that no row can meet by the policy."""
        return (*large_delta(self.target, self.plans), *vain_conditions(self.plans))

    def errors(self, confidence: float = 0.95) -> dict[str, float | None]:
        """The half-width of each aggregate's interval at this confidence, where it is known in advance, by column.

        None where it depends on a bound that will be chosen privately, or on the other numbers of the answer. Where a
        bound is known from earlier answers, the interval is wider on one side, and this is the wider one, of a group of
        average size. An aggregate
        that is no column as it is, but a part of one, goes by what it is, as in "count(*)", and if several parts of the
        question have the same, by its part, as in "part 2: count(*)".
        """
        level = unit_fraction("confidence", confidence)
        errors: dict[str, float | None] = {}
        parts: list[tuple[int, str, float | None]] = []
        for number, plan in enumerate(self.plans):
            for aggregate in plan.block.aggregates:
                half = _half_width(plan, aggregate.function, aggregate.argument, level)
                columns = self._columns(number, aggregate)
                errors |= dict.fromkeys(columns, half)
                parts += [] if columns else [(number, aggregate.label, half)]
        labels = [*errors, *(label for _, label, _ in parts)]
        for number, label, half in parts:
            errors[label if labels.count(label) == 1 else f"part {number + 1}: {label}"] = half
        return errors | dict.fromkeys(self._computed(set(errors)))

    def _computed(self, known: set[str]) -> list[str]:
        """The other columns that have noise: what the question makes of its aggregates."""
        others = [output.name for output in self.question.outputs if output.name not in known]
        noisy = noisy_columns(self.question) if others else set()
        return [name for name in others if name in noisy]

    def _columns(self, number: int, aggregate: Aggregate) -> list[str]:
        """The columns of the answer that show an aggregate of a block unchanged."""
        return [
            output.name
            for output in self.question.outputs
            if output.block == number and output.column == aggregate.column
        ]

    def __str__(self) -> str:
        target = "nothing: no row of people is read" if self.target is None else str(self.target)
        lines = [f"target  {target}", *(f"caution {line}" for line in self.cautions), f"cost    {self.cost}"]
        if self.surveys != Cost.zero():
            lines.append(f"bounds  {self._found_first}")
        if self.no_room != Cost.zero():
            lines.append(f"bounds  {self._found_by_itself}")
        if self.answered:
            lines.append("budget  it was answered before: the stored answer is read again, at no cost")
        if self.refusal is not None:
            lines.append(f"budget  {self.refusal}")
        if self.delta_left is not None and self.refusal is None and not self.answered:
            lines.append(f"budget  {self._of_delta}")
        if self.left is not None:
            unit, now, after = self.left
            before, rest = (left(amount, of=now, squared=unit == "mu") for amount in (now, after))
            lines.append(f"budget  {unit} {before} is left, and {rest} after it")
        lines.append("")
        if self.tree:
            lines += ["plan", *(f"  {line}" for line in self.tree.splitlines()), ""]
        for number, plan in enumerate(self.plans):
            lines += self._block(number, plan)
        computed = self._computed({output.name for output in self.question.outputs if output.block is not None})
        if computed:
            lines += [f"computed from these: {', '.join(computed)}; how far it may be off is known with the answer", ""]
        if self.report:
            lines += ["rules", *(f"  - {line}" for line in self.report)]
        lines += ["", "Nothing was spent and no row was read."]
        return "\n".join(lines)

    __repr__ = __str__

    @property
    def _of_delta(self) -> str:
        """How far the delta goes that questions like this one need."""
        needed = sum(plan.allocation.key_delta for plan in self.plans)
        more = math.floor((self.delta_left or 0.0) / needed * (1 + 1e-9))
        return (
            f"groups that are not public need a delta, here {needed:g}; what is set aside for it is enough for {more} "
            f"question{'' if more == 1 else 's'} like this one"
        )

    @property
    def _found_first(self) -> str:
        return (
            f"found before it, once for everybody, for epsilon = {self.surveys.epsilon(0.0):.4g} from the share of the "
            "budget for bounds (bounds_share = 0 turns that off, where the data are opened or in the policy)"
        )

    @property
    def _found_by_itself(self) -> str:
        return (
            "found by this question, for part of its price: once for everybody they would cost epsilon = "
            f"{self.no_room.epsilon(0.0):.4g} more, for which the share of the budget for bounds, or the budget with "
            "this question, has no room"
        )

    def _block(self, number: int, plan: Private) -> list[str]:
        title = "groups" if len(self.plans) == 1 else f"part {number + 1}: groups"
        keys = ", ".join(key.label for key in plan.block.keys) or "none, one answer for all rows"
        lines = [f"{title}  {keys}"]
        if plan.block.keys and plan.public:
            lines.append(f"  {plan.cells} public groups, whether anybody is in them or not")
        elif plan.block.keys:
            lines.append(f"  selected privately, failing with probability {plan.allocation.key_delta:g}")
            lines.append(f"  {_least_groups(plan)}")
        laws = {
            plan.law(i).kind.capitalize() if plan.law(i).kind != "staircase" else "staircase"
            for plan in (replace(plan, allocation=way) for way in (plan.allocation.hoped, plan.allocation.feared))
            for i in range(len(plan.allocation.noise))
        }
        law = " or ".join(sorted(laws)) or ("Gaussian" if plan.gaussian else "Laplace")
        why = (
            "a unit may count in many groups (if each is in one or few, state max_groups)"
            if plan.groups is None
            else f"a unit counts in at most {plan.groups} group{'s' if plan.groups > 1 else ''}"
        )
        lines += [f"noise  {law}, because {why}" if plan.groups is None or plan.gaussian else f"noise  {law}: {why}"]
        for i, moment in enumerate(plan.moments):
            lines.append(f"  {in_words(plan, moment)}: {_noise(plan, moment, plan.noise_of_moment(i))}")
        for i, rank in enumerate(plan.ranks):
            noise = f"noise multiplier {plan.noise_of_rank(i):.4g} in the number of rows"
            lines.append(f"  {rank.label}: {noise}{_source(plan, 'rows')}")
        for i, distinct in enumerate(plan.distincts):
            noise = f"noise of {plan.noise_of_distinct(i):.4g} times the values kept of a unit"
            lines.append(f"  {distinct.label}: {noise}{_source(plan, f'distinct {i}')}")
        lines += ["expected error (95 %)"]
        for aggregate in plan.block.aggregates:
            shown = _measure(plan, aggregate.function, aggregate.argument)
            if shown is not None and plan.known_bound(plan.moments[shown]) is None:
                known = _in_bounds(plan, shown)
            else:
                half = _half_width(plan, aggregate.function, aggregate.argument, 0.95)
                known = "known with the answer" if half is None else f"± {half:.4g}"
            columns = [name for name in self._columns(number, aggregate) if name != aggregate.label]
            lines.append(f"  {' = '.join([*columns, aggregate.label])}: {known}")
        return [*lines, *_example(plan), ""]


def _least_groups(plan: Private) -> str:
    """How large a group must be to be shown."""
    groups = None if plan.gaussian else plan.groups or 1
    if plan.block.row_level:
        groups = plan.block.rows_per_unit or 1
    most, gaussian = plan.most_groups, plan.gaussian
    half, nearly = (
        units_shown(plan.allocation, part, gaussian=gaussian, groups=groups, most=most) for part in (0.5, 0.95)
    )
    what = "rows" if plan.block.row_level else "units"
    weighed = gaussian and not plan.block.row_level and most > 1
    shared = "; a unit in k groups counts 1/√k in each" if weighed else ""
    return f"of groups with {half} {what} about half are shown, and 95 in 100 of those with {nearly}{shared}"


def _noise(plan: Private, moment: Moment, multiplier: float) -> str:
    bound, told = plan.known_bound(moment), _told(plan, plan.moments.index(moment))
    kind = "standard deviation" if plan.gaussian else "scale"
    used = told if bound is None else bound
    if used is None:
        i = plan.moments.index(moment)
        least, most = plan.allocation.hoped.noise[i], plan.allocation.feared.noise[i]
        scale = f"{multiplier:.4g}" if least == multiplier else f"{least:.4g} to {most:.4g}"
        return f"{kind} {scale} times a bound on one unit that is chosen privately"
    size, source = used * moment.quantum, _source(plan, f"moment {plan.moments.index(moment)}")
    return f"{kind} {multiplier * size:.4g}, from a bound of {size:.4g} on one unit{source}"


def _source(plan: Private, place: str) -> str:
    """Where the bound is from, if earlier answers have told it."""
    known = next((known for known in plan.known if known.place == place), None)
    if known is None or not known.settled:
        return ""
    whence = "from earlier answers" if known.common is None else "to everybody"
    return f"; the bound is known {whence}, at no cost"


def _told(plan: Private, i: int) -> float | None:
    """The bound of a moment that earlier answers have told, in quanta, if nothing is bought for it."""
    told = {known.place: bound_of(known.with_new().number) for known in plan.known if known.settled}
    if f"moment {i}" not in told:
        return None
    if plan.block.row_level:
        return (plan.block.rows_per_unit or 1) * told[f"moment {i}"]
    bounds = {}
    for j, moment in enumerate(plan.moments):
        declared = plan.known_bound(moment)
        chosen = min(told.get(f"moment {j}", math.inf), plan.most(moment))
        bounds[j] = chosen if declared is None else declared
    return plan.no_larger(bounds)[i]


def _measure(plan: Private, function: str, argument: str | None) -> int | None:
    """The number of the moment that a count or a sum shows as it is."""
    if function not in ("count", "count_units", "sum"):
        return None
    for i, moment in enumerate(plan.moments):
        fits = moment.argument == argument and (moment.kind == "sum") == (function == "sum")
        if fits and (function != "count_units" or moment.kind == "units"):
            return None if moment.kind == "sum" and moment.centre else i
    return None


def _half_width(plan: Private, function: str, argument: str | None, confidence: float) -> float | None:
    i = _measure(plan, function, argument)
    if i is None:
        return _half_width_of_two(plan, argument, confidence) if function == "sum" else None
    bound, reach = plan.known_bound(plan.moments[i]), plan.law(i).two_sided(confidence)
    if bound is None:
        bound, reach = _told(plan, i), sum(_reach(plan, i, confidence))
    if bound is None:
        return None
    half = plan.noise_of_moment(i) * bound * plan.moments[i].quantum * reach
    return half if math.isfinite(half) else None


def _half_width_of_two(plan: Private, argument: str | None, confidence: float) -> float | None:
    """That of a sum which is measured from the middle of the bounds, beside the number of values."""
    places = [i for i, moment in enumerate(plan.moments) if moment.argument == argument]
    parts = {plan.moments[i].kind: i for i in places if plan.known_bound(plan.moments[i]) is not None}
    if not {"sum", "present"} <= set(parts):
        return None
    scales = []
    for kind in ("sum", "present"):
        i = parts[kind]
        bound = plan.known_bound(plan.moments[i])
        assert bound is not None
        scales.append(plan.noise_of_moment(i) * bound * plan.moments[i].quantum)
    centre = abs(plan.moments[parts["sum"]].centre)
    return half_width_of_sum(scales[0], centre * scales[1], confidence, gaussian=plan.gaussian)


def _reach(plan: Private, i: int, confidence: float) -> tuple[float, float]:
    """The interval on the side of the noise alone, and how much further it goes on the other, in units of the noise.

    For a group of average size, and a bound that is chosen.
    """
    lost, place = usual(plan.cells if plan.public else 2, gaussian=plan.gaussian), f"moment {i}"
    known = plan.known_at(place)
    if known.settled:
        groups = max(1, plan.cells) if plan.public else 2
        lost *= excess(known.with_new(), plan.noise_for(place), groups=groups)
    return float(plan.law(i).reach(np.array([lost]), confidence)[0]), lost


def _in_bounds(plan: Private, i: int) -> str:
    """The interval for a group of average size; in terms of the bound, if that will be chosen."""
    told = _told(plan, i)
    if told is not None:
        return _around(plan, i, told * plan.moments[i].quantum)
    mostly = ", mostly less" if plan.allocation.pots else ""
    return f"{_around(plan, i, 1.0)} times the bound on one unit that is chosen{mostly}"


def _around(plan: Private, i: int, bound: float) -> str:
    reach, lost = _reach(plan, i, 0.95)
    noise = plan.noise_of_moment(i) * bound
    below, above = (f"{float(f'{noise * width:.3g}'):g}" for width in (reach, reach + lost))
    return f"-{below} to +{above}" if plan.moments[i].sign == 1 else f"± {above}"


def _example(plan: Private) -> list[str]:
    """The error of the first number whose bound will be chosen, if that bound should be ten rows of one unit."""
    for aggregate in plan.block.aggregates:
        i = _measure(plan, aggregate.function, aggregate.argument)
        if i is None or plan.known_bound(plan.moments[i]) is not None or _told(plan, i) is not None:
            continue
        bound = _TEN_ROWS * (plan.moments[i].row_bound or _SOME_VALUE)
        rows = f" (ten rows of {bound / _TEN_ROWS:g})" if plan.moments[i].kind == "sum" else ""
        near = "the bound will be near the largest contributions of single units"
        return [f"  {near}: if it is {bound:g}{rows}, {aggregate.label} is off by {_around(plan, i, bound)}"]
    return []

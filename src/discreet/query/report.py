"""What was done to the data before it was counted: rules, never how often they applied."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from discreet.query.losses import GUESSED, UNTOLD
from discreet.query.moments import moments_of
from discreet.query.ranks.support import DECLARE, IN_WORDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from discreet.query.moments import Moment
    from discreet.query.private import Private
    from discreet.query.ranks.answer import RankAnswer
    from discreet.query.target import Target

__all__ = [
    "bound_names",
    "cuts_of",
    "doubts_of",
    "in_words",
    "large_delta",
    "limits_in_words",
    "rank_doubts_of",
    "report_of",
    "vain_conditions",
]

_LARGE_DELTA = 1e-3
"""A larger one is no small probability, however few people a table is about."""

_NEARLY = 0.9
"""A middle is near the largest value that counts if it is at least this part of it."""

_WEIGHED = (
    "the rows of units with many rows weigh less, as if their values were like those of others; where they are not, "
    "state max_rows, or ask about one value of each unit"
)


def report_of(plans: tuple[Private, ...]) -> tuple[str, ...]:
    """One sentence for each rule that can have changed the answer."""
    lines: list[str] = []
    for plan in plans:
        lines += _of_plan(plan)
    return tuple(dict.fromkeys(lines))


def large_delta(target: Target | None, plans: Sequence[Private]) -> list[str]:
    """What to say about a price whose delta is large, if a step makes use of it: budgets in rho or mu admit any."""
    used = any(plan.gaussian or plan.allocation.key_delta > 0 for plan in plans)
    if target is None or not used or target.delta <= _LARGE_DELTA:
        return []
    less = f"less noise is added than epsilon = {target.epsilon:g} alone would need"
    usual = "a delta far below 1 / (number of units) is usual"
    return [f"delta = {target.delta:g} is large: with this probability the price promises nothing, and {less}; {usual}"]


def vain_conditions(plans: Sequence[Private]) -> list[str]:
    """What to say about conditions that no row meets, if the policy is right."""
    found = dict.fromkeys(line for plan in plans for line in plan.block.vain)
    return [f"there may be no such row, by the policy: {line}" for line in found]


def limits_in_words(plans: Sequence[Private]) -> list[str]:
    """What intervals are about where the question limits what a unit counts with."""
    found = []
    for plan in plans:
        rows, groups, keys = plan.options.max_rows, plan.options.max_groups, plan.block.keys
        parts = []
        if rows is not None and not plan.block.row_level:
            parts.append(f"{rows} {'row' if rows == 1 else 'rows'}{' in each group' if keys else ''}")
        if groups is not None and keys:
            parts.append(f"{groups} {'group' if groups == 1 else 'groups'}")
        if parts:
            found.append(f"intervals are about at most {' and '.join(parts)} of each unit, as stated: not about more")
    return list(dict.fromkeys(found))


def in_words(plan: Private, moment: Moment) -> str:
    """What a moment is, by the names that the analyst gave."""
    if moment.argument is None:
        return moment.label
    asked = plan.block.aggregates
    name = next((aggregate.label for aggregate in asked if moment in moments_of(aggregate, asked)), "")
    return moment.label.replace(f" of {moment.argument}", f" for {name}")


def bound_names(plan: Private) -> dict[str, str]:
    """What each bound is on, in words, by the name under which it was written down."""
    named = {plan.bound_of_moment(i): in_words(plan, moment) for i, moment in enumerate(plan.moments)}
    for i, distinct in enumerate(plan.distincts):
        named[plan.bound_of_distinct(i)] = f"distinct values of a unit, for {distinct.label}"
    for one in plan.block.aggregates:
        if one.argument is not None:
            named.setdefault(plan.middle_of(one.argument), f"middle from which {one.of} is measured")
    return named


def doubts_of(plan: Private, doubts: Mapping[int, str], *, grave: bool = False) -> list[str]:
    """What to say about moments whose intervals may be short, for these reasons; only the grave ones, if wanted."""
    lines = []
    for i, reason in doubts.items():
        if i < len(plan.moments) and not (grave and reason == UNTOLD):
            moment = plan.moments[i]
            state = "state max_rows" if moment.row_steps is not None else "state bounds of the values, and max_rows"
            more = "" if reason == GUESSED else ", or see intervals(allowance=4)"
            lines.append(f"the interval may be too short ({in_words(plan, moment)}): {reason}; {state}{more}")
    return lines


def rank_doubts_of(plan: Private, ranks: Sequence[RankAnswer]) -> list[str]:
    """What to say about quantiles, MIN and MAX: where rows may be too few, and whose rows weigh less."""
    lines = []
    for asked, found in zip(plan.ranks, ranks, strict=True):
        for doubt, words in IN_WORDS.items():
            groups, few = len(found.doubt), int((found.doubt == doubt).sum())
            where = f" in {few} of {groups} groups" if plan.block.keys and groups > 1 else ""
            advice = words if asked.bounds is None else words.replace(DECLARE, "")
            lines += [f"{asked.label} may be far from the truth{where}: {advice}"] if few else []
    weighed = dict.fromkeys(rank.label for rank in plan.ranks if rank.function not in ("min", "max"))
    if weighed and _weighs(plan):
        lines.append(f"the interval may be too short ({', '.join(weighed)}): {_WEIGHED}")
    return lines


def _weighs(plan: Private) -> bool:
    """Whether rows weigh less in quantiles by a bound that is chosen."""
    return any(known.place == "rows" for known in plan.known)


def _of_plan(plan: Private) -> list[str]:
    lines = [f"{note[:1].upper()}{note[1:]}." for note in plan.block.notes]
    if plan.block.row_level:
        lines.append("Every row counts as a person of its own.")
    lines += [_clamped(plan, moment) for moment in plan.moments if moment.kind == "sum"]
    lines += [
        "{}: values below {} count as that, and above {} as that.".format(
            rank.label, *(_shown(bound, rank.kind) for bound in rank.bounds)
        )
        for rank in plan.ranks
        if rank.bounds is not None
    ]
    lines += [
        f"{distinct.label}: at most {distinct.values}, as many values as are possible."
        for distinct in plan.distincts
        if distinct.values is not None
    ]
    if plan.sampled:
        lines.append(f"Of each unit at most {plan.options.max_groups} groups are kept, chosen at random.")
    if plan.options.max_rows is not None and not plan.block.row_level:
        lines.append(f"In each group a unit counts with at most {plan.options.max_rows} rows' worth.")
    if any(plan.known_bound(moment) is None for moment in plan.moments):
        norm = "in l2 norm" if plan.gaussian else "in all its groups together"
        what = "in size" if plan.single else norm
        lines.append(
            f"What a unit contributes is shrunk to a bound {what}, chosen privately so that few units exceed it."
        )
        if plan.shows_totals:
            lines.append(
                "What is cut off so of a few units that are many times larger than all others may be in no interval."
            )
    if any(_is_read_off(plan, i) and moment.sign for i, moment in enumerate(plan.moments)):
        lines.append(
            "Where a curve through the units' sizes tells what such a bound cuts off, a part of that is added."
        )
    lines += _cut_averages(plan)
    if _weighs(plan):
        lines.append("Quantiles weigh down the rows of units that have more rows than nine units in ten.")
    if plan.distincts and not plan.block.row_level:
        lines.append(
            "Of each unit's distinct values a limited number is kept, chosen at random; how many is decided privately, "
            "so that more of each would add few to the count."
        )
    if plan.block.keys and not plan.public:
        lines.append("Groups with few units are not shown; which ones is decided with noise.")
    elif plan.block.keys:
        lines.append("Groups in which nobody is are shown, too.")
    return lines


def _is_read_off(plan: Private, i: int) -> bool:
    """Whether the bound of a moment may be, or was, read off a sketch of sizes."""
    place = f"moment {i}"
    if not plan.has_pot(place):
        return False
    known = plan.known_at(place)
    return i in plan.allocation.pots or (known.settled and known.common is None)


def _cut_averages(plan: Private) -> list[str]:
    """What intervals of averages without declared bounds do not allow for: no count of large units goes with these.

    Where everybody counts once, what is cut off the sum alone is allowed for, as far as sizes fall as they usually do.
    """
    asked = plan.block.aggregates
    found: dict[str, dict[str, None]] = {}
    for aggregate in asked:
        if aggregate.function.startswith(("avg", "variance", "stddev")) and aggregate.bounds is None:
            total, present = moments_of(aggregate, asked)[:2]
            allows = plan.known_bound(present) is not None or plan.is_uncentred(total) or total.centre
            few = aggregate.function == "avg" and allows
            how = "allows for a few values" if few else "does not allow for values"
            found.setdefault(how, {})[aggregate.label] = None
    more = "many times larger than nearly all others"
    return [
        f"{', '.join(labels)}: the interval {how} that the chosen bound cuts off: state bounds where "
        f"{'more than a few are' if 'few' in how else 'some are'} {more}."
        for how, labels in found.items()
    ]


def _shown(bound: float, kind: str) -> str:
    """A bound as people write it: dates travel as days and timestamps as microseconds since 1970."""
    if kind not in ("date", "timestamp"):
        return f"{bound:g}"
    unit = "days" if kind == "date" else "microseconds"
    try:
        moment = dt.datetime(1970, 1, 1) + dt.timedelta(**{unit: bound})  # noqa: DTZ001 - SQL timestamps have no zone
    except OverflowError:
        return f"{bound:g}"
    return str(moment.date() if kind == "date" else moment)


def cuts_of(plan: Private, bounds: Mapping[str, float]) -> list[str]:
    """Cautions about sums without declared bounds whose chosen bound is as large as the largest value that counts."""
    asked, found = plan.block.aggregates, []
    for i, moment in enumerate(plan.moments):
        if moment.kind != "sum" or moment.bounds is not None:
            continue
        largest = moment.most_of_row * moment.quantum - abs(moment.centre)
        if bounds.get(plan.bound_of_moment(i), 0.0) >= largest or abs(moment.centre) >= _NEARLY * largest:
            names = ", ".join(aggregate.label for aggregate in asked if moment in moments_of(aggregate, asked))
            found.append(f"{names}: values beyond ±2^31 count as that, and there may be such: state bounds")
    return found


def _clamped(plan: Private, moment: Moment) -> str:
    asked = plan.block.aggregates
    names = ", ".join(aggregate.label for aggregate in asked if moment in moments_of(aggregate, asked))
    if moment.bounds is None:
        fine = "" if moment.integer else " They are rounded to multiples of 2^-16: state bounds of small ones."
        means = any(
            aggregate.function not in ("sum", "count") for aggregate in asked if moment in moments_of(aggregate, asked)
        )
        far = " Noise is in proportion to their distance from 0; with bounds, to that from the middle." if means else ""
        if plan.is_uncentred(moment) or moment.centre:
            far = " They are measured from a middle that is chosen privately."
        return f"{names}: NULL and NaN are left out; values beyond ±2^31 count as that: state larger bounds.{fine}{far}"
    low, high = moment.bounds
    return f"{names}: values below {low:g} count as {low:g}, above {high:g} as {high:g}; NULL and NaN are left out."

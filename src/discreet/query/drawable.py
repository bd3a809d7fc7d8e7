"""Whether the noise of a plan can be drawn: decided from public facts, before anything is paid.

Noise is drawn exactly up to a scale of 10^12. Sums are counted in steps that are so coarse that any noise fits, and
bounds that are chosen privately are cut to what fits; so only a price can be too small, whatever the data is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.errors import InvalidArgument
from discreet.mechanisms import KeySelection
from discreet.query.keys import WEIGHT
from discreet.query.ranks.scale import Scale
from discreet.query.ranks.units import Units

if TYPE_CHECKING:
    from collections.abc import Iterator

    from discreet.query.private import Private
    from discreet.query.target import Target

__all__ = ["WIDEST", "check_drawable", "too_little"]

WIDEST = 2.0**39.5
"""The largest scale of noise that is drawn."""

_LEAST_DELTA = 1e-305


def check_drawable(plan: Private, target: Target) -> None:
    """Refuses a plan of which some step needs noise beyond what can be drawn, however small the bound on a unit is."""
    allocation = plan.allocation
    if allocation.key_noise and allocation.key_delta < _LEAST_DELTA:
        raise InvalidArgument("delta", target.delta, "which groups exist is not public; pass more, 1e-7 is usual")
    if allocation.key_epsilon:  # it refuses what it cannot decide with
        KeySelection(epsilon=allocation.key_epsilon, delta=allocation.key_delta, keys_per_unit=plan.groups or 1)
    if not max(_scales(plan), default=0.0) <= WIDEST:
        raise too_little(target)


def too_little(target: Target) -> InvalidArgument:
    """The refusal of a price."""
    return InvalidArgument(
        target.unit,
        target.size,
        "the noise for so little is wider than can be drawn; pass more: 0.01 to 1 is usual",
    )


def _scales(plan: Private) -> Iterator[float]:
    """The least scale of the noise of each step; where every row is a unit, the rows of one are known."""
    allocation = plan.allocation
    rows = float(plan.block.rows_per_unit or 1) if plan.block.row_level else 1.0
    yield from (multiplier * rows for multiplier in allocation.noise)
    yield allocation.key_noise * WEIGHT * rows
    if allocation.tails:
        yield rows / allocation.tail if allocation.tail else float("inf")
    if allocation.pots:
        least = min(allocation.counted, *(allocation.checked_again(i) for i in allocation.pots))
        yield rows / least if least else float("inf")
    if plan.gaussian:
        for i, rank in enumerate(plan.ranks):
            most = Units.most(Scale(rank.bounds, rank.kind), plan.noise_of_rank(i))
            yield WIDEST * rows / most if most else float("inf")

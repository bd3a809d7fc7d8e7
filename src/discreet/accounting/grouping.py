"""Costs of groups: neighbours that differ in several records instead of one."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from discreet.accounting.leaves.leaf import Leaf
from discreet.accounting.leaves.own import leaf_from_lower_curve
from discreet.arguments import count
from discreet.errors import InvalidArgument, WideBracket

if TYPE_CHECKING:
    from discreet.accounting.cost import Cost

__all__ = ["group"]


def group(cost: Cost, size: object) -> Cost:
    """The cost towards `size` people: by the law of each part, or by the trade-off curve of the whole."""
    number = count("size", size, least=1)
    if number == 1 or not cost.parts:
        return cost
    for leaf, _ in cost.parts:
        if leaf.is_of_position():
            raise InvalidArgument(
                "size",
                number,
                f"{leaf.describe()} holds for the person at one place, and a group has people at others. Describe "
                "with last_iterate.process(touches=...) all steps that use a record of the group",
            )
    made = type(cost)
    try:
        if all(type(leaf).grouped is not Leaf.grouped for leaf, _ in cost.parts):
            return made(tuple((leaf.grouped(number), times) for leaf, times in cost.parts), cost.adjacency)
        # without a law of its own for groups, concatenating the curve of the whole is tighter than part by part
        joint = leaf_from_lower_curve(cost.tradeoff().grouped(number))
    except InvalidArgument as error:
        raise InvalidArgument("size", number, f"the group is too large for this cost ({error})") from error
    warnings.warn(
        f"a group of {number} has no law of its own for {cost!r}: its trade-off curve is concatenated with itself. "
        f"Upper bounds are valid and may be far from the truth; lower bounds are 0. If the group always joins or "
        f"leaves as one unit, make it the unit of privacy: bound what the unit contributes and account for that.",
        WideBracket,
        stacklevel=3,
    )
    return made(((joint, 1),), cost.adjacency)

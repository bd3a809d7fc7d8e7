"""`draw`: one name for every picture; each kind of object registers its own drawing."""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING

from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from os import PathLike

    from matplotlib.axes import Axes

__all__ = ["draw"]


@singledispatch
def draw(
    thing: object,
    *,
    ax: Axes | None = None,  # noqa: ARG001 - the options of every registered drawing
    label: str | None = None,  # noqa: ARG001
    title: str | None = None,  # noqa: ARG001
    path: str | PathLike[str] | None = None,  # noqa: ARG001
) -> Axes:
    """Draw a trade-off curve, a privacy profile or a loss distribution, and return the axes.

    `ax` adds to existing axes, in the next colour and line style; `label` names the curve in the legend; `title`
    replaces the heading; `path` writes the figure to a file, whose ending chooses the format. A cost is drawn as its
    trade-off curve. `draw.register` adds a kind of object.
    """
    raise InvalidArgument(
        "thing",
        thing,
        "pass a cost or one of cost.tradeoff(), cost.profile(), cost.loss()",
    )

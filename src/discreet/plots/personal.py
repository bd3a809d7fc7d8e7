"""Everybody's epsilon against the position of their record."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from discreet.accounting.iteration.personal import PersonalEpsilon
from discreet.plots.dispatch import draw
from discreet.plots.style import axes_for, check_target, finish, next_style

if TYPE_CHECKING:
    from os import PathLike

    from matplotlib.axes import Axes

__all__ = ["draw_personal"]

_MOST = 4000
"""More points than this cannot be told apart on paper."""


@draw.register(PersonalEpsilon)
def draw_personal(
    curve: PersonalEpsilon,
    *,
    ax: Axes | None = None,
    label: str | None = None,
    title: str | None = None,
    path: str | PathLike[str] | None = None,
) -> Axes:
    """Epsilon, on a logarithmic axis, against position: the lower, the better hidden."""
    check_target(ax, path)
    ax = axes_for(ax)
    values = curve.values
    from_end = np.geomspace(1, len(values), _MOST).astype(np.int64)
    places = np.unique(
        np.concatenate([len(values) - from_end, np.linspace(0, len(values) - 1, _MOST).astype(np.int64)])
    )
    if (values[places] > 0).any():
        ax.set_yscale("log", nonpositive="mask")
    ax.plot(places + 1, values[places], label=label or curve.costs.name, **next_style(ax))
    ax.set_xlabel("position of the record")
    ax.set_ylabel(f"ε at δ = {curve.delta:g}, certified upper bound")
    return finish(ax, title="What each person gives away", chosen=title, path=path, legend="upper left")

"""The privacy profile: delta, on a logarithmic axis, against epsilon."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from discreet.accounting.curves import Profile
from discreet.plots.dispatch import draw
from discreet.plots.style import axes_for, check_target, finish, name_of, next_style

if TYPE_CHECKING:
    from os import PathLike

    from matplotlib.axes import Axes

__all__ = ["draw_profile"]

_SMALLEST = 1e-12
"""Where the picture ends below; the profile itself goes on."""

_POINTS = 241


@draw.register(Profile)
def draw_profile(
    profile: Profile,
    *,
    ax: Axes | None = None,
    label: str | None = None,
    title: str | None = None,
    path: str | PathLike[str] | None = None,
) -> Axes:
    """Delta against epsilon, down to delta = 1e-12: the lower, the better the privacy."""
    check_target(ax, path)
    ax = axes_for(ax)
    end = _end(profile)
    epsilons = np.linspace(0.0, end, _POINTS)
    right = max(end, ax.get_xlim()[1]) if ax.lines else end
    ax.set(yscale="log", ylim=(_SMALLEST, 1.5), xlim=(0.0, right))
    ax.plot(epsilons, np.asarray(profile(epsilons)), label=label or name_of(profile.cost), **next_style(ax))
    ax.set_xlabel("ε (nats)")
    ax.set_ylabel("δ (probability), certified upper bound")
    return finish(ax, title="Privacy profile: every (ε, δ) that holds", chosen=title, path=path)


def _end(profile: Profile) -> float:
    """The epsilon at which the profile leaves the picture or becomes flat."""
    flat = float(profile(600.0))
    level = max(_SMALLEST, flat * 1.001)
    low, high = 0.0, 1e-6
    while float(profile(high)) > level and high < 600.0:
        low, high = high, min(2.0 * high, 600.0)
    for _ in range(12):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if float(profile(middle)) > level else (low, middle)
    return high if flat < _SMALLEST else 1.5 * high

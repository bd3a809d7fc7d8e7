"""The groups of an answer with the intervals of their numbers."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.plots.dispatch import draw
from discreet.plots.style import CURVE, PALETTE, axes_for, check_target, finish
from discreet.query.error_bars import ErrorBars

if TYPE_CHECKING:
    from os import PathLike

    from matplotlib.axes import Axes

__all__ = ["draw_error_bars"]

_INCHES = 0.24
"""Of height for the name of one group."""


@draw.register(ErrorBars)
def draw_error_bars(
    bars: ErrorBars,
    *,
    ax: Axes | None = None,
    label: str | None = None,
    title: str | None = None,
    path: str | PathLike[str] | None = None,
) -> Axes:
    """A point with its interval for each group: along the x axis for numbers and dates, below each other for names.

    The end of a line that is open reaches as far as the numbers do.
    """
    check_target(ax, path)
    new = ax is None
    ax = axes_for(ax)
    values = np.array(bars.values)
    lows, highs = np.array(bars.lows), np.array(bars.highs)
    known = np.concatenate([values, lows[np.isfinite(lows)], highs[np.isfinite(highs)]])
    least, most = (known.min(), known.max()) if known.size else (0.0, 1.0)
    below = values - np.where(np.isfinite(lows), lows, least)
    above = np.where(np.isfinite(highs), highs, most) - values
    errors = np.maximum(np.stack([below, above]), 0.0)
    drawn = sum(line.get_gid() == CURVE for line in ax.lines)
    style: dict[str, Any] = {
        "fmt": "os^Dv"[drawn % 5],
        "color": PALETTE[drawn % len(PALETTE)],
        "markersize": 4,
        "capsize": 3,
        "linewidth": 1.4,
        "label": label,
    }
    measured = all(isinstance(place, int | float | dt.date) and not isinstance(place, bool) for place in bars.places)
    if measured and bars.places:
        container = ax.errorbar(bars.places, values, yerr=errors, **style)
        ax.set_xlabel(bars.keys[0])
        ax.set_ylabel(bars.column)
    else:
        names = ["" if not bars.keys else str(place) for place in bars.places]
        container = ax.errorbar(values, range(len(names)), xerr=errors, **style)
        ax.set_yticks(range(len(names)), names)
        ax.set_xlabel(bars.column)
        ax.set_ylabel(", ".join(bars.keys))
        if not ax.yaxis_inverted():
            ax.invert_yaxis()  # the first row stands at the top
        if new:
            ax.figure.canvas.figure.set_size_inches(6.4, max(4.4, _INCHES * len(names)))
    container.lines[0].set_gid(CURVE)
    heading = f"{bars.column}, with {100 * bars.confidence:.10g} % intervals"
    return finish(ax, title=heading, chosen=title, path=path)

"""The trade-off curve: what the best attacker misses at each false-alarm rate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from discreet.accounting.cost import Cost
from discreet.divergence.tradeoff import TradeOff
from discreet.plots.dispatch import draw
from discreet.plots.style import axes_for, check_target, finish, mark_reference, name_of, next_style

if TYPE_CHECKING:
    from os import PathLike

    from matplotlib.axes import Axes

    from discreet.accounting.pair import Reals

__all__ = ["draw_tradeoff"]


@draw.register(TradeOff)
def draw_tradeoff(
    curve: TradeOff,
    *,
    ax: Axes | None = None,
    label: str | None = None,
    title: str | None = None,
    path: str | PathLike[str] | None = None,
) -> Axes:
    """Missed detections against false alarms: the nearer to the diagonal, the better the privacy."""
    check_target(ax, path)
    ax = axes_for(ax, square=True)
    reference = mark_reference(ax)
    if reference is not None:
        ax.plot([0.0, 1.0], [1.0, 0.0], label="no information: guessing", **reference)
    alphas = _alphas(curve)
    ax.plot(alphas, np.asarray(curve(alphas)), label=label or "trade-off curve", **next_style(ax))
    ax.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0), aspect="equal")
    ax.set_xlabel("false-alarm probability α of the attacker's test")
    ax.set_ylabel("missed-detection probability, at least f(α)")
    return finish(ax, title="How well one person's data stays hidden", chosen=title, path=path)


def _alphas(curve: TradeOff) -> Reals:
    """False alarms at which to draw: close together at both ends, and all corners unless there are very many."""
    edge = np.geomspace(1e-6, 0.01, 40)
    places = [np.linspace(0.0, 1.0, 401), edge, 1.0 - edge]
    breaks = curve.curve.breaks
    if breaks is not None and len(breaks) <= 400:
        places.append(np.clip(breaks, 0.0, 1.0))
    return np.unique(np.concatenate(places))


@draw.register(Cost)
def _draw_cost(
    cost: Cost,
    *,
    ax: Axes | None = None,
    label: str | None = None,
    title: str | None = None,
    path: str | PathLike[str] | None = None,
) -> Axes:
    check_target(ax, path)
    return draw_tradeoff(cost.tradeoff(), ax=ax, label=label or name_of(cost), title=title, path=path)

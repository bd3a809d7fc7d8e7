"""The distribution of the privacy loss: a density, points on a lattice, and stems where single losses have mass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.accounting.loss import Loss
from discreet.errors import InvalidArgument
from discreet.plots.dispatch import draw
from discreet.plots.style import CURVE, axes_for, check_target, finish, name_of, next_style

if TYPE_CHECKING:
    from os import PathLike

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from discreet.accounting.pair import Reals

__all__ = ["draw_loss"]

_FAINT = 1e-3
"""Densities below this share of the largest one are not drawn: the tails go on forever."""


@draw.register(Loss)
def draw_loss(
    law: Loss,
    *,
    ax: Axes | None = None,
    label: str | None = None,
    title: str | None = None,
    path: str | PathLike[str] | None = None,
) -> Axes:
    """How much a release reveals, and how likely: mass far to the right is what hurts.

    Single losses that have a probability of their own (the end points of Laplace noise, say) are stems, the largest as
    high as the density; the legend tells their probability.
    """
    check_target(ax, path)
    if not law.cost.parts or len(law.loss) < 2 or not float(law.mass.sum()) > 0:
        raise InvalidArgument("cost", law.cost, "there is no spread of finite losses to draw; plot its profile instead")
    ax = axes_for(ax)
    style = next_style(ax)
    name = label or name_of(law.cost)
    if law.infinite > 1e-9:
        name += f"\n(infinite loss with probability {law.infinite:.3g})"
    if law.is_lattice:
        _points(ax, law, name, style)
        ax.set_ylabel("probability of each loss")
    else:
        _density(ax, law, name, style)
        ax.set_ylabel("probability density (1/nats)")
    ax.set_xlabel("privacy loss ln(P/Q) (nats)")
    heights = [float(np.max(line.get_ydata())) for line in ax.lines if line.get_gid() == CURVE]
    ax.set_ylim(0.0, 1.3 * max(heights))
    return finish(ax, title="Distribution of the privacy loss", chosen=title, path=path)


def _points(ax: Axes, law: Loss, name: str, style: dict[str, Any]) -> None:
    seen = law.mass > _FAINT * law.mass.max()
    ax.vlines(law.loss[seen], 0.0, law.mass[seen], colors=style["color"], linewidth=1.0, alpha=0.45)
    thin = {**style, "linewidth": 0.6, "marker": "o", "markersize": 3.5}
    ax.plot(law.loss[seen], law.mass[seen], label=name, **thin)


def _density(ax: Axes, law: Loss, name: str, style: dict[str, Any]) -> None:
    middle = 0.5 * (law.loss[1:] + law.loss[:-1])
    density = law.mass[1:] / np.diff(law.loss)
    single = _stands_out(middle, density, np.diff(law.loss))
    seen = np.flatnonzero(~single & (density > _FAINT * density[~single].max(initial=0.0)))
    shown = np.arange(seen[0], seen[-1] + 1)
    shown = shown[~single[shown]]
    ax.plot(middle[shown], density[shown], label=name, **style)
    ax.fill_between(middle[shown], density[shown], color=style["color"], alpha=0.12, linewidth=0)
    places, masses = _stems(law, single)
    if len(places):
        heights = masses / masses.max() * density[shown].max()
        many = f"single losses, probability up to {masses.max():.2g}"
        one = f"single loss {places[0]:.3g}, probability {masses[0]:.2g}"
        ax.vlines(places, 0.0, heights, colors=style["color"], linewidth=1.8)
        knob = {"color": style["color"], "linestyle": "none", "marker": "o", "markersize": 5}
        ax.plot(places, heights, label=many if len(places) > 1 else one, **knob)


def _stands_out(middle: Reals, density: Reals, width: Reals) -> NDArray[np.bool_]:
    """Cells far denser than what surrounds them: the median over a twentieth of the law, weighted by width."""
    near = np.abs(middle[:, None] - middle[None, :]) <= 0.025 * (middle[-1] - middle[0])
    order = np.argsort(density)
    share = np.cumsum(np.where(near[:, order], width[order], 0.0), axis=1)
    usual = density[order][np.argmax(share >= 0.5 * share[:, -1:], axis=1)]
    return np.asarray(density > 1.7 * usual)


def _stems(law: Loss, single: NDArray[np.bool_]) -> tuple[Reals, Reals]:
    """Places and masses of the single losses: neighbouring cells that stand out are one."""
    masses = np.concatenate([[law.mass[0]], np.where(single, law.mass[1:], 0.0)])
    groups = np.cumsum(np.concatenate([[True], ~(single[1:] & single[:-1])]))
    groups = np.concatenate([[0], groups])
    total: Reals = np.bincount(groups, weights=masses).astype(np.float64)
    place = np.bincount(groups, weights=masses * law.loss) / np.where(total > 0, total, 1.0)
    kept = total > 1e-3
    return place[kept], total[kept]

"""What a picture shows."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from discreet.plots.style import CURVE


def curves(ax: Axes) -> list[Line2D]:
    """The curves among its lines."""
    return [line for line in ax.lines if line.get_gid() == CURVE]

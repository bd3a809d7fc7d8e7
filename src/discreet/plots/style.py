"""What all pictures share: axes, colours and line styles that everybody can tell apart, legend, saving."""

from __future__ import annotations

import re
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from discreet.errors import InvalidArgument, MissingExtra

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from discreet.accounting.cost import Cost

__all__ = ["CURVE", "INK", "PALETTE", "axes_for", "check_target", "finish", "mark_reference", "name_of", "next_style"]

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Colours that stay distinct for all common kinds of colour blindness [Okabe and Ito 2008]; yellow is left out, as it
cannot be read on white."""

_DASHES: tuple[Any, ...] = ("-", (0, (5, 1.6)), (0, (5, 1.5, 1, 1.5)), (0, (1, 1.2)), (0, (8, 1.5, 1, 1.5, 1, 1.5)))

INK = "#5A5A5A"
"""Colour of what is not a curve: reference lines, remarks."""

CURVE = "discreet-curve"
_REFERENCE = "discreet-reference"


def check_target(ax: object, path: object) -> None:
    """Refuses axes and files that cannot be drawn to, before anything is computed."""
    try:
        from matplotlib.axes import Axes
        from matplotlib.backend_bases import FigureCanvasBase
    except ImportError:
        raise MissingExtra("matplotlib", "plots") from None
    if ax is not None and not isinstance(ax, Axes):
        raise InvalidArgument(
            "ax", ax, "pass Matplotlib axes, such as those of fig, ax = plt.subplots(), or leave it out"
        )
    if path is None:
        return
    if not isinstance(path, str | PathLike) or not isinstance(fspath(path), str):
        raise InvalidArgument("path", path, "pass the name of a file, such as 'curve.png'")
    file = Path(fspath(path))
    formats = sorted(FigureCanvasBase.get_supported_filetypes())
    if file.suffix.lower().removeprefix(".") not in formats:
        raise InvalidArgument(
            "path", str(path), f"its ending names the format: use .png, .pdf or .svg (known are {', '.join(formats)})"
        )
    try:
        has_folder = file.parent.is_dir()
    except (OSError, ValueError):  # a name that no file system knows
        has_folder = False
    if not has_folder:
        raise InvalidArgument(
            "path", str(path), f"there is no folder '{file.parent}'; make it first, or pass another path"
        )


def axes_for(ax: Axes | None, *, square: bool = False) -> Axes:
    """The axes to draw on: the given ones, or those of a new figure."""
    if ax is not None:
        return ax
    from matplotlib import pyplot as plt

    _, new = plt.subplots(figsize=(5.6, 5.4) if square else (6.4, 4.4), layout="constrained")
    return new


def next_style(ax: Axes) -> dict[str, Any]:
    """Colour, dashes and width of the next curve on these axes; repeats after 35 curves."""
    drawn = sum(line.get_gid() == CURVE for line in ax.lines)
    return {
        "color": PALETTE[drawn % len(PALETTE)],
        "linestyle": _DASHES[drawn % len(_DASHES)],
        "linewidth": 2.0,
        "gid": CURVE,
    }


def mark_reference(ax: Axes) -> dict[str, Any] | None:
    """The style of a reference line, or None if these axes have theirs already."""
    if any(line.get_gid() == _REFERENCE for line in ax.lines):
        return None
    return {"color": INK, "linestyle": "-", "linewidth": 0.8, "gid": _REFERENCE, "zorder": 1}


def finish(
    ax: Axes,
    *,
    title: str,
    chosen: str | None,
    path: str | PathLike[str] | None,
    legend: Literal["upper right", "upper left"] = "upper right",
) -> Axes:
    """Heading, grid, legend; writes the file if a path is given."""
    if chosen is not None or not ax.get_title():
        ax.set_title(title if chosen is None else chosen, fontsize=11)
    ax.grid(visible=True, which="major", color="#D8D8D8", linewidth=0.6)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    if ax.get_legend_handles_labels()[1]:
        ax.legend(loc=legend, frameon=True, framealpha=0.92, edgecolor="none", fontsize=9, handlelength=3.2)
    if path is not None:
        try:
            ax.figure.canvas.figure.savefig(path, dpi=150)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            advice = f"the file cannot be written ({reason}); pass a path that you may write to"
            raise InvalidArgument("path", str(path), advice) from error
    return ax


def name_of(cost: Cost, most: int = 56) -> str:
    """A cost in the few words that a legend has room for: 100 × gaussian(2) + laplace(1)."""
    text = re.sub(r"\b\w+=", "", repr(cost).removeprefix("Cost(").removesuffix(")")).replace(" * ", " × ")
    if len(text) <= most:
        return text
    return f"{text[: most - 1].rstrip()}…"

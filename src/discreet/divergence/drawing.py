"""The one upward call of the package: things that can be drawn ask `discreet.plots` for their picture, by name.

`plots` stands above every room that has something to show, so no room may import it. As pandas does with its plotting
backend, the module is looked up by name when `.plot()` is called, and not before.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from discreet.errors import MissingExtra

if TYPE_CHECKING:
    from os import PathLike

__all__ = ["Drawable"]


class Drawable:
    """Adds `.plot(...)`, which hands the object and its options to `discreet.plots.draw`."""

    __slots__ = ()

    def plot(
        self,
        *,
        ax: Any = None,
        label: str | None = None,
        title: str | None = None,
        path: str | PathLike[str] | None = None,
    ) -> Any:
        """Draw with Matplotlib and return its axes; the options are those of `discreet.plots.draw`.

        `ax` adds to existing axes, `label` names the curve, `title` replaces the heading, and `path` writes a file
        whose ending chooses the format: `cost.profile().plot(label="2024", path="profile.png")`.
        """
        if find_spec("matplotlib") is None:
            raise MissingExtra("matplotlib", "plots")
        return import_module("discreet.plots").draw(self, ax=ax, label=label, title=title, path=path)

"""The one upward call of the package: things that can be drawn ask `discreet.plots` for their picture, by name.

`plots` stands above every room that has something to show, so no room may import it. As pandas does with its plotting
backend, the module is looked up by name when `.plot()` is called, and not before.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from discreet.errors import MissingExtra

__all__ = ["Drawable"]


class Drawable:
    """Adds `.plot(...)`, which hands the object and the options to `discreet.plots.draw`."""

    __slots__ = ()

    def plot(self, **options: Any) -> Any:
        """Draw with Matplotlib and return its axes; the options are those of `discreet.plots.draw`."""
        if find_spec("matplotlib") is None:
            raise MissingExtra("matplotlib", "plots")
        return import_module("discreet.plots").draw(self, **options)

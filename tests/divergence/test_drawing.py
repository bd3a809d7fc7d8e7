"""Things that can be drawn find the pictures by name, and say what is missing."""

from __future__ import annotations

import sys
import types

import pytest

from discreet.divergence import Drawable, TradeOff, drawing
from discreet.errors import MissingExtra


def test_plot_hands_the_object_and_its_options_to_the_plots_room(monkeypatch: pytest.MonkeyPatch) -> None:
    room = types.ModuleType("discreet.plots")
    room.draw = lambda thing, **options: (thing, options)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "discreet.plots", room)
    curve = TradeOff.gaussian(1.0)
    assert isinstance(curve, Drawable)
    drawn, options = curve.plot(label="one", path="one.png")
    assert drawn is curve
    assert options == {"ax": None, "label": "one", "title": None, "path": "one.png"}


def test_without_matplotlib_plot_says_which_extra_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "find_spec", lambda _: None)
    with pytest.raises(MissingExtra, match=r"discreet\[plots\]"):
        TradeOff.identity().plot()

"""Several costs on one picture, or several accountants on one cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from discreet.accounting.cost import Cost
from discreet.accounting.evaluate import METHODS
from discreet.arguments import count, one_of, unit_fraction
from discreet.divergence.drawing import Drawable
from discreet.errors import InvalidArgument
from discreet.plots.dispatch import draw
from discreet.plots.style import axes_for, check_target, finish, name_of, next_style

if TYPE_CHECKING:
    from os import PathLike

    from matplotlib.axes import Axes

__all__ = ["compare", "compare_accountants"]

_VIEWS: dict[str, Callable[[Cost], Drawable]] = {
    "tradeoff": Cost.tradeoff,
    "profile": Cost.profile,
    "loss": Cost.loss,
}

_USUAL: tuple[str, ...] = ("classic", "advanced", "renyi", "auto")

_NAMES = {
    "classic": "basic composition: sum of the ε",
    "advanced": "advanced composition",
    "concentrated": "zero-concentrated DP",
    "renyi": "Rényi accountant",
    "auto": "discreet: the best certified bound",
}


def compare(
    things: Mapping[str, Cost | Drawable] | Iterable[Cost | Drawable],
    *,
    show: str = "tradeoff",
    ax: Axes | None = None,
    title: str | None = None,
    path: str | PathLike[str] | None = None,
) -> Axes:
    """Several costs, or several curves of one kind, on the same axes.

    Pass a mapping {label: cost} or an iterable of costs; `show` says what is drawn of a cost: "tradeoff", "profile" or
    "loss". Curves that were made already are drawn as they are.
    """
    view = _VIEWS[one_of("show", show, _VIEWS)]
    check_target(ax, path)
    named = _named(things)
    curves = [
        (label or name_of(thing), view(thing)) if isinstance(thing, Cost) else (label, thing) for label, thing in named
    ]
    kinds = sorted({type(curve).__name__ for _, curve in curves})
    if len(kinds) > 1:
        raise InvalidArgument("things", kinds, "curves of different kinds have different axes; compare one kind")
    for label, curve in curves:
        ax = draw(curve, ax=ax, label=label)
    assert ax is not None
    return finish(ax, title=ax.get_title(), chosen=title, path=path)


def compare_accountants(
    step: Cost,
    *,
    delta: float,
    steps: Sequence[int] | None = None,
    methods: Sequence[str] | None = None,
    ax: Axes | None = None,
    title: str | None = None,
    path: str | PathLike[str] | None = None,
) -> Axes:
    """Epsilon at a fixed delta against how often `step` is used, once for each accountant.

    All of the curves are valid bounds on the same thing: the lowest is the best. `steps` defaults to 1, 10, 20, ...,
    200; `methods` to basic and advanced composition where they know the mechanism, Rényi, and `"auto"`.
    """
    if not isinstance(step, Cost):
        raise InvalidArgument("step", step, "pass the cost of one release, such as Cost.laplace(noise_multiplier=2.0)")
    delta = unit_fraction("delta", delta)
    given = (1, *range(10, 201, 10)) if steps is None else steps
    times = [count("steps", number, least=1) for number in _listed("steps", given, "[1, 10, 100]")]
    named = _USUAL if methods is None else _listed("methods", methods, "['classic', 'renyi', 'auto']")
    asked = [one_of("methods", name, METHODS) for name in named]
    check_target(ax, path)
    values: dict[str, list[float]] = {}
    for method in asked:
        try:
            values[method] = [(k * step).epsilon(delta, method=method) for k in times]
        except InvalidArgument as error:  # an accountant that does not know this mechanism
            if methods is not None or error.argument != "method":
                raise
    ax = axes_for(ax)
    for method, epsilons in values.items():
        finite = np.where(np.isfinite(epsilons), epsilons, np.nan)
        ax.plot(times, finite, label=_NAMES.get(method, method), **next_style(ax))
    ax.set(xlim=(0, 1.02 * max(times)), ylim=(0, None))
    ax.set_xlabel("number of releases")
    ax.set_ylabel(f"ε (nats) at δ = {delta:.3g}")
    heading = f"What different accountants make of many {name_of(step)}"
    return finish(ax, title=heading, chosen=title, path=path, legend="upper left")


def _named(things: object) -> list[tuple[str | None, Cost | Drawable]]:
    """The costs and curves with their labels, if there are any and nothing else is among them."""
    advice = "pass several costs or curves, as a list or as a mapping {label: cost}"
    if isinstance(things, str) or not isinstance(things, Iterable):
        raise InvalidArgument("things", things, advice)
    pairs = things.items() if isinstance(things, Mapping) else ((None, thing) for thing in things)
    named: list[tuple[str | None, Cost | Drawable]] = list(pairs)
    if not named:
        raise InvalidArgument("things", things, "pass at least one cost or curve")
    for label, thing in named:
        if not isinstance(thing, Cost | Drawable):
            raise InvalidArgument("things" if label is None else f"things[{label!r}]", thing, advice)
    return named


def _listed(argument: str, values: object, example: str) -> list[object]:
    """The values as a list that is not empty; one value alone is refused, as it says nothing about a curve."""
    found = list(values) if isinstance(values, Iterable) and not isinstance(values, str) else []
    if not found:
        raise InvalidArgument(argument, values, f"pass a list of at least one, such as {example}")
    return found

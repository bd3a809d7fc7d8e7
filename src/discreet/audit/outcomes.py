"""Releases seen as numbers or as names: the views in which events are looked for.

A view maps each release to one number, learnt from the first releases and then fixed. Numbers stay numbers; arrays are
seen coordinate by coordinate and through the likelihood ratio of all of them; anything else (words, sets, lists of
answers) is a name, told apart by its `repr`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

__all__ = ["View", "stacked", "views"]

_COORDINATES = 6
_NAMES = 200
_CELLS = 64


@dataclass(frozen=True)
class View:
    """One number per release, with a name for what it is."""

    name: str
    score: Callable[[Any], NDArray[np.float64]]
    labels: tuple[str, ...] = ()
    """What the numbers 0, 1, 2, … stand for, if they are names."""


def stacked(releases: object) -> NDArray[Any]:
    """Releases as one array whose first axis counts them: numbers of shape (n,) or (n, d), or objects of shape (n,)."""
    if isinstance(releases, np.ndarray) and releases.dtype.kind in "iufb":
        return releases if releases.ndim <= 2 else releases.reshape(len(releases), -1)
    items = list(releases) if isinstance(releases, (list, tuple, np.ndarray)) else None
    if items is None:
        raise InvalidArgument("releases", releases, "pass a list or an array with one release per entry")
    items = [np.asarray(item) if hasattr(item, "__array__") else item for item in items]  # estimates are their values
    shapes = {np.shape(item) if isinstance(item, (int, float, np.ndarray, np.number)) else None for item in items}
    if len(shapes) == 1 and None not in shapes:
        array = np.asarray(items)
        if array.dtype.kind in "iufb":
            return array if array.ndim <= 2 else array.reshape(len(array), -1)
        if array.dtype == object and array.ndim == 1:  # integers beyond 64 bits
            return array.astype(np.float64)
    named = np.empty(len(items), dtype=object)
    named[:] = [repr(item) for item in items]
    return named


def views(left: NDArray[Any], right: NDArray[Any]) -> Sequence[View]:
    """The views worth looking at, learnt from releases on both inputs."""
    if object in (left.dtype, right.dtype):
        return [_names(left, right)]
    if left.ndim == 1:
        return [View("the release", _number)]
    if left.shape[1] == 1:
        return [View("the release", _coordinate(0))]
    spread = np.concatenate([left, right]).std(axis=0) + 1e-300
    apart = np.abs(left.mean(axis=0) - right.mean(axis=0)) / spread
    order = np.argsort(-apart, kind="stable")[:_COORDINATES]
    found = [View(f"coordinate {place} of the release", _coordinate(int(place))) for place in order]
    return [*found, View("the likelihood ratio of all coordinates", _likelihood(left, right))]


def _number(releases: NDArray[Any]) -> NDArray[np.float64]:
    return releases.astype(np.float64)


def _coordinate(place: int) -> Callable[[NDArray[Any]], NDArray[np.float64]]:
    return lambda releases: releases[:, place].astype(np.float64)


def _names(left: NDArray[Any], right: NDArray[Any]) -> View:
    common = Counter([*map(str, left), *map(str, right)]).most_common(_NAMES)
    codes = {name: code for code, (name, _) in enumerate(common)}

    def score(releases: NDArray[Any]) -> NDArray[np.float64]:
        return np.array([codes.get(str(name), len(codes)) for name in releases], dtype=np.float64)

    return View("the release", score, (*codes, "anything else"))


def _likelihood(left: NDArray[Any], right: NDArray[Any]) -> Callable[[NDArray[Any]], NDArray[np.float64]]:
    """The sum over coordinates of ln(P_j/Q_j), from histograms: the best test if coordinates are independent."""
    tables = []
    for place in range(left.shape[1]):
        a, b = left[:, place].astype(np.float64), right[:, place].astype(np.float64)
        edges = np.unique(np.quantile(np.concatenate([a, b]), np.linspace(0, 1, _CELLS + 1)[1:-1]))
        size = len(edges) + 1
        counts = [np.bincount(edges.searchsorted(side, "right"), minlength=size) for side in (a, b)]
        tables.append((edges, np.log((counts[0] + 0.5) / (counts[1] + 0.5))))

    def score(releases: NDArray[Any]) -> NDArray[np.float64]:
        total = np.zeros(len(releases))
        for place, (edges, ratio) in enumerate(tables):
            total += ratio[edges.searchsorted(releases[:, place].astype(np.float64), "right")]
        return total

    return score

r"""Choosing an event on some releases, and testing it on others.

The choice looks at one part of the releases and may be as greedy as it likes; the test uses the other part, which the
choice has not seen, so its error probability is that of one binomial test of a fixed event. With counts a and b among n
releases on each side, p >= p_low and q <= q_high (exact bounds, each missed with probability at most `miss`/4, and two
more for the other direction) the claim is refuted if

    p_low > what the claim allows at q_high,

or with the inputs exchanged. All epsilon together cost no more than one, because the
bounds of p and q do not depend on it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet.audit.binomial import at_least, at_most

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from numpy.typing import NDArray

    from discreet.audit.claim import Claim
    from discreet.audit.outcomes import View

__all__ = ["Event", "Evidence", "chosen", "tested"]

_CELLS = 256
_SHOWN = 3
_AHEAD = 1.1
"""A set of many pieces is preferred to a half-line if it looks better by this factor: pieces fit chance, too."""


@dataclass(frozen=True, eq=False)
class Event:
    """A set of outcomes: those whose cell of the view is chosen."""

    view: View
    edges: NDArray[np.float64]
    chosen: NDArray[np.bool_]

    def __str__(self) -> str:
        if self.view.labels:
            names = [
                label
                for code, label in enumerate(self.view.labels)
                if self.chosen[self.edges.searchsorted(code, "right")]
            ]
            more = f" or {len(names) - 2 * _SHOWN} more" if len(names) > 2 * _SHOWN else ""
            return f"{self.view.name} is {' or '.join(name[:60] for name in names[: 2 * _SHOWN])}{more}"
        pieces = list(self._pieces())
        more = f" or in {len(pieces) - _SHOWN} more pieces" if len(pieces) > _SHOWN else ""
        return f"{self.view.name} {' or '.join(pieces[:_SHOWN])}{more}"

    def _pieces(self) -> Iterator[str]:
        steps = np.flatnonzero(np.diff(np.concatenate([[False], self.chosen, [False]]).astype(int)))
        for start, stop in steps.reshape(-1, 2):
            low = self.edges[start - 1] if start > 0 else -math.inf
            high = self.edges[stop - 1] if stop <= len(self.edges) else math.inf
            if high == math.inf:
                yield f">= {low:.9g}"
            elif low == -math.inf:
                yield f"< {high:.9g}"
            else:
                yield f"in [{low:.9g}, {high:.9g})"


@dataclass(frozen=True)
class Evidence:
    """One event counted on fresh releases of both inputs, with exact bounds of its probabilities.

    `likely` holds the count on the input that makes the event likelier than the claim allows, or that comes closest.
    """

    event: str
    likely: int
    unlikely: int
    releases: int
    at_least: float
    """Lower bound of its probability on the first input."""
    at_most: float
    """Upper bound of its probability on the neighbour."""
    allowed: float
    """The largest probability that the claim allows on the first input, given the upper bound on the neighbour."""

    @property
    def refutes(self) -> bool:
        """Whether the claim is refuted."""
        return self.at_least > self.allowed

    def epsilon(self, delta: float = 0.0) -> float:
        """Lower bound of epsilon at this delta: ln((p_low - delta) / q_high), or that of the complement."""
        pairs = (self.at_least - delta, self.at_most), (1 - self.at_most - delta, 1 - self.at_least)
        return max([0.0, *(math.log(p / q) for p, q in pairs if p > 0 and q > 0)])

    def __str__(self) -> str:
        return (
            f"{self.event}: {self.likely} of {self.releases} releases on one input and {self.unlikely} on its "
            f"neighbour, so the probabilities are at least {self.at_least:.6g} and at most {self.at_most:.6g}, and the "
            f"cost allows {self.allowed:.6g}"
        )


def cells(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Edges of half-open cells: one cell per value if they are few, else equal shares, far tails and heavy atoms."""
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) <= _CELLS:
        return distinct[np.isfinite(distinct)]
    tails = 0.5 ** np.arange(3, 1 + math.log2(len(values)))
    shares = np.unique(np.concatenate([np.linspace(0, 1, _CELLS), tails, 1 - tails]))
    edges = np.quantile(values, shares, method="nearest")
    atoms = distinct[counts > len(values) / _CELLS]
    edges = np.unique(np.concatenate([edges, atoms, np.nextafter(atoms, math.inf)]))
    return np.asarray(edges[np.isfinite(edges)], dtype=np.float64)


def chosen(
    view: View, left: NDArray[Any], right: NDArray[Any], claim: Claim, *, trials: int, delta: float
) -> list[Event]:
    """The most suspicious events of this view, first left against right and then right against left.

    Candidates are half-lines and the sets where an estimated likelihood ratio is large. For each direction two are
    taken: the one that breaks the claim by the most standard errors of `trials` releases, and the one that promises
    the largest lower bound of epsilon at `delta`.
    """
    a, b = view.score(left), view.score(right)
    edges = cells(np.concatenate([a, b]))
    size = len(edges) + 1
    counts = [histogram(edges, side) for side in (a, b)]
    found = []
    for first, second in (counts, counts[::-1]):
        total = first.sum(), second.sum()
        ratio = np.log((first + 0.5) / (second + 0.5))
        orders = [np.arange(size), np.arange(size)[::-1], np.argsort(-ratio, kind="stable")]
        best: list[tuple[float, NDArray[np.intp], int]] = [(-math.inf, orders[0], 1)] * 2
        for order, ahead in zip(orders, (1.0, 1.0, _AHEAD), strict=True):
            p, q = (np.cumsum(side[order])[:-1] / n for side, n in zip((first, second), total, strict=True))
            if not len(p):
                continue
            low, high = (p * trials).round(), (q * trials).round()
            bound = np.maximum(at_least(low, trials, 1e-10) - delta, 1e-300) / at_most(high, trials, 1e-10)
            for place, marks in enumerate((claim.excess(p, q, trials), bound)):
                top = int(np.argmax(marks))
                if marks[top] > best[place][0] * ahead:
                    best[place] = (float(marks[top]), order, top + 1)
        for _, order, number in best:
            mask = np.zeros(size, dtype=bool)
            mask[order[:number]] = True
            found.append(Event(view, edges, mask))
    return found


def histogram(edges: NDArray[np.float64], scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """How many scores each cell holds."""
    return np.bincount(edges.searchsorted(scores, "right"), minlength=len(edges) + 1).astype(np.int64)


def tested(
    events: list[Event], left: NDArray[Any], right: NDArray[Any], claim: Claim, *, miss: float
) -> list[Evidence]:
    """Events of one view, counted on releases that the choice has not seen, in both directions.

    For each event, the probability that either direction refutes a true claim is at most `miss`.
    """
    n = min(len(left), len(right))
    view, edges = events[0].view, events[0].edges
    sides = [histogram(edges, view.score(side[:n])) for side in (left, right)]
    found = []
    for event in events:
        counts = [int(side[event.chosen].sum()) for side in sides]
        for likely, unlikely in (counts, counts[::-1]):
            low, high = float(at_least(likely, n, miss / 4)), float(at_most(unlikely, n, miss / 4))
            found.append(Evidence(str(event), likely, unlikely, n, low, high, float(claim.allows(high))))
    return found

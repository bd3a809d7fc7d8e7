"""A pair of the user's own continuous distributions with a monotone likelihood ratio."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from discreet.accounting.pair import Tails
from discreet.accounting.pairs.tails import TailsPair
from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from discreet.accounting.pair import Reals

__all__ = ["Distribution", "OwnPair"]


@runtime_checkable
class Distribution(Protocol):
    """What a continuous distribution must offer (frozen SciPy distributions do): vectorised, accurate in both tails."""

    def cdf(self, x: Any, /) -> Any: ...

    def sf(self, x: Any, /) -> Any: ...

    def logpdf(self, x: Any, /) -> Any: ...

    def ppf(self, q: Any, /) -> Any: ...


@dataclass(frozen=True, eq=False)
class OwnPair(TailsPair):
    """Continuous P and Q on the line whose loss ln p(x) - ln q(x) is monotone where either has mass.

    The loss is inverted by interpolation in a table and Newton-like steps; monotonicity is checked on the table.
    """

    p: Distribution
    q: Distribution
    blur: float = 1e-12
    _x: Reals = field(init=False, repr=False)
    _loss: Reals = field(init=False, repr=False)
    _falling: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        ends = [np.asarray(d.ppf(np.array([0.0, 1.0])), dtype=float) for d in (self.p, self.q)]
        if not np.array_equal(ends[0], ends[1]):
            raise InvalidArgument(
                "P, Q",
                (self.p, self.q),
                f"the supports {ends[0].tolist()} and {ends[1].tolist()} differ, so some losses are infinite; "
                "describe the pair as a finite table or a trade-off function",
            )
        levels = np.concatenate([np.geomspace(1e-300, 1e-3, 600), np.linspace(1.1e-3, 0.5, 800)])
        x = np.unique(
            np.concatenate(
                [d.ppf(levels) for d in (self.p, self.q)] + [_upper_quantiles(d, levels) for d in (self.p, self.q)]
            )
        )
        x = x[np.isfinite(x)]
        loss = np.asarray(self.p.logpdf(x) - self.q.logpdf(x), dtype=float)
        good = np.isfinite(loss)
        x, loss = x[good], loss[good]
        if len(x) < 16:
            raise InvalidArgument("P, Q", (self.p, self.q), "pass continuous distributions with a common support")
        moves = np.diff(loss)
        tolerance = 1e-9 * (1 + np.abs(loss[1:]))
        falling = bool(loss[-1] < loss[0])
        if np.any((moves > tolerance) if falling else (moves < -tolerance)):
            raise InvalidArgument(
                "P, Q",
                (self.p, self.q),
                "the likelihood ratio must be monotone; describe other pairs as a finite table or a trade-off function",
            )
        order = slice(None, None, -1) if falling else slice(None)
        x, loss = x[order], loss[order]
        keep = np.concatenate([[True], np.diff(np.maximum.accumulate(loss)) > 0])
        object.__setattr__(self, "_x", x[keep])
        object.__setattr__(self, "_loss", loss[keep])
        object.__setattr__(self, "_falling", falling)

    p_cut = 2e-300
    q_cut = 2e-300

    @property
    def span(self) -> tuple[float, float]:
        """Not known: the table ends at quantiles of 1e-300, and what lies beyond is counted as cut."""
        return -math.inf, math.inf

    def tails(self, loss: Reals) -> Tails:
        x = self._inverse(np.asarray(loss, dtype=float))
        inside = (loss >= self._loss[0]) & (loss < self._loss[-1])
        sides = [np.asarray(f(x), dtype=float) for f in (self.p.sf, self.p.cdf, self.q.sf, self.q.cdf)]
        if self._falling:
            sides = [sides[1], sides[0], sides[3], sides[2]]
        above, below = (loss < self._loss[0]), (loss >= self._loss[-1])
        sides = [
            np.where(inside, side, np.where(above, 1.0, 0.0) if index % 2 == 0 else np.where(below, 1.0, 0.0))
            for index, side in enumerate(sides)
        ]
        return Tails(*sides)

    def _inverse(self, loss: Reals) -> Reals:
        """x with loss(x) = loss, by regula falsi with halving (Illinois) inside the table's cell."""
        right = np.clip(np.searchsorted(self._loss, loss), 1, len(self._x) - 1)
        low, high = self._x[right - 1], self._x[right]
        f_low, f_high = self._loss[right - 1] - loss, self._loss[right] - loss
        x, f = low, f_low
        inside = (loss > self._loss[0]) & (loss < self._loss[-1])
        for _ in range(40):
            with np.errstate(divide="ignore", invalid="ignore"):
                x = high - f_high * (high - low) / (f_high - f_low)
            x = np.where((x - low) * (x - high) <= 0, x, 0.5 * (low + high))
            f = np.asarray(self.p.logpdf(x) - self.q.logpdf(x), dtype=float) - loss
            below = f < 0
            f_high = np.where(below, 0.5 * f_high, f)
            high = np.where(below, high, x)
            f_low = np.where(below, f, 0.5 * f_low)
            low = np.where(below, x, low)
            # where the loss levels off, x is not determined, and need not be
            if float((np.abs(f) / (1 + np.abs(loss)))[inside].max(initial=0.0)) <= 1e-14:
                return x
        if float((np.abs(f) / (1 + np.abs(loss)))[inside].max(initial=0.0)) > 1e-13:
            raise OverflowError("the likelihood ratio cannot be inverted to 1e-13")
        return x


def _upper_quantiles(distribution: Distribution, levels: Reals) -> Reals:
    isf = getattr(distribution, "isf", None)
    if callable(isf):
        return np.asarray(isf(levels), dtype=float)
    return np.asarray(distribution.ppf(1 - levels[levels > 1e-15]), dtype=float)

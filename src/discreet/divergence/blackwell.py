r"""Blackwell's comparison of two trade-off curves: does one release tell at least as much as the other?

A pair of distributions with curve f can be post-processed into one with curve g if and only if f <= g everywhere
[Blackwell 1953; Dong et al. 2022, Thm 2.10]. Curves may cross: then neither release is better for every attacker.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from discreet.arguments import nonnegative

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from discreet.divergence.logspace import Reals
    from discreet.divergence.tradeoff import TradeOff

__all__ = ["Comparison", "Verdict", "compare"]

Interval: TypeAlias = tuple[float, float]

_SMOOTH_GRID = np.concatenate(
    [np.geomspace(1e-300, 1e-3, 600), np.linspace(1e-3, 0.999, 1500), 1.0 - np.geomspace(1e-12, 1e-3, 100)]
)


class Verdict(enum.StrEnum):
    """How the first curve relates to the second. To dominate is to reveal more: to lie below."""

    EQUAL = "equal"
    DOMINATES = "dominates"
    DOMINATED = "is dominated"
    INCOMPARABLE = "incomparable"


@dataclass(frozen=True)
class Comparison:
    """The verdict, and its witnesses: the intervals of false alarm on which the first curve lies below or above.

    `below` is where the first reveals more than the second, `above` where it reveals less.
    """

    verdict: Verdict
    below: tuple[Interval, ...]
    above: tuple[Interval, ...]


def compare(first: TradeOff, second: TradeOff, *, tolerance: float = 1e-11) -> Comparison:
    r"""Which of two trade-off curves reveals more, with the intervals of false alarm that show it.

    Two piecewise-linear curves are compared exactly, vertex by vertex. If one is smooth the curves are compared on a
    grid that is logarithmic at both ends (from 1e-300 on the left, 1e-12 on the right) and crossings are bisected;
    curves that cross twice within one step of it would be missed. Differences count if they exceed `tolerance` times
    the smaller of missed detection and power, so that tiny tails are compared as strictly as the middle.

    >>> from discreet.divergence.tradeoff import TradeOff
    >>> compare(TradeOff.gaussian(1.0), TradeOff.gaussian(0.5)).verdict
    <Verdict.DOMINATES: 'dominates'>
    >>> compare(TradeOff.gaussian(1.0), TradeOff.laplace(1.0)).verdict
    <Verdict.INCOMPARABLE: 'incomparable'>
    """
    tolerance = nonnegative("tolerance", tolerance)

    def gap(alpha: Reals) -> Reals:
        return _gap(first, second, alpha, tolerance)

    breaks = [f.curve.breaks for f in (first, second)]
    linear = all(b is not None for b in breaks)
    grid = np.unique(np.concatenate([[0.0, 1.0], *(_SMOOTH_GRID if b is None else b for b in breaks)]))
    gaps = gap(grid)
    below, above = (
        tuple(
            (
                _edge(gap, grid, gaps, index=low, step=-1, linear=linear),
                _edge(gap, grid, gaps, index=high, step=1, linear=linear),
            )
            for low, high in _runs(np.sign(gaps) == sign)
        )
        for sign in (-1.0, 1.0)
    )
    if below and above:
        verdict = Verdict.INCOMPARABLE
    elif below or above:
        verdict = Verdict.DOMINATES if below else Verdict.DOMINATED
    else:
        verdict = Verdict.EQUAL
    return Comparison(verdict, below, above)


def _gap(first: TradeOff, second: TradeOff, alpha: Reals, tolerance: float) -> Reals:
    """first - second at alpha, measured from the nearer end; zero within the tolerance.

    The rounding of alpha itself moves a curve, most where it is steep just before a kink: by as much as it moves
    between two neighbours of alpha.
    """
    powers, missed = [f.power(alpha) for f in (first, second)], [f(alpha) for f in (first, second)]
    left = np.maximum(*powers) < 0.5
    gap = np.where(left, powers[1] - powers[0], missed[0] - missed[1])
    rounding = 2.0**-50 / np.maximum(1.0 - alpha, 2.0**-53)
    before, after = alpha * (1 - 2.0**-51), np.minimum(alpha * (1 + 2.0**-51), 1.0)
    moved = np.maximum(*(np.abs(f(before) - f(after)) for f in (first, second)))
    noise = np.where(left, tolerance * np.maximum(*powers), (tolerance + rounding) * np.maximum(*missed) + moved)
    return np.where(np.abs(gap) <= noise, 0.0, gap)


def _runs(flags: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """First and last index of every run of true flags."""
    turns = np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8))
    return list(zip(np.nonzero(turns == 1)[0].tolist(), (np.nonzero(turns == -1)[0] - 1).tolist(), strict=True))


def _edge(gap: Callable[[Reals], Reals], grid: Reals, gaps: Reals, *, index: int, step: int, linear: bool) -> float:
    """Where a run that ends at grid[index] really ends, going in direction `step`."""
    beyond = index + step
    if not 0 <= beyond < grid.size:
        return float(grid[index])
    inside, outside = float(grid[index]), float(grid[beyond])
    if linear:  # both linear in between: touching or crossing at a point that is known exactly
        return inside + (outside - inside) * float(gaps[index] / (gaps[index] - gaps[beyond]))
    if beyond in {0, grid.size - 1}:  # all curves that do not jump meet at the ends
        return outside
    wanted = np.sign(gaps[index])
    for _ in range(60):
        middle = 0.5 * (inside + outside)
        if np.sign(gap(np.array([middle]))[0]) == wanted:
            inside = middle
        else:
            outside = middle
    return inside

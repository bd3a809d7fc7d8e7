"""The numerical accountants of one direction, in order of preference: see `_ATTEMPTS`.

A source answers for the finite losses of one direction. The first that has a narrow certificate is taken; otherwise the
brackets of several are intersected.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from discreet.accounting.blurred import blurred_line
from discreet.accounting.contour import line_for_delta, line_for_epsilon
from discreet.accounting.exact import EnumeratedLoss, SingleLoss, TopLoss
from discreet.accounting.grid import grid_for_delta, grid_for_epsilon
from discreet.accounting.pair import Direction, Pair
from discreet.accounting.rare import rare_for_delta, rare_for_epsilon
from discreet.accounting.saddle import Unreachable
from discreet.accounting.spline import SplineLoss
from discreet.errors import CertificateError, InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Pairs", "Source", "shared_source", "source_for"]

Pairs = list[tuple[Pair, int]]

_MOST_OUTCOMES = 1_000_000
_FEW_OUTCOMES = 100_000
_SHARED_WIDTH = 1e-7
"""Limits of what is made once and read at many epsilons."""
_FEW = 64
"""Up to so many releases the spline comes before the contour, which is faster where it has a certificate."""
_GOOD = 1e-8
"""A bracket this narrow needs no second opinion."""
_FAIR = 1e-3
"""A bracket this narrow is enough where upper and lower end speak of different mechanisms."""


class _Attempt(Protocol):
    """One numerical accountant asked one question; None where it has nothing to say."""

    def __call__(
        self, pairs: Pairs, direction: Direction, epsilon: float | None, delta: float | None, /
    ) -> Source | None: ...


class _Reader(Protocol):
    """What every numerical accountant offers for one direction and its finite losses."""

    def bounds(self, epsilon: float) -> tuple[float, float]: ...

    def epsilon_bounds(self, low_delta: float, high_delta: float) -> tuple[float, float]: ...


@dataclass(frozen=True)
class Source:
    """One or more readers of the same direction; their brackets are intersected."""

    readers: tuple[_Reader, ...]
    method: str
    reason: str
    width: float

    @classmethod
    def of(cls, reader: _Reader, method: str, reason: str, epsilon: float | None, delta: float | None) -> Source:
        if delta is not None:
            low, high = reader.epsilon_bounds(delta, delta)
        else:
            assert epsilon is not None
            low, high = reader.bounds(epsilon)
        if low > high * (1 + 1e-9) + 1e-300:
            raise CertificateError(
                "this reading",
                limit=f"a {method} accountant that contradicts itself (at least {low:.9g} and at most {high:.9g})",
                advice="Please report it: see SECURITY.md.",
            )
        width = 0.0 if low >= high else (high - low) / high if high < math.inf else math.inf
        return cls((reader,), method, reason, width)

    def meet(self, other: Source) -> Source:
        first, second = (self, other) if self.width <= other.width else (other, self)
        return Source(first.readers + second.readers, first.method, first.reason, first.width)

    def bounds(self, epsilon: float) -> tuple[float, float]:
        found = [reader.bounds(epsilon) for reader in self.readers]
        return max(low for low, _ in found), min(high for _, high in found)

    def epsilon_bounds(self, low_delta: float, high_delta: float) -> tuple[float, float]:
        found = [reader.epsilon_bounds(low_delta, high_delta) for reader in self.readers]
        return max(low for low, _ in found), min(high for _, high in found)


def source_for(
    pairs: Pairs,
    direction: Direction,
    method: str,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    precise: bool = True,
) -> Source:
    """The first accountant in order of preference that has a good certificate, or the best of them together.

    Unless it must be `precise`, finite laws go to a coarse grid: its upper end is good to seven digits, its lower one
    to three, and neither is better known.
    """
    if method in ("auto", "exact") and len(pairs) == 1 and pairs[0][1] == 1:
        return Source((SingleLoss(pairs[0][0], direction),), "exact", "one mechanism used once, closed form", 0.0)
    if method == "exact":
        raise InvalidArgument("method", method, "only one mechanism used once, or Gaussians, have a closed form")
    if method in _FORCED:
        try:
            return _FORCED[method](pairs, direction, epsilon, delta)
        except (Unreachable, OverflowError) as error:
            advice = "Use method='auto'." if method == "grid" else "Use method='auto' or method='grid'."
            raise CertificateError(f"the {method} accountant", limit=str(error), advice=advice) from None
    if not precise and method == "auto" and _is_table(pairs):
        coarse = _quietly(_coarse, pairs, direction, epsilon, delta)
        if coarse is not None and coarse.width <= _FAIR:
            return coarse
    best, obstacle = None, ""
    for attempt in _ATTEMPTS:
        try:
            found = attempt(pairs, direction, epsilon, delta)
        except (Unreachable, OverflowError) as error:
            obstacle = obstacle or str(error)
            continue
        if found is not None:
            best = found if best is None else found.meet(best)
            if best.width <= _GOOD:
                return best
    try:
        grid = _grid(pairs, direction, epsilon, delta)
    except (Unreachable, OverflowError) as error:
        if best is not None:
            return best
        raise CertificateError(
            "this composition",
            limit=str(error),
            advice="Split it into parts, or give a Rényi curve of the part that has the widest losses.",
        ) from None
    if obstacle:
        grid = replace(grid, reason=f"{grid.reason} (no contour: {obstacle})")
    return grid if best is None else grid.meet(best)


def shared_source(
    pairs: Pairs,
    direction: Direction,
    epsilon: float,
    *,
    narrow: float,
    grid_at: float,
    listed: Callable[[], EnumeratedLoss],
) -> _Reader:
    """The first accountant of `_ATTEMPTS` and the grid whose bounds hold well at many epsilons around this one.

    That is the contour, if its bracket is at most `narrow` wide; all outcomes; or a grid made at `grid_at`.
    """
    try:
        line = line_for_epsilon(pairs, direction, epsilon)
        low, high = line.bounds(epsilon)
        if high - low <= narrow * high:
            return line
    except (Unreachable, OverflowError):
        pass
    if EnumeratedLoss.size(pairs) <= _FEW_OUTCOMES:
        return listed()
    try:
        return grid_for_epsilon(pairs, direction, grid_at, _SHARED_WIDTH)
    except (Unreachable, OverflowError) as error:
        raise CertificateError(
            "the privacy profile of this composition",
            limit=str(error),
            advice="Split it into parts, or give a Rényi curve of the part that has the widest losses.",
        ) from None


def _top(pairs: Pairs, direction: Direction, epsilon: float | None, delta: float | None) -> Source | None:
    """The largest loss, where delta is far below its mass."""
    if epsilon is not None or delta is None:
        return None
    top = TopLoss(pairs, direction)
    lower, _ = top.epsilon_bounds(delta, delta)
    if lower <= 0:
        return None
    reason = f"the largest loss, {top.top:.6g}, has probability {math.exp(top.log_mass):.3g}"
    width = (top.top - lower) / top.top + 1e-13
    return Source((top,), "exact", reason, width if width <= 1e-11 else math.inf)  # others may know better


def _spline(pairs: Pairs, direction: Direction, epsilon: float | None, delta: float | None) -> Source:
    spline = SplineLoss(pairs, direction)
    return Source.of(spline, "spline", f"piecewise polynomials, {spline.pieces} pieces", epsilon, delta)


def _spline_of_few(pairs: Pairs, direction: Direction, epsilon: float | None, delta: float | None) -> Source | None:
    is_few = sum(count for _, count in pairs) <= _FEW
    return _quietly(_spline, pairs, direction, epsilon, delta) if is_few else None


def _spline_of_many(pairs: Pairs, direction: Direction, epsilon: float | None, delta: float | None) -> Source | None:
    is_few = sum(count for _, count in pairs) <= _FEW
    return None if is_few else _quietly(_spline, pairs, direction, epsilon, delta)


def _quietly(
    attempt: _Attempt, pairs: Pairs, direction: Direction, epsilon: float | None, delta: float | None
) -> Source | None:
    """The attempt, whose failure need not be told: it is one among several."""
    try:
        return attempt(pairs, direction, epsilon, delta)
    except (Unreachable, OverflowError):
        return None


def _listed(pairs: Pairs, direction: Direction, epsilon: float | None, delta: float | None) -> Source | None:
    """All outcomes, if they are not too many."""
    if EnumeratedLoss.size(pairs) > _MOST_OUTCOMES:
        return None
    listed = EnumeratedLoss(pairs, direction)
    return Source.of(listed, "exact", f"all {len(listed.loss)} possible total losses listed", epsilon, delta)


def _contour(pairs: Pairs, direction: Direction, epsilon: float | None, delta: float | None) -> Source:
    if delta is not None:
        line = line_for_delta(pairs, direction, delta)
    else:
        assert epsilon is not None
        line = line_for_epsilon(pairs, direction, epsilon)
    kind = "exact sum over the lattice of losses" if line.step else "contour integral through the saddle point"
    return Source.of(line, "contour", f"{kind}, {len(line.height)} nodes at Re z = {line.t:.4g}", epsilon, delta)


def _rare(pairs: Pairs, direction: Direction, epsilon: float | None, delta: float | None) -> Source | None:
    """The contour of the event that some loss of a sampled Gaussian is large, all others told apart."""
    try:
        if delta is not None:
            rare = rare_for_delta(pairs, direction, delta)
        else:
            assert epsilon is not None
            rare = rare_for_epsilon(pairs, direction, epsilon)
        reason = f"contour integral over rare large losses, {len(rare.line.height)} nodes at Re z = {rare.line.t:.4g}"
        return Source.of(rare, "contour", reason, epsilon, delta)
    except (Unreachable, ArithmeticError, ValueError):  # its planning may leave the range of floats; others answer then
        return None


def _cut(pairs: Pairs, direction: Direction, epsilon: float | None, delta: float | None) -> Source | None:
    """The contour with far losses left out: they are paid for in delta, at most 1e-13 of it."""
    if direction is Direction.BACKWARD:
        return None
    if delta is not None:
        log_delta = math.log(delta)
    else:
        assert epsilon is not None
        log_delta = math.log(max(1e-290, *(SingleLoss(pair, direction).bounds(epsilon)[0] for pair, _ in pairs)))
    best: Source | None = None
    for share in (1e-13, 1e-22, 1e-35):  # deeper cuts leave a smaller edge, shallower ones a weaker tilt
        budget = log_delta + math.log(share) - math.log(sum(count for _, count in pairs))
        found = _contour_cut(pairs, direction, budget, epsilon, delta)
        if found is not None and (best is None or found.width < best.width):
            best = found
        if best is not None and best.width <= _GOOD:
            break
    return best


def _contour_cut(
    pairs: Pairs, direction: Direction, budget: float, epsilon: float | None, delta: float | None
) -> Source | None:
    shorter: Pairs = [(pair.cut(budget), count) for pair, count in pairs]
    if all(new is old for (new, _), (old, _) in zip(shorter, pairs, strict=True)):
        return None
    kept = sum(
        count * math.log1p(-(new.p_cut - old.p_cut)) for (new, count), (old, _) in zip(shorter, pairs, strict=True)
    )
    lost = -math.expm1(kept) * (1 + 1e-9)
    try:
        source = _contour(shorter, direction, epsilon, delta)
    except (Unreachable, OverflowError):
        return None
    return replace(source, readers=tuple(_Short(reader, lost) for reader in source.readers))


@dataclass(frozen=True)
class _Short:
    """A reader of losses some of which were left out, of total mass `lost`."""

    reader: _Reader
    lost: float

    def bounds(self, epsilon: float) -> tuple[float, float]:
        low, high = self.reader.bounds(epsilon)
        return low, min(1.0, high + self.lost)

    def epsilon_bounds(self, low_delta: float, high_delta: float) -> tuple[float, float]:
        if low_delta <= self.lost:
            return 0.0, math.inf
        return self.reader.epsilon_bounds(low_delta - self.lost, high_delta)


def _blurred(pairs: Pairs, direction: Direction, epsilon: float | None, delta: float | None) -> Source | None:
    """The contour with a little Gaussian noise added to the loss, and with less of it if that was too much."""
    best: Source | None = None
    for width in (3e-9, 1e-10):
        try:
            line = blurred_line(pairs, direction, epsilon=epsilon, delta=delta, width=width)
            reason = f"contour integral of the loss blurred by {line.eta:.2g}, {len(line.height)} nodes"
            found = Source.of(line, "contour", f"{reason} at Re z = {line.t:.4g}", epsilon, delta)
        except (Unreachable, OverflowError):
            break
        best = found if best is None else best.meet(found)
        if best.width <= 1e-8:
            break
    return best


def _is_table(pairs: Pairs) -> bool:
    """Whether all laws are finite and one of them is long: few outcomes are quicker to list."""
    return all(pair.is_finite for pair, _ in pairs) and any(len(pair.atoms()[0]) > _FEW for pair, _ in pairs)


def _coarse(pairs: Pairs, direction: Direction, epsilon: float | None, delta: float | None) -> Source:
    # the lower end is off by half a step for each release
    return _grid(pairs, direction, epsilon, delta, width=1e-7 / sum(count for _, count in pairs))


def _grid(
    pairs: Pairs, direction: Direction, epsilon: float | None, delta: float | None, *, width: float = 1e-9
) -> Source:
    if delta is not None:
        grid = grid_for_delta(pairs, direction, delta, width)
    else:
        assert epsilon is not None
        grid = grid_for_epsilon(pairs, direction, epsilon, width)
    reason = f"tilted FFT over {len(grid.upper.above)} points, step {grid.upper.step:.3g}"
    return Source.of(grid, "grid", reason, epsilon, delta)


_ATTEMPTS: tuple[_Attempt, ...] = (
    _top,
    _spline_of_few,
    _contour,
    _rare,
    _spline_of_many,
    _cut,
    _listed,
    _blurred,
)
"""What `auto` tries, in this order, before the grid."""

_FORCED: dict[str, Callable[[Pairs, Direction, float | None, float | None], Source]] = {
    "spline": _spline,
    "contour": _contour,
    "grid": _grid,
}

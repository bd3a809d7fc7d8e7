"""The numerical accountants of one direction, in order of preference: closed form, spline, contour, list, grid.

A source answers for the finite losses of one direction. The first that has a narrow certificate is taken; otherwise the
brackets of several are intersected.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Protocol

from discreet.accounting.blurred import blurred_line
from discreet.accounting.contour import line_for_delta, line_for_epsilon
from discreet.accounting.exact import EnumeratedLoss, SingleLoss
from discreet.accounting.grid import grid_for_delta, grid_for_epsilon
from discreet.accounting.pair import Direction, Pair
from discreet.accounting.rare import rare_for_delta, rare_for_epsilon
from discreet.accounting.saddle import Unreachable
from discreet.accounting.spline import SplineLoss
from discreet.errors import CertificateError, InvalidArgument

__all__ = ["Pairs", "Source", "source_for"]

Pairs = list[tuple[Pair, int]]

_MOST_OUTCOMES = 1_000_000
_FEW = 64
"""Up to so many releases the spline comes before the contour, which is faster where it has a certificate."""
_GOOD = 1e-8
"""A bracket this narrow needs no second opinion."""


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
        width = 0.0 if low == high else (high - low) / high if high < math.inf else math.inf
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
    pairs: Pairs, direction: Direction, method: str, *, epsilon: float | None = None, delta: float | None = None
) -> Source:
    """The first accountant in order of preference that has a good certificate, or the best of them together."""
    if method in ("auto", "exact") and len(pairs) == 1 and pairs[0][1] == 1:
        return Source((SingleLoss(pairs[0][0], direction),), "exact", "one mechanism used once, closed form", 0.0)
    if method == "exact":
        raise InvalidArgument("method", method, "only one mechanism used once, or Gaussians, have a closed form")
    obstacle, line = "", None
    are_few = sum(count for _, count in pairs) <= _FEW
    if method == "spline" or (method == "auto" and are_few):
        line = _spline(pairs, direction, epsilon, delta, is_forced=method == "spline")
        if line is not None and (method == "spline" or line.width <= _GOOD):
            return line
    if method in ("auto", "contour"):
        try:
            found = _contour(pairs, direction, epsilon, delta)
            line = found if line is None else found.meet(line)
            if method == "contour" or line.width <= _GOOD:
                return line
        except (Unreachable, OverflowError) as error:
            obstacle = str(error)
            if method == "contour":
                raise CertificateError(
                    "the contour integral", limit=obstacle, advice="Use method='auto' or method='grid'."
                ) from None
        rare = _rare(pairs, direction, epsilon, delta)
        if rare is not None:
            line = rare if line is None else rare.meet(line)
            if line.width <= _GOOD:
                return line
        spline = None if are_few else _spline(pairs, direction, epsilon, delta, is_forced=False)
        if spline is not None:
            line = spline if line is None else spline.meet(line)
            if line.width <= _GOOD:
                return line
        cut = _cut(pairs, direction, epsilon, delta)
        if cut is not None:
            line = cut if line is None else cut.meet(line)
            if line.width <= _GOOD:
                return line
        if EnumeratedLoss.size(pairs) <= _MOST_OUTCOMES:
            listed = EnumeratedLoss(pairs, direction)
            return Source.of(listed, "exact", f"all {len(listed.loss)} possible total losses listed", epsilon, delta)
        blurred = _blurred(pairs, direction, epsilon, delta)
        if blurred is not None:
            line = blurred if line is None else blurred.meet(line)
            if line.width <= _GOOD:
                return line
    try:
        grid = _grid(pairs, direction, epsilon, delta, obstacle)
    except (Unreachable, OverflowError) as error:
        if line is not None:
            return line
        raise CertificateError(
            "this composition",
            limit=str(error),
            advice="Split it into parts, or give a Rényi curve of the part that has the widest losses.",
        ) from None
    return grid if line is None else grid.meet(line)


def _spline(
    pairs: Pairs, direction: Direction, epsilon: float | None, delta: float | None, *, is_forced: bool
) -> Source | None:
    try:
        spline = SplineLoss(pairs, direction)
    except Unreachable as error:
        if not is_forced:
            return None
        raise CertificateError("the spline", limit=str(error), advice="Use method='auto' or method='grid'.") from None
    return Source.of(spline, "spline", f"piecewise polynomials, {spline.pieces} pieces", epsilon, delta)


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


def _grid(pairs: Pairs, direction: Direction, epsilon: float | None, delta: float | None, obstacle: str) -> Source:
    if delta is not None:
        grid = grid_for_delta(pairs, direction, delta)
    else:
        assert epsilon is not None
        grid = grid_for_epsilon(pairs, direction, epsilon)
    reason = f"tilted FFT over {len(grid.upper.above)} points, step {grid.upper.step:.3g}"
    return Source.of(grid, "grid", reason + (f" (no contour: {obstacle})" if obstacle else ""), epsilon, delta)

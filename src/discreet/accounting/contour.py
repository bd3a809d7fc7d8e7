r"""The contour accountant: delta(epsilon) as an integral along a vertical line, with an a-posteriori certificate.

For a composition with K(z) = sum_i k_i ln E e^{z L_i} (finite losses; infinite ones are added at the end) and D(x) =
E (1 - e^{x-L})_+,

    D(eps) = 1/(2 pi) int e^{K(t+iy) - eps (t+iy)} / ((t+iy)(t+1+iy)) dy          for every t > 0,

and its trapezoid rule with step h = 2 pi / period satisfies, by Poisson summation,

    sum_h = sum_m e^{t m period} D(eps + m period),    m over all integers.

Every term is non-negative: the rule overestimates, by an *aliasing* part that Chernoff's inequality bounds,
D(x) <= e^{K(s) - s x} s^s / (1+s)^{s+1} for s >= 0. If all losses lie on a lattice of spacing g the same holds with
1/(z(z+1)) replaced by its lattice form and |y| <= pi/g: a finite sum, exact apart from aliasing, atoms or not.
Otherwise the line is cut at Y and |E_Q w^b| beyond is bounded by `Pair.log_decay`; for laws with atoms that bound does
not fall, the certificate fails, and another accountant must be asked. Saddle points choose t [Alghamdi et al. 2023];
the certificate does not depend on that choice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from discreet.accounting.pair import ROUNDING, Direction, Pair, unit_interval
from discreet.accounting.saddle import Unreachable, cumulants_of, log_chernoff, period_for, saddle, sketch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from discreet.accounting.pair import Complexes, Reals

__all__ = ["Line", "common_lattice", "line_for_delta", "line_for_epsilon", "quick_upper", "values_along"]

_GOAL = math.log(1e-12)
"""ln of the share of delta that aliasing and truncation may take."""

_NO_FALL = "the characteristic function does not fall fast enough (atoms, or few and far-spread losses)"
_MOST_NODES = 400_000
_MOST_WORK = 1.5e8


@dataclass(frozen=True, eq=False)
class Line:
    """The integrand sampled on Re z = t, and everything needed to bound D at any epsilon from it."""

    t: float
    height: Reals
    log_value: Complexes
    log_error: Reals
    period: float
    aliases: tuple[tuple[float, float], ...]
    """(s, upper bound of K(s)) pairs for Chernoff bounds; s = 0 stands for D <= 1."""
    log_cut: float
    """ln of a bound of (1/pi) int_Y^inf |e^K| / y^2 dy; -inf on a lattice."""
    origin: float
    step: float
    """Lattice of the sum of losses; step 0 when there is none."""
    start: float = 0.0
    """An epsilon near the saddle, where Newton's method begins."""
    blur: float = 0.0
    """By how much the total loss may be off its lattice."""
    log_common: float = 0.0
    """An error of all values alike: it multiplies the sum instead of every term."""

    def bounds(self, epsilon: float) -> tuple[float, float]:
        """Certified lower and upper value of D(epsilon)."""
        if not self.blur:
            return self._enclosure(epsilon)
        return self._enclosure(epsilon + self.blur)[0], self._enclosure(epsilon - self.blur)[1]

    def _enclosure(self, epsilon: float) -> tuple[float, float]:
        value, error, _ = self._sum(epsilon)
        cut = math.exp(min(700.0, self.log_cut - self.t * epsilon)) * (1 + 1e-9)
        upper = value + error + cut
        lower = value - error - cut - self.alias(epsilon)
        return unit_interval(lower * (1 - 4 * ROUNDING), upper * (1 + 4 * ROUNDING))

    def slope(self, epsilon: float) -> tuple[float, float]:
        """D(epsilon) and its derivative, without a certificate (for Newton's method)."""
        value, _, derivative = self._sum(epsilon)
        return value, derivative

    def _kernel(self, epsilon: float) -> tuple[Complexes, Complexes, float]:
        """Kernel, its derivative in epsilon (both apart from the factor e^{-eps z}), and the point x it refers to."""
        z = self.t + 1j * self.height
        if self.step == 0:
            kernel = np.asarray(1 / (z * (z + 1)), dtype=complex)
            return kernel, -z * kernel, epsilon
        first = self.origin + self.step * math.ceil((epsilon - self.origin) / self.step)
        above = -1 / np.expm1(-z * self.step)
        below = math.exp(epsilon - first) * (-1 / np.expm1(-(z + 1) * self.step))
        return self.step * (above - below), -self.step * below, first

    def _sum(self, epsilon: float) -> tuple[float, float, float]:
        kernel, change, point = self._kernel(epsilon)
        top = float(self.log_value[0].real) - self.t * point
        phase = self.log_value - self.log_value[0].real - 1j * self.height * point
        phase.real = np.minimum(phase.real, 60.0)  # |E e^{zL}| <= E e^{tL}: only values lost in their error exceed 0
        terms = np.exp(phase)
        weight = np.full(len(terms), 2.0)
        weight[0] = 1.0
        if self.step and len(terms) > 1 and math.isclose(float(self.height[-1]) * self.step, math.pi, rel_tol=1e-9):
            weight[-1] = 1.0
        scale = math.exp(min(top, 600.0)) / self.period
        value = float((weight * terms * kernel).real.sum()) * scale
        derivative = float((weight * terms * change).real.sum()) * scale
        size = np.abs(terms) * np.abs(kernel) * weight
        if self.step:
            # the two halves of the lattice kernel are rounded separately before they are subtracted
            size = size + np.abs(terms) * weight * 2 * np.abs(change)
        rounding = 16 * ROUNDING * (4.0 + np.abs(self.log_value) + self.height * abs(point) + abs(top))
        error = float((size * np.expm1(self.log_error + rounding)).sum()) * scale
        common = math.expm1(self.log_common)
        return value, error * (1 + common) + abs(value) * (64 * ROUNDING + common), derivative

    def alias(self, epsilon: float) -> float:
        """Bound of sum over m != 0 of e^{t m period} D(epsilon + m period)."""
        right = left = math.inf
        for s, log_mean in self.aliases:
            log_bound = log_mean - s * epsilon + log_chernoff(s)
            gap = abs(s - self.t) * self.period
            if gap == 0:
                continue
            bound = math.exp(min(700.0, log_bound - gap)) / -math.expm1(-gap)
            if s > self.t:
                right = min(right, bound)
            else:
                left = min(left, bound)
        return (right + left) * (1 + 1e-9)

    def epsilon_bounds(self, low_delta: float, high_delta: float) -> tuple[float, float]:
        """(lower, upper) for the epsilon with D(epsilon) between the two deltas, found by Newton and then checked.

        Returns 0 for the upper end when D(0) is certified to be small enough.
        """
        if self.bounds(0.0)[1] <= low_delta:
            return 0.0, 0.0
        guess = self._newton(0.5 * (low_delta + high_delta))
        return self._certify(guess, high_delta, side=-1), self._certify(guess, low_delta, side=+1)

    def _newton(self, delta: float) -> float:
        """Newton on ln D, which is concave and decreasing around the saddle."""
        epsilon = self.start
        for _ in range(60):
            value, slope = self.slope(epsilon)
            if not (value > 0 and slope < 0):
                epsilon = max(epsilon - 1.0 / self.t, epsilon * 0.5)
                continue
            move = math.log(value / delta) * value / -slope
            move = max(-60.0 / self.t, min(60.0 / self.t, move))
            epsilon += move
            if abs(move) <= 1e-15 * max(abs(epsilon), 1e-12):
                break
        return epsilon

    def _certify(self, guess: float, delta: float, *, side: int) -> float:
        """The point nearest the guess, on the given side, at which the bounds prove the claim."""
        _, slope = self.slope(guess)
        error = self.bounds(guess)
        width = max(abs(error[1] - delta), abs(delta - error[0]))
        step = max(1.05 * width / max(-slope, 1e-300), 1e-16 * abs(guess), 1e-300)
        for _ in range(200):
            candidate = guess + side * step
            if candidate <= 0:
                candidate = 0.0
            lower, upper = self.bounds(candidate)
            if side > 0 and upper <= delta:
                return candidate
            if side < 0 and (candidate == 0.0 or lower >= delta):
                return candidate
            step *= 1.5
        raise Unreachable("the certified error of the contour integral is larger than delta")


def line_for_epsilon(pairs: Sequence[tuple[Pair, int]], direction: Direction, epsilon: float) -> Line:
    """A line suited to reading D at this epsilon."""
    t, _, log_delta, variance = saddle(lambda s: cumulants_of(pairs, direction, s), epsilon=epsilon)
    return _line(pairs, direction, t=t, epsilon=epsilon, log_delta=log_delta, variance=variance)


def line_for_delta(pairs: Sequence[tuple[Pair, int]], direction: Direction, delta: float) -> Line:
    """A line suited to finding the epsilon with D(epsilon) = delta."""
    chosen = sketch(pairs)
    t, epsilon, log_delta, variance = saddle(lambda s: cumulants_of(chosen, direction, s), delta=delta)
    if epsilon <= 0:
        return line_for_epsilon(pairs, direction, 0.0)
    line = _line(pairs, direction, t=t, epsilon=epsilon, log_delta=log_delta, variance=variance)
    found = line._newton(delta)
    if found > 0:
        low, high = line.bounds(found)
        if high - low > 1e-9 * max(1.0, t * found) * high:  # far from the saddle after all: a line of its own is better
            return line_for_epsilon(pairs, direction, found)
    return line


def quick_upper(pairs: Sequence[tuple[Pair, int]], direction: Direction, epsilon: float) -> float:
    """A certified upper bound of D(epsilon) from a handful of nodes, about a fifth too large.

    The trapezoid rule overestimates whatever its step, so that a coarse one will do; and what lies beyond the last node
    may be bounded by the decay of some parts alone, the others counting with their value on the real axis.
    """
    chosen = sketch(pairs)
    t, _, _, variance = saddle(lambda s: cumulants_of(chosen, direction, s), epsilon=epsilon)
    power = float(direction.power(np.array([complex(t)]))[0].real)
    width = math.sqrt(variance)
    height = 1.25 / width * np.arange(6)
    log_value, log_error, log_common = values_along(pairs, direction, power, height, long=20)
    some = list(pairs[:: 1 + len(pairs) // 40])
    log_cut = float(log_value[0].real + log_error[0]) + log_common - math.log(math.pi * height[-1])
    for pair, count in some:
        value, error = pair.log_power_mean(np.array([complex(power)]))
        log_cut += count * (float(pair.log_decay(power, height[-1:])[0]) - float(value[0].real - error[0]))
    line = Line(t, height, log_value, log_error, 2 * math.pi / float(height[1]), (), log_cut, 0.0, 0.0, epsilon)
    return replace(line, log_common=log_common).bounds(epsilon)[1]


def _line(
    pairs: Sequence[tuple[Pair, int]],
    direction: Direction,
    *,
    t: float,
    epsilon: float,
    log_delta: float,
    variance: float,
) -> Line:
    if not all(pair.has_transform for pair, _ in pairs):
        raise Unreachable("a part is known only by its distribution functions")
    width = math.sqrt(variance)
    goal = log_delta + _GOAL
    chosen = sketch(pairs)
    period, aliases = period_for(chosen, direction, t=t, epsilon=epsilon, goal=goal, width=width)
    best = 1.0
    if period * t > 3 * -goal:
        # heavy right tail (rare large losses): a line to the left of the saddle sees less of it at little loss
        for share in (0.9, 0.8, 0.7, 0.6):
            value, _, second = cumulants_of(chosen, direction, share * t)
            log_size = value - share * t * epsilon - math.log(share * t) - math.log1p(share * t)
            if log_size > log_delta + 6.0:
                break
            here = math.sqrt(second + 1 / (share * t) ** 2)
            found = period_for(chosen, direction, t=share * t, epsilon=epsilon, goal=goal, width=here)
            if found[0] < 0.8 * period:
                period, aliases, width, best = found[0], found[1], here, share
            else:
                break
        t *= best
    if len(chosen) < len(pairs):  # a few parts placed the line; what is charged comes from all of them
        period, aliases = period_for(pairs, direction, t=t, epsilon=epsilon, goal=goal, width=width)
    lattice = common_lattice(pairs, direction)
    blur = 0.0
    if lattice is not None:
        origin, step, blur = lattice
        count = math.ceil(period / step)
        if count > 2 * _MOST_NODES:
            raise Unreachable(f"{count} lattice points would have to be summed")
        period = count * step
        height, log_cut = _lattice_heights(pairs, direction, t=t, step=step, count=count, goal=goal + t * epsilon)
    else:
        origin = step = 0.0
        height, log_cut = _cut(pairs, direction, t=t, epsilon=epsilon, period=period, goal=goal, width=width)
    power = float(direction.power(np.array([complex(t)]))[0].real)
    work = len(height) * sum(pair.node_count((power, power), float(height[-1])) for pair, _ in pairs)
    if work > _MOST_WORK:
        raise Unreachable(f"{work:.1e} evaluations of the integrand would be needed")
    log_value, log_error, log_common = values_along(pairs, direction, power, height)
    log_error = log_error + blur * (t + height)
    return Line(
        t, height, log_value, log_error, period, tuple(aliases), log_cut, origin, step, epsilon, blur, log_common
    )


def values_along(
    pairs: Sequence[tuple[Pair, int]], direction: Direction, power: float, height: Reals, long: int = 2_000
) -> tuple[Complexes, Reals, float]:
    """K, its error and an error common to all of it, at these heights.

    Long, equally spaced lines of steps that are not repeated too often take the fast sum.
    """
    is_even = len(height) > 1 and math.isclose(float(height[-1]), (len(height) - 1) * float(height[1]), rel_tol=1e-9)
    value = np.zeros(len(height), dtype=complex)
    error = np.zeros(len(height))
    common = 0.0
    powers = power + 1j * height
    for pair, times in pairs:
        work = len(height) * pair.node_count((power, power), float(height[-1]))
        if is_even and ((work > long and times <= 10_000) or (work > 30_000 and times <= 3_000_000)):
            part, bound, shared = pair.log_power_line(power, float(height[1]), len(height), times)
            common += times * shared
        else:
            part, bound = pair.log_power_mean(powers)
        value += times * part
        error += times * bound
    if direction is Direction.BACKWARD:
        value = np.conj(value)  # E e^{zL} = E_Q w^{-z}, and the heights above are those of -conj(z)
    return value, error + 4 * ROUNDING * len(pairs) * np.abs(value), common


def _lattice_heights(
    pairs: Sequence[tuple[Pair, int]], direction: Direction, *, t: float, step: float, count: int, goal: float
) -> tuple[Reals, float]:
    """The heights 2 pi n / period of one period, cut where the characteristic function is certainly negligible."""
    height = 2 * math.pi / (count * step) * np.arange(count // 2 + 1)
    if count < 4096:
        return height, -math.inf
    power = float(direction.power(np.array([complex(t)]))[0].real)
    reaches = height[-1] * 0.5 ** np.arange(1, 14)
    log_bound = np.zeros(len(reaches))
    for pair, times in pairs:
        own = pair.lattice is not None and pair.lattice.step == step
        log_bound += times * (pair.log_decay_within if own else pair.log_decay)(power, reaches)
    # the kernel is at most step (1/|1 - e^{-z step}| + 1/|1 - e^{-(z+1) step}|) <= pi / y there, count terms / period
    log_cut = log_bound + np.log(2 * math.pi / reaches / step)
    good = np.flatnonzero(log_cut <= goal)
    if not len(good):
        return height, -math.inf
    index = int(good[-1])
    return height[height <= reaches[index]], float(log_cut[index])


def _cut(
    pairs: Sequence[tuple[Pair, int]],
    direction: Direction,
    *,
    t: float,
    epsilon: float,
    period: float,
    goal: float,
    width: float,
) -> tuple[Reals, float]:
    """Heights of the nodes and ln of a bound of what lies beyond the last one."""
    spacing = 2 * math.pi / period
    power = float(direction.power(np.array([complex(t)]))[0].real)
    first = math.sqrt(2 * max(4.0, -_GOAL)) / width
    chosen = sketch(pairs)
    if len(chosen) < len(pairs):  # a few parts tell about where the others will agree
        trial = first * 1.1 ** np.arange(-4, 80)
        log_trial = -np.log(math.pi * trial) - t * epsilon
        for pair, weight in chosen:
            log_trial += weight * pair.log_decay(power, trial)
        if not (log_trial <= goal).any():
            raise Unreachable(_NO_FALL)
        first = float(trial[int(np.argmax(log_trial <= goal))])
        blocks = [first * np.array([1.0, 1.05, 1.12]), first * 1.45 ** np.arange(1, 23)]
    else:
        blocks = np.array_split(first * 1.45 ** np.arange(-1, 23), 2)
    for block in blocks:
        nodes = sum(pair.node_count((power, power), float(block[0])) for pair, _ in pairs)
        if float(block[0]) / spacing * nodes > _MOST_WORK:
            break
        log_bound = np.zeros(len(block))
        for pair, count in pairs:
            log_bound += count * pair.log_decay(power, block)
        log_cut = log_bound - np.log(math.pi * block)
        good = np.flatnonzero(log_cut - t * epsilon <= goal)
        if len(good):
            index = int(good[0])
            count = math.ceil(float(block[index]) / spacing)
            return spacing * np.arange(count + 1), float(log_cut[index])
    raise Unreachable(_NO_FALL)


def common_lattice(pairs: Sequence[tuple[Pair, int]], direction: Direction) -> tuple[float, float, float] | None:
    """Origin and step of the lattice of the total loss, and by how much rounding may have moved losses off it.

    Steps such as 0.1 and 0.25 share the lattice 0.05; the common step is found by Euclid's algorithm on floats.
    """
    lattices = [pair.lattice for pair, _ in pairs]
    if any(lattice is None for lattice in lattices):
        return None
    steps = [lattice.step for lattice in lattices if lattice is not None]
    step = steps[0]
    for other in steps[1:]:
        small, large = min(step, other), max(step, other)
        while small > 1e-9 * max(steps):
            small, large = abs(large - small * round(large / small)), small
        step = large
    if max(steps) / step > 1e6:
        return None
    step = min(steps) / round(min(steps) / step)
    origin = blur = 0.0
    for (pair, count), lattice in zip(pairs, lattices, strict=True):
        assert lattice is not None
        origin += count * lattice.origin
        low, high = pair.span
        extent = max(abs(low), abs(high))
        multiple = round(lattice.step / step)
        drift = (high - low) / lattice.step * abs(lattice.step - multiple * step)
        if drift > 1e-9 * step:
            return None
        blur += count * (drift + lattice.mismatch + 4 * ROUNDING * extent)
    blur += 4 * ROUNDING * abs(origin)
    return (origin if direction is Direction.FORWARD else -origin), step, blur

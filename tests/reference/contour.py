"""delta(epsilon) of a composition by the inverse Laplace integral along a bent line, in ball arithmetic.

    delta(epsilon) = (1/pi) Im int f(z) dz,   z = t + (slope + i) y, y > 0,   f(z) = exp(-epsilon z) E exp(zL)/(z(z+1)).

The moments are entire, so every slope and every t > 0 give the same number: leaning right makes the mass below epsilon
fade exponentially, leaning left the mass above it. Agreement between lines is what :mod:`reference.truth`
insists on. The line leans only as far as the moments keep their digits, then rises straight. Panels are Gauss–Legendre
of fixed order; their width adapts until the last Legendre coefficients are negligible.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from flint import acb, arb

from reference.laws import Law, moment
from reference.quadrature import legendre, unresolved

TOLERANCE = 1e-25
"""Panels are refined, and the line cut off, at this fraction of the value."""

Part = tuple[Law, int]


def log_moment(parts: Sequence[Part], t: float) -> float:
    """ln E exp(tL) of the composition at a real point."""
    return sum(float((moment(law, acb(t)).real.log() * count).mid()) for law, count in parts)


def saddle(parts: Sequence[Part], *, epsilon: float) -> float:
    """The t > 0 that minimises ln E exp(tL) - epsilon t - ln t(t+1), to a few per cent."""
    return _minimum(lambda t: log_moment(parts, t) - epsilon * t - math.log(t * (t + 1)))


def saddle_for_delta(parts: Sequence[Part], *, delta: float) -> tuple[float, float]:
    """The saddle t whose saddle-point estimate of delta is the given one, and its epsilon: bisection in ln t."""
    goal = math.log(delta)
    low, high = -25.0, 0.0
    while _estimate(parts, math.exp(high))[1] > goal:
        low, high = high, high + 1
    while high - low > 0.02:
        middle = (low + high) / 2
        low, high = (middle, high) if _estimate(parts, math.exp(middle))[1] > goal else (low, middle)
    t = math.exp(high)
    return t, _estimate(parts, t)[0]


def _estimate(parts: Sequence[Part], t: float) -> tuple[float, float]:
    """epsilon for which t is the saddle of K(t) - epsilon t - ln t(t+1), and the estimate of ln delta there."""
    gap = arb(t) / 1000
    below, at, above = (
        sum((moment(law, acb(x)).real.log() * count for law, count in parts), arb(0))
        for x in (arb(t) - gap, arb(t), arb(t) + gap)
    )
    first, second = float(((above - below) / (2 * gap)).mid()), float(((above - 2 * at + below) / gap**2).mid())
    epsilon = first - 1 / t - 1 / (t + 1)
    curvature = second + 1 / t**2 + 1 / (t + 1) ** 2
    value = float(at.mid()) - epsilon * t - math.log(t * (t + 1)) - math.log(2 * math.pi * curvature) / 2
    return epsilon, value


def _minimum(function: object) -> float:
    """Minimum over t > 0 of a function with one valley, by golden section in ln t after a coarse scan."""
    low, high = -20, 40
    values: dict[float, float] = {}

    def at(x: float) -> float:
        if x not in values:
            try:
                values[x] = function(math.exp(x))  # type: ignore[operator]
            except (ArithmeticError, OverflowError, ValueError):
                values[x] = math.inf
        return values[x]

    best = 0.0
    while best > low and at(best - 1) < at(best):
        best -= 1
    while best < high and at(best + 1) < at(best):
        best += 1
    a, b = best - 1, best + 1
    ratio = (math.sqrt(5) - 1) / 2
    c, d = b - ratio * (b - a), a + ratio * (b - a)
    while b - a > 0.05:
        if at(c) < at(d):
            b, d = d, c
            c = b - ratio * (b - a)
        else:
            a, c = c, d
            d = a + ratio * (b - a)
    return math.exp((a + b) / 2)


def chernoff(parts: Sequence[Part], *, epsilon: float) -> float:
    """An upper bound of delta: (1 - e^{epsilon-L})_+ <= t^t (1+t)^{-1-t} e^{t(L-epsilon)} for every t > 0."""
    exponents = (
        log_moment(parts, t) - epsilon * t + t * math.log(t) - (1 + t) * math.log1p(t)
        for t in (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
    )
    return math.exp(min(0.0, *exponents))


@dataclass(frozen=True)
class Line:
    """The line with its moments stored: delta and its slope at any epsilon near the one it was built for."""

    points: list[acb]
    weights: list[acb]

    def delta(self, epsilon: arb) -> arb:
        return sum((w * (-epsilon * z).exp() for z, w in zip(self.points, self.weights, strict=True)), acb(0)).imag

    def delta_and_slope(self, epsilon: arb) -> tuple[arb, arb]:
        terms = [w * (-epsilon * z).exp() for z, w in zip(self.points, self.weights, strict=True)]
        slope = sum((-z * f for z, f in zip(self.points, terms, strict=True)), acb(0)).imag
        return sum(terms, acb(0)).imag, slope


def line(
    parts: Sequence[Part],
    *,
    epsilon: float,
    abscissa: float,
    slope: float = 0.0,
    order: int = 32,
    tolerance: float = TOLERANCE,
) -> Line:
    """Integrate from the real axis upwards until the integrand has faded."""
    nodes, gauss = legendre(order)
    direction, shift = acb(arb(slope), 1), arb(epsilon)
    points: list[acb] = []
    weights: list[acb] = []
    total, y, quiet = acb(0), 0.0, 0.0
    h = min(abscissa, 1.0) / 2
    limit, base = min(law.reach for law, _ in parts), acb(abscissa)
    while quiet <= 0.3 * y:
        if slope and abs(float(base.real.mid()) + h * slope) > limit:
            direction, slope = acb(0, 1), 0.0
        half = direction * arb(h) / 2
        centre = base + half
        values = [acb(1)] * order
        for law, count in parts:
            values = [v * m**count for v, m in zip(values, law.moments(centre, half, order), strict=True)]
        zs = [centre + half * x for x in nodes]
        kernel = [v * half / (z * (z + 1) * arb.pi()) for v, z in zip(values, zs, strict=True)]
        terms = [k * (-shift * z).exp() for k, z in zip(kernel, zs, strict=True)]
        piece = sum((t * w for t, w in zip(terms, gauss, strict=True)), acb(0))
        scale = (
            max(float(abs(total.imag).mid()), float(abs(piece.imag).mid()))
            if not points
            else float(abs(total.imag).mid())
        )
        error = unresolved(terms)
        if error > tolerance * scale:
            if h < 1e-9 * (y + abscissa):
                raise ArithmeticError(f"the integrand is not resolved at y = {y}")
            h /= 2
            continue
        points += zs
        weights += [k * w for k, w in zip(kernel, gauss, strict=True)]
        total += piece
        base += 2 * half
        y += h
        largest = max(float(abs(t).mid()) for t in terms)
        quiet = quiet + h if largest * (y / h) < tolerance * abs(float(total.imag.mid())) else 0.0
        if error < 1e-3 * tolerance * scale:
            h *= 2
        if len(points) > 20_000:
            raise ArithmeticError(f"the integrand has not faded at y = {y}")
    return Line(points, weights)


def solve(curve: Line, *, delta: arb | float, start: float) -> arb:
    """The epsilon at which the line's delta reaches the given one: Newton in ln delta."""
    goal, epsilon = arb(delta).log(), arb(start)
    for _ in range(60):
        value, slope = curve.delta_and_slope(epsilon)
        step = (value.log() - goal) * value / slope
        epsilon = (epsilon - step).mid()
        if abs(float(step.mid())) < 1e-28 * abs(float(epsilon.mid())):
            return epsilon
    raise ArithmeticError("Newton's iteration did not settle")

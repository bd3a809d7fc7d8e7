r"""From one Rényi divergence of one order to (epsilon, delta): the two conversions, rounded upward.

Two conversions of one order alpha > 1 and one value r are offered:

* ``"improved"``, a closed form [Canonne et al. 2020, Prop. 12; Balle et al. 2020, Thm 21],

      epsilon = r + ln((alpha-1)/alpha) - (ln delta + ln alpha) / (alpha-1),
      delta   = e^{(alpha-1)(r-epsilon)} (1 - 1/alpha)^{alpha-1} / alpha;

* ``"optimal"`` (the default), the largest delta that any pair with D_alpha <= r has, never worse
  [Asoodeh et al. 2021]. It is computed here in its dual form. For 0 <= x0 < x1 the function
  h(x) = c (x^alpha - alpha x0^{alpha-1} x + (alpha-1) x0^alpha) is convex and touches 0 at x0; with
  c = 1 / (alpha (x1^{alpha-1} - x0^{alpha-1})) its slope at x1 is 1, so h(x) >= max(0, x - g) for all x >= 0 as soon as

      g >= ((alpha-1)/alpha) (x1^alpha - x0^alpha) / (x1^{alpha-1} - x0^{alpha-1}).

  With x = dP/dQ, averaged over Q, this says delta(ln g) <= c B with B = e^{(alpha-1) r} - alpha x0^{alpha-1} +
  (alpha-1) x0^alpha: a valid bound for *every* x0 and x1. x0 = 0 is the improved conversion; the best x0 is the ratio
  (1-p)/(1-q) of the extremal two-point pair (p, 1-p), (q, 1-q) and is found numerically. Where alpha delta >= 1 the
  extremal pair has p = 1, h(x) = c x^alpha + b x with b >= 0 takes over and gives delta = 1 - e^{epsilon - r}.

Every formula is evaluated with a bound on its rounding error, which is added; order and value are taken as exact.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["CONVERSIONS", "ROUNDING", "best_epsilon", "best_log_delta"]

CONVERSIONS = ("optimal", "improved")

ROUNDING = 8 * 2.0**-52
"""Bound for the relative rounding error of each term of a formula."""

_TINY = 1e-300
_TINY_TOUCH = -37.0  # ln of 1 - x0 at which x0 is 1 in floating point


def _log_excess(order: float, value: float, log_touch: float) -> float:
    r"""ln B = L + ln(1 - e^{-(L + kappa)}), rounded upward, for x0 = e^log_touch <= 1 and L = (order-1) value.

    kappa = -ln(order x0^{order-1} - (order-1) x0^order) >= 0 vanishes at x0 = 1.
    """
    excess = order - 1.0
    moment = math.nextafter(excess * value * (1.0 + ROUNDING), math.inf)
    if log_touch == -math.inf:
        return moment
    fall = -excess * log_touch
    exponent = moment + (fall - math.log1p(-excess * math.expm1(log_touch))) + ROUNDING * (moment + fall)
    correction = math.log(-math.expm1(-exponent))
    return moment + correction + ROUNDING * (1.0 + moment - correction)


def _ratio_gain(distance: float, excess: float) -> float:
    """ln((1 - e^{-(m+1) d}) / (1 - e^{-m d})) for m = order - 1: falls from ln(1 + 1/m) to 0, by at most d/2."""
    fall = excess * distance
    if fall < 1e-300:
        return math.log1p(1.0 / excess)
    return math.log1p(math.expm1(-distance) * math.exp(-fall) / math.expm1(-fall))


def _log_expm1(y: float) -> float:
    return y + math.log(-math.expm1(-max(y, _TINY)))


def _best_touch(order: float, value: float, distance: Callable[[float], float]) -> float:
    r"""ln x0 of the extremal two-point pair, to 1e-7; `distance` gives ln(x1/x0) for each ln x0.

    Means 1 and e^{(order-1) r} of x and x^order under Q both determine the mass q of x1; the best x0 makes them agree:

        (1 - x0) / (x1 - x0) = (e^{(order-1) r} - x0^order) / (x1^order - x0^order).

    The left side falls below the right one as x0 grows to 1. If it is below everywhere, x0 = 0 is the best.
    """
    moment = (order - 1.0) * value

    def disagreement(t: float) -> float:
        touch = -math.exp(t)
        d = distance(touch)
        left = math.log(-math.expm1(touch)) - touch - _log_expm1(d)
        right = moment + math.log(-math.expm1(order * touch - moment)) - order * touch - _log_expm1(order * d)
        return left - right

    low, high = -700.0, math.log(50.0 + 50.0 / (order - 1.0))
    if disagreement(high) <= 0.0:
        return -math.inf
    if disagreement(_TINY_TOUCH) < 0.0:
        low = _TINY_TOUCH
    elif disagreement(low) < 0.0:
        high = _TINY_TOUCH
    else:
        return -math.exp(low)
    return -math.exp(_root(disagreement, low, high, precision=1e-7))


def _root(function: Callable[[float], float], low: float, high: float, *, precision: float) -> float:
    """Where a function changes its sign, given two ends at which the signs differ: secant and halving in turn.

    SciPy has finer methods, whose import takes a hundred times as long as all roots of a budget. Any point near the
    root is valid here.
    """
    at_low, at_high = function(low), function(high)
    halving = True
    while high - low > precision:
        middle = 0.5 * (low + high)
        if not halving:
            secant = low - at_low * (high - low) / (at_high - at_low)
            nudge = 0.25 * precision  # a secant that meets the root would otherwise move one end for ever
            secant += nudge if secant < middle else -nudge
            middle = secant if low < secant < high else middle
        value = function(middle)
        if (value > 0.0) == (at_high > 0.0):
            high, at_high = middle, value
        else:
            low, at_low = middle, value
        halving = not halving
    return 0.5 * (low + high)


def best_epsilon(order: float, value: float, log_delta: float, conversion: str) -> float:
    """epsilon(delta) of one order > 1 and one value, rounded upward; may be negative."""
    if value in (0.0, math.inf):
        return value
    excess, log_order = order - 1.0, math.log(order)
    if conversion == "optimal" and log_order + log_delta > -ROUNDING * log_delta:
        kept = math.log(-math.expm1(log_delta))
        return value + kept + ROUNDING * (value - kept + 1.0)
    if order == math.inf:
        return value
    shrink = math.log1p(1.0 / excess)
    plain = _log_excess(order, value, -math.inf)
    size = (plain + log_order - log_delta) / excess + shrink
    improved = (plain - log_order - log_delta) / excess - shrink + ROUNDING * size
    if conversion == "improved" or improved == math.inf:
        return improved

    def height(touch: float) -> float:
        # x1 = x0 e^d with e^{(order-1) d} = 1 + e^height = 1 + B / (order delta x0^{order-1})
        return _log_excess(order, value, touch) - log_order - log_delta - excess * touch

    def distance(touch: float) -> float:
        h = height(touch)
        return (max(h, 0.0) + math.log1p(math.exp(-abs(h)))) / excess

    touch = _best_touch(order, value, distance)
    if touch == -math.inf:
        return improved
    h, d = height(touch), distance(touch)
    gain = _ratio_gain(d, excess)
    size = (abs(_log_excess(order, value, touch)) + log_order - log_delta - excess * touch) / excess
    size = size * math.exp(min(h, 0.0)) + d - touch + gain + shrink
    return min(improved, touch + d + gain - shrink + ROUNDING * size)


def best_log_delta(order: float, value: float, epsilon: float, conversion: str) -> float:
    """ln delta(epsilon) of one order > 1 and one value, rounded upward; may be positive."""
    if value == 0.0:
        return -math.inf
    if value == math.inf:
        return 0.0
    excess, log_order = order - 1.0, math.log(order)
    shrink = math.log1p(1.0 / excess)
    if conversion == "optimal" and value - epsilon > shrink + ROUNDING * value:
        return math.log(-math.expm1((epsilon - value) * (1 + ROUNDING))) * (1 - ROUNDING) + ROUNDING
    if order == math.inf:
        return 0.0 if value > epsilon else -math.inf
    plain = _log_excess(order, value, -math.inf)
    fall = excess * (epsilon + shrink)
    improved = plain - log_order - fall + ROUNDING * (plain + log_order + fall)
    if conversion == "improved" or improved == math.inf:
        return improved

    def distance(touch: float) -> float:
        # ln x1 = touch + d solves d + gain(d) = target, by Newton from the right: convex, slope between 1/2 and 1
        target = epsilon + shrink - touch
        d, miss = target, math.inf
        while 0.0 < (step := d + _ratio_gain(d, excess) - target) < miss:
            miss = step
            d -= step / (1.0 - _gain_slope(d, excess))
        return max(d, _TINY)

    touch = _best_touch(order, value, distance)
    if touch == -math.inf:
        return improved
    d = distance(touch)
    gain = _ratio_gain(d, excess)
    miss = max(0.0, d + gain - (epsilon + shrink - touch))
    d -= 2.0 * (miss + ROUNDING * (epsilon + shrink - touch + d + gain))  # so that its epsilon is not above ours
    if d <= 0.0:
        return improved
    log_excess, rise = _log_excess(order, value, touch), _log_expm1(excess * d)
    size = abs(log_excess) + log_order - excess * touch + 2.0 * excess * d + abs(rise) + 1.0
    return min(improved, log_excess - log_order - excess * touch - rise + ROUNDING * size)


def _gain_slope(distance: float, excess: float) -> float:
    """Minus the derivative of `_ratio_gain`, between 0 and 1/2; only its being so matters, not its last digits."""
    fall = excess * distance
    if fall > 700.0:
        return 0.0
    slope = excess / math.expm1(max(fall, _TINY)) - (excess + 1.0) / math.expm1(min(max(fall + distance, _TINY), 709.0))
    return min(max(slope, 0.0), 0.5)

r"""The Rényi accountant: from Rényi divergences of real orders to certified (epsilon, delta).

A *curve* is a function r with r(order) >= D_order(P || Q) for every order > 1 at which it is asked and every ordered
pair P, Q of output distributions on neighbouring data; it returns infinity where nothing is known. Curves of
composed mechanisms add up [Mironov 2017, Prop. 1], so composition needs no function of its own. The neighbouring
relation is that of the curve.

One order and one value convert as `discreet.accounting.conversion` says, ``"optimal"`` (the default) or ``"improved"``;
every order of a curve is a valid choice, so the smallest result counts.

Rounding: orders and values are taken as exact; every formula is evaluated with a bound on its rounding error, which is
added. `math` functions are trusted to 2 units in the last place.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from discreet.accounting.conversion import CONVERSIONS, ROUNDING, best_epsilon, best_log_delta
from discreet.arguments import count, nonnegative, one_of, probability, real
from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = [
    "delta",
    "delta_at_order",
    "epsilon",
    "epsilon_at_order",
    "group",
    "interpolate",
    "table_delta",
    "table_epsilon",
]

_LEAST_EXCESS, _LARGEST_EXCESS = 1e-10, 1e15  # range of order - 1 that is searched
_STEP = math.log(10.0) / 2.0  # of the coarse search in ln(order - 1)
_PATIENCE = 4  # steps without improvement, i.e. two decades, before the coarse search stops
_REFINED = 3  # local minima that are refined


def epsilon(
    curve: Callable[[float], float],
    delta: float,
    *,
    orders: tuple[float, float] = (1.0, math.inf),
    conversion: str = "optimal",
) -> float:
    r"""Certified epsilon at `delta` of a mechanism with Rényi `curve`, minimised over all real orders.

    Searched are the orders between the two limits (limits included, except 1 and infinity), on a logarithmic scale
    of order - 1 first, then around each local minimum. For true Rényi curves the improved conversion has one local
    minimum only, because (order-1) r(order) is convex. delta = 0 asks the curve at order infinity.
    Infinite where the curve is infinite at every order searched, never negative.

    >>> round(epsilon(lambda order: 0.5 * order, 1e-5), 6)
    4.728386
    """
    delta, limits = probability("delta", delta), _limits(orders)
    one_of("conversion", conversion, CONVERSIONS)
    if delta == 1.0:
        return 0.0
    if delta == 0.0:
        return _value(curve, limits[1]) if limits[1] == math.inf else math.inf
    log_delta = math.log(delta)
    return max(0.0, _least(curve, limits, lambda order, value: best_epsilon(order, value, log_delta, conversion)))


def delta(
    curve: Callable[[float], float],
    epsilon: float,
    *,
    orders: tuple[float, float] = (1.0, math.inf),
    conversion: str = "optimal",
) -> float:
    r"""Certified delta at `epsilon` of a mechanism with Rényi `curve`, minimised over all real orders.

    The search is that of `epsilon`. 1 if the curve is infinite at every order searched.

    >>> round(delta(lambda order: 0.5 * order, 4.728386), 10)
    1e-05
    """
    epsilon, limits = nonnegative("epsilon", epsilon), _limits(orders)
    one_of("conversion", conversion, CONVERSIONS)

    def objective(order: float, value: float) -> float:
        log_delta = best_log_delta(order, value, epsilon, conversion)
        return log_delta if log_delta < 0.0 else math.inf  # delta = 1 says nothing: the search must go on

    return _delta_of_log(_least(curve, limits, objective))


def epsilon_at_order(order: float, divergence: float, delta: float, *, conversion: str = "optimal") -> float:
    r"""Certified epsilon at `delta` from one Rényi divergence, of an order > 1 or infinite.

    >>> round(epsilon_at_order(8.0, 0.5, 1e-5, conversion="improved"), 6)
    1.714109
    >>> round(epsilon_at_order(8.0, 0.5, 1e-5), 6)
    1.709731
    """
    order, divergence = _order("order", order), _divergence("divergence", divergence)
    delta = probability("delta", delta)
    one_of("conversion", conversion, CONVERSIONS)
    if delta == 1.0:
        return 0.0
    if delta == 0.0:
        return divergence if order == math.inf else math.inf if divergence > 0.0 else 0.0
    return max(0.0, best_epsilon(order, divergence, math.log(delta), conversion))


def delta_at_order(order: float, divergence: float, epsilon: float, *, conversion: str = "optimal") -> float:
    """Certified delta at `epsilon` from one Rényi divergence, of an order > 1 or infinite."""
    order, divergence = _order("order", order), _divergence("divergence", divergence)
    epsilon = nonnegative("epsilon", epsilon)
    one_of("conversion", conversion, CONVERSIONS)
    return _delta_of_log(best_log_delta(order, divergence, epsilon, conversion))


def table_epsilon(table: Mapping[float, float], delta: float, *, conversion: str = "optimal") -> float:
    """Certified epsilon at `delta` from finitely many Rényi divergences {order: value}, and what they imply between.

    >>> round(table_epsilon({2.0: 0.1, 8.0: 0.5, 32.0: 2.0}, 1e-5), 6)
    1.709731
    """
    curve = interpolate(table)
    given = min(epsilon_at_order(order, value, delta, conversion=conversion) for order, value in table.items())
    return min(given, epsilon(curve, delta, orders=(1.0, max(table)), conversion=conversion))


def table_delta(table: Mapping[float, float], epsilon: float, *, conversion: str = "optimal") -> float:
    """Certified delta at `epsilon` from finitely many Rényi divergences {order: value}, and what they imply between."""
    curve = interpolate(table)
    given = min(delta_at_order(order, value, epsilon, conversion=conversion) for order, value in table.items())
    return min(given, delta(curve, epsilon, orders=(1.0, max(table)), conversion=conversion))


def interpolate(table: Mapping[float, float]) -> Callable[[float], float]:
    r"""The curve that finitely many Rényi divergences {order: value} imply at all other orders.

    D_order is nondecreasing, and (order-1) D_order is convex with slopes below D_infinity [Van Erven and Harremoës
    2014, Thm 3, Cor. 2]. So between two orders (order-1) r(order) is at most its chord; below the first order r is at
    most the first value; above the last finite order it is infinite, or follows the slope given for order infinity.
    """
    if not table:
        raise InvalidArgument("table", table, "give at least one order, as in {2.0: 0.5, 8.0: 2.0}")
    known = sorted((_order("order", order), _divergence(f"table[{order}]", value)) for order, value in table.items())
    for i in range(len(known) - 2, -1, -1):
        known[i] = (known[i][0], min(known[i][1], known[i + 1][1]))

    def curve(order: float) -> float:
        above = next((i for i, (alpha, _) in enumerate(known) if alpha >= order), None)
        if above is None:
            return math.inf
        right, at_right = known[above]
        if above == 0 or right == order or at_right == math.inf:
            return at_right
        left, at_left = known[above - 1]
        # every factor is positive and known to one rounding, and so is the whole
        if right == math.inf:
            chord = (left - 1.0) * at_left + (order - left) * at_right
        else:
            chord = (right - order) * (left - 1.0) * at_left + (order - left) * (right - 1.0) * at_right
            chord /= right - left
        return min(at_right, chord / (order - 1.0) * (1.0 + 2 * ROUNDING))

    return curve


def group(curve: Callable[[float], float], size: int) -> Callable[[float], float]:
    r"""Curve for groups of `size` people, from the curve for one: for every order > 1, with a = size * order,

        r_size(order) = sum_{j=0}^{size-1} a / (a - j) * r(a - j).

    Proof by induction over the weak triangle inequality [Mironov 2017, Prop. 11], which for 1/p + 1/q = 1 says
    D_alpha(P||R) <= (alpha - 1/p)/(alpha-1) D_{p alpha}(P||Q) + D_{q (alpha - 1/p)}(Q||R). For a group of k take
    p = 1 + (k-1)(alpha-1)/alpha: the first term becomes a/(a-k+1) r(a-k+1) with a = k alpha, and the second is the
    divergence of a group of k-1 at order k alpha/(k-1), whose a is the same. Linear curves rho * order become
    size^2 * rho * order, as in [Bun and Steinke 2016, Prop. 1.9]; all curves come out at most as large as
    3^c r(2^c order), the bound of [Mironov 2017, Prop. 2] for size = 2^c, which needs order >= 2.
    One value costs `size` values of the curve.

    >>> round(group(lambda order: 0.5 * order, 3)(2.0), 12)
    9.0
    """
    size = count("size", size, least=1)
    if size == 1:
        return curve

    def grouped(order: float) -> float:
        if order == math.inf:
            return size * _value(curve, math.inf) * (1.0 + ROUNDING)
        below, above = math.nextafter(size * order, 0.0), math.nextafter(size * order, math.inf)
        terms = (below / (below - j) * _value(curve, math.nextafter(above - j, math.inf)) for j in range(size))
        return math.fsum(terms) * (1.0 + 2 * ROUNDING)

    return grouped


def _order(argument: str, value: object) -> float:
    if value == math.inf:
        return math.inf
    number = real(argument, value, advice="pass an order > 1")
    if number <= 1.0:
        raise InvalidArgument(argument, value, "pass an order > 1")
    return number


def _divergence(argument: str, value: object) -> float:
    return math.inf if value == math.inf else nonnegative(argument, value)


def _limits(orders: tuple[float, float]) -> tuple[float, float]:
    low = real("orders[0]", orders[0], advice="pass a least order >= 1")
    high = _order("orders[1]", orders[1])
    if not 1.0 <= low <= high:
        raise InvalidArgument("orders", orders, "pass two limits with 1 <= least <= largest")
    return low, high


def _value(curve: Callable[[float], float], order: float) -> float:
    value = curve(order)
    if not value >= 0.0:
        raise InvalidArgument(f"curve({order})", value, "the curve must return a number >= 0, or infinity")
    return float(value)


def _delta_of_log(log_delta: float) -> float:
    if log_delta >= 0.0:
        return 1.0
    return 0.0 if log_delta == -math.inf else min(1.0, math.nextafter(math.exp(log_delta) * (1 + ROUNDING), 1.0))


def _least(
    curve: Callable[[float], float], limits: tuple[float, float], objective: Callable[[float, float], float]
) -> float:
    """The smallest objective(order, curve(order)) found; every order is a valid choice, so a miss costs no validity."""
    from scipy.optimize import minimize_scalar

    low = math.log(max(limits[0] - 1.0, _LEAST_EXCESS))
    high = math.log(min(limits[1] - 1.0, _LARGEST_EXCESS))
    seen: dict[float, float] = {}

    def at(t: float) -> float:
        if t not in seen:
            order = min(max(1.0 + math.exp(t), limits[0]), limits[1])
            value = _value(curve, order)
            seen[t] = objective(order, value) if value < math.inf else math.inf
        return seen[t]

    start = min(max(0.0, low), high)
    for towards in (high, low):
        t, best, failures = start, math.inf, 0
        while failures < _PATIENCE:
            found = at(t)
            # infinite values do not count as failures before the first finite one: curves may start at a large order
            failures = 0 if found < best or best == math.inf else failures + 1
            best = min(best, found)
            if t == towards:
                break
            t = min(t + _STEP, high) if towards == high else max(t - _STEP, low)
    grid = sorted(seen)
    minima = []
    for i, t in enumerate(grid):
        left, right = grid[max(i - 1, 0)], grid[min(i + 1, len(grid) - 1)]
        if seen[t] < math.inf and seen[t] <= min(seen[left], seen[right]) and left < right:
            minima.append((seen[t], left, right))
    for _, left, right in sorted(minima)[:_REFINED]:
        minimize_scalar(
            lambda t: min(at(float(t)), 1e100), bounds=(left, right), method="bounded", options={"xatol": 1e-7}
        )
    return min(seen.values())

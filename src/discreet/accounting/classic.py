r"""Classic accountants: composition of (epsilon, delta) guarantees by closed formulas, rounded upward.

A *box* is a mechanism known only by its guarantee (epsilon, delta). All functions here take boxes as two sequences
`epsilons`, `deltas` of equal length, and `counts`, how often each box is used (once, if left out). The neighbouring
relation is that of the boxes: composition keeps it, and boxes under different relations must not be mixed.

These formulas are for teaching, for quick comparisons and for very many different boxes; the optimal composition of
the same boxes is never worse. The theorems hold for adaptively chosen mechanisms whose guarantees are fixed in advance.

Rounding: every epsilon and delta returned is at least the value of its formula in real numbers. Sums and products are
rounded upward exactly; elementary functions are trusted to 2 units in the last place and the result, a sum of positive
terms, is raised by `_MARGIN`, several times what they can add up to.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from discreet.arguments import count as whole
from discreet.arguments import nonnegative, probability, unit_fraction
from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["advanced", "advanced_heterogeneous", "basic", "delta", "epsilon", "split"]

Box = tuple[float, float, int]  # epsilon, delta, count

_ULP = 2.0**-52
_MARGIN = 64 * _ULP
_EXACT_COUNT = 1000  # up to this many boxes, products of probabilities are compared as exact fractions when in doubt
_LARGEST_COUNT = 10**300


def basic(
    epsilons: Sequence[float], deltas: Sequence[float], *, counts: Sequence[int] | None = None
) -> tuple[float, float]:
    r"""Basic composition: the epsilons add up, and the deltas add up.

        (sum_i count_i epsilon_i, min(1, sum_i count_i delta_i))          [Dwork and Roth 2014, Thm 3.16]

    >>> basic([0.5, 1.0], [0.0, 1e-6], counts=[4, 1])
    (3.0, 1e-06)
    """
    boxes = _boxes(epsilons, deltas, counts)
    return _total([(e, k) for e, _, k in boxes]), min(1.0, _total([(d, k) for _, d, k in boxes]))


def advanced(epsilon: float, delta: float, *, count: int, slack: float) -> tuple[float, float]:
    r"""Advanced composition of k equal boxes, as first proved by Dwork, Rothblum and Vadhan.

        (min(k epsilon, epsilon sqrt(2 k ln(1/slack)) + k epsilon (e^epsilon - 1)), k delta + slack)

    [Dwork and Roth 2014, Thm 3.20]; the bound k epsilon is basic composition. `slack` > 0 is the price in delta.

    >>> [round(value, 9) for value in advanced(0.1, 0.0, count=100, slack=1e-6)]
    [6.308230951, 1e-06]
    """
    epsilon, delta = nonnegative("epsilon", epsilon), probability("delta", delta)
    k, slack = _times("count", count), unit_fraction("slack", slack)
    total_delta = min(1.0, _total([(delta, k), (slack, 1)]))
    plain = _total([(epsilon, k)])
    if epsilon > 1.0 or plain == 0.0:  # e^epsilon - 1 > 1: basic composition is the smaller one
        return plain, total_delta
    times = float(k)
    spread = epsilon * math.sqrt(2 * times * -math.log(slack))
    return min(plain, _raised(spread + times * epsilon * math.expm1(epsilon))), total_delta


def advanced_heterogeneous(
    epsilons: Sequence[float], deltas: Sequence[float], *, slack: float, counts: Sequence[int] | None = None
) -> tuple[float, float]:
    r"""Advanced composition of unequal boxes, in the closed form of Kairouz, Oh and Viswanath.

    With m = sum_i epsilon_i tanh(epsilon_i / 2), v = sum_i epsilon_i^2 and the price `slack` in delta,

        epsilon = min{ sum_i epsilon_i,  m + sqrt(2 v ln(1/slack)),  m + sqrt(2 v ln(e + sqrt(v)/slack)) }
        delta   = 1 - (1 - slack) prod_i (1 - delta_i)

    where a box used k times counts k times. slack = 0 is basic composition of the epsilons. [Kairouz et al. 2015,
    Thm 3.5; for equal boxes this is Thm 3.4]

    >>> [round(value, 9) for value in advanced_heterogeneous([0.1], [0.0], slack=1e-6, counts=[100])]
    [5.756105519, 1e-06]
    """
    boxes = _boxes(epsilons, deltas, counts)
    slack = probability("slack", slack)
    return _closed_form(boxes, slack), _leak(boxes, slack)


def epsilon(
    epsilons: Sequence[float], deltas: Sequence[float], *, delta: float, counts: Sequence[int] | None = None
) -> float:
    r"""The smallest epsilon that the closed forms give for the composed boxes at a total `delta`.

    All of `delta` that the boxes leave unused is the best slack, since epsilon falls with it:

        slack = 1 - (1 - delta) / prod_i (1 - delta_i),      epsilon as in `advanced_heterogeneous`.

    Infinite if prod_i (1 - delta_i) < 1 - delta: then some mechanisms with these guarantees do leak everything with a
    probability above `delta`. (More than 1000 boxes that miss or meet it within rounding are treated as missing it.)

    >>> epsilon([1.0, 1.0], [0.0, 0.0], delta=0.0)
    2.0
    """
    boxes = _boxes(epsilons, deltas, counts)
    delta = probability("delta", delta)
    if delta == 1.0:
        return 0.0
    slack = _slack(boxes, delta)
    return math.inf if slack is None else _closed_form(boxes, slack)


def delta(
    epsilons: Sequence[float], deltas: Sequence[float], *, epsilon: float, counts: Sequence[int] | None = None
) -> float:
    r"""The smallest delta that the closed forms give for the composed boxes at a total `epsilon`.

    With m, v as in `advanced_heterogeneous` and t = (epsilon - m)^2 / (2v) for epsilon >= m, the slack that suffices is

        0 if epsilon >= sum_i epsilon_i,  else min{ e^-t,  sqrt(v) / (e^t - e) if t > 1 };   and 1 for epsilon < m.

    >>> delta([0.25], [0.0], epsilon=10.0, counts=[40])
    0.0
    """
    boxes = _boxes(epsilons, deltas, counts)
    epsilon = nonnegative("epsilon", epsilon)
    if epsilon >= _total([(e, k) for e, _, k in boxes]):
        return _leak(boxes, 0.0)
    mean, spread = _moments(boxes)
    excess = epsilon - _raised(mean)
    if excess <= 0.0:
        return 1.0
    # spread is raised and excess was lowered: t is at most its true value, up to the factor taken off here
    t = (excess / _raised(spread)) ** 2 / 2 * (1 - _MARGIN)
    slack = _raised(math.exp(-t))
    if 1.0 < t < 700.0:
        # e^t - e = e (e^{t-1} - 1) without cancellation; t is exact by now, so its rounding does not matter
        slack = min(slack, _raised(spread / (math.e * math.expm1(t - 1.0))))
    return _leak(boxes, min(1.0, slack))


def split(profile: Callable[[float], float], *, count: int, delta: float) -> tuple[float, float, float]:
    r"""The best split of a total `delta` between k equal mechanisms and the slack of advanced composition.

    `profile` maps any delta_0 in (0, 1) to an epsilon_0 such that each mechanism is (epsilon_0, delta_0)-DP. Searched
    is the delta_0 that minimises `epsilon([epsilon_0], [delta_0], delta=delta, counts=[k])`; delta_0 = delta / k with
    no slack, basic composition, is among the candidates. Every delta_0 gives a valid bound, so the search need not be
    exact. Returns (epsilon, delta_0, slack).
    """
    k, delta = _times("count", whole("count", count, least=1)), unit_fraction("delta", delta)
    whole_share = delta / k
    while _total([(whole_share, k)]) > delta:
        whole_share = math.nextafter(whole_share, 0.0)

    def candidate(log_odds: float) -> tuple[float, float, float]:
        share = whole_share / (1.0 + math.exp(-log_odds))
        if share == 0.0:
            return math.inf, share, 0.0
        boxes = [(_profile_value(profile, share), share, k)]
        slack = _slack(boxes, delta) or 0.0
        return _closed_form(boxes, slack), share, slack

    basic_epsilon = _total([(_profile_value(profile, whole_share), k)])
    best = (basic_epsilon, whole_share, 0.0)
    centre, width = 0.0, 30.0
    while width > 1e-4:
        steps = [centre + width * (i / 8.0 - 1.0) for i in range(17)]
        tried = [candidate(step) for step in steps]
        winner = min(range(17), key=lambda i: tried[i][0])
        best = min(best, tried[winner], key=lambda result: result[0])
        centre, width = steps[winner], width / 4.0
    return best


def _profile_value(profile: Callable[[float], float], share: float) -> float:
    value = profile(share)
    return math.inf if value == math.inf else nonnegative(f"profile({share})", value)


def _boxes(epsilons: Sequence[float], deltas: Sequence[float], counts: Sequence[int] | None) -> list[Box]:
    if len(deltas) != len(epsilons):
        raise InvalidArgument("deltas", deltas, f"pass one delta for each of the {len(epsilons)} epsilons")
    if counts is not None and len(counts) != len(epsilons):
        raise InvalidArgument("counts", counts, f"pass one count for each of the {len(epsilons)} epsilons")
    return [
        (
            nonnegative(f"epsilons[{i}]", epsilons[i]),
            probability(f"deltas[{i}]", deltas[i]),
            1 if counts is None else _times(f"counts[{i}]", counts[i]),
        )
        for i in range(len(epsilons))
    ]


def _times(argument: str, value: object) -> int:
    times = whole(argument, value)
    if times > _LARGEST_COUNT:
        raise InvalidArgument(argument, value, "pass a count of at most 10^300")
    return times


def _raised(value: float) -> float:
    """A value known up to a relative error of `_MARGIN` / 2, lifted above the true one; 0 becomes 5e-324."""
    return math.nextafter(value * (1 + _MARGIN), math.inf)


def ceiling(exact: Fraction) -> float:
    """The smallest float that is not below an exact fraction; -ceiling(-exact) is the largest that is not above it."""
    try:
        nearest = float(exact)
    except OverflowError:
        return math.inf if exact > 0 else math.nextafter(-math.inf, 0.0)
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)


def _total(terms: list[tuple[float, int]]) -> float:
    """Sum of value * count, rounded upward; values may be infinite where the count is positive."""
    used = [(value, k) for value, k in terms if k > 0]
    if any(value == math.inf for value, _ in used):
        return math.inf
    values = [value if k == 1 else ceiling(Fraction(value) * k) for value, k in used]
    try:
        nearest = math.fsum(values)  # correctly rounded, so one more fsum gives the sign of what was rounded away
    except OverflowError:
        return math.inf
    if nearest == math.inf:
        return math.inf
    return math.nextafter(nearest, math.inf) if math.fsum([*values, -nearest]) > 0.0 else nearest


def _moments(boxes: list[Box]) -> tuple[float, float]:
    """sum epsilon tanh(epsilon / 2) and sqrt(sum epsilon^2), each to a few units in the last place."""
    mean = math.fsum(k * e * math.tanh(e / 2) for e, _, k in boxes)
    return mean, math.hypot(*(math.sqrt(k) * e for e, _, k in boxes))


def _closed_form(boxes: list[Box], slack: float) -> float:
    plain = _total([(e, k) for e, _, k in boxes])
    if slack == 0.0 or plain in (0.0, math.inf):
        return plain
    mean, spread = _moments(boxes)
    price = -math.log(slack)
    if spread > 0.0:
        # ln(e + spread/slack) = ln(e^1 + e^ratio), written so that spread/slack cannot overflow
        ratio = math.log(spread) + price
        price = min(price, max(1.0, ratio) + math.log1p(math.exp(-abs(ratio - 1.0))))
    return min(plain, _raised(mean + spread * math.sqrt(2 * price)))


def _log_kept(boxes: list[Box]) -> float:
    """ln prod_i (1 - delta_i), to a few units in the last place."""
    if any(d == 1.0 and k > 0 for _, d, k in boxes):
        return -math.inf
    return math.fsum(k * math.log1p(-d) for _, d, k in boxes if d < 1.0)


def _leak(boxes: list[Box], slack: float) -> float:
    """1 - (1 - slack) prod_i (1 - delta_i), rounded upward."""
    alone = [(d, k) for d, k in [(slack, 1), *((d, k) for _, d, k in boxes)] if d > 0.0 and k > 0]
    if not alone:
        return 0.0
    if alone[1:] == [] and alone[0][1] == 1:
        return alone[0][0]
    if slack == 1.0:
        return 1.0
    return min(1.0, _raised(-math.expm1(_log_kept(boxes) + math.log1p(-slack))))


def _slack(boxes: list[Box], delta: float) -> float | None:
    """1 - (1 - delta) / prod_i (1 - delta_i), rounded downward; None if it is negative."""
    kept, wanted = _log_kept(boxes), math.log1p(-delta)
    if kept == 0.0:
        return delta
    room = kept - wanted + 8 * _ULP * (kept + wanted)  # both logarithms are <= 0
    if room > 0.0:
        return -math.expm1(-room) * (1 - _MARGIN)
    return 0.0 if _is_covered(boxes, delta) else None


def _is_covered(boxes: list[Box], delta: float) -> bool:
    """Whether prod_i (1 - delta_i) >= 1 - delta: decided exactly, or by sum_i delta_i <= delta if boxes are many."""
    if _total([(d, k) for _, d, k in boxes]) <= delta:
        return True
    if sum(k for _, d, k in boxes if d > 0.0) > _EXACT_COUNT:
        return False
    kept = math.prod((1 - Fraction(d)) ** k for _, d, k in boxes if d > 0.0)
    return kept >= 1 - Fraction(delta)

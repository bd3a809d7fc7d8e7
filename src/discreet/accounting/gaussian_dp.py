r"""The Gaussian accountant: exact mu-Gaussian differential privacy, with certified brackets.

A mechanism is mu-GDP if telling neighbouring data apart is at least as hard as telling N(mu, 1) from N(0, 1)
[Dong et al. 2022, Def. 2.6]; the Gaussian mechanism with noise multiplier sigma has mu = 1/sigma, attained. Then

    delta(epsilon) = Phi(-epsilon/mu + mu/2) - e^epsilon Phi(-epsilon/mu - mu/2)       [Dong et al. 2022, Cor. 2.13]

is the whole privacy profile, and mu composes as the root of the sum of squares [Dong et al. 2022, Cor. 3.3]. The
neighbouring relation is that under which mu was found.

Certificates: `divergence.gaussian` carries the exponent in twice the working precision and never subtracts nearly equal
numbers, so delta has a relative error of a few units of 1e-15; measured against 100 digits it is below 5e-15 for mu
between 1e-12 and 1e6. Brackets are wider by `_MARGIN` = 5.7e-14 on each side. An epsilon is bracketed by checking, at
both ends, that the bracket of delta lies on the right side of the target.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from discreet.accounting.classic import ceiling
from discreet.arguments import count, nonnegative, positive, probability
from discreet.divergence.gaussian import hockey_stick_gaussian, log_hockey_stick_gaussian
from discreet.divergence.normal import mills_ratio, score
from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["clt_estimate", "compose", "delta_bounds", "epsilon_bounds", "largest_mu", "mu_of_pure"]

_MARGIN = 2.0**-44
_LEAST_NORMAL = 1e-300  # below it delta loses digits to underflow and is taken from its logarithm
_UNDERFLOW = 40.0  # delta <= P(Z > a) < 5e-324 for a > 39
_LARGEST_MU = 1e6
_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)
_SQRT_HALF = math.sqrt(0.5)
_SQRT_HALF_PI = math.sqrt(0.5 * math.pi)


def delta_bounds(mu: float, epsilon: float) -> tuple[float, float]:
    """Certified (lower, upper) delta of mu-GDP at `epsilon`, of relative width 1.2e-13 down to delta = 1e-300.

    Below that the relative width is 1e-10 plus one step of the subnormal numbers, so the lower end may be 0 and the
    upper end never is. For mu > 1e6 the lower end is that of mu = 1e6 and the upper end is 1.

    >>> [round(end, 12) for end in delta_bounds(1.0, 1.0)]
    [0.126936737507, 0.126936737507]
    """
    mu, epsilon = nonnegative("mu", mu), nonnegative("epsilon", epsilon)
    if mu > _LARGEST_MU:
        return delta_bounds(_LARGEST_MU, epsilon)[0], 1.0
    if mu == 0.0:
        return 0.0, 0.0
    if epsilon / mu - mu / 2 > _UNDERFLOW:
        return 0.0, math.ulp(0.0)
    value = float(hockey_stick_gaussian(epsilon, mu=mu))
    if value >= _LEAST_NORMAL:
        return value * (1 - _MARGIN), min(1.0, value * (1 + _MARGIN))
    log_delta = float(log_hockey_stick_gaussian(epsilon, mu=mu))
    pad = _MARGIN * (1 - log_delta)
    return math.nextafter(math.exp(log_delta - pad), 0.0), math.nextafter(math.exp(log_delta + pad), 1.0)


def epsilon_bounds(mu: float, delta: float) -> tuple[float, float]:
    """Certified (lower, upper) epsilon of mu-GDP at `delta`.

    The relative width is below 1e-10 for 1e-300 <= delta <= 1/2 as long as epsilon >= mu/100; closer to epsilon = 0 or
    delta = 1 one determines the other badly. Infinite for delta = 0 < mu.

    >>> [round(end, 12) for end in epsilon_bounds(1.0, 1e-5)]
    [4.377178095681, 4.377178095681]
    """
    mu, delta = nonnegative("mu", mu), probability("delta", delta)
    if mu == 0.0 or delta == 1.0 or delta >= delta_bounds(mu, 0.0)[1]:
        return 0.0, 0.0
    if delta == 0.0:
        return math.inf, math.inf
    if mu > _LARGEST_MU:
        return epsilon_bounds(_LARGEST_MU, delta)[0], _chernoff(mu, delta)
    root, slope = _root(mu, delta)
    step = 1.25 * _MARGIN / max(slope, 1e-300) + math.ulp(root)
    lower = upper = root
    while delta_bounds(mu, upper)[1] > delta:
        upper, step = upper + step, 2 * step
    step = 1.25 * _MARGIN / max(slope, 1e-300) + math.ulp(root)
    while lower > 0.0 and delta_bounds(mu, lower)[0] < delta:
        lower, step = max(0.0, lower - step), 2 * step
    return lower, upper


@lru_cache(maxsize=4096)
def largest_mu(epsilon: float, delta: float) -> float:
    """The largest mu that is certainly (epsilon, delta)-DP, to a relative 1e-13; for 0 < delta < 1.

    >>> round(1 / largest_mu(1.0, 1e-6), 6)
    4.224679
    """
    low, below = 0.0, -math.inf
    high, above = 1.0, _excess(1.0, epsilon, delta)
    while above <= 0:
        low, below = high, above
        high, above = 2 * high, _excess(2 * high, epsilon, delta)
    # Whatever point is tried, `low` keeps the guarantee and `high` does not. It is where the line through both ends is
    # 0, an end that stays twice counting half [Dowell and Jarratt 1971], or the middle where that does not get on.
    stays = ""
    for turn in itertools.count():
        if high - low <= 1e-13 * high or math.nextafter(low, high) == high:
            return low
        share = 0.5 if below in (-math.inf, above) or turn % 5 == 4 else below / (below - above)
        least = 0.4e-13 * high
        middle = min(max(low + share * (high - low), low + least), high - least)
        value = _excess(middle, epsilon, delta)
        if value <= 0:
            low, below = middle, value
            above, stays = (above / 2 if stays == "high" else above), "high"
        else:
            high, above = middle, value
            below, stays = (below / 2 if stays == "low" else below), "low"
    raise AssertionError  # pragma: no cover - the count has no end


def _excess(mu: float, epsilon: float, delta: float) -> float:
    """ln of the certified delta over the one allowed; at most 0 exactly where it is allowed."""
    found = delta_bounds(mu, epsilon)[1]
    size = abs(math.log(found) - math.log(delta))
    return -size if found <= delta else max(size, 1e-300)


def mu_of_pure(epsilon: float) -> float:
    r"""The smallest mu for which every epsilon-DP mechanism is mu-GDP, rounded upward by about 1e-13.

    The trade-off function of randomized response has its corner at 1/(1 + e^epsilon), and mu-GDP passes through it if
    P(Z > mu/2) = 1/(1 + e^epsilon), or erf(mu / sqrt 8) = tanh(epsilon / 2), which keeps the digits of a small epsilon.

    >>> round(mu_of_pure(1.0), 9)
    1.232035385
    """
    epsilon = nonnegative("epsilon", epsilon)
    if epsilon > 1:
        half = score(-epsilon - math.log1p(math.exp(-epsilon)))
    else:
        # Newton's steps on the concave erf, from the left: none passes the answer, and each doubles the digits
        target = math.tanh(epsilon / 2)
        half = target * _SQRT_HALF_PI
        for _ in range(6):
            gap = target - math.erf(half * _SQRT_HALF)
            half += gap * _SQRT_HALF_PI * math.exp(0.5 * half * half)
    return math.nextafter(2 * half * (1 + 1e-13), math.inf) if epsilon else 0.0


def compose(mus: Sequence[float], *, counts: Sequence[int] | None = None) -> tuple[float, float]:
    """(lower, upper) of sqrt(sum count mu^2), the mu of a composition, rounded outward by at most one step.

    Exact for adaptive compositions of mechanisms with mu fixed in advance. [Dong et al. 2022, Cor. 3.3]

    >>> compose([3.0, 4.0])
    (5.0, 5.0)
    """
    if counts is not None and len(counts) != len(mus):
        raise InvalidArgument("counts", counts, f"pass one count for each of the {len(mus)} values of mu")
    times = [1] * len(mus) if counts is None else [count(f"counts[{i}]", k) for i, k in enumerate(counts)]
    total = sum((k * Fraction(nonnegative(f"mus[{i}]", mus[i])) ** 2 for i, k in enumerate(times)), Fraction(0))
    # floor of the root in units of 2^-shift, of at least 64 bits; the denominator is a power of 2
    shift = max(0, 64 + (total.denominator.bit_length() - total.numerator.bit_length()) // 2 + 1)
    scaled = (total.numerator << 2 * shift) // total.denominator
    floor = math.isqrt(scaled)
    exact = floor * floor * total.denominator == total.numerator << 2 * shift
    return -ceiling(Fraction(-floor, 1 << shift)), ceiling(Fraction(floor + (not exact), 1 << shift))


def clt_estimate(rate: float, noise_multiplier: float, steps: int) -> float:
    r"""An estimate, not a bound, of mu for many steps of the Poisson-sampled Gaussian mechanism.

        mu ~ rate sqrt(steps (e^{1/noise_multiplier^2} - 1))

    The central limit of the trade-off functions as steps grows and rate sqrt(steps) stays constant [Bu et al. 2020,
    Sec. 3]. At finite steps the true epsilon is often larger, by up to a factor of two: never report it as a guarantee.
    Infinite where it exceeds the floating-point range.

    >>> round(clt_estimate(256 / 60_000, 1.1, 14_062), 4)
    0.5736
    """
    rate, sigma = probability("rate", rate), positive("noise_multiplier", noise_multiplier)
    steps = count("steps", steps)
    if rate == 0.0 or steps == 0:
        return 0.0
    exponent = (1.0 / sigma) ** 2 if sigma > 1e-100 else math.inf
    return math.inf if exponent > 700.0 else rate * math.sqrt(steps * math.expm1(exponent))


def _chernoff(mu: float, delta: float) -> float:
    """mu^2/2 + mu sqrt(2 ln(1/delta)) >= epsilon(delta), rounded upward: delta(epsilon) <= P(Z > a) <= e^{-a^2/2}."""
    return (mu * mu / 2 + mu * math.sqrt(-2 * math.log(delta))) * (1 + _MARGIN)


def _root(mu: float, delta: float) -> tuple[float, float]:
    """epsilon(delta) to about the accuracy of delta, and -d ln delta / d epsilon there, by safeguarded Newton steps."""
    low, high = 0.0, _chernoff(mu, delta)
    log_target = math.log(delta)
    epsilon, slope = high, 1.0
    for _ in range(100):
        log_delta = float(log_hockey_stick_gaussian(epsilon, mu=mu))
        low, high = (epsilon, high) if log_delta > log_target else (low, epsilon)
        a, b = epsilon / mu - mu / 2, epsilon / mu + mu / 2
        # d delta / d epsilon = -e^epsilon P(Z > b) = -density(a) M(b)
        slope = math.exp(math.log(mills_ratio(b)) - a * a / 2 - _LOG_SQRT_2PI - log_delta)
        step = (log_delta - log_target) / slope if slope > 0.0 else math.inf
        following = epsilon + step
        if not low < following < high:
            following = 0.5 * (low + high)
        if abs(following - epsilon) <= 4 * math.ulp(epsilon) or abs(step) * slope < _MARGIN / 8:
            break
        epsilon = following
    return epsilon, slope

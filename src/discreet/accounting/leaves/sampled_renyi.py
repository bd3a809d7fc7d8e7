r"""Poisson sampling of a mechanism that is known only by a Rényi curve r, add-remove adjacency.

With w = dP/dQ and the sampled pair w' = 1 - q + q w against Q [Zhu and Wang 2019; Mironov et al. 2019]:

    forward, whole orders a:   E_Q[w'^a] = sum_k C(a, k) (1-q)^{a-k} q^k E_Q[w^k],    E_Q[w^k] <= e^{(k-1) r(k)},

and ln E_Q[w'^a] is convex in a, which covers the orders between. Backward, E_Q[w'^{1-a}]: the third derivative of
w'^{1-a} in w is negative, so (w'^{1-a} - 1 + (a-1) q (w-1)) / (w-1)^2 is largest at w = 0, and as E_Q[w - 1] = 0 and
E_Q[(w-1)^2] <= e^{r(2)} - 1,

    E_Q[w'^{1-a}] <= 1 + ((1-q)^{1-a} - 1 - (a-1) q) (e^{r(2)} - 1);

and 1 - q + q w >= w^q gives D_a <= q r(1 + q (a-1)). Both hold, so the smaller counts; nothing exceeds r(a).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from discreet.accounting.leaves.of_sample import OfSample

if TYPE_CHECKING:
    from discreet.accounting.pair import Pair

__all__ = ["SampledRenyi"]

_LARGEST_ORDER = 4096
"""Beyond this order the curve of the base is given."""


@dataclass(frozen=True)
class SampledRenyi(OfSample):
    """A leaf without a dominating pair, each record taken with probability `rate`."""

    kind: ClassVar[str] = "sampled_renyi"
    scheme: ClassVar[str] = "poisson"
    can_be_sampled: ClassVar[bool] = False

    def pair(self) -> None:
        return None

    def witness(self) -> Pair | None:
        base = self.base.witness()
        return None if base is None else base.sampled(self.rate)

    def rdp(self, order: float) -> float:
        plain = self.base.rdp(order)
        if order > _LARGEST_ORDER:
            return plain
        return min(plain, max(self._forward(order), self._backward(order)))

    def orders(self) -> tuple[float, ...]:
        """Those of the base, and the whole orders up to them, at which its moments are known."""
        given = self.base.orders()
        return tuple(sorted({*given, *(float(whole) for order in given if (whole := math.floor(order)) > 1)}))

    def _forward(self, order: float) -> float:
        low = math.floor(order)
        at_low = self._log_moment(low)
        if low == order:
            return at_low / (order - 1) * (1 + 1e-15)
        share = order - low  # ln E w'^a is convex in a, and 0 at a = 1
        chord = (1 - share) * at_low + share * self._log_moment(low + 1)
        return chord / (order - 1) * (1 + 4e-15)

    def _log_moment(self, order: int) -> float:
        """ln of an upper bound of E_Q[w'^order] for a whole order; the sum over k >= 2 is that of the excess over 1."""
        if order <= 1:
            return 0.0
        log_q, log_rest = math.log(self.rate), math.log1p(-self.rate)
        # sum_k C(a,k) (1-q)^{a-k} q^k = 1, so only E_Q[w^k] - 1 counts, which is 0 for k = 0 and 1
        log_terms = []
        for k in range(2, order + 1):
            exponent = (k - 1) * self.base.rdp(k)
            if exponent == math.inf:
                return math.inf
            if exponent == 0:
                continue
            grown = exponent + math.log(-math.expm1(-exponent))
            ways = math.lgamma(order + 1) - math.lgamma(k + 1) - math.lgamma(order - k + 1)
            log_terms.append(ways + (order - k) * log_rest + k * log_q + grown)
        if not log_terms:
            return 0.0
        top = max(log_terms)
        total = top + math.log(math.fsum(math.exp(term - top) for term in log_terms))
        # logarithms of up to 1e5 are rounded at 1e-11, terms of binomial coefficients included
        total += 1e-11 + 1e-14 * (abs(top) + order * (abs(log_q) + 1))
        return math.log1p(math.exp(total)) * (1 + 1e-15) if total < 700 else total + 1e-300

    def _backward(self, order: float) -> float:
        q = self.rate
        slow = q * self.base.rdp(math.nextafter(1 + q * (order - 1), math.inf) + 1e-15) * (1 + 1e-15)
        second = self.base.rdp(2.0)
        exponent = -(order - 1) * math.log1p(-q)
        if second > 300 or exponent > 300:
            return slow
        if (order + 1) * q < 1e-3:  # the difference below would cancel; Taylor's remainder is as good
            most = 0.5 * order * (order - 1) * q * q * math.exp(-(order + 1) * math.log1p(-q))
        else:
            most = math.expm1(exponent) - (order - 1) * q
        excess = most * math.expm1(second) * (1 + 1e-11)
        return min(slow, math.log1p(excess) / (order - 1) * (1 + 1e-14))

    def pure_epsilon(self) -> float:
        return self.base.pure_epsilon()

    def zcdp(self) -> float:
        return self.base.zcdp()

    def gdp(self) -> float:
        return self.base.gdp()

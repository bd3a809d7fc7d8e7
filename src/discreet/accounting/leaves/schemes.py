"""Samples that are not Poisson samples under add-remove, each with its own pair and its own adjacency."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from discreet.accounting.leaves.guarantees import Pure
from discreet.accounting.leaves.leaf import Leaf, check_fields, leaf_from_fields
from discreet.accounting.leaves.noise import Gaussian
from discreet.accounting.leaves.of_sample import OfSample
from discreet.accounting.leaves.together import Together
from discreet.accounting.pair import Direction
from discreet.accounting.pairs.balls import epoch_above, epoch_below
from discreet.accounting.pairs.corners import corners_of
from discreet.accounting.pairs.dots import table_through
from discreet.accounting.pairs.gaussian import GaussianPair
from discreet.accounting.pairs.mirrored import profile_of, without_replacement
from discreet.accounting.pairs.triangle import fixed_size_below, three_outcomes
from discreet.accounting.pairs.two_sided import TwoSidedGaussianPair
from discreet.accounting.profile_moments import moments_of
from discreet.accounting.sampled_moments import (
    MOST_ORDER,
    between,
    log_epoch_moments,
    log_replaced_moment,
    whole_exponents,
)
from discreet.errors import InvalidArgument, StorageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from discreet.accounting.pair import Pair, Reals
    from discreet.accounting.profile_moments import ProfileMoments

__all__ = ["BallsInBins", "Replaced", "WithoutReplacement"]


@dataclass(frozen=True)
class WithoutReplacement(OfSample):
    """A sample of fixed size in which one record is replaced; `base` speaks of replaced records as well."""

    kind: ClassVar[str] = "without_replacement"
    scheme: ClassVar[str] = "without_replacement"
    can_be_sampled: ClassVar[bool] = False
    curve_adds: ClassVar[bool] = False

    def pair(self) -> Pair | None:
        return _without_replacement(self.base, self.rate)

    def is_tight(self) -> bool:
        """Attained where the outcome without the record is as far from one side as from the other, which may not be."""
        return False

    def witness(self) -> Pair | None:
        """A mechanism for which the replaced record matters and its absence looks like its replacement, or one with
        three records that are all equally far apart."""
        return _fixed_size_witness(self.base, self.rate, many=False)

    def witness_of(self, times: int) -> Pair | None:
        return _fixed_size_witness(self.base, self.rate, many=times >= _MANY)

    def rdp(self, order: float) -> float:
        """That of the pair, or by expansion; never above the base's, as a divergence of mixtures is quasi-convex."""
        return _best_rdp(self, order, self.base, self.base)

    def pure_epsilon(self) -> float:
        return _grown(self.base.pure_epsilon(), self.rate) * (1 + 1e-15)

    def zcdp(self) -> float:
        return min(self.base.zcdp(), super().zcdp())

    def gdp(self) -> float:
        return min(self.base.gdp(), super().gdp())


_MANY = 10_000


@lru_cache(maxsize=64)
def _fixed_size_witness(base: Leaf, rate: float, *, many: bool) -> Pair | None:
    if isinstance(base, Pure) and math.log(2.0) < base.epsilon < 600:
        return three_outcomes(base.epsilon, rate)
    pair = base.witness()
    if pair is None:
        return None
    # many steps at a small rate reveal by their variance, which the triangle has more of; few by their largest losses
    if many and isinstance(pair, GaussianPair) and pair.mu < 5 and rate * math.exp(pair.mu**2) < 0.03:
        apart = fixed_size_below(pair.mu, rate)
        if apart is not None:
            return apart
    return pair.sampled(rate)


@lru_cache(maxsize=64)
def _without_replacement(base: Leaf, rate: float) -> Pair | None:
    pair = base.pair()
    return None if pair is None else without_replacement(pair, rate)


def _best_rdp(leaf: WithoutReplacement | Replaced, order: float, one: Leaf, two: Leaf) -> float:
    """The smallest of three bounds: `two` itself, the profile of the leaf's pair, and an expansion in the rate.

    `one` bounds a sample with the record against one without it, `two` a sample with a replaced record.
    """

    def known(other: float) -> float:
        plain = two.rdp(other)
        if other > MOST_ORDER or not plain < math.inf:
            return plain
        first, second = (whole_exponents(side, math.ceil(other)) for side in (one, two))
        return min(plain, between(other, lambda whole: log_replaced_moment(whole, leaf.rate, first, second)))

    moments = _moments(leaf)
    if moments is None:
        return known(order)
    found = min(two.rdp(order), _of_moments(moments, order, known, known))
    return found if moments.is_bounded else min(found, known(order))


def _of_moments(
    moments: ProfileMoments, order: float, forward: Callable[[float], float], backward: Callable[[float], float]
) -> float:
    """The larger of both directions, each with what is known of it besides."""
    found = moments.rdp(order, Direction.FORWARD, forward)
    return found if moments.is_symmetric else max(found, moments.rdp(order, Direction.BACKWARD, backward))


@lru_cache(maxsize=64)
def _moments(leaf: Leaf) -> ProfileMoments | None:
    pair = leaf.pair()
    return None if pair is None else moments_of(pair)


@dataclass(frozen=True)
class Replaced(OfSample):
    r"""A Poisson sample when one record is replaced; `base` and `twice` speak of one and of two added records.

    Gaussian noise has its own pair. In general, with D_1 and D_2 the larger profiles of `base` and `twice`,
    gamma' = 1 + q (gamma - 1) and b = gamma' / gamma,

        E_{gamma'} <= q ((1 - b) D_1(ln gamma) + b D_2(ln gamma))

    in both orders [Balle et al. 2018, Thm 2]: with the record in the sample, the other data set either has its own
    there, two changes away, or none, one change away.
    """

    kind: ClassVar[str] = "replaced"
    scheme: ClassVar[str] = "poisson"
    can_be_sampled: ClassVar[bool] = False
    curve_adds: ClassVar[bool] = False
    twice: Leaf

    def pair(self) -> Pair | None:
        return _replaced(self.base, self.twice, self.rate)

    def is_tight(self) -> bool:
        return _is_noise(self.base)

    def rdp(self, order: float) -> float:
        """That of the pair, or by expansion; never above that of `twice`."""
        return _best_rdp(self, order, self.base, self.twice)

    def witness(self) -> Pair | None:
        """Gaussian noise, if allowed, attains its pair. Otherwise the new record may be one that changes nothing."""
        if self.is_tight():
            return self.pair()
        base = self.base.witness()
        if isinstance(base, GaussianPair):
            return TwoSidedGaussianPair(1 / base.mu * (1 + 2.0**-51), self.rate)  # no less noise than allowed
        return None if base is None else base.sampled(self.rate)

    def pure_epsilon(self) -> float:
        return _largest_loss(self.base.pure_epsilon(), self.rate)

    def zcdp(self) -> float:
        return min(self.twice.zcdp(), super().zcdp())

    def gdp(self) -> float:
        return min(self.twice.gdp(), super().gdp())

    def fields(self) -> dict[str, Any]:
        return {**super().fields(), "twice": {"kind": self.twice.kind, **self.twice.fields()}}

    @classmethod
    def from_fields(cls, values: dict[str, Any]) -> Leaf:
        check_fields("a 'replaced' entry", values, ["base", "rate", "twice"])
        leaves = []
        for name in ("base", "twice"):
            if not isinstance(values[name], dict):
                raise StorageError(f"the field '{name}' of a 'replaced' entry must be a part: an object with a 'kind'.")
            inner = dict(values[name])
            leaves.append(leaf_from_fields(inner.pop("kind", None), inner))
        return cls(leaves[0], values["rate"], leaves[1])

    def describe(self) -> str:
        return f"{self.base.describe()}.sampled(rate={self.rate:.6g}, adjacency='replace-one')"


@lru_cache(maxsize=64)
def _replaced(base: Leaf, twice: Leaf, rate: float) -> Pair | None:
    one, two = base.pair(), twice.pair()
    if one is None or two is None:
        return None
    if _is_noise(base):
        assert isinstance(one, GaussianPair)
        return TwoSidedGaussianPair(1 / one.mu * (1 - 2.0**-51), rate)  # two roundings, both paid for
    largest = _largest_loss(base.pure_epsilon(), rate)
    epsilons = np.union1d(corners_of(one), corners_of(two))
    values = np.array([(profile_of(one, float(e)), profile_of(two, float(e))) for e in epsilons])
    grown = np.expm1(np.minimum(epsilons, 600.0))
    share = (1 + rate * grown) / (1 + grown)  # gamma' / gamma
    deltas = rate * ((1 - share) * values[:, 0] + share * values[:, 1]) * (1 + 1e-14)
    moved = np.log1p(rate * grown) * (1 + 1e-15)
    if largest < moved[-1]:  # no loss exceeds it
        inside = moved < largest
        moved, deltas = np.append(moved[inside], largest), np.append(deltas[inside], 0.0)
    return table_through(moved, deltas)


def _is_noise(leaf: Leaf) -> bool:
    """Gaussian noise itself, once or several times. A mu-GDP guarantee is not enough: it knows two laws, not three."""
    return isinstance(leaf, Gaussian) or (
        isinstance(leaf, Together) and all(isinstance(part, Gaussian) for part, _ in leaf.parts)
    )


def _largest_loss(epsilon: float, rate: float) -> float:
    """Both laws with a record are within e^eps of the one without it: ln((1 - q + q e^eps) / (1 - q + q e^-eps))."""
    return (_grown(epsilon, rate) - math.log1p(rate * math.expm1(-epsilon))) * (1 + 1e-14)


def _grown(epsilon: float, rate: float) -> float:
    """ln(1 - q + q e^eps), for any eps >= 0."""
    return math.log1p(rate * math.expm1(epsilon)) if epsilon < 700 else epsilon + math.log(rate) + 1e-300


@dataclass(frozen=True)
class BallsInBins(OfSample):
    """One epoch: every record in one of 1/rate batches, chosen uniformly and independently; add-remove."""

    kind: ClassVar[str] = "balls_in_bins"
    scheme: ClassVar[str] = "balls_in_bins"
    curve_adds: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        batches = round(1 / self.rate)
        if abs(self.rate * batches - 1) > 1e-9 or batches > _MOST_BATCHES:
            raise InvalidArgument(
                "rate", self.rate, f"pass 1 / (number of batches in an epoch), up to {_MOST_BATCHES} of them"
            )
        object.__setattr__(self, "rate", 1 / batches)

    @property
    def batches(self) -> int:
        return round(1 / self.rate)

    def pair(self) -> Pair | None:
        return _epoch(self.base, self.batches, up=True)

    def is_tight(self) -> bool:
        return False

    def witness(self) -> Pair | None:
        return _epoch(self.base, self.batches, up=False)

    def rdp(self, order: float) -> float:
        """That of the pair, or from moments of a mean of ratios; never above the base's, by quasi-convexity."""
        plain = self.base.rdp(order)
        moments = _moments(self)
        if moments is not None:
            plain = min(plain, _of_moments(moments, order, self._forward, self._backward))
            if moments.is_bounded:
                return plain
        return min(plain, max(self._forward(order), self._backward(order)))

    def _forward(self, order: float) -> float:
        plain = self.base.rdp(order)
        if order > _MOST_ORDER or not plain < math.inf:
            return plain
        return min(plain, between(order, lambda whole: float(_epoch_moments(self.base, self.batches)[whole])))

    def _backward(self, order: float) -> float:
        return self.base.rdp(math.nextafter(1 + (order - 1) / self.batches, math.inf))

    def pure_epsilon(self) -> float:
        """The mean of ratios within [e^-eps, e^eps], T - 1 of them of others, is no further from 1."""
        return self.base.pure_epsilon()

    def zcdp(self) -> float:
        return self.base.zcdp()

    def gdp(self) -> float:
        return self.base.gdp()


_MOST_BATCHES = 1_000_000
_MOST_ORDER = 128
"""Moments of an epoch are computed together, in time that grows with the square of this."""


@lru_cache(maxsize=32)
def _epoch(base: Leaf, batches: int, *, up: bool) -> Pair | None:
    pair = base.pair() if up else base.witness()
    if pair is None:
        return None
    return epoch_above(pair, batches) if up else epoch_below(pair, batches)


@lru_cache(maxsize=32)
def _epoch_moments(base: Leaf, batches: int) -> Reals:
    return log_epoch_moments(batches, whole_exponents(base, _MOST_ORDER))

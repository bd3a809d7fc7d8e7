"""Mechanisms that answer with a choice: randomized response and the exponential mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from discreet.accounting.gaussian_dp import mu_of_pure
from discreet.accounting.leaves.leaf import Leaf, finite_epsilon
from discreet.accounting.pair import Lattice
from discreet.accounting.pairs.atoms import AtomsPair
from discreet.accounting.pairs.window import WindowPair
from discreet.arguments import count
from discreet.divergence.normal import scores

if TYPE_CHECKING:
    from discreet.accounting.pair import Pair

__all__ = ["ExponentialMechanism", "RandomizedResponse", "response_pair"]

_CELLS, _ROUNDS = 24, 3  # of `_mu_of_bounded_range`: each cell is divided into so many, so often


def response_pair(epsilon: float, options: int = 2, delta: float = 0.0) -> AtomsPair:
    """Truth with probability e^eps / (e^eps + k - 1), and with probability delta a leak of the input."""
    total = 1.0 + (options - 1) * math.exp(-epsilon)  # e^eps + k - 1, divided by e^eps
    scale = (1.0 - delta) / total
    low, rest, high = scale, (options - 2) * math.exp(-epsilon) * scale, math.exp(-epsilon) * scale
    if options == 2:
        loss, mass, lattice = [-epsilon, epsilon], [low, high], Lattice(-epsilon, 2 * epsilon)
    else:
        loss, mass, lattice = [-epsilon, 0.0, epsilon], [low, rest, high], Lattice(-epsilon, epsilon)
    return AtomsPair(
        np.array(loss),
        np.array(mass),
        p_missing=delta,
        q_missing=delta,
        symmetric=True,
        lattice=lattice,
        position_error=0.0,
    )


@dataclass(frozen=True)
class RandomizedResponse(Leaf):
    """Tells the truth among `options` answers with probability e^eps / (e^eps + options - 1); exact pair."""

    kind: ClassVar[str] = "randomized_response"
    epsilon: float
    options: int = 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", finite_epsilon(self.epsilon))
        object.__setattr__(self, "options", count("options", self.options, least=2))

    def pair(self) -> Pair:
        return response_pair(self.epsilon, self.options)


@dataclass(frozen=True)
class ExponentialMechanism(Leaf):
    """The exponential mechanism with log-probabilities of range `epsilon` [Dong et al. 2020].

    Weights e^{epsilon u / (2 D)} for a score of sensitivity D (or e^{epsilon u / D} if it is monotone) are
    epsilon-DP *and* of bounded range epsilon, which composes better than epsilon-DP alone.
    """

    kind: ClassVar[str] = "exponential_mechanism"
    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", finite_epsilon(self.epsilon))

    def pair(self) -> Pair:
        return WindowPair(self.epsilon, with_atoms=False)

    def grouped(self, size: int) -> Leaf:
        """Ranges add up along a path of neighbours."""
        return ExponentialMechanism(self.epsilon * size)

    def witness(self) -> Pair:
        """Losses +-epsilon/2: a mechanism of bounded range epsilon. The envelope itself is attained once, not twice."""
        return response_pair(self.epsilon / 2)

    def zcdp(self) -> float:
        """epsilon^2 / 8 [Cesar and Rogers 2021]."""
        return self.epsilon**2 / 8 * (1 + 1e-15)

    def gdp(self) -> float:
        """About half of what epsilon-DP alone gives; see `_mu_of_bounded_range`."""
        return _mu_of_bounded_range(self.epsilon)


@lru_cache(maxsize=256)
def _mu_of_bounded_range(epsilon: float) -> float:
    r"""An upper bound, to four digits, of the smallest mu for which every mechanism of bounded range epsilon is mu-GDP.

    For one pair of neighbours the losses lie in a window [t - epsilon, t] with 0 <= t <= epsilon, and the trade-off
    function is above that of the two outcomes with exactly these losses: straight from (0, 1) to (a, 1 - e^t a) to
    (1, 0), where a = e^{-t} (1 - e^{t-epsilon}) / (1 - e^{-epsilon}). The convex curve of mu-GDP is below all of it if
    it is below the corner, so mu = max_t z(a) - z(e^t a) with z the upper quantile of a normal. Exchanging the two
    distributions exchanges t and epsilon - t, so t >= epsilon/2 is enough. There, z(a) - z(k a) grows with k, and with
    a because the hazard rate phi(z(a)) / a falls with a; a falls with t. So in a cell of t its value at the largest k
    and the largest a is a bound. Cells whose bound is below a value that is attained somewhere are not divided further.
    """
    if epsilon < 1e-12:
        return mu_of_pure(epsilon)
    start, width = np.array([epsilon / 2]), epsilon / 2
    bounds = np.array([math.inf])
    for _ in range(_ROUNDS):
        width /= _CELLS
        start = (start[:, None] + width * np.arange(_CELLS)).ravel()
        level = -start + np.log(np.expm1(start - epsilon) / math.expm1(-epsilon))
        outer, inner, innermost = scores(np.stack([level, level + start, np.minimum(level + start + width, 0.0)]))
        bounds = outer - innermost
        start = start[bounds >= np.max(outer - inner)]
    mu = float(np.max(bounds))
    return min(mu * (1 + 1e-9) + 1e-14, mu_of_pure(epsilon))

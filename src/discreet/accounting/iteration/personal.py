r"""One cost for each person: records that are used early are hidden by all steps that come after them.

A list of costs would be slow for a million people. `PersonalCosts` keeps one mu and one weight for each position:
person i has delta_i(epsilon) = weight_i delta_{mu_i}(epsilon), where weight_i is the probability that their record is
used at all. On a bounded set a second bound may stand beside it, by contraction. Epsilons are found at some positions
by bisection, guessed between them, and every guess is checked against the profile; one that fails is replaced by the
epsilon of the next position that was bisected, which is larger.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.accounting.cost import Cost
from discreet.accounting.leaves.contracted import log_delta_of
from discreet.accounting.leaves.iterate import LastIterate
from discreet.accounting.leaves.leaf import LARGEST_EPSILON
from discreet.arguments import ADJACENCIES, count, nonnegative, one_of, probability, unit_fraction
from discreet.divergence.drawing import Drawable
from discreet.divergence.gaussian import log_hockey_stick_gaussian
from discreet.divergence.logspace import mills
from discreet.errors import CertificateError, InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike

    from numpy.typing import NDArray

    Reals = NDArray[np.float64]

__all__ = ["Blurred", "PersonalCosts", "PersonalEpsilon", "log_delta_above"]

_NODES = 4000
_ROOM = 3e-6
"""How much a guess is enlarged, so that it holds where the curve is concave between two nodes."""

_POINTS = 20_000
"""Of the grid of epsilons at which contraction is read: a thousandth apart."""

_ALIKE = 1e-3
"""Epsilons that are closer than this may be in the wrong order, as they are rounded up to a grid."""

_TRIES = 64
"""People who are looked at one by one, should everybody's mus not be sharp enough to tell who is the worst."""

_MARGIN = 1e-10
_LOG_ROOT = 0.5 * math.log(2 * math.pi)

_LEFT = -5.0
_PATIENCE = 50


@dataclass(frozen=True, eq=False)
class Blurred:
    """What was mu-GDP when a record was last used, and `steps` times blurred since, at a ratio of diameter to noise.

    delta <= delta_mu(epsilon) theta(epsilon)^steps, theta the profile of ratio-GDP; see `Contracted`.
    """

    mu: float
    ratio: float
    steps: Reals
    """By person."""

    def epsilon(self, delta: float) -> Reals:
        """Everyone's epsilon, rounded up to the next point of a grid: the first at which their steps are enough."""
        log_level = math.log(delta) - 1e-15
        last = self.mu * (self.mu / 2 + math.sqrt(-2 * log_level)) * (1 + 1e-9)  # by Chernoff nobody needs more
        grid = np.append(0.0, np.geomspace(last * 1e-9, last, _POINTS))
        missing = log_delta_of(self.mu, grid) - log_level
        with np.errstate(divide="ignore"):
            needed = np.where(missing <= 0, 0.0, missing / -self._log_factor(grid) * (1 + 1e-12))
        needed = np.maximum.accumulate(needed[::-1])  # falls with epsilon, but for rounding
        place = np.searchsorted(needed, self.steps, side="right")
        return np.where(place > 0, grid[np.maximum(len(grid) - place, 0) % len(grid)], np.inf)

    def delta(self, epsilon: float) -> Reals:
        """Everyone's delta."""
        at = np.array([epsilon])
        return np.asarray(np.exp(log_delta_of(self.mu, at) + self.steps * self._log_factor(at)))

    def _log_factor(self, epsilon: Reals) -> Reals:
        return log_delta_of(self.ratio, epsilon) if self.ratio <= LARGEST_EPSILON else np.zeros(len(epsilon))

    def of(self, people: NDArray[np.int64]) -> Blurred:
        """That of some people, in this order."""
        return Blurred(self.mu, self.ratio, self.steps[people])


@dataclass(frozen=True, eq=False, repr=False)
class PersonalCosts(Drawable):
    """The cost of one release for each person, by the position of their record, counted from 1.

    >>> from discreet import last_iterate
    >>> everyone = last_iterate.pnsgd_by_position(n=1_000, lipschitz=1, smoothness=1, step=1, noise=4)
    >>> everyone
    PersonalCosts(pnsgd, 1000 people, adjacency='replace-one')
    >>> everyone.epsilon(delta=1e-6)[[0, 499, 999]].round(4).tolist()
    [0.0551, 0.0799, 2.2541]
    """

    name: str
    mu: Reals
    """mu of each person's record, given that it is used."""
    weight: Reals
    """The probability that it is used."""
    adjacency: str
    make: Callable[[int], Cost] = field(repr=False)
    """The cost of the person at a position."""
    blurred: Blurred | None = None
    """A second bound of everyone's profile, if the set is bounded."""

    def __post_init__(self) -> None:
        one_of("adjacency", self.adjacency, ADJACENCIES)
        if self.mu.ndim != 1 or self.mu.shape != self.weight.shape or not len(self.mu):
            raise InvalidArgument("mu", self.mu.shape, "pass one mu and one weight for each person")
        if not (np.isfinite(self.mu) & (self.mu > 0) & (self.weight > 0) & (self.weight <= 1)).all():
            raise InvalidArgument("mu", "some", "pass finite mus > 0 and weights between 0 and 1")
        if float(self.mu.max()) > LARGEST_EPSILON:
            raise InvalidArgument(
                "noise", "too little", f"somebody has mu = {self.mu.max():.6g}, which protects nobody; add noise"
            )

    def __len__(self) -> int:
        return len(self.mu)

    def __repr__(self) -> str:
        return f"PersonalCosts({self.name}, {len(self)} people, adjacency='{self.adjacency}')"

    def for_person(self, position: int) -> Cost:
        """The cost of the person whose record is at this position, from 1."""
        place = count("position", position, least=1)
        if place > len(self):
            raise InvalidArgument("position", position, f"positions run from 1 to {len(self)}")
        return self.make(place)

    def epsilon(self, delta: float) -> Reals:
        """The certified epsilon of everyone at a delta, in the order of their positions."""
        level = probability("delta", delta)
        if level == 1:
            return np.zeros(len(self))
        if level == 0:
            return np.full(len(self), np.inf)
        order = np.lexsort((self.weight, self.mu))
        mu, weight = self.mu[order], np.maximum.accumulate(self.weight[order])
        first = np.append(True, (np.diff(mu) != 0) | (np.diff(weight) != 0))  # whole batches have the same
        result = np.empty(len(self))
        result[order] = _sorted(mu[first], weight[first], level)[np.cumsum(first) - 1]
        return result if self.blurred is None else np.minimum(result, self.blurred.epsilon(level))

    def delta(self, epsilon: float) -> Reals:
        """The certified delta of everyone at an epsilon, in the order of their positions."""
        level = nonnegative("epsilon", epsilon)
        found = self.weight * np.exp(_log_delta(self.mu, np.full(len(self), level)))
        if self.blurred is not None:
            found = np.minimum(found, self.blurred.delta(level))
        return np.minimum(1.0, found * (1 + _MARGIN) + 5e-324)

    def worst_position(self, delta: float = 1e-6) -> int:
        """The position with the largest epsilon; of several, that with the largest mu."""
        epsilon = self.epsilon(delta)
        return int(np.argmax(np.where(epsilon >= epsilon.max() * (1 - _ALIKE), self.mu, 0.0))) + 1

    def worst(self, delta: float = 1e-6) -> Cost:
        """The cost of the person who gives away most at this delta: what can be promised to everybody.

        What is known about this person alone, and not about the others, is left out of it.
        """
        if self.blurred is not None or float(self.weight.min()) < 1:
            return self.for_person(self.worst_position(delta))
        values, people = np.unique(self.mu, return_index=True)
        best = for_everybody(self.for_person(int(people[-1]) + 1))
        for mu, person in zip(values[-2:-_TRIES:-1].tolist(), people[-2:-_TRIES:-1].tolist(), strict=True):
            if mu <= best.gdp() * (1 + 1e-9):  # nobody's can be larger, unless by rounding
                return best
            best = max(best, for_everybody(self.for_person(person + 1)), key=lambda cost: cost.gdp())
        if len(values) >= _TRIES and float(values[-_TRIES]) > best.gdp() * (1 + 1e-9):
            raise CertificateError(
                "the worst position",
                limit=f"{_TRIES} candidates that differ too little",
                advice="Promise epsilon(delta).max() instead.",
            )
        return best

    def at(self, delta: float) -> PersonalEpsilon:
        """Everybody's epsilon at one delta, as a curve over positions that can be drawn."""
        return PersonalEpsilon(self, delta)

    def plot(
        self,
        *,
        delta: float = 1e-6,
        ax: Any = None,
        label: str | None = None,
        title: str | None = None,
        path: str | PathLike[str] | None = None,
    ) -> Any:
        """Epsilon at this delta against position; the other options are those of `discreet.plots.draw`."""
        return self.at(delta).plot(ax=ax, label=label, title=title, path=path)

    def quantile(self, share: float, *, delta: float) -> float:
        """The epsilon that this share of the people does not exceed."""
        return float(np.quantile(self.epsilon(delta), probability("share", share), method="higher"))


@dataclass(frozen=True, eq=False)
class PersonalEpsilon(Drawable):
    """The epsilon of everyone at one delta."""

    costs: PersonalCosts
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", unit_fraction("delta", self.delta))

    @cached_property
    def values(self) -> Reals:
        """By position."""
        return self.costs.epsilon(self.delta)


def for_everybody(cost: Cost) -> Cost:
    """The cost without bounds that hold for the person at one place only."""
    parts = [
        (replace(leaf, everybody=leaf.process.diameter is not None) if isinstance(leaf, LastIterate) else leaf, times)
        for leaf, times in cost.parts
    ]
    return Cost(tuple(parts), cost.adjacency)


def log_delta_above(mu: Reals, epsilon: Reals) -> Reals:
    r"""ln of an upper bound of delta_mu(epsilon) that is quick for a million mus, and a relative 1e-5 above it at most.

    delta = density(a) (M(a) - M(a + mu)) with a = epsilon/mu - mu/2 and Mills' ratio M, the integral of e^{-xt - t^2/2}
    over t > 0. It is completely monotone, so -M' is convex, and the trapezoid rule over [a, a + mu] is too large, by
    little for a small mu; for others the difference is as good.
    """
    score = epsilon / mu - mu / 2
    a = np.maximum(score, _LEFT)  # further left Mills' ratio is large, mu too, and delta <= 1 is near the truth
    left, right = mills(a), mills(a + mu)
    small = mu < 1e-3
    if small.any():
        slope = 1 - a * left + 1 - (a + mu) * right
        drop = np.where(small & (a > 0), 0.5 * mu * slope * (1 + 1e-9), (left - right) * (1 + 1e-8) + 1e-14 * left)
    else:
        drop = (left - right) * (1 + 1e-9) + 1e-14 * left
    with np.errstate(divide="ignore"):
        found = np.log(drop) - a * a / 2 * (1 - 1e-14) - _LOG_ROOT + 1e-12
    return np.asarray(np.where(score < _LEFT, 0.0, found))


def _sorted(mu: Reals, weight: Reals, delta: float) -> Reals:
    """Epsilons of people whose mu and weight both grow, so that epsilon does too."""
    with np.errstate(divide="ignore"):
        log_level = np.log(delta) - np.log(weight) - 1e-15
    last = len(mu) - 1
    ends = np.geomspace(1, last + 1, _NODES).astype(np.int64) - 1
    nodes = np.unique(np.concatenate([ends, last - ends]))
    known = _bisected(mu[nodes], log_level[nodes])
    if len(nodes) == len(mu):
        return known
    places = np.arange(len(mu))
    above = known[np.searchsorted(nodes, places)]
    guess = np.minimum(np.interp(places, nodes, known) * (1 + _ROOM), above)
    return np.where(_log_delta(mu, guess) <= log_level, guess, above)


def _log_delta(mu: Reals, epsilon: Reals) -> Reals:
    """ln of an upper bound of each profile at its epsilon, the slow one where the quick one gives up."""
    log_delta = log_delta_above(mu, epsilon)
    far = epsilon / mu - mu / 2 < _LEFT
    if far.any():
        log_delta[far] = np.minimum(0.0, log_hockey_stick_gaussian(epsilon[far], mu=mu[far]) + _MARGIN)
    return log_delta


def _bisected(mu: Reals, log_level: Reals) -> Reals:
    """The epsilon of each mu at its level, rounded up: the upper ends of an interval that is halved 50 times."""
    low = np.zeros(len(mu))
    # by Chernoff: delta is at most P(Z > epsilon/mu - mu/2)
    high = mu * (mu / 2 + np.sqrt(np.maximum(0.0, -2 * log_level))) * (1 + 1e-9) + 1e-300
    high = np.where((log_level >= 0) | (_log_delta(mu, low) <= log_level), 0.0, high)
    for _ in range(_PATIENCE):
        middle = 0.5 * (low + high)
        good = _log_delta(mu, middle) <= log_level
        low, high = np.where(good, low, middle), np.where(good, middle, high)
    return high

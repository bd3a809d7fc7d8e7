"""`Cost`: what a release reveals about one person, as a small immutable description that adds up."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from discreet.accounting import leaves, storing
from discreet.accounting.parts import canonical, merged
from discreet.accounting.saddle import Unreachable
from discreet.arguments import ADJACENCIES, count, nonnegative, one_of, probability, real
from discreet.divergence.drawing import Drawable
from discreet.errors import AdjacencyMismatch, InvalidArgument, WideBracket

if TYPE_CHECKING:
    from discreet.accounting.curves import Loss, Profile
    from discreet.accounting.explanation import Explanation
    from discreet.accounting.leaves.leaf import Leaf
    from discreet.accounting.reading import Reading
    from discreet.accounting.summary import Summary
    from discreet.divergence.tradeoff import TradeOff

__all__ = ["ADJACENCIES", "Cost"]


@dataclass(frozen=True, repr=False)
class Cost(Drawable):
    """The privacy cost of one or many releases: costs add with `+`, repeat with `*`, and are read in any notion.

    >>> step = Cost.gaussian(noise_multiplier=1.1).sampled(rate=256 / 60_000)
    >>> round((14_000 * step).epsilon(delta=1e-5), 6)
    2.375838

    Upper values are never below and lower values never above the true one, whatever the rounding, truncation and
    discretisation on the way. A cost speaks about neighbouring data sets in the sense of its `adjacency`.
    """

    parts: tuple[tuple[Leaf, int], ...]
    """Each leaf with how often it was used, in a canonical order."""

    adjacency: str = "add-remove"

    def __post_init__(self) -> None:
        one_of("adjacency", self.adjacency, ADJACENCIES)
        total: Counter[Leaf] = Counter()
        try:
            pairs = [(leaf, times) for leaf, times in self.parts]
        except (TypeError, ValueError):
            raise InvalidArgument("parts", self.parts, "make costs with Cost.gaussian(...) and the like") from None
        for leaf, times in pairs:
            if not isinstance(leaf, leaves.Leaf):
                raise InvalidArgument("parts", leaf, "make costs with Cost.gaussian(...) and the like")
            total[leaf] += count("count", times)
        ordered = sorted(((leaf, times) for leaf, times in total.items() if times), key=canonical)
        object.__setattr__(self, "parts", tuple(ordered))

    # ------------------------------------------------------------------ making

    @classmethod
    def _leaf(cls, leaf: Leaf, adjacency: str) -> Cost:
        return cls(((leaf, 1),), adjacency)

    @classmethod
    def zero(cls, *, adjacency: str = "add-remove") -> Cost:
        """Nothing was released."""
        return cls((), adjacency)

    @classmethod
    def gaussian(cls, noise_multiplier: float, *, adjacency: str = "add-remove") -> Cost:
        """Gaussian noise with standard deviation noise_multiplier * (l2 sensitivity)."""
        return cls._leaf(leaves.Gaussian(noise_multiplier), adjacency)

    @classmethod
    def laplace(cls, noise_multiplier: float, *, adjacency: str = "add-remove") -> Cost:
        """Laplace noise with scale noise_multiplier * (l1 sensitivity); it is (1 / noise_multiplier)-DP."""
        return cls._leaf(leaves.Laplace(noise_multiplier), adjacency)

    @classmethod
    def discrete_gaussian(cls, noise_multiplier: float, *, sensitivity: int = 1, adjacency: str = "add-remove") -> Cost:
        """Integer Gaussian noise of scale noise_multiplier * sensitivity on one integer-valued query."""
        return cls._leaf(leaves.DiscreteGaussian(noise_multiplier, sensitivity), adjacency)

    @classmethod
    def discrete_laplace(cls, noise_multiplier: float, *, sensitivity: int = 1, adjacency: str = "add-remove") -> Cost:
        """Two-sided geometric noise of scale noise_multiplier * sensitivity on one integer-valued query."""
        return cls._leaf(leaves.DiscreteLaplace(noise_multiplier, sensitivity), adjacency)

    @classmethod
    def staircase(cls, epsilon: float, *, gamma: float | None = None, adjacency: str = "add-remove") -> Cost:
        """Staircase noise of pure level epsilon; gamma is the share of a step, 1/(1 + e^{epsilon/2}) by default."""
        return cls._leaf(leaves.Staircase(epsilon, gamma), adjacency)

    @classmethod
    def randomized_response(cls, epsilon: float, *, options: int = 2, adjacency: str = "add-remove") -> Cost:
        """Randomized response among `options` answers."""
        return cls._leaf(leaves.RandomizedResponse(epsilon, options), adjacency)

    @classmethod
    def exponential_mechanism(cls, epsilon: float, *, adjacency: str = "add-remove") -> Cost:
        """The exponential mechanism with weights e^{epsilon * score / (2 * sensitivity)}."""
        return cls._leaf(leaves.ExponentialMechanism(epsilon), adjacency)

    @classmethod
    def pure(cls, epsilon: float, *, adjacency: str = "add-remove") -> Cost:
        """Any epsilon-DP mechanism."""
        return (
            cls.zero(adjacency=adjacency)
            if _is_zero("epsilon", epsilon)
            else cls._leaf(leaves.Pure(epsilon), adjacency)
        )

    @classmethod
    def approximate(cls, epsilon: float, delta: float, *, adjacency: str = "add-remove") -> Cost:
        """Any (epsilon, delta)-DP mechanism."""
        if probability("delta", delta) == 0:
            return cls.pure(epsilon, adjacency=adjacency)
        return cls._leaf(leaves.Approximate(epsilon, delta), adjacency)

    @classmethod
    def concentrated(cls, rho: float, *, adjacency: str = "add-remove") -> Cost:
        """Any rho-zCDP mechanism."""
        return cls.zero(adjacency=adjacency) if _is_zero("rho", rho) else cls._leaf(leaves.Concentrated(rho), adjacency)

    @classmethod
    def gaussian_dp(cls, mu: float, *, adjacency: str = "add-remove") -> Cost:
        """Any mu-GDP mechanism."""
        return (
            cls.zero(adjacency=adjacency) if _is_zero("mu", mu) else cls._leaf(leaves.GaussianGuarantee(mu), adjacency)
        )

    @classmethod
    def renyi(cls, curve: Mapping[float, float], *, adjacency: str = "add-remove") -> Cost:
        """Any mechanism with Rényi divergence at most curve[order] at each of these orders."""
        if not isinstance(curve, Mapping):
            raise InvalidArgument("curve", curve, "pass a mapping {order: value} with orders > 1")
        return cls._leaf(leaves.RenyiCurve(tuple(curve.items())), adjacency)

    @classmethod
    def from_pair(cls, P: object, Q: object, *, adjacency: str = "add-remove") -> Cost:
        """Any mechanism dominated by (P, Q): two finite distributions, or two continuous ones.

        P is the output with the person's record and Q the output without it: the cost covers adding and removing the
        record, and sampling mixes Q into P. Which is which matters if the pair is not symmetric.
        Under 'replace-one' neighbours have no such order: pass a pair that dominates them in both orders.

        Finite: mappings {outcome: probability} or sequences over the same outcomes. Continuous: objects with vectorised
        `cdf`, `sf`, `logpdf` and `ppf` (a frozen SciPy distribution, say) and a monotone likelihood ratio.
        """
        from discreet.accounting.leaves.own import leaf_from_pair

        return cls._leaf(leaf_from_pair(P, Q), adjacency)

    @classmethod
    def from_tradeoff(cls, f: TradeOff | Callable[[Any], Any], *, adjacency: str = "add-remove") -> Cost:
        """Any f-DP mechanism, f a convex trade-off function of the false-alarm probability."""
        from discreet.accounting.leaves.own import leaf_from_tradeoff

        return cls._leaf(leaf_from_tradeoff(f), adjacency)

    # ---------------------------------------------------------------- algebra

    def __add__(self, other: object) -> Cost:
        if isinstance(other, int) and other == 0:  # so that sum(costs) works
            return self
        if not isinstance(other, Cost):
            return NotImplemented
        if self.adjacency != other.adjacency:
            raise AdjacencyMismatch(self.adjacency, other.adjacency)
        return self._merged(other)

    def _merged(self, other: Cost) -> Cost:
        """Both lists of parts are in their canonical order and valid already: one pass joins them."""
        if not self.parts or not other.parts:
            return self if self.parts else other
        joined = merged((self.parts, self._names), (other.parts, other._names))
        if joined is None:
            return Cost(self.parts + other.parts, self.adjacency)
        made = object.__new__(Cost)
        object.__setattr__(made, "parts", joined[0])
        object.__setattr__(made, "adjacency", self.adjacency)
        made.__dict__["_names"] = joined[1]
        return made

    @cached_property
    def _names(self) -> tuple[tuple[str, str], ...]:
        """What the parts are ordered by."""
        return tuple(canonical(part) for part in self.parts)

    __radd__ = __add__

    def __mul__(self, times: object) -> Cost:
        if isinstance(times, Cost):
            return NotImplemented
        number = count("count", times)
        if number > 10**15:
            raise InvalidArgument("count", times, "pass a whole number up to 10^15")
        return Cost(tuple((leaf, number * k) for leaf, k in self.parts), self.adjacency)

    __rmul__ = __mul__

    def sampled(self, rate: float, *, scheme: str = "poisson", adjacency: str | None = None) -> Cost:
        """The same releases on a random sample that holds each record with probability `rate`.

        All parts see the same sample. If every release draws its own, sample first and repeat then:
        `n * cost.sampled(rate)`. What must be true of the code that draws:

        - "poisson": every record takes part by a coin of its own. Stated for 'add-remove'; `adjacency='replace-one'`
          gives the cost of a replaced record instead, from the same description of the mechanism.
        - "without_replacement": a sample of fixed size m of n records, rate = m/n; 'replace-one' only.
        - "balls_in_bins": in every epoch each record falls into one of T = 1/rate batches, chosen uniformly and
          independently of all others, so that sizes vary. The result is the cost of one epoch of T steps.
        - "cyclic_poisson": every record is dealt to a group independently of all other records (by a coin or a hash of
          its own, not by its place in a list); the groups take turns, and in its turn a group is Poisson-sampled at
          `rate`. The result is the cost of one cycle, in which everybody has one turn.

        Batches cut from a shuffled list are none of these: "shuffled" is refused, with advice.
        """
        from discreet.accounting.sampling import sample

        return sample(self, rate, scheme, adjacency)

    def shuffled(self, n: int) -> Cost:
        """The cost of n reports in random order, if each is made by a local randomizer with this cost.

        Everybody uses the same randomizer on data of their own, and only the shuffled reports are seen. The cost must
        be pure, up to epsilon = 10, and speak about 'replace-one': the person's value changes
        [Feldman et al. 2023]. Below epsilon = 1e-6 the unshuffled cost is returned.

        >>> report = Cost.randomized_response(1.0, adjacency="replace-one")
        >>> round(report.shuffled(n=10_000).epsilon(1e-6), 4)
        0.0432
        """
        from discreet.accounting.sampling import shuffle

        return shuffle(self, n)

    def grouped(self, size: int) -> Cost:
        """The same releases seen by a group of `size` people: neighbours differ in `size` records instead of one.

        Noise and guarantees scale, as in `Cost.gaussian(4).grouped(2) == Cost.gaussian(2)`. Where a part has no such
        law (sampled mechanisms, randomized response, tables), the trade-off curve of the whole is concatenated with
        itself [Dong et al. 2022, Thm 2.14]: a valid upper bound that may be far from the truth, without a lower end,
        which `WideBracket` says. Of the records in which neighbours differ some may be added and others removed; the
        pair of a group that joins as a whole is not proved to cover that for sampled noise, so it is not used.
        """
        from discreet.accounting.grouping import group

        return group(self, size)

    def with_adjacency(self, adjacency: str) -> Cost:
        """The same numbers under another neighbouring relation; only sound if you know that they hold there."""
        return Cost(self.parts, one_of("adjacency", adjacency, ADJACENCIES))

    # ---------------------------------------------------------------- reading

    def epsilon(self, delta: float, *, method: str = "auto") -> float:
        """The smallest epsilon such that the releases are (epsilon, delta)-DP: a certified upper bound."""
        return self._epsilon(delta, method).upper

    def delta(self, epsilon: float, *, method: str = "auto") -> float:
        """The smallest delta such that the releases are (epsilon, delta)-DP: a certified upper bound."""
        return self._delta(epsilon, method).upper

    def bounds(
        self, *, delta: float | None = None, epsilon: float | None = None, method: str = "auto"
    ) -> tuple[float, float]:
        """Certified (lower, upper) of epsilon at a delta, or of delta at an epsilon."""
        reading = self.reading(delta=delta, epsilon=epsilon, method=method)
        return reading.lower, reading.upper

    def reading(self, *, delta: float | None = None, epsilon: float | None = None, method: str = "auto") -> Reading:
        """The certified bracket together with the accountant that gave it, its reason and its direction."""
        return self._reading(delta, epsilon, method)

    def _reading(self, delta: float | None, epsilon: float | None, method: str = "auto") -> Reading:
        if (delta is None) == (epsilon is None):
            raise InvalidArgument("delta, epsilon", (delta, epsilon), "pass exactly one of delta= and epsilon=")
        return self._epsilon(delta, method) if delta is not None else self._delta(epsilon, method)

    def _epsilon(self, delta: object, method: str) -> Reading:
        from discreet.accounting.evaluate import epsilon_reading
        from discreet.accounting.reading import Reading

        value = probability("delta", delta)
        if value == 1:
            return Reading(0.0, 0.0, "exact", "delta = 1 allows everything")
        return _checked("epsilon", epsilon_reading(self.parts, value, method), widest=1e-6)

    def _delta(self, epsilon: object, method: str) -> Reading:
        from discreet.accounting.evaluate import delta_reading

        reading = delta_reading(self.parts, nonnegative("epsilon", epsilon), method)
        return _checked("delta", reading, widest=1e-4)

    def estimate(
        self, *, delta: float | None = None, epsilon: float | None = None, shuffled_batches: int | None = None
    ) -> float:
        """A central-limit *estimate*: may be too small, for orientation and comparison only.

        With `shuffled_batches=T` it is what one epoch costs *at least* in which a shuffled list is cut into T batches,
        each released with this Gaussian noise [Chua et al. 2024]: to see why it must not be counted as Poisson samples.
        """
        if shuffled_batches is not None:
            from discreet.accounting.shuffled_batches import estimate_of_epoch

            return estimate_of_epoch(self, shuffled_batches, delta=delta, epsilon=epsilon)
        from discreet.accounting.estimate import estimate

        return estimate(self.parts, delta=delta, epsilon=epsilon)

    def rdp(self, order: float) -> float:
        """Certified upper bound of the Rényi divergence of this order (> 1)."""
        from discreet.accounting.by_guarantee import renyi_total

        order = real("order", order, advice="pass a finite order > 1; at infinity it is pure_epsilon()")
        if order <= 1:
            raise InvalidArgument("order", order, "pass an order > 1")
        try:
            return renyi_total(self.parts, order)
        except (Unreachable, OverflowError):
            return math.inf

    def zcdp(self) -> float:
        """The smallest rho for which rho-zCDP is known to hold; infinite if none."""
        return _sum((leaf.zcdp(), times) for leaf, times in self.parts)

    def pure_epsilon(self) -> float:
        """The smallest epsilon for which epsilon-DP holds: the sum of the largest losses; infinite if none."""
        return _sum((leaf.pure_epsilon(), times) for leaf, times in self.parts)

    def gdp(self) -> float:
        """The smallest mu for which mu-GDP is known to hold part by part; infinite if none."""
        if len(self.parts) == 1 and self.parts[0][1] == 1:
            return self.parts[0][0].gdp()
        return math.sqrt(_sum((leaf.gdp() ** 2, times) for leaf, times in self.parts)) * (1 + 1e-15)

    def advantage(self) -> float:
        """Certified upper bound of a membership attacker's advantage, max(detection - false alarm) = delta(0)."""
        return self.delta(0.0)

    def profile(self) -> Profile:
        """The privacy profile epsilon -> delta, callable and plottable."""
        from discreet.accounting.curves import Profile

        return Profile(self)

    def tradeoff(self) -> TradeOff:
        """A trade-off curve certainly below the true one: callable, plottable, comparable."""
        from discreet.accounting.curves import tradeoff_of

        return tradeoff_of(self)

    def loss(self) -> Loss:
        """The distribution of the privacy loss, discretised from above: for plots and tail probabilities."""
        from discreet.accounting.curves import Loss

        return Loss.of(self)

    def explain(self, *, delta: float | None = None, epsilon: float | None = None) -> Explanation:
        """Which accountant is used for this reading, why, and how wide its certificate is, in words."""
        from discreet.accounting.explanation import explain

        if delta is None and epsilon is None:
            delta = 1e-6
        return explain(self, self._reading(delta, epsilon), delta=delta, epsilon=epsilon)

    def summary(self, delta: float = 1e-6) -> Summary:
        """The same cost in every notion: pure, (epsilon, delta), zCDP, GDP, advantage, attackers' odds."""
        from discreet.accounting.summary import summarise

        return summarise(self, probability("delta", delta))

    # ---------------------------------------------------------------- storing

    def to_dict(self) -> dict[str, Any]:
        """A lossless, versioned description made of JSON values."""
        return storing.to_dict(self.parts, self.adjacency)

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> Cost:
        """The cost described by `to_dict`; refuses unknown versions and malformed input."""
        parts, adjacency = storing.from_dict(description)
        return cls(parts, one_of("adjacency", adjacency, ADJACENCIES))

    def to_json(self) -> str:
        """`to_dict` as JSON text."""
        return self._json

    @cached_property
    def _json(self) -> str:
        return storing.to_json(self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> Cost:
        """The cost described by `to_json`."""
        return cls.from_dict(storing.from_json(text))

    # ---------------------------------------------------------------- showing

    def __repr__(self) -> str:
        inside = " + ".join(
            leaf.describe() if times == 1 else f"{times} * {leaf.describe()}" for leaf, times in self.parts
        )
        suffix = "" if self.adjacency == "add-remove" else f", adjacency='{self.adjacency}'"
        return f"Cost({inside or 'zero'}{suffix})"

    def _repr_html_(self) -> str:
        from discreet.accounting.summary import html

        return html(self)


def _checked(what: str, reading: Reading, *, widest: float) -> Reading:
    """Warns when a bracket is wider than promised; both of its ends are valid all the same."""
    if reading.is_tight and reading.width > widest and reading.upper > 1e-300:
        warnings.warn(
            f"the certified bracket of {what} is [{reading.lower:.9g}, {reading.upper:.9g}], a relative "
            f"{reading.width:.1g} wide: {reading.reason}. Both ends are valid; for a tighter one write equal "
            f"mechanisms as count * cost and split very different ones.",
            WideBracket,
            stacklevel=4,
        )
    return reading


def _is_zero(name: str, value: object) -> bool:
    return nonnegative(name, value) == 0


def _sum(terms: Any) -> float:
    """A sum of value * times, rounded up; infinite if any value is."""
    rows = list(terms)
    if len(rows) == 1 and rows[0][1] == 1:
        return float(rows[0][0])  # nothing was added, nothing was rounded
    values = [value * times for value, times in rows]
    return math.inf if any(value == math.inf for value in values) else math.fsum(values) * (1 + 4e-16)

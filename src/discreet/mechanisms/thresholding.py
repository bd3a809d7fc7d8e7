"""Histograms over keys that nobody listed in advance: noisy counts, and only those above a threshold are shown."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, overload

import numpy as np

from discreet.accounting import Cost, calibrate
from discreet.accounting.leaves.leaf import finite_epsilon
from discreet.arguments import ADJACENCIES, count, one_of, positive, unit_fraction
from discreet.divergence.special import log_ndtr, ndtri_exp
from discreet.errors import InvalidArgument
from discreet.mechanisms.counted import CountedKeys, neighbouring_counts
from discreet.mechanisms.keeping import at_most
from discreet.mechanisms.key_selection import changed_keys, key_failure, key_level, keys_of_a_unit, per_key
from discreet.mechanisms.mechanism import Mechanism
from discreet.mechanisms.sensitivity import as_written, root_above
from discreet.noise import discrete_laplace, rounded_gaussian
from discreet.noise.generator import chosen_generator

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from discreet.noise import Generator

__all__ = [
    "GaussianThreshold",
    "LaplaceThreshold",
    "StableHistogram",
    "Thresholding",
    "laplace_threshold",
    "log_laplace_tail",
]

_SLACK = 1 + 1e-12
"""What the floats of a tail may be off, many times over."""

_LARGEST_COUNT = 1 << 62


@dataclass(frozen=True, init=False, repr=False)
class Thresholding(Mechanism):
    """Integer noise on the count of every key that somebody has; shown are the keys that reach `threshold`, with it.

    Every person has at most `keys_per_unit` keys and counts once in each. Keys that nobody has are never shown, so a
    key of one person alone gives that person away: the threshold makes this rare, and the cost says how rare.
    Proofs in docs/proofs/stability.md.
    """

    keys_per_unit: int
    threshold: int

    @abstractmethod
    def _noise(self, n: int, generator: Generator) -> NDArray[np.int64]:
        """Independent noise for n counts."""

    @abstractmethod
    def _log_tail(self, least: int) -> float:
        """ln P(noise >= least), to a few ulps."""

    def examples(self) -> list[tuple[Any, Any]]:
        """One person's keys: nobody else's, and those of so many that the threshold is near."""
        return [*neighbouring_counts(self.keys_per_unit, self.adjacency, self.threshold)]

    def noisier(self) -> Thresholding:
        """Twice the noise, and a threshold twice as high: more noise alone would show more keys of one person."""
        fields = self.to_dict()
        noise = {"key_epsilon": 0.5, "noise_multiplier": 2.0}
        changes = {name: fields[name] * factor for name, factor in noise.items() if name in fields}
        return type(self).from_dict({**fields, **changes, "threshold": 2 * self.threshold})

    @property
    def _changed(self) -> int:
        return changed_keys(self.keys_per_unit, self.adjacency)

    def probability_of_keeping(self, n: int) -> float:
        """The probability that a key which n people have is shown."""
        number = count("n", n)
        return min(1.0, math.exp(self._log_tail(self.threshold - number))) if number else 0.0

    def error(self, confidence: float = 0.95) -> float:
        """For each key, noise beyond this on its count has probability at most 1 - confidence, shown or not.

        Keys below the threshold are missing: `probability_of_keeping` says how likely. A shown count that is near the
        threshold has been selected for its noise and is on average too high.
        """
        miss = math.log((1 - unit_fraction("confidence", confidence)) / 2)
        low, high = -1, 1
        while self._log_tail(high + 1) > miss:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._log_tail(middle + 1) <= miss else (middle, high)
        return float(high)

    def check(self, value: Any) -> None:
        """Refuses what is neither a mapping of keys to counts nor a pair of both."""
        CountedKeys.check(value)

    @overload
    def release(self, value: Mapping[Any, int], *, generator: Generator | None = None) -> dict[Hashable, int]: ...

    @overload
    def release(
        self,
        value: tuple[Sequence[Any] | NDArray[Any], Sequence[int] | NDArray[Any]],
        *,
        generator: Generator | None = None,
    ) -> tuple[NDArray[Any], NDArray[np.int64]]: ...

    def release(self, value: Any, *, generator: Generator | None = None) -> Any:
        """{key: noisy count} of {key: count}, or (keys, noisy counts) of (keys, counts): sorted, else shuffled."""
        counted = CountedKeys.of(value)
        source = chosen_generator(generator)
        # Clamping is one function of each count alone and moves neighbouring counts no farther apart.
        noisy = np.minimum(counted.counts, _LARGEST_COUNT) + self._noise(counted.counts.size, source)
        places = counted.chosen((noisy >= self.threshold) & (counted.counts > 0), source)
        keys, shown = counted.shown(places), noisy[places]
        return dict(zip(keys.tolist(), shown.tolist(), strict=True)) if counted.is_mapping else (keys, shown)

    def _failure(self) -> float:
        """1 - (1 - p)^k: an upper bound that any key of one person alone is shown, p for each of k keys."""
        tail = self._log_tail(self.threshold - 1)
        if tail >= 0:
            return 1.0
        return min(1.0, -math.expm1(self.keys_per_unit * math.log1p(-math.exp(tail))) * _SLACK + 5e-324)


@dataclass(frozen=True, init=False, repr=False)
class StableHistogram(Thresholding):
    r"""Noisy counts of the keys that stand out, with truncated geometric noise: best for few keys a person.

    The noise has P(Z = z) ∝ e^{-ε|z|} on -t..t and the threshold is t + 1, which a count of 0 never reaches. Each key
    is (key_epsilon, key_delta)-DP with

        key_delta = P(Z = t) = e^{-εt} (1 - e^{-ε}) / (1 + e^{-ε} - 2 e^{-ε(t+1)}),

    and no other (key_epsilon, key_delta)-DP mechanism shows any key with a larger probability
    [Desfontaines et al. 2022]. Pass the total `epsilon` and `delta`, or `key_epsilon` and `threshold`.

    >>> histogram = StableHistogram(epsilon=1.0, delta=1e-6)
    >>> histogram.threshold, histogram.cost.delta(1.0) <= 1e-6
    (15, True)
    """

    kind: ClassVar[str] = "stable_histogram"

    key_epsilon: float

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        keys_per_unit: int = 1,
        key_epsilon: float | None = None,
        threshold: int | None = None,
        adjacency: str = "add-remove",
    ) -> None:
        one_of("adjacency", adjacency, ADJACENCIES)
        keys = keys_of_a_unit(keys_per_unit)
        _either(epsilon, delta, key_epsilon, threshold, "key_epsilon")
        if epsilon is not None:
            key_epsilon, key_delta = per_key(epsilon, delta, changed_keys(keys, adjacency))
            aim = math.log(key_delta) - 1e-12
            threshold = 1 + _least(lambda end: _log_end_mass(key_epsilon, end) <= aim)
        self._set(
            keys_per_unit=keys,
            threshold=_threshold(threshold),
            key_epsilon=key_level(key_epsilon),
            adjacency=adjacency,
        )
        if self.key_epsilon * self.threshold < 1e-3:  # noise cut to so little of its width is drawn again for ever
            raise InvalidArgument(
                "threshold", self.threshold, f"pass at least {math.ceil(1e-3 / self.key_epsilon)} at this key_epsilon"
            )

    @property
    def key_delta(self) -> float:
        """P(Z = t), rounded up."""
        return min(1.0, math.exp(_log_end_mass(self.key_epsilon, self.threshold - 1)) * _SLACK + 5e-324)

    @property
    def cost(self) -> Cost:
        """(key_epsilon, key_delta) for each key that one person can change: exact for each of them."""
        return self._changed * Cost.approximate(self.key_epsilon, self.key_delta, adjacency=self.adjacency)

    def _log_tail(self, least: int) -> float:
        end, epsilon = self.threshold - 1, self.key_epsilon
        if least > end:
            return -math.inf
        if least <= -end:
            return 0.0
        if least <= 0:  # by symmetry 1 - P(Z >= 1 - least)
            return math.log1p(-math.exp(self._log_tail(1 - least)))
        # sum of e^{-εz} over least..t against that over -t..t
        return -epsilon * least + math.log(-math.expm1(-epsilon * (end - least + 1))) - _log_mass(epsilon, end)

    def _noise(self, n: int, generator: Generator) -> NDArray[np.int64]:
        scale, end = 1 / at_most(self.key_epsilon), self.threshold - 1
        noise = discrete_laplace(scale, n, generator=generator)
        while (beyond := np.flatnonzero(np.abs(noise) > end)).size:
            noise[beyond] = discrete_laplace(scale, beyond.size, generator=generator)
        return noise


@dataclass(frozen=True, init=False, repr=False)
class LaplaceThreshold(Thresholding):
    """Noisy counts of the keys that stand out, with discrete Laplace noise of scale 1 / key_epsilon.

    The counts are key_epsilon-DP for each key, and a key of one person alone is shown with a probability that the
    threshold makes small; both are paid for. `StableHistogram` shows more at the same cost: this one is the classical
    mechanism [Korolova et al. 2009]. Pass the total `epsilon` and `delta`, or `key_epsilon` and `threshold`.
    """

    kind: ClassVar[str] = "laplace_threshold"

    key_epsilon: float

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        keys_per_unit: int = 1,
        key_epsilon: float | None = None,
        threshold: int | None = None,
        adjacency: str = "add-remove",
    ) -> None:
        one_of("adjacency", adjacency, ADJACENCIES)
        keys = keys_of_a_unit(keys_per_unit)
        _either(epsilon, delta, key_epsilon, threshold, "key_epsilon")
        if epsilon is not None:
            # a person's keys are either counted or new, never both: all of delta may go to the new ones
            changed = changed_keys(keys, adjacency)
            key_epsilon = finite_epsilon(epsilon) / changed * (1 - 1e-12) if changed > 1 else finite_epsilon(epsilon)
            aim = math.log(-math.expm1(math.log1p(-key_failure(delta)) / keys))
            threshold = 1 + laplace_threshold(key_epsilon, aim)
        self._set(
            keys_per_unit=keys,
            threshold=_threshold(threshold),
            key_epsilon=key_level(key_epsilon),
            adjacency=adjacency,
        )

    @property
    def cost(self) -> Cost:
        """key_epsilon for each key that one person can change, and the probability that a key of theirs alone shows."""
        noise = Cost.pure(self.key_epsilon, adjacency=self.adjacency)
        return self._changed * noise + Cost.approximate(0.0, self._failure(), adjacency=self.adjacency)

    def _log_tail(self, least: int) -> float:
        return log_laplace_tail(self.key_epsilon, least)

    def _noise(self, n: int, generator: Generator) -> NDArray[np.int64]:
        return discrete_laplace(1 / at_most(self.key_epsilon), n, generator=generator)


@dataclass(frozen=True, init=False, repr=False)
class GaussianThreshold(Thresholding):
    """Noisy counts of the keys that stand out, with Gaussian noise rounded to integers: best for many keys a person.

    The standard deviation is noise_multiplier * sqrt(k) with k the number of counts that one person can change: their
    l2 sensitivity. The cost is that of the Gaussian mechanism and, beside it, the probability that a key of one
    person alone is shown. Pass the total `epsilon` and `delta`, or `noise_multiplier` and `threshold`.

    >>> histogram = GaussianThreshold(epsilon=1.0, delta=1e-6, keys_per_unit=100)
    >>> histogram.threshold < StableHistogram(epsilon=1.0, delta=1e-6, keys_per_unit=100).threshold
    True
    """

    kind: ClassVar[str] = "gaussian_threshold"

    noise_multiplier: float

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        keys_per_unit: int = 1,
        noise_multiplier: float | None = None,
        threshold: int | None = None,
        adjacency: str = "add-remove",
    ) -> None:
        one_of("adjacency", adjacency, ADJACENCIES)
        keys = keys_of_a_unit(keys_per_unit)
        _either(epsilon, delta, noise_multiplier, threshold, "noise_multiplier")
        if epsilon is not None:
            noise_multiplier, threshold = _gaussian_parameters(
                finite_epsilon(epsilon), key_failure(delta), keys, changed_keys(keys, adjacency)
            )
        multiplier = positive("noise_multiplier", noise_multiplier)
        self._set(keys_per_unit=keys, threshold=_threshold(threshold), noise_multiplier=multiplier, adjacency=adjacency)
        if not 1e-3 <= multiplier <= 1e6:
            raise InvalidArgument("noise_multiplier", noise_multiplier, "pass a number between 0.001 and 10^6")

    @property
    def cost(self) -> Cost:
        """The Gaussian mechanism on all counts, and the probability that a key of one person alone shows."""
        noise = Cost.gaussian(self.noise_multiplier, adjacency=self.adjacency)
        return noise + Cost.approximate(0.0, self._failure(), adjacency=self.adjacency)

    @cached_property
    def scale(self) -> Fraction:
        """The standard deviation before rounding, exactly."""
        return as_written(self.noise_multiplier) * root_above(self._changed)

    def _log_tail(self, least: int) -> float:
        return float(log_ndtr((0.5 - least) / float(self.scale)))

    def _noise(self, n: int, generator: Generator) -> NDArray[np.int64]:
        return rounded_gaussian(self.scale, n, generator=generator)


def _gaussian_parameters(epsilon: float, delta: float, keys: int, changed: int) -> tuple[float, int]:
    """The noise multiplier and the threshold: the share of delta for new keys is chosen for the lowest threshold.

    Leaking with probability d beside a mechanism of profile δ(ε) has the profile d + (1 - d) δ(ε).
    """
    options = []
    for share in (0.5, 0.2, 0.1, 0.05):
        failure = delta * share
        multiplier = calibrate(Cost.gaussian, epsilon=epsilon, delta=(delta - failure) / (1 - failure) * (1 - 1e-9))
        scale = multiplier * math.sqrt(changed) * _SLACK
        tail = math.log(-math.expm1(math.log1p(-failure) / keys)) - 1e-11
        # P(round(N) >= T - 1) = Φ((3/2 - T) / scale)
        threshold = max(1, math.ceil(1.5 - scale * float(ndtri_exp(tail))))
        while log_ndtr((1.5 - threshold) / scale) > tail:
            threshold += 1
        options.append((threshold, multiplier))
    threshold, multiplier = min(options)
    return multiplier, threshold


def _either(epsilon: object, delta: object, own: object, threshold: object, name: str) -> None:
    given = (epsilon is not None, delta is not None, own is not None, threshold is not None)
    if given not in ((True, True, False, False), (False, False, True, True)):
        raise InvalidArgument(
            "epsilon, delta", (epsilon, delta), f"pass epsilon= and delta= in all, or {name}= and threshold="
        )


def _threshold(value: object) -> int:
    number = count("threshold", value, least=2)
    if number > 1 << 53:
        raise InvalidArgument("threshold", value, "pass a threshold up to 2^53, or a larger epsilon")
    return number


def _least(holds: Any) -> int:
    """The smallest integer >= 1 from which on `holds`."""
    low, high = 0, 1
    while not holds(high):
        low, high = high, 2 * high
        if high > 1 << 53:
            raise InvalidArgument("epsilon", high, "the threshold exceeds 2^53; pass a larger epsilon")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _log_end_mass(epsilon: float, end: int) -> float:
    """ln P(Z = end) of noise with P(Z = z) ∝ e^{-epsilon |z|} on -end..end."""
    return -epsilon * end + math.log(-math.expm1(-epsilon)) - _log_mass(epsilon, end)


def _log_mass(epsilon: float, end: int) -> float:
    """ln((1 - E) Σ_{|z| <= end} E^|z|) with E = e^{-epsilon}: ln(1 + E - 2 E^{end+1}) without its cancellation."""
    return math.log(-math.expm1(-epsilon * (end + 1)) - math.exp(-epsilon) * math.expm1(-epsilon * end))


def laplace_threshold(epsilon: float, log_failure: float) -> int:
    """The smallest t >= 1 with P(Z >= t) certainly at most e^log_failure for discrete Laplace noise Z."""
    return _least(lambda least: log_laplace_tail(epsilon, least) <= log_failure - 1e-11)


def log_laplace_tail(epsilon: float, least: int) -> float:
    """ln P(Z >= least) of discrete Laplace noise of scale 1 / epsilon: e^{-epsilon least} / (1 + e^{-epsilon})."""
    if least <= 0:
        return math.log1p(-math.exp(log_laplace_tail(epsilon, 1 - least)))
    return -epsilon * least - math.log1p(math.exp(-epsilon))

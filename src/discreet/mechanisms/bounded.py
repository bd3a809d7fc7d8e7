"""Bounded noise for many answers: every answer is within the bound, always."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from discreet.accounting.cost import Cost
from discreet.accounting.evaluate import delta_reading
from discreet.arguments import count, positive, unit_fraction
from discreet.errors import CertificateError, InvalidArgument
from discreet.mechanisms.additive import LatticeAdditive
from discreet.mechanisms.chernoff import is_within, smallest
from discreet.mechanisms.lattice import Lattice
from discreet.mechanisms.sensitivity import sensitivity_of
from discreet.mechanisms.weights import WeightedNoise

if TYPE_CHECKING:
    from discreet.noise import Generator

__all__ = ["BoundedNoise"]

_FINENESS = 4
_MOST_STEPS = 20_000
_POWERS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64)


@dataclass(frozen=True, init=False, repr=False)
class BoundedNoise(LatticeAdditive):
    r"""Noise of density (1 - (x / bound)^2)^power on the lattice: no answer is further off than the bound, ever.

    For many answers at once. With Gaussian noise the largest of d errors exceeds the typical one by sqrt(2 ln d);
    smooth noise on an interval keeps all of them within O(sqrt(d ln(1/delta)) / epsilon) with certainty
    [Dagan and Kur 2022]. The noise here is of the same kind with a simpler density: its masses (r^2 - k^2)^power for
    |k| < r are whole numbers and log-concave, so the pair at the largest change is dominating, exactly and finitely.

    One person may change `coordinates` numbers by at most `sensitivity` each (the l-infinity sensitivity). The ends of
    the supports of neighbours differ, so there is a delta but no pure epsilon. Pass `bound` and `power`, or `epsilon`
    and `delta` for the smallest bound, to a few percent, that meets them. For a single answer
    truncated Laplace noise has a smaller bound; this noise is for many.

    >>> from discreet.mechanisms import BoundedNoise
    >>> noise = BoundedNoise(bound=40.0, power=16, sensitivity=1)
    >>> abs(noise.release(100.0) - 100.0) < 40, noise.cost.epsilon(delta=1e-6) < 1
    (True, True)
    """

    kind: ClassVar[str] = "bounded_noise"
    bound: float
    power: int
    coordinates: int
    granularity: float

    def __init__(
        self,
        *,
        sensitivity: float,
        bound: float | None = None,
        power: int | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        coordinates: int = 1,
        granularity: float | None = None,
        adjacency: str = "add-remove",
    ) -> None:
        change = sensitivity_of("sensitivity", sensitivity)
        lattice = _default_lattice(Fraction(change)) if granularity is None else Lattice.of(granularity)
        number = count("coordinates", coordinates, least=1)
        shift = lattice.l1_steps(Fraction(change), 1)
        if bound is not None and power is not None and epsilon is None and delta is None:
            steps = math.floor(Fraction(positive("bound", bound)) / lattice.step)
            exponent = count("power", power, least=1)
        elif bound is None and power is None and epsilon is not None and delta is not None:
            steps, exponent = _calibrated(positive("epsilon", epsilon), unit_fraction("delta", delta), number, shift)
        else:
            raise InvalidArgument(
                "bound, power, epsilon, delta",
                (bound, power, epsilon, delta),
                "pass bound and power, or epsilon and delta",
            )
        if not shift < steps <= _MOST_STEPS or exponent > 64:
            raise InvalidArgument(
                "bound",
                bound,
                f"pass a bound of more than {shift} and at most {_MOST_STEPS} steps of {lattice.granularity!r}, by "
                "way of granularity if need be, and a power of at most 64",
            )
        self._set(
            bound=steps * lattice.granularity,
            power=exponent,
            sensitivity=change,
            coordinates=number,
            granularity=lattice.granularity,
            adjacency=adjacency,
        )

    @cached_property
    def lattice(self) -> Lattice:
        """The lattice of all possible outputs."""
        return Lattice.of(self.granularity)

    @cached_property
    def _noise(self) -> WeightedNoise:
        return _noise(math.floor(Fraction(self.bound) / self.lattice.step), self.power)

    @property
    def cost(self) -> Cost:
        """The finite pair at the largest change, for every coordinate that one person may change."""
        shift = self.lattice.l1_steps(Fraction(self.sensitivity), 1)
        return self.coordinates * Cost.from_pair(*self._noise.pair(shift), adjacency=self.adjacency)

    def error(self, confidence: float = 1.0, *, dimension: int | None = None, simultaneous: bool = False) -> float:
        """The half-width that holds with this probability; with certainty, the default, for all coordinates at once."""
        if confidence == 1:
            return (len(self._noise.weights) - 1 + self._rounding) * self._unit
        return super().error(confidence, dimension=dimension, simultaneous=simultaneous)

    def _draw(self, dimension: int, shape: tuple[int, ...] | None, generator: Generator | None) -> Any:
        return self._noise.draw(shape, generator)

    def _reach(self, miss: float, dimension: int) -> int:
        return self._noise.reach(miss)

    def _moments(self, dimension: int) -> tuple[float, float]:
        return self._noise.moments()


@lru_cache(maxsize=16)
def _noise(steps: int, power: int) -> WeightedNoise:
    return WeightedNoise(tuple((steps * steps - k * k) ** power for k in range(steps)))


def _default_lattice(sensitivity: Fraction) -> Lattice:
    """The coarsest lattice with the sensitivity on it, if it has few steps to it; else 16 to 32 steps."""
    fine = Lattice.below(sensitivity, sensitivity, fineness=_FINENESS, widest=60)
    steps = sensitivity / fine.step
    if steps.denominator != 1:
        return fine
    zeros = (int(steps) & -int(steps)).bit_length() - 1
    return Lattice(fine.exponent + zeros)


@lru_cache(maxsize=64)
def _calibrated(epsilon: float, delta: float, coordinates: int, shift: int) -> tuple[int, int]:
    """Bound in steps and power: the best by Chernoff's bound first, then as small as the accountant certifies."""

    def is_likely(steps: float, power: int) -> bool:
        k = np.arange(-math.ceil(steps) + 1, math.ceil(steps))
        log_mass = power * np.log1p(-((k / math.ceil(steps)) ** 2))
        log_mass -= math.log(float(np.exp(log_mass).sum()))
        loss = log_mass[:-shift] - log_mass[shift:]
        return is_within(log_mass[:-shift], loss, times=coordinates, epsilon=epsilon, delta=delta)

    found: list[tuple[float, int]] = []
    for power in _POWERS:
        most = min(_MOST_STEPS, 1.2 * found[-1][0]) if found else _MOST_STEPS
        steps = smallest(partial(is_likely, power=power), shift + 1.0, most, tolerance=0.01)
        if steps is not None:
            found.append((steps, power))
        elif found:
            break  # past the best power the bound grows again
    if not found:
        raise InvalidArgument(
            "epsilon, delta", (epsilon, delta), f"this needs a bound of more than {_MOST_STEPS} steps; pass larger ones"
        )
    steps, power = min(found)

    def is_met(bound: float) -> bool:
        cost = coordinates * Cost.from_pair(*_noise(math.ceil(bound), power).pair(shift))
        return delta_reading(cost.parts, epsilon).upper <= delta

    tight = smallest(is_met, max(shift + 1.0, 0.8 * steps), 1.05 * steps, tolerance=0.02)
    if tight is None:
        raise CertificateError(
            "this bound", limit=f"an accountant above delta = {delta:g}", advice="Pass bound and power instead."
        )
    return math.ceil(tight), power

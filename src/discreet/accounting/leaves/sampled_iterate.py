r"""The last iterate of projected SGD with Poisson-sampled batches.

Look at the last m steps only, split the noise of each into two independent parts of variance (1 - theta) nu^2 and
theta nu^2, and let the first hide the record and the second the distance D at which the two runs may have started. The
release is then dominated by

    m sampled Gaussians of noise multiplier sqrt(1 - theta) nu / s,  and one Gaussian of mu = D w / (sqrt(theta) nu),

w = c^m / sqrt(1 + c^2 + ... + c^{2(m-1)}), for every m <= T and 0 < theta < 1; docs/proofs/iteration.md has the proof.
In Rényi divergences this is the bound of [Altschuler and Talwar 2022]. It does not depend on T.

Poisson batches have no largest size, and a step on a batch that is too large may expand distances. `excess` is the
probability of that in one step; with probability m excess or less the bound says nothing, which is paid for as a leak.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from discreet.accounting.leaves.guarantees import Approximate, GaussianGuarantee
from discreet.accounting.leaves.leaf import LARGEST_EPSILON, Leaf, Rival
from discreet.accounting.leaves.noise import Gaussian
from discreet.accounting.leaves.random_stop import hidden_by
from discreet.accounting.leaves.sampled import Sampled
from discreet.arguments import count, nonnegative, positive, probability, unit_fraction
from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from discreet.accounting.leaves.leaf import Parts

__all__ = ["SampledIterate"]

_SHARES = np.linspace(0.02, 0.98, 49)


@dataclass(frozen=True)
class SampledIterate(Leaf):
    """T steps that contract by c <= 1, add noise nu and use the record, pushing by s, with probability `rate` each."""

    kind: ClassVar[str] = "sampled_iterate"
    can_be_sampled: ClassVar[bool] = False
    of_one_run: ClassVar[bool] = True
    steps: int
    rate: float
    contraction: float
    noise: float
    push: float
    diameter: float
    excess: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", count("steps", self.steps, least=1))
        object.__setattr__(self, "rate", unit_fraction("rate", self.rate))
        object.__setattr__(self, "contraction", nonnegative("contraction", self.contraction))
        if self.contraction > 1:
            raise InvalidArgument("contraction", self.contraction, "pass a number between 0 and 1")
        for name in ("noise", "push", "diameter"):
            object.__setattr__(self, name, positive(name, getattr(self, name)))
        object.__setattr__(self, "excess", probability("excess", self.excess))
        if self.push / self.noise > LARGEST_EPSILON / 10:
            raise InvalidArgument("noise", self.noise, "one step protects nobody; add noise")

    @property
    def multiplier(self) -> float:
        """The noise multiplier of one step, rounded down."""
        return self.noise / self.push * (1 - 2.0**-51)

    def _step(self, share: float) -> Leaf:
        """One sampled step whose noise has lost this share of its variance."""
        return Sampled(Gaussian(self.multiplier * math.sqrt(1 - share) * (1 - 2.0**-50)), self.rate)

    def _start(self, late: int, share: float) -> float:
        """mu of the Gaussian that hides the diameter over this many steps, with this share of their variance."""
        ratio = self.diameter / (self.noise * math.sqrt(share)) * (1 + 2.0**-49)
        if self.contraction == 0:
            return 1e-100
        mu = hidden_by(np.array([float(late)]), contraction=self.contraction, ratio=ratio * self.contraction)
        return float(mu[0])

    def since(self, late: int, share: float) -> Parts:
        """The parts that dominate the release, if only the last steps are counted."""
        mu = self._start(late, share)
        parts: list[tuple[Leaf, int]] = [(self._step(share), late), (GaussianGuarantee(max(mu, 1e-100)), 1)]
        if self.excess > 0:
            parts.append((Approximate(0.0, min(1.0, late * self.excess * (1 + 1e-15))), 1))
        return tuple(parts)

    def alternatives(self, *, epsilon: float | None, delta: float | None) -> tuple[Parts, ...]:
        """All steps composed, and the last steps from the diameter on, for the numbers of steps that look best."""
        every: Parts = ((Sampled(Gaussian(self.multiplier), self.rate), self.steps),)
        late, share, _ = self._planned
        if late >= self.steps:
            return (every,)
        likely = dict.fromkeys(min(max(1, round(late * scale)), self.steps) for scale in (1.0, 0.6, 1.6))
        return (every, *(self.since(number, share) for number in likely if self._start(number, share) < 500))

    @property
    def _planned(self) -> tuple[int, float, float]:
        """Number of steps, share of the variance and mu that are best in the central limit: a plan, not a bound."""
        return _plan(self)

    def pair(self) -> None:
        return None

    def witness(self) -> None:
        return None

    def rdp(self, order: float) -> float:
        """The least m S(sqrt(1 - theta) nu/s) + order D^2 w^2 / (2 theta nu^2) over m and theta; or all composed."""
        best = self.steps * Sampled(Gaussian(self.multiplier), self.rate).rdp(order)
        if self.excess > 0:  # a leak has no Rényi divergence
            return best
        for share in _SHARES.tolist():
            one = self._step(share).rdp(order)
            if not math.isfinite(one):
                continue
            start = self._start(1, share) ** 2 * order / 2
            late = math.sqrt(start / one) if one > 0 else self.steps
            for number in {math.floor(min(late, 1e15)), math.ceil(min(late, 1e15))}:
                steps = min(max(1, number), self.steps)
                best = min(best, (steps * one + order * self._start(steps, share) ** 2 / 2) * (1 + 1e-14))
        return best

    def if_released(self) -> Parts:
        return ((Sampled(Gaussian(self.multiplier), self.rate), self.steps),)

    def zcdp(self) -> float:
        return self.gdp() ** 2 / 2 * (1 + 1e-15)

    def gdp(self) -> float:
        """That of all steps without sampling."""
        return math.sqrt(self.steps) / self.multiplier * (1 + 1e-14)

    def pure_epsilon(self) -> float:
        return math.inf

    def rivals(self) -> tuple[Rival, ...]:
        every, *late = self.alternatives(epsilon=None, delta=None)
        share = self._planned[1]
        return (
            Rival("sampled composition", every, "there are too few steps for the start to be forgotten"),
            *(
                Rival(
                    "sampled iteration",
                    parts,
                    f"only the last {parts[0][1]} steps count, in which {share:.0%} of the noise hides a distance of "
                    f"{self.diameter:g} and the rest the record, whatever happened before",
                )
                for parts in late
            ),
        )

    def subject(self) -> str:
        return f"projected SGD with Poisson batches, {self.steps} steps"

    def describe(self) -> str:
        return f"sampled_iterate({self.steps} steps, rate={self.rate:.6g}, noise_multiplier={self.multiplier:.6g})"


@lru_cache(maxsize=256)
def _plan(leaf: SampledIterate) -> tuple[int, float, float]:
    """The least m q^2 (e^{1/sigma^2} - 1) + mu_D^2 over a grid of steps m and shares theta."""
    # the same numbers for every T, so that more steps never change a plan that does not need them
    numbers = np.unique(np.minimum(np.round(1.02 ** np.arange(math.ceil(math.log(leaf.steps, 1.02)) + 1)), leaf.steps))
    best = (leaf.steps, 0.5, math.inf)
    for share in _SHARES.tolist():
        exponent = min(600.0, 1 / (leaf.multiplier**2 * (1 - share)))
        sampled = numbers * leaf.rate**2 * math.expm1(exponent)
        ratio = leaf.diameter / (leaf.noise * math.sqrt(share))
        start = hidden_by(numbers, contraction=leaf.contraction, ratio=ratio)
        total = sampled + start**2
        index = int(np.argmin(total))
        if total[index] < best[2]:
            best = (int(numbers[index]), share, float(total[index]))
    composed = leaf.steps * leaf.rate**2 * math.expm1(min(600.0, leaf.multiplier**-2))
    return (leaf.steps, best[1], composed) if composed <= best[2] else best

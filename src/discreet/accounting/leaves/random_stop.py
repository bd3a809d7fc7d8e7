"""Projected noisy SGD that skips a random number of first records, or stops after a random number of steps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from discreet.accounting.leaves.guarantees import GaussianGuarantee
from discreet.accounting.leaves.leaf import LARGEST_EPSILON, Leaf, Rival
from discreet.accounting.pairs.mixture import GaussianMixturePair
from discreet.arguments import count, nonnegative, one_of, positive
from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.accounting.leaves.leaf import Parts
    from discreet.accounting.pair import Pair

    Reals = NDArray[np.float64]

__all__ = ["RandomStop", "hidden_by"]

_MOST = 1024
_EXACT = 256


def hidden_by(lengths: Reals, *, contraction: float, ratio: float) -> Reals:
    r"""mu of a record that k - 1 steps without it come after, for each k: (s/nu) c^{k-1} / sqrt(1 + ... + c^{2(k-1)}).

    Rounded up; `ratio` is s/nu.

    >>> hidden_by(np.array([1.0, 4.0]), contraction=1.0, ratio=2.0).round(9).tolist()
    [2.0, 1.0]
    """
    k = np.asarray(lengths, dtype=np.float64)
    if contraction == 1:
        return ratio / np.sqrt(k) * (1 + 1e-14)
    if contraction == 0:
        return np.where(k == 1, ratio, 1e-100)
    log_factor = math.log1p(contraction - 1) if contraction > 0.5 else math.log(contraction)
    with np.errstate(under="ignore"):
        total = np.expm1(2 * k * log_factor) / ((contraction - 1) * (contraction + 1))
        shrunk = np.exp((k - 1) * log_factor)
    margin = 1 + 1e-14 + 1e-15 * np.abs(k * log_factor)
    return np.maximum(ratio * shrunk / np.sqrt(total) * margin, 1e-100)


@dataclass(frozen=True)
class RandomStop(Leaf):
    r"""One pass over n records with a random end or start, seen from the record at `position`.

    'stop': the number of steps is uniform on 1 ... n; a record that was not reached is not seen, one that was is
    hidden by the steps since. 'skip': the first t0 records are left out, t0 uniform on 0 ... floor(n/2). Showing that
    number as well only helps an attacker, and leaves a mixture of Gaussian pairs with public weights.
    """

    kind: ClassVar[str] = "random_stop"
    can_be_sampled: ClassVar[bool] = False
    of_one_run: ClassVar[bool] = True
    scheme: str
    n: int
    position: int
    contraction: float
    noise: float
    push: float

    def is_of_position(self) -> bool:
        return self.n > 1

    def __post_init__(self) -> None:
        one_of("scheme", self.scheme, ("stop", "skip"))
        object.__setattr__(self, "n", count("n", self.n, least=1))
        object.__setattr__(self, "position", count("position", self.position, least=1))
        if self.position > self.n:
            raise InvalidArgument("position", self.position, f"positions run from 1 to {self.n}")
        object.__setattr__(self, "contraction", nonnegative("contraction", self.contraction))
        if self.contraction > 1:
            raise InvalidArgument("contraction", self.contraction, "pass a number between 0 and 1")
        object.__setattr__(self, "noise", positive("noise", self.noise))
        object.__setattr__(self, "push", positive("push", self.push))
        if self.n > 10**9:
            raise InvalidArgument("n", self.n, "pass at most 10^9 records")
        if self.gdp() > LARGEST_EPSILON:
            raise InvalidArgument(
                "noise", self.noise, f"one step has mu = {self.gdp():.6g}, which protects nobody; add noise"
            )

    @property
    def ratio(self) -> float:
        """mu of a single step, rounded up."""
        return self.push / self.noise * (1 + 2.0**-51)

    @cached_property
    def mixture(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Weights and mus, none below the true ones; more than 1024 are grouped, each group taking its largest mu."""
        later = self.n - self.position + 1
        if self.scheme == "skip":
            starts = self.n // 2 + 1
            mu = hidden_by(np.array([float(later)]), contraction=self.contraction, ratio=self.ratio)
            return (min(self.position, starts) / starts,), (float(mu[0]),)
        first = np.arange(1, min(later, _MOST if later <= _MOST else _EXACT) + 1)
        if later > _MOST:
            rest = np.unique(np.geomspace(_EXACT + 1, later + 1, _MOST - _EXACT).astype(np.int64))
            first = np.append(first, rest[:-1])
        counts = np.diff(np.append(first, later + 1))
        mus = hidden_by(first.astype(np.float64), contraction=self.contraction, ratio=self.ratio)
        return tuple((counts / self.n).tolist()), tuple(mus.tolist())

    def pair(self) -> Pair:
        return self._pair

    @cached_property
    def _pair(self) -> GaussianMixturePair:
        return GaussianMixturePair(*self.mixture)

    def witness(self) -> None:
        return None

    def pure_epsilon(self) -> float:
        return math.inf

    def gdp(self) -> float:
        return max(self.mixture[1])

    def if_released(self) -> Parts:
        return ((GaussianGuarantee(self.ratio), 1),)

    def zcdp(self) -> float:
        return self.gdp() ** 2 / 2 * (1 + 1e-15)

    def rivals(self) -> tuple[Rival, ...]:
        reached = math.fsum(self.mixture[0])
        what = "stops after a random number of steps" if self.scheme == "stop" else "skips a random number of records"
        return (
            Rival("composition", tuple(self.if_released()), "the record is always used and nothing comes after it"),
            Rival(
                "iteration",
                ((self, 1),),
                f"the run {what}, so the record is used with probability {reached:.6g}, and the steps since then hide "
                "it; the mean over all lengths is taken",
            ),
        )

    def subject(self) -> str:
        return f"{self.scheme}_pnsgd, record {self.position} of {self.n}"

    def describe(self) -> str:
        return f"{self.scheme}_pnsgd(record {self.position} of {self.n}, mu <= {self.gdp():.6g})"

"""Local reports that a shuffler made anonymous."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

from discreet.accounting.leaves.leaf import Leaf, finite_epsilon
from discreet.accounting.pairs.shuffled import ShuffledPair, shuffled_response
from discreet.arguments import count
from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from discreet.accounting.pair import Pair

__all__ = ["LARGEST_LOCAL", "LEAST_LOCAL", "MOST_REPORTS", "Shuffled"]

LARGEST_LOCAL = 10.0
LEAST_LOCAL = 1e-6
MOST_REPORTS = 10**9


@dataclass(frozen=True)
class Shuffled(Leaf):
    """n reports of the same `local_epsilon`-DP randomizer in random order [Feldman et al. 2023], replace-one."""

    kind: ClassVar[str] = "shuffled"
    can_be_sampled: ClassVar[bool] = False
    local_epsilon: float
    n: int

    def __post_init__(self) -> None:
        epsilon = finite_epsilon(self.local_epsilon)
        if epsilon > LARGEST_LOCAL:
            raise InvalidArgument(
                "local_epsilon", epsilon, f"the analysis covers reports of up to epsilon = {LARGEST_LOCAL:g} each"
            )
        if epsilon < LEAST_LOCAL:
            raise InvalidArgument(
                "local_epsilon",
                epsilon,
                f"below {LEAST_LOCAL:g} use the cost as it is, as Cost.shuffled does: no shuffler is needed",
            )
        object.__setattr__(self, "local_epsilon", epsilon)
        object.__setattr__(self, "n", count("n", self.n, least=1))
        if self.n > MOST_REPORTS:
            raise InvalidArgument("n", self.n, f"pass at most {MOST_REPORTS:.0e}: more reports cost no more than these")

    def pair(self) -> Pair:
        return _pair(self.local_epsilon, self.n)

    def witness(self) -> Pair | None:
        return _witness(self.local_epsilon, self.n)

    def pure_epsilon(self) -> float:
        return self.local_epsilon


@lru_cache(maxsize=32)
def _pair(epsilon: float, n: int) -> ShuffledPair:
    return ShuffledPair(epsilon, n)


@lru_cache(maxsize=32)
def _witness(epsilon: float, n: int) -> Pair:
    return shuffled_response(epsilon, n)

"""Poisson sampling of a leaf: each record takes part with probability `rate`, add-remove adjacency."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from discreet.accounting.leaves.of_sample import OfSample
from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from discreet.accounting.leaves.leaf import Leaf
    from discreet.accounting.pair import Pair

__all__ = ["Sampled"]


@dataclass(frozen=True)
class Sampled(OfSample):
    """The pair ((1-q) Q + q P, Q) for any dominating pair (P, Q) of the base [Zhu et al. 2022, Thm 11]."""

    kind: ClassVar[str] = "sampled"
    scheme: ClassVar[str] = "poisson"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.base.can_be_sampled:
            raise InvalidArgument(
                "cost",
                self.base.describe(),
                "sampling needs the dominating pair of a mechanism, and this cost is known only by a curve; "
                "describe the mechanism itself (for example Cost.gaussian) instead of its guarantee"
                if self.base.pair() is None
                else "its pair speaks of a replaced record, and a Poisson sample needs one for a record that joins or "
                "leaves; state the mechanism for 'add-remove' and sample it once, at the product of the rates",
            )

    def pair(self) -> Pair:
        base = self.base.pair()
        assert base is not None
        return base.sampled(self.rate)

    def is_tight(self) -> bool:
        return self.base.is_tight()

    def witness(self) -> Pair | None:
        base = self.base.witness()
        return None if base is None else base.sampled(self.rate)

    def pure_epsilon(self) -> float:
        epsilon = self.base.pure_epsilon()
        if epsilon == math.inf:
            return math.inf
        grown = math.log1p(self.rate * math.expm1(epsilon)) if epsilon < 700 else epsilon + math.log(self.rate)
        return max(grown, -math.log1p(self.rate * math.expm1(-epsilon))) * (1 + 1e-15)

    def zcdp(self) -> float:
        return min(self.base.zcdp(), super().zcdp())

    def gdp(self) -> float:
        return min(self.base.gdp(), super().gdp())

    def sampled(self, rate: float) -> Leaf:
        return Sampled(self.base, self.rate * rate)

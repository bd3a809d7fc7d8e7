"""Poisson sampling of a leaf: each record takes part with probability `rate`, add-remove adjacency."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from discreet.accounting.leaves.leaf import Leaf, check_fields, leaf_from_fields
from discreet.arguments import unit_fraction
from discreet.errors import InvalidArgument, StorageError

if TYPE_CHECKING:
    from discreet.accounting.pair import Pair

__all__ = ["Sampled"]


@dataclass(frozen=True)
class Sampled(Leaf):
    """The pair ((1-q) Q + q P, Q) for any dominating pair (P, Q) of the base [Zhu et al. 2022, Thm 11]."""

    kind: ClassVar[str] = "sampled"
    base: Leaf
    rate: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", unit_fraction("rate", self.rate))
        if not self.base.can_be_sampled:
            raise InvalidArgument(
                "cost",
                self.base.describe(),
                "sampling needs the dominating pair of a mechanism, and this cost is known only by a curve; "
                "describe the mechanism itself (for example Cost.gaussian) instead of its guarantee",
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

    def fields(self) -> dict[str, Any]:
        return {"base": {"kind": self.base.kind, **self.base.fields()}, "rate": self.rate}

    @classmethod
    def from_fields(cls, values: dict[str, Any]) -> Leaf:
        check_fields("a 'sampled' entry", values, ["base", "rate"])
        base = values["base"]
        if not isinstance(base, dict):
            raise StorageError("the field 'base' of a 'sampled' entry must be a part: an object with a 'kind'.")
        inner = dict(base)
        return cls(leaf_from_fields(inner.pop("kind", None), inner), values["rate"])

    def describe(self) -> str:
        return f"{self.base.describe()}.sampled(rate={self.rate:.6g})"

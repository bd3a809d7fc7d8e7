"""What all leaves on samples share: the leaf that is sampled, the rate, and how both are stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from discreet.accounting.leaves.leaf import Leaf, check_fields, leaf_from_fields
from discreet.arguments import unit_fraction
from discreet.errors import StorageError

__all__ = ["OfSample"]


@dataclass(frozen=True)
class OfSample(Leaf):
    """`base` on a sample that holds each record with probability `rate`; a subclass says how it is drawn."""

    scheme: ClassVar[str]
    base: Leaf
    rate: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", unit_fraction("rate", self.rate))

    def fields(self) -> dict[str, Any]:
        return {"base": {"kind": self.base.kind, **self.base.fields()}, "rate": self.rate}

    @classmethod
    def from_fields(cls, values: dict[str, Any]) -> Leaf:
        check_fields(f"a '{cls.kind}' entry", values, ["base", "rate"])
        base = values["base"]
        if not isinstance(base, dict):
            raise StorageError(f"the field 'base' of a '{cls.kind}' entry must be a part: an object with a 'kind'.")
        inner = dict(base)
        return cls(leaf_from_fields(inner.pop("kind", None), inner), values["rate"])

    def describe(self) -> str:
        scheme = "" if self.scheme == "poisson" else f", scheme='{self.scheme}'"
        return f"{self.base.describe()}.sampled(rate={self.rate:.6g}{scheme})"

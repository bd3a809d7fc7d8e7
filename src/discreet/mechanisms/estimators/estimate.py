"""What an estimator releases: a value, how far noise may have moved it, and what it cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arguments import unit_fraction
from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import DTypeLike, NDArray

    from discreet.accounting.cost import Cost
    from discreet.mechanisms.estimators.estimator import Estimator

__all__ = ["Estimate"]


@dataclass(frozen=True, repr=False, eq=False)
class Estimate:
    """A private value with error bars; everything here is computed from the released `statistics` alone.

    `value` is a float or an array; `float(estimate)`, `numpy.asarray(estimate)`, indexing and iteration read it.
    `interval(confidence)` holds the quantity named by `estimator.covers` with this probability; it does not account for
    what `estimator.leaves_out` says.
    """

    estimator: Estimator
    statistics: Mapping[str, Any]
    """The released numbers, by name: a function of the data only through the mechanisms that `cost` counts."""

    @property
    def value(self) -> Any:
        """The estimate: a float, or an array of floats."""
        value = self.estimator.value_of(self.statistics)
        return value if np.ndim(value) else float(value)

    def interval(self, confidence: float = 0.95) -> tuple[Any, Any]:
        """Lower and upper end: two floats, or two arrays that hold entry by entry with this probability each."""
        return self.estimator.interval_of(self.statistics, unit_fraction("confidence", confidence))

    @property
    def cost(self) -> Cost:
        """What the release revealed about one person."""
        return self.estimator.cost

    def __float__(self) -> float:
        value = self.value
        if np.size(value) != 1:
            raise InvalidArgument("estimate", f"{np.size(value)} values", "one value is a float; read .value")
        return float(np.asarray(value).item())

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.value, dtype=dtype or np.float64)

    def __getitem__(self, place: Any) -> Any:
        return np.asarray(self.value)[place]

    def __iter__(self) -> Iterator[Any]:
        return iter(np.atleast_1d(np.asarray(self.value)))

    def __len__(self) -> int:
        return len(np.atleast_1d(np.asarray(self.value)))

    def __repr__(self) -> str:
        low, high = self.interval(0.95)
        value = self.value
        name = type(self.estimator).__name__
        if np.ndim(value) == 0:
            return f"<{name} {float(value):.6g}, 95 % in [{float(low):.6g}, {float(high):.6g}]>"
        flat = [np.asarray(part, dtype=float).ravel() for part in (value, low, high)]
        shown = "; ".join(f"{v:.6g} in [{a:.6g}, {b:.6g}]" for v, a, b in list(zip(*flat, strict=True))[:4])
        more = "; …" if flat[0].size > 4 else ""
        return f"<{name} of shape {np.shape(value)}, 95 % each: {shown}{more}>"

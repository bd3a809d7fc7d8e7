"""The truncated geometric mechanism: answers that stay within the range of the query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from discreet.accounting.cost import Cost
from discreet.errors import InvalidArgument
from discreet.mechanisms.laplace import DiscreteLaplace
from discreet.mechanisms.values import integers

if TYPE_CHECKING:
    from discreet.noise import Generator

__all__ = ["TruncatedGeometric"]

_END = 1 << 62


@dataclass(frozen=True, init=False, repr=False)
class TruncatedGeometric(DiscreteLaplace):
    r"""Two-sided geometric noise, and an answer clamped to the range [lower, upper] of the query [Ghosh et al. 2012].

    For counts this is universally optimal: whatever a user's prior and loss, after a suitable function of the answer no
    other epsilon-DP mechanism serves that user better. The value is clamped to the range before noise is added, so that
    nothing outside it counts, and the answer after, which is a function of the answer and costs nothing. `sensitivity`
    is the l1 sensitivity, for one count or a vector of counts with the same range.

    `error` is that of the noise before the answer is clamped, and the width of the range at most.

    >>> from discreet.mechanisms import TruncatedGeometric
    >>> share = TruncatedGeometric(epsilon=0.1, lower=0, upper=20)
    >>> 0 <= share.release(0) <= 20, share.error(0.95)
    (True, 20.0)
    """

    kind: ClassVar[str] = "truncated_geometric"
    lower: int
    upper: int

    def __init__(
        self,
        *,
        lower: int,
        upper: int,
        epsilon: float | None = None,
        sensitivity: int = 1,
        noise_multiplier: float | None = None,
        scale: float | None = None,
        adjacency: str = "add-remove",
    ) -> None:
        super().__init__(
            epsilon=epsilon,
            sensitivity=sensitivity,
            noise_multiplier=noise_multiplier,
            scale=scale,
            adjacency=adjacency,
        )
        ends = [integers(end, argument=name) for name, end in (("lower", lower), ("upper", upper))]
        if not all(isinstance(end, int) and abs(end) <= _END for end in ends) or not ends[0] < ends[1]:
            raise InvalidArgument("lower, upper", (lower, upper), "pass whole numbers lower < upper up to 2^62")
        self._set(lower=ends[0], upper=ends[1])

    @property
    def cost(self) -> Cost:
        """That of the discrete Laplace mechanism, which clamping keeps as long as the range is not below the change."""
        return Cost.discrete_laplace(self.noise_multiplier, sensitivity=self.sensitivity, adjacency=self.adjacency)

    def release(self, value: Any, *, generator: Generator | None = None) -> Any:
        """The clamped value plus noise, clamped: an int for an int, an int64 array for an array."""
        return self._clamped(super().release(self._clamped(integers(value)), generator=generator))

    def releases(self, value: Any, n: int, *, generator: Generator | None = None) -> Any:
        """n independent releases of one value: int64 of shape (n, *shape of the value)."""
        return self._clamped(super().releases(self._clamped(integers(value)), n, generator=generator))

    def _clamped(self, value: Any) -> Any:
        if isinstance(value, int):
            return min(self.upper, max(self.lower, value))
        return np.clip(value, self.lower, self.upper)

    def examples(self) -> list[tuple[Any, Any]]:
        """One person moves a count in the middle of the range by all of the sensitivity."""
        width = min(self.sensitivity, self.upper - self.lower)
        start = (self.lower + self.upper - width) // 2
        return [(start, start + width)]

    @property
    def error_slack(self) -> float:
        """Clamping the answer can only bring it nearer, by the width of the range at most."""
        return float(self.upper - self.lower)

    def _reach(self, miss: float, dimension: int) -> int:
        return min(super()._reach(miss, dimension), self.upper - self.lower)

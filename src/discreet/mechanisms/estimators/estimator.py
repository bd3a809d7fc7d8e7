"""What every estimator is: a mechanism that takes a whole data set and answers with an `Estimate`."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import InitVar, dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from discreet.accounting.cost import Cost
from discreet.arguments import count, unit_fraction
from discreet.errors import InvalidArgument
from discreet.mechanisms.estimators.estimate import Estimate
from discreet.mechanisms.estimators.noise_level import noise_level
from discreet.mechanisms.mechanism import Mechanism
from discreet.mechanisms.values import blank_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from discreet.mechanisms.additive import Additive
    from discreet.noise import Generator

__all__ = ["Estimator", "NoisyStatistics"]


@dataclass(frozen=True, repr=False)
class Estimator(Mechanism):
    """Data in, `Estimate` out.

    Under "add-remove" neighbours have one row more or less, and the number of rows is private; under "replace-one" one
    row differs, and the number of rows is public.
    """

    covers: ClassVar[str] = "the noise"
    """What `Estimate.interval` accounts for."""

    leaves_out: ClassVar[str] = "the sampling error, if the rows are a sample"
    """What it does not account for."""

    @abstractmethod
    def release(self, value: Any, *, generator: Generator | None = None) -> Estimate:
        """The estimate from all rows; `generator` is for tests alone."""

    @abstractmethod
    def value_of(self, statistics: Mapping[str, Any]) -> Any:
        """The estimate as a function of the released statistics."""

    @abstractmethod
    def interval_of(self, statistics: Mapping[str, Any], confidence: float) -> tuple[Any, Any]:
        """Error bars as a function of the released statistics."""

    def error(self, confidence: float = 0.95) -> float:
        """The half-width of all intervals, for estimators where it is known before the release."""
        raise InvalidArgument(
            "confidence", confidence, f"the error of {type(self).__name__} depends on the data: see estimate.interval"
        )

    def bad_values(self) -> list[Any]:
        """Data that must be refused."""
        return [None, "seven", 1j, object(), {}, 7, 7.5, [[1, 2], [3]], ["a", "b"], [1, "two"], [[[1.0]]]]

    def __repr__(self) -> str:
        names = [made.name for made in fields(self)]
        order = sorted(names, key=lambda name: (name in ("noise", "noise_multiplier"), names.index(name)))
        shown = [
            f"{name}={getattr(self, name)!r}"
            for name in order
            if name != "adjacency" and getattr(self, name) is not None
        ]
        suffix = [f"adjacency={self.adjacency!r}"] if self.public_rows else []
        return f"{type(self).__name__}({', '.join(shown + suffix)})"

    @property
    def public_rows(self) -> bool:
        """Whether the number of rows is public: under "replace-one"."""
        return self.adjacency == "replace-one"


@dataclass(frozen=True, repr=False)
class NoisyStatistics(Estimator):
    """An estimator that adds noise to sums over the rows and computes everything else from the noisy sums.

    The noise is given in one of four ways: `epsilon` (Laplace noise), `epsilon` and `delta` (Gaussian noise), `rho`
    (Gaussian noise of that zCDP), or `noise_multiplier` with `noise`, "gaussian" or "laplace". It is the level of the
    whole release, whose sums share it; `cost` is the composition of theirs.
    """

    noises: ClassVar[tuple[str, ...]] = ("laplace", "gaussian")

    epsilon: InitVar[float | None] = field(default=None, kw_only=True)
    delta: InitVar[float | None] = field(default=None, kw_only=True)
    rho: InitVar[float | None] = field(default=None, kw_only=True)
    noise: str = field(default="", kw_only=True)
    noise_multiplier: float = field(default=0.0, kw_only=True)

    def __post_init__(self, epsilon: float | None, delta: float | None, rho: float | None) -> None:
        super().__post_init__()
        noise, multiplier = noise_level(
            self.noises,
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            noise=self.noise,
            noise_multiplier=self.noise_multiplier,
        )
        object.__setattr__(self, "noise", noise)
        object.__setattr__(self, "noise_multiplier", multiplier)
        self._validate()
        self.mechanisms  # noqa: B018 - what cannot be made is refused here

    @abstractmethod
    def _validate(self) -> None:
        """Check the fields and put them into canonical form."""

    @abstractmethod
    def _mechanisms(self) -> dict[str, Additive]:
        """The mechanisms, by the name of the statistic that each releases."""

    @abstractmethod
    def _exact(self, data: Any) -> dict[str, Any]:
        """The exact statistics of the data, by name."""

    @cached_property
    def mechanisms(self) -> dict[str, Additive]:
        """The mechanisms, by the name of the statistic that each releases."""
        return self._mechanisms()

    @property
    def cost(self) -> Cost:
        """The composition of the costs of all noisy statistics."""
        total = Cost.zero(adjacency=self.adjacency)
        for mechanism in self.mechanisms.values():
            total = total + mechanism.cost
        return total

    def check(self, value: Any) -> None:
        """Refuses what are no rows of the declared kind, by their dtype and width alone."""
        self._exact(blank_rows(value))

    def release(self, value: Any, *, generator: Generator | None = None) -> Estimate:
        """The estimate from all rows; `generator` is for tests alone."""
        exact = self._exact(value)
        noisy = {name: made.release(exact[name], generator=generator) for name, made in self.mechanisms.items()}
        return Estimate(self, {**self._public(exact), **noisy})

    def releases(self, value: Any, n: int, *, generator: Generator | None = None) -> Any:
        """The values of n independent estimates from the same rows, as an array; they cost n times what one costs."""
        number = count("n", n)
        exact = self._exact(value)
        noisy = {
            name: made.releases(exact[name], number, generator=generator) for name, made in self.mechanisms.items()
        }
        return self._values({**self._public(exact), **noisy}, number)

    def _public(self, exact: Mapping[str, Any]) -> dict[str, Any]:
        """The one statistic that may be shown as it is, where it is public."""
        return {"rows": exact["rows"]} if self.public_rows and "rows" in exact else {}

    def _values(self, statistics: Mapping[str, Any], n: int) -> NDArray[Any]:
        """The values of n estimates whose noisy statistics have n as their first axis."""
        rows = ({**statistics, **{name: statistics[name][i] for name in self.mechanisms}} for i in range(n))
        return np.array([self.value_of(row) for row in rows])

    def _error_of(self, statistic: str, confidence: float) -> float:
        return self.mechanisms[statistic].error(unit_fraction("confidence", confidence))


for _name in ("epsilon", "delta", "rho"):  # ways to say the noise, not attributes: read `cost`
    delattr(NoisyStatistics, _name)

"""Whoever is audited: a mechanism, or a function with the cost that it claims.

A mechanism needs `cost` and `release(value)`. What else it has is used where it is there:

| member | what it gives |
|---|---|
| `examples()` | pairs of neighbouring inputs, the worst ones it knows |
| `releases(value, n)` | n independent releases of the same value at once, as an array or a list |
| `noisier()` | the same mechanism with more noise |
| `bad_values()` | values that it must refuse |
| `to_dict()`, `from_dict()` | storing |
| `error(confidence)` | the half-width of its error |
| `error_slack` | by how much that may exceed the exact quantile |
| `granularity` | the power of two of which all its outputs are multiples |
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from discreet.accounting.cost import Cost
from discreet.audit.outcomes import stacked
from discreet.errors import InvalidArgument
from discreet.mechanisms.mechanism import Mechanism

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.noise.generator import Generator

__all__ = ["Subject", "takes"]


@dataclass(frozen=True, eq=False)
class Subject:
    """A mechanism or a function, asked in one way."""

    mechanism: Any
    name: str
    cost: Cost
    one: Callable[..., Any]
    many: Callable[..., Any] | None
    has_own_release: bool
    """Whether single releases are made otherwise than by asking for one of many."""

    @classmethod
    def of(cls, mechanism: object, release: object, releases: object, cost: object) -> Subject:
        """The subject that these arguments of `check` describe."""
        if mechanism is not None:
            if release is not None or releases is not None:
                raise InvalidArgument("release", release, "pass a mechanism, or a function and its cost, not both")
            one = getattr(mechanism, "release", None)
            many = getattr(mechanism, "releases", None)
            if getattr(type(mechanism), "releases", None) is Mechanism.releases:
                many = None  # it calls release n times, as is done here
            stated = getattr(mechanism, "cost", None) if cost is None else cost
            name = repr(mechanism)
        else:
            one, many, stated = release, releases, cost
            name = getattr(release or releases, "__name__", "the function")
        if not callable(one) and not callable(many):
            raise InvalidArgument(
                "mechanism",
                mechanism,
                "pass something with .release and .cost, or release=..., cost=... and inputs=(value, neighbour)",
            )
        if not isinstance(stated, Cost):
            raise InvalidArgument("cost", stated, "pass the claimed cost, such as cost=Cost.pure(1.0)")
        own = callable(one)
        if not callable(one):
            one = lambda value: many(value, 1)[0]  # type: ignore[misc]
        return cls(mechanism, name, stated, one, many if callable(many) else None, own)

    def draw(self, value: object, n: int, generator: Generator | None) -> NDArray[Any]:
        """n independent releases of this value, the first axis counting them."""
        if self.many is not None:
            drawn = stacked(self.many(value, n, **self._options(self.many, generator)))
        else:
            drawn = stacked([self.single(value, generator) for _ in range(n)])
        if len(drawn) != n:
            raise InvalidArgument(
                "releases", f"{len(drawn)} releases", f"releases(value, n) must return n = {n} of them"
            )
        return drawn

    def single(self, value: object, generator: Generator | None) -> Any:
        """One release."""
        return self.one(value, **self._options(self.one, generator))

    @property
    def takes_generator(self) -> bool:
        """Whether `release` can be given the generator to draw from."""
        return takes(self.one, "generator")

    @staticmethod
    def _options(function: Callable[..., Any], generator: Generator | None) -> dict[str, Any]:
        return {} if generator is None or not takes(function, "generator") else {"generator": generator}

    def pairs(self, inputs: object) -> list[tuple[Any, Any]]:
        """The neighbouring inputs that were passed, or those that the mechanism proposes."""
        if inputs is None:
            examples = getattr(self.mechanism, "examples", None)
            found = list(examples()) if callable(examples) else []
            if not found:
                raise InvalidArgument(
                    "inputs",
                    None,
                    f"{self.name} proposes no neighbouring inputs: pass inputs=(value, neighbour), two inputs that "
                    "differ in one person's data as much as possible",
                )
            return found
        if isinstance(inputs, tuple) and len(inputs) == 2:
            return [inputs]
        if isinstance(inputs, Sequence) and inputs and all(isinstance(x, tuple) and len(x) == 2 for x in inputs):
            return list(inputs)
        raise InvalidArgument("inputs", type(inputs).__name__, "pass a pair (value, neighbour) or a list of such pairs")


def takes(function: Callable[..., Any], name: str) -> bool:
    """Whether the function has an argument of this name."""
    try:
        return name in inspect.signature(function).parameters
    except (TypeError, ValueError):  # some builtins have no signature
        return False

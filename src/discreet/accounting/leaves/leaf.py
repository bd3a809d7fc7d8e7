"""What every leaf of the `Cost` algebra brings: its own mathematics, and nothing about composition or storage."""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from discreet.accounting.gaussian_dp import mu_of_pure
from discreet.arguments import positive
from discreet.deferred import load_all
from discreet.errors import InvalidArgument, StorageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from discreet.accounting.pair import Direction, Pair

__all__ = [
    "LARGEST_EPSILON",
    "Leaf",
    "Parts",
    "Rival",
    "check_fields",
    "decimal",
    "finite_epsilon",
    "leaf_from_fields",
    "rdp_of",
    "rounded_up",
]


Parts: TypeAlias = "Sequence[tuple[Leaf, int]]"
"""Leaves with how often each is used."""


@dataclasses.dataclass(frozen=True)
class Rival:
    """One of several bounds of the same release, as a composition that dominates it."""

    name: str
    parts: Parts | None
    """None if it protects nobody."""
    why: str
    """Why it is a bound, and why it may win, in words."""


@dataclasses.dataclass(frozen=True)
class Leaf(ABC):
    """One mechanism, or one guarantee, as the algebra sees it: frozen, hashable, validated when made.

    A subclass sets `kind` (its name in stored descriptions) and gives either dominating pairs or a Rényi curve.
    """

    kind: ClassVar[str]
    registry: ClassVar[dict[str, type[Leaf]]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "kind" in cls.__dict__:
            Leaf.registry[cls.kind] = cls

    can_be_sampled: ClassVar[bool] = True
    curve_adds: ClassVar[bool] = True
    """Whether an `rdp` of its own may know more than the pair does; False where it is computed from the pair."""
    of_one_run: ClassVar[bool] = False
    """Whether it is the last state of a run in which a record has its place: sampling would move the places."""

    def is_of_position(self) -> bool:
        """Whether it holds for the person at one place only, and another person's cost is another one."""
        return False

    @abstractmethod
    def pair(self) -> Pair | None:
        """A dominating pair of this leaf, tight where the class says so; None if only a Rényi curve is known."""

    def witness(self) -> Pair | None:
        """A pair that this leaf certainly allows: lower bounds are computed from it. The dominating pair if tight."""
        return self.pair()

    def witness_of(self, times: int) -> Pair | None:
        """The witness to be composed so many times; another one may reveal more than `witness` then."""
        return self.witness()

    def is_tight(self) -> bool:
        """Whether the dominating pair is itself allowed, so that lower and upper bounds meet."""
        return type(self).witness is Leaf.witness

    def rdp(self, order: float) -> float:
        """An upper bound of the Rényi divergence of this order (> 1), over both directions."""
        pair = self.pair()
        if pair is None:  # a leaf without a pair brings its own curve
            return math.inf
        return max(rdp_of(pair, order, direction) for direction in pair.directions())

    def orders(self) -> tuple[float, ...]:
        """Orders at which its Rényi curve has a step, so that a search over all real orders would pass them by."""
        return ()

    def pure_epsilon(self) -> float:
        """The largest loss, infinite if there is none."""
        pair = self.pair()
        if pair is None or pair.p_missing > 0 or pair.q_missing > 0:
            return math.inf
        low, high = pair.span
        return max(-low, high)

    def zcdp(self) -> float:
        """The smallest rho for which rho-zCDP is known; eps tanh(eps/2) for eps-DP [Harrison and Manurangsi 2025]."""
        epsilon = self.pure_epsilon()
        return epsilon * math.tanh(epsilon / 2) * (1 + 1e-15) if epsilon < math.inf else math.inf

    def gdp(self) -> float:
        """The smallest mu for which mu-GDP is known to hold; for eps-DP see `gaussian_dp.mu_of_pure`."""
        epsilon = self.pure_epsilon()
        return mu_of_pure(epsilon) if epsilon < math.inf else math.inf

    def alternatives(self, *, epsilon: float | None, delta: float | None) -> tuple[Parts, ...]:
        """Other compositions that dominate the same release, of which a reading takes the best; none if empty.

        A leaf without a pair that has alternatives is read by them alone.
        """
        return ()

    def if_released(self) -> Parts:
        """What the same run costs if every intermediate state is released; itself where there are none."""
        return ((self, 1),)

    def rivals(self) -> tuple[Rival, ...]:
        """The bounds of this release that are all valid, of which a reading takes the best; empty if there is one."""
        return ()

    def subject(self) -> str:
        """What was run, in words."""
        return self.describe()

    def sampled(self, rate: float) -> Leaf:
        """This leaf with every record taken independently with probability `rate`."""
        from discreet.accounting.leaves.sampled import Sampled

        return Sampled(self, rate)

    def grouped(self, size: int) -> Leaf:
        """This leaf against a change of `size` records, if it has a law of its own for that; see `Cost.grouped`."""
        raise InvalidArgument("size", size, f"{self.describe()} has no group law of its own")

    def fields(self) -> dict[str, Any]:
        """The arguments that make this leaf again, as JSON values."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    @classmethod
    def from_fields(cls, values: dict[str, Any]) -> Leaf:
        """The leaf with these arguments."""
        check_fields(f"a '{cls.kind}' entry", values, [field.name for field in dataclasses.fields(cls)])
        return cls(**values)

    def describe(self) -> str:
        """A short name with its parameters, for repr and explain."""
        inside = ", ".join(f"{name}={_short(value)}" for name, value in self.fields().items() if value is not None)
        return f"{self.kind}({inside})"


def decimal(value: float) -> Fraction:
    """The decimal number that a user wrote: 0.1 means one tenth, not the float next to it."""
    return Fraction(repr(value))


def rounded_up(exact: Fraction) -> float:
    """The smallest float that prints as a decimal >= exact, so that 1/10 is 0.1 and sums of tenths fit into a whole."""
    value = float(exact)
    while decimal(value) < exact:
        value = math.nextafter(value, math.inf)
    return value


LARGEST_EPSILON = 600.0
"""Larger single losses are refused: e^-600 is the last that floats hold with room to spare, and it protects nobody."""


def finite_epsilon(value: object) -> float:
    """The epsilon of a single mechanism: positive and at most LARGEST_EPSILON."""
    epsilon = positive("epsilon", value)
    if epsilon < 1e-100:
        raise InvalidArgument("epsilon", value, "pass 0 for no cost at all, or at least 1e-100")
    if epsilon > LARGEST_EPSILON:
        raise InvalidArgument(
            "epsilon", value, f"an epsilon above {LARGEST_EPSILON:g} protects nobody; pass a smaller one"
        )
    return epsilon


def rdp_of(pair: Pair, order: float, direction: Direction) -> float:
    """Upper bound of D_order in one direction: ln E e^{(order-1) L} / (order - 1)."""
    if pair.infinite(direction) > 0:
        return math.inf
    powers = direction.power(np.array([complex(order - 1)]))
    power = float(powers[0].real)
    if pair.node_count((power, power), 0.0) > 100_000:
        return math.inf
    value, error = pair.log_power_mean(powers)
    bound = (float(value[0].real) + float(error[0])) / (order - 1) * (1 + 1e-15)
    if not math.isfinite(bound):  # too far out to be computed: no claim
        return math.inf
    return max(0.0, bound)


def _short(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def check_fields(what: str, values: Mapping[str, Any], needed: Sequence[str]) -> None:
    """Refuses a stored object that lacks a field or has one too many, naming it and the closest known one."""
    missing = [name for name in needed if name not in values]
    unknown = [name for name in values if name not in needed]
    if not (missing or unknown):
        return
    problems = []
    if missing:
        problems.append(f"lacks {_fields(missing)}")
    if unknown:
        import difflib

        close = difflib.get_close_matches(str(unknown[0]), missing or needed, n=1)
        hint = f" (did you mean '{close[0]}'?)" if close else ""
        problems.append(f"has {_fields(unknown)}, which nobody knows{hint}")
    raise StorageError(f"{what} {' and '.join(problems)}; it needs {', '.join(map(repr, needed))} and nothing else.")


def _fields(names: Sequence[object]) -> str:
    return f"the field{'s' if len(names) > 1 else ''} {', '.join(map(repr, names))}"


def leaf_from_fields(kind: object, values: dict[str, Any]) -> Leaf:
    """The leaf of this kind; unknown kinds are refused with the list of known ones."""
    known = Leaf.registry.get(kind) if isinstance(kind, str) else None
    if known is None:
        load_all("discreet.accounting.leaves")
        known = Leaf.registry.get(kind) if isinstance(kind, str) else None
    if kind is None:
        raise StorageError(f"a part lacks the field 'kind'; known kinds are {', '.join(sorted(Leaf.registry))}.")
    if known is None:
        raise StorageError(
            f"the description holds a part of unknown kind {kind!r}; known are {', '.join(sorted(Leaf.registry))}. "
            "Upgrade discreet, or check that the file was written by Cost.to_dict()."
        )
    try:
        return known.from_fields(values)
    except InvalidArgument as error:
        raise StorageError(f"a '{kind}' entry has an invalid value: {error}") from error
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        if isinstance(error, StorageError):
            raise
        raise StorageError(f"a '{kind}' entry is malformed: {error}") from error

"""Which keys to show: the set of groups in the data, without giving away anyone who is alone in one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, overload

from discreet.accounting import Cost
from discreet.accounting.leaves.leaf import finite_epsilon
from discreet.arguments import ADJACENCIES, count, one_of, unit_fraction
from discreet.errors import InvalidArgument
from discreet.mechanisms.counted import CountedKeys, neighbouring_counts
from discreet.mechanisms.keeping import Keeping, at_most
from discreet.mechanisms.mechanism import Mechanism
from discreet.noise.generator import chosen_generator

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from numpy.typing import NDArray

    from discreet.noise import Generator

__all__ = ["KeySelection", "changed_keys", "per_key"]

_LARGEST_KEYS = 10**6


@dataclass(frozen=True, init=False, repr=False)
class KeySelection(Mechanism):
    """The keys of a table, each kept by an independent coin whose probability is the best possible for its count.

    Every person has at most `keys_per_unit` keys and counts once in each. A key that n people have is kept with
    probability π_n, the largest that (key_epsilon, key_delta)-DP allows [Desfontaines et al. 2022]; a key that
    nobody has is never shown. Adding or removing a person changes the coins of at most `keys_per_unit` keys, replacing
    one of at most twice as many, and their costs are composed.

    Pass the total `epsilon` and `delta`, which are divided among the keys so that large groups are kept from the
    smallest count on; or pass `key_epsilon` and `key_delta` yourself.

    >>> selection = KeySelection(epsilon=1.0, delta=1e-6)
    >>> [round(selection.probability_of_keeping(n), 6) for n in (0, 1, 2, 14, 28)]
    [0.0, 1e-06, 4e-06, 0.699887, 1.0]
    >>> selection.release({"Paris": 4000, "Oslo": 700, "a village": 1})  # doctest: +SKIP
    ['Oslo', 'Paris']
    """

    kind: ClassVar[str] = "key_selection"

    key_epsilon: float
    key_delta: float
    keys_per_unit: int

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        keys_per_unit: int = 1,
        key_epsilon: float | None = None,
        key_delta: float | None = None,
        adjacency: str = "add-remove",
    ) -> None:
        one_of("adjacency", adjacency, ADJACENCIES)
        keys = keys_of_a_unit(keys_per_unit)
        if (
            (epsilon is None) != (delta is None)
            or (key_epsilon is None) != (key_delta is None)
            or ((epsilon is None) == (key_epsilon is None))
        ):
            raise InvalidArgument(
                "epsilon, delta", (epsilon, delta), "pass epsilon= and delta= in all, or key_epsilon= and key_delta="
            )
        if epsilon is not None:
            key_epsilon, key_delta = per_key(epsilon, delta, changed_keys(keys, adjacency))
        self._set(
            key_epsilon=key_level(key_epsilon),
            key_delta=key_failure(key_delta),
            keys_per_unit=keys,
            adjacency=adjacency,
        )

    @property
    def cost(self) -> Cost:
        """(key_epsilon, key_delta) for each key that one person can change."""
        return changed_keys(self.keys_per_unit, self.adjacency) * Cost.approximate(
            self.key_epsilon, self.key_delta, adjacency=self.adjacency
        )

    def examples(self) -> list[tuple[Any, Any]]:
        """One person's keys: nobody else's, and those of a few."""
        return [*neighbouring_counts(self.keys_per_unit, self.adjacency, max(1, self._keeping.least(0.5)))]

    def noisier(self) -> KeySelection:
        """Half the level of every key."""
        return KeySelection(
            key_epsilon=self.key_epsilon / 2,
            key_delta=self.key_delta / 2,
            keys_per_unit=self.keys_per_unit,
            adjacency=self.adjacency,
        )

    @cached_property
    def _keeping(self) -> Keeping:
        return Keeping(at_most(self.key_epsilon), at_most(self.key_delta))

    def probability_of_keeping(self, n: int) -> float:
        """π_n, the probability that a key which n people have is kept."""
        return self._keeping.probability(count("n", n))

    def error(self, confidence: float = 0.95) -> float:
        """The count from which on a key is kept with at least this probability; smaller groups may be missing."""
        return float(self._keeping.least(unit_fraction("confidence", confidence)))

    def check(self, value: Any) -> None:
        """Refuses what is neither a mapping of keys to counts nor a pair of both."""
        CountedKeys.check(value)

    @overload
    def release(self, value: Mapping[Any, int], *, generator: Generator | None = None) -> list[Hashable]: ...

    @overload
    def release(
        self,
        value: tuple[Sequence[Any] | NDArray[Any], Sequence[int] | NDArray[Any]],
        *,
        generator: Generator | None = None,
    ) -> NDArray[Any]: ...

    def release(self, value: Any, *, generator: Generator | None = None) -> Any:
        """The kept keys of {key: count}, as a list, or of a pair (keys, counts), as an array: sorted, else shuffled."""
        counted = CountedKeys.of(value)
        source = chosen_generator(generator)
        kept = self._keeping.draw(counted.counts, source)
        keys = counted.shown(counted.chosen(kept, source))
        return keys.tolist() if counted.is_mapping else keys


def keys_of_a_unit(value: object) -> int:
    """The largest number of keys of one person."""
    number = count("keys_per_unit", value, least=1)
    if number > _LARGEST_KEYS:
        raise InvalidArgument("keys_per_unit", value, f"pass at most {_LARGEST_KEYS}: keep fewer keys of every person")
    return number


def key_level(value: object) -> float:
    """An epsilon for one key."""
    epsilon = finite_epsilon(value)
    if epsilon < 1e-12:
        raise InvalidArgument("key_epsilon", value, "pass at least 1e-12 for each key")
    return epsilon


def key_failure(value: object) -> float:
    """A delta for one key."""
    delta = unit_fraction("key_delta", value)
    if delta < 1e-300:
        raise InvalidArgument(
            "key_delta", value, "pass at least 1e-300 for each key: with no delta no key can be shown"
        )
    return delta


def changed_keys(keys_per_unit: int, adjacency: str) -> int:
    """How many counts change by one between neighbours: those of the person who leaves and of the one who comes."""
    return keys_per_unit if adjacency == "add-remove" else 2 * keys_per_unit


def per_key(epsilon: object, delta: object, keys: int) -> tuple[float, float]:
    """(epsilon, delta) of each of `keys` independent choices whose composition is (epsilon, delta)-DP.

    Equal shares, δ_key = 1 - (1 - δ)^{1/keys}, always do. For many keys it is better to keep a half of δ for the
    composition and to take the largest ε_key that the certified composition allows. The division that keeps half of
    all groups from the smaller count on, about ln(ε_key / δ_key) / ε_key, is taken.
    """
    total, failure = finite_epsilon(epsilon), key_failure(delta)
    if keys == 1:
        return total, failure
    options = []
    for share in (1.0, 0.5):
        key_delta = -math.expm1(math.log1p(-failure * share) / keys) * (1 - 1e-12)
        key_epsilon = total / keys * (1 - 1e-12) if share == 1 else _largest_level(total, failure, key_delta, keys)
        half = math.log(max(1.0, math.tanh(key_epsilon / 2) / key_delta)) / key_epsilon
        options.append((half, key_epsilon, key_delta))
    _, key_epsilon, key_delta = min(options)
    return key_level(key_epsilon), key_failure(key_delta)


def _largest_level(epsilon: float, delta: float, key_delta: float, keys: int) -> float:
    """The largest ε for which `keys` mechanisms of level (ε, key_delta) compose to (epsilon, delta)."""
    from discreet.accounting import calibrate

    return 1 / calibrate(lambda inverse: keys * Cost.approximate(1 / inverse, key_delta), epsilon=epsilon, delta=delta)

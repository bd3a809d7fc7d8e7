"""The last iterate of a noisy contraction: hidden states, one release."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from discreet.accounting.iteration.process import Process
from discreet.accounting.iteration.runs import Runs
from discreet.accounting.leaves.contracted import Contracted
from discreet.accounting.leaves.guarantees import GaussianGuarantee
from discreet.accounting.leaves.leaf import LARGEST_EPSILON, Leaf, Rival, check_fields, decimal, rounded_up
from discreet.accounting.pairs.gaussian import GaussianPair
from discreet.errors import InvalidArgument, StorageError

if TYPE_CHECKING:
    from discreet.accounting.leaves.leaf import Parts
    from discreet.accounting.pair import Pair

__all__ = ["LastIterate"]

_NOTHING = 0.01
"""Contraction of total variation by less than this is not worth a reading."""

_FIELDS = ("name", "contraction", "noise", "push", "diameter")


@dataclass(frozen=True, repr=False)
class LastIterate(Leaf):
    """The last state of a `Process`: mu-GDP with the mu of its convex program [Bok et al. 2024].

    The description is kept, not the mu: a stored cost is solved again when it is read.
    """

    kind: ClassVar[str] = "last_iterate"
    can_be_sampled: ClassVar[bool] = False
    of_one_run: ClassVar[bool] = True
    process: Process
    everybody: bool = False
    """Whether this is the largest mu of all places: then a bound that holds for this place alone is not read."""

    def __post_init__(self) -> None:
        if not isinstance(self.process, Process):
            raise InvalidArgument("process", self.process, "pass a Process, or use the functions of last_iterate")
        if not 0 < self.mu <= LARGEST_EPSILON:
            raise InvalidArgument(
                "process",
                self.process.name,
                f"its mu is {self.mu:.6g}, and a mu above {LARGEST_EPSILON:g} protects nobody; add noise"
                if self.mu > 0
                else "no step uses the record: that costs nothing, Cost.zero()",
            )

    def is_of_position(self) -> bool:
        return len(self.process.push) > 1  # not every step uses the record alike

    @cached_property
    def mu(self) -> float:
        """The mu of the whole process."""
        return max(self.process.mu, 1e-100) if self.process.touched else 0.0

    def pair(self) -> Pair:
        return GaussianPair(self.mu)

    def witness(self) -> Pair | None:
        """What quadratic losses reach; nothing is known from below on a bounded set."""
        attained = min(self.process.attained, self.mu)
        return GaussianPair(attained) if attained > 1e-100 else None

    def alternatives(self, *, epsilon: float | None, delta: float | None) -> tuple[Parts, ...]:
        """On a bounded set: how the steps after the last use contract hockey-stick divergences."""
        if self._contracted is None:
            return ()
        box = self._contracted.box(epsilon=epsilon, delta=delta)
        return (((self._contracted, 1),), *([] if box is None else [((box, 1),)]))

    @cached_property
    def _contracted(self) -> Contracted | None:
        since = None if self.everybody else self.process.since_last_use()
        if since is None or sum(count * math.erfc(ratio / 2**1.5) for count, ratio in since[1]) < _NOTHING:
            return None
        return Contracted(*since) if since[0] <= LARGEST_EPSILON else None

    def if_released(self) -> Parts:
        return ((GaussianGuarantee(min(self.process.composition, LARGEST_EPSILON)), 1),)

    def zcdp(self) -> float:
        return rounded_up(decimal(self.mu) ** 2 / 2)

    def gdp(self) -> float:
        return self.mu

    def pure_epsilon(self) -> float:
        return math.inf

    def rivals(self) -> tuple[Rival, ...]:
        process = self.process
        bounds = [
            (process.composition, "composition", process.why_composition()),
            (process.solution.mu, process.program, process.why_program()),
        ]
        found = [
            Rival(name, ((GaussianGuarantee(max(mu, 1e-100)), 1),) if mu <= LARGEST_EPSILON else None, why)
            for mu, name, why in bounds
        ]
        return (*found, *self._contracted.rivals()[1:]) if self._contracted is not None else tuple(found)

    def subject(self) -> str:
        return self.process.name

    def fields(self) -> dict[str, Any]:
        values: dict[str, Any] = {name: getattr(self.process, name) for name in _FIELDS}
        for name in ("contraction", "noise", "push"):
            values[name] = [list(run) for run in values[name]]
        return {**values, "everybody": True} if self.everybody else values

    @classmethod
    def from_fields(cls, values: dict[str, Any]) -> Leaf:
        everybody = values.pop("everybody", False)
        check_fields("a 'last_iterate' entry", values, _FIELDS)
        if not isinstance(everybody, bool):
            raise StorageError("the field 'everybody' of a 'last_iterate' entry must be true or false.")
        return cls(
            everybody=everybody,
            process=Process(
                name=values["name"],
                contraction=_runs("contraction", values["contraction"]),
                noise=_runs("noise", values["noise"]),
                push=_runs("push", values["push"]),
                diameter=values["diameter"],
            ),
        )

    @cached_property
    def _digest(self) -> str:
        process = self.process
        words = hashlib.sha256(repr((process.name, process.diameter, self.everybody)).encode())
        for runs in (process.contraction, process.noise, process.push):
            words.update(len(runs).to_bytes(8, "big"))
            words.update(runs.content)
        return words.hexdigest()[:16]

    def __repr__(self) -> str:
        return f"LastIterate({self.process.name}, {self.process.steps} steps, {self._digest})"

    def describe(self) -> str:
        return f"last_iterate({self.process.name}, {self.process.steps} steps, mu={self.mu:.6g})"


def _runs(name: str, value: object) -> Runs:
    if not isinstance(value, list) or not all(isinstance(row, list) and len(row) == 2 for row in value):
        raise StorageError(f"the field '{name}' of a 'last_iterate' entry must be a list of [count, value] pairs.")
    return Runs.of(name, value)

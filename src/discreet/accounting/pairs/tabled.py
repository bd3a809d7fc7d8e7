"""Pairs that know their profile, and whose compositions are read from a finite pair that stands for them."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING

from discreet.accounting.pair import Pair, Tails

if TYPE_CHECKING:
    from discreet.accounting.nodes import Nodes
    from discreet.accounting.pair import Reals
    from discreet.accounting.pairs.atoms import AtomsPair

__all__ = ["TabledPair"]


class TabledPair(Pair):
    """A pair read by its `profile` when used once, and by its `table` (made on first use) when composed."""

    @abstractmethod
    def _made(self) -> AtomsPair:
        """A finite pair that dominates this one, or is dominated by it if this is a witness."""

    @cached_property
    def table(self) -> AtomsPair:
        return self._made()

    @property
    def p_missing(self) -> float:  # type: ignore[override]
        return self.table.p_missing

    @property
    def q_missing(self) -> float:  # type: ignore[override]
        return self.table.q_missing

    @property
    def span(self) -> tuple[float, float]:
        return self.table.span

    def nodes(self, power: tuple[float, float], reach: float) -> Nodes:
        return self.table.nodes(power, reach)

    def node_count(self, power: tuple[float, float], reach: float) -> int:
        return self.table.node_count(power, reach)

    def log_power_bound(self, powers: Reals) -> Reals:
        return self.table.log_power_bound(powers)

    def log_decay(self, power: float, reach: Reals) -> Reals:
        return self.table.log_decay(power, reach)

    def log_modulus(self, power: float, height: Reals, half: float) -> Reals:
        return self.table.log_modulus(power, height, half)

    def tails(self, loss: Reals) -> Tails:
        return self.table.tails(loss)

    def atoms(self) -> tuple[Reals, Reals]:
        return self.table.atoms()

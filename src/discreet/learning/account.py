"""What a fit has released so far: every release is paid for before it is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from discreet.accounting.cost import Cost
    from discreet.learning.report import Release
    from discreet.noise import Generator

__all__ = ["Account", "Charge"]


class Charge(Protocol):
    """Takes a cost from a budget, durably, or raises; `Curator.charge` and functions of the same form."""

    def __call__(self, cost: Cost, *, reason: str) -> object: ...


class Account:
    """The releases of one fit, in their order."""

    def __init__(self, charge: Charge | None = None, *, generator: Generator | None = None) -> None:
        self._charge = charge
        self.generator = generator  # for tests alone
        self.releases: list[Release] = []

    def pay(self, *releases: Release) -> None:
        """Charge for what is about to be released, all at once; if that is refused, nothing is paid or released."""
        if self._charge is not None:
            self._charge(_sum(releases), reason="; ".join(release.what for release in releases))
        self.releases.extend(releases)

    @property
    def cost(self) -> Cost:
        """The composition of everything that was paid for."""
        return _sum(self.releases)


def _sum(releases: Sequence[Release]) -> Cost:
    first, *others = (release.cost for release in releases)
    for other in others:
        first = first + other
    return first

"""What a fit has released so far: every release is paid for before it is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
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
        """Charge for what is about to be released; if that is refused, nothing is released."""
        for release in releases:
            if self._charge is not None:
                self._charge(release.cost, reason=release.what)
            self.releases.append(release)

    @property
    def cost(self) -> Cost:
        """The composition of everything that was paid for."""
        first, *others = (release.cost for release in self.releases)
        for other in others:
            first = first + other
        return first

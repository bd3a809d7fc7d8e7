"""What a fit has released so far: every release is paid for before it is made, and a rehearsal of it makes none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from discreet.accounting.cost import Cost
    from discreet.learning.report import Release
    from discreet.noise import Generator

__all__ = ["Account", "Charge", "Rehearsal", "Stopped"]


class Charge(Protocol):
    """Takes a cost from a budget, durably, or raises; `Curator.charge` and functions of the same form."""

    def __call__(self, cost: Cost, *, reason: str) -> object: ...


class Stopped(Exception):
    """A rehearsal came as far as the release of the model itself."""


class Account:
    """The releases of one fit, in their order."""

    is_rehearsal = False

    def __init__(self, charge: Charge | None = None, *, generator: Generator | None = None) -> None:
        self._charge = charge
        self._rehearse: Callable[[], None] | None = None
        self.generator = generator  # for tests alone
        self.releases: list[Release] = []

    def rehearsed_by(self, rehearse: Callable[[], None]) -> None:
        """Have this called before the first purchase: what can be refused is refused before anything is spent."""
        self._rehearse = rehearse

    def buy(self, *releases: Release) -> None:
        """Pay for something that the model itself is planned from, after a rehearsal of all that follows."""
        if self._rehearse is not None:
            rehearse, self._rehearse = self._rehearse, None
            rehearse()
        self.pay(*releases)

    def pay(self, *releases: Release) -> None:
        """Charge for what is about to be released, all at once; if that is refused, nothing is paid or released."""
        if self._charge is not None:
            self._charge(_sum(releases), reason="; ".join(release.what for release in releases))
        self.releases.extend(releases)

    @property
    def cost(self) -> Cost:
        """The composition of everything that was paid for."""
        return _sum(self.releases)


class Rehearsal(Account):
    """An account that takes no money and lets nothing be released: purchases give stand-ins, the model is not fitted.

    Plans depend on what is bought only in size, so that what they refuse with stand-ins they refuse with any values.
    """

    is_rehearsal = True

    def buy(self, *releases: Release) -> None:
        """Note what it would cost."""
        self.releases.extend(releases)

    def pay(self, *releases: Release) -> None:
        """All plans were made: the rest is what data may decide."""
        del releases
        raise Stopped


def _sum(releases: Sequence[Release]) -> Cost:
    first, *others = (release.cost for release in releases)
    for other in others:
        first = first + other
    return first

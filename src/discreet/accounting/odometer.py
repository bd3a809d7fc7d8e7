"""Odometers: how much has been spent by now, said at a time that may itself depend on the answers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from discreet.accounting import renyi, storing
from discreet.accounting.budget import Shares, checked_shares
from discreet.accounting.charges import INFINITE, Quantity, decimal, finite, up, up_root
from discreet.accounting.classic import ceiling
from discreet.accounting.cost import Cost
from discreet.accounting.register import Register
from discreet.arguments import ADJACENCIES, nonnegative, one_of
from discreet.errors import InvalidArgument, StorageError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Odometer"]

_LEAK, _EPSILON, _RHO, _MU2 = Quantity("leak"), Quantity("epsilon"), Quantity("rho"), Quantity("mu2")
_EPSILON_REST = Quantity("epsilon", without_leak=True)
_ODOMETER_SHARES: Shares = (
    ("leak", 0.25),
    *((float(f"{1 + 2 ** (step / 2):.6g}"), 0.027) for step in range(-2, 25)),
)


class Odometer:
    r"""A running bound for adaptively chosen costs, valid at every stopping time: it never refuses, it reports.

    >>> meter = Odometer(delta=1e-6)
    >>> meter.charge(100 * Cost.gaussian(noise_multiplier=50.0))
    >>> round(meter.epsilon, 3)
    1.06

    **Claim.** Stop whenever you like, for whatever reason found in the answers. With P and Q the laws of the transcript
    on neighbouring data and `epsilon` the reading at the end of it, for every event A in which it is finite

        P(A) <= E_Q[1_A e^epsilon] + delta.

    If the reading cannot exceed a number e, that is (e, delta)-DP. `delta` is fixed at the start: choosing it after
    seeing answers is not covered.

    **Proof.** For an order a let S be the sum of D_a. M = e^{(a-1)(L-S)} is a supermartingale under P with M_0 = 1, as
    each step multiplies it by a factor of mean at most 1, so E[M] <= 1 at every stopping time. With
    e_a = S + ln((a-1)/a) - (ln d + ln a)/(a-1), (1 - e^{e_a-L})_+ <= d M for every L [Canonne et al. 2020, Prop. 12],
    so its mean is at most d, although S depends on the answers. The reading is the smallest e_a over finitely many
    orders, each with its own share d of delta, and the sum of epsilons, which no loss exceeds and which needs no share.
    Delta covers the union of the orders and the leaks. Taking the union over orders instead of over a doubling sequence
    of filters [Rogers et al. 2016; Lécuyer 2021] saves the factor lost to rounding up to the next filter.

    `shares` divides delta among `"leak"` and Rényi orders. By default leaks get a quarter and 27 orders, half an octave
    apart in order - 1 from 1/2 to 4096, get 0.027 each.
    """

    def __init__(
        self,
        *,
        delta: float = 0.0,
        shares: Mapping[str | float, float] | None = None,
        adjacency: str = "add-remove",
    ) -> None:
        self._delta = nonnegative("delta", delta)
        if self._delta >= 1:
            raise InvalidArgument("delta", delta, "pass a number below 1")
        if shares is not None and self._delta == 0:
            raise InvalidArgument(
                "shares", shares, "shares divide delta, and there is none: pass a delta > 0 with them"
            )
        self._shares = _ODOMETER_SHARES if shares is None else checked_shares(shares)
        if any(name == "gaussian" for name, _ in self._shares):
            raise InvalidArgument("shares", shares, "an odometer divides delta among 'leak' and Rényi orders only")
        orders = tuple(float(name) for name, _ in self._shares if name != "leak") if self._delta > 0 else ()
        self._deltas = {order: self._part(share) for order, share in self._shares if order != "leak"}
        quantities = (_LEAK, _EPSILON, _EPSILON_REST, _RHO, _MU2)
        renyi_quantities = tuple(Quantity("renyi", order, without_leak=True) for order in orders)
        self._register = Register(one_of("adjacency", adjacency, ADJACENCIES), quantities + renyi_quantities)

    @property
    def delta(self) -> float:
        """The delta of `epsilon`, fixed at the start."""
        return self._delta

    @property
    def adjacency(self) -> str:
        """The neighbouring relation of all readings."""
        return self._register.adjacency

    @property
    def spent(self) -> Cost:
        """The sum of all costs charged so far."""
        with self._register.lock:
            return self._register.spent()

    def charge(self, cost: Cost, *, reason: str = "") -> None:
        """Adds a cost; refused only if its adjacency differs. A `reason` is not kept, as that of a `Filter` is not."""
        del reason
        amounts = self._register.amounts(cost)
        with self._register.lock:
            self._register.add(cost, amounts)

    @property
    def epsilon(self) -> float:
        """The running bound at `delta`, rounded up: see the claim above. Infinite if nothing can be claimed."""
        with self._register.lock:
            totals = dict(zip(self._register.quantities, self._register.totals, strict=True))
        if totals[_LEAK] > decimal(dict(self._shares).get("leak", 0.0)) * decimal(self._delta):
            return math.inf
        best = up(totals[_EPSILON_REST])
        for quantity, total in totals.items():
            if quantity.kind == "renyi" and total != INFINITE:
                share, spent = self._deltas[quantity.order], ceiling(finite(total))
                best = min(best, renyi.epsilon_at_order(quantity.order, spent, share, conversion="improved"))
        return best

    @property
    def pure_epsilon(self) -> float:
        """The sum of epsilons: no loss exceeds it, at any time, without a delta. Infinite if a part has none."""
        return self._total(_EPSILON)

    @property
    def rho(self) -> float:
        """The sum of rho. It depends on the answers, so it is no zCDP guarantee by itself; halting before it exceeds a
        number fixed in advance makes it one, and `Filter(Budget(rho=...))` does that."""
        return self._total(_RHO)

    @property
    def mu(self) -> float:
        """The root of the sum of mu^2. Like `rho` it becomes a guarantee when it is bounded in advance."""
        with self._register.lock:
            return up_root(dict(zip(self._register.quantities, self._register.totals, strict=True))[_MU2])

    def to_dict(self) -> dict[str, Any]:
        """A lossless, versioned description made of JSON values."""
        return {
            "format": "discreet.odometer",
            "version": storing.VERSION,
            "delta": self._delta,
            "shares": [list(row) for row in self._shares] if self._delta > 0 else [],
            "spent": self.spent.to_dict(),
        }

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> Odometer:
        """The odometer that `to_dict` described."""
        fields = storing.checked_fields(description, "odometer", ["delta", "shares", "spent"])
        try:
            shares = {row[0]: row[1] for row in fields["shares"]} or None
            meter = cls(delta=fields["delta"], shares=shares, adjacency=Cost.from_dict(fields["spent"]).adjacency)
        except (TypeError, IndexError, KeyError, InvalidArgument) as error:
            raise StorageError(f"the description of an odometer is malformed: {error}") from error
        meter.charge(Cost.from_dict(fields["spent"]))
        return meter

    def to_json(self) -> str:
        """`to_dict` as JSON text."""
        return storing.to_json(self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> Odometer:
        """The odometer that `to_json` wrote."""
        return cls.from_dict(storing.from_json(text, "odometer"))

    def __reduce__(self) -> tuple[object, ...]:
        return Odometer.from_dict, (self.to_dict(),)

    def __repr__(self) -> str:
        return f"Odometer(delta={self._delta!r}, epsilon={self.epsilon:.6g})"

    def _part(self, share: float) -> float:
        """share * delta, rounded down."""
        return -ceiling(-finite(decimal(share)) * finite(decimal(self._delta)))

    def _total(self, quantity: Quantity) -> float:
        with self._register.lock:
            return up(dict(zip(self._register.quantities, self._register.totals, strict=True))[quantity])

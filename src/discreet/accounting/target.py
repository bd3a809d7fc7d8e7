"""What calibration aims at: the cost as a function of one parameter, and how far it is from the target."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from discreet.accounting.cost import Cost
from discreet.accounting.evaluate import delta_reading, epsilon_reading
from discreet.errors import CertificateError, InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Target"]

_WHOLE = ("count", "options", "sensitivity", "size")
"""Arguments of costs that only whole numbers fit."""


class Target:
    """A cost as a function of x, and the (epsilon, delta) that it should have."""

    def __init__(self, make: Callable[[float], Cost], epsilon: float, delta: float) -> None:
        self.make, self.epsilon, self.delta = make, epsilon, delta

    def cost(self, x: float) -> Cost:
        """make(x), which must be a cost."""
        cost = self.make(x)
        if not isinstance(cost, Cost):
            raise _NotACost(f"make({x:g})", cost, "the function must return a Cost; does it have a return?")
        return cost

    def excess(self, x: float) -> float:
        """How far make(x) is above the target: ln(delta(epsilon) / delta), negative when it is met."""
        cost = self.cost(x)
        if self.delta == 0:
            value = epsilon_reading(cost.parts, 0.0).upper
            return math.inf if value == math.inf else value - self.epsilon
        value = delta_reading(cost.parts, self.epsilon).upper
        return math.log(value / self.delta) if value > 0 else -math.inf

    def try_excess(self, x: float) -> float | None:
        """None where the parameter itself is not allowed, or so extreme that nothing can be certified."""
        try:
            return self.excess(x)
        except _NotACost:
            raise
        except InvalidArgument as error:
            if error.argument in _WHOLE and not float(x).is_integer() and self.allows(max(1, round(x))):
                raise InvalidArgument(
                    "make", self.make, f"x stands where only whole numbers fit ({error}); pass integer=True"
                ) from error
            return None
        except CertificateError:
            return None

    def allows(self, x: float) -> bool:
        """Whether make(x) is a cost."""
        try:
            self.cost(x)
        except InvalidArgument:
            return False
        return True

    def reached(self, x: float) -> float:
        """The certified epsilon of make(x), infinite where there is none."""
        try:
            return epsilon_reading(self.cost(x).parts, self.delta).upper
        except CertificateError:
            return math.inf

    def met(self, x: float) -> bool:
        """Whether the certified epsilon of make(x) is at most the target."""
        return self.reached(x) <= self.epsilon

    def refusal(self, low: float, high: float) -> CertificateError | InvalidArgument:
        """Why no x between these two meets the target."""
        if self.cost(low) == self.cost(high):
            return self.constant()
        best, at = min((self.reached(x), x) for x in (low, high))
        closest = "" if best == math.inf else f" (the smallest found is {best:.6g}, at x = {at:.6g})"
        advice = "Allow a larger epsilon or delta, or fewer steps; or set low and high around the expected value."
        if best == math.inf and self.delta == 0:
            advice = "Without a delta this cost has no finite epsilon. Allow a larger epsilon or delta: pass delta > 0."
        return CertificateError(
            "this target",
            limit=f"the range tried: no parameter between {low:.3g} and {high:.3g} has epsilon <= {self.epsilon:g} "
            f"at delta = {self.delta:g}{closest}",
            advice=advice,
        )

    def constant(self) -> InvalidArgument:
        """The refusal of a function that makes the same cost of every x."""
        advice = (
            "the function makes the same cost of every parameter; use its argument, as in lambda s: Cost.gaussian(s)"
        )
        return InvalidArgument("make", self.make, advice)


class _NotACost(InvalidArgument):
    """The function returned something else; no other x will help."""

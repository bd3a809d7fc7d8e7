r"""What must be true of the losses: Lipschitz, smooth, convex or strongly so, and what follows for one step.

For a beta-smooth, rho-strongly convex loss and a step size 0 < eta <= 2/beta, the map w -> w - eta grad f(w) is
c-Lipschitz with c = max(|1 - eta rho|, |1 - eta beta|) <= 1; projections onto convex sets and averages over a batch
keep that [Feldman et al. 2018, Prop. 18]. Without convexity c = 1 + eta beta. Smoothness is essential: a kink makes two
close iterates step apart, and nothing is amplified. Clipping a gradient is a kink for most losses. For losses of one
linear score, l(<w, x>, y), it is not: clipping the norm of l'(<w, x>) x cuts l' at a level, so the loss stays
convex and as smooth as it was.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from discreet.arguments import ADJACENCIES, nonnegative, one_of, positive
from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Reals = NDArray[np.float64]

__all__ = ["Losses"]


@dataclass(frozen=True)
class Losses:
    """A family of losses, one for each record.

    `lipschitz` bounds the norm of what one record adds to the gradient, `smoothness` is beta and `strong_convexity`
    rho, both of the whole loss including a regulariser. A term that is the same for all records, such as a
    regulariser, counts for smoothness and strong convexity and not for `lipschitz`.
    """

    lipschitz: float
    smoothness: float | None
    strong_convexity: float = 0.0
    convex: bool = True
    clipped: bool = False
    linear_model: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "lipschitz", positive("lipschitz", self.lipschitz))
        object.__setattr__(self, "strong_convexity", nonnegative("strong_convexity", self.strong_convexity))
        if self.smoothness is None or self.smoothness == math.inf:
            raise InvalidArgument(
                "smoothness",
                self.smoothness,
                "hidden iterates protect only if the loss is smooth (its gradient is Lipschitz); replace the hinge by "
                "a Huber-smoothed one, pass the smoothness of what you really minimise, or account for every step "
                "with Cost.gaussian",
            )
        object.__setattr__(self, "smoothness", positive("smoothness", self.smoothness))
        if self.clipped and not self.linear_model:
            raise InvalidArgument(
                "clipped",
                self.clipped,
                "clipping the gradient of a general loss can make a step expand, so that hidden iterates protect "
                "nobody; pass linear_model=True if every record's loss is a convex function of one score <w, x>, or "
                "account for every step with Cost.gaussian",
            )
        if self.clipped and self.strong_convexity > 0:
            raise InvalidArgument(
                "strong_convexity",
                self.strong_convexity,
                "a clipped loss is flat where it is clipped and not strongly convex; pass 0",
            )
        if self.strong_convexity > self.smoothness_:
            raise InvalidArgument(
                "strong_convexity", self.strong_convexity, f"pass at most the smoothness, {self.smoothness:g}"
            )
        if self.strong_convexity > 0 and not self.convex:
            raise InvalidArgument("strong_convexity", self.strong_convexity, "pass 0 for losses that are not convex")

    @property
    def smoothness_(self) -> float:
        """The smoothness, which is known to be a number."""
        assert self.smoothness is not None
        return self.smoothness

    def sensitivity(self, adjacency: str) -> float:
        """How much one record moves a sum of gradients: 2 L if it is replaced, L if it is zeroed or absent."""
        one_of("adjacency", adjacency, ADJACENCIES)
        return 2 * self.lipschitz if adjacency == "replace-one" else self.lipschitz

    def factor(self, step: Reals) -> Reals:
        """The Lipschitz constant of one step with these step sizes, rounded up."""
        if not self.convex:
            return np.nextafter(1.0 + np.nextafter(step * self.smoothness_, math.inf), math.inf)
        largest = float(step.max())
        if Fraction(largest) * Fraction(self.smoothness_) > 2:
            raise InvalidArgument(
                "step",
                largest,
                f"steps above 2 / smoothness = {2 / self.smoothness_:.6g} can expand distances, so that hidden "
                "iterates protect nobody; take smaller steps",
            )
        if self.strong_convexity == 0:
            return np.ones(len(step))
        ends = np.maximum(np.abs(1.0 - step * self.strong_convexity), np.abs(1.0 - step * self.smoothness_))
        # the product and the difference are each off by half an ulp of a number below 2
        return np.minimum(ends + 2.0**-51, 1.0)

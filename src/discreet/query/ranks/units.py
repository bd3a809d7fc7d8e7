"""How finely rows and probabilities are counted, so that the noise of a quantile can be drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from discreet.query.ranks.bisection import noise_of_round

if TYPE_CHECKING:
    from discreet.query.ranks.scale import Scale

__all__ = ["Units"]

_WIDEST = 2.0**39.5  # Gaussian noise is drawn up to 10^12
_ROOM = 4  # a row has at least four parts, and so has the probability 1: 2^4 steps


@dataclass(frozen=True)
class Units:
    """How finely rows and probabilities are counted: a full row is `weight`, the probability 1 is `parts`."""

    weight: int
    parts: int

    @classmethod
    def of(cls, scale: Scale, bound: float, noise: float, *, gaussian: bool, probability: float | None = None) -> Units:
        """As fine as the noise can be drawn: its scale is at most noise * weight * parts * bound.

        Of a probability such as 0.99 there is a whole number of parts. That of 1024 parts which is nearest to it would
        be 0.9902, and of a hundred thousand rows the quantile 23 rows away.
        """
        if not gaussian:
            return cls(1 << 12, _parts(1 << 10, probability))
        room = max(_ROOM, math.floor(math.log2(_WIDEST / (bound * max(noise_of_round(noise, scale), 1.0)))))
        parts = min(10, max(room - 6, 2))
        return cls(1 << min(12, room - parts), _parts(1 << parts, probability))

    @classmethod
    def most(cls, scale: Scale, noise: float) -> float:
        """The largest bound for which noise can be drawn on the Gaussian path."""
        return _WIDEST / 2.0**_ROOM / max(noise_of_round(noise, scale), 1.0)


def _parts(most: int, probability: float | None) -> int:
    """The largest number of parts up to this of which the probability, or the simple fraction nearest to it, is one."""
    simple = Fraction(probability or 0.0).limit_denominator(most).denominator
    return most // simple * simple

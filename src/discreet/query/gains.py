r"""Private choice of how many values a unit keeps for COUNT(DISTINCT x): by what a larger number would gain.

A unit's pairs of a group and a value stand in an order of its own, which a secret number and its own rows decide. D(m)
is how many different pairs somebody has among their first m. All groups together then count D(m), and the noise of each
grows with m. A value that many people have is counted with a small m already, however many others each of them has: so
what matters is D, and not how many pairs units have. [Knop and Steinke 2023]

Let c_1 < c_2 < … be the candidates, t = s G / 2 for G groups with noise of scale s m, and for i < j

    g_ij = (D(c_j) - D(c_i) - t (c_j - c_i)) / max(3 c_i, (3/2) (c_j - c_i)),        R_i = max(0, max_j g_ij):

what the best larger candidate gains beyond its noise. c_i is chosen by an exponential mechanism with probability
proportional to w_i exp(-e R_i), for public weights w_i that prefer small candidates.

**Claim 1.** A unit more changes D(m) by between 0 and m, and D(n) - D(m) by between -m and n - m, for m <= n.
*Proof.* For every value of the secret, what the others have among their first m does not depend on the unit, so D(m)
rises by the number a of pairs that the unit has among its first m and nobody else has among theirs: 0 <= a <= m. Let b
be that number for n. A pair that is new at n and among the unit's first m is new at m as well, because others have no
fewer pairs among their first n than among their first m. So b <= a + (n - m), and b - a >= -a >= -m. Groups do not
matter: the first m are those of all groups together.

**Claim 2.** The choice is e-DP of bounded range e. *Proof.* By claim 1 a unit more changes g_ij by at least
-c_i / (3 c_i) = -1/3 and at most (c_j - c_i) / ((3/2) (c_j - c_i)) = 2/3. So it changes R_i, the largest of these and
of 0, by between -1/3 and 2/3, for every i: all logarithms of the weights move within a window of length e. Where pure
epsilons are added up, permute-and-flip chooses by the same scores. Its law does not change if all scores are shifted by
1/3, and then a unit more lowers none and raises none by more than 1, so that it is e-DP (see `choices`). The scores are
exact rationals. (The generalized exponential mechanism [Raskhodnikova and Smith 2016] compares scores of different
sensitivities like this for any scores; these differ by less than two such scores may, so that less noise is enough.)

The claims hold for every value of the secret, and so does the privacy of the answer. That nobody knows it, and that the
orders of units differ, only makes D(m) larger.

A choice of epsilon e tells a gain from none if it is several times 3 m / e, more than the noise. So where one number
is asked for twice what was chosen is kept: that loses little more than noise hides, also where values are rare (nobody
but their owner has them). With many groups gains are larger beside that, and half more is kept. One value stays one
value, which is what is chosen where many people have the same: there the interval allows for more that may be lost, and
not the noise (`times_lost`).
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING

from discreet.mechanisms import ExponentialMechanism, PermuteAndFlip
from discreet.noise import exponential_choice, permute_and_flip
from discreet.query.choices import STEPS, bound_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from discreet.noise import Generator

__all__ = ["KEPT", "choose_kept", "gained", "gains_wanted", "kept_of", "times_lost"]

_OCTAVES = 30


def _candidates() -> dict[int, int]:
    """The numbers of the candidates, as of other bounds, and the whole numbers that they stand for."""
    found: dict[int, int] = {}
    for number in range(_OCTAVES * STEPS + 1):
        if (whole := math.floor(bound_of(number))) not in found.values():
            found[number] = whole
    return found


KEPT = _candidates()
"""The candidates c_i by number: 1, 2, 3, 4, 5, 6, 8, …, up to four in an octave."""

_WORTH = 0.5
"""t over the noise of all groups: with less, more values are kept, and intervals hold more often."""

_LEAST, _PAID = (1.5, 0.25), (2.0, 3.0)
"""The power of the preference for small candidates, and up to which epsilon; how fast it rises then, and how far."""

_MANY, _SHARP = 10.0, 2.0
"""Its power with many groups; and e t, the noise of all groups beside what a choice can tell, from which on it can."""

_TWICE, _HALF_MORE = 2.0, 1.5
_LOST = (3.0, 2.0)
"""How many times more is allowed for where one value is kept, in place of keeping more: with few groups, and many."""

_PARTS = 1 << 10
"""t and the preference are counted in parts of a unit, so that scores are rationals."""


def gains_wanted(noise: float, *, groups: float) -> float:
    """t: how many pairs more one more of each unit has to gain, for noise of this multiplier in each of the groups."""
    return _WORTH * noise * groups


def kept_of(number: int, *, epsilon: float, wanted: float) -> int:
    """How many pairs a unit keeps where the candidate of this number was chosen with epsilon for t = `wanted`."""
    chosen = max(1, math.floor(bound_of(number)))
    return chosen if chosen == 1 else math.floor(chosen * (_TWICE if epsilon * wanted < _SHARP else _HALF_MORE))


def times_lost(number: int, *, epsilon: float, wanted: float) -> float:
    """How many times the usual allowance an interval has for what is lost where this candidate was chosen."""
    return 1.0 if math.floor(bound_of(number)) > 1 else _LOST[epsilon * wanted >= _SHARP]


def gained(counts: Sequence[int], wanted: Fraction) -> list[Fraction]:
    """R_i for every candidate, from D(c_i); candidates beyond those that are counted have nothing to gain."""
    kept, most = list(KEPT.values())[: len(counts)], counts[-1]
    found = []
    for i, (few, count) in enumerate(zip(kept, counts, strict=True)):
        best = Fraction(0)
        for more, larger in zip(kept[i + 1 :], counts[i + 1 :], strict=True):
            gain = larger - count - wanted * (more - few)
            if gain > 0:
                best = max(best, gain / max(Fraction(3 * few), Fraction(3 * (more - few), 2)))
            if larger == most:
                break  # a larger candidate gains no more and costs more
        found.append(best)
    return found


def choose_kept(
    counts: Sequence[int],
    *,
    epsilon: float,
    wanted: float,
    largest: float = math.inf,
    bounded: bool = True,
    generator: Generator | None = None,
) -> int:
    """The number of the chosen candidate, from D(c_i) for every candidate in order.

    `wanted` is t. No unit has more than `largest` pairs by what is public: the first candidate with which so many are
    kept is the last. `bounded` asks for a bounded range: an exponential mechanism.
    """
    threshold = Fraction(round(min(wanted, 2.0**60) * _PARTS), _PARTS)
    numbers = list(KEPT)
    enough = [kept_of(number, epsilon=epsilon, wanted=wanted) >= largest for number in numbers]
    numbers = numbers[: enough.index(True) + 1 if any(enough) else None]
    mechanism = (ExponentialMechanism if bounded else PermuteAndFlip)(epsilon, sensitivity=1, monotone=True)
    preferred = _preferred(len(numbers), _power(epsilon, wanted), mechanism.factor)
    lost = gained([int(count) for count in counts[: len(numbers)]], threshold)
    scores = [like - loss for like, loss in zip(preferred, lost, strict=True)]
    choose = exponential_choice if bounded else permute_and_flip
    return numbers[int(choose(scores, scale=mechanism.factor, generator=generator))]


def _power(epsilon: float, wanted: float) -> float:
    """The power of the preference: weak where a choice can tell little, strong where it is paid well or groups many."""
    (least, upto), (rise, most) = _LEAST, _PAID
    paid = min(most, least + rise * max(0.0, epsilon - upto))
    return max(paid, _MANY * min(1.0, max(0.0, (epsilon * wanted - 1) / 6)))


def _preferred(size: int, power: float, factor: Fraction) -> list[Fraction]:
    """The public preference as a score: c^-power, times the octaves from the candidate before; 1 for the first.

    So it does not matter how close the candidates are. Rounding it has nothing to do with the data.
    """
    kept = list(KEPT.values())[:size]
    logs = [0.0] + [math.log(math.log2(b / a)) - power * math.log(b) for a, b in pairwise(kept)]
    return [Fraction(round(max(log / float(factor), -(2.0**50)) * _PARTS), _PARTS) for log in logs]

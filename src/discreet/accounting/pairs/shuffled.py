r"""n reports of local randomizers, shuffled: a pair that dominates all of them, and one that some of them attain.

Upper. Everybody reports with the same epsilon0-DP randomizer R. With q = 1/(e^epsilon0 + 1) the shuffled reports of
data that differ in one person are dominated, in both orders, by the counts

    (A + D, C - A + 1 - D),   C ~ Bin(n - 1, 2q),  A ~ Bin(C, 1/2),  D ~ Bernoulli(1 - q)   against  D ~ Bernoulli(q)

[Feldman et al. 2023]; proof in docs/proofs/shuffling.md. Given C the hockey-stick divergence is a difference of a mass
and a tail of Bin(C, 1/2), and it falls as C grows, so sums over cells of C bound the mean over C.

Lower. Randomized response among three answers, everybody else holding the third: its counts, with fair coins added
until their number is one of few, which is a post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from discreet.accounting.binomial import ERROR, coin_above, coin_mass, count_below
from discreet.accounting.pair import ROUNDING, Direction, Lattice, Pair
from discreet.accounting.pairs.atoms import AtomsPair
from discreet.accounting.pairs.dots import table_through
from discreet.accounting.pairs.tabled import TabledPair

if TYPE_CHECKING:
    from discreet.accounting.pair import Reals

__all__ = ["ShuffledPair", "shuffled_response"]

_CELLS = 2048
_FEW = 40
"""Up to so many reports all losses are listed."""
_TABLE_CELLS = 384
_TABLE_POINTS = 1024
_GROUPS = 160
_WITNESS_CELLS = 24
_SINGLE = 8


@dataclass(frozen=True)
class ShuffledPair(TabledPair):
    """n shuffled reports, each epsilon0-DP: what they reveal at most. The two orders have the same profile."""

    epsilon0: float
    n: int

    symmetric = True
    p_missing = 0.0
    q_missing = 0.0

    @property
    def span(self) -> tuple[float, float]:
        return -self.epsilon0, self.epsilon0

    def profile(self, epsilon: float, direction: Direction) -> tuple[float, float]:
        """The upper end is the claim. The lower one says only how wide the cells are: claims come from a witness."""
        if epsilon < 0:  # E_gamma(P || Q) = 1 - gamma + gamma E_{1/gamma}(Q || P)
            low, high = self.profile(-epsilon, direction)
            rest, gamma = -math.expm1(epsilon), math.exp(epsilon)
            return (rest + gamma * low) * (1 - 1e-15), (rest + gamma * high) * (1 + 1e-15)
        lows, highs = self._bounds(np.array([epsilon]), self._edges)
        return float(lows[0]), float(highs[0])

    @cached_property
    def _edges(self) -> Reals:
        # the more clones, the less the divergence changes within a standard deviation of their number
        clones = self.n * _coins(self.epsilon0)[0]
        return _edges(self.n, self.epsilon0, _CELLS if clones < 1e5 else _CELLS // 4)

    def _bounds(self, epsilons: Reals, edges: Reals) -> tuple[Reals, Reals]:
        r"""sum over cells of P(C in the cell) times the value at its right and at its left end, summed by parts:
        v_last + sum_i P(C < edge_i) (v_{i-1} - v_i) for the latter, where no term is negative."""
        chance, other = _coins(self.epsilon0)
        below = count_below(self.n - 1, chance, other, edges[1:])
        values = np.minimum.accumulate(self._given(edges, epsilons), axis=1)
        falls = values[:, :-1] - values[:, 1:]
        high = values[:, -1] + (falls * below).sum(axis=1) * (1 + ERROR)
        low = (falls[:, 1:] * below[:-1]).sum(axis=1) + values[:, -1] * (below[-1] if len(below) else 1.0)
        high = np.minimum(high * (1 + 1e-12), math.tanh(self.epsilon0 / 2) * (1 + 1e-15))
        last = epsilons >= self.epsilon0
        return np.where(last, 0.0, np.minimum(low * (1 - 1e-6), high)), np.where(last, 0.0, high)

    def _given(self, clones: Reals, epsilons: Reals) -> Reals:
        r"""Upper bounds of the divergence given C, a row for each epsilon >= 0.

        With m = C + 1 and T(k) = P(Bin(C, 1/2) >= k), the event "at least k of m" gives

            (e^eps0 - e^eps) / (e^eps0 + 1) P(Bin(C, 1/2) = k - 1) - (e^eps - 1) T(k),

        largest at the first k >= m (e^{eps + eps0} - 1) / ((e^eps0 - 1)(e^eps + 1)); where that is a whole number up to
        rounding, its neighbours are tried as well.
        """
        grown = np.minimum(epsilons, self.epsilon0)[:, None]
        share = np.exp(grown) * np.expm1(self.epsilon0 - grown) / (math.exp(self.epsilon0) + 1)
        place = np.expm1(grown + self.epsilon0) / (math.expm1(self.epsilon0) * (np.exp(grown) + 1))
        exact = place * (clones + 1)
        first = np.ceil(exact)
        value = self._event(clones, first, share, grown)
        for neighbour in (first - 1, first + 1):
            doubtful = np.abs(exact - np.round(exact)) < 1e-3
            if doubtful.any():
                rows, columns = np.nonzero(doubtful)
                other = self._event(clones[columns], neighbour[rows, columns], share[rows, 0], grown[rows, 0])
                value[rows, columns] = np.maximum(value[rows, columns], other)
        return np.maximum(value, 0.0)

    @staticmethod
    def _event(clones: Reals, heads: Reals, share: Reals, epsilon: Reals) -> Reals:
        k = np.clip(heads, 1, clones + 1)
        value = share * coin_mass(clones, k - 1) * (1 + ERROR)
        return np.asarray(value - np.expm1(epsilon) * coin_above(clones, k) * (1 - ERROR))

    def _made(self) -> AtomsPair:
        lattice = None
        if self.n <= _FEW:
            points = self._losses()
        else:
            points, lattice = self._corners()
        edges = _edges(self.n, self.epsilon0, _TABLE_CELLS)
        values = [self._bounds(block, edges)[1] for block in np.array_split(points, math.ceil(len(points) / 64))]
        return table_through(points, np.concatenate(values), lattice=lattice)

    def _corners(self) -> tuple[Reals, Lattice]:
        """Multiples of a step that divides the largest loss: all up to where the profile has come down to 1e-18, few
        from there to the end."""
        low, high = 0.0, self.epsilon0
        for _ in range(30):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.profile(middle, Direction.FORWARD)[1] > 1e-18 else (low, middle)
        steps = math.ceil(self.epsilon0 / high * _TABLE_POINTS)
        near = np.arange(_TABLE_POINTS + 1)
        far = np.round(np.geomspace(_TABLE_POINTS, steps, 64))
        index = np.unique(np.concatenate([near, far, [steps]]))
        step = self.epsilon0 / steps
        # a product is rounded once, the last corner is the largest loss itself
        points = np.append(step * index[index < steps], self.epsilon0)
        return points, Lattice(0.0, step, 4 * ROUNDING * self.epsilon0)

    def _losses(self) -> Reals:
        """0 and all positive losses: k of m reports are of the first kind, k > m/2."""
        k, m = np.triu_indices(self.n + 1)
        heads, tails = k[2 * k > m].astype(float), (m - k)[2 * k > m].astype(float)
        grown = math.exp(self.epsilon0)
        losses = np.log1p((grown - 1) * (heads - tails) / (heads + grown * tails))
        return np.unique(np.concatenate([[0.0], np.minimum(losses[tails > 0], self.epsilon0), [self.epsilon0]]))


def _coins(epsilon0: float) -> tuple[float, float]:
    """2q and 1 - 2q for q = 1/(e^epsilon0 + 1)."""
    return 2 / (math.exp(epsilon0) + 1), math.tanh(epsilon0 / 2)


def _edges(n: int, epsilon0: float, cells: int) -> Reals:
    """Left ends of the cells of C, from 0 on: single numbers where they are few."""
    trials = n - 1
    chance, other = _coins(epsilon0)
    if trials <= cells:
        return np.arange(trials + 1, dtype=float)
    mean, deviation = trials * chance, math.sqrt(trials * chance * other)
    middle = np.round(mean + deviation * np.linspace(-14.0, 8.0, cells))
    start = max(0.0, float(middle[0]))
    far = np.round(np.linspace(0.0, start, 64)) if start > 0 else np.zeros(1)
    found = np.unique(np.concatenate([far, middle]))
    return found[(found >= 0) & (found <= trials)]


def shuffled_response(epsilon0: float, n: int) -> Pair:
    """A finite pair below that of n shuffled randomized responses, which are epsilon0-DP.

    Three answers if e^epsilon0 > 2, two otherwise: whichever reveals more.
    """
    p, q = _three_answers(epsilon0, n) if epsilon0 > math.log(2.0) else _two_answers(epsilon0, n)
    good = (p > 1e-250) & (q > 1e-250)
    p, q = p[good], q[good]
    order = np.argsort(p / q, kind="stable")
    p, q = p[order], q[order]
    loss = np.log(p / q)
    starts = np.flatnonzero(np.concatenate([[True], np.diff(loss) > 1e-14]))
    p, q = np.add.reduceat(p, starts), np.add.reduceat(q, starts)
    # the masses are good to a few 1e-10, and so are the losses
    return AtomsPair(np.log(p / q), q, blur=100 * ERROR, tail_error=100 * ERROR)


def _two_answers(epsilon0: float, n: int) -> tuple[Reals, Reals]:
    """The person answers yes or no, all others no. With M the law of n others and k times yes reported, the likelihoods
    are M(k) / n times k e^eps0 + (n - k) e^-eps0, and M(k). Neighbouring k are merged."""
    yes, no = 1 / (math.exp(epsilon0) + 1), 1 / (math.exp(-epsilon0) + 1)
    mean, deviation = n * yes, math.sqrt(n * yes * no)
    cuts = np.unique(np.round(mean + deviation * np.linspace(-8.0, 8.0, 8 * _GROUPS)))
    cuts = np.concatenate([[0.0], cuts[(cuts > 0) & (cuts <= n)], [n + 1.0]])
    mass = _counts(n, yes, no, cuts)
    sized = n * yes * _counts(n - 1, yes, no, cuts - 1) if n > 1 else yes * ((cuts[:-1] <= 1) & (cuts[1:] > 1))
    return (sized * math.exp(epsilon0) + np.maximum(n * mass - sized, 0.0) * math.exp(-epsilon0)) / n, mass


def _counts(trials: int, chance: float, other: float, cuts: Reals) -> Reals:
    """P(cuts[i] <= C < cuts[i + 1]) for C ~ Bin(trials, chance), from the smaller tail."""
    below = count_below(trials, chance, other, cuts)
    above = count_below(trials, other, chance, trials - cuts + 1)
    return np.where(above[:-1] < 0.5, above[:-1] - above[1:], below[1:] - below[:-1])


def _three_answers(epsilon0: float, n: int) -> tuple[Reals, Reals]:
    """The person holds the first answer or the second, all others the third.

    With a = 1/(e^epsilon0 + 2), M the law of n others and c_j reports of answer j, the likelihoods are M(c) / n times
    c_1 e^eps0 + c_2 + c_3 a / (1 - 2a), and the same with c_1 and c_2 exchanged. If c_1 + c_2 lies in a cell ending at
    m, fair coins are added to them until there are m, and neighbouring counts are merged.
    """
    grown = math.exp(epsilon0)
    a, chance, other = 1 / (grown + 2), 2 / (grown + 2), grown / (grown + 2)
    mean, deviation = n * chance, math.sqrt(n * chance * other)
    ends = np.round(mean + deviation * np.linspace(-6.0, 6.0, _WITNESS_CELLS))
    # the last value in each cell; where the reports that hide the person are few, each number of them counts
    ends = np.unique(np.concatenate([np.arange(min(_SINGLE, n) + 1.0), np.clip(ends, 0, n), [float(n)]]))
    cuts = np.concatenate([[0.0], ends + 1])
    cell = _counts(n, chance, other, cuts)
    if n > 1:  # the sum of k P(C = k) is n 2a P(Bin(n-1, 2a) = k - 1)
        sized = n * chance * _counts(n - 1, chance, other, cuts - 1)
    else:
        sized = chance * ((cuts[:-1] <= 1) & (cuts[1:] > 1))
    first, second = [], []
    for end, weight, size in zip(ends, cell, sized, strict=True):
        if weight < 1e-30:
            continue
        heads, chances = _groups(float(end))
        rest = max(0.0, n * weight - size) * a / (1 - 2 * a) * chances
        share = size / end if end > 0 else 0.0
        tails = np.maximum(end * chances - heads, 0.0)
        first.append((share * (heads * grown + tails) + rest) / n)
        second.append((share * (heads + grown * tails) + rest) / n)
    return np.concatenate(first), np.concatenate(second)


def _groups(flips: float) -> tuple[Reals, Reals]:
    """Neighbouring numbers of heads in groups: the sum of k P(K = k), and P(K in the group)."""
    deviation = 0.5 * math.sqrt(flips)
    cuts = np.unique(np.round(0.5 * flips + deviation * np.linspace(-8.0, 8.0, _GROUPS)))
    cuts = cuts[(cuts > 0) & (cuts <= flips)]
    cuts = np.concatenate([[0.0], cuts, [flips + 1]])  # a group is cuts[i] <= k < cuts[i + 1]
    chances = _between(np.full(len(cuts), flips), cuts)
    heads = 0.5 * flips * _between(np.full(len(cuts), max(flips - 1, 0.0)), cuts - 1) if flips else 0 * chances
    return heads, chances


def _between(flips: Reals, cuts: Reals) -> Reals:
    """P(cuts[i] <= K < cuts[i + 1]) from whichever tail is the smaller: P(K < k) = P(K >= flips - k + 1)."""
    above, below = coin_above(flips, cuts), coin_above(flips, flips - cuts + 1)
    return np.where(above[:-1] < 0.5, above[:-1] - above[1:], below[1:] - below[:-1])

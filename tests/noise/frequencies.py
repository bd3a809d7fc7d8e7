"""What the tests of choices share: exact laws, chi-square p-values, and generators that say what they are told."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping

import numpy as np
from scipy.special import chdtrc

from noise.chosen import ChosenWords

ALPHA = 1e-9


def p_value(draws: Iterable[Hashable], law: Mapping[Hashable, float]) -> float:
    """Chi-square of the draws against a law, with cells expecting fewer than 20 pooled; 0 for an impossible draw."""
    seen = Counter(draws)
    n = sum(seen.values())
    if any(law.get(outcome, 0) == 0 for outcome in seen):
        return 0.0
    large = [outcome for outcome, p in law.items() if n * p >= 20]
    cells = [(seen[outcome], n * law[outcome]) for outcome in large]
    rest = sum(p for outcome, p in law.items() if outcome not in large)
    if n * rest >= 5:
        cells.append((n - sum(count for count, _ in cells), n * rest))
    assert len(cells) > 1, "too few draws for a test"
    return float(chdtrc(len(cells) - 1, sum((count - mean) ** 2 / mean for count, mean in cells)))


def softmax(exponents: Iterable[float]) -> dict[int, float]:
    """Probabilities proportional to e^x."""
    x = np.array([float(value) for value in exponents])
    weights = np.exp(x - x.max())
    return dict(enumerate((weights / weights.sum()).tolist()))


def permute_and_flip_law(exponents: Iterable[float]) -> dict[int, float]:
    """w_i times the integral over t in [0, 1] of prod_{j != i} (1 - w_j t): i comes at t, none fell before."""
    x = np.array([float(value) for value in exponents])
    weights = np.exp(x - x.max())
    law = {}
    for i in range(len(weights)):
        polynomial = np.polynomial.Polynomial([1.0])
        for weight in np.delete(weights, i):
            polynomial = polynomial * np.polynomial.Polynomial([1.0, -weight])
        law[i] = float(weights[i] * polynomial.integ()(1.0))
    return law


def without_replacement(exponents: Iterable[float], k: int) -> dict[tuple[int, ...], float]:
    """Ordered draws without replacement with probabilities proportional to e^x."""
    x = np.array([float(value) for value in exponents])
    weights = np.exp(x - x.max())
    law = {}
    for order in itertools.permutations(range(len(weights)), k):
        probability, left = 1.0, weights.sum()
        for i in order:
            probability *= weights[i] / left
            left -= weights[i]
        law[order] = float(probability)
    return law


class Scripted(ChosenWords):
    """The given words first, secure ones after them."""

    def __init__(self, *first: int) -> None:
        super().__init__(first)

    @property
    def drawn(self) -> int:
        """How many words were taken."""
        return self.taken

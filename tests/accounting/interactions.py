"""Interactions with an adaptive adversary, followed through every possible answer: their privacy is computed exactly.

A release is a cost together with something a mechanism of that cost may do: probabilities of its answers with a
person's data and without. The adversary names releases it would like, in order of preference; the first that the guard
admits is made, and every answer is followed on its own branch with its own copy of the guard.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from discreet.accounting.cost import Cost
from discreet.errors import BudgetExceeded


@dataclass(frozen=True)
class Release:
    """A cost, and the probabilities of a mechanism's answers with and without the person."""

    cost: Cost
    p: tuple[float, ...]
    q: tuple[float, ...]


def response(epsilon: float) -> Release:
    """Randomized response, the worst mechanism that is epsilon-DP."""
    truth = 1 / (1 + math.exp(-epsilon))
    return Release(Cost.pure(epsilon), (truth, 1 - truth), (1 - truth, truth))


def box(epsilon: float, delta: float) -> Release:
    """The worst mechanism that is (epsilon, delta)-DP: leaks with probability delta, else randomized response."""
    truth = (1 - delta) / (1 + math.exp(-epsilon))
    lie = 1 - delta - truth
    return Release(Cost.approximate(epsilon, delta), (delta, truth, lie, 0.0), (0.0, lie, truth, delta))


def gaussian(mu: float) -> Release:
    """Gaussian noise, of which the adversary sees only in which of four intervals the answer fell."""
    cuts = np.array([-math.inf, -0.5, mu / 2, mu + 0.5, math.inf])
    with_person, without = np.diff(ndtr(cuts - mu)), np.diff(ndtr(cuts))
    return Release(Cost.gaussian_dp(mu), tuple(with_person.tolist()), tuple(without.tolist()))


def finite(p: Sequence[float], q: Sequence[float]) -> Release:
    """Two finite distributions."""
    return Release(Cost.from_pair(list(p), list(q)), tuple(p), tuple(q))


@dataclass(frozen=True)
class State:
    """What the adversary sees: the answers so far and how likely they were with the person and without."""

    answers: tuple[int, ...] = ()
    p: float = 1.0
    q: float = 1.0

    @property
    def loss(self) -> float:
        return math.log(self.p / self.q) if self.p > 0 and self.q > 0 else math.copysign(math.inf, self.p - self.q)


Adversary = Callable[[State, object], Sequence[Release]]
BEFORE = State()


def transcripts(adversary: Adversary, guard: object, state: State = BEFORE) -> list[tuple[State, object]]:
    """All complete transcripts with their guards: `guard` has `charge`, which may refuse."""
    for wish in adversary(state, guard):
        branch = copy.copy(guard)
        try:
            branch.charge(wish.cost)  # type: ignore[attr-defined]
        except BudgetExceeded:
            continue
        found: list[tuple[State, object]] = []
        for answer, (p, q) in enumerate(zip(wish.p, wish.q, strict=True)):
            if p > 0 or q > 0:
                following = State((*state.answers, answer), state.p * p, state.q * q)
                found += transcripts(adversary, copy.copy(branch), following)
        return found
    return [(state, guard)]


def laws(ends: list[tuple[State, object]]) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of all transcripts with the person and without."""
    p, q = np.array([end.p for end, _ in ends]), np.array([end.q for end, _ in ends])
    assert abs(p.sum() - 1) < 1e-9
    assert abs(q.sum() - 1) < 1e-9
    return p, q


def hockey_stick(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    """The exact delta at epsilon, over both orders."""
    factor = math.exp(epsilon)
    return max(float(np.maximum(p - factor * q, 0).sum()), float(np.maximum(q - factor * p, 0).sum()))


def renyi(p: np.ndarray, q: np.ndarray, order: float) -> float:
    """The exact Rényi divergence, over both orders."""
    keep = (p > 0) & (q > 0)
    assert keep.all()
    forward = float(np.sum(q * (p / q) ** order))
    backward = float(np.sum(p * (q / p) ** order))
    return math.log(max(forward, backward)) / (order - 1)

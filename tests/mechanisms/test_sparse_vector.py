"""Sparse vector: probabilities of whole answers by quadrature, their ratio on neighbours, the law of releases."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis.strategies import floats, integers

from discreet import BudgetExceeded, Cost, DiscreetError
from discreet.audit import check
from discreet.mechanisms import AboveThreshold, Mechanism, SparseVector
from discreet.mechanisms.sparse_vector import exceeds
from discreet.noise.lazy import LazyNoise
from discreet.noise.testing import SeededGenerator
from noise.frequencies import ALPHA, Scripted, p_value

NODES, WEIGHTS = np.polynomial.legendre.leggauss(60)


def probability(answer: tuple[bool, ...], margins: np.ndarray, first: float, each: float) -> float:
    """P(margin_i + each nu_i >= first rho exactly where the answer says so), by quadrature between the kinks."""
    reach = 45 * first
    kinks = np.unique(np.clip([-reach, 0.0, *margins, *(k * first for k in range(-44, 45, 4)), reach], -reach, reach))
    total = 0.0
    for low, high in itertools.pairwise(kinks):
        z = (low + high) / 2 + (high - low) / 2 * NODES
        density = np.exp(-np.abs(z) / first) / (2 * first)
        for above, margin in zip(answer, margins, strict=False):
            t = (z - margin) / each
            tail = np.where(t > 0, np.exp(-np.abs(t)) / 2, 1 - np.exp(-np.abs(t)) / 2)
            density = density * (tail if above else 1 - tail)
        total += float((density * WEIGHTS).sum() * (high - low) / 2)
    return total


def answers(length: int, positives: int) -> list[tuple[bool, ...]]:
    """All answers of a run over so many values."""
    found = []
    for bits in itertools.product([False, True], repeat=length):
        ends = [i for i in range(length) if sum(bits[: i + 1]) == positives]
        found.append(bits[: ends[0] + 1] if ends else bits)
    return sorted(set(found))


def law(margins: np.ndarray, positives: int, first: float, each: float) -> dict[tuple[bool, ...], float]:
    return {answer: probability(answer, margins, first, each) for answer in answers(len(margins), positives)}


def scales(mechanism: SparseVector | AboveThreshold) -> tuple[float, float]:
    first, each = mechanism.scales
    return float(first), float(each)


def test_the_quadrature_is_a_law() -> None:
    assert sum(law(np.array([-1.0, 3.0, 0.5, 2.0]), 2, 2.0, 7.0).values()) == pytest.approx(1, abs=1e-12)


def test_answers_have_their_law_and_no_other() -> None:
    mechanism = SparseVector(3.0, sensitivity=1, threshold=10, positives=2)
    first, each = scales(mechanism)
    margins = np.array([-2.0, 1.0, 3.0, -1.0])
    draws = [tuple(mechanism.release(10 + margins).tolist()) for _ in range(4_000)]
    assert p_value(draws, law(margins, 2, first, each)) > ALPHA
    assert p_value(draws, law(margins, 2, first, each / 2)) < ALPHA
    assert p_value(draws, law(margins, 2, first / 100, each)) < ALPHA


def test_the_first_above_has_its_law() -> None:
    mechanism = AboveThreshold(2.0, sensitivity=1, threshold=-1.5)
    margins = np.array([-2.0, 1.0, 3.0])
    wanted = {len(a) - 1 if any(a) else None: p for a, p in law(margins, 1, *scales(mechanism)).items()}
    draws = [mechanism.release((margins - 1.5).tolist()) for _ in range(4_000)]
    assert p_value(draws, wanted) > ALPHA
    assert p_value(draws, {0: 1 / 3, 1: 1 / 3, 2: 1 / 4, None: 1 / 12}) < ALPHA


def worst_loss(positives: int, first: float, each: float, *, monotone: bool) -> float:
    """The largest log ratio of an answer on neighbours, over margins and changes that stress it."""
    worst = 0.0
    for level, length in itertools.product((-20.0, -5.0, 0.0, 5.0), (positives, positives + 3)):
        here = np.full(length, level)
        here[-positives:] += np.array([-30.0, 0.0])[: min(2, positives)].sum() / 2
        for answer in answers(length, positives):
            up = np.array([1.0 if above else (0.0 if monotone else -1.0) for above in answer])
            there = here[: len(answer)]
            ratio = probability(answer, there + up, first, each) / probability(answer, there, first, each)
            worst = max(worst, abs(math.log(ratio)))
            if monotone:
                down = np.array([0.0 if above else -1.0 for above in answer])
                ratio = probability(answer, there + down, first, each) / probability(answer, there, first, each)
                worst = max(worst, abs(math.log(ratio)))
    return worst


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("positives", [1, 2])
def test_no_answer_is_likelier_on_a_neighbour_than_epsilon_allows(positives: int, monotone: bool) -> None:
    mechanism = SparseVector(1.0, sensitivity=1, threshold=0, positives=positives, monotone=monotone)
    first, each = scales(mechanism)
    loss = worst_loss(positives, first, each, monotone=monotone)
    assert 0.6 < loss <= 1 + 1e-9
    # query noise that forgets how many answers it serves, as in the versions that were not private
    assert worst_loss(positives, first, each / (2 * positives), monotone=monotone) > 1


@given(seed=integers(0, 1 << 32), margin=floats(-20, 20), each=floats(0.1, 20))
def test_floats_and_integers_compare_alike_on_the_same_words(seed: int, margin: float, each: float) -> None:
    def noises() -> tuple[LazyNoise, LazyNoise]:
        source = SeededGenerator(seed)
        return LazyNoise("laplace", 1, generator=source), LazyNoise("laplace", 1, generator=source)

    nu, rho = noises()
    by_floats = exceeds(Fraction(margin), nu, Fraction(each), rho, Fraction(2))
    nu, rho = noises()
    huge = Fraction(10) ** 400  # no float holds these, so integers decide the same comparison
    assert by_floats == exceeds(Fraction(margin) * huge, nu, Fraction(each) * huge, rho, 2 * huge)


def test_equal_first_words_are_told_apart_by_later_ones() -> None:
    word = 1 << 61
    mechanism = AboveThreshold(1.0, sensitivity=1, threshold=0, monotone=True)
    first, each = mechanism.scales
    assert first == each  # so that equal noise leaves the comparison open
    found = [mechanism.release([0], generator=Scripted(word, word)) for _ in range(1000)]
    assert p_value(found, {0: 0.5, None: 0.5}) > ALPHA
    assert p_value(found, {0: 0.7, None: 0.3}) < ALPHA


def test_a_session_answers_one_by_one_and_ends_with_its_last_positive() -> None:
    session = SparseVector(50.0, sensitivity=1, threshold=100, positives=2).session()
    assert [session.ask(value) for value in (0, Fraction(1000), 5.5)] == [False, True, False]
    assert session.remaining == 1
    assert session.ask(10**400) is True
    assert (session.asked, session.remaining) == (4, 0)
    with pytest.raises(BudgetExceeded, match="answers above"):
        session.ask(0)


def test_the_noisy_threshold_is_drawn_once_per_session() -> None:
    mechanism = SparseVector(1.0, sensitivity=1, threshold=0, positives=5)
    source = Scripted()
    session = mechanism.session(generator=source)
    for _ in range(3):
        session.ask(-1e9)
    assert source.drawn <= 8  # one word each and one for the threshold; words at an end take one more


def test_releases_end_with_the_last_positive_and_never_earlier() -> None:
    mechanism = SparseVector(90.0, sensitivity=1, threshold=0, positives=2)
    assert mechanism.release([-99, 99, -99, 99, 99]).tolist() == [False, True, False, True]
    assert mechanism.release([-99, -99, 99]).tolist() == [False, False, True]
    assert AboveThreshold(90.0, sensitivity=1, threshold=0).release([-99, -99]) is None


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("positives", [1, 3, 50])
def test_epsilon_is_split_so_that_the_variance_is_smallest(positives: int, monotone: bool) -> None:
    mechanism = SparseVector(1.5, sensitivity=2, threshold=0, positives=positives, monotone=monotone)
    changes = positives if monotone else 2 * positives
    first, each = mechanism.scales
    spent = [2 / first, 2 * changes / each]
    assert sum(spent) == Fraction(1.5)
    for factor in (Fraction(99, 100), Fraction(101, 100)):
        other = spent[0] * factor
        assert (2 / other) ** 2 + (2 * changes / (sum(spent) - other)) ** 2 > first**2 + each**2


def test_the_error_holds_in_trials_and_grows_slowly_with_the_number_of_values() -> None:
    mechanism = AboveThreshold(2.0, sensitivity=1, threshold=0, queries=10)
    gap = mechanism.error(0.8)
    wrong = sum(mechanism.release([-gap * 1.0001] * 10) is not None for _ in range(1500))
    assert wrong <= 300 + 6 * math.sqrt(240)
    assert wrong > 0
    assert mechanism.error(0.8) < AboveThreshold(2.0, sensitivity=1, threshold=0).error(0.8, queries=1000) < 3 * gap
    with pytest.raises(DiscreetError, match="pass queries="):
        AboveThreshold(2.0, sensitivity=1, threshold=0).error()


MECHANISMS = [
    SparseVector(1.0, sensitivity=1, threshold=5, positives=2, queries=4),
    AboveThreshold(1.0, sensitivity=0.5, threshold=-3.25, monotone=True),
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_costs_are_pure_and_descriptions_survive_json(mechanism: Mechanism) -> None:
    assert mechanism.cost == Cost.pure(1.0)
    assert Mechanism.from_dict(json.loads(json.dumps(mechanism.to_dict()))) == mechanism


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_the_audit_finds_nothing(mechanism: Mechanism) -> None:
    report = check(mechanism, draws=3_000)
    assert report.passed, str(report)


@pytest.mark.parametrize(
    "value", [[], [math.nan], [1.0, math.inf], "ab", None, 3.0, np.zeros((2, 2)), [[1.0]], [True], [None]]
)
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: mechanism.kind)
def test_bad_values_are_refused_before_any_word_is_drawn(mechanism: Mechanism, value: object) -> None:
    source = Scripted()
    with pytest.raises(DiscreetError, match="value"):
        mechanism.release(value, generator=source)
    assert source.drawn == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"epsilon": 0},
        {"epsilon": math.nan},
        {"sensitivity": 0},
        {"sensitivity": -1},
        {"threshold": math.nan},
        {"threshold": None},
        {"positives": 0},
        {"positives": 10**20},
        {"queries": 0},
        {"monotone": "yes"},
    ],
    ids=str,
)
def test_bad_parameters_are_refused(changes: dict) -> None:
    with pytest.raises(DiscreetError, match=next(iter(changes))):
        SparseVector(**{"epsilon": 1.0, "sensitivity": 1.0, "threshold": 0.0, "positives": 1, **changes})


def test_more_values_than_declared_are_refused() -> None:
    mechanism = AboveThreshold(1.0, sensitivity=1, threshold=1e6, queries=2)
    with pytest.raises(DiscreetError, match="at most 2 queries"):
        mechanism.release([0, 0, 0])
    session = mechanism.session()
    session.ask(0)
    session.ask(0)
    with pytest.raises(BudgetExceeded, match="queries"):
        session.ask(0)

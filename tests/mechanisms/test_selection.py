"""Choices by score: the stated law, the stated cost, the stated error, and nothing drawn for a bad input."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis.strategies import booleans, floats, integers, lists, tuples

from discreet import Cost, DiscreetError
from discreet.audit import check
from discreet.mechanisms import ExponentialMechanism, Mechanism, PermuteAndFlip, ReportNoisyMax, Selection, TopK
from noise.frequencies import ALPHA, Scripted, p_value, permute_and_flip_law, softmax, without_replacement

SCORES = np.array([0.0, 2.0, 5.0, -3.0, 5.0])
LAWS = {
    "exponential_mechanism": (ExponentialMechanism, softmax),
    "permute_and_flip": (PermuteAndFlip, permute_and_flip_law),
}
ALL = [
    ExponentialMechanism(1.0, sensitivity=2),
    PermuteAndFlip(0.7, sensitivity=0.5, monotone=True, candidates=4),
    ReportNoisyMax(1.2, sensitivity=1),
    ReportNoisyMax(1.2, sensitivity=1, noise="gumbel", monotone=True),
    ReportNoisyMax(1.2, sensitivity=1, noise="laplace"),
    TopK(2, epsilon=1.5, sensitivity=1, candidates=4),
]
NEIGHBOURS = tuples(lists(tuples(floats(-30, 30), floats(-1, 1)), min_size=2, max_size=6), floats(0.05, 5), booleans())


def exponents(mechanism: Selection | TopK, scores: np.ndarray) -> list[float]:
    return [float(mechanism.factor) * float(score) for score in scores]


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("kind", sorted(LAWS))
def test_releases_have_the_law_on_paper_and_no_other(kind: str, monotone: bool) -> None:
    make, law = LAWS[kind]
    mechanism = make(1.0, sensitivity=2, monotone=monotone)
    factor = 1 / (2 if monotone else 4)
    draws = [mechanism.release(SCORES) for _ in range(10_000)]
    assert p_value(draws, law(factor * SCORES)) > ALPHA
    assert p_value(draws, law(1.5 * factor * SCORES)) < ALPHA
    assert p_value(draws, law(0.6 * factor * SCORES)) < ALPHA


@pytest.mark.parametrize(("noise", "law"), [("gumbel", softmax), ("exponential", permute_and_flip_law)])
def test_the_noisy_maximum_has_the_law_of_its_twin(noise: str, law) -> None:
    mechanism = ReportNoisyMax(2.0, sensitivity=2, noise=noise)
    draws = [mechanism.release(SCORES) for _ in range(10_000)]
    assert p_value(draws, law(SCORES / 2)) > ALPHA
    assert p_value(draws, law(SCORES / 3)) < ALPHA


def test_the_top_k_are_k_exponential_mechanisms_at_a_kth_of_epsilon() -> None:
    mechanism = TopK(2, epsilon=4.0, sensitivity=1)
    draws = [tuple(mechanism.release(SCORES[:4]).tolist()) for _ in range(10_000)]
    assert p_value(draws, without_replacement(SCORES[:4], 2)) > ALPHA
    assert p_value(draws, without_replacement(1.3 * SCORES[:4], 2)) < ALPHA
    assert mechanism.cost == 2 * Cost.exponential_mechanism(2.0)


def test_the_integral_for_permute_and_flip_is_the_sum_over_all_orders_of_its_rational_enumeration() -> None:
    weights = [Fraction(1), Fraction(1, 3), Fraction(2, 5), Fraction(1, 7)]
    chosen = [Fraction(0)] * 4
    for order in itertools.permutations(range(4)):
        left = Fraction(1, math.factorial(4))
        for i in order:
            chosen[i] += left * weights[i]
            left *= 1 - weights[i]
    assert sum(chosen) == 1
    law = permute_and_flip_law([math.log(weight) for weight in weights])
    assert law == pytest.approx(dict(enumerate(map(float, chosen))), rel=1e-12)


@given(case=NEIGHBOURS)
def test_no_outcome_is_likelier_on_a_neighbour_than_epsilon_allows(case) -> None:
    pairs, epsilon, monotone = case
    scores = np.array([score for score, _ in pairs])
    changes = np.array([abs(change) if monotone else change for _, change in pairs])
    for make, law in LAWS.values():
        mechanism = make(epsilon, sensitivity=1, monotone=monotone)
        here, there = (law(exponents(mechanism, s)) for s in (scores, scores + changes))
        losses = [math.log(there[i] / here[i]) for i in here]
        assert max(map(abs, losses)) <= epsilon * (1 + 1e-6) + 1e-6
        if make is ExponentialMechanism:
            assert max(losses) - min(losses) <= epsilon * (1 + 1e-9) + 1e-9  # bounded range


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("kind", sorted(LAWS))
def test_the_loss_comes_close_to_epsilon_and_half_the_noise_breaks_it(kind: str, monotone: bool) -> None:
    make, law = LAWS[kind]
    mechanism = make(1.0, sensitivity=1, monotone=monotone)
    here = np.array([-6.0, *[0.0] * 12]) * 4
    there = here + np.array([1.0, *[0.0 if monotone else -1.0] * 12])
    factor = float(mechanism.factor)
    loss = lambda a: math.log(law(a * there)[0] / law(a * here)[0])
    assert 0.9 <= loss(factor) <= 1 + 1e-9
    assert loss(2 * factor) > 1.5


@given(scores=lists(floats(-20, 20), min_size=1, max_size=8), factor=floats(0.01, 3))
def test_permute_and_flip_is_never_worse_than_the_exponential_mechanism(scores: list[float], factor: float) -> None:
    means = [
        sum(p * scores[i] for i, p in law([factor * score for score in scores]).items())
        for law in (permute_and_flip_law, softmax)
    ]
    assert means[0] >= means[1] - 1e-9 * (1 + max(map(abs, scores)))


@pytest.mark.parametrize("kind", sorted(LAWS))
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.999])
@pytest.mark.parametrize("n", [2, 10])
def test_the_error_is_attained_by_the_worst_scores(kind: str, confidence: float, n: int) -> None:
    make, law = LAWS[kind]
    mechanism = make(1.0, sensitivity=3, candidates=n)
    gap = mechanism.error(confidence)
    missed = 1 - law(exponents(mechanism, np.array([0.0, *[-gap] * (n - 1)])))[0]
    assert missed == pytest.approx(min(1 - confidence, 1 - 1 / n), rel=1e-6)
    assert gap == mechanism.error(confidence, candidates=n)


@given(scores=lists(floats(-40, 0), min_size=1, max_size=8), confidence=floats(0.05, 0.999))
def test_the_error_holds_for_all_scores(scores: list[float], confidence: float) -> None:
    best = max(scores)
    for make, law in LAWS.values():
        mechanism = make(1.0, sensitivity=1)
        gap = mechanism.error(confidence, candidates=len(scores))
        beyond = sum(p for i, p in law(exponents(mechanism, scores)).items() if best - scores[i] > gap)
        assert beyond <= 1 - confidence + 1e-9


def test_the_error_of_laplace_noise_and_of_the_top_k_holds_in_trials() -> None:
    scores = np.array([0.0, *[-8.0] * 9])
    laplace = ReportNoisyMax(1.0, sensitivity=1, noise="laplace", candidates=10)
    confidence = next(c for c in np.linspace(0.99, 0.01, 99) if laplace.error(float(c)) < 8)
    missed = sum(laplace.release(scores) != 0 for _ in range(4000))
    assert missed <= 4000 * (1 - confidence) + 6 * math.sqrt(4000)
    top = TopK(3, epsilon=6.0, sensitivity=1, candidates=10)
    gap = top.error(0.9)
    values = np.array([0.0, 0.0, 0.0, *[-gap * 1.0001] * 7])
    missed = sum(set(top.release(values).tolist()) != {0, 1, 2} for _ in range(4000))
    assert missed <= 400 + 6 * math.sqrt(360)
    assert missed > 0  # a bound that is never reached would be too careful


def test_permute_and_flip_states_the_smaller_error_and_monotone_scores_halve_it() -> None:
    arguments = {"sensitivity": 1, "candidates": 100}
    assert PermuteAndFlip(1.0, **arguments).error() < ExponentialMechanism(1.0, **arguments).error()
    assert ExponentialMechanism(1.0, monotone=True, **arguments).error() == pytest.approx(
        ExponentialMechanism(1.0, **arguments).error() / 2
    )
    assert ExponentialMechanism(1.0, sensitivity=1, candidates=1).error(0.999) == 0


def test_costs_are_those_of_the_theorems() -> None:
    assert ExponentialMechanism(0.5, sensitivity=3).cost == Cost.exponential_mechanism(0.5)
    assert PermuteAndFlip(0.5, sensitivity=3).cost == Cost.pure(0.5)
    assert ReportNoisyMax(0.5, sensitivity=3, noise="gumbel").cost == Cost.exponential_mechanism(0.5)
    assert ReportNoisyMax(0.5, sensitivity=3, noise="laplace").cost == Cost.pure(0.5)
    replaced = ExponentialMechanism(0.5, sensitivity=3, adjacency="replace-one")
    assert replaced.cost == Cost.exponential_mechanism(0.5, adjacency="replace-one")
    assert TopK(3, epsilon=0.3, sensitivity=1).cost == 3 * Cost.exponential_mechanism(0.1)


@given(epsilon=floats(1e-3, 100), k=integers(1, 30))
def test_the_factor_never_exceeds_what_the_cost_states(epsilon: float, k: int) -> None:
    mechanism = TopK(k, epsilon=epsilon, sensitivity=1, monotone=True)
    ((leaf, times),) = mechanism.cost.parts
    assert times == k
    assert mechanism.factor <= Fraction(leaf.epsilon)
    assert mechanism.factor <= Fraction(repr(leaf.epsilon))
    assert k * Fraction(repr(leaf.epsilon)) <= Fraction(repr(epsilon))
    assert float(mechanism.factor) == pytest.approx(leaf.epsilon, rel=1e-15)


@pytest.mark.parametrize("mechanism", ALL, ids=repr)
def test_descriptions_survive_json(mechanism: Mechanism) -> None:
    again = Mechanism.from_dict(json.loads(json.dumps(mechanism.to_dict())))
    assert again == mechanism
    assert again.cost == mechanism.cost
    assert repr(again) == repr(mechanism)


@pytest.mark.parametrize("make", [ExponentialMechanism, PermuteAndFlip, ReportNoisyMax])
def test_the_audit_finds_a_choice_with_a_third_of_the_noise(make) -> None:
    wrong = make(6.0, sensitivity=1, candidates=8)
    report = check(release=wrong.release, cost=Cost.pure(2.0), inputs=wrong.examples(), draws=8_000)
    assert not report.passed


BAD_SCORES = [[], [math.nan, 1.0], [math.inf, 0.0], np.zeros((2, 2)), "ab", None, 3.0, [True, False], ["a"], {1: 2}]


@pytest.mark.parametrize("scores", BAD_SCORES, ids=repr)
@pytest.mark.parametrize("mechanism", ALL, ids=lambda mechanism: mechanism.kind)
def test_bad_scores_are_refused_before_any_word_is_drawn(mechanism: Mechanism, scores: object) -> None:
    source = Scripted()
    with pytest.raises(DiscreetError, match="scores"):
        mechanism.release(scores, generator=source)
    assert source.drawn == 0


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": -1}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"epsilon": 1e9}, "epsilon"),
        ({"sensitivity": 0}, "sensitivity"),
        ({"sensitivity": -1.0}, "sensitivity"),
        ({"sensitivity": math.inf}, "sensitivity"),
        ({"sensitivity": None}, "sensitivity"),
        ({"monotone": 1}, "monotone"),
        ({"candidates": 0}, "candidates"),
        ({"candidates": 2.5}, "candidates"),
        ({"adjacency": "friends"}, "adjacency"),
    ],
)
@pytest.mark.parametrize("make", [ExponentialMechanism, PermuteAndFlip, ReportNoisyMax])
def test_bad_parameters_are_refused(make, changes: dict, match: str) -> None:
    with pytest.raises(DiscreetError, match=match):
        make(**{"epsilon": 1.0, "sensitivity": 1.0, **changes})


def test_further_refusals_say_what_to_do() -> None:
    with pytest.raises(DiscreetError, match="did you mean 'gumbel'"):
        ReportNoisyMax(1.0, sensitivity=1, noise="gumbl")
    with pytest.raises(DiscreetError, match="pass candidates="):
        ExponentialMechanism(1.0, sensitivity=1).error()
    with pytest.raises(DiscreetError, match="made for 3 candidates"):
        ExponentialMechanism(1.0, sensitivity=1, candidates=3).release([1, 2])
    with pytest.raises(DiscreetError, match="made for 3 candidates"):
        ExponentialMechanism(1.0, sensitivity=1, candidates=3).error(candidates=4)
    with pytest.raises(DiscreetError, match="only 2 candidates"):
        TopK(3, epsilon=1.0, sensitivity=1, candidates=2)
    with pytest.raises(DiscreetError, match="only 2 candidates"):
        TopK(3, epsilon=1.0, sensitivity=1).release([1, 2])
    with pytest.raises(DiscreetError, match="k = "):
        TopK(0, epsilon=1.0, sensitivity=1)
    with pytest.raises(DiscreetError, match="confidence"):
        PermuteAndFlip(1.0, sensitivity=1, candidates=3).error(1.0)

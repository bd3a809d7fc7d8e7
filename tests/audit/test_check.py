"""The conformance suite accepts what is right, catches what is wrong, and both of its error rates are known."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from audit.planted import FAULTS, Count, coin
from discreet import AuditFailed, Cost, InvalidArgument
from discreet.audit import check
from discreet.audit.binomial import at_least, at_most
from discreet.audit.check import DRAWS, FALSE_ALARM
from discreet.audit.claim import Claim
from discreet.noise import discrete_gaussian, discrete_laplace

TESTING = DRAWS * 3 // 4  # what is left after the events were chosen
MISS = FALSE_ALARM / 4 / 4 / 4  # one of four groups of checks, one of four events, one of four bounds


@pytest.mark.parametrize("repeat", range(5))
def test_the_right_mechanism_passes(repeat: int) -> None:
    report = check(Count())
    assert report.passed, repr(report)
    assert [finding.verdict for finding in report.findings] == ["passed", "skipped", "skipped"] + ["passed"] * 4
    assert 0.9 < report.epsilon_measured < report.epsilon_claimed == pytest.approx(1.0)


@pytest.mark.parametrize("epsilon", [1.0, 2.0])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_bug_is_caught(fault: str, epsilon: float) -> None:
    report = check(Count(epsilon=epsilon, fault=fault))
    assert not report.passed, repr(report)
    assert {finding.check for finding in report.failures} <= {"privacy", "low bits"}
    assert report.epsilon_measured > report.epsilon_claimed
    with pytest.raises(AuditFailed, match="failed its audit"):
        report.raise_for_failures()


def test_a_biased_coin_is_caught_and_a_fair_one_is_not() -> None:
    def truth(epsilon: float) -> float:
        return math.exp(epsilon) / (1 + math.exp(epsilon))

    cost = Cost.randomized_response(1.0)
    assert check(releases=coin(truth(1.0)), cost=cost, inputs=(0, 1)).passed
    assert not check(releases=coin(truth(1.1)), cost=cost, inputs=(0, 1)).passed


@pytest.mark.parametrize(
    ("cost", "likely", "unlikely"),
    [
        # P(X >= 1) for discrete Laplace noise of scale s around 1 and 0: 1/(1 + r) and r/(1 + r), r = e^{-1/s}
        *(
            (Cost.discrete_laplace(1 / epsilon), 1 / (1 + math.exp(-epsilon / 0.9)), 1 / (1 + math.exp(epsilon / 0.9)))
            for epsilon in (1.0, 2.0, 4.0)
        ),
        # N(1, 0.9^2 s^2) and N(0, 0.9^2 s^2) above 1/2
        *(
            (Cost.gaussian(s), 0.5 * math.erfc(-0.5 / (0.9 * s) / 2**0.5), 0.5 * math.erfc(0.5 / (0.9 * s) / 2**0.5))
            for s in (0.5, 1.0, 1.5)
        ),
    ],
    ids=repr,
)
def test_a_scale_that_is_a_tenth_too_small_is_caught_99_times_in_100(
    cost: Cost, likely: float, unlikely: float
) -> None:
    # outside 0.5 % of unlucky counts on each side, the counts refute the claim: an exact statement about binomials
    a, b = binom.ppf(0.005, TESTING, likely), binom.ppf(0.995, TESTING, unlikely)
    low, high = at_least(a, TESTING, MISS), at_most(b, TESTING, MISS)
    assert low > Claim.of(cost).allows(high)


@pytest.mark.parametrize("fault", ["", "scale 10 % too small"])
def test_the_verdict_at_other_numbers_of_draws_is_the_right_one_or_none(fault: str) -> None:
    few = check(Count(fault=fault), draws=1000)
    assert few.passed  # too few to tell: no alarm
    assert few.epsilon_measured < 0.9


@pytest.mark.parametrize("scale", [1.0, 0.9])
def test_arrays_are_audited_through_all_coordinates_together(scale: float) -> None:
    # five counts, each of which one person changes by one
    def releases(value: Any, n: int) -> Any:
        return np.asarray(value) + discrete_laplace(2 * scale, (n, 5))

    report = check(releases=releases, cost=5 * Cost.discrete_laplace(2.0), inputs=(np.zeros(5, int), np.ones(5, int)))
    assert report.passed == (scale == 1.0), repr(report)


@pytest.mark.parametrize("scale", [4.0, 3.6])
def test_gaussian_noise_on_a_lattice_is_audited_over_the_whole_curve(scale: float) -> None:
    def releases(value: float, n: int) -> Any:
        return (int(value * 1024) + discrete_gaussian(scale * 1024 / 4, n)) / 1024

    report = check(releases=releases, cost=Cost.gaussian(1.0), inputs=(0.0, 1.0))
    assert report.passed == (scale == 4.0), repr(report)
    assert report.delta == 1e-5


def test_words_and_lists_are_outcomes_too() -> None:
    truth = coin(0.75)

    def words(answer: str, n: int) -> list[tuple[str, bool]]:
        return [("yes" if bit else "no", True) for bit in truth(int(answer == "yes"), n)]

    def call(epsilon: float) -> Any:
        return check(releases=words, cost=Cost.pure(epsilon), inputs=("yes", "no"), draws=40_000)

    assert call(math.log(3) + 1e-9).passed
    report = call(0.9)  # ln 3 = 1.0986 is measured to about 0.1
    assert not report.passed
    assert "('yes', True)" in report.failures[0].message or "('no', True)" in report.failures[0].message


def test_an_outcome_that_only_one_input_has_is_found() -> None:
    def releases(value: int, n: int) -> Any:
        draws = discrete_laplace(1.0, n)
        return np.where((value == 1) & (draws > 4), 99, draws)  # one time in two hundred

    report = check(releases=releases, cost=Cost.pure(1.0), inputs=(0, 1))
    assert not report.passed
    evidence = report.failures[0].evidence
    assert evidence is not None
    assert "99" in evidence.event
    assert evidence.at_least > evidence.allowed > evidence.at_most


def test_a_release_that_differs_from_those_drawn_at_once_is_found() -> None:
    class Loud(Count):
        def release(self, value: int, *, generator: Any = None) -> int:
            return (
                value + discrete_laplace(0.5, generator=generator) if isinstance(value, int) else super().release(value)
            )

    class Silent(Count):
        def release(self, value: int, *, generator: Any = None) -> int:
            return super().release(value) * 0 + value

    for mechanism in (Loud(epsilon=0.2), Silent()):
        assert [finding.check for finding in check(mechanism).failures] == ["one and many"]


def test_all_pairs_of_inputs_are_audited() -> None:
    def releases(value: int, n: int) -> Any:
        return discrete_laplace(1.0 if value < 5 else 0.5, n) + value

    assert check(releases=releases, cost=Cost.pure(1.0), inputs=[(0, 1), (2, 3)]).passed
    assert not check(releases=releases, cost=Cost.pure(1.0), inputs=[(0, 1), (6, 7)]).passed


def test_a_delta_allows_rare_events_on_one_side_and_no_frequent_ones() -> None:
    def releases(value: int, n: int) -> Any:
        return value * (discrete_laplace(1.0, n) > 2) * 7  # nothing, except e^-3 / (1 + e^-1) of the time

    share = math.exp(-3) / (1 + math.exp(-1))
    assert check(releases=releases, cost=Cost.approximate(0.1, share), inputs=(0, 1)).passed
    assert not check(releases=releases, cost=Cost.approximate(0.1, 0.8 * share), inputs=(0, 1)).passed


@given(st.sampled_from([Cost.pure(1.0), Cost.gaussian(1.0), Cost.approximate(0.5, 1e-3)]), st.floats(0, 1))
def test_a_claim_allows_what_its_own_trade_off_curve_allows(cost: Cost, q: float) -> None:
    allowed = float(Claim.of(cost).allows(q))
    assert allowed >= q
    assert allowed >= 1 - float(cost.tradeoff()(q)) - 1e-9 or allowed == 1
    assert allowed <= 1 - float(cost.tradeoff()(q)) + 5e-3  # and not much more, on the grid


def test_the_report_is_json_and_html_and_text() -> None:
    report = check(Count(fault="half noise"), draws=20_000)
    described = json.loads(json.dumps(report.to_dict()))
    assert described["passed"] is False
    assert described["findings"][0]["evidence"]["releases"] == 15_000
    assert "✗ privacy" in repr(report)
    assert "<table>" in report._repr_html_()
    assert report.confidence == 1 - 1e-9


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({}, "mechanism"),
        ({"mechanism": 3}, "mechanism"),
        ({"release": len, "inputs": (0, 1)}, "cost"),
        ({"release": len, "cost": Cost.pure(1.0)}, "inputs"),
        ({"release": len, "cost": Cost.pure(1.0), "inputs": 3}, "inputs"),
        ({"release": len, "cost": Cost.pure(1.0), "inputs": [0, 1]}, "inputs"),
        ({"mechanism": Count(), "release": len}, "release"),
        ({"mechanism": Count(), "draws": 1}, "draws"),
        ({"mechanism": Count(), "false_alarm": 0}, "false_alarm"),
        ({"mechanism": Count(), "false_alarm": 1e-200}, "false_alarm"),
        ({"mechanism": Count(), "delta": -1}, "delta"),
        ({"releases": lambda value, n: [0], "cost": Cost.pure(1.0), "inputs": (0, 1)}, "releases"),
        ({"releases": lambda value, n: 7, "cost": Cost.pure(1.0), "inputs": (0, 1)}, "releases"),
    ],
)
def test_wrong_arguments_are_refused_with_advice(arguments: dict[str, Any], word: str) -> None:
    with pytest.raises(InvalidArgument, match=word):
        check(**arguments)

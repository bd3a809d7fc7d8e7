"""Whatever is chosen privately, and however little is paid: what was paid for is answered."""

from __future__ import annotations

import itertools
import warnings

import pytest

from discreet import Cost
from discreet.errors import BudgetExceeded, InvalidArgument
from discreet.query import run as running
from discreet.query.estimates import noisy_table
from discreet.query.kept import to_bytes
from discreet.query.measuring import measure
from discreet.query.options import Options
from discreet.query.plan import Aggregate
from discreet.query.private import private_plan
from discreet.query.target import Target
from query.open_shop import charges, opened
from query.tables import PRIVATE, block, session_of, visits

RANKS = (
    Aggregate("quantile", "a0", "median", "xx", probability=0.5),
    Aggregate("quantile", "a1", "low", "nx", probability=0.01, bounds=(0.0, 10.0), kind="integer"),
    Aggregate("max", "a2", "max", "xx"),
    Aggregate("min", "a3", "min", "nx", kind="integer"),
)
SUMS = (
    Aggregate("count", "a0", "count"),
    Aggregate("stddev", "a1", "spread", "xx"),
    Aggregate("count_units", "a2", "units"),
    Aggregate("count_distinct", "a3", "distinct", "nx"),
)
TARGETS = {
    "pure": [Target(epsilon=e) for e in (1e-14, 1e-11, 1e-4, 599.0)],
    "slack": [Target(epsilon=e, delta=1e-8) for e in (1e-300, 1e-5, 599.0)],
    "rho": [Target(rho=r) for r in (1e-30, 1e-21, 1e-8, 50.0)],
}
FIRST, LAST = -4, 448
"""The numbers of the smallest and the largest candidate for a bound."""


@pytest.mark.parametrize("targets", TARGETS)
@pytest.mark.parametrize("aggregates", [RANKS, SUMS, SUMS[3:]], ids=["ranks", "sums", "distinct"])
def test_nothing_that_is_paid_for_fails_whatever_bound_is_chosen(
    aggregates: tuple[Aggregate, ...], targets: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered = refused = 0
    rows = {"row_level": True, "rows_per_unit": 1}
    cases = itertools.product(((), (PRIVATE,)), ({}, rows), TARGETS[targets])
    with session_of(visits(20, 100, 1)) as session, warnings.catch_warnings():
        warnings.simplefilter("error")
        for keys, facts, target in cases:
            try:
                plan = private_plan(block(*aggregates, keys=keys, **facts), target, Options())
            except InvalidArgument:
                refused += 1
                continue
            chosen = (FIRST, 97, LAST) if plan.allocation.choices else (FIRST,)
            for bound in chosen:
                for name in ("choose_bound", "choose_share", "choose_kept"):
                    monkeypatch.setattr(running, name, lambda *_, bound=bound, **__: bound)
                measured = measure(session, plan)
                noisy_table(measured, 0.95, at_once=0.9999)
                to_bytes([measured])
                answered += 1
    assert answered > 3
    assert refused  # the smallest price


@pytest.mark.parametrize(
    "question",
    [
        "SELECT MEDIAN(spend) AS m FROM visits",
        "SELECT COUNT(DISTINCT city) AS n FROM visits",
        "SELECT city, COUNT(*) AS n FROM visits GROUP BY city",
    ],
)
def test_a_price_that_is_too_small_is_refused_before_it_is_paid(question: str) -> None:
    with opened() as curator:
        for price in ({"epsilon": 1e-13, "delta": 0.0}, {"epsilon": 1e-280, "delta": 1e-20}):
            with pytest.raises(InvalidArgument, match=r"^(epsilon|delta) = .* is not allowed: .*pass"):
                curator.sql(question, **price)
        for cost in (Cost.gaussian_dp(1e-14), Cost.concentrated(1e-30)):
            with pytest.raises(InvalidArgument, match=r"^(mu|rho) = .* is not allowed: .*pass more|delta = 0"):
                curator.sql(question, cost=cost)
        assert charges(curator) == 0


def test_a_price_is_refused_that_is_too_small_for_a_second_count_alone() -> None:
    """Of many measures each has little, of which a second count takes a part."""
    averages = ", ".join(f"AVG(spend + {number})" for number in range(60))
    question = f"SELECT COUNT(*), {averages} FROM visits"
    with opened() as curator:
        least, more = 1e-13, 1e-3
        for _ in range(50):
            middle = (least * more) ** 0.5
            try:
                plan = curator.explain(question, epsilon=middle, delta=0.0).plans[0]
                more = middle
            except InvalidArgument:
                least = middle
        assert plan.allocation.pots
        for place in plan.allocation.pots:
            assert plan.allocation.checked_again(place) < plan.allocation.counted
            assert 1 / plan.allocation.checked_again(place) <= 1e12


def test_a_refusal_of_the_budget_does_not_stumble_over_prices_that_are_too_small() -> None:
    with opened() as curator:
        curator.sql("SELECT COUNT(*) AS n FROM visits", epsilon=20.0, delta=0.0)
        with pytest.raises(BudgetExceeded):
            curator.sql("SELECT COUNT(DISTINCT city) AS n FROM visits", epsilon=1e-9, delta=0.0)

"""Budgets that begin again: what a period is, and that no clock gives budget back."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from discreet import Budget, BudgetExceeded, Cost, Ledger

START = datetime(2026, 1, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.time = START

    def __call__(self) -> datetime:
        return self.time


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("discreet.ledger.ledger.now", made)
    return made


@pytest.fixture
def ledger(clock: Clock) -> Ledger:
    return Ledger.in_memory()


def test_a_period_counts_its_own_charges_only(ledger: Ledger, clock: Clock) -> None:
    ledger.establish("d", Budget(epsilon=1.0), period=DAY)
    ledger.reserve("d", Cost.pure(0.8))
    clock.time = START + DAY - timedelta(microseconds=1)
    with pytest.raises(BudgetExceeded, match=r"wait until the period ends at 2026-01-02T12:00:00\.000000Z"):
        ledger.reserve("d", Cost.pure(0.3))
    assert ledger.standings("d")[0].renewed == START + DAY
    clock.time = START + DAY
    assert ledger.remaining("d") == 1.0
    ledger.reserve("d", Cost.pure(0.3))
    assert ledger.remaining("d") == 0.7
    assert ledger.spent("d") == Cost.pure(0.8) + Cost.pure(0.3)  # all of it
    assert ledger.verify().reservations == 2


def test_periods_that_nobody_used_pass_all_the_same(ledger: Ledger, clock: Clock) -> None:
    ledger.establish("d", Budget(epsilon=1.0), period=DAY)
    clock.time = START + 10.5 * DAY
    ledger.reserve("d", Cost.pure(1.0))
    assert ledger.standings("d")[0].renewed == START + 11 * DAY
    clock.time = START + 11 * DAY
    ledger.reserve("d", Cost.pure(1.0))
    ledger.verify()


def test_a_budget_without_a_period_never_begins_again(ledger: Ledger, clock: Clock) -> None:
    ledger.establish("d", Budget(epsilon=1.0))
    ledger.reserve("d", Cost.pure(1.0))
    clock.time = START + 10_000 * DAY
    assert ledger.remaining("d") == 0.0
    assert ledger.standings("d")[0].renewed is None


def test_a_period_of_an_analyst_does_not_renew_the_data_set(ledger: Ledger, clock: Clock) -> None:
    ledger.establish("d", Budget(epsilon=1.0))
    ledger.limit("d", Budget(epsilon=0.4), analyst="ada", period=DAY)
    for day in range(2):
        clock.time = START + day * DAY
        ledger.reserve("d", Cost.pure(0.4), analyst="ada")
    clock.time = START + 2 * DAY
    assert ledger.remaining("d", analyst="ada") == 0.2
    with pytest.raises(BudgetExceeded, match="data set 'd'"):
        ledger.reserve("d", Cost.pure(0.4), analyst="ada")
    ledger.verify()


def test_setting_the_clock_back_gives_nothing_back(ledger: Ledger, clock: Clock) -> None:
    ledger.establish("d", Budget(epsilon=1.0), period=DAY)
    clock.time = START + DAY
    ledger.reserve("d", Cost.pure(0.9))
    clock.time = START  # the period before, in which nothing was spent
    assert ledger.remaining("d") == 0.1
    with pytest.raises(BudgetExceeded):
        ledger.reserve("d", Cost.pure(0.2))
    entry = ledger.reserve("d", Cost.pure(0.1))
    assert entry.at == START + DAY  # time does not run backwards in the chain
    ledger.verify()


def test_amending_does_not_begin_a_new_period(ledger: Ledger, clock: Clock) -> None:
    ledger.establish("d", Budget(epsilon=1.0), period=DAY)
    ledger.reserve("d", Cost.pure(0.9))
    clock.time = START + 1.5 * DAY
    ledger.reserve("d", Cost.pure(0.5))
    ledger.amend("d", Budget(epsilon=2.0), reason="more", period=DAY)
    assert ledger.remaining("d") == 1.5  # only this period's charge
    assert ledger.standings("d")[0].renewed == START + 2 * DAY
    ledger.amend("d", Budget(epsilon=2.0), reason="slower", period=2 * DAY)
    assert ledger.remaining("d") == pytest.approx(0.6)  # both charges are in the first two days
    ledger.amend("d", Budget(epsilon=2.0), reason="for ever")
    assert ledger.remaining("d") == pytest.approx(0.6)
    clock.time = START + 100 * DAY
    assert ledger.remaining("d") == pytest.approx(0.6)
    ledger.verify()


def test_answers_outlive_the_period_they_were_paid_in(ledger: Ledger, clock: Clock) -> None:
    ledger.establish("d", Budget(epsilon=1.0), period=DAY)
    ledger.complete(ledger.reserve("d", Cost.pure(1.0), fingerprint="f"), b"1")
    clock.time = START + 5 * DAY
    assert ledger.answer("d", "f") == b"1"
    assert ledger.remaining("d") == 1.0


@pytest.mark.parametrize("period", [timedelta(days=4_000_000), timedelta.max])
def test_a_period_that_ends_after_all_calendars_is_never_over(ledger: Ledger, period: timedelta) -> None:
    ledger.establish("d", Budget(epsilon=1.0), period=period)
    ledger.reserve("d", Cost.pure(0.75))
    assert ledger.standings("d")[0].renewed is None
    with pytest.raises(BudgetExceeded):
        ledger.reserve("d", Cost.pure(0.75))
    ledger.verify()


@pytest.mark.parametrize(
    "look",
    [
        lambda ledger: ledger.spent("d"),
        lambda ledger: ledger.budget("d"),
        lambda ledger: ledger.remaining("d"),
        lambda ledger: ledger.answer("d", "f", shared=True),
        lambda ledger: ledger.reserve("d", Cost.pure(0.1)),
        lambda ledger: ledger.establish("d", Budget(epsilon=1.0), period=DAY),
    ],
)
def test_a_clock_that_is_set_back_into_the_period_before_is_no_damage(
    clock: Clock, tmp_path: Path, look: Callable[[Ledger], object]
) -> None:
    with Ledger.open(tmp_path / "l.ledger") as ledger:
        ledger.establish("d", Budget(epsilon=1.0), period=DAY)
        ledger.reserve("d", Cost.pure(0.2))
        clock.time = START + DAY + timedelta(seconds=1)
        ledger.reserve("d", Cost.pure(0.4))
    clock.time = START + DAY - timedelta(seconds=1)
    with Ledger.open(tmp_path / "l.ledger") as ledger:  # by somebody who has not seen it before
        look(ledger)
        assert ledger.remaining("d") <= 0.6  # time does not run backwards in the ledger
        ledger.verify()

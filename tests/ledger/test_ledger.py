"""The ledger: what is charged, what is refused, what is shown, and that a file remembers all of it."""

from __future__ import annotations

import dataclasses
import math
import stat
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from discreet import Budget, Cost, Filter, Ledger
from discreet.errors import AdjacencyMismatch, BudgetExceeded, InvalidArgument, LedgerError
from discreet.ledger import Entry, Head, Standing, terms
from discreet.ledger.price import in_words
from discreet.ledger.releases import told_before
from discreet.ledger.statements import driver_of


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger.open(tmp_path / "ledger.db")
    made.establish("visits", Budget(epsilon=1.0))
    return made


def reopened(ledger: Ledger) -> Ledger:
    """The same file, seen by somebody else."""
    assert ledger.path is not None
    return Ledger.open(ledger.path)


# -------------------------------------------------------------------- spending


@given(st.lists(st.fractions(min_value=0) | st.just(math.inf), min_size=1, max_size=15))
def test_totals_are_read_as_they_were_written_also_by_who_has_not_written_them(totals: list[Fraction | float]) -> None:
    text = terms.totals_text(tuple(totals))
    remembered = terms.totals_from_text(text)
    terms._READ.clear()
    assert terms.totals_from_text(text) == remembered == tuple(totals)
    assert terms.totals_text(remembered) == text


def test_a_charge_is_durable_when_reserve_returns(ledger: Ledger) -> None:
    entry = ledger.reserve("visits", Cost.pure(0.25), analyst="ada", what="SELECT 1", fingerprint="f1")
    other = reopened(ledger)
    (found,) = other.entries("visits", kind="reserve")
    assert (found.id, found.cost, found.analyst, found.what, found.fingerprint, found.hash, found.at) == (
        entry.id,
        Cost.pure(0.25),
        "ada",
        "SELECT 1",
        "f1",
        entry.hash,
        entry.at,
    )
    assert other.remaining("visits") == 0.75
    assert abs(entry.at - datetime.now(UTC)) < timedelta(minutes=10)


def test_ten_tenths_are_one_and_nothing_more_fits(ledger: Ledger) -> None:
    for _ in range(10):
        ledger.reserve("visits", Cost.pure(0.1))
    before = ledger.head
    with pytest.raises(BudgetExceeded, match="data set 'visits'") as refused:
        ledger.reserve("visits", Cost.pure(1e-9))
    assert (refused.value.requested, refused.value.remaining, refused.value.unit) == (1e-9, 0.0, "epsilon")
    assert ledger.remaining("visits") == 0.0
    assert ledger.head == before  # a refusal leaves no trace
    ledger.verify()


def test_a_reservation_that_is_never_completed_stays_spent(ledger: Ledger) -> None:
    ledger.reserve("visits", Cost.pure(0.5))
    assert reopened(ledger).remaining("visits") == 0.5
    assert ledger.verify().unfinished == 1


def test_a_failed_release_stays_spent_and_says_so(ledger: Ledger) -> None:
    entry = ledger.reserve("visits", Cost.pure(0.5))
    ledger.fail(entry, "the engine ran out of memory")
    assert ledger.remaining("visits") == 0.5
    assert [item.state for item in ledger.entries(kind="reserve")] == ["failed"]
    (closing,) = ledger.entries(kind="fail")
    assert closing.details == {"note": "the engine ran out of memory"}
    assert closing.reservation == entry.id


def test_a_reservation_is_closed_once(ledger: Ledger) -> None:
    entry = ledger.reserve("visits", Cost.pure(0.1))
    ledger.complete(entry, b"1")
    for close in (lambda: ledger.complete(entry, b"2"), lambda: ledger.fail(entry, "no")):
        with pytest.raises(InvalidArgument, match="released already"):
            close()
    assert ledger.verify().released == 1


def test_whoever_paid_is_told_whatever_the_entry_is_made_to_say(ledger: Ledger) -> None:
    entry = ledger.reserve("visits", Cost.pure(0.1), analyst="ada")
    ledger.complete(dataclasses.replace(entry, analyst="bob", dataset="other"), told={"bound": [1]})
    assert ledger.told("visits", ["bound"], analyst="ada") == {"bound": [1]}
    assert ledger.told("visits", ["bound"], analyst="bob") == {"bound": []}
    ledger.verify()


def test_an_entry_of_another_ledger_closes_nothing(ledger: Ledger) -> None:
    other = Ledger.in_memory()
    other.establish("visits", Budget(epsilon=1.0))
    stranger = other.reserve("visits", Cost.pure(0.1))
    ledger.reserve("visits", Cost.pure(0.1))
    with pytest.raises(InvalidArgument, match="this ledger"):
        ledger.complete(stranger, b"")
    with pytest.raises(InvalidArgument, match="reserve"):
        ledger.complete(next(ledger.entries(kind="establish")), b"")
    with pytest.raises(InvalidArgument, match="reserve"):
        ledger.complete(3, b"")  # type: ignore[arg-type]


BUDGETS = [
    Budget(epsilon=2.0),
    Budget(epsilon=2.0, delta=1e-6),
    Budget(rho=0.2),
    Budget(mu=0.7),
    Budget(renyi={4.0: 0.5, 16.0: 3.0}),
    Budget(epsilon=1.0, delta=1e-6, shares={"gaussian": 1}),
]
COSTS = st.one_of(
    st.floats(0.01, 0.6).map(Cost.pure),
    st.floats(1.0, 50.0).map(Cost.discrete_laplace),
    st.floats(2.0, 50.0).map(Cost.gaussian),
    st.floats(0.001, 0.1).map(Cost.concentrated),
    st.tuples(st.floats(0.01, 0.3), st.sampled_from([1e-9, 1e-7])).map(lambda pair: Cost.approximate(*pair)),
)


@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
@settings(max_examples=max(8, (settings.default or settings()).max_examples // 5))
@given(costs=st.lists(COSTS, max_size=6))
def test_the_ledger_admits_what_a_filter_admits_and_leaves_what_it_leaves(budget: Budget, costs: list[Cost]) -> None:
    ledger, guard = Ledger.in_memory(), Filter(budget)
    ledger.establish("d", budget)
    for cost in costs:
        if guard.admits(cost):
            guard.charge(cost)
            ledger.reserve("d", cost)
        else:
            with pytest.raises(BudgetExceeded):
                ledger.reserve("d", cost)
        assert ledger.remaining("d") == guard.remaining
    (standing,) = ledger.standings("d")
    assert standing.remaining_delta == guard.remaining_delta
    assert standing.unit == budget.unit
    assert ledger.spent("d") == guard.spent
    ledger.verify()


@given(amounts=st.lists(st.sampled_from([0.1, 0.2, 0.3, 0.7, 1 / 3, 1e-17, 0.1 + 0.2]), max_size=12))
def test_totals_are_exact(amounts: list[float]) -> None:
    ledger = Ledger.in_memory()
    ledger.establish("d", Budget(epsilon=1.0))
    total = Fraction(0)
    for amount in amounts:
        try:
            ledger.reserve("d", Cost.pure(amount))
            total += Fraction(repr(amount))
        except BudgetExceeded:
            assert total + Fraction(repr(amount)) > 1
    assert total <= 1


@pytest.mark.parametrize(
    ("price", "words"),
    [
        ({"delta": 1e-8, "epsilon": 0.5}, "epsilon 0.5, delta 1e-08"),
        ({"epsilon": 1, "delta": 0}, "epsilon 1"),
        ({"epsilon": 0.1 + 0.2}, "epsilon 0.3"),
        ({"rho": Fraction(1, 8)}, "rho 0.125"),
        ({"mu": 0.0}, "mu 0"),
    ],
)
def test_what_was_asked_for_is_kept_under_the_hash_and_changes_no_total(
    ledger: Ledger, price: dict[str, float], words: str
) -> None:
    entry = ledger.reserve("visits", Cost.pure(0.25), price=price)
    plain = ledger.reserve("visits", Cost.pure(0.25))
    found, other = reopened(ledger).entries(kind="reserve")
    assert found.price == entry.price == {name: float(value) for name, value in price.items()}
    assert in_words(entry.price) == words
    assert (other.price, plain.price) == (None, None)
    assert other.details.keys() == {"charged"}  # as before there were prices
    assert next(ledger.entries(kind="establish")).price is None
    assert ledger.remaining("visits") == 0.5
    ledger.verify()


@pytest.mark.parametrize(
    "price",
    [
        {},
        0.5,
        "epsilon",
        {"eps": 0.5},
        {1: 0.5},
        {"epsilon": "0.5"},
        {"epsilon": True},
        {"epsilon": None},
        {"epsilon": math.inf},
        {"epsilon": math.nan},
        {"epsilon": -0.5},
        {"epsilon": 10**400},
        {"epsilon": 0.5, "what": "SELECT 1"},
    ],
)
def test_what_is_no_price_is_refused_before_anything_is_charged(ledger: Ledger, price: object) -> None:
    before = ledger.head
    with pytest.raises(InvalidArgument, match="price"):
        ledger.reserve("visits", Cost.pure(0.25), price=price)  # type: ignore[arg-type]
    assert ledger.head == before


# -------------------------------------------------------------------- budgets


def test_establishing_again_changes_nothing_and_another_budget_is_refused(ledger: Ledger) -> None:
    before = ledger.head
    ledger.establish("visits", Budget(epsilon=1.0))
    assert ledger.head == before
    with pytest.raises(InvalidArgument, match=r"Budget\(epsilon=1.0\) already.*ledger\.amend"):
        ledger.establish("visits", Budget(epsilon=2.0))
    with pytest.raises(InvalidArgument, match=r"ledger\.amend"):
        ledger.establish("visits", Budget(epsilon=1.0), period=timedelta(days=1))
    assert ledger.head == before


def test_a_budget_with_delta_can_be_established_again_from_another_process(tmp_path: Path) -> None:
    budget = Budget(epsilon=1.0, delta=1e-6)
    first = Ledger.open(tmp_path / "l.db")
    first.establish("d", budget)
    before = first.head
    Ledger.open(tmp_path / "l.db").establish("d", Budget(epsilon=1.0, delta=1e-6))
    assert first.head == before
    assert first.standings("d")[0].budget == budget


def test_a_budget_that_another_process_changed_counts_at_the_next_charge(tmp_path: Path) -> None:
    # what was known about budgets is kept between charges, and must not be what decides
    with Ledger.open(tmp_path / "ledger.db") as ledger, Ledger.open(tmp_path / "ledger.db") as other:
        ledger.establish("visits", Budget(epsilon=1.0))
        ledger.reserve("visits", Cost.pure(0.25))
        other.amend("visits", Budget(epsilon=0.375), reason="less")
        with pytest.raises(BudgetExceeded):
            ledger.reserve("visits", Cost.pure(0.25))
        other.amend("visits", Budget(rho=0.5), reason="another notion")
        ledger.reserve("visits", Cost.concentrated(0.125))
        other.limit("visits", Budget(epsilon=0.125), analyst="ada")
        ledger.reserve("visits", Cost.pure(0.1), analyst="ada")
        other.reserve("visits", Cost.pure(0.02), analyst="ada")
        with pytest.raises(BudgetExceeded):
            ledger.reserve("visits", Cost.pure(0.02), analyst="ada")
        assert ledger.verify()


def test_what_is_asked_of_the_budgets_is_asked_of_those_there_are_by_now_and_before_anything_is_charged(
    tmp_path: Path,
) -> None:
    seen: list[list[Budget]] = []

    def at_least_two(applying: Sequence[terms.Terms]) -> None:
        seen.append([one.budget for one in applying])
        if any(one.budget.epsilon is not None and one.budget.epsilon < 2 for one in applying):
            raise InvalidArgument("epsilon", 2, "that is too small")

    with Ledger.open(tmp_path / "ledger.db") as ledger, Ledger.open(tmp_path / "ledger.db") as other:
        ledger.establish("visits", Budget(epsilon=1.0))
        for largest in (0.25, 7.0):  # also where it would not fit
            with pytest.raises(InvalidArgument, match="too small"):
                ledger.reserve("visits", Cost.pure(largest), agree=at_least_two)
        assert ledger.remaining("visits") == 1
        other.amend("visits", Budget(epsilon=3.0), reason="more")
        ledger.reserve("visits", Cost.pure(0.25), agree=at_least_two)
        assert seen[-1] == [Budget(epsilon=3.0)]
        other.limit("visits", Budget(epsilon=1.0), analyst="ada")
        with pytest.raises(InvalidArgument, match="too small"):
            ledger.reserve("visits", Cost.pure(0.25), analyst="ada", agree=at_least_two)
        assert seen[-1] == [Budget(epsilon=3.0), Budget(epsilon=1.0)]
        ledger.reserve("visits", Cost.pure(0.25), agree=at_least_two)
        other.amend("visits", Budget(epsilon=1.5), reason="less")
        with pytest.raises(InvalidArgument, match="too small"):
            ledger.reserve("visits", Cost.pure(0.25), agree=at_least_two)
        assert ledger.spent("visits") == 2 * Cost.pure(0.25)
        assert ledger.verify()


def test_a_group_that_another_process_changed_counts_at_the_next_charge(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "ledger.db") as ledger, Ledger.open(tmp_path / "ledger.db") as other:
        ledger.establish("visits", Budget(epsilon=1.0))
        ledger.reserve("visits", Cost.pure(0.25), analyst="ada")
        other.enrol("team", ["ada"])
        ledger.reserve("visits", Cost.pure(0.125), analyst="ada")
        other.limit("visits", Budget(epsilon=0.25), group="team")
        with pytest.raises(BudgetExceeded, match="group 'team'"):
            ledger.reserve("visits", Cost.pure(0.25), analyst="ada")
        other.dismiss("team", ["ada"])
        ledger.reserve("visits", Cost.pure(0.25), analyst="ada")
        assert ledger.members("team") == ()
        assert ledger.verify()


def test_a_change_that_was_undone_is_forgotten(ledger: Ledger) -> None:
    def undone() -> None:
        with ledger._store.writing() as connection:
            books = ledger._books
            tip = books.tip(connection, datetime.now(UTC))
            books.append(connection, tip, kind="enrol", details={"group": "team", "analysts": ["ada"]})
            connection.exec_driver_sql("INSERT INTO members VALUES ('ada', 'team')")
            assert books.groups(connection) == {"team": {"ada"}}
            raise RuntimeError

    ledger.limit("visits", Budget(epsilon=0.25), group="team")
    ledger.reserve("visits", Cost.pure(0.125), analyst="ada")
    with pytest.raises(RuntimeError):
        undone()
    assert ledger.members("team") == ()
    ledger.reserve("visits", Cost.pure(0.5), analyst="ada")
    ledger.verify()


def test_amending_counts_what_was_spent_and_writes_down_why(ledger: Ledger) -> None:
    ledger.reserve("visits", Cost.pure(0.8))
    ledger.amend("visits", Budget(epsilon=2.0), reason="the board agreed on 3 May")
    assert ledger.remaining("visits") == pytest.approx(1.2, abs=1e-15)
    (entry,) = ledger.entries(kind="amend")
    assert entry.details["reason"] == "the board agreed on 3 May"
    ledger.amend("visits", Budget(epsilon=0.5), reason="too much")
    assert ledger.remaining("visits") == 0.0
    with pytest.raises(BudgetExceeded):
        ledger.reserve("visits", Cost.pure(0.01))
    ledger.verify()


def test_amending_into_another_notion_counts_the_costs_by_it(ledger: Ledger) -> None:
    ledger.reserve("visits", Cost.pure(0.2))
    ledger.amend("visits", Budget(rho=0.1), reason="zCDP from now on")
    guard = Filter(Budget(rho=0.1))
    guard.charge(Cost.pure(0.2))
    assert ledger.remaining("visits") == guard.remaining
    ledger.verify()


def test_a_budget_that_cannot_count_what_was_spent_admits_nothing_more(tmp_path: Path) -> None:
    ledger = Ledger.in_memory()
    ledger.establish("d", Budget(epsilon=1.0, delta=1e-6))
    ledger.reserve("d", Cost.gaussian(20.0))
    for budget in (Budget(epsilon=5.0), Budget(rho=5.0), Budget(mu=5.0), Budget(renyi={4.0: 5.0})):
        ledger.amend("d", budget, reason="another notion")
        if budget.epsilon is None:
            assert ledger.remaining("d") > 0
            continue
        assert ledger.remaining("d") == 0.0  # Gaussian noise has no finite pure epsilon
        with pytest.raises(BudgetExceeded):
            ledger.reserve("d", Cost.pure(1e-6))
        ledger.verify()
    ledger.verify()


def test_amending_needs_a_reason_and_a_budget_to_amend(ledger: Ledger) -> None:
    with pytest.raises(InvalidArgument, match="say why"):
        ledger.amend("visits", Budget(epsilon=2.0), reason=" ")
    ledger.limit("visits", Budget(epsilon=0.5), analyst="ada")
    ledger.limit("visits", Budget(epsilon=0.5), group="marketing")
    before = ledger.head
    for whose, said in (
        ({"analyst": "zed"}, r"analyst = 'zed' .*no budget on 'visits' .*`discreet ledger limit`$"),
        ({"analyst": "adda"}, r"analyst = 'adda' .*; did you mean 'ada'\?$"),
        ({"analyst": "marketing"}, r"analyst = 'marketing' .*`discreet ledger limit`$"),
        ({"group": "marketting"}, r"group = 'marketting' .*; did you mean 'marketing'\?$"),
    ):
        with pytest.raises(InvalidArgument, match=said):
            ledger.amend("visits", Budget(epsilon=2.0), reason="r", **whose)
    for whose in ({}, {"analyst": "ada"}):
        with pytest.raises(InvalidArgument, match=r"dataset = 'visit' .*did you mean 'visits'"):
            ledger.amend("visit", Budget(epsilon=2.0), reason="r", **whose)
    assert ledger.head == before


def test_an_unknown_data_set_is_refused_with_the_closest_name(ledger: Ledger) -> None:
    for call in (
        lambda: ledger.reserve("visit", Cost.pure(0.1)),
        lambda: ledger.remaining("visit"),
        lambda: ledger.spent("visit"),
        lambda: ledger.answer("visit", "f"),
        lambda: ledger.standings("visit"),
        lambda: ledger.limit("visit", Budget(epsilon=1.0), analyst="ada"),
    ):
        with pytest.raises(InvalidArgument, match="did you mean 'visits'"):
            call()


def test_a_cost_under_another_adjacency_is_refused(ledger: Ledger) -> None:
    before = ledger.head
    with pytest.raises(AdjacencyMismatch):
        ledger.reserve("visits", Cost.pure(0.1, adjacency="replace-one"))
    with pytest.raises(AdjacencyMismatch):
        ledger.limit("visits", Budget(epsilon=1.0, adjacency="replace-one"), analyst="ada")
    assert ledger.head == before
    ledger.reserve("visits", Cost.pure(0.1))
    with pytest.raises(AdjacencyMismatch):
        ledger.amend("visits", Budget(epsilon=1.0, adjacency="replace-one"), reason="r")
    ledger.verify()


def test_a_cost_that_the_budget_cannot_count_is_refused(ledger: Ledger) -> None:
    with pytest.raises(BudgetExceeded, match="no finite pure epsilon"):
        ledger.reserve("visits", Cost.gaussian(10.0))


def test_data_sets_do_not_share_budgets(ledger: Ledger) -> None:
    ledger.establish("sales", Budget(rho=0.5))
    ledger.reserve("visits", Cost.pure(1.0))
    assert (ledger.remaining("visits"), ledger.remaining("sales")) == (0.0, 0.5)
    assert ledger.datasets() == ("sales", "visits")


# -------------------------------------------------------------------- analysts and groups


def test_a_charge_must_fit_into_every_budget_that_applies(ledger: Ledger) -> None:
    ledger.limit("visits", Budget(epsilon=0.5), analyst="ada")
    ledger.enrol("marketing", ["ada", "bob"])
    ledger.limit("visits", Budget(epsilon=0.6), group="marketing")
    ledger.reserve("visits", Cost.pure(0.3), analyst="ada")
    assert ledger.remaining("visits", analyst="ada") == pytest.approx(0.2)
    assert ledger.remaining("visits", analyst="bob") == pytest.approx(0.3)
    assert ledger.remaining("visits", analyst="eve") == pytest.approx(0.7)
    with pytest.raises(BudgetExceeded, match="analyst 'ada' on 'visits'"):
        ledger.reserve("visits", Cost.pure(0.25), analyst="ada")
    with pytest.raises(BudgetExceeded, match="group 'marketing' on 'visits'"):
        ledger.reserve("visits", Cost.pure(0.35), analyst="bob")
    ledger.reserve("visits", Cost.pure(0.7), analyst="eve")
    assert ledger.remaining("visits", analyst="bob") == 0.0  # the data set has no more
    assert ledger.spent("visits", analyst="ada") == Cost.pure(0.3)
    assert ledger.spent("visits") == Cost.pure(0.3) + Cost.pure(0.7)
    ledger.verify()


def test_a_limit_set_later_counts_what_was_spent_before(ledger: Ledger) -> None:
    ledger.enrol("marketing", ["ada"])
    ledger.reserve("visits", Cost.pure(0.3), analyst="ada")
    ledger.reserve("visits", Cost.pure(0.1), analyst="bob")
    ledger.enrol("marketing", ["bob"])  # what bob spent before he joined is not the group's
    ledger.limit("visits", Budget(epsilon=0.5), analyst="ada")
    ledger.limit("visits", Budget(epsilon=0.5), group="marketing")
    left = {item.name: item.remaining for item in ledger.standings("visits")}
    assert left == {"": pytest.approx(0.6), "ada": pytest.approx(0.2), "marketing": pytest.approx(0.2)}
    ledger.verify()


def test_whoever_left_a_group_no_longer_spends_from_it(ledger: Ledger) -> None:
    ledger.enrol("marketing", ["ada", "bob"])
    ledger.limit("visits", Budget(epsilon=0.3), group="marketing")
    ledger.reserve("visits", Cost.pure(0.2), analyst="ada")
    ledger.dismiss("marketing", ["ada"])
    assert ledger.members("marketing") == ("bob",)
    ledger.enrol("board", ["eve", "bob"])
    assert ledger.groups() == reopened(ledger).groups() == {"board": ("bob", "eve"), "marketing": ("bob",)}
    ledger.reserve("visits", Cost.pure(0.5), analyst="ada")
    assert ledger.remaining("visits", analyst="bob") == pytest.approx(0.1)
    ledger.amend("visits", Budget(epsilon=0.25), group="marketing", reason="less")
    assert ledger.remaining("visits", analyst="bob") == pytest.approx(0.05)
    ledger.verify()


def test_enrolling_twice_is_written_once(ledger: Ledger) -> None:
    ledger.enrol("marketing", ["ada"])
    before = ledger.head
    ledger.enrol("marketing", ["ada"])
    ledger.dismiss("marketing", ["nobody"])
    assert ledger.head == before
    ledger.dismiss("marketing", ["ada"])
    assert ledger.groups() == {}


def test_what_finds_bounds_for_everybody_is_in_no_group(ledger: Ledger) -> None:
    before = ledger.head
    with pytest.raises(InvalidArgument, match="what bounds for everybody are paid as"):
        ledger.enrol("marketing", ["ada", "(bounds)"])
    assert ledger.head == before


def test_what_remains_is_in_the_notion_of_the_data_set_also_under_a_limit_in_another(ledger: Ledger) -> None:
    ledger.establish("sales", Budget(epsilon=1.0))
    ledger.limit("sales", Budget(rho=0.02), analyst="ada")
    left = ledger.remaining("sales", analyst="ada")
    assert 0 < left < 1
    ledger.reserve("sales", Cost.pure(left), analyst="ada")
    assert ledger.remaining("sales", analyst="ada") < 1e-4
    ledger.establish("clicks", Budget(rho=0.5))
    ledger.limit("clicks", Budget(epsilon=1.0), analyst="ada")
    assert ledger.remaining("clicks", analyst="ada") == 0.0  # no zCDP release has a finite pure epsilon
    assert ledger.remaining("clicks", analyst="bob") == 0.5


@pytest.mark.parametrize("budget", [Budget(mu=1e200), Budget(mu=1e-200), Budget(rho=1e300)])
def test_what_remains_under_a_limit_is_said_for_budgets_of_any_size(budget: Budget) -> None:
    ledger = Ledger.in_memory()
    ledger.establish("d", budget)
    ledger.limit("d", Budget(epsilon=0.5), analyst="ada")
    assert ledger.remaining("d", analyst="ada") <= 1.0
    assert ledger.verify().budgets == 2


def test_limits_name_exactly_one_holder(ledger: Ledger) -> None:
    with pytest.raises(InvalidArgument, match="whose budget"):
        ledger.limit("visits", Budget(epsilon=1.0))
    with pytest.raises(InvalidArgument, match="one of them"):
        ledger.limit("visits", Budget(epsilon=1.0), analyst="a", group="b")
    ledger.limit("visits", Budget(epsilon=1.0), analyst="a")
    with pytest.raises(InvalidArgument, match="amend"):
        ledger.limit("visits", Budget(epsilon=0.5), analyst="a")


# -------------------------------------------------------------------- answers


def test_an_identical_question_gets_its_stored_answer(ledger: Ledger) -> None:
    entry = ledger.reserve("visits", Cost.pure(0.1), analyst="ada", fingerprint="f1")
    assert ledger.answer("visits", "f1", analyst="ada") is None  # not yet released
    ledger.complete(entry, b"\x00noisy\xff")
    other = reopened(ledger)
    assert other.answer("visits", "f1", analyst="ada") == b"\x00noisy\xff"
    assert other.answer("visits", "f2", analyst="ada") is None
    assert other.remaining("visits") == 0.9


def test_the_newest_answer_is_given_and_empty_answers_are_answers(ledger: Ledger) -> None:
    for answer in (b"old", b""):
        ledger.complete(ledger.reserve("visits", Cost.pure(0.1), fingerprint="f1"), answer)
    assert ledger.answer("visits", "f1") == b""
    ledger.complete(ledger.reserve("visits", Cost.pure(0.1), fingerprint="f1"))  # keeps none
    assert ledger.answer("visits", "f1") == b""
    ledger.fail(ledger.reserve("visits", Cost.pure(0.1), fingerprint="f1"), "failed")
    assert ledger.answer("visits", "f1") == b""


def test_what_answers_have_told_is_found_by_name_the_newest_first(ledger: Ledger) -> None:
    ledger.establish("sales", Budget(epsilon=1.0))
    for analyst, dataset, value in (
        ("ada", "visits", 1),
        ("ada", "visits", 2),
        ("bob", "visits", 3),
        ("ada", "sales", 4),
    ):
        entry = ledger.reserve(dataset, Cost.pure(0.1), analyst=analyst)
        ledger.complete(entry, b"41", told={'rows "ö"': [value], "rows": [value, {"epsilon": 0.5}]})
    ledger.fail(ledger.reserve("visits", Cost.pure(0.1), analyst="ada"), "told nothing")
    ledger.complete(ledger.reserve("visits", Cost.pure(0.1), analyst="ada"))
    other = reopened(ledger)
    assert other.told("visits", ['rows "ö"', "row"], analyst="ada") == {'rows "ö"': [2, 1], "row": []}
    assert other.told("visits", ["rows"], analyst="ada") == {"rows": [2, {"epsilon": 0.5}, 1, {"epsilon": 0.5}]}
    assert other.told("visits", ['rows "ö"'], analyst="bob") == {'rows "ö"': [3]}
    assert other.told("visits", ["rows"]) == {"rows": []}
    assert other.told("sales", ['rows "ö"'], analyst="ada") == {'rows "ö"': [4]}
    other.verify()


def test_what_was_told_is_found_as_quickly_among_many_entries(ledger: Ledger) -> None:
    def work() -> int:
        steps = [0]

        def step() -> None:
            steps[0] += 1

        with ledger._store.reading() as connection:
            driver_of(connection).set_progress_handler(step, 1)  # at every step of SQLite's machine
            told_before(ledger._books, connection, ["a", "b"], dataset="visits", analyst="ada")
            driver_of(connection).set_progress_handler(None, 1)
        return steps[0]

    def ask(times: int) -> None:
        for number in range(times):
            entry = ledger.reserve("visits", Cost.pure(1e-6), analyst="ada")
            ledger.complete(entry, b"1", told={f"other {number}": [1]})

    ledger.complete(ledger.reserve("visits", Cost.pure(0.1), analyst="ada"), b"1", told={"a": [1]})
    ask(5)
    few = work()
    ask(100)
    assert work() == few > 0
    assert ledger.told("visits", ["a", "b"], analyst="ada") == {"a": [1], "b": []}


def test_the_budgets_of_others_are_not_read_to_find_ones_own(ledger: Ledger) -> None:
    def work() -> int:
        read: list[str] = []
        with ledger._store.reading() as connection:
            driver_of(connection).set_trace_callback(read.append)
        ledger.establish("visits", Budget(epsilon=1.0))
        ledger.limit("visits", Budget(epsilon=0.5), analyst="ada")
        assert ledger.budget("visits") == Budget(epsilon=1.0)
        assert ledger.protected("visits") == {}
        ledger.reserve("visits", Cost.pure(0.01), analyst="ada")
        with ledger._store.reading() as connection:
            driver_of(connection).set_trace_callback(None)
        return len(read)

    ledger.limit("visits", Budget(epsilon=0.5), analyst="ada")
    work()  # the first charge of an analyst looks twice
    before = work()
    for index in range(20):
        ledger.limit("visits", Budget(epsilon=0.5), analyst=f"analyst {index}")
    assert work() == before > 0


def test_what_a_new_process_reads_of_the_chain_does_not_grow_with_it(ledger: Ledger) -> None:
    def work() -> int:
        steps = [0]

        def step() -> None:
            steps[0] += 1

        with reopened(ledger) as other:
            with other._store.reading() as connection:
                driver_of(connection).set_progress_handler(step, 1)  # at every step of SQLite's machine
            other.remaining("visits", analyst="ada")
            with other._store.reading() as connection:
                driver_of(connection).set_progress_handler(None, 1)
        return steps[0]

    ledger.enrol("team", ["ada"])
    for holder in ({"analyst": "ada"}, {"group": "team"}):
        ledger.limit("visits", Budget(epsilon=0.5), **holder)
    ledger.reserve("visits", Cost.pure(1e-6), analyst="ada")
    before = work()
    for _ in range(50):
        ledger.reserve("visits", Cost.pure(1e-6), analyst="ada")
    assert work() == before > 0


@pytest.mark.parametrize("told", [{"x": 1}, {"x": [math.nan]}, {"x": [object()]}, {"": [1]}, [1], {1: [1]}])
def test_what_cannot_be_stored_is_not_told(ledger: Ledger, told: object) -> None:
    entry = ledger.reserve("visits", Cost.pure(0.1))
    with pytest.raises(InvalidArgument, match="told"):
        ledger.complete(entry, told=told)  # type: ignore[arg-type]
    ledger.complete(entry)  # it is open still


def test_nothing_is_told_about_a_data_set_without_a_budget(ledger: Ledger) -> None:
    with pytest.raises(InvalidArgument, match="dataset"):
        ledger.told("vists", ["rows"])


def test_answers_of_others_are_shared_only_if_asked_for_and_not_under_a_limit(ledger: Ledger) -> None:
    ledger.complete(ledger.reserve("visits", Cost.pure(0.1), analyst="ada", fingerprint="f1"), b"1")
    assert ledger.answer("visits", "f1", analyst="bob") is None
    assert ledger.answer("visits", "f1", analyst="bob", shared=True) == b"1"
    ledger.limit("visits", Budget(epsilon=0.5), analyst="bob")
    assert ledger.answer("visits", "f1", analyst="bob", shared=True) is None
    ledger.enrol("team", ["eve"])
    ledger.limit("visits", Budget(epsilon=0.5), group="team")
    assert ledger.answer("visits", "f1", analyst="eve", shared=True) is None
    ledger.establish("sales", Budget(epsilon=1.0))
    assert ledger.answer("sales", "f1", analyst="ada", shared=True) is None  # another data set


# -------------------------------------------------------------------- reading


def test_what_others_were_told_is_shared_only_if_asked_for_and_not_under_a_limit(ledger: Ledger) -> None:
    for analyst, value in (("ada", 1), ("bob", 2)):
        ledger.complete(ledger.reserve("visits", Cost.pure(0.1), analyst=analyst), told={"rows": [value]})
    assert ledger.told("visits", ["rows"], analyst="eve") == {"rows": []}
    assert ledger.told("visits", ["rows"], analyst="eve", shared=True) == {"rows": [2, 1]}
    assert ledger.told("visits", ["rows"], analyst="bob", shared=True) == {"rows": [2, 1]}
    ledger.limit("visits", Budget(epsilon=0.5), analyst="bob")
    assert ledger.told("visits", ["rows"], analyst="bob", shared=True) == {"rows": [2]}
    ledger.enrol("team", ["eve"])
    assert ledger.told("visits", ["rows"], analyst="eve", shared=True) == {"rows": [2, 1]}
    ledger.limit("visits", Budget(epsilon=0.5), group="team")
    assert ledger.told("visits", ["rows"], analyst="eve", shared=True) == {"rows": []}


def test_entries_tell_the_whole_story_in_order(ledger: Ledger) -> None:
    ledger.limit("visits", Budget(epsilon=0.5), analyst="ada")
    ledger.enrol("g", ["ada"])
    one = ledger.reserve("visits", Cost.pure(0.1), analyst="ada")
    ledger.reserve("visits", Cost.pure(0.1), analyst="bob")
    ledger.complete(one, b"x")
    kinds = [entry.kind for entry in ledger.entries()]
    assert kinds == ["ledger", "establish", "limit", "enrol", "reserve", "reserve", "complete"]
    assert [entry.id for entry in ledger.entries()] == list(range(1, 8))
    assert [entry.state for entry in ledger.entries(kind="reserve")] == ["released", "reserved"]
    assert [entry.id for entry in ledger.entries("visits", analyst="ada")] == [5, 7]
    assert [entry.id for entry in ledger.entries(after=5)] == [6, 7]
    assert all(isinstance(entry, Entry) for entry in ledger.entries())
    assert len(set(ledger.entries())) == 7
    assert isinstance(ledger.standings("visits")[0], Standing)


def test_more_entries_than_a_page_are_all_read(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discreet.ledger.listing._PAGE", 3)
    for _ in range(7):
        ledger.reserve("visits", Cost.pure(0.001))
    assert [entry.id for entry in ledger.entries()] == list(range(1, 10))


def test_the_last_entries_are_given_oldest_first(ledger: Ledger) -> None:
    for index in range(5):
        ledger.reserve("visits", Cost.pure(0.1), analyst="ada" if index % 2 else "bob", what=str(index))
    assert [entry.what for entry in ledger.entries(kind="reserve", last=2)] == ["3", "4"]
    assert [entry.what for entry in ledger.entries(analyst="bob", last=2)] == ["2", "4"]
    assert len([*ledger.entries(kind="reserve", last=5)]) == len([*ledger.entries(kind="reserve", last=100)]) == 5
    assert [*ledger.entries(last=0)] == []
    with pytest.raises(InvalidArgument, match="last"):
        ledger.entries(last=-1)


def test_the_head_moves_with_every_entry_and_can_be_written_down(ledger: Ledger) -> None:
    before = ledger.head
    ledger.reserve("visits", Cost.pure(0.1))
    after = ledger.head
    assert after.count == before.count + 1
    assert after.hash != before.hash
    assert Head.parse(f" {after}\n") == after


@pytest.mark.parametrize("text", ["", "3", "3:", "x:" + "0" * 64, "3:" + "0" * 63, "3:" + "G" * 64, "-1:" + "0" * 64])
def test_what_is_no_head_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument, match="anchor"):
        Head.parse(text)


def test_a_ledger_is_reached_from_the_package_and_shows_itself(ledger: Ledger) -> None:
    assert discreet.Ledger is Ledger
    assert repr(Ledger.in_memory()) == "Ledger.in_memory()"
    assert repr(ledger) == f"Ledger.open({str(ledger.path)!r})"
    assert Ledger.in_memory().path is None


def test_a_closed_ledger_opens_again_when_used(ledger: Ledger) -> None:
    with ledger:
        ledger.reserve("visits", Cost.pure(0.1))
    assert ledger.path is not None
    assert not ledger.path.with_name("ledger.db-wal").exists()  # one file when nobody has it open
    assert ledger.remaining("visits") == 0.9


# -------------------------------------------------------------------- bad input


@pytest.mark.parametrize("name", ["", " a", "a\n", "a\0b", "x" * 201, "\ud800", 3, None, b"a"])
def test_names_that_could_be_mistaken_are_refused(ledger: Ledger, name: object) -> None:
    before = ledger.head
    calls = [
        lambda: ledger.establish(name, Budget(epsilon=1.0)),  # type: ignore[arg-type]
        lambda: ledger.reserve(name, Cost.pure(0.1)),  # type: ignore[arg-type]
        lambda: ledger.reserve("visits", Cost.pure(0.1), analyst=name),  # type: ignore[arg-type]
        lambda: ledger.enrol(name, ["ada"]),  # type: ignore[arg-type]
        lambda: ledger.enrol("g", [name]),  # type: ignore[list-item]
        lambda: ledger.remaining("visits", analyst=name),  # type: ignore[arg-type]
    ]
    for call in calls:
        with pytest.raises(InvalidArgument):
            call()
    assert ledger.head == before


def test_names_that_look_alike_have_one_budget(ledger: Ledger) -> None:
    """An accent can be a character of its own: some file systems and keyboards write it so."""
    composed, apart = "caf\u00e9", "cafe\u0301"
    ledger.establish(composed, Budget(epsilon=1.0))
    ledger.limit(composed, Budget(epsilon=0.5), analyst=apart)
    ledger.complete(ledger.reserve(apart, Cost.pure(0.25), analyst=composed, fingerprint="f"), b"1")
    assert ledger.remaining(composed) == ledger.remaining(apart) == 0.75
    assert ledger.remaining(apart, analyst=composed) == ledger.remaining(apart, analyst=apart) == 0.25
    assert ledger.answer(composed, "f", analyst=apart) == b"1"
    assert ledger.datasets() == (composed, "visits")


def test_other_bad_input_is_refused_before_anything_is_written(ledger: Ledger) -> None:
    before = ledger.head
    entry = ledger.reserve("visits", Cost.zero())
    assert ledger.head.count == before.count + 1  # nothing is still something to write down
    before = ledger.head
    for call in (
        lambda: ledger.reserve("visits", 0.1),  # type: ignore[arg-type]
        lambda: ledger.reserve("visits", Cost.pure(0.1), what=3),  # type: ignore[arg-type]
        lambda: ledger.reserve("visits", Cost.pure(0.1), what="x" * 1_000_001),
        lambda: ledger.reserve("visits", Cost.pure(0.1), fingerprint=""),
        lambda: ledger.complete(entry, "text"),  # type: ignore[arg-type]
        lambda: ledger.fail(entry, None),  # type: ignore[arg-type]
        lambda: ledger.establish("new", 1.0),  # type: ignore[arg-type]
        lambda: ledger.establish("new", Budget(epsilon=1.0), period=timedelta(0)),
        lambda: ledger.establish("new", Budget(epsilon=1.0), period=3),  # type: ignore[arg-type]
        lambda: ledger.enrol("g", "ada"),
        lambda: ledger.enrol("g", []),
        lambda: ledger.verify(anchor=3),  # type: ignore[arg-type]
        lambda: Ledger.open(":memory:"),
        lambda: Ledger.open(3),  # type: ignore[arg-type]
    ):
        with pytest.raises(InvalidArgument):
            call()
    assert ledger.head == before


@given(what=st.text(max_size=200), note=st.text(max_size=50), answer=st.binary(max_size=200))
def test_whatever_text_and_bytes_are_stored_come_back(what: str, note: str, answer: bytes) -> None:
    if "\0" in what + note:
        return
    ledger = Ledger.in_memory()
    ledger.establish("d", Budget(epsilon=1.0))
    one, two = (ledger.reserve("d", Cost.pure(0.1), what=what, fingerprint="f") for _ in range(2))
    ledger.complete(one, answer)
    ledger.fail(two, note)
    assert [entry.what for entry in ledger.entries(kind="reserve")] == [what, what]
    assert next(ledger.entries(kind="fail")).details["note"] == note
    assert ledger.answer("d", "f") == answer
    ledger.verify()


def test_costs_of_every_kind_survive_the_file(tmp_path: Path) -> None:
    costs = [
        Cost.gaussian(5.0).sampled(0.01),
        Cost.from_pair({"a": 0.5, "b": 0.5}, {"a": 0.4, "b": 0.6}),
        Cost.renyi({2.0: 0.001, 8.0: 0.01}),
        3 * Cost.discrete_gaussian(30.0) + Cost.staircase(0.1),
        Cost.approximate(0.1, 1e-9),
    ]
    ledger = Ledger.open(tmp_path / "l.db")
    ledger.establish("d", Budget(epsilon=8.0, delta=1e-6))
    for cost in costs:
        ledger.reserve("d", cost)
    again = Ledger.open(tmp_path / "l.db")
    assert [entry.cost for entry in again.entries(kind="reserve")] == costs
    assert math.isfinite(again.remaining("d"))
    again.verify()


# -------------------------------------------------------------------- keys


def test_a_ledger_with_a_key_needs_that_key(tmp_path: Path) -> None:
    key, other = tmp_path / "key", tmp_path / "other"
    key.write_bytes(b"k" * 32)
    other.write_bytes(b"o" * 32)
    with Ledger.open(tmp_path / "l.db", key=key) as ledger:
        ledger.establish("d", Budget(epsilon=1.0))
        assert ledger.verify().keyed
    with pytest.raises(LedgerError, match="made with a key"):
        Ledger.open(tmp_path / "l.db")
    with pytest.raises(LedgerError, match="another key"):
        Ledger.open(tmp_path / "l.db", key=other)
    looking = Ledger.open(tmp_path / "l.db", read_only=True)
    assert looking.remaining("d") == 1.0
    with pytest.raises(LedgerError, match="made with a key"):
        looking.verify()
    Ledger.open(tmp_path / "plain.db")
    with pytest.raises(LedgerError, match="without a key"):
        Ledger.open(tmp_path / "plain.db", key=key)


def test_a_key_that_cannot_be_one_is_refused(tmp_path: Path) -> None:
    (tmp_path / "short").write_bytes(b"k")
    for key in (tmp_path / "short", tmp_path / "missing"):
        with pytest.raises(InvalidArgument, match="key"):
            Ledger.open(tmp_path / "l.db", key=key)
        assert [file.name for file in tmp_path.iterdir()] == ["short"]  # no ledger without its key is left behind


# -------------------------------------------------------------------- keeping


def test_a_backup_is_one_file_that_verifies_and_is_never_written_over(ledger: Ledger, tmp_path: Path) -> None:
    ledger.complete(ledger.reserve("visits", Cost.pure(0.1), fingerprint="f"), b"1")
    ledger.backup(tmp_path / "copy.db")
    assert sorted(path.name for path in tmp_path.glob("copy*")) == ["copy.db"]
    assert stat.S_IMODE((tmp_path / "copy.db").stat().st_mode) == 0o600
    before = sorted(tmp_path.iterdir())
    with pytest.raises(LedgerError, match=r"copied to .*missing/copy\.db: No such file.* a directory that exists"):
        ledger.backup(tmp_path / "missing" / "copy.db")
    assert sorted(tmp_path.iterdir()) == before
    with pytest.raises(InvalidArgument, match="exists"):
        ledger.backup(tmp_path / "copy.db")
    copy = Ledger.open(tmp_path / "copy.db")
    assert copy.verify(anchor=ledger.head).answers == 1
    assert copy.remaining("visits") == 0.9


def test_a_backup_is_in_the_file_that_was_named_whatever_its_name(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ledger.backup(":memory:")
    assert Ledger.open(tmp_path / ":memory:", read_only=True).verify(anchor=ledger.head).budgets == 1


def test_what_is_left_in_all_does_not_depend_on_who_asks(ledger: Ledger) -> None:
    ledger.establish("shop", Budget(epsilon=1.0))
    ledger.limit("shop", Budget(epsilon=0.25), analyst="ada")
    ledger.reserve("shop", Cost.pure(0.125), analyst="ada")
    assert ledger.remaining("shop", analyst="ada") == 0.125
    assert ledger.remaining_in_all("shop") == 0.875
    assert ledger.remaining_in_all("shop", after=Cost.pure(0.5)) == 0.375
    with pytest.raises(BudgetExceeded):
        ledger.remaining_in_all("shop", after=Cost.pure(1.0))
    assert ledger.remaining_in_all("shop") == 0.875
    with pytest.raises(InvalidArgument, match="it has no budget"):
        ledger.remaining_in_all("another")

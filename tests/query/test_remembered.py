"""Bounds that earlier answers have told: who shares them, when nothing is bought any more, and at what price."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import Budget, Cost, Curator
from discreet.errors import QueryFailed
from discreet.query import curator as room
from discreet.query import run as running
from discreet.query import sizing
from discreet.query.choices import CANDIDATES, bound_of
from discreet.query.losses import excess
from discreet.query.remembered import ENOUGH, Choice, Known
from query.open_shop import opened, visits

ROWS = "SELECT COUNT(*) AS n FROM visits"


def plans(curator: Curator, text: str, told: Callable[[list[str]], Any] = lambda _: {}, **call: Any) -> Any:
    price = {"epsilon": call.pop("epsilon", 1.0), "delta": call.pop("delta", None), "cost": call.pop("cost", None)}
    return curator._desk.take(text, **price, call=call).knowing(curator._data.files, told).plans


def digests(curator: Curator, text: str, **call: Any) -> list[str]:
    return [known.digest for plan in plans(curator, text, **call) for known in plan.known]


# ---------------------------------------------------------------------- what is the same choice

SAME = {
    "another name": "SELECT COUNT(*) AS rows_in_all FROM visits AS v",
    "what stands above": "SELECT COUNT(*) / 2 + 1 FROM visits HAVING COUNT(*) > 3 ORDER BY 1",
    "a subquery": "WITH v AS (SELECT * FROM visits) SELECT COUNT(*) FROM v",
    "another layout": "select  count(*)\nfrom visits -- all",
}
OTHER: dict[str, tuple[str, dict[str, Any]]] = {
    "a condition": (f"{ROWS} WHERE items > 3", {}),
    "keys": (f"{ROWS} GROUP BY city", {"delta": 1e-8}),
    "public keys": (f"{ROWS} GROUP BY items > 3", {}),
    "another column": ("SELECT SUM(items) FROM visits", {}),
    "limits": (ROWS, {"max_groups": 2}),
    "Gaussian noise": (ROWS, {"epsilon": None, "cost": Cost.concentrated(0.1)}),
    "a join": ("SELECT COUNT(*) FROM visits JOIN visits AS w ON visits.user_id = w.user_id", {}),
}


@pytest.mark.parametrize("text", SAME.values(), ids=SAME)
def test_questions_share_a_choice_that_differ_in_what_stands_above_it(text: str) -> None:
    with opened() as curator:
        assert digests(curator, text) == digests(curator, ROWS)
        assert digests(curator, text, epsilon=0.1) == digests(curator, ROWS)


@pytest.mark.parametrize(("text", "call"), OTHER.values(), ids=OTHER)
def test_questions_share_no_choice_that_differ_in_what_is_chosen(text: str, call: dict[str, Any]) -> None:
    with opened() as curator:
        found = digests(curator, text, **call)
        assert found
        assert not set(found) & set(digests(curator, ROWS))


def test_a_choice_is_shared_whatever_else_is_asked_for() -> None:
    together = "SELECT SUM(items) AS i, SUM(spend) AS s, COUNT(DISTINCT city) AS c, MEDIAN(spend) AS m FROM visits"
    alone = {"SUM(items)": {}, "SUM(spend)": {"bounds": (0, 100)}, "MIN(spend)": {"bounds": (0, 9)}}
    alone["COUNT(DISTINCT city)"] = {}
    with opened() as curator:
        found = digests(curator, together, bounds={"spend": (0, 100)})
        assert found == [digests(curator, f"SELECT {one} FROM visits", **call)[0] for one, call in alone.items()]
        assert len(set(found)) == len(alone)


def test_declared_bounds_and_the_unit_belong_to_a_choice() -> None:
    text = "SELECT SUM(spend) FROM visits"
    with opened() as curator, opened(columns={"spend": {"bounds": (0, 50)}}) as narrow, opened(unit="items") as other:
        found = [*digests(curator, text), *digests(curator, text, bounds=(0, 100)), *digests(narrow, text)]
        assert len({*found, *digests(other, text)}) == 4


def test_a_changed_file_has_choices_of_its_own(tmp_path: Path) -> None:
    data = tmp_path / "visits.parquet"
    pq.write_table(visits(), data)
    with opened(data, ledger=tmp_path / "a.ledger") as curator:
        for _ in range(ENOUGH):
            curator.sql(ROWS, epsilon=1.0, reuse=False)
        first = digests(curator, ROWS)
        assert plans(curator, ROWS, curator._payer.told)[0].known[0].settled
    os.utime(data, ns=(1, 1))
    with opened(data, ledger=tmp_path / "a.ledger", budget=None) as curator:
        assert digests(curator, ROWS) != first
        assert not plans(curator, ROWS, curator._payer.told)[0].known[0].earlier


# ---------------------------------------------------------------------- what is bought

QUESTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "a count": (ROWS, {}),
    "a sum and a count": ("SELECT SUM(spend) AS s, COUNT(*) AS n FROM visits", {}),
    "groups": ("SELECT city, COUNT(*) AS n, SUM(spend) AS s FROM visits GROUP BY city", {}),
    "public groups": ("SELECT items > 4 AS many, SUM(spend) AS s FROM visits GROUP BY 1", {}),
    "ranks": ("SELECT MEDIAN(spend) AS m, MAX(items) AS l FROM visits", {"bounds": (0, 100)}),
    "distinct": ("SELECT COUNT(DISTINCT city) AS c, COUNT(*) AS n FROM visits", {}),
    "two parts": (f"{ROWS} UNION ALL SELECT SUM(items) FROM visits", {}),
    "mu": ("SELECT SUM(items) AS i FROM visits", {"cost": Cost.gaussian_dp(0.5)}),
}


@pytest.fixture
def bought(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The epsilon of every choice and every count of units that is run."""
    spent: list[float] = []
    names = ((running, "choose_bound"), (running, "choose_share"), (running, "choose_kept"), (sizing, "choose_bound"))
    for owner, name in (*names, (sizing.Sketch, "drawn")):
        choose = getattr(owner, name)

        def spied(*arguments: Any, choose: Any = choose, **facts: Any) -> Any:
            spent.append(facts["epsilon"])
            return choose(*arguments, **facts)

        monkeypatch.setattr(owner, name, spied)
    return spent


@pytest.mark.parametrize(("text", "call"), QUESTIONS.values(), ids=QUESTIONS)
def test_three_answers_buy_a_choice_and_the_fourth_none(text: str, call: dict[str, Any], bought: list[float]) -> None:
    price: dict[str, Any] = {"reuse": False, **({} if "cost" in call else {"epsilon": 1.0}), **call}
    bounds, costs = [], []
    with opened() as curator:
        for place in range(ENOUGH + 2):
            explained = curator.explain(text, **price)
            steps = [plan.allocation for plan in explained.plans]
            expected = sorted(
                e
                for one in steps
                for e in [one.choice] * one.choices
                + [one.tail] * (one.tails + one.spreads)
                + [one.sketched, one.chosen] * len(one.pots)  # these tables are too small for a curve
            )
            bought.clear()
            answer = curator.sql(text, **price)
            assert sorted(bought) == expected  # exactly what is paid for
            assert bool(bought) == (place < ENOUGH)
            assert answer.cost == explained.cost
            assert str([*curator.ledger.entries(kind="reserve")][-1].cost) == str(answer.cost)
            bounds.append(answer.bounds)
            costs.append(steps)
        first, last = (one[-1].noise for one in (costs[0], costs[-1]))
        assert all(less < more for less, more in zip(last, first, strict=True))
        assert bounds[2] == bounds[3] == bounds[4]
        told = curator._payer.told([known.digest for plan in explained.plans for known in plan.known])
        assert all(len(values) == ENOUGH for values in told.values())


def test_a_count_that_is_known_spends_everything_on_its_noise() -> None:
    with opened() as curator:
        answers = [curator.sql(ROWS, epsilon=1.0, reuse=False) for _ in range(ENOUGH + 1)]
        assert answers[-1].cost.epsilon(0.0) == pytest.approx(1.0)
        [before, after] = [answer._measured[0].plan.allocation for answer in (answers[0], answers[-1])]
        assert (before.is_staircase(0), after.is_staircase(0)) == (False, True)
        assert before.noise[0] / after.noise[0] == pytest.approx(1 / 0.655)  # at most: what is spared makes it less
        scales = [answer._measured[0].moments[0].scale / answer.bounds["number of rows"] for answer in answers]
        assert scales[0] == pytest.approx(1 / 0.755, rel=0.03)
        assert scales[-1] == pytest.approx(1.0, rel=0.03)
        first, second, third, fourth = (answer.bounds["number of rows"] for answer in answers)
        assert min(first, second) <= third <= max(first, second)  # whatever the third one chose
        assert fourth == third


def test_an_answer_that_is_read_again_says_what_was_paid_for_it() -> None:
    with opened() as curator:
        first, second = (curator.sql(ROWS, epsilon=epsilon) for epsilon in (1.0, 0.9))
        for _ in range(ENOUGH):
            curator.sql(ROWS, epsilon=2.0, reuse=False)
        third = curator.sql(ROWS, epsilon=0.8)
        again = [curator.sql(ROWS, epsilon=epsilon) for epsilon in (1.0, 0.9, 0.8)]
        assert all(answer.repeated for answer in again)
        assert [answer.cost for answer in again] == [first.cost, second.cost, third.cost]
        assert (len(list(first.cost.parts)), len(list(third.cost.parts))) == (2, 1)


def test_what_is_explained_is_what_is_answered() -> None:
    with opened() as curator:
        for _ in range(ENOUGH):
            assert curator.explain(ROWS, epsilon=1.0, reuse=False).errors() == {"n": None}
            curator.sql(ROWS, epsilon=1.0, reuse=False)
        explained = curator.explain(ROWS, epsilon=1.0, reuse=False)
        answer = curator.sql(ROWS, epsilon=1.0, reuse=False)
        bound = answer.bounds["number of rows"]
        assert f"from a bound of {bound:.4g} on one unit; the bound is known from earlier answers" in str(explained)
        [row] = answer.intervals(0.95).to_pylist()
        error = explained.errors()["n"]
        assert error is not None
        assert row["n_high"] - row["n"] == pytest.approx(error, abs=2)


def test_a_refusal_offers_a_price_at_which_it_is_answered_with_what_is_known() -> None:
    with opened(budget=Budget(epsilon=4.0)) as curator:
        for _ in range(ENOUGH):
            curator.sql(ROWS, epsilon=1.0, reuse=False)
        explained = curator.explain(ROWS, epsilon=1.5, reuse=False)
        assert explained.refusal is not None
        assert curator.sql(ROWS, epsilon=explained.refusal.remaining * 0.999, reuse=False).bounds


def test_choices_count_for_whoever_pays_as_much_or_less_and_not_for_whoever_pays_more() -> None:
    text, call = "SELECT MEDIAN(spend) AS m FROM visits", {"bounds": (0, 100)}  # its bound is for no noise

    def counted(epsilon: float) -> int:
        return len(plans(curator, text, curator._payer.told, epsilon=epsilon, **call)[0].known[0].earlier)

    with opened() as curator:
        for _ in range(ENOUGH):
            curator.sql(text, epsilon=0.2, reuse=False, **call)
        assert [counted(epsilon) for epsilon in (0.1, 0.2, 0.202, 0.21, 0.4)] == [ENOUGH, ENOUGH, ENOUGH, 0, 0]


# ---------------------------------------------------------------------- whose memory it is


def test_nobody_is_told_for_free_what_another_analyst_paid_for(tmp_path: Path) -> None:
    data = tmp_path / "visits.parquet"
    pq.write_table(visits(), data)
    with opened(data, ledger=tmp_path / "a.ledger", analyst="ada") as ada:
        for _ in range(ENOUGH):
            ada.sql(ROWS, epsilon=1.0, reuse=False)
        assert plans(ada, ROWS, ada._payer.told)[0].known[0].settled
        with opened(data, ledger=tmp_path / "a.ledger", analyst="bob") as bob:
            assert digests(bob, ROWS) == digests(ada, ROWS)
            assert not plans(bob, ROWS, bob._payer.told)[0].known[0].earlier
            assert bob.explain(ROWS, epsilon=1.0).cost != ada.explain(ROWS, epsilon=1.0).cost
            assert bob.sql(ROWS, epsilon=1.0).cost == bob.explain(f"{ROWS} WHERE items > 2", epsilon=1.0).cost


def test_an_answer_that_failed_is_remembered_by_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(measured: Any) -> bytes:
        raise RuntimeError(str(measured))

    with opened() as curator:
        monkeypatch.setattr(room, "to_bytes", failing)
        for _ in range(ENOUGH):
            with pytest.raises(QueryFailed):
                curator.sql(ROWS, epsilon=1.0)
        assert curator._payer.told(digests(curator, ROWS)) == {digest: [] for digest in digests(curator, ROWS)}


def test_what_others_add_after_the_price_is_fixed_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with opened() as curator:
        for _ in range(ENOUGH - 1):
            curator.sql(ROWS, epsilon=1.0, reuse=False)
        reserve, asked = curator.ledger.reserve, []

        def slow(*arguments: Any, **facts: Any) -> Any:
            if not asked:  # while this one waits for its turn, another question is asked and answered
                asked.append(True)
                curator.sql(ROWS, epsilon=1.0, reuse=False)
            return reserve(*arguments, **facts)

        monkeypatch.setattr(curator.ledger, "reserve", slow)
        answer = curator.sql(ROWS, epsilon=1.0, reuse=False)
        assert len(curator._payer.told(digests(curator, ROWS))[digests(curator, ROWS)[0]]) == ENOUGH + 1
        assert answer.cost == curator.explain(f"{ROWS} WHERE items > 2", epsilon=1.0).cost  # it bought its own
        assert curator.sql(ROWS, epsilon=1.0, reuse=False).cost.epsilon(0.0) == pytest.approx(1.0)


# ---------------------------------------------------------------------- which choices count


@pytest.mark.parametrize(
    ("text", "earlier", "counts"),
    [
        (ROWS, 1.0, True),
        (ROWS, 0.99, True),
        (ROWS, 0.9, False),  # paid less, and for more noise
        (ROWS, 9.0, True),
        (ROWS, 11.0, False),
        ("SELECT items > 4 AS many, COUNT(*) AS n FROM visits GROUP BY 1", 4.5, True),
        ("SELECT items > 4 AS many, COUNT(*) AS n FROM visits GROUP BY 1", 7.0, False),
        ("SELECT city, COUNT(*) AS n FROM visits GROUP BY city", 1.1, True),
        ("SELECT city, COUNT(*) AS n FROM visits GROUP BY city", 2.0, False),
    ],
)
def test_a_choice_counts_that_was_paid_as_well_and_not_for_far_less_noise(
    text: str, earlier: float, counts: bool
) -> None:
    with opened(budget=Budget(epsilon=100.0, delta=1e-6)) as curator:
        curator.sql(text, epsilon=earlier)
        [known] = plans(curator, text, curator._payer.told)[0].known
        assert len(known.earlier) == counts


def test_the_best_paid_choices_are_used_and_the_newest_of_those() -> None:
    with opened() as curator:
        [plan] = plans(curator, ROWS)
        own = Choice(
            8, plan.epsilon_of_choice("moment 0"), plan.noise_for("moment 0"), 2.0, units=300.0, size=9, looked=0.01
        )
        stored = [asdict(replace(own, number=number)) for number in (5, 6, 7, 8)]
        stored += [asdict(replace(own, number=20, epsilon=own.epsilon * 2)), {"number": 3}, None, "text"]
        [known] = plans(curator, ROWS, lambda names: dict.fromkeys(names, stored))[0].known
        assert [one.number for one in known.earlier] == [20, 5, 6]
        assert known.with_new().number == 6


def test_two_choices_are_not_mixed_and_of_three_each_number_is_the_middle_one() -> None:
    def choice(number: int, **facts: Any) -> Choice:
        return Choice(number, 0.2, 1.3, 2.0, **{"units": 100.0, "size": 4, "looked": 0.01, **facts})

    known = Known("moment 0", "d", (choice(4, units=90.0), choice(30, units=300.0, size=8)))
    assert Known("moment 0", "d", known.earlier[:1]).with_new(choice(7)) == choice(7)
    assert Known("moment 0").with_new(choice(7)) == choice(7)
    mixed = known.with_new(choice(7, size=5))
    assert (mixed.number, mixed.units, mixed.size) == (7, 100.0, 5)


def test_the_allowance_grows_as_the_noise_beside_it_falls() -> None:
    chosen = Choice(20, 0.2, 1.3, 2.0)
    assert excess(chosen, 1.3, groups=1) == 1.0
    assert excess(chosen, 1.0, groups=1) == pytest.approx(1.3)
    assert excess(chosen, 2.0, groups=1) == 1.0
    heavy = replace(chosen, units=10_000.0, size=4, looked=0.01)
    assert excess(heavy, 1.0, groups=1) > 1.3
    assert bound_of(20) > bound_of(4)


# ---------------------------------------------------------------------- what is stored

FINE = Choice(12, 0.2, 1.3, 2.0, units=310.0, size=-4, looked=0.01)
OFF_A_SKETCH = replace(FINE, number=12.25, lost=0.5, unsure=0.7, seen=400.0, steep=3.5)
WRONG = [
    {"number": 12.0},
    {"number": 12.25},
    {"number": True},
    {"lost": -0.5},
    {"lost": 0.5, "number": 12.3},
    {"lost": float("nan")},
    {"lost": 0.5, "unsure": float("inf")},
    {"lost": 0.5, "seen": None},
    {"lost": 0.5, "steep": -1.0},
    {"lost": [1, 2]},
    {"steep": 2.0},
    {"number": CANDIDATES.stop},
    {"number": None},
    {"epsilon": 0},
    {"epsilon": -1.0},
    {"epsilon": float("nan")},
    {"noise": float("inf")},
    {"noise": "1.3"},
    {"allowed": -1.0},
    {"units": None},
    {"size": None},
    {"size": 10**6},
    {"looked": 0.0},
    {"more": 1},
]


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_a_stored_choice_that_makes_no_sense_is_ignored(wrong: dict[str, Any]) -> None:
    for good in (FINE, OFF_A_SKETCH):
        assert Choice.read(json.loads(json.dumps(asdict(good)))) == good
    assert Choice.read({**asdict(FINE), **wrong}) is None


@given(
    st.recursive(st.none() | st.booleans() | st.floats() | st.text(), lambda inner: st.dictionaries(st.text(), inner))
)
def test_whatever_is_stored_is_a_choice_or_ignored(stored: Any) -> None:
    assert Choice.read(stored) is None

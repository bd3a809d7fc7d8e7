"""Stored answers: read again as they were, and asked anew where another release wrote them in another way."""

from __future__ import annotations

import datetime as dt
import json
import math
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from discreet import Budget, Cost, Curator
from discreet.errors import BudgetExceeded
from discreet.query import kept
from discreet.query.measuring import Measured, measure
from query.open_shop import CITIES, charges, opened

QUESTIONS = (
    "SELECT city, COUNT(*) AS n, AVG(spend) AS mean, MEDIAN(spend) AS mid FROM visits GROUP BY city ORDER BY city",
    "SELECT COUNT(DISTINCT city) AS cities, MAX(spend) AS most FROM visits",
    "SELECT COUNT(*) AS n FROM visits UNION ALL SELECT SUM(spend) FROM visits",
)


def with_facts(stored: bytes, change: Callable[[dict[str, Any]], object]) -> bytes:
    """The same with other facts about the first block."""
    (length,) = struct.unpack_from("<Q", stored)
    facts = json.loads(stored[8 : 8 + length])
    change(facts)
    header = json.dumps(facts).encode()
    return struct.pack("<Q", len(header)) + header + stored[8 + length :]


def store_instead(curator: Curator, monkeypatch: pytest.MonkeyPatch, stored: Callable[[bytes], bytes]) -> None:
    """Answers are stored as another release would have."""
    monkeypatch.setattr("discreet.query.curator.to_bytes", lambda measured: stored(kept.to_bytes(measured)))


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_stored_answer_is_read_as_it_was(question: str) -> None:
    with opened() as curator:
        first, again = (curator.sql(question, epsilon=1.0) for _ in range(2))
        assert (first.repeated, again.repeated, charges(curator)) == (False, True, 1)
        assert again.to_arrow().equals(first.to_arrow())
        assert again.intervals(0.95).equals(first.intervals(0.95))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"epsilon": 1.0}, {"epsilon": 1.0000001}),
        ({"epsilon": 1.0, "delta": 1e-7}, {"epsilon": 1.0, "delta": 1.0000001e-7}),
        ({"cost": Cost.concentrated(0.1)}, {"cost": Cost.concentrated(0.1000000001)}),
        ({"cost": Cost.gaussian_dp(0.1)}, {"cost": Cost.gaussian_dp(0.1000000001)}),
        ({"cost": Cost.gaussian_dp(0.1)}, {"cost": Cost.concentrated(0.1)}),
    ],
    ids=["epsilon", "delta", "rho", "mu", "notion"],
)
def test_an_answer_at_another_price_is_not_given_however_near_it_is(one: dict, other: dict) -> None:
    with opened() as curator:
        grouped = " GROUP BY city" if "delta" in one else ""  # a total has no use for a delta
        text = f"SELECT SUM(spend) AS s FROM visits{grouped}"
        answers = [curator.sql(text, **price) for price in (one, other, one)]
        assert [answer.repeated for answer in answers] == [False, False, True]
        assert answers[0].to_arrow().equals(answers[2].to_arrow())


OTHERS: dict[str, Callable[[bytes], bytes]] = {
    "nothing": lambda stored: b"",
    "zeros": lambda stored: b"\x00" * 100,
    "text": lambda stored: b'{"version": 1, "rows": [[41]]}',
    "cut off": lambda stored: stored[: len(stored) // 2],
    "one block more": lambda stored: stored + stored,
    "an earlier version": lambda stored: with_facts(stored, lambda facts: facts.update(version=1)),
    "a later version": lambda stored: with_facts(stored, lambda facts: facts.update(version=99)),
    "another plan": lambda stored: with_facts(stored, lambda facts: facts.update(plan="another")),
    "fewer measures": lambda stored: with_facts(stored, lambda facts: facts.update(moments=[])),
    "no version": lambda stored: with_facts(stored, lambda facts: facts.pop("version")),
}


@pytest.mark.parametrize("case", OTHERS)
def test_an_answer_of_another_format_counts_as_absent_and_is_asked_and_paid_anew(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = QUESTIONS[0]
    with opened() as curator:
        with monkeypatch.context() as patch:
            store_instead(curator, patch, OTHERS[case])
            curator.sql(question, epsilon=1.0)
        left = curator.remaining
        assert not curator.explain(question, epsilon=1.0).answered
        assert not curator.sql(question, epsilon=1.0).repeated
        assert curator.remaining < left
        assert curator.sql(question, epsilon=1.0).repeated  # the new one
        assert charges(curator) == 2
        curator.ledger.verify()


def test_numbers_are_read_bit_by_bit_whether_they_are_alike_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[Measured, ...]] = []
    with opened() as curator, monkeypatch.context() as patch:
        patch.setattr("discreet.query.curator.to_bytes", lambda measured: seen.append(measured) or b"")
        for question in QUESTIONS:
            curator.sql(question, epsilon=1.0)
    for strange in (0.0, -0.0, math.nan, math.inf, -math.inf, 5e-324, None):
        for blocks in seen:
            changed = tuple(_with_places(block, strange) for block in blocks)
            read = kept.from_bytes(kept.to_bytes(changed), [block.plan for block in changed])
            assert read is not None
            for before, after in zip(changed, read, strict=True):
                assert before.groups == after.groups
                assert before.keys.keys() == after.keys.keys()
                for one, other in zip(before.moments + before.distincts, after.moments + after.distincts, strict=True):
                    assert (one.scale, one.law) == (other.scale, other.law)
                    assert one.values.tobytes() == other.values.tobytes()
                for one, other in zip(before.ranks, after.ranks, strict=True):
                    assert one.place.tobytes() == other.place.tobytes()


def _with_places(block: Measured, strange: float | None) -> Measured:
    """The same block, the places of its quantiles alike or one of them another zero."""
    if strange is None:
        return block
    changed = []
    for rank in block.ranks:
        place = np.full(rank.place.shape, strange)
        place[-1] = 0.0 if strange == 0 else strange
        changed.append(replace(rank, place=place))
    return replace(block, ranks=tuple(changed))


def test_public_keys_and_numbers_that_are_alike_take_no_room() -> None:
    days = [dt.date(2025, 1, 1) + dt.timedelta(days=i) for i in range(365)]
    rows = pa.table({"u": range(3000), "day": [days[i % 365] for i in range(3000)]})
    sizes = []
    for columns in ({"day": {"keys": days}}, {}):
        with Curator.open(
            rows, unit="u", budget=Budget(epsilon=500.0, delta=1e-3), columns=columns, name="visits", ledger=":memory:"
        ) as curator:
            curator.sql("SELECT day, COUNT(*) AS n FROM visits GROUP BY day", epsilon=400.0)
            (stored,) = curator.ledger._store._live().exec_driver_sql("SELECT answer FROM answers").scalars()
            sizes.append(len(stored))
    public, selected = sizes
    assert 2 * 8 * 365 < public < 2 * 8 * 365 + 1500  # a number and what it may have lost
    assert selected > public + 4 * 365


def test_whole_numbers_are_written_in_32_bits_and_read_as_they_were() -> None:
    with opened(columns={"city": {"keys": [str(k) for k in range(500)]}}) as curator:
        asked = curator._desk.take(QUESTIONS[0], epsilon=1.0, delta=None, cost=None, call={})
        with curator._data.engine.session() as session:
            (measured,) = (measure(session, plan) for plan in asked.plans)
    sizes = []
    for last in (7.0, 2.0**31 - 1, -(2.0**31), 2.0**31, 0.5, -0.0, math.nan, math.inf, 5e-324):
        values = np.arange(500.0) - 250
        values[-1] = last
        moments = tuple(replace(noisy, values=values, lost=np.zeros(500)) for noisy in measured.moments)
        block = replace(measured, moments=moments)
        stored = kept.to_bytes([block])
        (read,) = kept.from_bytes(stored, [block.plan]) or ()
        for one, other in zip(block.moments, read.moments, strict=True):
            assert one.values.tobytes() == other.values.tobytes()
        sizes.append(len(stored))
    narrow, wide = sizes[:3], sizes[3:]
    assert max(narrow) - min(narrow) < 100
    assert min(wide) - max(narrow) > 4 * 500 * len(measured.moments) - 100


def test_an_answer_that_the_last_release_has_written_is_read() -> None:
    def as_before(facts: dict[str, Any]) -> None:
        assert not facts.pop("whole")
        facts.update(version=5)

    question = "SELECT AVG(spend) AS mean FROM visits"
    with opened() as curator, pytest.MonkeyPatch.context() as patch:
        store_instead(curator, patch, lambda stored: with_facts(stored, as_before))
        first, again = (curator.sql(question, epsilon=1.0) for _ in range(2))
        assert again.repeated
        assert again.to_arrow().equals(first.to_arrow())


def test_where_the_public_keys_are_others_an_answer_is_not_read() -> None:
    with opened(columns={"city": {"keys": list(CITIES)}}) as curator:
        asked = curator._desk.take(QUESTIONS[0], epsilon=1.0, delta=None, cost=None, call={})
        with curator._data.engine.session() as session:
            (measured,) = (measure(session, plan) for plan in asked.plans)
    stored, plan = kept.to_bytes([measured]), measured.plan
    assert kept.from_bytes(stored, [plan]) is not None
    (key,) = plan.block.keys
    assert key.values is not None
    for values in (key.values[::-1], (*key.values[:-1], "Elsewhere"), None):
        other = replace(plan, block=replace(plan.block, keys=(replace(key, values=values),)))
        assert kept.from_bytes(stored, [other]) is None


def test_where_nothing_is_left_an_answer_of_another_format_is_not_given_for_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(ledger=tmp_path / "l.ledger") as curator:
        with monkeypatch.context() as patch:
            store_instead(curator, patch, OTHERS["an earlier version"])
            curator.sql(QUESTIONS[2], epsilon=15.0)
        with pytest.raises(BudgetExceeded):
            curator.sql(QUESTIONS[2], epsilon=15.0)

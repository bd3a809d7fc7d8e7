"""Stored answers: read again as they were, and asked anew where another release wrote them in another way."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from discreet import Cost, Curator
from discreet.errors import BudgetExceeded
from discreet.query import kept
from query.open_shop import charges, opened

QUESTIONS = (
    "SELECT city, COUNT(*) AS n, AVG(spend) AS mean, MEDIAN(spend) AS mid FROM visits GROUP BY city ORDER BY city",
    "SELECT COUNT(DISTINCT city) AS cities, MAX(spend) AS most FROM visits",
    "SELECT COUNT(*) AS n FROM visits UNION ALL SELECT SUM(spend) FROM visits",
)


def facts_of(stored: bytes) -> dict[str, object]:
    found: dict[str, object] = json.loads(pa.ipc.open_stream(stored).read_all().schema.metadata[b"discreet"])
    return found


def with_facts(stored: bytes, change: Callable[[dict[str, object]], object]) -> bytes:
    """The first block with other facts about it, and whatever else there is left out."""
    table = pa.ipc.open_stream(stored).read_all()
    facts = facts_of(stored)
    change(facts)
    sink = pa.BufferOutputStream()
    table = table.replace_schema_metadata({b"discreet": json.dumps(facts).encode()})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    written: bytes = sink.getvalue().to_pybytes()
    return written


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
    "no Arrow": lambda stored: b"\x00" * 100,
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


def test_the_format_before_is_still_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def before(facts: dict[str, object]) -> None:
        del facts["plan"], facts["paid"]
        facts["version"] = 2

    with opened() as curator:
        with monkeypatch.context() as patch:
            store_instead(curator, patch, lambda stored: with_facts(stored, before))
            first = curator.sql(QUESTIONS[0], epsilon=1.0)
        again = curator.sql(QUESTIONS[0], epsilon=1.0)
        assert again.repeated
        assert again.cost == first.cost
        assert again.to_arrow().equals(first.to_arrow())


def test_where_nothing_is_left_an_answer_of_another_format_is_not_given_for_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(ledger=tmp_path / "l.ledger") as curator:
        with monkeypatch.context() as patch:
            store_instead(curator, patch, OTHERS["an earlier version"])
            curator.sql(QUESTIONS[2], epsilon=15.0)
        with pytest.raises(BudgetExceeded):
            curator.sql(QUESTIONS[2], epsilon=15.0)

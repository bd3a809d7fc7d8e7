"""What a unit keeps depends on its own rows alone, also where the engine's hash is the same for all that it has.

The hash of DuckDB can be solved: for any value of 128 bits, and for any two keys, there are others with the same one.
Whoever knows that can write them into a table.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from discreet import Budget, Curator
from discreet.query.ranks import measure as ranks
from discreet.query.run import Run

ALL, FACTOR = (1 << 64) - 1, 0xD6E8FEB86659FD93
UNITS, ROWS, OTHER = 600, 3000, 10**6


def mixed(x: int) -> int:
    """The engine's hash of 64 bits."""
    for _ in range(2):
        x = (x ^ x >> 32) * FACTOR & ALL
    return x ^ x >> 32


def unmixed(x: int) -> int:
    """What has this hash."""
    for _ in range(2):
        x = (x ^ x >> 32) * pow(FACTOR, -1, 1 << 64) & ALL
    return x ^ x >> 32


def both(one: int, other: int) -> int:
    """The engine's hash of two numbers."""
    first = mixed(one)
    return ((first ^ first >> 32) * FACTOR & ALL) ^ mixed(other)


def signed(x: int) -> int:
    return x - (1 << 64) if x >> 63 else x


def opened(table: pa.Table, monkeypatch: pytest.MonkeyPatch) -> Curator:
    monkeypatch.setattr(Run, "secret", 12345)
    budget = Budget(epsilon=500.0, delta=1e-3)
    return Curator.open(table, unit="u", name="t", budget=budget, ledger=":memory:", threads=1)


@pytest.fixture
def exact(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The numbers that noise is added to."""
    seen: list[list[int]] = []
    real = Run.with_noise

    def spied(self: Run, sums: Any, *given: Any, **named: Any) -> Any:
        seen.append(sorted(sums.tolist()))
        return real(self, sums, *given, **named)

    monkeypatch.setattr(Run, "with_noise", spied)
    return seen


def test_values_with_the_same_hash_are_kept_whoever_else_is_there(
    exact: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everybody has one common value and another one with its hash; one person more has thousands of values."""
    rng = np.random.default_rng(1)
    common, values = (7 << 64) | 11, []
    while len(values) < UNITS:
        low = int(rng.integers(0, 1 << 62))
        high = unmixed(mixed(7) ^ mixed(11) ^ mixed(low))
        if high < 5 * 10**18:  # a decimal of 38 digits holds it
            values.append((high << 64) | low)
    same = {duckdb.execute("SELECT hash(?::DECIMAL(38, 0))", [Decimal(x)]).fetchall()[0][0] for x in (common, *values)}
    assert len(same) == 1
    monkeypatch.setattr("discreet.query.run.choose_kept", lambda *_, **__: 0)  # one value of each unit
    for more in (True, False):
        rows = [(OTHER, (1 << 64) + i) for i in range(ROWS * more)]
        rows += [(u, x) for u, own in enumerate(values) for x in (common, own)]
        x = pa.array([Decimal(x) for _, x in rows], pa.decimal128(38, 0))
        with opened(pa.table({"u": [u for u, _ in rows], "x": x}), monkeypatch) as curator:
            curator.sql("SELECT COUNT(DISTINCT x) AS n FROM t", epsilon=1.0)
    assert exact[0][0] - exact[1][0] in (0, 1)


def test_groups_with_the_same_hash_are_kept_whoever_else_is_there(
    exact: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everybody is in two groups that share a hash, and counts in one; one person more is in thousands of others."""
    key, partner = (1, 2), (2, signed(unmixed(both(1, 2) ^ both(2, 0) ^ mixed(0))))
    hashes = {duckdb.execute("SELECT hash(?::BIGINT, ?::BIGINT)", list(one)).fetchall()[0][0] for one in (key, partner)}
    assert len(hashes) == 1
    weights: list[list[int]] = []
    real = ranks.measure_rank

    def spied(cells: Any, *given: Any, **named: Any) -> Any:
        weights.append(sorted(cells.total.tolist()))
        return real(cells, *given, **named)

    monkeypatch.setattr(ranks, "measure_rank", spied)
    rows = [(u, key) for u in range(UNITS)] + [(u, partner) for u in range(UNITS)]
    rows += [(OTHER, (7, i)) for i in range(ROWS)]
    order = np.random.default_rng(2).permutation(len(rows))
    for more in (True, False):
        kept = [rows[i] for i in order if more or rows[i][0] != OTHER]
        columns = {"u": [u for u, _ in kept], "a": [k[0] for _, k in kept], "b": [k[1] for _, k in kept]}
        with opened(pa.table({**columns, "x": [float(u % 97) for u, _ in kept]}), monkeypatch) as curator:
            text = "SELECT a, b, COUNT(DISTINCT u) AS n, MAX(x) AS m FROM t GROUP BY a, b"
            curator.sql(text, epsilon=2.0, delta=1e-6, max_groups=1)
    assert exact[0] == exact[1] == [UNITS]
    assert weights[0] == weights[1]
    assert len(weights[0]) == 1


@pytest.mark.parametrize("columns", [None, {"g": {"keys": ["a", "c1", "c2", "c3"]}}], ids=["private", "public"])
def test_every_unit_has_a_draw_of_its_own_however_groups_are_numbered(
    exact: list[list[int]], monkeypatch: pytest.MonkeyPatch, columns: Any
) -> None:
    """Everybody is in four groups and counts in one; somebody else comes first, with the groups the other way round."""
    monkeypatch.setattr(Run, "secret", 12345)
    everything = lambda numbers, *_, **__: (np.ones(numbers.size, dtype=bool), np.ones(1))
    monkeypatch.setattr("discreet.query.keys.kept_by_weight", everything)
    monkeypatch.setattr("discreet.query.keys.kept_by_count", lambda *given, **named: everything(*given, **named)[0])
    names = ["a", "c1", "c2", "c3"]
    found = []
    for first in ([], [(0, name) for name in reversed(names)]):
        rows = first + [(i, name) for i in range(1, 2001) for name in names]
        table = pa.table({"u": [u for u, _ in rows], "g": [g for _, g in rows]})
        budget = Budget(epsilon=500.0, delta=1e-3)
        with Curator.open({"t": table}, unit="u", budget=budget, ledger=":memory:", columns=columns) as curator:
            curator.sql("SELECT g, COUNT(DISTINCT u) AS n FROM t GROUP BY g", epsilon=2.0, delta=1e-6, max_groups=1)
        found.append(exact.pop())
    assert sum(found[0]) == 2000
    assert all(400 < one < 600 for one in found[0])  # 500 +- 19
    assert sorted(more - less for less, more in zip(*found, strict=True)) == [0, 0, 0, 1]

"""Answers that need no database: the same tables as the sandbox gives."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from discreet.engines import Sandbox, arrow_column
from discreet.query.projection import plain_columns, projected

NOISY = pa.table(
    {
        "k0": arrow_column(["a", None, 'b"c']),
        "k1": arrow_column([dt.date(2020, 1, 1), dt.date(2021, 1, 1), None]),
        "k2": arrow_column([1 << 70, None, 3]),
        "a0": arrow_column([3, -5, 8]),
        "a1": arrow_column([1.5, None, float("inf")]),
        "a2": arrow_column([None, None, None]),
    }
)


@pytest.mark.parametrize(
    "after",
    [
        'SELECT t0.a0 AS "n" FROM noisy_0 AS t0',
        'SELECT t0.k0 AS "a ""b"", t0.c AS d", t0.a1 AS "FROM noisy_0 AS t0" FROM noisy_0 AS t0',
        'SELECT t0.k0 AS "a", t0.k1 AS "b", t0.k2 AS "c", t0.a0 AS "d", t0.a1 AS "e", t0.a2 AS "f" FROM noisy_0 AS t0',
    ],
)
def test_a_projection_is_what_the_sandbox_answers(after: str) -> None:
    columns = plain_columns(after)
    assert columns is not None
    got, want = projected(NOISY, columns), Sandbox().run(after, {"noisy_0": NOISY})
    assert got.schema == want.schema
    assert got.to_pylist() == want.to_pylist()
    empty = projected(NOISY.slice(0, 0), columns)
    assert empty.schema == want.schema
    assert empty.num_rows == 0
    assert projected(NOISY.slice(1, 2), columns).to_pylist() == want.to_pylist()[1:]


@pytest.mark.parametrize(
    "after",
    [
        'SELECT t0.a0 AS "n" FROM noisy_0 AS t0 ORDER BY 1',
        'SELECT t0.a0 + 1 AS "n" FROM noisy_0 AS t0',
        'SELECT DISTINCT t0.a0 AS "n" FROM noisy_0 AS t0',
        'SELECT t0.a0 AS "n" FROM noisy_0 AS t0, noisy_1 AS t1',
        'SELECT t0.a0 AS "n" FROM noisy_1 AS t0',
        'SELECT t1.a0 AS "n" FROM noisy_0 AS t0',
        'SELECT t0.a0 AS "n" FROM (SELECT 1) AS t0',
    ],
)
def test_anything_else_is_left_to_the_sandbox(after: str) -> None:
    assert plain_columns(after) is None

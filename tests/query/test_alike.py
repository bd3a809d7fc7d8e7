"""Of equal values that look different, which one the engine came across first must not show."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from discreet.accounting import Budget
from discreet.errors import QueryRefused
from discreet.query.curator import Curator
from discreet.query.policy import Policy, TablePolicy
from discreet.query.sql.alike import is_alike, one_look
from discreet.query.sql.types import type_named

NEGATIVE_NAN = np.array([0xFFF8_0000_0000_0000], dtype=np.uint64).view(np.float64)[0]
MONTHS = pa.array([(1, 0, 0), (0, 30, 0)], pa.month_day_nano_interval())


def opened(columns: dict[str, Any], **facts: Any) -> Curator:
    people = TablePolicy(pa.table(columns), unit="id", **facts)
    places = TablePolicy(pa.table({"y": columns["x"], "k": columns["id"]}), public=True)
    policy = Policy(name="alike", tables={"t": people, "pub": places})
    return Curator.open(policy, budget=Budget(epsilon=5.0), ledger=":memory:", threads=1)


def rows_of(curator: Curator, text: str) -> list[dict[str, Any]]:
    """The rows of the one block of a question, as the engine reads them."""
    [plan] = curator._desk.take(text, epsilon=1.0, delta=0.0, cost=None, call={}).plans
    with curator._data.engine.session() as session:
        return session.table(plan.block.rows).to_pylist()


ONE_OF_SEVERAL = (
    "(SELECT id, MIN(x) AS x FROM t GROUP BY id) AS s",
    "(SELECT id, MAX(x) AS x FROM t GROUP BY id) AS s",
    "(SELECT id, x, COUNT(*) AS n FROM t GROUP BY id, x) AS s",
    "(SELECT DISTINCT id, x FROM t) AS s",
    "(SELECT id, MEDIAN(x) AS x FROM t GROUP BY id) AS s",
    "t JOIN (SELECT DISTINCT y AS x, k FROM pub) AS s ON t.id = s.k",
)


@pytest.mark.parametrize("source", ONE_OF_SEVERAL)
@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
@pytest.mark.parametrize("pair", [(0.0, -0.0), (math.nan, NEGATIVE_NAN)])
def test_floats_look_the_same_in_whichever_order_rows_come(
    source: str, kind: pa.DataType, pair: tuple[float, float]
) -> None:
    """With two threads and 300 000 people, COUNT(*) ... WHERE CAST(MIN(x) AS VARCHAR) = '-0.0' differed by 70 000."""
    looks = ("CAST(s.x AS VARCHAR)", "s.x || ''", "POWER(s.x, -1)")
    text = f"SELECT {', '.join(f'COUNT(DISTINCT {look})' for look in looks)} FROM {source}"
    found = []
    for values in (pair, pair[::-1]):
        curator = opened({"id": [7, 7], "x": pa.array(np.array(values)).cast(kind, safe=False)})
        found.append(rows_of(curator, text))
    assert found[0] == found[1]


@pytest.mark.parametrize("pair", [(0.0, -0.0), (math.nan, NEGATIVE_NAN)])
def test_the_one_row_that_is_made_of_several_looks_the_same_in_whichever_order_they_come(
    pair: tuple[float, float],
) -> None:
    lists = [pa.array([[value] for value in values]) for values in (pair, pair[::-1])]
    found = []
    for order in ([0, 1], [1, 0]):
        columns = {"id": [7, 7], "x": pa.array([pair[i] for i in order]), "l": lists[0].take(pa.array(order))}
        curator = opened(columns | {"i": MONTHS.take(pa.array(order))}, rows_per_unit=1)
        looks = ", ".join(f"COUNT(DISTINCT CAST({name} AS VARCHAR))" for name in "xli")
        found.append(rows_of(curator, f"SELECT {looks} FROM t"))
    assert len(found[0]) == 1
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "inner",
    ["SELECT id, l, COUNT(*) AS n FROM t GROUP BY id, l", "SELECT DISTINCT id, l FROM t", "SELECT DISTINCT * FROM t"],
)
@pytest.mark.parametrize("column", [pa.array([[0.0], [-0.0]]), MONTHS, pa.array([{"a": 0.0}, {"a": -0.0}])])
def test_what_has_no_one_look_is_not_taken_once(inner: str, column: pa.Array) -> None:
    curator = opened({"id": [7, 7], "x": [0.0, 1.0], "l": column})
    rows_of(curator, "SELECT COUNT(DISTINCT CAST(l AS VARCHAR)) FROM t")
    with pytest.raises(QueryRefused, match="may be equal and look different"):
        rows_of(curator, f"SELECT COUNT(*) FROM ({inner}) AS s")


def test_only_floats_are_given_one_look() -> None:
    assert one_look("x", "VARCHAR") == "x"
    assert "isnan(x)" in one_look("x", "FLOAT")
    for name in ("BIGINT", "DOUBLE", "VARCHAR", "DECIMAL(9,2)", "DATE", "UUID", "JSON", "BLOB", "ENUM('a', 'b')"):
        assert is_alike(type_named(name))
    for name in ("INTERVAL", "DOUBLE[]", "STRUCT(a DOUBLE)", "VARIANT", "MAP(VARCHAR, DOUBLE)", "DECIMAL(9,2)[]"):
        assert not is_alike(type_named(name))

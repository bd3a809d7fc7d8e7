"""Correlation, covariance and regression, from noisy sums."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from discreet import Budget, Curator
from discreet.errors import QueryRefused
from discreet.query.catalog import Catalog, Column, Table
from discreet.query.parse import parse

RNG = np.random.default_rng(4)
X = RNG.normal(50, 10, 20_000).clip(0, 100)
Y = (0.6 * X + RNG.normal(0, 8, len(X))).clip(-20, 100)
ROWS = pa.table({"u": np.arange(len(X)), "x": X, "y": Y, "g": np.arange(len(X)) % 3})
COLUMNS = {"x": {"bounds": (0, 100)}, "y": {"bounds": (-20, 100)}, "g": {"keys": [0, 1, 2]}}
SLOPE = np.polyfit(X, Y, 1)
TRUTHS = {
    "CORR(y, x)": np.corrcoef(X, Y)[0, 1],
    "COVAR_POP(y, x)": np.cov(X, Y, bias=True)[0, 1],
    "COVAR_SAMP(y, x)": np.cov(X, Y)[0, 1],
    "REGR_SLOPE(y, x)": SLOPE[0],
    "REGR_INTERCEPT(y, x)": SLOPE[1],
    "REGR_R2(y, x)": np.corrcoef(X, Y)[0, 1] ** 2,
    "REGR_AVGX(y, x)": X.mean(),
    "REGR_AVGY(y, x)": Y.mean(),
}


@pytest.fixture(scope="module")
def curator():
    with Curator.open(
        {"t": ROWS}, unit="u", rows_per_unit=1, columns=COLUMNS, budget=Budget(epsilon=500.0), ledger=":memory:"
    ) as curator:
        yield curator


@pytest.mark.parametrize("sql", TRUTHS)
def test_answers_are_near_the_truth_and_intervals_hold_it(curator: Curator, sql: str) -> None:
    [found] = curator.sql(f"SELECT {sql} AS v FROM t", epsilon=20.0).intervals(0.999999).to_pylist()
    assert found["v_low"] <= TRUTHS[sql] <= found["v_high"]
    assert found["v_high"] - found["v_low"] < max(1.0 if "INTERCEPT" in sql else 0.2, 0.2 * abs(TRUTHS[sql]))


def test_several_of_one_pair_are_paid_once(curator: Curator) -> None:
    left = curator.remaining
    one = curator.sql("SELECT g, CORR(y, x) AS r, COVAR_POP(y, x) AS c FROM t GROUP BY g", epsilon=1.0)
    assert [aggregate.function for aggregate in one._measured[0].plan.block.aggregates] == ["count", *["sum"] * 5]
    other = curator.sql("SELECT g, REGR_SLOPE(y, x) AS b, REGR_R2(y, x) AS r2 FROM t GROUP BY g", epsilon=1.0)
    assert other.repeated
    assert curator.remaining == pytest.approx(left - 1.0, abs=1e-6)
    assert len(other) == 3


def test_a_correlation_is_one(curator: Curator) -> None:
    """Noise may make more of it; where a variance drowns in noise, there is none."""
    for _ in range(5):
        [(r, squared)] = curator.sql("SELECT CORR(x, x), REGR_R2(x, x) FROM t", epsilon=0.5, reuse=False).fetchall()
        assert r is None or -1 <= r <= 1
        assert squared is None or 0 <= squared <= 1


def test_intervals_stay_within_what_a_correlation_may_be(curator: Curator) -> None:
    for epsilon in (0.001, 0.01, 0.1):
        answer = curator.sql("SELECT CORR(y, x) AS r, ROUND(REGR_R2(y, x), 3) AS s FROM t", epsilon=epsilon)
        [found] = answer.intervals(0.95).to_pylist()
        for name, least in (("r", -1), ("s", 0)):
            low, value, high = found[f"{name}_low"], found[name], found[f"{name}_high"]
            assert value is None or least <= low <= value <= high <= 1


def test_rows_without_one_of_both_are_left_out() -> None:
    x = pa.array([*X[:3000], None, 1e300, float("nan"), float("inf"), 5.0] * 2)
    y = pa.array([*Y[:3000], 5.0, float("nan"), 5.0, 5.0, None] * 2)
    rows = pa.table({"u": np.arange(len(x)), "x": x, "y": y})
    columns = {name: COLUMNS[name] for name in ("x", "y")}
    with Curator.open(
        {"t": rows}, unit="row", columns=columns, budget=Budget(epsilon=500.0), ledger=":memory:"
    ) as curator:
        [(n, r)] = curator.sql("SELECT REGR_COUNT(y, x), CORR(y, x) FROM t", epsilon=100.0).fetchall()
    assert abs(n - 6000) <= 3
    assert r == pytest.approx(np.corrcoef(X[:3000], Y[:3000])[0, 1], abs=0.02)


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("CORR(y, z)", "'corr(y, z)' needs bounds of z"),
        ("CORR(y + z, x)", "needs bounds of y + z"),
        ("CORR(s, x)", "a number is needed here, and 's' is a text"),
        ("CORR(DISTINCT y, x)", "the SQL cannot be read"),
        ("CORR(y)", "the SQL cannot be read"),
    ],
)
def test_what_cannot_be_bounded_is_refused(sql: str, words: str) -> None:
    columns = (
        Column("u", "BIGINT"),
        Column("x", "DOUBLE", bounds=(0.0, 100.0)),
        Column("y", "DOUBLE", bounds=(-20.0, 100.0)),
        Column("z", "DOUBLE"),
        Column("s", "VARCHAR"),
    )
    catalog = Catalog({"t": Table("t", columns, "t", "unit", "u")})
    with pytest.raises(QueryRefused, match=words.replace("(", r"\(").replace(")", r"\)").replace("+", r"\+")):
        parse(f"SELECT {sql} FROM t", catalog)

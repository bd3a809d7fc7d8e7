"""Small tables about people, and what it takes to measure a block on them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from discreet.engines import DuckDBEngine, DuckDBSession
from discreet.query import centring, measuring, sizing, sketch
from discreet.query import run as running
from discreet.query.plan import Aggregate, Block, Key
from discreet.query.private import Private
from discreet.query.ranks import bisection, choice

CITIES = ("Bern", "Oslo", "Rome", None)


def visits(units: int, rows: int, seed: int = 0) -> pa.Table:
    """Rows of a few busy units and many others; some values are NULL, NaN, infinite or huge."""
    rng = np.random.default_rng(seed)
    unit = np.minimum((units * rng.random(rows) ** 2).astype(int), units - 1)
    x = rng.normal(10, 20, rows)
    strange = np.array([np.nan, np.inf, -np.inf, 1e300, -1e300, 0.0])
    x = np.where(rng.random(rows) < 0.1, rng.choice(strange, rows), x)
    city = rng.integers(0, 4, rows)
    return pa.table(
        {
            "u": pa.array(unit, mask=rng.random(rows) < 0.02),
            "city": pa.array([CITIES[i] for i in city]),
            "x": pa.array(x, mask=rng.random(rows) < 0.05),
            "n": pa.array(rng.integers(-5, 50, rows)),
        }
    )


@contextmanager
def session_of(table: pa.Table, **options: Any) -> Iterator[DuckDBSession]:
    """A session in which `t` is the table."""
    with DuckDBEngine(**options) as engine:
        engine.register("t", table)
        with engine.session() as session:
            yield session


def block(*aggregates: Aggregate, keys: tuple[Key, ...] = (), **facts: Any) -> Block:
    """A block over all rows of `t` with a unit."""
    columns = ["u"] if not facts.get("row_level") else []
    columns += [f"city AS {key.column}" for key in keys]
    columns += list(dict.fromkeys(f"{a.argument[:-1]} AS {a.argument}" for a in aggregates if a.argument))
    where = "" if facts.get("row_level") else " WHERE u IS NOT NULL"
    return Block(f"SELECT {', '.join(columns) or '1 AS one'} FROM t{where}", keys, aggregates, **facts)


PUBLIC = Key("k0", "VARCHAR", "city", CITIES)
PRIVATE = Key("k0", "VARCHAR", "city")


def without_noise(monkeypatch: pytest.MonkeyPatch, bound: int | None = None, middle: int = 0) -> None:
    """All noise is 0, no shape of sizes is seen, and every private choice of a bound gives 2^(bound/4), or what no unit
    exceeds; what has no bounds is measured from the candidate of number `middle`.
    """
    monkeypatch.setattr(centring, "choose_middle", lambda *_, **__: middle)

    def none(_: Any, size: Any, *, generator: Any = None) -> Any:
        return np.zeros(size, dtype=np.int64)

    for name in ("rounded_gaussian", "rounded_laplace"):
        monkeypatch.setattr(running, name, none)
    monkeypatch.setattr(running, "staircase", lambda epsilon, sensitivity, split, size, **_: none(epsilon, size))
    monkeypatch.setattr(bisection, "rounded_gaussian", none)
    monkeypatch.setattr(choice, "rounded_laplace", none)
    monkeypatch.setattr(sketch, "discrete_laplace", none)
    monkeypatch.setattr(sizing, "shape_of", lambda _: None)
    for room, name in ((running, "choose_bound"), (running, "choose_share"), (sizing, "choose_bound")):
        monkeypatch.setattr(room, name, lambda buckets, *_, **__: int(max(buckets)) if bound is None else bound)
    monkeypatch.setattr(running, "choose_kept", lambda *_, **__: 120 if bound is None else bound)


def steps(session: DuckDBSession, plan: Private) -> tuple[list[np.ndarray], list[float]]:
    """The exact sums of a block in steps, and the largest norm by which one unit may change each."""
    seen: list[np.ndarray] = []
    limits: list[float] = []
    original = running.Run.with_noise

    def spied(self: Any, sums: Any, grid: Any, measure: int, *, quantum: float) -> Any:
        seen.append(np.asarray(sums, dtype=np.float64))
        limits.append(grid.sensitivity)
        return original(self, sums, grid, measure, quantum=quantum)

    running.Run.with_noise = spied  # type: ignore[method-assign]
    try:
        measuring.measure(session, plan)
    finally:
        running.Run.with_noise = original  # type: ignore[method-assign]
    return seen, limits

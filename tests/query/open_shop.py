"""A small shop for questions to a curator: who was where and spent how much, with everything that data can be wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from discreet import Budget, Curator

BUDGET = Budget(epsilon=20.0, delta=1e-6)
CITIES = ("Bern", "Oslo", "Rome", "Wien")


def visits(units: int = 300, rows: int = 3000, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "user_id": rng.integers(0, units, rows),
            "city": np.array(CITIES)[rng.integers(0, len(CITIES), rows)],
            "spend": np.round(rng.gamma(2.0, 10.0, rows), 2),
            "items": rng.integers(1, 9, rows),
            "day": pa.array(rng.integers(19_000, 19_100, rows).astype(np.int32)).cast(pa.date32()),
        }
    )


def nasty() -> pa.Table:
    """Values that make careless SQL fail: texts that are no numbers, zeros to divide by, the ends of every type."""
    most = 2**63 - 1
    return pa.table(
        {
            "user_id": pa.array([17, 17, 18, 19, 19, None, 20, 21]),
            "city": ["Ulm", "12", "", "nan", "\u0130\U0001f469\u200d\U0001f467", "x", "0", "a" * 1_000_000],
            "spend": [1e308, float("nan"), float("-inf"), 0.0, -0.0, 5.0, 1e-320, None],
            "big": pa.array([most, -most - 1, most, 0, 1, -1, None, most]),
            "day": pa.array([0, 2_932_896, -719_162, 1, 2, 3, None, 4], pa.int32()).cast(pa.date32()),
            "pattern": ["(a+)+$", "[", "\\", "%", "_", None, "(?=", "a" * 1000],
        }
    )


def opened(source: Any = None, **options: Any) -> Curator:
    """A curator of the shop, with a ledger in memory and without a share for bounds unless told otherwise."""
    facts: dict[str, Any] = {"unit": "user_id", "budget": BUDGET, "ledger": ":memory:", "bounds_share": 0}
    if not isinstance(source, str | Path):
        facts["name"] = "visits"
    return Curator.open(visits() if source is None else source, **{**facts, **options})


def charges(curator: Curator) -> int:
    """How many charges the ledger has, of whatever came of them."""
    return sum(1 for _ in curator.ledger.entries(kind="reserve"))

"""Reading the stored tables; needs nothing but the standard library."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

FOLDER = Path(__file__).parent
NAMES = ("sampled_gaussian", "gaussian", "laplace", "finite", "mixtures")
"""The tables of compositions; calibration.json has a shape of its own."""


@dataclass(frozen=True)
class StoredRow:
    """A composition with the true value of epsilon at a delta, or of delta at an epsilon."""

    table: str
    name: str
    mechanisms: tuple[Mapping[str, object], ...]
    delta: float | None
    epsilon: float | None
    remove: Decimal
    add: Decimal | None
    """None where only its being smaller is known."""
    larger: Decimal

    @property
    def asks(self) -> str:
        """What the truth is of: "epsilon" or "delta"."""
        return "epsilon" if self.delta is not None else "delta"


def rows(*names: str) -> list[StoredRow]:
    """The rows of these tables, or of all."""
    return [_row(name, row) for name in names or NAMES for row in json.loads((FOLDER / f"{name}.json").read_text())]


def calibrations() -> list[dict[str, object]]:
    """Optimal noise multipliers of sampled Gaussians: rate, count, epsilon, delta, noise_multiplier (a string)."""
    loaded: list[dict[str, object]] = json.loads((FOLDER / "calibration.json").read_text())
    return loaded


def _row(table: str, row: dict[str, object]) -> StoredRow:
    given, mechanisms = row["given"], row["mechanisms"]
    assert isinstance(given, dict)
    assert isinstance(mechanisms, list)
    found = row["epsilon" if "delta" in given else "delta"]
    assert isinstance(found, dict)
    remove, add, larger = (found[side] for side in ("remove", "add", "larger"))
    return StoredRow(
        table,
        str(row["name"]),
        tuple(mechanisms),
        given.get("delta"),
        given.get("epsilon"),
        Decimal(remove),
        Decimal(add) if add is not None else None,
        Decimal(larger),
    )

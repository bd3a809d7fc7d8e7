"""Which compositions the stored tables hold: name, mechanisms, and the epsilon or delta that is given."""

from __future__ import annotations

from dataclasses import dataclass

from reference.truth import Mechanism


@dataclass(frozen=True)
class Row:
    """One row to compute: exactly one of epsilon and delta is given, the other is found."""

    name: str
    mechanisms: list[Mechanism]
    epsilon: float | None = None
    delta: float | None = None


def sampled(sigma: float, rate: float, count: int = 1) -> Mechanism:
    """A Poisson-sampled Gaussian as a table describes it."""
    return {"kind": "sampled_gaussian", "noise_multiplier": sigma, "rate": rate, "count": count}


ORDINARY = [
    Row("ordinary 1", [sampled(1.1, 256 / 60_000, 14_000)], delta=1e-5),
    Row("ordinary 2", [sampled(1.0, 0.01, 1_000)], delta=1e-5),
    Row("ordinary 3", [sampled(0.6, 1e-4, 100_000)], delta=1e-6),
    Row("ordinary 4", [sampled(10.0, 0.5, 100)], delta=1e-5),
    Row("ordinary 5", [sampled(0.8, 1e-3, 10_000)], delta=1e-6),
    Row("ordinary 6", [sampled(2.0, 2e-3, 1_000_000)], delta=1e-8),
]

TABLES: dict[str, list[Row]] = {"sampled_gaussian": ORDINARY}

"""The package against the stored truth: every certified bracket holds it, and is narrow."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

import pytest

from discreet import Cost, calibrate
from reference import tables

WIDTH = {"sampled_gaussian": 1e-8, "gaussian": 1e-12, "finite": 1e-8, "laplace": 1e-9, "mixtures": 1e-8}
"""Relative width of a bracket that is still called narrow, by table."""

SLOW = ("200 different mechanisms",)


def cost(mechanisms: tuple[Mapping[str, object], ...]) -> Cost:
    """The composition of a row in the words of the package."""
    return sum((_times(m) * _one(m) for m in mechanisms), Cost.zero())


def _times(mechanism: Mapping[str, object]) -> int:
    return int(str(mechanism.get("count", 1)))


def _one(mechanism: Mapping[str, object]) -> Cost:
    kind = str(mechanism["kind"])
    made = {k: float(str(v)) for k, v in mechanism.items() if k in ("noise_multiplier", "epsilon", "delta", "gamma")}
    made |= {k: int(str(v)) for k, v in mechanism.items() if k in ("options", "sensitivity")}
    base: Cost = getattr(Cost, kind.removeprefix("sampled_"))(**made)
    return base.sampled(rate=float(str(mechanism["rate"]))) if kind.startswith("sampled_") else base


@pytest.mark.filterwarnings("ignore::discreet.errors.WideBracket")
@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, id=f"{row.table}: {row.name}", marks=[pytest.mark.slow] if row.name in SLOW else [])
        for row in tables.rows()
    ],
)
def test_the_bracket_holds_the_truth_and_is_narrow(row: tables.StoredRow) -> None:
    lower, upper = cost(row.mechanisms).bounds(delta=row.delta, epsilon=row.epsilon)
    assert Decimal(lower) <= row.larger <= Decimal(upper)
    assert Decimal(upper) - Decimal(lower) <= Decimal(WIDTH[row.table]) * row.larger


@pytest.mark.parametrize(
    "target",
    [
        pytest.param(t, id=f"q {t['rate']:.3g}, T {t['count']}", marks=[pytest.mark.slow] if k else [])
        for k, t in enumerate(tables.calibrations())
    ],
)
def test_calibration_finds_the_least_noise(target: dict[str, object]) -> None:
    count, rate = int(str(target["count"])), float(str(target["rate"]))
    found = calibrate(
        lambda sigma: count * Cost.gaussian(sigma).sampled(rate=rate),
        epsilon=float(str(target["epsilon"])),
        delta=float(str(target["delta"])),
    )
    best = Decimal(str(target["noise_multiplier"]))
    assert best <= Decimal(found) <= best * (1 + Decimal("1e-6"))

"""Every accountant against the stored truth: its bracket holds the true value, exactly compared."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

import pytest

from discreet.accounting import Cost
from discreet.errors import CertificateError
from reference import tables
from reference.rows import ORDINARY

pytestmark = pytest.mark.filterwarnings("ignore::discreet.errors.WideBracket")

SLOW = {
    "200 different mechanisms",
    "sigma 0.5, q 0.5, T 20, delta 1e-50",
    "sigma 0.25, q 0.7, T 10, delta 1e-06",
    "sampled Laplace 1, q 0.1 x 60, epsilon 1",
}
"""Rows that take more than a second."""

UNREACHABLE = {
    "Laplace and randomized response",
    "Laplace and discrete Laplace",
    "sigma 0.5, q 0.5, T 20, delta 1e-50",
    "sigma 0.25, q 0.7, T 10, delta 1e-06",
    "sigma 0.1, q 0.9, T 4, delta 1e-05",
}
"""Rows besides Laplace that the contour has no certificate for: atoms beside a density, or hardly any noise."""

NARROW = 1e-8
"""Relative width of the bracket on the ordinary settings of private training."""

_POSITIONAL = ("noise_multiplier", "epsilon", "delta", "gamma")


def cost_of(mechanisms: tuple[Mapping[str, object], ...]) -> Cost:
    """The composition that a stored row describes."""
    return sum((_part(mechanism) for mechanism in mechanisms), Cost.zero())


def _part(mechanism: Mapping[str, object]) -> Cost:
    fields = dict(mechanism)
    kind, times, rate = str(fields.pop("kind")), fields.pop("count", 1), fields.pop("rate", None)
    made = {k: float(v) if k in _POSITIONAL else int(v) for k, v in fields.items()}  # type: ignore[call-overload]
    one: Cost = getattr(Cost, kind.removeprefix("sampled_"))(**made)
    return times * (one if rate is None else one.sampled(rate=float(str(rate))))


def asked(row: tables.StoredRow) -> dict[str, float | None]:
    return {"delta": row.delta, "epsilon": row.epsilon}


def holds(bounds: tuple[float, float], row: tables.StoredRow) -> bool:
    """lower <= truth <= upper as rational numbers; an infinite end holds everything."""
    lower, upper = bounds
    return Fraction(lower) <= Fraction(row.larger) and (upper == math.inf or Fraction(row.larger) <= Fraction(upper))


def parametrised(chosen: list[tables.StoredRow]) -> list[object]:
    return [
        pytest.param(row, id=f"{row.table}: {row.name}", marks=[pytest.mark.slow] if row.name in SLOW else [])
        for row in chosen
    ]


ROWS = tables.rows()


@pytest.mark.parametrize("row", parametrised(ROWS))
def test_auto_holds_the_truth_and_is_finite(row: tables.StoredRow) -> None:
    bounds = cost_of(row.mechanisms).bounds(**asked(row))
    assert all(map(math.isfinite, bounds))
    assert holds(bounds, row), (bounds, row.larger)
    assert bounds[1] <= float(row.larger) * 1.05, "a bracket that holds everything says nothing"


QUICK = [row for row in ROWS if row.name not in SLOW]
FORCED = [("contour", row) for row in QUICK[::3]] + [("grid", row) for row in QUICK[1::14]]
"""Every third row by contour and every fourteenth by grid in the fast run; all of them in the slow one."""
LATER = [("contour", row) for row in ROWS] + [("grid", row) for row in ROWS]


@pytest.mark.parametrize(
    ("method", "row"),
    [pytest.param(m, row, id=f"{m}, {row.table}: {row.name}") for m, row in FORCED]
    + [
        pytest.param(m, row, id=f"{m}, {row.table}: {row.name}", marks=pytest.mark.slow)
        for m, row in LATER
        if (m, row) not in FORCED
    ],
)
def test_each_accountant_holds_the_truth_or_says_that_it_cannot(method: str, row: tables.StoredRow) -> None:
    cost = cost_of(row.mechanisms)
    try:
        bounds = cost.bounds(**asked(row), method=method)
    except CertificateError:
        bounds = None
    if bounds is None:
        assert method == "contour", "the grid has a certificate for every row"
        # few uses of a mechanism have slowly falling transforms and atoms none that fall: other paths read them
        assert row.table == "laplace" or row.name in UNREACHABLE or sum(m["count"] for m in row.mechanisms) <= 20
    else:
        assert holds(bounds, row), (bounds, row.larger)


def test_each_accountant_certifies_what_it_is_made_for() -> None:
    by_name = {row.name: row for row in ROWS}
    contour, grid = by_name["ordinary 2"], by_name["Laplace 10 x 10, delta 1e-05"]
    assert cost_of(contour.mechanisms).reading(**asked(contour), method="contour").width <= NARROW
    assert cost_of(grid.mechanisms).reading(**asked(grid), method="grid").width <= 1e-5


@pytest.mark.parametrize("name", [row.name for row in ORDINARY])
def test_ordinary_training_is_read_to_eight_digits(name: str) -> None:
    row = next(row for row in ROWS if row.table == "sampled_gaussian" and row.name == name)
    lower, upper = cost_of(row.mechanisms).bounds(**asked(row))
    assert Fraction(upper) - Fraction(lower) <= Fraction(NARROW) * Fraction(row.larger)

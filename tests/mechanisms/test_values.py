"""What may be released is read at its exact value, whatever stands beside it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.mechanisms import Laplace
from discreet.mechanisms.values import reals

LARGE = [2**53 - 1, 2**53 + 1, 2**60 + 127, 2**60 + 129, 2**63 + 1, -(2**60) - 129]


@pytest.mark.parametrize("number", LARGE)
@pytest.mark.parametrize("beside", [0.5, -1, Fraction(1, 3), np.float64(2.0)])
def test_an_integer_beside_a_float_is_not_rounded(number: int, beside: Any) -> None:
    for values in ([number, beside], (beside, number), [[number], [beside]]):
        read = reals(values)
        assert isinstance(read, np.ndarray)
        assert {Fraction(entry) for entry in read.flat} == {Fraction(number), Fraction(beside)}


def test_a_change_by_the_sensitivity_is_no_larger_on_the_lattice() -> None:
    mechanism = Laplace(epsilon=1.0, sensitivity=1)
    most = mechanism.lattice.l1_steps(Fraction(1), 2)
    for number in LARGE:
        here, there = (mechanism.lattice.place(reals([number + step, 0.5])) for step in (0, 1))
        assert np.abs(np.asarray(there) - np.asarray(here)).sum() <= most


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), None, "a", True])
def test_what_is_no_number_is_refused_beside_large_integers_too(bad: Any) -> None:
    with pytest.raises(InvalidArgument, match="value"):
        reals([2**60 + 1, 0.5, bad])

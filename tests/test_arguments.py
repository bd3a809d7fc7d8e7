"""Argument checks: what they accept, in which type they return it, and that a refusal names argument and value."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.arguments import count, nonnegative, one_of, positive, probability, rational, real, truth, unit_fraction
from discreet.errors import InvalidArgument

Check = Callable[[str, object], float]
CHECKS: list[Check] = [real, positive, nonnegative, probability, unit_fraction]
NOT_NUMBERS = [None, True, False, "1", "", b"1", 1j, [1.0], (0.5,), {}, float, np.array([0.5]), Decimal("0.5")]
NOT_FINITE = [math.nan, math.inf, -math.inf, np.float64("nan"), np.float32("inf"), 10**400, -(10**400)]


@pytest.mark.parametrize("check", [*CHECKS, count])
@pytest.mark.parametrize("value", NOT_NUMBERS, ids=repr)
def test_what_is_not_a_number_is_refused_by_name_and_type(check: Check, value: object) -> None:
    with pytest.raises(InvalidArgument) as caught:
        check("sigma", value)
    assert caught.value.argument == "sigma"
    assert caught.value.value is value
    assert type(value).__name__ in str(caught.value)


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("value", NOT_FINITE, ids=lambda value: repr(value)[:12])
def test_what_is_not_a_finite_float_is_refused(check: Check, value: object) -> None:
    with pytest.raises(InvalidArgument, match=r"^sigma = "):
        check("sigma", value)


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("value", [0.5, Fraction(1, 2), np.float64(0.5), np.float32(0.5)], ids=repr)
def test_numbers_of_any_kind_come_back_as_python_floats(check: Check, value: object) -> None:
    result = check("rate", value)
    assert type(result) is float
    assert result == 0.5


@pytest.mark.parametrize(
    ("check", "accepted", "refused"),
    [
        (real, [-1e308, -1, 0, 1e308], []),
        (positive, [5e-324, 1, 1e308], [0, -0.0, -5e-324, -1]),
        (nonnegative, [0, 5e-324, 1e308], [-5e-324, -1]),
        (probability, [0, 5e-324, 0.5, 1], [-5e-324, math.nextafter(1, 2), 2]),
        (unit_fraction, [5e-324, 0.5, math.nextafter(1, 0)], [0, 1, -5e-324, math.nextafter(1, 2)]),
    ],
)
def test_domains_end_where_they_should(check: Check, accepted: list[float], refused: list[float]) -> None:
    for value in accepted:
        assert check("x", value) == value
    for value in refused:
        with pytest.raises(InvalidArgument) as caught:
            check("x", value)
        assert str(caught.value).startswith(f"x = {value!r} is not allowed: pass a number ")


@pytest.mark.parametrize("check", [nonnegative, probability])
def test_negative_zero_loses_its_sign(check: Check) -> None:
    assert math.copysign(1.0, check("epsilon", -0.0)) == 1.0


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_checks_agree_with_their_inequalities(value: float) -> None:
    for check, holds in [
        (real, True),
        (positive, value > 0),
        (nonnegative, value >= 0),
        (probability, 0 <= value <= 1),
        (unit_fraction, 0 < value < 1),
    ]:
        if holds:
            assert check("x", value) == value
        else:
            with pytest.raises(InvalidArgument):
                check("x", value)


@pytest.mark.parametrize("value", [3, 3.0, np.int64(3), np.uint8(3), np.float32(3), Fraction(3)], ids=repr)
def test_whole_numbers_of_any_kind_come_back_as_python_ints(value: object) -> None:
    result = count("times", value)
    assert type(result) is int
    assert result == 3


def test_counts_have_no_upper_end() -> None:
    assert count("times", 10**400) == 10**400


@pytest.mark.parametrize("value", [-1, 2.5, Fraction(1, 2), math.nan, math.inf, -math.inf, np.float64("nan")], ids=repr)
def test_counts_are_whole_and_not_negative(value: object) -> None:
    with pytest.raises(InvalidArgument, match=r"^times = .* pass a whole number >= 0$"):
        count("times", value)


def test_counts_respect_their_least_value() -> None:
    assert count("options", 2, least=2) == 2
    with pytest.raises(InvalidArgument, match=r"^options = 1 .* >= 2$"):
        count("options", 1, least=2)


def test_an_option_comes_back_as_it_is() -> None:
    assert one_of("adjacency", "add-remove", ["add-remove", "replace-one"]) == "add-remove"
    assert one_of("adjacency", "b", iter("ab")) == "b"


def test_an_unknown_option_is_told_the_choices_and_the_closest() -> None:
    with pytest.raises(InvalidArgument) as caught:
        one_of("adjacency", "add_remove", ["add-remove", "replace-one"])
    message = str(caught.value)
    assert message.startswith("adjacency = 'add_remove'")
    assert "'add-remove', 'replace-one'" in message
    assert message.endswith("did you mean 'add-remove'?")


@pytest.mark.parametrize("value", ["zzzzz", None, 3, True, ["add-remove"]], ids=repr)
def test_an_option_unlike_any_other_gets_the_choices_only(value: object) -> None:
    with pytest.raises(InvalidArgument) as caught:
        one_of("scheme", value, ["poisson", "balls"])
    assert str(caught.value).endswith("choose one of 'poisson', 'balls'")


@pytest.mark.parametrize("value", [*NOT_NUMBERS, math.nan, math.inf, -math.inf, np.float64("nan")], ids=repr)
def test_what_has_no_exact_value_is_not_rational(value: object) -> None:
    with pytest.raises(InvalidArgument, match=r"^scale = "):
        rational("scale", value)


@pytest.mark.parametrize(
    "value", [3, np.int64(3), Fraction(1, 3), 0.1, np.float32(0.1), 1e-320, 10**400, -2.5], ids=repr
)
def test_a_rational_keeps_the_exact_value(value: float | Fraction) -> None:
    exact = rational("scale", value)
    assert type(exact) is Fraction
    assert exact == value
    assert type(exact.numerator) is type(exact.denominator) is int


def test_a_tenth_as_a_float_is_not_a_tenth() -> None:
    assert rational("scale", 0.1) != Fraction(1, 10)


def test_truth_is_true_or_false_and_nothing_like_it() -> None:
    assert truth("reuse", True) is True
    assert truth("reuse", False) is False
    for value in ("no", "", 0, 1, None, [], np.bool_(True)):
        with pytest.raises(InvalidArgument, match=r"reuse = .* pass True or False"):
            truth("reuse", value)

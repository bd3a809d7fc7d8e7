"""Bad input: released, refused too late, or refused by another error; each is found."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from audit.planted import Count
from discreet.audit.refusals import CountingGenerator, refuses_bad_values
from discreet.audit.subject import Subject
from discreet.noise import Generator, discrete_laplace


def finding(mechanism: Any, values: Any = None, example: Any = 0) -> Any:
    return refuses_bad_values(Subject.of(mechanism, None, None, None), example, values)


class Credulous(Count):
    def release(self, value: Any, *, generator: Generator | None = None) -> Any:
        return value + discrete_laplace(1.0, generator=generator)


class Late(Count):
    def release(self, value: Any, *, generator: Generator | None = None) -> Any:
        noise = discrete_laplace(1.0, generator=generator)
        return super().release(value) + noise


def test_the_right_mechanism_refuses_before_randomness_is_used() -> None:
    found = finding(Count())
    assert found.verdict == "passed"
    assert "before any randomness" in found.message


def test_a_released_nan_is_found() -> None:
    found = finding(Credulous())
    assert found.verdict == "failed"
    assert "nan is released" in found.message


def test_a_refusal_after_the_noise_was_drawn_is_found() -> None:
    found = finding(Late())
    assert found.verdict == "failed"
    assert "after randomness was used" in found.message


def test_values_of_ones_own_can_be_passed() -> None:
    assert finding(Count(), values=["text", None]).verdict == "passed"
    assert finding(Credulous(), values=[math.inf]).verdict == "failed"


def test_without_an_idea_of_what_is_bad_the_check_is_skipped() -> None:
    assert finding(Count(), example="yes").verdict == "skipped"


def test_the_counting_generator_counts_and_draws_fresh_words() -> None:
    generator = CountingGenerator()
    words = [generator.words(3), generator.words(3)]
    generator.word()
    assert generator.taken == 7
    assert not np.array_equal(*words)


@pytest.mark.parametrize("example", [0, 0.5, np.zeros(3), [1, 2], (0.5,)])
def test_numbers_and_arrays_of_them_have_a_table_of_bad_values(example: Any) -> None:
    assert finding(Count(), example=example).verdict == "passed"

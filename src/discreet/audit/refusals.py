"""Values that must be refused, and refused before any randomness is used."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.audit.report import Finding
from discreet.errors import DiscreetError
from discreet.noise.generator import Generator, secure_generator

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from discreet.audit.subject import Subject

__all__ = ["CountingGenerator", "refuses_bad_values"]


class CountingGenerator(Generator):
    """The secure generator, counting the words that are taken: zero proves that nothing was drawn."""

    def __init__(self) -> None:
        self.taken = 0

    def words(self, n: int) -> NDArray[np.uint64]:
        """n fresh words."""
        self.taken += n
        return secure_generator().words(n)


def not_numbers() -> list[Any]:
    """What a mechanism for numbers must refuse."""
    return [
        float("nan"),
        float("inf"),
        -float("inf"),
        None,
        "seven",
        1j,
        object(),
        {},
        [],
        np.array([]),
        np.array([1.0, np.nan]),
        np.array([1.0, -np.inf]),
        np.array(["a", "b"]),
        np.array([1j]),
        np.array([None]),
        np.array(["2026-01-01"], dtype="datetime64[D]"),
        [1, "two"],
        [[1, 2], [3]],
    ]


def refuses_bad_values(subject: Subject, example: object, values: Iterable[Any] | None) -> Finding:
    """Every bad value raises an error, before a single word of randomness is taken."""
    check = "bad input"
    own = getattr(subject.mechanism, "bad_values", None)
    if values is None and subject.mechanism is None:
        return Finding(check, "skipped", "a function was passed, without bad_values=[...] that it must refuse")
    if values is None:
        values = own() if callable(own) else not_numbers() if _is_numeric(example) else None
    if values is None:
        return Finding(check, "skipped", "the input is not a number; pass bad_values=[...] that must be refused")
    expected = (DiscreetError,) if type(subject.mechanism).__module__.startswith("discreet.") else (Exception,)
    number = 0
    for value in values:
        generator = CountingGenerator()
        options = {"generator": generator} if subject.takes_generator else {}
        number += 1
        try:
            subject.one(value, **options)
        except expected as error:
            if generator.taken:
                return Finding(check, "failed", f"{_kind(value)} is refused after randomness was used ({error})")
        except Exception as error:  # noqa: BLE001 - the finding is that it is not ours
            return Finding(check, "failed", f"{_kind(value)} gives {type(error).__name__}, which is no DiscreetError")
        else:
            return Finding(check, "failed", f"{_kind(value)} is released instead of refused")
    before = ", before any randomness is used" if subject.takes_generator else ""
    return Finding(check, "passed", f"{number} bad values refused{before}")


def _is_numeric(example: object) -> bool:
    if isinstance(example, numbers.Real):
        return True
    if isinstance(example, np.ndarray):
        return example.dtype.kind in "iuf"
    return isinstance(example, (list, tuple)) and bool(example) and all(isinstance(x, numbers.Real) for x in example)


def _kind(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} of shape {value.shape}"
    return (
        repr(value) if isinstance(value, (float, str, complex, list, dict, type(None))) else f"a {type(value).__name__}"
    )

"""Reading X and y: NumPy arrays, pandas and Polars frames, Arrow tables, lists. Refusals never show a value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import validate_data

from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from sklearn.base import BaseEstimator

    Reals = NDArray[np.float64]

__all__ = ["numeric", "read_table", "read_training"]


def _plain(X: Any) -> Any:
    """An Arrow table or record batch as an array, anything else as it is."""
    if type(X).__module__.split(".")[0] == "pyarrow" and hasattr(X, "column_names"):
        try:
            return np.column_stack([np.asarray(X.column(name).to_numpy(), dtype=np.float64) for name in X.column_names])
        except (TypeError, ValueError):
            raise InvalidArgument("X", "an Arrow table", "all its columns must be numbers without nulls") from None
    return X


def read_training(estimator: BaseEstimator, X: Any, y: Any, **options: Any) -> tuple[Reals, NDArray[Any]]:
    """X as float64 rows and y as given, of the same length, without NaN or infinities."""
    try:
        table, targets = validate_data(estimator, _plain(X), y, dtype=np.float64, order="C", **options)
    except InvalidArgument:
        raise
    except ValueError as problem:
        raise InvalidArgument("X, y", "what was passed", _said(problem)) from None
    return table, targets


def numeric(targets: NDArray[Any]) -> Reals:
    """Targets as floats; refuses text and dates without showing any."""
    if targets.dtype.kind not in "biuf":
        raise InvalidArgument("y", f"targets of dtype {targets.dtype}", "pass numbers")
    return targets.astype(np.float64)


def _said(problem: ValueError) -> str:
    """What went wrong, without the value that could not be read."""
    text = str(problem)
    return "could not convert to numbers: all columns must be numeric" if "could not convert" in text else text


def read_table(estimator: BaseEstimator, X: Any, *, reset: bool = False) -> Reals:
    """X as float64 rows; with reset=False, of the columns that the estimator was fitted to."""
    try:
        table: Reals = validate_data(estimator, _plain(X), reset=reset, dtype=np.float64, order="C")
    except InvalidArgument:
        raise
    except ValueError as problem:
        raise InvalidArgument("X", "what was passed", _said(problem)) from None
    return table

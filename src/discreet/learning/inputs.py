"""Reading X and y: NumPy arrays, pandas and Polars frames, Arrow tables, lists. Refusals never show a value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import validate_data

from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from sklearn.base import BaseEstimator

    Reals = NDArray[np.float64]

__all__ = ["chosen_rows", "indexable", "numeric", "read_table", "read_training"]


_SPARSE = "Sparse data is not supported; pass X.toarray(), or let the step before give dense tables"


_NUMERIC = "could not convert to numbers: all columns must be numeric; encode text and dates by public rules"


def _library(X: Any) -> str:
    return type(X).__module__.split(".")[0]


def _plain(X: Any) -> Any:
    """What was passed, which scikit-learn can read; columns of an Arrow table, which keep their names, are numbers."""
    kinds = X.dtypes if hasattr(X, "iloc") and getattr(X, "ndim", 0) == 2 else ()
    if issparse(X) or any(type(kind).__name__ == "SparseDtype" for kind in kinds):
        raise InvalidArgument("X", "a sparse table", _SPARSE)
    if isinstance(X, Mapping):
        raise InvalidArgument(
            "X", f"a {type(X).__name__}", "pass a table, such as pandas.DataFrame(X) or pyarrow.table(X)"
        )
    if _library(X) == "polars" and hasattr(X, "collect"):
        raise InvalidArgument("X", "a LazyFrame", "pass X.collect()")
    if _library(X) == "polars" and hasattr(X, "columns"):
        X = X.to_arrow()  # not every release of scikit-learn knows the columns of a Polars frame by their names
    if _library(X) == "pyarrow" and hasattr(X, "column_names"):
        from pyarrow import Table, types

        numbers = types.is_integer, types.is_floating, types.is_boolean, types.is_decimal
        others = [one.name for one in X.schema if not any(test(one.type) for test in numbers)]
        if others:
            raise InvalidArgument("X", "a table with other columns", _NUMERIC + _listed(others))
        # not every release of scikit-learn knows the columns of a record batch by their names
        return X if isinstance(X, Table) else Table.from_batches([X])
    return X


def indexable(X: Any) -> Any:
    """A table of which rows can be chosen by `chosen_rows`: a frame or an Arrow table as it is, else an array."""
    if isinstance(X, Mapping) or issparse(X) or (_library(X) == "polars" and hasattr(X, "collect")):
        _plain(X)  # says what is wrong with it
    if hasattr(X, "iloc") or _library(X) in ("polars", "pyarrow"):
        return X
    return np.asarray(X)


def chosen_rows(table: Any, chosen: NDArray[np.bool_]) -> Any:
    """These rows of what `indexable` gave, in the same kind of table."""
    places = np.flatnonzero(chosen)
    if hasattr(table, "iloc"):
        return table.iloc[places]
    return table.take(places) if _library(table) == "pyarrow" else table[places]


def read_training(estimator: BaseEstimator, X: Any, y: Any, **options: Any) -> tuple[Reals, NDArray[Any]]:
    """X as float64 rows and y as given, of the same length, without NaN or infinities."""
    options["ensure_min_samples"] = _fewest(estimator)
    try:
        table, targets = validate_data(estimator, _plain(X), y, dtype=np.float64, order="C", **options)
    except InvalidArgument:
        raise
    except (TypeError, ValueError) as problem:
        raise _refusal("X, y", problem, X) from None
    return table, targets


def _fewest(estimator: BaseEstimator) -> int:
    """None at all, where the number of records is nobody's to see."""
    return 0 if getattr(estimator, "_unseen", False) else 1


def numeric(targets: NDArray[Any]) -> Reals:
    """Targets as floats; refuses text and dates without showing any."""
    if targets.dtype.kind not in "biuf":
        raise InvalidArgument("y", f"targets of dtype {targets.dtype}", "pass numbers")
    return targets.astype(np.float64)


_SAFE = ("feature names", "features, but", "minimum of", "Found array with dim", "requires y")
"""What scikit-learn says in these refusals is about columns, not about records, and is passed on."""

_WORDS = {
    "could not convert": _NUMERIC,
    "promote": _NUMERIC,
    "contains NaN": "Input contains NaN. Leave such records out, or put public numbers in their place: an imputer that "
    "learns from the data would be a release of its own",
    "contains infinity": "Input contains infinity or a value too large for dtype('float64'). Put a bound in its "
    "place, or leave the record out",
    "Reshape your data": "Expected 2D array, one row for each record. Reshape your data with X.reshape(-1, 1) if it is "
    "one column, X.reshape(1, -1) if it is one record",
    "Complex data": "Complex data not supported; pass real and imaginary parts as two columns",
    "Sparse": _SPARSE,
    "inconsistent numbers": "X and y must have the same number of rows",
    "1d array": "y should be a 1d array, one target for each record",
}


def _listed(names: list[Any]) -> str:
    """Which columns are meant: their names are public, and five are enough to see it."""
    return f". Look at {', '.join(map(repr, map(str, names[:5])))}{', ...' if names[5:] else ''}" if names else ""


def _refusal(what: str, problem: Exception, X: Any) -> Exception:
    """What went wrong, in words of our own where scikit-learn's may show values, counts, or an advice that costs."""
    text = str(problem)
    if isinstance(problem, TypeError) and "argument must be a string" in text:
        return problem  # the protocol asks for this one, which names a type and no value
    if any(phrase in text for phrase in _SAFE):
        return InvalidArgument(what, "what was passed", text.strip())
    ours = (words for phrase, words in _WORDS.items() if phrase in text)
    otherwise = "pass a table of numbers, one row for each record, and one target for each row"
    words = next(ours, otherwise)
    if words == _NUMERIC and hasattr(X, "iloc") and getattr(X, "ndim", 0) == 2:
        words += _listed([name for name, kind in zip(X.columns, X.dtypes, strict=True) if kind.kind not in "biuf"])
    return InvalidArgument(what, "what was passed", words)


def read_table(estimator: BaseEstimator, X: Any, *, reset: bool = False) -> Reals:
    """X as float64 rows; with reset=False, of the columns that the estimator was fitted to."""
    try:
        table: Reals = validate_data(
            estimator, _plain(X), reset=reset, dtype=np.float64, order="C", ensure_min_samples=_fewest(estimator)
        )
    except InvalidArgument:
        raise
    except (TypeError, ValueError) as problem:
        raise _refusal("X", problem, X) from None
    return table

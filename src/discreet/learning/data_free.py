"""Steps of a pipeline that are not ours: which of them take nothing from the records, and why others are refused.

A step that learns from the records and is not paid for makes everything after it unprotected. Only steps whose fit is
known to look at nothing but the number and the names of the columns are let through, in the settings in which that is
true.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    SplineTransformer,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["acts_row_by_row", "is_nothing", "public_rows", "why_refused"]

_UNPAID = "it learns from the records, and nobody pays for that"
_BY_BOUNDS = f"{_UNPAID}; the estimators of discreet.learning scale columns by the bounds that you state"
_SCALERS = {
    "KBinsDiscretizer",
    "MaxAbsScaler",
    "MinMaxScaler",
    "PowerTransformer",
    "QuantileTransformer",
    "RobustScaler",
}
_DENSE = "write sparse_output=False: sparse tables are not supported"


def is_nothing(step: Any) -> bool:
    """Whether a place in a pipeline is left free."""
    return step is None or (isinstance(step, str) and step in ("passthrough", "drop"))


def why_refused(step: Any, *, unseen: bool = False) -> str | None:
    """Why a step that is not ours may not stand in a private pipeline, and what to do; None if it learns nothing.

    `unseen`: for records that only a curator may look at, where no value may decide whether the step succeeds.
    """
    if is_nothing(step):
        return None
    known = _KNOWN.get(type(step))
    if known is not None:
        return known(step, unseen)
    import discreet.learning as ours

    name = type(step).__name__
    if hasattr(type(step), "price"):
        return "a private step belongs into the pipeline itself: in here its cost would not be added up"
    if name in ours.__all__:
        return f"{_UNPAID}; use discreet.learning.{name}"
    if name in _SCALERS:
        return _BY_BOUNDS
    return "it is not known to take nothing from the records; use a step of discreet.learning, or public rules"


def _free(_: Any, __: bool) -> None:
    return None


def _function(_: FunctionTransformer, unseen: bool) -> str | None:
    return "write what it does into the SELECT: a function may fail on a value" if unseen else None


def _categories(step: Any) -> str | None:
    if isinstance(step.categories, str):
        return f"{_UNPAID}: which categories there are; state categories=[[...], ...]"
    if step.min_frequency is not None or step.max_categories is not None:
        return f"{_UNPAID}: how frequent categories are; leave out min_frequency and max_categories"
    return None


def _one_hot(step: OneHotEncoder, unseen: bool) -> str | None:
    if reason := _categories(step):
        return reason
    if step.sparse_output:
        return _DENSE
    if unseen and (step.handle_unknown != "ignore" or step.drop is not None):
        return "write handle_unknown='ignore' and no drop: a category that is not stated may come"
    return None


def _ordinal(step: OrdinalEncoder, unseen: bool) -> str | None:
    if reason := _categories(step):
        return reason
    if unseen and step.handle_unknown != "use_encoded_value":
        return "write handle_unknown='use_encoded_value', unknown_value=-1: a category that is not stated may come"
    return None


def _imputer(step: SimpleImputer, _: bool) -> str | None:
    if step.strategy == "constant" and step.keep_empty_features and not step.add_indicator:
        return None
    return (
        f"{_UNPAID}; put public numbers in the place of what is missing: strategy='constant', fill_value=..., "
        "keep_empty_features=True, without an indicator"
    )


def _spline(step: SplineTransformer, unseen: bool) -> str | None:
    if isinstance(step.knots, str):
        return f"{_UNPAID}: where the knots are; state knots=[[...], ...]"
    if step.sparse_output:
        return _DENSE
    if unseen and step.extrapolation == "error":
        return "write extrapolation='constant': a value beyond the knots may come"
    return None


def _columns(step: ColumnTransformer, unseen: bool) -> str | None:
    for name, _, columns in step.transformers:
        if callable(columns) and not isinstance(columns, make_column_selector):
            return f"the columns of '{name}' are chosen by a function of the records; list them"
    return _first([(name, inner) for name, inner, _ in step.transformers] + [("remainder", step.remainder)], unseen)


def _union(step: FeatureUnion, unseen: bool) -> str | None:
    return _first(step.transformer_list, unseen)


def _pipeline(step: Pipeline, unseen: bool) -> str | None:
    if step.memory is not None:
        return "leave out memory: it would keep the records on the disk"
    return _first(step.steps, unseen)


def _first(parts: list[tuple[str, Any]], unseen: bool) -> str | None:
    for name, inner in parts:
        if reason := why_refused(inner, unseen=unseen):
            return f"its part '{name}', {type(inner).__name__}: {reason}"
    return None


_KNOWN: dict[type, Callable[[Any, bool], str | None]] = {
    Binarizer: _free,
    ColumnTransformer: _columns,
    FeatureUnion: _union,
    FunctionTransformer: _function,
    Normalizer: _free,
    OneHotEncoder: _one_hot,
    OrdinalEncoder: _ordinal,
    Pipeline: _pipeline,
    PolynomialFeatures: _free,
    SimpleImputer: _imputer,
    SplineTransformer: _spline,
}
"""By exact type: a subclass may do anything."""


def public_rows(table: Any, number: int) -> Any:
    """Rows of zeros in the columns of a table of numbers; None if it is something else."""
    if hasattr(table, "iloc") and getattr(table, "ndim", 0) == 2:
        if not all(getattr(kind, "kind", "O") in "biuf" for kind in table.dtypes):
            return None
        return type(table)(np.zeros((number, table.shape[1])), columns=table.columns)
    if isinstance(table, np.ndarray) and table.ndim == 2 and table.dtype.kind in "biuf":
        return np.zeros((number, table.shape[1]))
    return None


def acts_row_by_row(step: Any, table: Any) -> bool:
    """Whether a fitted step gives for invented rows together what it gives for each of them alone.

    It finds a slip, as x - x.mean(axis=0) in a function, and no malice. What cannot be tried is believed.
    """
    rows = public_rows(table, 4)
    if rows is None:
        return True
    rows = rows + (0.25 + (0.6180339887 * np.arange(1, 1 + rows.size)).reshape(rows.shape) % 1)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            together = np.asarray(step.transform(rows), dtype=np.float64)
            alone = [np.asarray(step.transform(rows[i : i + 1]), dtype=np.float64) for i in range(len(rows))]
            return bool(np.allclose(together, np.concatenate(alone), equal_nan=True))
    except Exception:  # noqa: BLE001 - the code is the user's, and may want other rows than these
        return True

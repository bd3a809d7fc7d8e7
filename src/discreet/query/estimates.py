"""From noisy numbers to the columns of an answer: values, and intervals at any confidence."""

from __future__ import annotations

import datetime as dt
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.engines import arrow_column
from discreet.query.laws import variance_interval
from discreet.query.moments import Moment, moments_of
from discreet.query.pooling import BARE, ENDS

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    from numpy.typing import NDArray

    from discreet.query.laws import NoisySum
    from discreet.query.measuring import Measured
    from discreet.query.plan import Aggregate
    from discreet.query.pooling import Pairs
    from discreet.query.ranks.answer import RankAnswer

__all__ = ["noisy_table"]

Interval = tuple["NDArray[np.float64]", "NDArray[np.float64]"]

_EPOCH = dt.date(1970, 1, 1)
_HALF = 0.5
"""Quantiles of whole numbers are found as one of them, and are between two of them where these are equally near."""


def noisy_table(
    measured: Measured,
    confidence: float | None = None,
    *,
    at_once: float | None = None,
    pairs: Pairs = ENDS,
    bare: bool = False,
) -> pa.Table:
    """Keys and aggregates as an Arrow table; with a confidence also the ends <aggregate>_low and <aggregate>_high.

    The ends <aggregate>_least and <aggregate>_most are those at the confidence `at_once`, for all groups at once.
    `pairs` has other names for both. With `bare` there are also those by noise alone, where something may be cut off.
    """
    import pyarrow as pa

    columns: dict[str, Any] = {}
    for key in measured.plan.block.keys:
        columns[key.column] = _key_array(measured.keys[key.column])
    for aggregate in measured.plan.block.aggregates:
        columns[aggregate.column] = _shown(_values(measured, aggregate), aggregate)
        for level, pair in zip((confidence, at_once), pairs, strict=True):
            if level is None:
                continue
            named = [(measured, pair.of(aggregate.column))]
            if bare and aggregate.function in BARE:
                named.append((measured.allowing(0.0), pair.bare(aggregate.column)))
            for sums, names in named:
                ends = _interval(sums, aggregate, level)
                for end, name, up in zip(ends, names, (False, True), strict=True):
                    columns[name] = _shown(end, aggregate, up=up)
    if not columns:
        columns["nothing"] = pa.nulls(measured.groups)
    return pa.table(columns)


def _noisy(measured: Measured, moment: Moment) -> NoisySum:
    return measured.moments[measured.plan.moments.index(moment)]


def _parts(measured: Measured, aggregate: Aggregate) -> tuple[tuple[Moment, ...], tuple[NoisySum, ...]]:
    moments = moments_of(aggregate, measured.plan.block.aggregates)
    return moments, tuple(_noisy(measured, moment) for moment in moments)


def _values(measured: Measured, aggregate: Aggregate) -> NDArray[np.float64]:
    function = aggregate.function
    if aggregate in measured.plan.ranks:
        return _in_order(measured, aggregate, lambda rank: rank.values)
    if aggregate in measured.plan.distincts:
        return _within(measured.distincts[measured.plan.distincts.index(aggregate)].values, _possible(aggregate))
    moments, sums = _parts(measured, aggregate)
    if function in ("count", "count_units"):
        return sums[0].values
    centre = moments[0].centre
    if function == "sum":
        return sums[0].values + (centre * sums[1].values if centre else 0.0)
    n = np.where(sums[1].values > 0, sums[1].values, np.nan)
    mean = sums[0].values / n
    if function == "avg":
        return _within(mean + centre, aggregate.bounds)
    spread = np.maximum(sums[2].values / n + moments[2].lift - mean**2, 0.0)
    if aggregate.bounds is not None:
        spread = np.minimum(spread, (aggregate.bounds[1] - aggregate.bounds[0]) ** 2 / 4)
    if not function.endswith("_pop"):
        spread = spread * np.where(n > 1, n / np.maximum(n - 1, 1e-9), np.nan)
    return np.sqrt(spread) if function.startswith("stddev") else spread


def _interval(measured: Measured, aggregate: Aggregate, confidence: float) -> Interval:
    function = aggregate.function
    if aggregate in measured.plan.ranks:
        low = _in_order(measured, aggregate, lambda rank: rank.interval(confidence)[0])
        high = _in_order(measured, aggregate, lambda rank: rank.interval(confidence)[1])
        half = _HALF if function == "quantile" and aggregate.kind == "integer" else 0.0
        return _within(low - half, aggregate.bounds), _within(high + half, aggregate.bounds)
    if aggregate in measured.plan.distincts:
        low, high = measured.distincts[measured.plan.distincts.index(aggregate)].interval(confidence)
        return _within(low, _possible(aggregate)), _within(high, _possible(aggregate))
    moments, sums = _parts(measured, aggregate)
    centre = moments[0].centre
    if function in ("count", "count_units"):
        return sums[0].interval(confidence)
    if function == "sum":
        if not centre:
            return sums[0].interval(confidence)
        return sums[0].sum_interval(sums[1], centre, confidence)
    if function == "avg":
        cancels = measured.plan.known_bound(moments[1]) is None or measured.plan.known_bound(moments[0]) is not None
        if moments[0].bounds is None and centre:  # what is far from the middle is cut off, not what has many rows
            cancels = False
        low, high = sums[0].ratio_interval(sums[1], confidence, centre, cancels=cancels)
        low, high = low - moments[0].rounding, high + moments[0].rounding
        return _within(low, aggregate.bounds), _within(high, aggregate.bounds)
    total, number, squares = sums
    free = moments[2].bounds is None
    low, high = variance_interval(total, number, squares, confidence, moments[2].lift, free=free)
    return (np.sqrt(low), np.sqrt(high)) if function.startswith("stddev") else (low, high)


def _in_order(
    measured: Measured, aggregate: Aggregate, read: Callable[[RankAnswer], NDArray[np.float64]]
) -> NDArray[np.float64]:
    """What is read of the rank, in order among the quantiles of the same argument: a larger share has a larger one.

    Noise may exchange them. True quantiles are in order, so that sorting brings none further from its truth than the
    worst was, and of ends that all hold the sorted ones do.
    """
    ranks = measured.plan.ranks
    together = [rank for rank in ranks if aggregate.function == "quantile" and _same_values(rank, aggregate)]
    if len(together) < 2:
        return read(measured.ranks[ranks.index(aggregate)])
    together.sort(key=lambda rank: rank.probability or 0.0)
    found = np.stack([read(measured.ranks[ranks.index(rank)]) for rank in together])
    ordered = np.where(np.isnan(found).any(axis=0), found, np.sort(found, axis=0))
    return np.asarray(ordered[together.index(aggregate)], dtype=np.float64)


def _same_values(one: Aggregate, other: Aggregate) -> bool:
    return (one.function, one.argument, one.bounds, one.kind) == (
        other.function,
        other.argument,
        other.bounds,
        other.kind,
    )


def _possible(aggregate: Aggregate) -> tuple[float, float]:
    """What a number of distinct values can be."""
    return 0.0, math.inf if aggregate.values is None else float(aggregate.values)


def _within(values: NDArray[np.float64], bounds: tuple[float, float] | None) -> NDArray[np.float64]:
    return values if bounds is None else np.clip(values, *bounds)


def _shown(values: NDArray[np.float64], aggregate: Aggregate, *, up: bool | None = None) -> pa.Array:
    """As the type that the aggregate has in SQL; the ends of an interval of whole numbers are rounded outwards."""
    import pyarrow as pa

    missing = np.isnan(values)
    whole = aggregate.function in ("count", "count_units", "count_distinct") or (
        aggregate.kind == "integer" and aggregate.function in ("sum", "min", "max")
    )
    rounding = np.rint if up is None else np.ceil if up else np.floor
    finite = np.clip(np.where(missing, 0.0, values), -(2.0**62), 2.0**62)
    if aggregate.kind in ("date", "timestamp") and aggregate.function in ("min", "max", "quantile"):
        ticks = rounding(finite).astype(np.int64)
        if aggregate.kind == "timestamp":
            return _column(ticks, missing).cast(pa.timestamp("us"))
        days = np.clip(ticks, _days(dt.date.min), _days(dt.date.max))
        return _column(days, missing).cast(pa.int32()).cast(pa.date32())
    return _column(rounding(finite).astype(np.int64) if whole else values, missing)


def _column(values: NDArray[Any], missing: NDArray[np.bool_]) -> pa.Array:
    if not missing.any():
        return arrow_column(values)
    import pyarrow as pa

    listed = [None if gone else value for value, gone in zip(values.tolist(), missing.tolist(), strict=True)]
    column = arrow_column(listed)
    kind = pa.int64() if values.dtype == np.int64 else pa.float64()
    return column if column.type == kind else column.cast(kind)


def _days(date: dt.date) -> int:
    return (date - _EPOCH).days


def _key_array(values: Any) -> pa.Array:
    import pyarrow as pa

    if isinstance(values, pa.ChunkedArray | pa.Array):
        return values
    return arrow_column(values)

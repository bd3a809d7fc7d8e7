"""Arrow columns as arrays: integers exact at any size.

Buffers are read as they are: Arrow's own conversion would load pandas, which takes half a second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["array_of", "exact_integers"]


def exact_integers(column: pa.ChunkedArray | pa.Array) -> np.ndarray[Any, Any]:
    """A column of integers without NULL: int64 where all values fit, else Python ints in an object array.

    DuckDB's 128-bit sums (HUGEINT, DECIMAL(38,0)) come as Arrow decimals, whose buffer holds each value as two 64-bit
    halves in two's complement: a value fits int64 exactly when its high half is the sign of its low half. No value
    passes through a float.
    """
    import pyarrow as pa

    array = _one_array(column)
    if array.null_count:
        raise InvalidArgument("column", "NULL", "exact integers have no NULL; wrap the expression in COALESCE(..., 0)")
    if pa.types.is_integer(array.type) and not pa.types.is_uint64(array.type):
        return _numbers(array).astype(np.int64, copy=False)
    if pa.types.is_uint64(array.type):
        return exact_integers(array.cast(pa.decimal128(38, 0)))
    if not (pa.types.is_decimal128(array.type) and array.type.scale == 0):
        raise InvalidArgument("column", str(array.type), "exact integers come from integer columns alone")
    if len(array) == 0:
        return np.zeros(0, dtype=np.int64)
    halves = np.frombuffer(array.buffers()[1], dtype="<i8").reshape(-1, 2)[array.offset : array.offset + len(array)]
    low, high = halves[:, 0], halves[:, 1]
    if bool(np.all(high == low >> 63)):
        return np.ascontiguousarray(low, dtype=np.int64)
    unsigned = np.ascontiguousarray(low).view(np.uint64)
    exact = ((h << 64) + u for h, u in zip(high.tolist(), unsigned.tolist(), strict=True))
    return np.fromiter(exact, dtype=object, count=len(array))


def array_of(column: pa.ChunkedArray | pa.Array) -> np.ndarray[Any, Any]:
    """A column as an array: integers exact, floats as they are; all else, and any column with NULL, as Python objects.

    A missing value is None, never NaN. Dates are datetime.date, timestamps datetime.datetime.
    """
    import pyarrow as pa

    array = _one_array(column)
    kind = array.type
    whole = pa.types.is_decimal128(kind) and kind.scale == 0
    if not array.null_count:
        if whole or pa.types.is_integer(kind):
            return exact_integers(array)
        if pa.types.is_float32(kind) or pa.types.is_float64(kind):
            return _numbers(array)
    listed = array.to_pylist()
    if whole:
        listed = [None if value is None else int(value) for value in listed]
    values = np.fromiter(listed, dtype=object, count=len(listed))
    return values.astype(np.bool_) if pa.types.is_boolean(kind) and not array.null_count else values


def _numbers(array: pa.Array) -> np.ndarray[Any, Any]:
    dtype = np.dtype({"halffloat": "f2", "float": "f4", "double": "f8"}.get(str(array.type), str(array.type)))
    if not len(array):
        return np.zeros(0, dtype=dtype)
    return np.frombuffer(array.buffers()[1], dtype=dtype, count=len(array), offset=array.offset * dtype.itemsize)


def _one_array(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    import pyarrow as pa

    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], type=column.type)

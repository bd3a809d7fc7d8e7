"""Arrow columns as arrays and back: integers exact at any size.

Buffers are read and written as they are: `pyarrow.array` and `to_numpy` load pandas where it is installed, and that
takes half a second.
"""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa

__all__ = ["array_of", "arrow_column", "exact_integers", "gathered", "in_order", "taken"]

_WIDE = Context(prec=100)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


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


def arrow_column(values: Iterable[Any]) -> pa.Array:
    """An Arrow column of an array or list of one kind of values, None where one is missing.

    Truth values, floats, texts, dates and timestamps become what they are; integers int64, or decimal128(38, 0) where
    one does not fit; decimals decimal128 with the places of the longest, UUIDs texts. A list of nothing but None has
    Arrow's type null. Other values are refused.
    """
    import pyarrow as pa

    if isinstance(values, np.ndarray) and values.dtype in (np.int64, np.float64):
        number = pa.int64() if values.dtype == np.int64 else pa.float64()
        return pa.Array.from_buffers(number, len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])
    listed = values.tolist() if isinstance(values, np.ndarray) else list(values)
    kinds = {type(value) for value in listed if value is not None}
    if not kinds:
        return pa.nulls(len(listed))
    if len(kinds) > 1:
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise InvalidArgument("values", names, "a column has values of one kind")
    kind: Any = kinds.pop()
    missing = [value is None for value in listed]
    valid = _bitmap(~np.array(missing)) if any(missing) else None
    if kind is uuid.UUID:
        return arrow_column([None if value is None else str(value) for value in listed])
    if kind is Decimal:
        places = max(max(0, -int(value.as_tuple().exponent)) for value in listed if value is not None)
        return _packed([0 if value is None else int(value.scaleb(places, _WIDE)) for value in listed], valid, places)
    if kind is str:
        texts = [b"" if value is None else value.encode("utf-8") for value in listed]
        ends = np.cumsum([0, *map(len, texts)], dtype=np.int64)
        return pa.Array.from_buffers(
            pa.large_string(), len(texts), [valid, pa.py_buffer(ends), pa.py_buffer(b"".join(texts))]
        )
    if kind is bool:
        return pa.Array.from_buffers(pa.bool_(), len(listed), [valid, _bitmap(np.array([bool(v) for v in listed]))])
    if kind is int:
        return _integers([0 if value is None else value for value in listed], valid)
    if kind is float:
        floats = np.array([0.0 if value is None else value for value in listed], dtype=np.float64)
        return pa.Array.from_buffers(pa.float64(), len(listed), [valid, pa.py_buffer(floats)])
    if kind is dt.date:
        days = np.array([0 if value is None else (value - _EPOCH.date()).days for value in listed], dtype=np.int32)
        return pa.Array.from_buffers(pa.date32(), len(listed), [valid, pa.py_buffer(days)])
    if kind is dt.datetime:
        return _moments(listed, valid)
    raise InvalidArgument("values", kind.__name__, "a column is made of truth values, numbers, texts, dates or moments")


def in_order(table: pa.Table, columns: Sequence[str]) -> pa.Table | None:
    """The rows in the order of these columns, as the engine has them: NULL last, NaN before it, texts by their bytes.

    None where Arrow has no order for a type.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        places = pc.sort_indices(table, sort_keys=[(name, "ascending") for name in columns])
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError):
        return None
    return table.take(places)


def gathered(values: Sequence[Any], places: np.ndarray[Any, Any]) -> pa.Array:
    """The column with values[i] for every i in places: as `arrow_column` makes it, with no Python object for each."""
    import pyarrow as pa

    column = arrow_column(values)
    kind, size = column.type, len(places)
    if pa.types.is_null(kind):
        return pa.nulls(size)
    if pa.types.is_boolean(kind):
        return arrow_column([values[i] for i in places.tolist()])
    missing = np.array([value is None for value in values])
    valid = _bitmap(~missing[places]) if missing.any() else None
    if pa.types.is_large_string(kind):
        texts = [b"" if value is None else str(value).encode("utf-8") for value in values]
        ends = np.concatenate([[0], np.cumsum(np.array([len(text) for text in texts], dtype=np.int64)[places])])
        joined = b"".join([texts[i] for i in places.tolist()])
        return pa.Array.from_buffers(kind, size, [valid, pa.py_buffer(ends.astype(np.int64)), pa.py_buffer(joined)])
    cells = np.frombuffer(column.buffers()[1], dtype=f"V{kind.bit_width // 8}", count=len(values))
    return pa.Array.from_buffers(kind, size, [valid, pa.py_buffer(cells[places].tobytes())])


def taken(column: pa.Array, places: np.ndarray[Any, Any]) -> pa.Array:
    """The column with the cells at these places, of the same type: `take`, which loads all of Arrow's functions."""
    import pyarrow as pa

    kind, size = column.type, len(places)
    known = pa.types.is_string(kind) or pa.types.is_primitive(kind) or pa.types.is_decimal128(kind)
    if not known or pa.types.is_boolean(kind):
        return column.take(arrow_column(places))
    validity, *buffers = column.buffers()
    at = places + column.offset
    valid = None
    if column.null_count:
        bits = np.unpackbits(np.frombuffer(validity, dtype=np.uint8), bitorder="little")
        valid = _bitmap(bits[at])
    if pa.types.is_string(kind):
        bounds = np.frombuffer(buffers[0], dtype=np.int32)
        starts = bounds[at].astype(np.int64)
        lengths = bounds[at + 1] - starts
        ends = np.concatenate([[0], np.cumsum(lengths)])
        letters = np.frombuffer(buffers[1] or b"", dtype=np.uint8)
        picked = letters[np.arange(ends[-1]) + np.repeat(starts - ends[:-1], lengths)]
        return pa.Array.from_buffers(
            kind, size, [valid, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(picked.tobytes())]
        )
    cells = np.frombuffer(buffers[0], dtype=f"V{kind.bit_width // 8}")
    return pa.Array.from_buffers(kind, size, [valid, pa.py_buffer(cells[at].tobytes())])


def _integers(values: list[int], valid: pa.Buffer | None) -> pa.Array:
    import pyarrow as pa

    if all(-(1 << 63) <= value < 1 << 63 for value in values):
        return pa.Array.from_buffers(pa.int64(), len(values), [valid, pa.py_buffer(np.array(values, dtype=np.int64))])
    return _packed(values, valid, 0)


def _packed(values: list[int], valid: pa.Buffer | None, places: int) -> pa.Array:
    import pyarrow as pa

    if not all(abs(value) < 10**38 for value in values):
        raise InvalidArgument("values", max(values, key=abs), "a number in a column has at most 38 digits")
    packed = b"".join(value.to_bytes(16, "little", signed=True) for value in values)
    return pa.Array.from_buffers(pa.decimal128(38, places), len(values), [valid, pa.py_buffer(packed)])


def _moments(values: list[dt.datetime | None], valid: pa.Buffer | None) -> pa.Array:
    import pyarrow as pa

    zoned = {value.tzinfo is not None for value in values if value is not None}
    if len(zoned) > 1:
        raise InvalidArgument("values", "datetime", "timestamps have zones all or none")
    epoch = _EPOCH if zoned.pop() else _EPOCH.replace(tzinfo=None)
    unit = dt.timedelta(microseconds=1)
    numbers = np.array([0 if value is None else (value - epoch) // unit for value in values], dtype=np.int64)
    kind = pa.timestamp("us", tz="UTC" if epoch.tzinfo else None)
    return pa.Array.from_buffers(kind, len(values), [valid, pa.py_buffer(numbers)])


def _bitmap(flags: np.ndarray[Any, Any]) -> pa.Buffer:
    import pyarrow as pa

    return pa.py_buffer(np.packbits(flags, bitorder="little"))


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
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)

"""Tables in memory as Arrow: from Arrow, pandas and Polars, recognised without importing any of them."""

from __future__ import annotations

import decimal
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

__all__ = ["files_behind", "frame_of", "unreadable"]


_EXTENSION = b"ARROW:extension:name"
_KNOWN = ("arrow.uuid", "arrow.json", "arrow.bool8")
"""Extensions of which every value can be read; of others the bytes are, or the numbers that they are stored as."""


def frame_of(source: object) -> Any:
    """The source as an Arrow table or dataset, without a copy where that is possible; None if it is something else.

    A reader of batches and a lazy frame are read here, once: the first cannot be read twice, and the second would be
    computed anew at every question. The index of a pandas frame is left out.
    """
    found = _recognised(source)
    if found is None:
        return None
    for field in found.schema:
        for part in _inside(field.type):
            if _needs_care(part.type):
                why = f"has times in seconds or milliseconds inside of the column '{field.name}'"
                advice = "Cast them to microseconds, and dictionaries to plain columns."
                raise SourceError("the Arrow table", why, advice)
            if _is_foreign(part):
                why = f"has values of type {_extension(part)} inside of the column '{field.name}'"
                raise SourceError("the Arrow table", why, "Cast them to binary or text.")
    if not hasattr(found, "column") and any(_stops_a_scan(field) for field in found.schema):
        found = _read(found)
    return _checked(found) if hasattr(found, "column") else _looked_through(found)


def unreadable(source: object) -> SourceError:
    """What was passed in place of a table, and how to make one of it."""
    shown = f"an object of type {type(source).__name__}"
    advice = "Pass a path, a pattern, a list of paths, an Arrow table or data set, a pandas or a Polars frame."
    if isinstance(source, Mapping):
        shown = f"a dict of {_kinds(source.values())}"
        advice = "Make a table of it: pyarrow.table(columns), or pandas.DataFrame(columns)."
    elif isinstance(source, list | tuple) or hasattr(source, "__array__"):
        rows = source if isinstance(source, list | tuple) else ()
        shown = f"a list of {_kinds(rows)}" if rows else shown
        if rows and all(isinstance(row, Mapping) for row in rows):
            advice = "Make a table of it: pyarrow.Table.from_pylist(rows), or pandas.DataFrame(rows)."
        elif not any(isinstance(row, str | os.PathLike) for row in rows):
            advice = "Make a table of it: pandas.DataFrame(rows, columns=['user_id', ...])."
    return SourceError(shown, "is nothing that can be read as a table", advice)


def _kinds(values: Iterable[object]) -> str:
    """The types of these, in the plural."""
    return " and ".join(sorted({f"{type(value).__name__}s" for value in values}, key=str.lower)) or "nothing"


def files_behind(source: object) -> tuple[str, ...]:
    """The files on this machine that an Arrow data set reads whenever it is asked; of anything else, none."""
    dataset = sys.modules.get("pyarrow.dataset")
    if dataset is None or not isinstance(source, dataset.Dataset):
        return ()
    if isinstance(source, dataset.UnionDataset):
        return tuple(file for child in source.children for file in files_behind(child))
    return tuple(str(Path(file).absolute()) for file in getattr(source, "files", ()) if Path(file).is_file())


def _recognised(source: object) -> Any:
    polars = sys.modules.get("polars")
    if polars is not None:
        if isinstance(source, polars.LazyFrame):
            return source.collect().to_arrow()
        if isinstance(source, polars.DataFrame):
            return source.to_arrow()
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(source, pandas.DataFrame):
        return _from_pandas(source)
    return _from_arrow(source)


def _needs_care(kind: pa.DataType) -> bool:
    """Whether DuckDB multiplies the values while it scans them, and fails where one does not fit 64 bits."""
    import pyarrow as pa

    return ((pa.types.is_timestamp(kind) and kind.tz is not None) or pa.types.is_duration(kind)) and kind.unit in (
        "s",
        "ms",
    )


def _inside(kind: pa.DataType) -> Iterator[pa.Field]:
    """The parts of which a nested or encoded type is made, however deep."""
    import pyarrow as pa

    parts = [kind.field(i) for i in range(kind.num_fields)]
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        parts = [pa.field("", kind.value_type)]
    elif isinstance(kind, pa.BaseExtensionType):
        parts = [pa.field("", kind.storage_type)]
    for part in parts:
        yield part
        yield from _inside(part.type)


def _extension(field: pa.Field) -> str:
    """The name of an extension of Arrow's types; nothing for Arrow's own."""
    named = getattr(field.type, "extension_name", "")
    return str(named or (field.metadata or {}).get(_EXTENSION, b"").decode())


def _is_foreign(field: pa.Field) -> bool:
    """Whether the engine may read the bytes as something else, such as a shape, and fail where they are none."""
    return _extension(field) not in ("", *_KNOWN)


def _stops_a_scan(field: pa.Field) -> bool:
    """Whether a data set with such a column cannot be scanned as it is.

    Of extension types, UUIDs among them, Arrow cannot compare values with the range that a Parquet file states. It
    tries to wherever there is a condition on any column, and fails in the parts of a file that the condition leaves: a
    question would be answered or not as there is a row that meets it.
    """
    import pyarrow as pa

    return _needs_care(field.type) or _is_foreign(field) or isinstance(field.type, pa.BaseExtensionType)


def _read(dataset: Any) -> pa.Table:
    """The rows of a data set, in memory."""
    import pyarrow as pa

    try:
        return dataset.to_table()
    except (pa.ArrowException, OSError):
        pass
    raise SourceError(
        "the Arrow data set", "cannot be read", "See that its files are whole, and that its values fit their types."
    )


def _checked(table: pa.Table) -> pa.Table:
    """The table, whose texts are known to be UTF-8, with times in microseconds where DuckDB would convert them."""
    import pyarrow as pa

    for position, field in enumerate(table.schema):
        if _is_foreign(field):
            column = table.column(position)
            if isinstance(field.type, pa.BaseExtensionType):
                chunks = [chunk.storage for chunk in column.chunks]
                column = pa.chunked_array(chunks, field.type.storage_type)
            table = table.set_column(position, pa.field(field.name, column.type), column)
        if _needs_care(field.type):
            table = table.set_column(position, field.name, _microseconds(table.column(position)))
    try:
        table.validate(full=True)
    except pa.ArrowInvalid:
        pass
    else:
        if not any(_overflows(chunk) for column in table.columns for chunk in column.chunks):
            return table
    raise SourceError("the Arrow table", "has bytes that its types do not allow", "See table.validate(full=True).")


def _looked_through(dataset: Any) -> Any:
    """The data set, read once as far as a scan could fail on a value.

    Arrow does not check that texts in files are UTF-8, and converts what a file has in another type while it is
    scanned: cells of CSV and JSON, and columns whose type is not that of the schema.
    """
    import pyarrow as pa

    try:
        columns = _converted(dataset)
        for batch in dataset.to_batches(columns=columns) if columns else ():
            batch.validate(full=True)
            if any(_overflows(column) for column in batch.columns):
                raise pa.ArrowInvalid
    except pa.ArrowInvalid:
        why, advice = "has values that its types do not allow", "Write its texts in UTF-8, and one type in a column."
    except (pa.ArrowException, OSError):
        why, advice = "cannot be read", "See that its files are whole and that this user may read them."
    else:
        return dataset
    raise SourceError("the Arrow data set", why, advice)


def _converted(dataset: Any) -> list[str]:
    """The columns that can make a question fail: texts, decimals, and what is not stored in the type it is read as."""
    if getattr(dataset, "_scan_options", None):  # a filter of its own, which may fail on any row
        return list(dataset.schema.names)
    doubtful = ("string", "json", "decimal")
    texts = [field.name for field in dataset.schema if any(kind in str(field.type) for kind in doubtful)]
    found = dict.fromkeys(texts)
    for fragment in dataset.get_fragments():
        kind = getattr(getattr(fragment, "format", None), "default_extname", "memory")
        if kind not in ("memory", "parquet", "feather", "arrow", "ipc"):
            return list(dataset.schema.names)  # of CSV and JSON every cell is converted
        stored = {field.name: field.type for field in fragment.physical_schema}
        found |= {field.name: None for field in dataset.schema if stored.get(field.name, field.type) != field.type}
    return list(found)


def _overflows(column: pa.Array) -> bool:
    """Whether a decimal is -2^127, which Arrow takes for one that fits and DuckDB cannot make a text of."""
    import numpy as np
    import pyarrow as pa

    if not pa.types.is_decimal128(column.type) or not len(column):
        return False
    halves = np.frombuffer(column.buffers()[1], dtype="<i8").reshape(-1, 2)[column.offset : column.offset + len(column)]
    found = np.flatnonzero((halves[:, 0] == 0) & (halves[:, 1] == np.iinfo(np.int64).min))
    return any(column[int(place)].is_valid for place in found)


def _microseconds(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Seconds or milliseconds as microseconds; NULL where they do not fit."""
    import pyarrow as pa
    import pyarrow.compute as pc

    factor = {"s": 10**6, "ms": 10**3}[column.type.unit]
    limit = (1 << 63) // factor - 1
    numbers = column.cast(pa.int64())
    fits = pc.and_(pc.greater_equal(numbers, -limit), pc.less_equal(numbers, limit))
    scaled = pc.multiply(pc.if_else(fits, numbers, pa.scalar(None, pa.int64())), factor)
    return scaled.cast(pa.duration("us") if pa.types.is_duration(column.type) else pa.timestamp("us", column.type.tz))


def _from_arrow(source: object) -> Any:
    pyarrow = sys.modules.get("pyarrow")
    if pyarrow is None:
        return None
    if isinstance(source, pyarrow.RecordBatchReader):
        return source.read_all()
    if isinstance(source, pyarrow.RecordBatch):
        return pyarrow.Table.from_batches([source])
    if isinstance(source, pyarrow.Table):
        return source
    dataset = sys.modules.get("pyarrow.dataset")
    return source if dataset is not None and isinstance(source, dataset.Dataset) else None


def _from_pandas(frame: Any) -> pa.Table:
    import pyarrow as pa

    columns = [_from_series(frame.iloc[:, position]) for position in range(frame.shape[1])]
    return pa.Table.from_arrays(columns, names=[str(name) for name in frame.columns])


def _from_series(series: Any) -> pa.Array | pa.ChunkedArray:
    """A column of Python objects becomes text, and so do categories: their type would be a question to the values."""
    import pyarrow as pa

    if str(series.dtype) == "category":
        return _labels(series)
    if str(series.dtype) == "object":
        try:
            return pa.array(series, type=pa.string(), from_pandas=True)
        except (pa.ArrowException, UnicodeError, TypeError, ValueError):
            return _texts(series)
    try:
        return pa.array(series, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError):  # complex numbers, periods, intervals
        return _texts(series)


def _labels(series: Any) -> pa.Array:
    """A column of categories as texts. pandas gives them the type that fits all: one label more would change it.

    It makes floats of whole numbers beside one that is not, so that these are written as whole numbers in either case.
    """
    import pyarrow as pa

    known = (int(one) if isinstance(one, float) and one.is_integer() else one for one in series.cat.categories)
    labels = _texts(known).dictionary_encode()
    codes = series.cat.codes.to_numpy()
    places = labels.indices.take(pa.array(codes, mask=codes < 0))
    return pa.DictionaryArray.from_arrays(places, labels.dictionary)


def _texts(values: Iterable[Any]) -> pa.Array:
    """Every value as text, by itself: what one row holds decides nothing about the others."""
    import pyarrow as pa

    return pa.array([_text(value) for value in values], type=pa.string())


def _text(value: Any) -> str | None:
    """A value as Arrow reads it where all of them are texts, and in the words of Python otherwise.

    It is missing if it is None, NaN, NaT or NA; a text that reads so is a text.
    """
    if isinstance(value, bytes | bytearray | memoryview):
        try:
            return bytes(value).decode("utf-8")
        except UnicodeDecodeError:
            return str(bytes(value))
    text = str(value)
    if not isinstance(value, str) and (value is None or text in ("NaT", "<NA>") or _is_nan(value)):
        return None
    return text.encode("utf-8", "replace").decode("utf-8")


def _is_nan(value: Any) -> bool:
    if isinstance(value, decimal.Decimal):
        return value.is_nan()
    return isinstance(value, float) and value != value  # noqa: PLR0124

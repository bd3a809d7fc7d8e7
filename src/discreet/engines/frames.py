"""Tables in memory as Arrow: from Arrow, pandas and Polars, recognised without importing any of them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

__all__ = ["frame_of"]


def frame_of(source: object) -> Any:
    """The source as an Arrow table or dataset, without a copy where that is possible; None if it is something else.

    A reader of batches and a lazy frame are read here, once: the first cannot be read twice, and the second would be
    computed anew at every question. The index of a pandas frame is left out.
    """
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
    """A column of Python objects becomes text: what type they have would be a question to the values."""
    import pyarrow as pa

    if str(series.dtype) == "object":
        try:
            return pa.array(series, type=pa.string(), from_pandas=True)
        except (pa.ArrowException, UnicodeError, TypeError, ValueError):
            return _texts(series)
    try:
        return pa.array(series, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError):  # complex numbers, periods, intervals
        return _texts(series)


def _texts(values: Iterable[Any]) -> pa.Array:
    """Every value as text; a value is missing exactly if it is None or differs from itself, as NaN and NaT do."""
    import pyarrow as pa

    return pa.array([_text(value) for value in values], type=pa.string())


def _text(value: Any) -> str | None:
    if value is None or (isinstance(value, float) and value != value) or str(value) in ("NaT", "<NA>"):  # noqa: PLR0124
        return None
    return str(value).encode("utf-8", "replace").decode("utf-8")

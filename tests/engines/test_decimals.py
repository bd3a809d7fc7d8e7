"""Decimals that no type holds: one row with -2^127 must not decide which questions are answered."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from discreet.engines import DuckDBEngine
from discreet.errors import SourceError

ROWS = 60
ASKED = "SELECT count(*) AS n FROM {} WHERE CAST(x AS VARCHAR) LIKE '%5'"


def table(precision: int, scale: int, *, beyond: int | None = None, missing: bool = False) -> pa.Table:
    """Small numbers, and the smallest of 128 bits in one place, which may be NULL."""
    halves = np.zeros((ROWS, 2), dtype="<i8")
    halves[:, 0] = np.arange(ROWS)
    valid = np.ones(ROWS, dtype=bool)
    if beyond is not None:
        halves[beyond] = (0, np.iinfo(np.int64).min)
        valid[beyond] = not missing
    bits = pa.py_buffer(np.packbits(valid, bitorder="little").tobytes())
    column = pa.Array.from_buffers(pa.decimal128(precision, scale), ROWS, [bits, pa.py_buffer(halves.tobytes())])
    return pa.table({"u": np.arange(ROWS), "x": column})


def sources(folder: Path, rows: pa.Table) -> list[object]:
    path = folder / "t.parquet"
    pq.write_table(rows, path)
    return [rows, rows.slice(3), path, ds.dataset(path)]


@pytest.mark.parametrize(("precision", "scale"), [(38, 0), (38, 10), (38, 38)])
def test_a_decimal_that_cannot_be_written_is_refused_when_the_data_is_opened(
    tmp_path: Path, precision: int, scale: int
) -> None:
    for source in sources(tmp_path, table(precision, scale, beyond=7)):
        with DuckDBEngine() as engine, pytest.raises(SourceError, match=r"do not allow|does not fit"):
            engine.register("t", source)


@pytest.mark.parametrize(("precision", "scale"), [(38, 0), (38, 10), (38, 38), (25, 3), (19, 19), (18, 2), (5, 0)])
@pytest.mark.parametrize("missing", [False, True])
def test_other_decimals_are_read(tmp_path: Path, precision: int, scale: int, missing: bool) -> None:
    for source in sources(tmp_path, table(precision, scale, beyond=7 if missing else None, missing=missing)):
        with DuckDBEngine() as engine:
            relation = engine.register("t", source)
            assert engine.numpy(ASKED.format(relation))["n"][0] > 0

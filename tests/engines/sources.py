"""Small tables in every kind of file, written for a test."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

VISITS = {
    "user_id": [1, 1, 2, None],
    "city": ["Ulm", "Bonn", "Ulm", None],
    "spend": [1.5, 2.5, None, 4.0],
}


def visits() -> pa.Table:
    return pa.table(VISITS)


def parquet(path: Path, table: pa.Table | None = None) -> Path:
    pq.write_table(visits() if table is None else table, path)
    return path


def csv(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8", newline="")
    return path


def database(path: Path, *statements: str) -> Path:
    with duckdb.connect(str(path)) as connection:
        for statement in statements:
            connection.execute(statement)
    return path

"""An answer in a file: as a table with the ends of its intervals beside the values, or as what `--json` prints."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import typer

from discreet.cli.show import json_text
from discreet.cli.writing import whole_file

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["kind_of", "save", "saving"]

_KINDS = (".csv", ".parquet", ".json")


def kind_of(path: str) -> str:
    """The ending of a file's name, which says how it is written."""
    kind = Path(path).suffix.lower()
    if kind not in _KINDS:
        endings = f"{', '.join(_KINDS[:-1])} or {_KINDS[-1]}"
        raise typer.BadParameter(
            f"'{path}' is no name that ends in {endings}, such as answer.csv", param_hint="--output"
        )
    return kind


@contextmanager
def saving(path: str | None) -> Iterator[IO[bytes] | None]:
    """A new file for an answer, which can be written before anything is paid; None without a path."""
    if path is None:
        yield None
        return
    with whole_file(Path(path).expanduser(), binary=True) as file:
        yield file


def save(file: IO[bytes], kind: str, table: pa.Table, found: dict[str, Any]) -> None:
    """Write an answer: its table, or for JSON all that was found."""
    if kind == ".json":
        file.write(json_text(found).encode())
    elif kind == ".csv":
        from pyarrow import csv

        csv.write_csv(_in_texts(table), file)
    else:
        from pyarrow import parquet

        parquet.write_table(table, file)


def _in_texts(table: pa.Table) -> pa.Table:
    """The table with texts in place of lists and lengths of time, for which CSV has no form of its own."""
    import pyarrow as pa

    for place, field in enumerate(table.schema):
        if pa.types.is_nested(field.type) or pa.types.is_interval(field.type) or pa.types.is_duration(field.type):
            texts = [None if value is None else str(value) for value in table.column(place).to_pylist()]
            table = table.set_column(place, field.name, pa.array(texts, pa.string()))
    return table

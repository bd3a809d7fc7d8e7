"""CSV files: the SQL that reads them, every cell a text, so that no value decides how others are read."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.engines.encodings import first_line
from discreet.engines.names import distinct_names, literal, literals, quoted
from discreet.engines.partitions import NO_PARTITIONS
from discreet.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["csv_header", "csv_rows"]

_DELIMITERS = ",;\t|"
_SAMPLE = 1000
_SHARE = 0.9
_VALUE = re.compile(r"[+-]?[.,]?\d[\d.,:/ TZ+-]*([eE][+-]?\d+)?")  # a number, a date or a time, in most notations
_GUESSES = {
    "BIGINT": "regexp_full_match({0}, '[+-]?[0-9]{{1,18}}')",
    "DOUBLE": "TRY_CAST({0} AS DOUBLE) IS NOT NULL",
    "DATE": "regexp_full_match({0}, '[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}')",
    "TIMESTAMP": "TRY_CAST({0} AS TIMESTAMP) IS NOT NULL",
    "BOOLEAN": "lower({0}) IN ('true', 'false')",
}


def csv_header(paths: Sequence[str], *, encoding: str | None = None) -> tuple[str, list[str]]:
    """The delimiter and the names of the columns, from the first line alone; all files must have the same."""
    first = ""
    for path in paths:
        line = first_line(path, encoding=encoding)
        if not line.strip():
            raise SourceError(path, "is empty", "A CSV file starts with a line of column names.")
        if first and line != first:
            raise SourceError(path, f"has another header than {Path(paths[0]).name}", "Write one header in all files.")
        first = line
    delimiter = max(_DELIMITERS, key=lambda mark: len(next(csv.reader([first], delimiter=mark))))
    names = next(csv.reader([first], delimiter=delimiter))
    _check_names(paths[0], names)
    if not all(name.strip() for name in names):
        raise SourceError(paths[0], "has a column without a name", "Give every column of the header a name.")
    distinct_names(paths[0], names)
    return delimiter, names


def _check_names(path: str, names: Sequence[str]) -> None:
    """Refuse a file whose first line is a row: names are public, and somebody's values would be.

    A row often begins with a number or a date, and a name hardly ever; names that count from 0 are written for tables
    without any. Nothing of the line is shown.
    """
    counted = [name.strip() for name in names] == [str(number) for number in range(len(names))]
    if _VALUE.fullmatch(names[0].strip()) and not counted:
        raise SourceError(
            path,
            "seems to have no line of column names: its first line begins with a number or a date",
            "Put the names, which everybody may know, into the first line; if they are there, begin with a letter.",
        )


def csv_rows(
    paths: Sequence[str],
    header: tuple[str, list[str]],
    *,
    types: Mapping[str, str],
    run: Callable[[str], list[tuple[Any, ...]]],
) -> tuple[str, dict[str, str]]:
    """SQL that scans the files, which are in UTF-8, with every cell as text, and a type for each column.

    Types come from `types` (by lower-case name); the others are guessed from the first thousand rows, once: a type that
    nine cells of ten fit. Lines that cannot be split into cells are left out.

    A file is read from its beginning to its end by one thread. Several begin in the middle of it, and take a line break
    inside of a quoted cell, the middle of a line's end, or a line that is empty or too short, for the beginning of a
    row: which one, and so what is read of other people's rows, would depend on how many bytes stand before it.
    """
    delimiter, names = header
    columns = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in names)
    options = (
        f"auto_detect=false, delim={literal(delimiter)}, quote='\"', escape='\"', header=true, "
        f"columns={{{columns}}}, ignore_errors=true, strict_mode=false, "
        f"parallel=false, {NO_PARTITIONS}"
    )
    undeclared = [name for name in names if name.lower() not in types]
    guessed = {}
    if undeclared:
        sample = f"read_csv({literals(paths[:1])}, {options})"
        parts = ["COUNT({0})", *(f"COUNT_IF({guess})" for guess in _GUESSES.values())]
        counts = ", ".join(part.format(quoted(name)) for name in undeclared for part in parts)
        [row] = run(f"SELECT {counts} FROM (SELECT * FROM {sample} LIMIT {_SAMPLE})")
        width = len(parts)
        for position, name in enumerate(undeclared):
            filled, *fitting = row[position * width : (position + 1) * width]
            fits = (kind for kind, number in zip(_GUESSES, fitting, strict=True) if number >= _SHARE * filled)
            guessed[name.lower()] = next(fits, "VARCHAR") if filled else "VARCHAR"
    # DuckDB moves a TRY_CAST of a bare column into the scan, where a cell that does not convert costs the whole line; a
    # function around the column keeps it outside. Empty cells are NULL already, so NULLIF changes nothing else.
    cells = ", ".join(f"NULLIF({quoted(name)}, '') AS {quoted(name)}" for name in names)
    return f"(SELECT {cells} FROM read_csv({literals(paths)}, {options}))", {**guessed, **types}

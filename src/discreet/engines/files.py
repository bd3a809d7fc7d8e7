"""Tables in files: the SQL that reads them without an error that depends on a value."""

from __future__ import annotations

import csv
import gzip
import re
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.engines.names import literal, quoted
from discreet.engines.partitions import NO_PARTITIONS, partitioning
from discreet.errors import EngineError, SourceError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

__all__ = ["csv_header", "csv_rows", "distinct_names", "parquet_rows"]

_DELIMITERS = ",;\t|"
_SAMPLE = 1000
_SHARE = 0.9
_FLOATS = ("DOUBLE", "FLOAT")
_BYTEWISE = ("VARCHAR", "DECIMAL", "UUID", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "TIMESTAMP")
_LOOKED_THROUGH = 1 << 28  # cells in columns of floats, or of texts: a second or two
_VALUE = re.compile(r"[+-]?[.,]?\d[\d.,:/ TZ+-]*([eE][+-]?\d+)?")  # a number, a date or a time, in most notations
_GUESSES = {
    "BIGINT": "regexp_full_match({0}, '[+-]?[0-9]{{1,18}}')",
    "DOUBLE": "TRY_CAST({0} AS DOUBLE) IS NOT NULL",
    "DATE": "regexp_full_match({0}, '[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}')",
    "TIMESTAMP": "TRY_CAST({0} AS TIMESTAMP) IS NOT NULL",
    "BOOLEAN": "lower({0}) IN ('true', 'false')",
}


def parquet_rows(
    paths: Sequence[str], *, leave_out: Collection[str], run: Callable[[str], list[tuple[Any, ...]]]
) -> str:
    """SQL that scans the files; files whose columns differ are refused.

    DuckDB would cast the values of the later files to the types of the first, and fail where one does not fit. Bytes of
    texts that are not UTF-8, against the format, are read as question marks. What every question does with these, and
    with a NaN, does not depend on other rows, and no condition is decided by a range that is wrong: see `_replaced`,
    `_with_nan` and `_disordered`.
    """
    listed = _listed(paths)
    schemas: dict[str, list[tuple[Any, ...]]] = {}
    for file, *rest in run(
        f"SELECT file_name, name, type, converted_type, logical_type, num_children FROM parquet_schema({listed})"
    ):
        schemas.setdefault(file, []).append(tuple(rest))
    paths_as = partitioning(paths, _top_level(schemas[paths[0]]))
    different = {tuple(schema[1:]): file for file, schema in reversed(schemas.items())}
    if len(different) > 1:
        described = {
            file: [row[:2] for row in run(f"DESCRIBE SELECT * FROM read_parquet({_listed([file])}, {paths_as})")]
            for file in different.values()
        }
        first = described[paths[0]]
        for file, columns in described.items():
            if columns != first:
                raise SourceError(
                    file,
                    f"has other columns or types than {Path(paths[0]).name}",
                    "Write all files of a table with one schema, or name those of each table by themselves.",
                )
    distinct_names(paths[0], _top_level(schemas[paths[0]]))
    rows = f"read_parquet({listed}, {paths_as}, utf8_validation = 'replace')"  # by default, no UTF-8 stops the scan
    kinds = {
        quoted(str(row[0])): str(row[1])
        for row in run(f"DESCRIBE SELECT * FROM {rows}")
        if str(row[0]).lower() not in leave_out
    }
    shapes = [str(row[0]) for row in run(f"DESCRIBE SELECT * FROM {rows}") if "GEOMETRY" in str(row[1])]
    converted = [column for schema in schemas.values() for column in _converted(schema)]
    for column in dict.fromkeys([*converted, *shapes]):
        if column.lower() not in leave_out:
            strictly = f"read_parquet({listed}, {paths_as})" if kinds.get(quoted(column)) == "JSON" else rows
            _look_through(paths[0], column, strictly, run=run)
    for column, kind in kinds.items():
        _check_decimals(paths[0], column, kind, rows, run=run)
    [(length,)] = run(f"SELECT sum(num_rows) FROM parquet_file_metadata({listed})")
    floats = [column for column in kinds if kinds[column] in _FLOATS]
    texts = [column for column in kinds if kinds[column] == "VARCHAR"]
    named = {
        **_with_nan(floats, rows, length=int(length or 0), halves=_halves(schemas), run=run),
        **_replaced(texts, listed, length=int(length or 0), run=run),
        **_disordered(kinds, listed, run=run),
    }
    listed_columns = ", ".join(f"{sql} AS {column}" for column, sql in named.items())
    return f"(SELECT * REPLACE ({listed_columns}) FROM {rows})" if named else rows


def _with_nan(
    floats: list[str],
    rows: str,
    *,
    length: int,
    halves: Collection[str],
    run: Callable[[str], list[tuple[Any, ...]]],
) -> dict[str, str]:
    """SQL of the columns of floats in which a NaN is a NaN whatever the file says about the range of its column.

    To DuckDB a NaN is larger than every number, but most programs leave it out of the smallest and largest value that
    they write beside a column. Where DuckDB believes these, `x > 10` is true of every NaN in a file as long as one
    other row is above 10, and false of all of them otherwise: one person would change what all the others count for.
    A CASE that names NaN has the right range. It takes time, so columns are looked through once for one: where there is
    none, the file is right, and the column is read as it is. Of x + 1, which is NaN if and only if x is, DuckDB knows
    no range; isnan(x) and MAX(x) themselves would be answered from that of the file.

    Floats of 16 bits are always read so. DuckDB makes 32 bits of them, and looks for these in the Bloom filter that a
    file may have of the 16: `x = 5` is then false of all rows, or true of those that it is true of, as other rows have
    set the bits by chance.
    """
    searched = [column for column in floats if column in halves]
    if floats and length * len(floats) <= _LOOKED_THROUGH:
        [largest] = run(f"SELECT {', '.join(f'max({column} + 1)' for column in floats)} FROM {rows}")
        floats = [column for column, value in zip(floats, largest, strict=True) if value is not None and isnan(value)]
    return {
        column: f"CASE WHEN isnan({column} + 1) THEN 'NaN' ELSE {column} END"
        for column in dict.fromkeys([*floats, *searched])
    }


def _halves(schemas: Mapping[str, list[tuple[Any, ...]]]) -> set[str]:
    """The columns that are floats of 16 bits in one of the files."""
    return {
        quoted(str(name)) for schema in schemas.values() for name, _, _, kind, _ in schema if "Float16" in str(kind)
    }


def _replaced(
    texts: list[str], listed: str, *, length: int, run: Callable[[str], list[tuple[Any, ...]]]
) -> dict[str, str]:
    """SQL of the columns of texts that are not UTF-8, in a form that is not decided by the range that the file states.

    The range that a file states is that of its bytes. With question marks in their place a text may lie below it, and
    `x = '??'` would be true of all such texts or of none, as one other row is below them or not.
    """

    def is_text(columns: list[str]) -> bool:
        # strlen(x) and the like are answered from the lengths in the file, without a look at the bytes
        read = ", ".join(f"max(hash({column}))" for column in columns)
        try:
            run(f"SELECT {read} FROM read_parquet({listed}, utf8_validation = 'strict')")
        except EngineError:
            return False
        return True

    if texts and length * len(texts) <= _LOOKED_THROUGH:
        texts = [] if is_text(texts) else [column for column in texts if not is_text([column])]
    return {column: _without_range(column, "VARCHAR") for column in texts}


def _disordered(
    kinds: Mapping[str, str], listed: str, *, run: Callable[[str], list[tuple[Any, ...]]]
) -> dict[str, str]:
    """SQL of the columns whose stated range is in another order than that of their values.

    Until 2018 programs compared texts and other bytes as signed numbers, by which "é" is below "b", and stated the
    range in fields that were given up for that reason. DuckDB reads them still, and believes that there is no "é" in a
    file with a "z". The order of INT96, the first format of timestamps, was never fixed.
    """
    try:
        found = run(
            f"SELECT DISTINCT path_in_schema, type = 'INT96' FROM parquet_metadata({listed}) "
            "WHERE (type = 'INT96' OR (stats_min_value IS NULL AND stats_max_value IS NULL)) "
            "AND coalesce(stats_min, stats_max, stats_min_value, stats_max_value) IS NOT NULL"
        )
    except EngineError:  # a range of times that no calendar has cannot be shown: of other columns nothing is known then
        old = {(column, False) for column in kinds}
    else:
        old = {(quoted(str(name)), bool(time)) for name, time in found}
    return {
        column: _without_range(column, kind)
        for column, kind in kinds.items()
        if (column, kind.startswith("TIMESTAMP")) in old and kind.startswith(_BYTEWISE)
    }


def _without_range(column: str, kind: str) -> str:
    """SQL of the same values, of which DuckDB knows no range; it sees through `x || ''` and replace(x, '?', '?')."""
    text = f"CASE WHEN {column} IS NULL THEN NULL ELSE concat(TRY(CAST({column} AS VARCHAR)), '') END"
    return text if kind == "VARCHAR" else f"TRY_CAST({text} AS {kind})"


def _converted(schema: list[tuple[Any, ...]]) -> list[str]:
    """Columns that DuckDB converts while it scans, or that have such a part.

    Those are timestamps in milliseconds or in the old format, times of day, JSON and variants.
    """
    found: dict[str, None] = {}
    for column, (_, physical, converted, logical, _) in zip(_columns(schema), schema[1:], strict=True):
        if (
            physical == "INT96"
            or converted in ("TIMESTAMP_MILLIS", "TIME_MILLIS", "TIME_MICROS", "JSON", "BSON")
            or any(mark in str(logical) for mark in ("MILLIS=MilliSeconds", "TimeType", "Json", "Bson", "Variant"))
        ):
            found[column] = None
    return list(found)


def _look_through(path: str, column: str, rows: str, *, run: Callable[[str], list[tuple[Any, ...]]]) -> None:
    """Refuse a file where such a value does not fit: a question would meet the error otherwise."""
    try:
        run(f"SELECT MIN({quoted(column)}) IS NULL, MAX(hash({quoted(column)})) FROM {rows}")
    except EngineError:
        pass
    else:
        return
    why = f"has a date, time, shape or JSON in the column '{column}' that cannot be converted"
    raise SourceError(path, why, "Write times in microseconds, shapes in WKB and JSON as text, or hide the column.")


def _check_decimals(
    path: str, column: str, kind: str, rows: str, *, run: Callable[[str], list[tuple[Any, ...]]]
) -> None:
    """Refuse a file with a decimal of more digits than its type has: DuckDB ends where it makes a text of -2^127.

    Up to 18 digits are stored in 64 bits, and are no danger.
    """
    digits, _, places = kind.removeprefix("DECIMAL(").rstrip(")").partition(",")
    if not kind.startswith("DECIMAL(") or int(digits) <= 18:
        return
    most = f"CAST('{'9' * (int(digits) - int(places))}.{'9' * int(places)}' AS {kind})"
    [(beyond,)] = run(f"SELECT count(*) FROM {rows} WHERE {column} NOT BETWEEN -{most} AND {most}")
    if beyond:
        why = f"has a number in the column {column} that does not fit into {kind}"
        raise SourceError(path, why, "Write it with more digits, as a double or as a text, or hide the column.")


def _columns(schema: list[tuple[Any, ...]]) -> list[str]:
    """For each element below the root, in the order of a walk, the column that it is a part of."""
    names: list[str] = []
    inside = 0
    for name, *_, children in schema[1:]:
        names.append(names[-1] if inside else str(name))
        inside += (children or 0) - (1 if inside else 0)
    return names


def _top_level(schema: list[tuple[Any, ...]]) -> list[str]:
    """Names of the children of the root."""
    names, inside = [], 0
    for name, *_, children in schema[1:]:
        if inside:
            inside -= 1
        else:
            names.append(str(name))
        inside += children or 0
    return names


def csv_header(paths: Sequence[str]) -> tuple[str, list[str]]:
    """The delimiter and the names of the columns, from the first line alone; all files must have the same."""
    first = ""
    for path in paths:
        line = _first_line(path)
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


def _first_line(path: str) -> str:
    try:
        with gzip.open(path) if path.lower().endswith(".gz") else Path(path).open("rb") as file:
            return file.readline(1 << 20).decode("utf-8-sig").replace("\r", "\n").split("\n", 1)[0]
    except (OSError, UnicodeError, EOFError) as error:
        why = "is not in UTF-8" if isinstance(error, UnicodeError) else "cannot be read"
    raise SourceError(path, why, "See that it is a text file in UTF-8 that this user may read.")


def csv_rows(
    paths: Sequence[str], *, types: Mapping[str, str], run: Callable[[str], list[tuple[Any, ...]]]
) -> tuple[str, dict[str, str]]:
    """SQL that scans the files with every cell as text, and a type for each column.

    Types come from `types` (by lower-case name); the others are guessed from the first thousand rows, once: a type that
    nine cells of ten fit. Lines that cannot be split into cells, or are not UTF-8, are left out.

    A file is read from its beginning to its end by one thread. Several begin in the middle of it, and take a line break
    inside of a quoted cell, the middle of a line's end, or a line that is empty or too short, for the beginning of a
    row: which one, and so what is read of other people's rows, would depend on how many bytes stand before it.
    """
    delimiter, names = csv_header(paths)
    columns = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in names)
    options = (
        f"auto_detect=false, delim={literal(delimiter)}, quote='\"', escape='\"', header=true, "
        f"columns={{{columns}}}, ignore_errors=true, strict_mode=false, "
        f"parallel=false, {NO_PARTITIONS}"
    )
    undeclared = [name for name in names if name.lower() not in types]
    guessed = {}
    if undeclared:
        sample = f"read_csv({_listed(paths[:1])}, {options})"
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
    return f"(SELECT {cells} FROM read_csv({_listed(paths)}, {options}))", {**guessed, **types}


def distinct_names(source: str, names: Sequence[str]) -> None:
    """Refuse columns whose names SQL cannot tell apart; DuckDB would rename the second one."""
    seen: dict[str, str] = {}
    for name in names:
        if name.lower() in seen:
            why = f"has the columns '{seen[name.lower()]}' and '{name}', which SQL cannot tell apart"
            raise SourceError(source, why, "Rename one of them.")
        seen[name.lower()] = name


def _listed(paths: Sequence[str]) -> str:
    return f"[{', '.join(literal(path) for path in paths)}]"

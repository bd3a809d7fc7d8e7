"""Parquet files: the SQL that reads them without an error that depends on a value."""

from __future__ import annotations

from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.engines.names import distinct_names, literals, quoted
from discreet.engines.partitions import partitioning
from discreet.errors import EngineError, SourceError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

__all__ = ["parquet_rows"]

_FLOATS = ("DOUBLE", "FLOAT")
_BYTEWISE = ("VARCHAR", "DECIMAL", "UUID", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "TIMESTAMP")
_LOOKED_THROUGH = 1 << 28  # cells in columns of floats, or of texts: a second or two


def parquet_rows(
    paths: Sequence[str], *, leave_out: Collection[str], run: Callable[[str], list[tuple[Any, ...]]]
) -> str:
    """SQL that scans the files; files whose columns differ are refused.

    DuckDB would cast the values of the later files to the types of the first, and fail where one does not fit. Bytes of
    texts that are not UTF-8, against the format, are read as question marks. What every question does with these, and
    with a NaN, does not depend on other rows, and no condition is decided by a range that is wrong: see `_replaced`,
    `_with_nan` and `_disordered`.
    """
    listed = literals(paths)
    schemas: dict[str, list[tuple[Any, ...]]] = {}
    for file, *rest in run(
        f"SELECT file_name, name, type, converted_type, logical_type, num_children FROM parquet_schema({listed})"
    ):
        schemas.setdefault(file, []).append(tuple(rest))
    paths_as = partitioning(paths, _top_level(schemas[paths[0]]))
    different = {tuple(schema[1:]): file for file, schema in reversed(schemas.items())}
    if len(different) > 1:
        described = {
            file: [row[:2] for row in run(f"DESCRIBE SELECT * FROM read_parquet({literals([file])}, {paths_as})")]
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

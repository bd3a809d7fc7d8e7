"""How far an answer is from the truth: the median over groups of the relative error."""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING, Any

import duckdb

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from querying.questions import Question

Cells = dict[str, list[float]]
"""One answer: from the key, written as one word, to the values of the row."""


def connected(visits: Path, users: Path | None) -> duckdb.DuckDBPyConnection:
    """DuckDB with both tables as views on their files, or one of them."""
    connection = duckdb.connect()
    connection.execute(f"CREATE VIEW visits AS SELECT * FROM read_parquet('{visits}')")
    if users is not None:
        connection.execute(f"CREATE VIEW users AS SELECT * FROM read_parquet('{users}')")
    return connection


def cells(rows: Iterable[Sequence[Any]], keys: int) -> Cells:
    """Rows of a result, the first columns being keys; a missing value becomes NaN."""
    return {"|".join(map(str, row[:keys])): [math.nan if v is None else float(v) for v in row[keys:]] for row in rows}


def truth(question: Question, visits: Path, users: Path) -> Cells:
    """The answer without privacy."""
    return cells(connected(visits, users).execute(question.sql).fetchall(), len(question.keys))


def judged_keys(question: Question, true: Mapping[str, Sequence[float]]) -> list[str]:
    """All keys, or those of the largest groups where the question says so."""
    if question.judged is None:
        return list(true)
    by_size = sorted(true, key=lambda key: -true[key][-1])
    return by_size[: question.judged]


def relative_errors(
    question: Question, true: Mapping[str, Sequence[float]], answer: Mapping[str, Sequence[float]]
) -> dict[str, float]:
    """Per released column, the median of |answer - truth| / |truth| over the judged keys; a missing key counts as 1."""
    keys = judged_keys(question, true)
    found = {}
    for column, name in enumerate(question.values):
        errors = []
        for key in keys:
            value = answer[key][column] if key in answer else math.nan
            error = abs(value - true[key][column]) / abs(true[key][column]) if math.isfinite(value) else 1.0
            errors.append(error)
        found[name] = median(errors)
    return found


def covered(
    question: Question, true: Mapping[str, Sequence[float]], intervals: Sequence[Mapping[str, Sequence[float]]]
) -> dict[str, float]:
    """Per released column, the part of all released groups and runs whose interval holds the true value."""
    found = {}
    for column, name in enumerate(question.values):
        hits = [
            ends[2 * column] <= true[key][column] <= ends[2 * column + 1]
            for run in intervals
            for key, ends in run.items()
            if key in true
        ]
        found[name] = sum(hits) / len(hits) if hits else math.nan
    return found

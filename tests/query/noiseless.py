"""What a question would answer without noise and without bounds: the judge between a plan and DuckDB itself."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import duckdb

    from discreet.query.plan import Aggregate, Block, Question

FUNCTIONS = {
    "sum": "SUM({x})",
    "avg": "AVG({x})",
    "variance": "VAR_SAMP({x})",
    "variance_pop": "VAR_POP({x})",
    "stddev": "STDDEV_SAMP({x})",
    "stddev_pop": "STDDEV_POP({x})",
    "min": "MIN({x})",
    "max": "MAX({x})",
    "count_distinct": "COUNT(DISTINCT {x})",
}


def measured(aggregate: Aggregate) -> str:
    """The exact SQL of one aggregate over the rows of a block."""
    x = aggregate.argument
    if aggregate.function == "count":
        return f"COUNT({x or '*'})"
    if aggregate.function == "count_units":
        return f"COUNT(DISTINCT {f'CASE WHEN {x} IS NOT NULL THEN u END' if x else 'u'})"
    if aggregate.function == "quantile":
        sql = f"QUANTILE_CONT({x}, {aggregate.probability})"
    else:
        sql = FUNCTIONS[aggregate.function].format(x=x)
    if aggregate.function == "count_distinct":
        return sql
    if aggregate.kind == "date":
        return f"DATE '1970-01-01' + CAST({sql} AS INTEGER)"
    if aggregate.kind == "timestamp":
        return f"make_timestamp(CAST({sql} AS BIGINT))"
    return sql


def table_of(block: Block) -> str:
    """The SELECT that gives the table noisy_i, exactly: groups outside the public values are left out."""
    keys = [key.column for key in block.keys]
    shown = [*keys, *(f"{measured(one)} AS {one.column}" for one in block.aggregates)]
    sql = f"SELECT {', '.join(shown)} FROM ({block.rows})"
    return f"{sql} GROUP BY {', '.join(keys)}" if keys else sql


def answer(question: Question, engine: duckdb.DuckDBPyConnection) -> list[tuple[Any, ...]]:
    """The rows of the answer."""
    for i, block in enumerate(question.blocks):
        engine.execute(f"CREATE OR REPLACE TEMP TABLE noisy_{i} AS {table_of(block)}")
        for key in block.keys:
            if key.values is not None:
                found = engine.execute(f"SELECT DISTINCT {key.column} FROM noisy_{i}").fetchall()
                assert {row[0] for row in found} <= {*key.values, None}, (key.label, found)
    return engine.execute(question.after).fetchall()


def plain(value: Any) -> Any:
    """A cell in a form in which equal answers are equal: numbers of any type to ten digits, dates as timestamps."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float | decimal.Decimal):
        number = float(value)
        return number if not math.isfinite(number) or number == 0 else float(f"{number:.10g}")
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return dt.datetime.combine(value, dt.time())
    return value


def same(one: list[tuple[Any, ...]], other: list[tuple[Any, ...]], *, ordered: bool = False) -> bool:
    """Whether two answers have the same rows."""
    left, right = ([tuple(map(plain, row)) for row in rows] for rows in (one, other))
    if not ordered:
        left, right = sorted(left, key=repr), sorted(right, key=repr)
    return len(left) == len(right) and all(
        a == b or (isinstance(a, float) and isinstance(b, float) and math.isclose(a, b, rel_tol=1e-8, abs_tol=1e-9))
        for x, y in zip(left, right, strict=True)
        for a, b in zip(x, y, strict=True)
    )

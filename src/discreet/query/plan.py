"""The plan of a question: which private aggregates are taken, and what is done with their noisy answers.

    SQL text ──parse──▶ Question
                         ├── blocks: one private aggregation each (rows, keys, measures); the only way to the data
                         └── after:  SQL over the noisy tables alone; runs where the data is not

Everything about one person's rows happens in `Block.rows`; everything after the noise is post-processing and free.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

__all__ = ["Aggregate", "Block", "Key", "Output", "Question"]

# How the parts of rows are written that are made of columns alone.
MARK = r"t\d+"
COLUMN_NAME = r'"(?:[^"]|"")*"'
TABLE_COLUMN = rf"{MARK}\.{COLUMN_NAME}"
STORED = rf"(?:\w+\.)*{COLUMN_NAME}"
ONCE = rf"\(SELECT DISTINCT ON \({COLUMN_NAME}\) \* FROM {STORED}\)"
_TABLE = rf"(?:{STORED}|{ONCE}) AS {MARK}"
_SHOWN = rf"{TABLE_COLUMN} AS \w+"
_PRESENT = rf"(?:{TABLE_COLUMN} IS NOT NULL|\(NOT \({TABLE_COLUMN} IS NULL\)\))"
_JOINED = rf" JOIN {_TABLE} ON \({TABLE_COLUMN} = {TABLE_COLUMN}\)"
_PLAIN = re.compile(
    rf"SELECT (?:1|{_SHOWN}(?:, {_SHOWN})*) FROM {_TABLE}(?:{_JOINED})*(?: WHERE {_PRESENT}(?: AND {_PRESENT})*)?"
)


@dataclass(frozen=True)
class Key:
    """One column of GROUP BY.

    `column` is its name in `Block.rows` and in the noisy table (k0, k1, ...); `sql_type` its DuckDB type; `label` what
    the analyst wrote. `values` are the public values that appear in the answer whether anyone has them or not (None:
    which values exist is private, and they are selected). `of_unit` says that all rows of a unit share the value, by
    the operators above: the engine enforces it by taking one value for each unit. `inferred` says that nobody declared
    the values, NULL is none of them, and rows in which it is are in no group.
    """

    column: str
    sql_type: str
    label: str
    values: tuple[Any, ...] | None = None
    of_unit: bool = False
    inferred: bool = False

    @cached_property
    def digest(self) -> str:
        """What stands for type and values: lists may be long, and are asked about in question after question."""
        return hashlib.sha256(repr((self.sql_type, self.values, self.of_unit)).encode()).hexdigest()


@dataclass(frozen=True)
class Aggregate:
    """One aggregate function over the rows of a group.

    `function` is one of "count" (rows; with an argument: those where it is not NULL), "count_units", "count_distinct",
    "sum", "avg", "variance", "stddev" (sample versions; "variance_pop" and "stddev_pop" too), "min", "max", "quantile"
    (with `probability`). `argument` is the column of `Block.rows` (x0, x1, ...; DOUBLE or BIGINT for numbers) or None;
    `column` the name of the result in the noisy table (a0, a1, ...); `bounds` the public range of the argument, to
    which values are clamped, or None if it must be found privately. `kind` is "integer", "float", "date", "timestamp":
    dates travel as whole days and timestamps as whole microseconds since 1970, as BIGINT. `label` is the whole call and
    `of` its argument, as they were written. `values` is how many different values the argument of a distinct count can
    have, if that is public. `middle` says that values are measured from the middle of their bounds,
    and `centre` from where they are measured without bounds.
    """

    function: str
    column: str
    label: str
    argument: str | None = None
    bounds: tuple[float, float] | None = None
    probability: float | None = None
    kind: str = "float"
    of: str = ""
    values: int | None = None
    middle: bool = False
    centre: float = 0.0


@dataclass(frozen=True)
class Block:
    """One private aggregation: rows with their unit, keys to group by, and aggregates.

    `rows` is a DuckDB SELECT that yields the columns `u` (the unit, never NULL; absent at row level), those of the keys
    and those of the arguments. Evaluating it can raise no error that depends on the data. `rows_per_unit` is the number
    of rows that one unit can have at most, where the operators guarantee it (1 at row level without joins), else None.
    `row_level` says that the unit is the row: then there is no `u` and `rows_per_unit` is not None. `alone` has the
    `rows` for each argument without the others, under the name x, and for "" those without any: questions share them
    that differ in what else they ask. `vain` says which conditions no value meets that the policy knows.
    """

    rows: str
    keys: tuple[Key, ...]
    aggregates: tuple[Aggregate, ...]
    rows_per_unit: int | None = None
    row_level: bool = False
    tables: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    alone: tuple[tuple[str, str], ...] = ()
    vain: tuple[str, ...] = ()

    @property
    def repeatable(self) -> bool:
        """Whether the rows are the same whenever they are read, if those of the tables are: there is no subquery.

        What a subquery makes of several rows may depend on which of them comes first: 0.0 and -0.0 are one group, and
        are written differently.
        """
        return "(SELECT " not in self.rows

    @property
    def plain(self) -> bool:
        """Whether the rows are made of columns alone: of joined tables, not NULL, but nothing else is asked of them."""
        return _PLAIN.fullmatch(self.rows) is not None


@dataclass(frozen=True)
class Output:
    """One column of the final answer: its name, and the (block, aggregate column) it shows unchanged, if any."""

    name: str
    block: int | None = None
    column: str | None = None


@dataclass(frozen=True)
class Question:
    """A parsed question.

    `after` is a SELECT over the tables noisy_0, noisy_1, ... (columns of keys and aggregates) and public tables;
    `canonical` is the normalised text by which questions are recognised that measure the same, whatever is made of the
    noisy numbers; `options` what the SQL's own options clause said.
    """

    text: str
    canonical: str
    blocks: tuple[Block, ...]
    after: str
    outputs: tuple[Output, ...]
    public_tables: tuple[str, ...] = ()
    options: tuple[tuple[str, Any], ...] = ()

"""The tables that a question may name, with everything public that is known about them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Catalog", "Column", "Table"]


@dataclass(frozen=True)
class Column:
    """One column: its DuckDB type, and the bounds or the list of values that the policy declares public.

    `unique`, of a column of a public table: no value is there twice. A plan that relies on it also enforces it.
    """

    name: str
    sql_type: str
    bounds: tuple[Any, Any] | None = None
    keys: tuple[Any, ...] | None = None
    unique: bool = False


@dataclass(frozen=True)
class Table:
    """One table: public, or about units.

    `level` is "unit" (the column `unit` says whose row it is), "row" (every row is a unit of its own) or "public".
    `one_row` says that a unit has one row at most: a fact that the plan enforces where it relies on it.
    `relation` is what the engine calls it, already quoted.
    """

    name: str
    columns: tuple[Column, ...]
    relation: str
    level: str = "unit"
    unit: str | None = None
    one_row: bool = False

    def column(self, name: str) -> Column | None:
        """The column of this name, by SQL's rule for names: case does not matter."""
        return next((column for column in self.columns if column.name.lower() == name.lower()), None)


@dataclass(frozen=True)
class Catalog:
    """All tables by lower-case name."""

    tables: Mapping[str, Table] = field(default_factory=dict)

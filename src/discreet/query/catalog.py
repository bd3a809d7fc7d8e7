"""The tables that a question may name, with everything public that is known about them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["Catalog", "Column", "Table"]

_SHOWN = 8


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

    @property
    def facts(self) -> str:
        """What is public about its values, in words; nothing if there is nothing."""
        words = [] if self.bounds is None else [f"from {self.bounds[0]} to {self.bounds[1]}"]
        if self.keys is not None:
            listed = ", ".join(str(key).lower() if isinstance(key, bool) else str(key) for key in self.keys[:_SHOWN])
            more = f" and {len(self.keys) - _SHOWN} more" if len(self.keys) > _SHOWN else ""
            words.append(f"keys {listed}{more}")
        return "; ".join(words + ["unique"] * self.unique)


@dataclass(frozen=True)
class Table:
    """One table: public, or about units.

    `level` is "unit" (the column `unit` says whose row it is), "row" (every row is a unit of its own) or "public".
    `one_row` says that a unit has one row at most: a fact that the plan enforces where it relies on it.
    `relation` is what the engine calls it, already quoted. `notes` say what of its source is left out, by rule.
    """

    name: str
    columns: tuple[Column, ...]
    relation: str
    level: str = "unit"
    unit: str | None = None
    one_row: bool = False
    notes: tuple[str, ...] = ()

    def column(self, name: str) -> Column | None:
        """The column of this name, by SQL's rule for names: case does not matter."""
        return next((column for column in self.columns if column.name.lower() == name.lower()), None)

    @property
    def facts(self) -> str:
        """Whose rows it holds, in words."""
        if self.level == "public":
            return "public"
        if self.level == "row":
            return "every row is a unit"
        return f"unit {self.unit}" + (", one row for each" if self.one_row else "")


@dataclass(frozen=True, repr=False)
class Catalog:
    """All tables by lower-case name; `print` it to see what can be asked about.

    >>> days = Table("days", (Column("who", "BIGINT"), Column("n", "INTEGER", (0, 9))), "days", unit="who")
    >>> print(Catalog({"days": days}))
    days: unit who
      who  BIGINT
      n    INTEGER  from 0 to 9
    """

    tables: Mapping[str, Table] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Table]:
        return iter(self.tables.values())

    def __len__(self) -> int:
        return len(self.tables)

    def __repr__(self) -> str:
        lines = []
        for table in self.tables.values():
            lines.append(f"{table.name}: {table.facts}")
            names, types = (
                [len(text) for text in part]
                for part in zip(*((one.name, one.sql_type) for one in table.columns), strict=True)
            )
            lines += [
                f"  {column.name:{max(names)}}  {column.sql_type:{max(types)}}  {column.facts}".rstrip()
                for column in table.columns
            ]
        return "\n".join(lines)

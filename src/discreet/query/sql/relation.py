"""Relations: what FROM, WHERE and subqueries make, with the stability of each operator.

A relation that is about people carries the unit of every row along. Every operator keeps the rule on which privacy
rests: the rows of a unit are computed from rows of that unit and of public tables alone. So adding or removing one
person adds or removes exactly the rows that carry this person, and `rows_per_unit` says how many those can be.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from discreet.query.sql.text import quoted
from discreet.query.sql.value import Value, renamed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from discreet.query.sql.possible import Listing

__all__ = ["Field", "Relation", "Step", "alias_mark", "settled"]

OPEN, CLOSE = "\ue000", "\ue001"  # private-use characters: names of ours that no question can contain
PUBLIC_OPEN, PUBLIC_CLOSE = "\ue002", "\ue003"


def alias_mark(number: int) -> str:
    """A table alias that is numbered when the SQL around it is finished."""
    return f"{OPEN}{number}{CLOSE}"


def numbered(sql: str) -> str:
    """The SQL with its table aliases numbered t0, t1, ... in the order in which they appear."""
    pieces = sql.split(OPEN)
    names: dict[str, str] = {}
    out = [pieces[0]]
    for piece in pieces[1:]:
        mark, rest = piece.split(CLOSE, 1)
        out.append(names.setdefault(mark, f"t{len(names)}") + rest)
    return "".join(out)


@dataclass(frozen=True)
class Step:
    """One operator in words, for explanations: what it does and what one unit can change through it."""

    what: str
    stability: str = ""
    inputs: tuple[Step, ...] = ()

    def lines(self, indent: str = "") -> list[str]:
        """The operator and its inputs as an indented tree."""
        tail = f"  [{self.stability}]" if self.stability else ""
        return [f"{indent}{self.what}{tail}"] + [line for step in self.inputs for line in step.lines(indent + "  ")]


@dataclass(frozen=True)
class Field:
    """One visible column: its name, the table alias before the dot, and its value.

    `hidden`: it needs the alias. `apart`: it is the unit in another form, so that no two units share it.
    """

    name: str
    table: str
    value: Value
    hidden: bool = False
    apart: bool = False


@dataclass(frozen=True)
class Relation:
    """Rows that a question works on.

    `level` is "unit" (every row belongs to the unit `unit`), "row" (every row is a unit), "released" (noisy answers,
    alone or with public tables) or "public". `source` is what stands after FROM and `where` the conditions; `fields`
    are expressions over it. `tail` is ORDER BY and LIMIT. `scan`: it is one table and nothing else. `single`: it has
    exactly one row. `arbitrary`: what is in it may depend on an order of rows that nothing fixes. `declared` are pairs
    of SQL for tables that are declared to have one row for each unit: as it is, and with that enforced; `rows_per_unit`
    relies on the second. `numbered` are columns, in SQL, that number the rows of each unit: no two of them share one.
    `listings` are the public tables that its rows are joined to. `vain` says which conditions no value meets that the
    policy knows.
    """

    source: str
    fields: tuple[Field, ...]
    level: str
    where: tuple[str, ...] = ()
    unit: Value | None = None
    rows_per_unit: int | None = None
    tables: tuple[str, ...] = ()
    public_tables: tuple[str, ...] = ()
    tail: str = ""
    scan: bool = False
    single: bool = False
    arbitrary: bool = False
    declared: tuple[tuple[str, str], ...] = ()
    numbered: tuple[str, ...] = ()
    listings: tuple[Listing, ...] = ()
    vain: tuple[str, ...] = ()
    step: Step = field(default_factory=lambda: Step("nothing"))

    @property
    def private(self) -> bool:
        """Whether rows of people are in it."""
        return self.level in ("unit", "row")

    @property
    def simple(self) -> bool:
        """Whether conditions and expressions may be added to it as it is."""
        return not self.tail

    def named(self, table: str) -> Relation:
        """The same rows under another table alias."""
        return replace(self, fields=tuple(replace(one, table=table) for one in self.fields))

    def filtered(self, condition: str, step: Step | None = None) -> Relation:
        """The rows that meet a condition."""
        return replace(self, where=(*self.where, condition), step=step or self.step)

    def select(self, columns: Iterable[tuple[str, str]]) -> str:
        """The SELECT that gives these columns, each as (expression, name)."""
        shown = ", ".join(f"{sql} AS {name}" for sql, name in columns)
        where = f" WHERE {' AND '.join(dict.fromkeys(self.where))}" if self.where else ""
        source = f" FROM {self.source}" if self.source else ""
        return f"SELECT {shown or '1'}{source}{where}{self.tail}"


def settled(relation: Relation, mark: str) -> Relation:
    """The relation as a subquery with the alias `mark`: its columns have plain names, its conditions are inside."""
    unit = relation.unit
    names = ["u" if unit is not None and one.value.is_unit else f"c{i}" for i, one in enumerate(relation.fields)]
    columns = [] if unit is None else [(unit.sql, "u")]
    columns += [(one.value.sql, name) for one, name in zip(relation.fields, names, strict=True) if name != "u"]
    fields = tuple(
        replace(one, value=renamed(one.value, f"{mark}.{name}"))
        for one, name in zip(relation.fields, names, strict=True)
    )
    return replace(
        relation,
        source=f"({relation.select(columns)}) AS {mark}",
        fields=fields,
        where=(),
        tail="",
        scan=True,
        unit=renamed(unit, f"{mark}.u") if unit is not None else None,
        numbered=tuple(
            f"{mark}.{name}"
            for one, name in zip(relation.fields, names, strict=True)
            if one.value.sql in relation.numbered
        ),
    )


def public_mark(name: str) -> str:
    """A public table, whose name depends on where the SQL will run."""
    return f"{PUBLIC_OPEN}{name}{PUBLIC_CLOSE}"


def with_public(sql: str, named: Callable[[str], str]) -> str:
    """The SQL with the public tables under their names."""
    pieces = sql.split(PUBLIC_OPEN)
    out = [pieces[0]]
    for piece in pieces[1:]:
        name, rest = piece.split(PUBLIC_CLOSE, 1)
        out.append(named(name) + rest)
    return "".join(out)


def is_plain(value: Value) -> bool:
    """Whether the value is a column of a table: everything computed stands in parentheses or begins with a name."""
    return value.sql.startswith(OPEN)


def column_sql(mark: str, name: str) -> str:
    """A column of the table with alias `mark`."""
    return f"{mark}.{quoted(name)}"

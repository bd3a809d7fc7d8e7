"""What the owner of the data declares public: where tables are, whose rows they hold, and what is known of columns."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.arguments import count, real, truth, words
from discreet.engines.encodings import known_encoding
from discreet.engines.names import closest, plain_type, quoted
from discreet.errors import InvalidArgument, PolicyError
from discreet.ledger.names import BOUNDS
from discreet.ledger.names import name as checked_name
from discreet.query.sources import OWN, by_name, in_csv, public_sources, sources_of, table_name

if TYPE_CHECKING:
    from datetime import timedelta

    from discreet.accounting import Budget
    from discreet.engines import Engine
    from discreet.query.catalog import Catalog

__all__ = ["USUAL_SHARE", "ColumnPolicy", "Policy", "TablePolicy", "checked_share", "placed"]

EVERYBODY = "*"
USUAL_SHARE = 0.1
"""Of the budget, for bounds for everybody, where the owner says nothing about it."""
_SHOWN = 5
_SHARE = "pass the share of the budget from which bounds are found, such as 0.1; 0 leaves that to each question"
_HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class ColumnPolicy:
    """What is public about one column; everything is optional.

    `type` is the DuckDB type to read it as (values that do not convert become NULL). `bounds` are the ends of the range
    to which values are clamped. `keys` lists the values by which rows can be grouped without selecting them privately,
    or `keys_from` names a column of a public table that has them, as "table.column". A `unique` column of a public
    table has every value once: a row that is joined to it stays one row. A `hidden` column does not exist for analysts.
    """

    type: str | None = None
    bounds: Sequence[Any] | None = None
    keys: Sequence[Any] | None = None
    keys_from: str | None = None
    hidden: bool = False
    unique: bool = False

    def __post_init__(self) -> None:
        for name in ("hidden", "unique"):
            truth(name, getattr(self, name))
        if self.type is not None:
            object.__setattr__(self, "type", plain_type("type", self.type))
        if self.bounds is not None:
            if not _is_list(self.bounds) or len(self.bounds) != 2:
                raise InvalidArgument("bounds", self.bounds, "write [lower, upper]")
            object.__setattr__(self, "bounds", tuple(self.bounds))
        if self.keys is not None:
            if not _is_list(self.keys):
                raise InvalidArgument("keys", self.keys, "write a list of values")
            object.__setattr__(self, "keys", tuple(self.keys))
        if self.keys is not None and self.keys_from is not None:
            raise InvalidArgument("keys_from", self.keys_from, "give keys or keys_from, not both")
        if self.keys_from is not None:
            advice = "write 'table.column' of a public table"
            if not all(words("keys_from", self.keys_from, advice=advice).partition(".")):
                raise InvalidArgument("keys_from", self.keys_from, advice)
        if self.hidden and (self.bounds is not None or self.keys is not None or self.keys_from is not None):
            raise InvalidArgument("hidden", True, "a hidden column cannot be queried: leave out bounds and keys")
        if self.hidden and self.unique:
            raise InvalidArgument("hidden", True, "a hidden column cannot be joined to: leave out unique")


@dataclass(frozen=True)
class TablePolicy:
    """Where a table is and whose rows it holds.

    `source` is a path or pattern, a list of them, or a table in memory; `table` names the table of a database. `unit`
    is the column that says whose row it is, or "row" if every row is about somebody else; a `public` table protects
    nobody. `rows_per_unit = 1` declares that a unit has one row at most; `max_groups` and `max_rows` are the default
    limits on how many groups, and rows in each, one unit can count in. `encoding` is that of CSV files which are not in
    UTF-8.
    """

    source: Any
    table: str | None = None
    unit: str | None = None
    public: bool = False
    rows_per_unit: int | None = None
    max_groups: int | None = None
    max_rows: int | None = None
    columns: Mapping[str, ColumnPolicy] = field(default_factory=dict)
    encoding: str | None = None

    def __post_init__(self) -> None:
        if self.encoding is not None:
            object.__setattr__(self, "encoding", known_encoding(self.encoding))
        if isinstance(self.source, list):
            object.__setattr__(self, "source", tuple(self.source))
        if truth("public", self.public) == (self.unit is not None):
            raise InvalidArgument(
                "unit",
                self.unit,
                "say whose rows they are: unit = the column that identifies a person, unit = 'row' if every row is "
                "about another person, or public = true if no row is about anybody (one of these)",
            )
        if self.unit is not None:
            quoted(self.unit)
        for name in ("rows_per_unit", "max_groups", "max_rows"):
            value = getattr(self, name)
            if value is None:
                continue
            if self.level != "unit":
                raise InvalidArgument(name, value, f"it limits units with several rows; here {self._why()}")
            object.__setattr__(self, name, count(name, value, least=1))
        if self.rows_per_unit not in (None, 1):
            raise InvalidArgument("rows_per_unit", self.rows_per_unit, "write 1, or leave it out and set max_rows")
        object.__setattr__(self, "columns", by_name("columns", self.columns, "{'age': ColumnPolicy(...)}"))
        if not self.public and any(column.unique for column in self.columns.values()):
            raise InvalidArgument(
                "unique",
                True,
                "only a public table is looked at to check it; where nobody has two rows, write rows_per_unit = 1",
            )
        folded: dict[str, str] = {}
        for name in self.columns:
            if name.lower() in folded:
                raise InvalidArgument("columns", name, f"'{folded[name.lower()]}' is the same column: case is ignored")
            folded[name.lower()] = name

    @property
    def level(self) -> str:
        """Who is protected: "unit" (all rows of a unit), "row" (each row), or "public" (nobody)."""
        return "public" if self.public else "row" if self.unit is not None and self.unit.lower() == "row" else "unit"

    def _why(self) -> str:
        return "the table is public" if self.public else "every row is a unit of its own"


@dataclass(frozen=True)
class Policy:
    """The tables of a data set by name, with its budget and the path of its ledger, if they are declared here.

    `name` identifies the data set in the ledger; `analysts` are budgets of those who ask, by name, with `"*"` for
    everybody who is not named; `origin` is said in errors. `period` is how often the budget begins again, if it does,
    and `periods` the same of the budgets of analysts. `shared` gives everybody who has no budget of their own, at no
    cost, what anybody has paid for: stored answers, and bounds that were chosen. `ledger_key` is the file of the
    ledger's key, if it has one. `ledger_origin` is the hash of the ledger's first entry: no other ledger is used, and
    none is made. `bounds_share` is the share of the budget from which bounds on what a unit contributes are found, once
    for everybody; 0 leaves that to each question. Where it is not stated it is `USUAL_SHARE`, or what the ledger has,
    for whoever has no budget of their own.

    >>> import pyarrow
    >>> from discreet.query import ColumnPolicy, Policy, TablePolicy
    >>> people = pyarrow.table({"id": [1, 2], "age": [31, 47]})
    >>> age = ColumnPolicy(bounds=(0, 120))
    >>> Policy("clinic", {"people": TablePolicy(people, unit="id", columns={"age": age})}).protects
    {'people': 'id'}
    """

    name: str
    tables: Mapping[str, TablePolicy]
    budget: Budget | None = None
    ledger: Path | None = None
    origin: str = "policy"
    analysts: Mapping[str, Budget] = field(default_factory=dict)
    period: timedelta | None = None
    periods: Mapping[str, timedelta] = field(default_factory=dict)
    shared: bool = False
    ledger_key: Path | None = None
    ledger_origin: str | None = None
    bounds_share: float | None = None

    def __post_init__(self) -> None:
        truth("shared", self.shared)
        if self.bounds_share is not None:
            object.__setattr__(self, "bounds_share", checked_share(self.bounds_share))
        if self.ledger_origin is not None and not _HASH.fullmatch(str(self.ledger_origin)):
            raise InvalidArgument(
                "ledger_origin",
                self.ledger_origin,
                "write the 64 hexadecimal digits that `discreet query explain --json` shows as ledger_origin",
            )
        if self.shared and EVERYBODY in self.analysts:
            raise InvalidArgument(
                "shared", True, f"the budget of '{EVERYBODY}' in analysts bounds what each of them sees: leave out one"
            )
        words("name", self.name, advice="give the data set a name: the ledger knows it by that")
        object.__setattr__(self, "tables", by_name("tables", self.tables, "{'visits': TablePolicy(...)}"))
        object.__setattr__(self, "analysts", _by_analyst(self.analysts))
        object.__setattr__(self, "periods", _by_analyst(self.periods))
        for name in self.periods:
            if name not in self.analysts:
                raise InvalidArgument("periods", name, "give this analyst a budget, too")
        if all(table.public for table in self.tables.values()):
            raise InvalidArgument("tables", list(self.tables), "declare at least one table that is not public")
        folded: dict[str, str] = {}
        for name in self.tables:
            quoted(name)
            if name.lower() in folded:
                raise InvalidArgument("tables", name, f"'{folded[name.lower()]}' is the same table: case is ignored")
            if OWN.fullmatch(name):
                raise InvalidArgument(
                    "tables", name, "choose another name: noisy_0, noisy_1, ... and q__... are names of answers"
                )
            folded[name.lower()] = name

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Policy:
        """The policy of a TOML or YAML file; paths are relative to the file, and errors name file, table and field."""
        from discreet.query.policy_file import read_policy

        return read_policy(Path(path))

    @classmethod
    def of(
        cls,
        source: Any,
        *,
        unit: str,
        name: str | None = None,
        table: str | None = None,
        public: Mapping[str, Any] | None = None,
        columns: Mapping[str, ColumnPolicy | Mapping[str, Any]] | None = None,
        rows_per_unit: int | Mapping[str, int] | None = None,
        max_groups: int | Mapping[str, int] | None = None,
        max_rows: int | Mapping[str, int] | None = None,
        encoding: str | None = None,
        budget: Budget | None = None,
        bounds_share: float | None = None,
    ) -> Policy:
        """The policy of one source without a file: paths, a pattern, a database, a table in memory, or a mapping.

        The table is called `name`, or after the file ("data" in memory). Of a database, `table` is read, or else all
        tables that have the column `unit`. A mapping has several sources by name, which share `unit`; `name` is then
        what the ledger calls all of them. A limit is one for all of them, or one for each by name:
        `rows_per_unit={"people": 1}`. `public` has tables by name that are about nobody.
        Where there are several tables, `columns` are named as "table.column"; those of the only one with a unit need
        no table. `encoding` is that of all CSV files. `bounds_share` is said at `Policy`.
        """
        given: object = unit
        if given is not None and not (isinstance(given, str) and given):
            raise InvalidArgument(
                "unit",
                unit,
                "pass the name of one column, or 'row'; make one column of several that identify a person, and write a "
                "policy for tables with units of their own",
            )
        sources = sources_of(source, name=name, table=table, unit=unit)
        about_nobody = public_sources(public, people=sources)
        encoded = in_csv([*sources.items(), *about_nobody.items()], encoding)
        declared = _columns({} if columns is None else columns, people=list(sources), tables=[*sources, *about_nobody])
        stated = {"rows_per_unit": rows_per_unit, "max_groups": max_groups, "max_rows": max_rows}
        limits = {argument: _limits(argument, value, list(sources)) for argument, value in stated.items()}
        tables = {
            key: TablePolicy(
                source=one,
                table=stored,
                unit=unit,
                rows_per_unit=limits["rows_per_unit"].get(key),
                max_groups=limits["max_groups"].get(key),
                max_rows=limits["max_rows"].get(key),
                columns=declared[key],
                encoding=encoded.get(key),
            )
            for key, (one, stored) in sources.items()
        }
        tables |= {
            key: TablePolicy(one, stored, public=True, columns=declared[key], encoding=encoded.get(key))
            for key, (one, stored) in about_nobody.items()
        }
        title = name or (next(iter(tables)) if len(sources) == 1 else table_name(source))
        origin = Path(os.fsdecode(source)).name if isinstance(source, str | os.PathLike) else "the data"
        return cls(name=title, tables=tables, budget=budget, origin=origin, bounds_share=bounds_share)

    def limit(self, analyst: str) -> Budget | None:
        """The budget of one analyst: their own, or that of everybody who is not named, if there is one.

        That of bounds for everybody is no analyst's, and depends on the budget of the data (see `limits`).
        """
        return None if analyst == BOUNDS else self.analysts.get(analyst, self.analysts.get(EVERYBODY))

    def renewal(self, analyst: str) -> timedelta | None:
        """How often the budget of one analyst begins again; None if it does not."""
        return self.periods.get(analyst if analyst in self.analysts else EVERYBODY)

    @property
    def protects(self) -> dict[str, str]:
        """Whom the data set protects: the unit of every table that is not public, as the ledger keeps it."""
        return {name.lower(): table.unit.lower() for name, table in self.tables.items() if table.unit is not None}

    def resolve(self, engine: Engine) -> Catalog:
        """The catalog: sources are registered, schemas read, and every declaration checked against them.

        No row of a table with a unit decides anything, except where the types of a CSV file have to be guessed.
        """
        from discreet.query.resolve import resolve

        return resolve(self, engine)


def checked_share(share: object) -> float:
    """A share of the budget, below all of it."""
    if not 0 <= real("bounds_share", share, advice=_SHARE) < 1:
        raise InvalidArgument("bounds_share", share, _SHARE)
    return real("bounds_share", share)


def _limits(argument: str, value: Any, people: list[str]) -> dict[str, Any]:
    """A limit for each table about people: the same for all, or those that are stated by name."""
    if not isinstance(value, Mapping):
        return dict.fromkeys(people, value)
    known = {name.lower(): name for name in people}
    for name in value:
        if not isinstance(name, str) or name.lower() not in known:
            raise InvalidArgument(argument, name, f"name a table about people: {', '.join(people)}")
    return {known[name.lower()]: limit for name, limit in value.items()}


def placed(where: str, error: InvalidArgument) -> PolicyError:
    """What is wrong with a declaration, said at its place in the policy."""
    joint = "" if where.endswith(" ") else "."
    place = where if "," in error.argument else f"{where}{joint}{error.argument}"
    advice = f"{error.advice[:1].upper()}{error.advice[1:]}"
    what = "it is missing" if error.value is None else f"{error.value!r:.80} is not allowed"
    return PolicyError(place, what, advice if advice.endswith(".") else f"{advice}.")


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _columns(
    columns: Mapping[str, ColumnPolicy | Mapping[str, Any]], *, people: Sequence[str], tables: Sequence[str]
) -> dict[str, dict[str, ColumnPolicy]]:
    """The columns that are declared of each table: those of the only one of people, else those named "table.column"."""
    found: dict[str, dict[str, ColumnPolicy]] = {table: {} for table in tables}
    folded = {table.lower(): table for table in tables}
    for name, facts in by_name("columns", columns, "{'age': {'bounds': (0, 120)}}").items():
        alone = len(tables) == 1 or (len(people) == 1 and "." not in name)
        table, _, column = (people[0], "", name) if alone else name.partition(".")
        if table.lower() not in folded or not column:
            advice = f"there are several tables: write 'table.column'. {closest(table, tables)}"
            if "." not in name:
                listed = ", ".join(f"'{one}.{name}'" for one in people[:_SHOWN]) + ", …" * (len(people) > _SHOWN)
                advice = f"there are several tables: say which one has the column, as one of {listed}"
            raise InvalidArgument("columns", name, advice)
        found[folded[table.lower()]][column] = _column(name, facts)
    return found


def _by_analyst(given: Mapping[str, Any]) -> dict[str, Any]:
    """What is said of analysts, by their names as the ledger writes them."""
    found: dict[str, Any] = {}
    for analyst, said in given.items():
        name = checked_name("analysts", analyst)
        if name == BOUNDS:
            raise InvalidArgument(
                "analysts", analyst, "that is what bounds for everybody are paid as: set bounds_share"
            )
        if name in found:
            raise InvalidArgument("analysts", analyst, "name every analyst once")
        found[name] = said
    return found


def _column(name: str, facts: ColumnPolicy | Mapping[str, Any]) -> ColumnPolicy:
    if isinstance(facts, ColumnPolicy):
        return facts
    known = list(ColumnPolicy.__dataclass_fields__)
    if not isinstance(facts, Mapping):
        raise InvalidArgument(f"columns['{name}']", facts, f"write a mapping such as {{'bounds': (0, 100)}}: {known}")
    for key in facts:
        if key not in known:
            raise PolicyError(f"columns['{name}']", f"unknown field '{key}'", closest(str(key), known))
    return ColumnPolicy(**facts)

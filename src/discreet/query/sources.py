"""What is passed in place of a policy: sources by name, and names for those that have none."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from discreet.arguments import words
from discreet.engines.frames import unreadable
from discreet.engines.names import closest
from discreet.engines.paths import files_of, in_files
from discreet.errors import InvalidArgument

__all__ = ["OWN", "by_name", "in_csv", "public_sources", "sources_of", "table_name"]

OWN = re.compile(r"noisy_\d+|q__.*", re.IGNORECASE)
"""Names of tables that are the engine's and the answers' own."""

_FILES = (".toml", ".yaml", ".yml")


def sources_of(source: Any, *, name: str | None, table: str | None, unit: str) -> dict[str, tuple[Any, str | None]]:
    """Tables by name, each with its source and the table of a database."""
    if name is not None:
        words("name", name, advice="give the data a name, as text: questions and the ledger know it by that")
    if table is not None:
        words("table", table, advice="pass the name of a table of the database, as text")
    if isinstance(source, Mapping):
        if table is not None:
            raise InvalidArgument("table", table, "a mapping of sources names its tables itself")
        if any(_is_column(one) or (key == unit and isinstance(one, list)) for key, one in source.items()):
            raise unreadable(source)
        named = by_name("source", source, "{'visits': 'visits.csv', 'patients': 'patients.csv'}")
        return {key: (one, _stored(key, one)) for key, one in named.items()}
    if in_files(source):
        for text in map(os.fsdecode, [source] if isinstance(source, str | os.PathLike) else source):
            if text.lower().endswith(_FILES):
                raise InvalidArgument("source", text, "this is a policy: use Policy.load, which takes no unit")
        files = files_of(source)
        if files.kind == "database":
            database = files.paths[0]
            if table is not None:
                return {name or table.rpartition(".")[2]: (database, table)}
            return _tables_with(unit, database)
    elif table is not None:
        raise InvalidArgument(
            "table", table, "only a database has tables to choose from; name= is what questions call it"
        )
    return {name or table_name(source): (source, table)}


def public_sources(public: Mapping[str, Any] | None, *, people: Mapping[str, Any]) -> dict[str, tuple[Any, str | None]]:
    """The sources that are public, by name, each with the table of a database."""
    given = {} if public is None else by_name("public", public, "{'cities': 'cities.csv'}")
    found = {key: (source, _stored(key, source)) for key, source in given.items()}
    for key in found:
        if key.lower() in (name.lower() for name in people):
            raise InvalidArgument("public", key, "this is the name of a table with a unit: it cannot be public, too")
    return found


def in_csv(sources: list[tuple[str, tuple[Any, str | None]]], encoding: str | None) -> dict[str, str]:
    """The encoding of the sources that are CSV files, by name, if one is declared."""
    if encoding is None:
        return {}
    found = {key: encoding for key, (one, _) in sources if in_files(one) and files_of(one).kind == "csv"}
    if not found:
        raise InvalidArgument("encoding", encoding, "leave it out: only CSV files have one")
    return found


def by_name(argument: str, given: Any, example: str) -> dict[str, Any]:
    """What is said by name."""
    if not isinstance(given, Mapping):
        raise InvalidArgument(argument, given, f"pass a mapping by name, such as {example}")
    for name in given:
        if not isinstance(name, str) or not name:
            raise InvalidArgument(argument, name, f"a name is a text, as in {example}")
    return dict(given)


def _is_column(source: Any) -> bool:
    """Whether it is one column, which many people put into a dict, and not a table."""
    if isinstance(source, list | tuple):
        return not in_files(source)
    return (hasattr(source, "__array__") or hasattr(source, "to_numpy")) and not hasattr(source, "columns")


def _stored(name: str, source: Any) -> str | None:
    """The table to read if the source is a database: the one of this name."""
    return name if in_files(source) and files_of(source).kind == "database" else None


def _tables_with(unit: str, database: str | os.PathLike[str]) -> dict[str, tuple[Any, str | None]]:
    """The tables of a database that have the unit; with unit = "row", all of them."""
    from discreet.engines import DuckDBEngine

    found: dict[str, tuple[Any, str | None]] = {}
    seen: list[str] = []
    with DuckDBEngine(threads=1) as engine:
        for position, stored in enumerate(engine.tables(database)):
            relation = engine.register(f"t{position}", database, table=stored)
            names = [column for column, _ in engine.schema(relation)]
            seen += names
            if unit.lower() == "row" or unit.lower() in (column.lower() for column in names):
                short = stored.rpartition(".")[2]
                found[stored if short in found else short] = (database, stored)
    if not found:
        raise InvalidArgument(
            "unit", unit, f"no table of the database has this column. {closest(unit, [*dict.fromkeys(seen)])}"
        )
    return found


def table_name(source: Any) -> str:
    """A name for the table of a source: "visits" for visits.parquet, visits/*.parquet and visits_*.csv.gz."""
    if not in_files(source) or not source:
        return "data"
    if not isinstance(source, str | os.PathLike):
        names = [Path(os.fsdecode(one)).name for one in source]
        same = next((i for i, signs in enumerate(zip(*names, strict=False)) if len(set(signs)) > 1), len(names[0]))
        source = Path(os.fsdecode(source[0])).parent / f"{names[0][:same].rstrip('0123456789')}*"
    path = Path(os.fsdecode(source))
    for part in (path.name, *(parent.name for parent in path.parents)):
        stem = re.split(r"[*?\[.]", part, maxsplit=1)[0].strip("_- ")
        if stem and not OWN.fullmatch(stem):
            return stem
    return "data"

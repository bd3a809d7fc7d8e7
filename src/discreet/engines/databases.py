"""`Databases`: the DuckDB files that an engine reads, and which of their tables can be asked about."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.engines.names import closest, literal, quoted
from discreet.errors import EngineError, SourceError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

__all__ = ["Databases"]


class Databases:
    """The databases that are attached to an engine, read-only; `run` runs a statement of the engine's own."""

    def __init__(self, run: Callable[[str], list[tuple[Any, ...]]]) -> None:
        self._run = run
        self._aliases: dict[str, str] = {}

    def tables(self, path: str) -> list[str]:
        """The tables of a database, as "name", or "schema.name" outside of the schema main."""
        return [_name(schema, table) for schema, table in self._stored(self._attached(path))]

    def rows(self, path: str, table: str, *, leave_out: Collection[str]) -> str:
        """SQL of a scan of a table; a view is refused, for a row of it may be made of many rows of a table.

        So is a generated column that is not left out: it is computed whenever it is read, and may fail on a value that
        was changed later, or give another value each time.
        """
        alias = self._attached(path)
        stored = self._stored(alias)
        found = [pair for pair in stored if table.lower() in (pair[1].lower(), f"{pair[0]}.{pair[1]}".lower())]
        if len(found) != 1:
            raise self._missing(path, alias, table, stored, several=bool(found))
        [(schema, name)] = found
        generated = self._run(
            f"SELECT column_name FROM duckdb_columns() WHERE {_is(alias, schema, name)} AND is_generated"
        )
        for (column,) in generated:
            if column.lower() not in leave_out:
                why = f"computes the column '{column}' of '{table}' while it is read, which may fail on a value"
                raise SourceError(path, why, "Hide the column, or store its values in a table.")
        return self._as_written(alias, schema, name)

    def _attached(self, path: str) -> str:
        resolved = str(Path(path).resolve())
        if resolved not in self._aliases:
            alias = f"source_{len(self._aliases)}"
            try:
                self._run(f"ATTACH {literal(resolved)} AS {quoted(alias)} (TYPE duckdb, READ_ONLY)")
            except EngineError:
                pass
            else:
                self._aliases[resolved] = alias
                return alias
            raise SourceError(
                path,
                "cannot be opened as a DuckDB database",
                "See that it is one, that this user may read it, and that no other process has it open for writing.",
            )
        return self._aliases[resolved]

    def _stored(self, alias: str) -> list[tuple[str, str]]:
        """Schemas and names of the tables."""
        return [
            (schema, table)
            for schema, table in self._run(
                f"SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = {literal(alias)} "
                "AND NOT internal ORDER BY schema_name, table_name"
            )
        ]

    def _missing(
        self, path: str, alias: str, table: str, stored: list[tuple[str, str]], *, several: bool
    ) -> SourceError:
        views = self._run(f"SELECT view_name FROM duckdb_views() WHERE database_name = {literal(alias)}")
        if any(table.lower() == view.lower() for (view,) in views):
            why = f"has '{table}' as a view, whose rows may be about many units each"
            return SourceError(path, why, "Name a table, or store the view's rows as one.")
        why = f"has {'more than one' if several else 'no'} table '{table}'"
        return SourceError(path, why, closest(table, [_name(schema, name) for schema, name in stored]))

    def _as_written(self, alias: str, schema: str, name: str) -> str:
        """The table with texts that are equal only if they are the same.

        Under a collation "Rome" and "rome" are one group, which looks as whoever came first has written it.
        """
        relation = f"{quoted(alias)}.{quoted(schema)}.{quoted(name)}"
        [(definition,)] = self._run(f"SELECT sql FROM duckdb_tables() WHERE {_is(alias, schema, name)}")
        if "collate" not in str(definition).lower():
            return relation
        columns = self._run(f"DESCRIBE SELECT * FROM {relation}")
        texts = [quoted(column) for column, kind, *_ in columns if kind == "VARCHAR"]
        replaced = ", ".join(f'{text} COLLATE "C" AS {text}' for text in texts)
        return f"(SELECT * REPLACE ({replaced}) FROM {relation})" if texts else relation


def _name(schema: str, table: str) -> str:
    return table if schema == "main" else f"{schema}.{table}"


def _is(alias: str, schema: str, table: str) -> str:
    """A condition on DuckDB's lists of tables and columns."""
    return f"database_name = {literal(alias)} AND schema_name = {literal(schema)} AND table_name = {literal(table)}"

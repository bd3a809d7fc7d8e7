"""DuckDB in this process: sources become relations that sessions read."""

from __future__ import annotations

import os
import re
import threading
import weakref
from typing import TYPE_CHECKING, Any

from discreet.arguments import count
from discreet.engines.calendar import calm as calmed
from discreet.engines.calendar import is_calm, is_written
from discreet.engines.copies import Copies
from discreet.engines.csv_files import csv_header, csv_rows
from discreet.engines.databases import Databases
from discreet.engines.encodings import in_utf8
from discreet.engines.failures import guarded
from discreet.engines.frames import frame_of, unreadable
from discreet.engines.inherited import Holder
from discreet.engines.listings import Listings
from discreet.engines.names import closest, distinct_names, literal, literals, plain_type, quoted
from discreet.engines.packed import Packed
from discreet.engines.parquet import parquet_rows
from discreet.engines.paths import files_of, in_files
from discreet.engines.ranges import PASS, Ranges
from discreet.engines.session import DuckDBSession, scan_frame, stored_name
from discreet.engines.spill import Spill
from discreet.errors import EngineError, InvalidArgument, SourceError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from types import TracebackType
    from typing import Self

    import numpy as np
    import pyarrow as pa

    from discreet.engines.paths import Files, Paths

__all__ = ["DuckDBEngine"]

# Nothing is fetched, loaded or found by name from outside, and no result depends on where or when it runs.
_CONFIGURATION = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "allow_persistent_secrets": False,
    "python_enable_replacements": False,
    "perfect_ht_threshold": 16,  # bits of keys of groups that are counted in an array, and not in a hash table
}
_MOST_THREADS = 1024
"""DuckDB ends the process where there is no memory for so many."""
_FULL = {"TIMESTAMPTZ": "TIMESTAMP WITH TIME ZONE", "DATETIME": "TIMESTAMP"}
_ENUM = re.compile(r"ENUM\((?:'(?:[^']|'')*'(?:, )?)*\)")


class DuckDBEngine(Holder):
    """An in-memory DuckDB that reads the registered sources and nothing else.

    Register sources first; the first session seals the engine: from then on it can open no other file, load nothing
    and change none of its settings. CSV files are read then, and kept (see `Copies`), Parquet files later (see
    `Packed`). Every thread takes a session of its own. What does not fit into `memory_limit` ("4GB", say) goes to a
    folder that only this user can read and that is removed at the end (see `Spill`).
    """

    def __init__(self, *, memory_limit: str | None = None, threads: int | None = None) -> None:
        import duckdb

        super().__init__()
        spill = Spill()
        self._finalizer = weakref.finalize(self, spill.remove)
        self._folder = spill.path
        configuration: dict[str, Any] = {**_CONFIGURATION, "temp_directory": spill.path}
        if memory_limit is not None:
            configuration["memory_limit"] = memory_limit
        if threads is not None:
            configuration["threads"] = count("threads", threads, least=1)
            if configuration["threads"] > _MOST_THREADS:
                raise InvalidArgument("threads", threads, f"pass at most {_MOST_THREADS}")
        try:
            self._root = duckdb.connect(":memory:", config=configuration)
        except duckdb.Error:
            self._finalizer()
            raise InvalidArgument("memory_limit", memory_limit, "write a size such as '4GB' or '512MB'") from None
        self._root.execute("SET GLOBAL TimeZone = 'UTC'")
        self._root.execute("SET GLOBAL parquet_metadata_cache = true")  # files that change are refused by whoever asks
        self._lock = threading.RLock()
        self._sealed = False
        self._names: set[str] = set()
        self._types: dict[str, dict[str, str]] = {}
        self._frames: dict[str, tuple[Any, str]] = {}
        self._allowed: list[str] = []
        self._databases = Databases(self._run)
        self._listings = Listings()
        self._copies = Copies(self._run)
        self._packed = Packed(self._run)
        self._settings = self._root.cursor()
        self._ranges = Ranges(self._by_range)

    def register(
        self,
        name: str,
        source: object,
        *,
        table: str | None = None,
        types: Mapping[str, str] | None = None,
        leave_out: Collection[str] = (),
        encoding: str | None = None,
    ) -> str:
        """Make a source a relation, and give the name by which SQL reads it, already quoted.

        `source` is the path of Parquet or CSV files (also a pattern, or a directory of Parquet files), that of a DuckDB
        database together with a `table` of it, or an Arrow table, data set or reader, a pandas or a Polars frame.
        `types` gives columns other types than they are stored with: values that do not convert become NULL. The columns
        in `leave_out` are no part of the relation. `encoding` is that of CSV files which are not in UTF-8. Dates
        outside of the years 1 to 9999 become NULL. No row is read, except for those of CSV files and for Parquet
        columns of floats, texts, timestamps in milliseconds, times of day or JSON; of an Arrow data set, texts and what
        is not stored in the type that it is read as are read once.
        """
        wanted = {column.lower(): plain_type(f"type of {column}", kind) for column, kind in (types or {}).items()}
        view = quoted(name)
        with self._lock:
            if self._sealed:
                raise InvalidArgument("name", name, "the engine is sealed: register all sources before the first query")
            if name.lower() in self._names:
                raise InvalidArgument("name", name, "there is a table of this name; names differ by more than case")
            if name.lower().startswith("q__"):
                raise InvalidArgument(
                    "name", name, "choose another name: those that begin with q__ are the engine's own"
                )
            frame = frame_of(source)
            if encoding is not None and not (in_files(source) and files_of(source).kind == "csv"):
                raise SourceError(f"table '{name}'", "has no encoding", "Leave it out: only CSV files have one.")
            if frame is not None:
                relation = self._register_frame(name, frame, wanted=wanted, leave_out=leave_out)
            elif in_files(source):
                left = {column.lower() for column in leave_out}
                files = files_of(source)
                rows, wanted = self._rows_of_files(
                    source, files, table=table, wanted=wanted, leave_out=left, encoding=encoding
                )
                calm = self._calm(rows, left) if files.kind == "parquet" else ()
                projection = self._projection(name, rows, wanted=wanted, leave_out=leave_out, calm=calm)
                self._run(f"CREATE VIEW main.{view} AS SELECT {projection} FROM {rows}")
                if files.kind == "csv":
                    self._copies.add(view, files.paths)
                elif files.kind == "parquet":
                    self._packed.add(view, files.paths)
                relation = f"main.{view}"
            else:
                raise unreadable(source)
            self._names.add(name.lower())
        return relation

    def schema(self, relation: str) -> list[tuple[str, str]]:
        """Names and DuckDB types of the columns of a relation, without touching rows."""
        with self._lock:
            return [(row[0], row[1]) for row in self._run(f"DESCRIBE SELECT * FROM {relation}")]

    def stored_types(self, name: str) -> dict[str, str]:
        """The DuckDB types in which the source of a registered table has its columns, by lower-case name.

        They are not what `types` makes of them. A CSV file has texts.
        """
        return dict(self._types[name.lower()])

    def frame(self, name: str) -> Any | None:
        """The Arrow table or data set that a registered table is read from, if it is in memory."""
        return self._frames[name][0] if name in self._frames else None

    def tables(self, database: str | os.PathLike[str]) -> list[str]:
        """The tables of a DuckDB database, as "name", or "schema.name" outside of the schema main."""
        with self._lock:
            return self._databases.tables(files_of(database).paths[0])

    def seal(self) -> None:
        """End registration: no other file can be opened and no setting changed from here on."""
        with self._lock:
            if self._sealed:
                return
            self._copies.make()
            # Who was interrupted goes on here: of the paths nothing can be said any more once they are closed.
            if self._is_set("enable_external_access"):
                self._run("SET preserve_insertion_order = false")
                self._by_range(False)
                self._run("SET allowed_configs = ['disabled_optimizers']")
                self._run(f"SET allowed_paths = {literals(self._allowed)}")
                self._run("SET enable_external_access = false")
            if not self._is_set("lock_configuration"):
                self._run("SET lock_configuration = true")
            self._sealed = True

    def make_ready(self) -> None:
        """What can be done before a question: the first one seals the engine, a later one packs files (`Packed`)."""
        with self._lock:
            self.seal()
            self._packed.asked()

    def session(self) -> DuckDBSession:
        """A new session with its own temporary tables; the first one seals the engine."""
        with self._lock:
            self.seal()
            return DuckDBSession(
                guarded(self._root.cursor),
                frames=self._frames,
                listings=self._listings,
                ranges=self._ranges,
                steady=self._copies.steady,
            )

    def execute(self, sql: str) -> None:
        """Run a statement in a session of its own."""
        with self.session() as session:
            session.execute(sql)

    def table(self, sql: str) -> pa.Table:
        """The rows of a SELECT as an Arrow table, in a session of its own."""
        with self.session() as session:
            return session.table(sql)

    def numpy(self, sql: str) -> dict[str, np.ndarray[Any, Any]]:
        """The columns of a SELECT as arrays, in a session of its own; see `DuckDBSession.numpy`."""
        with self.session() as session:
            return session.numpy(sql)

    def close(self) -> None:
        """Let go of all sources and remove what was spilled to disk."""
        with self._lock:
            self._root.close()
            self._frames = {}
            self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _by_range(self, on: bool) -> None:
        """Let statements be planned by the ranges of columns, or not."""
        disabled = "" if on else PASS
        guarded(lambda: self._settings.execute(f"SET GLOBAL disabled_optimizers = {literal(disabled)}"))

    def _is_set(self, setting: str) -> bool:
        return bool(self._run(f"SELECT current_setting({literal(setting)})")[0][0])

    def _run(self, sql: str) -> list[tuple[Any, ...]]:
        return guarded(lambda: self._root.execute(sql).fetchall())

    def _register_frame(self, name: str, frame: Any, *, wanted: Mapping[str, str], leave_out: Collection[str]) -> str:
        distinct_names(f"table '{name}'", frame.schema.names)
        stored = stored_name(name)
        try:
            scan_frame(self._root, stored, frame=frame, projection="")
        except EngineError:
            stored = ""
        if not stored:
            types = ", ".join(dict.fromkeys(str(field.type) for field in frame.schema))
            raise SourceError(
                f"table '{name}'", f"has a type among {types} that DuckDB cannot read", "Cast the column."
            )
        projection = self._projection(name, f"temp.main.{quoted(stored)}", wanted=wanted, leave_out=leave_out)
        guarded(lambda: self._root.unregister(stored))
        if projection == ", ".join(quoted(column) for column in frame.schema.names):
            projection = ""  # nothing to cast or leave out: the frame can be scanned as it is
        self._frames[name] = (frame, projection)
        scan_frame(self._root, name, frame=frame, projection=projection)
        return f"temp.main.{quoted(name)}"

    def _rows_of_files(
        self,
        source: Paths,
        files: Files,
        *,
        table: str | None,
        wanted: dict[str, str],
        leave_out: Collection[str],
        encoding: str | None,
    ) -> tuple[str, dict[str, str]]:
        """SQL of a scan of the files that a source means, and the types to cast to."""
        if (files.kind == "database") != (table is not None):
            raise SourceError(
                files.paths[0],
                "is a database" if files.kind == "database" else "is not a database",
                "Say which table of it to read." if files.kind == "database" else "Leave out `table`.",
            )
        try:
            if table is not None:
                return self._databases.rows(files.paths[0], table, leave_out=leave_out), wanted
            if files.kind == "csv":
                header = csv_header(files.paths, encoding=encoding)
                read = [in_utf8(path, encoding=encoding, folder=self._folder) for path in files.paths]
                self._allowed.extend(read)
                return csv_rows(read, header, types=wanted, run=self._run)
            self._allowed.extend(files.paths)
            return parquet_rows(files.paths, leave_out=leave_out, run=self._run), wanted
        except EngineError:
            reason = f"cannot be read as {files.kind.capitalize() if files.kind != 'csv' else 'CSV'}"
        shown = next((path for path in files.paths if files.kind == "parquet" and not self._has_schema(path)), None)
        if shown is None:
            shown = os.fsdecode(source) if isinstance(source, str | os.PathLike) else "one of the files"
        raise SourceError(shown, reason, "See that the file is whole and that this user may read it.")

    def _has_schema(self, path: str) -> bool:
        try:
            self._run(f"SELECT count(*) FROM parquet_schema({literal(path)})")
        except EngineError:
            return False
        return True

    def _calm(self, rows: str, leave_out: Collection[str]) -> tuple[str, ...]:
        """The columns whose dates and times are all such as a calendar has: Parquet files state their ranges."""
        asked = {
            row[0]: is_calm(quoted(row[0]), row[1])
            for row in self._run(f"DESCRIBE SELECT * FROM {rows}")
            if row[0].lower() not in leave_out
        }
        asked = {column: sql for column, sql in asked.items() if sql is not None}
        if not asked:
            return ()
        [found] = self._run(f"SELECT {', '.join(map(str, asked.values()))} FROM {rows}")
        return tuple(column for column, is_so in zip(asked, found, strict=True) if is_so)

    def _projection(
        self,
        name: str,
        rows: str,
        *,
        wanted: Mapping[str, str],
        leave_out: Collection[str],
        calm: Collection[str] = (),
    ) -> str:
        """The columns of the relation: as stored, or cast where another type is wanted.

        The labels of an ENUM are values (those of a categorical column are taken from its rows), so such columns are
        texts here. Dates that no calendar has are NULL; columns that are known to have none of them are read as they
        are, for the engine is quicker with a column than with an expression.
        """
        columns = [(row[0], row[1]) for row in self._run(f"DESCRIBE SELECT * FROM {rows}")]
        self._types[name.lower()] = {column.lower(): kind for column, kind in columns}
        known = {column.lower() for column, _ in columns}
        left = {column.lower() for column in leave_out}
        for column in (*wanted, *left):
            if column not in known:
                advice = closest(column, [other for other, _ in columns])
                raise SourceError(f"table '{name}'", f"has no column '{column}'", advice)
        if known <= left:
            raise SourceError(f"table '{name}'", "has no column that is not left out", "Keep at least one.")
        parts = []
        for column, kind in columns:
            if column.lower() in left:
                continue
            value, stored = (quoted(column), kind) if column in calm else calmed(quoted(column), kind)
            target = wanted.get(column.lower(), _ENUM.sub("VARCHAR", stored))
            if target != stored:
                if column.lower() in wanted and not is_written(stored):
                    why = f"has times inside of the column '{column}', which cannot be read as {target}"
                    raise SourceError(f"table '{name}'", why, "Store them in columns of their own, or hide the column.")
                if stored == "BIGNUM":  # TRY_CAST ends the whole database where one does not fit
                    value = f"CAST({value} AS VARCHAR)"
                value, _ = calmed(f"TRY_CAST({value} AS {target})", _FULL.get(target, target))
            parts.append(value if value == quoted(column) else f"{value} AS {quoted(column)}")
        return ", ".join(parts)

"""`DuckDBSession`: a cursor that runs SQL over the registered tables and gives Arrow tables and arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.engines.arrow import array_of, in_order, taken
from discreet.engines.failures import guarded
from discreet.engines.names import quoted
from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType
    from typing import Self, TypeVar

    import duckdb
    import pyarrow as pa

    from discreet.engines.listings import Listings
    from discreet.engines.ranges import Ranges

    T = TypeVar("T")

__all__ = ["DuckDBSession", "scan_frame", "stored_name"]

_NUMBERS: dict[str, type[np.generic]] = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"), np.int64),
    **dict.fromkeys(("FLOAT", "DOUBLE"), np.float64),
}
_BATCH = 1 << 16  # rows that are counted at a time, while the engine makes more
_GROUPS = 1 << 16  # rows with texts that are looked at at a time: the texts of a batch have to fit into 2 GiB


class DuckDBSession:
    """A cursor with the tables of its engine; temporary tables live as long as it does. For one thread at a time."""

    def __init__(
        self,
        cursor: duckdb.DuckDBPyConnection,
        *,
        frames: Mapping[str, tuple[Any, str]],
        listings: Listings,
        ranges: Ranges,
        steady: bool,
    ) -> None:
        self._cursor, self._listings, self._ranges, self.steady = cursor, listings, ranges, steady
        for name, (frame, projection) in frames.items():
            scan_frame(cursor, name, frame=frame, projection=projection)

    def execute(self, sql: str, *, plain: bool = False) -> None:
        """Run a statement that returns nothing, such as CREATE TEMP TABLE; for `plain` see `Ranges`."""
        self._run(lambda: self._cursor.execute(sql), plain=plain)

    def table(self, sql: str, *, plain: bool = False) -> pa.Table:
        """The rows of a SELECT as an Arrow table; HUGEINT comes as decimal128(38, 0), exactly."""
        return self._run(lambda: self._cursor.sql(sql).to_arrow_table(), plain=plain)

    def numpy(self, sql: str, *, plain: bool = False) -> dict[str, np.ndarray[Any, Any]]:
        """The columns of a SELECT as arrays.

        Integers of any width are exact: int64, or Python ints in an object array where one does not fit. A column with
        NULL is an object array with None.
        """
        table = self.table(sql, plain=plain)
        if len(set(table.column_names)) < table.num_columns:
            raise InvalidArgument("sql", sql, "give every column of the result a name of its own")
        return guarded(lambda: {name: array_of(table.column(name)) for name in table.column_names})

    def numbers(self, sql: str, *, plain: bool = False) -> dict[str, np.ndarray[Any, Any]]:
        """The columns of a SELECT of numbers that have at most 64 bits and are not NULL: arrays of int64 or float64.

        They do not become an Arrow table on the way, which takes longer than many a question.
        """
        return self._run(lambda: self._numbers(sql), plain=plain)

    def _numbers(self, sql: str) -> dict[str, np.ndarray[Any, Any]]:
        cursor = self._cursor.execute(sql)
        kinds = {str(name): _NUMBERS.get(str(kind)) for name, kind, *_ in cursor.description or ()}
        found = cursor.fetchnumpy()
        if found.keys() != kinds.keys() or None in kinds.values():
            raise InvalidArgument("sql", sql, "give every column a name of its own and a number of at most 64 bits")
        if any(
            isinstance(values, np.ma.MaskedArray) and bool(np.ma.getmaskarray(values).any())
            for values in found.values()
        ):
            raise InvalidArgument("sql", sql, "no number may be NULL; wrap it in COALESCE(..., 0)")
        return {name: np.asarray(values).astype(kinds[name], copy=False) for name, values in found.items()}

    def tally(self, sql: str, size: int, *, plain: bool = False) -> np.ndarray[Any, Any]:
        """How often each of the integers from 0 to `size` - 1 occurs in the one column of a SELECT.

        Rows are counted as they come, so that they need not fit into memory; a value that is none of these is an error.
        """
        return self._run(lambda: self._tallied(sql, size), plain=plain)

    def _tallied(self, sql: str, size: int) -> np.ndarray[Any, Any]:
        counts = np.zeros(size, dtype=np.int64)
        for batch in self._cursor.sql(sql).to_arrow_reader(_BATCH):
            values = array_of(batch.column(0))  # Arrow's own to_numpy would load pandas, where it is installed
            if values.size and (values.dtype != np.int64 or values.min() < 0):  # it counts from the end, or is NULL
                raise ValueError("a value is none of these")
            np.add.at(counts, values, 1)  # refuses what is too large
        return counts

    def filtered(
        self,
        sql: str,
        keep: Callable[[pa.RecordBatch], np.ndarray[Any, Any]],
        *,
        order: Sequence[str],
        plain: bool = False,
    ) -> pa.Table:
        """The rows of a SELECT that `keep` picks, in the order of these columns of it, as an Arrow table.

        It is asked about rows as they come, with an array of truth values in return, so that the others need not fit
        into memory, nor be put in order.
        """
        kept = self._run(lambda: self._filtered(sql, keep), plain=plain)
        ordered = guarded(lambda: in_order(kept, order))
        if ordered is not None:
            return ordered
        self.insert("q__unordered", kept)
        return self.table(f"SELECT * FROM q__unordered ORDER BY {', '.join(map(quoted, order))}")

    def _filtered(self, sql: str, keep: Callable[[pa.RecordBatch], np.ndarray[Any, Any]]) -> pa.Table:
        import pyarrow as pa

        reader = self._cursor.sql(sql).to_arrow_reader(_GROUPS)
        kept = []
        for batch in reader:
            places = np.flatnonzero(keep(batch))
            columns = [taken(column, places) for column in batch.columns]
            kept.append(pa.RecordBatch.from_arrays(columns, schema=reader.schema))
        return pa.Table.from_batches(kept, schema=reader.schema)

    def insert(self, name: str, rows: pa.Table, select: str = "SELECT * FROM q__incoming") -> None:
        """Make a temporary table of this name from Arrow rows, in place of an earlier one.

        `select` reads the rows as q__incoming; without it the table has them as they are.
        """
        guarded(lambda: self._cursor.register("q__incoming", rows))
        try:
            self.execute(f"CREATE OR REPLACE TEMP TABLE {quoted(name)} AS {select}")
        finally:
            self._cursor.unregister("q__incoming")

    def listed(self, name: str, texts: Sequence[str | None], kind: str) -> str:
        """The name of a table (k, i) of texts as values of a type, in that order; equal ones are one.

        The texts are public: the table is kept for other sessions as long as there is room, else it is a temporary one
        of the given name.
        """
        return self._listings.table(self._cursor, texts, kind, otherwise=name)

    def codes(self, texts: Sequence[str]) -> str | None:
        """The name of an ENUM of different public texts, in that order; None if there is no room for one."""
        return self._listings.codes(self._cursor, texts)

    def _run(self, work: Callable[[], T], *, plain: bool = False) -> T:
        """The result of the work, which runs one statement: planned by the ranges of columns if it is plain."""
        return self._ranges.run(work, plain=plain)

    def interrupt(self) -> None:
        """Stop what the session is doing, from another thread; it raises `EngineError` there."""
        self._cursor.interrupt()

    def close(self) -> None:
        """End the session and drop its temporary tables."""
        self._cursor.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def stored_name(name: str) -> str:
    """What a frame is called that is read behind a view: names that begin like this are ours alone."""
    return f"q__stored {name}"


def scan_frame(cursor: duckdb.DuckDBPyConnection, name: str, *, frame: Any, projection: str) -> None:
    """Let a cursor see a table in memory: registered as it is, or behind a view that casts some of its columns."""
    if not projection:
        guarded(lambda: cursor.register(name, frame))
        return
    stored = stored_name(name)
    guarded(lambda: cursor.register(stored, frame))
    view = f"CREATE OR REPLACE TEMP VIEW {quoted(name)} AS SELECT {projection} FROM temp.main.{quoted(stored)}"
    guarded(lambda: cursor.execute(view))

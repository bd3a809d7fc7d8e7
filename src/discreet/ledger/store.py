"""The file of a ledger: one connection for each process, transactions, and what goes wrong put into words.

SQLite in WAL mode with `synchronous = FULL`: a transaction that was committed survives the process and the power. One
that need not be durable survives the process alone (`synchronous = NORMAL`): the next durable one takes it along; if
the power fails before, it is undone with all that followed it, since the log is read as far as it is whole.
Writers take turns (BEGIN IMMEDIATE): threads by a lock, processes by the lock of the file, for which they wait.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import StaticPool

from discreet.errors import InvalidArgument, LedgerCorrupt, LedgerError
from discreet.ledger import schema
from discreet.ledger.statements import driver_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy.engine import Connection, Engine

__all__ = ["BUSY_S", "Store"]

BUSY_S = 60.0
"""How long a process waits for the others before it gives up."""

_inherited: list[object] = []  # connections of a parent process: not ours to use, and not ours to close


class Store:
    """A SQLite database that is a ledger, opened or made; `path` None keeps it in memory."""

    def __init__(self, path: Path | None, *, read_only: bool = False) -> None:
        self.path, self.read_only = path, read_only
        self._process, self._lock = os.getpid(), threading.RLock()
        self._engine: Engine | None = None
        self._connection: Connection | None = None
        self._identity: tuple[int, int] | None = None  # of the file that was opened first
        self.origin: str | None = None  # the hash of its first entry, once that is known
        with self._lock, self._in_words():
            self._live()

    @property
    def name(self) -> str:
        """What messages call the ledger."""
        return "in memory" if self.path is None else str(self.path)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection on which several reads see the same state."""
        with self._turn(), self._in_words():
            connection = self._live()
            driver_of(connection).execute("BEGIN DEFERRED")
            try:
                yield connection
            finally:
                self._undo(connection)

    @contextmanager
    def writing(self, *, durable: bool = True) -> Iterator[Connection]:
        """A transaction that nobody else writes during; durable once the block has ended, undone if it fails.

        With `durable` False it does not wait for the disk: a loss of power may undo it.
        """
        with self._turn(), self._in_words():
            connection = self._live()
            if self.read_only:
                raise LedgerError(self.name, "was opened for reading only", "Open it with Ledger.open(path) to write.")
            driver_of(connection).execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            driver_of(connection).execute("BEGIN IMMEDIATE")
            try:
                yield connection
                driver_of(connection).execute("COMMIT")
                self._check_identity()  # what was written to a file without a name is not durable
            except BaseException:
                self._undo(connection)
                raise

    def settle(self) -> None:
        """Makes durable what others may build on: all that was committed until now, by whomever."""
        if self.path is None:
            return
        with self._in_words(), suppress(FileNotFoundError):  # without a log all of it is in the file, which is durable
            log = os.open(self._log, os.O_RDONLY)
            try:
                os.fsync(log)
            finally:
                os.close(log)

    def copy_to(self, path: Path) -> None:
        """A consistent copy of the database in a new file, whoever writes meanwhile."""
        with self._turn(), self._in_words():
            try:
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            except FileExistsError:
                raise InvalidArgument("path", str(path), "a file of that name exists; pass a new one") from None
            target = sqlite3.connect(path)
            try:
                driver_of(self._live()).backup(target)
                target.execute("PRAGMA journal_mode = DELETE")  # one file, nothing beside it
            except BaseException:
                path.unlink()
                raise
            finally:
                target.close()

    def close(self) -> None:
        """Closes the connection; the next use opens it again."""
        if self._process == os.getpid():
            with self._lock:
                self._drop()

    # ---------------------------------------------------------------- connections

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if self._process != os.getpid():  # forked: locks of SQLite do not survive that, nor does ours
            if self.path is None:
                raise LedgerError(self.name, "belongs to another process", "Use a file to share a budget.")
            _inherited.append((self._engine, self._connection))
            self._engine = self._connection = None
            self._process, self._lock = os.getpid(), threading.RLock()
        with self._lock:
            yield

    def _live(self) -> Connection:
        if self._identity is not None:
            self._check_identity()
        if self._connection is None:
            self._engine = sqlalchemy.create_engine(
                "sqlite://", creator=self._connect, poolclass=StaticPool, isolation_level="AUTOCOMMIT"
            )
            connection = self._engine.connect()
            self._connection = connection
            try:
                self._prepare(connection)
            except BaseException:
                self._drop()
                raise
            if self.path is not None and self._identity is None:
                self._identity = _identity_of(self.path)
            self._check_origin(connection)
        return self._connection

    def _check_identity(self) -> None:
        """Refuses a file that was deleted or replaced: a connection to the old one would go on as if nothing was."""
        if self.path is None:
            return
        try:
            found = _identity_of(self.path)
        except FileNotFoundError:
            found = None
        if found != self._identity:
            raise self._gone("was deleted or moved" if found is None else "was replaced by another file")

    def _check_origin(self, connection: Connection) -> None:
        """The number of a file can be given to another one while it is closed; its first entry cannot."""
        if self.path is not None and self.origin is not None:
            found = connection.exec_driver_sql("SELECT hash FROM entries WHERE number = 1").scalar()
            if found != self.origin:
                self._drop()
                raise self._gone("was replaced by another file")

    def _gone(self, what: str) -> LedgerError:
        return LedgerError(
            self.name,
            f"{what} while it was in use",
            "Nothing was released. Put the file back, with every charge that was made, and open the ledger again; a "
            "new file would grant the whole budget once more.",
        )

    def _drop(self) -> None:
        connection, engine = self._connection, self._engine
        self._connection = self._engine = None
        if connection is not None and engine is not None:
            with suppress(DBAPIError, sqlite3.Error):
                connection.close()
            with suppress(DBAPIError, sqlite3.Error):
                engine.dispose()

    def _undo(self, connection: Connection) -> None:
        try:
            if driver_of(connection).in_transaction:
                driver_of(connection).execute("ROLLBACK")
        except (DBAPIError, sqlite3.Error):
            self._drop()  # a connection in an unknown state is not used again; SQLite undoes what was not committed

    def _connect(self) -> sqlite3.Connection:
        if self.path is None:
            return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        mode = "rwc" if self._identity is None else "rw"
        if self.read_only:
            # Whoever only looks writes nothing, but cleans up what SQLite lays beside the file if nobody else uses it.
            mode = "rw" if self._may_clean() else "ro"
        uri = f"{self.path.absolute().as_uri()}?mode={mode}"
        if self.read_only and not os.access(self.path.absolute().parent, os.W_OK) and not self._has_log():
            uri += "&immutable=1"  # nobody can write here, and reading must not need a file of its own
        new = not self.path.exists()
        connection = sqlite3.connect(uri, uri=True, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
        if new:
            self.path.chmod(0o600)  # it will hold answers; SQLite gives the files beside it the same mode
        if self.read_only:
            connection.execute("PRAGMA query_only = ON")
        return connection

    def _may_clean(self) -> bool:
        assert self.path is not None
        path = self.path.absolute()
        return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK) and not self._has_log()

    def _has_log(self) -> bool:
        return self._log.exists()

    @property
    def _log(self) -> Path:
        assert self.path is not None
        return Path(f"{os.path.realpath(self.path)}-wal")  # beside the file itself, not beside a link to it

    def _prepare(self, connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN")  # one look: between two, another process may have made the ledger
        try:
            application = connection.exec_driver_sql("PRAGMA application_id").scalar()
            version = connection.exec_driver_sql("PRAGMA user_version").scalar()
            occupied = bool(connection.exec_driver_sql("SELECT COUNT(*) FROM sqlite_master").scalar())
        finally:
            self._undo(connection)
        if application != schema.APPLICATION:
            self._create(connection, occupied)
        elif version not in schema.READABLE:
            raise LedgerError(
                self.name,
                f"has format version {version} and this release of discreet reads versions up to {schema.VERSION}",
                "Upgrade discreet (pip install -U discreet); the file was not touched.",
            )
        if not self.read_only:
            self._make_durable(connection)

    def _make_durable(self, connection: Connection) -> None:
        if self.path is not None and self._patiently(connection, "PRAGMA journal_mode = WAL") != "wal":
            raise LedgerError(
                self.name, "cannot keep a write-ahead log here", "Put it on a local disk, not a network file system."
            )
        for setting in ("synchronous = FULL", "fullfsync = 1", "checkpoint_fullfsync = 1", "trusted_schema = OFF"):
            connection.exec_driver_sql(f"PRAGMA {setting}")

    def _create(self, connection: Connection, occupied: bool) -> None:
        if self.read_only or occupied:
            what = "is another kind of database" if occupied else "is empty"
            raise LedgerError(self.name, f"{what}, not a ledger", "Pass the path of a ledger, or of a new file.")
        self._make_durable(connection)
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        try:
            if connection.exec_driver_sql("PRAGMA application_id").scalar() == 0:  # nobody was quicker
                for statement in schema.statements():
                    connection.exec_driver_sql(statement)
                connection.exec_driver_sql(f"PRAGMA user_version = {schema.VERSION}")
                connection.exec_driver_sql(f"PRAGMA application_id = {schema.APPLICATION}")
            connection.exec_driver_sql("COMMIT")
        except BaseException:
            self._undo(connection)
            raise
        if self.path is not None:
            _make_name_durable(self.path)

    def _patiently(self, connection: Connection, statement: str) -> object:
        """Switching the journal does not wait for others by itself."""
        until = time.monotonic() + BUSY_S
        while True:
            try:
                return connection.exec_driver_sql(statement).scalar()
            except DBAPIError as error:
                if not _name(error.orig).startswith("SQLITE_BUSY") or time.monotonic() > until:
                    raise
                time.sleep(0.01)

    # ---------------------------------------------------------------- errors

    @contextmanager
    def _in_words(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            raise self._explained(error.orig) from error
        except sqlite3.Error as error:
            raise self._explained(error) from error
        except UnicodeDecodeError as error:
            raise LedgerCorrupt(self.name, ("text in it is no text any more",)) from error
        except OSError as error:
            raise LedgerError(self.name, f"cannot be used: {error.strerror}", _ADVICE) from error

    def _explained(self, error: BaseException | None) -> LedgerError:
        name = _name(error)
        if name.startswith("SQLITE_CORRUPT"):
            return LedgerCorrupt(self.name, (f"SQLite cannot read it: {error}",))
        for start, (problem, advice) in _PROBLEMS.items():
            if name.startswith(start):
                return LedgerError(self.name, problem, advice)
        return LedgerError(self.name, f"cannot be used: {error} ({name})", _ADVICE)


_ADVICE = "This step was not recorded. Mend the cause and try again."
_PROBLEMS = {
    "SQLITE_FULL": ("cannot be written because the disk is full", "This step was not recorded. Free space, try again."),
    "SQLITE_READONLY": (
        "is read-only",
        "This step was not recorded. Charges must be stored: make the file and its directory writable.",
    ),
    "SQLITE_BUSY": (
        f"was locked by another process for more than {BUSY_S:g} seconds",
        "This step was not recorded. Find who holds it, or try again.",
    ),
    "SQLITE_NOTADB": (
        "is not a ledger: the file is no SQLite database",
        "Pass the path of a ledger, or of a new file.",
    ),
    "SQLITE_CANTOPEN": (
        "cannot be opened",
        "Check that the directory exists and that file and directory may be read and written.",
    ),
    "SQLITE_PERM": ("may not be used", "Check the permissions of the file and its directory."),
    "SQLITE_IOERR": ("cannot be read or written: the file system reports an error", _ADVICE),
}


def _name(error: BaseException | None) -> str:
    return getattr(error, "sqlite_errorname", None) or type(error).__name__


def _identity_of(path: Path) -> tuple[int, int]:
    facts = path.stat()
    return facts.st_dev, facts.st_ino


def _make_name_durable(path: Path) -> None:
    """After a power failure the directory must still know the new file."""
    if os.name == "posix":
        directory = os.open(path.absolute().parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

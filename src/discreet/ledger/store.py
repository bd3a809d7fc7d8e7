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
from typing import TYPE_CHECKING, Any

import sqlalchemy
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import StaticPool

from discreet.errors import LedgerCorrupt, LedgerError
from discreet.ledger import forking, schema
from discreet.ledger.copying import copy
from discreet.ledger.place import Place
from discreet.ledger.problems import ADVICE, BUSY_S, READ_ONLY, code, explained
from discreet.ledger.statements import driver_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from sqlalchemy.engine import Connection, Engine

    from discreet.ledger.place import Identity

__all__ = ["Store"]

_inherited: list[object] = []  # connections of a parent process: not ours to use, and not ours to close


class Store:
    """A SQLite database that is a ledger, opened or made; `path` None keeps it in memory.

    `begin` writes into the tables of a new one what each has, in the transaction that makes them.
    """

    def __init__(self, path: Path | None, begin: Callable[[Connection], None], *, read_only: bool = False) -> None:
        self.path, self.read_only, self._begin = path, read_only, begin
        self._place = None if path is None else Place(path)
        self._process, self._lock = os.getpid(), threading.RLock()
        self._engine: Engine | None = None
        self._connection: Connection | None = None
        self._identity: Identity | None = None  # of the file that was opened first
        self._log: Identity | None = None  # of the log beside it that the connection writes to
        self.origin: str | None = None  # the hash of its first entry, once that is known
        self._still: tuple[Any, ...] | None = None  # the state of a file that was opened as one that nobody changes
        self._begun = True  # whether a ledger may be made, as far as the file told before it was opened
        self._held = False  # whether the lock was taken for a fork
        if path is not None:
            forking.watch(self)
        with self._lock, self._in_words():
            self._live()

    @property
    def name(self) -> str:
        """What messages call the ledger."""
        return "in memory" if self.path is None else str(self.path)

    def for_looking(self) -> Store:
        """The same ledger once more, for somebody who only looks: the others need not wait; itself if in memory."""
        return self if self._place is None else Store(self._place.path, self._begin, read_only=True)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection on which several reads see the same state."""
        with self._turn(), self._in_words():
            connection = self._live()
            try:
                driver_of(connection).execute("BEGIN DEFERRED")
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
                raise self._for_reading()
            driver_of(connection).execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            try:
                driver_of(connection).execute("BEGIN IMMEDIATE")
                yield connection
                driver_of(connection).execute("COMMIT")
                self._check_identity()  # what was written to a file or a log without a name is not durable
            except BaseException:
                self._undo(connection)
                raise

    def settle(self) -> None:
        """Makes durable what others may build on: all that was committed until now, by whomever."""
        if self._place is None:
            return
        with self._in_words(), suppress(FileNotFoundError):  # without a log all of it is in the file, which is durable
            log = os.open(self._place.log, os.O_RDONLY)
            try:
                os.fsync(log)
            finally:
                os.close(log)

    def copy_to(self, path: Path) -> None:
        """A consistent copy of the database in a new file, whoever writes meanwhile."""
        with self._turn(), self._in_words():
            copy(driver_of(self._live()), path, name=self.name)

    def close(self) -> None:
        """Closes the connection; the next use opens it again. One in memory goes on: it ends with its object."""
        if self.path is not None:
            self.end()

    def end(self) -> None:
        """Closes the connection, and with it what is in memory alone."""
        if self._process == os.getpid():
            with self._lock:
                self._drop()

    # ---------------------------------------------------------------- forks

    def before_fork(self) -> None:
        """Closes the connection and keeps the lock until the fork is over; see `forking`."""
        self._held = False
        if self._process == os.getpid():
            self._held = self._lock.acquire(timeout=BUSY_S)
            if self._held and not (self._connection and driver_of(self._connection).in_transaction):
                self._drop()

    def after_fork(self, *, child: bool) -> None:
        """Goes on in the parent; in the child with a lock of its own, unless somebody used the store."""
        if child:
            if self._held and self._connection is None:
                self._process, self._lock = os.getpid(), threading.RLock()
            self._disown()
        elif self._held:
            self._lock.release()

    def _disown(self) -> None:
        if self._process != os.getpid() and self._connection is not None:
            _inherited.append((self._engine, self._connection))
            self._engine = self._connection = None

    # ---------------------------------------------------------------- connections

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if self._process != os.getpid():
            if self.path is None:
                raise LedgerError(self.name, "belongs to another process", "Use a file to share a budget.")
            self._disown()
            raise LedgerError(
                self.name,
                "was in use when this process was forked, and cannot be used here",
                "Close it before the fork (ledger.close()), or start processes by 'spawn'.",
            )
        with self._lock:
            yield

    def _live(self) -> Connection:
        self._check_identity()
        if self._place is not None and self._still is not None and self._place.state() != self._still:
            self._drop()  # somebody who may has written to it
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
            self._identity = self._check_identity()
            self._check_origin(connection)
            if self._place is not None and not self.read_only:
                self._log = self._place.log_identity()
        return self._connection

    def _check_identity(self) -> Identity | None:
        """Refuses a file that was deleted or replaced: a connection to the old one would go on as if nothing was.

        So it would if only the log beside it was, to which charges are written first. SQLite removes it when it is sure
        that nobody else uses the file, and a program that opens and closes the file by other means can make it err.
        """
        if self._place is None:
            return None
        facts = self._place.facts()
        found = None if facts is None else (facts.st_dev, facts.st_ino)
        if self._identity is not None and found != self._identity:
            raise self._gone("was deleted or moved" if found is None else "was replaced by another file")
        if facts is not None and facts.st_nlink > 1 and not self.read_only:
            raise LedgerError(
                self.name,
                f"is one of {facts.st_nlink} names of the same file",
                "Charges are written beside the name that is used, where the others do not see them. Keep one name; "
                "others can be symbolic links to it.",
            )
        if self._log is not None and self._place.log_identity() != self._log:
            raise self._gone(f"lost the log beside it ({self._place.log.name})")
        return found

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
        self._connection = self._engine = self._log = self._still = None
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
        if self._place is None:
            return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        uri = f"{self._place.file.as_uri()}?mode={self._mode(self._place)}"
        connection = sqlite3.connect(uri, uri=True, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
        if self.read_only:
            connection.execute("PRAGMA query_only = ON")
        return connection

    def _mode(self, place: Place) -> str:
        """How SQLite opens the file. Whoever only looks writes nothing, but cleans up what SQLite lays beside it."""
        if not self.read_only:
            if self._identity is None:
                self._begun = place.begin()  # before it is looked at: the mark is gone once a ledger is there
                place.make()
            if os.access(place.file, os.R_OK) and not os.access(place.file, os.W_OK):
                raise LedgerError(self.name, *READ_ONLY)  # before SQLite lays beside it what nobody may write, either
            if place.is_mounted_alone():
                raise LedgerError(
                    self.name,
                    "was put here without its directory",
                    "Charges are written to a file beside it, which others would not see. Mount the whole directory.",
                )
            return "rw"
        in_use, writable = place.log.exists(), place.is_writable()
        if not in_use and not writable:
            self._still = place.state()
            return "ro&immutable=1"  # nobody is writing here, and reading must not need a file of its own
        return "rw" if writable and not in_use else "ro"

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
            if self._place is not None:
                self._place.finish()  # somebody may have marked it as begun after it was there

    def _make_durable(self, connection: Connection) -> None:
        if self.path is not None and self._patiently(connection, "PRAGMA journal_mode = WAL") != "wal":
            raise LedgerError(
                self.name, "cannot keep a write-ahead log here", "Put it on a local disk, not a network file system."
            )
        for setting in ("synchronous = FULL", "fullfsync = 1", "checkpoint_fullfsync = 1", "trusted_schema = OFF"):
            connection.exec_driver_sql(f"PRAGMA {setting}")

    def _create(self, connection: Connection, occupied: bool) -> None:
        if not occupied and self._place is not None and (self.read_only or not self._begun) and self._place.holds():
            raise LedgerError(
                self.name,
                "holds no ledger, though it is not empty",
                "A copy of a ledger in use lacks what is in the file beside it, whose name ends in -wal: put both "
                "back, or a copy that `discreet ledger backup` made; a new one would grant the whole budget once more. "
                "If nothing was ever spent from it, remove the file.",
            )
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
                self._begin(connection)
            connection.exec_driver_sql("COMMIT")
        except BaseException:
            self._undo(connection)
            raise
        if self._place is not None:
            self._place.make_name_durable()

    def _patiently(self, connection: Connection, statement: str) -> object:
        """Switching the journal does not wait for others by itself."""
        until = time.monotonic() + BUSY_S
        while True:
            try:
                return connection.exec_driver_sql(statement).scalar()
            except DBAPIError as error:
                if not code(error.orig).startswith("SQLITE_BUSY") or time.monotonic() > until:
                    raise
                time.sleep(0.01)

    # ---------------------------------------------------------------- errors

    @property
    def _directory(self) -> Path | None:
        return None if self._place is None else self._place.directory

    def _for_reading(self) -> LedgerError:
        """Why nothing is written: it may not be, or nobody wanted to."""
        if self._place is not None and not self._place.is_writable():
            return LedgerError(self.name, *READ_ONLY)
        return LedgerError(self.name, "was opened for reading only", "Open it with Ledger.open(path) to write.")

    @contextmanager
    def _in_words(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            raise explained(self.name, error.orig, self._directory) from error
        except sqlite3.Error as error:
            raise explained(self.name, error, self._directory) from error
        except UnicodeDecodeError as error:
            raise LedgerCorrupt(self.name, ("text in it is no text any more",)) from error
        except OSError as error:
            raise LedgerError(self.name, f"cannot be used: {error.strerror}", ADVICE) from error

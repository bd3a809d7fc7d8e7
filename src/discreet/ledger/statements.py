"""The statements of every charge, on the driver's own connection: each takes half the time that it takes elsewhere.

They run in the transaction of the caller, which `Store` has begun on the same connection.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy.engine import Connection

__all__ = ["driver_of", "first", "found", "run"]


def driver_of(connection: Connection) -> sqlite3.Connection:
    """The driver's connection behind SQLAlchemy's."""
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    return driver


def run(connection: Connection, sql: str, parameters: Mapping[str, Any] | None = None) -> sqlite3.Cursor:
    """Run a statement; rows have the names of their columns."""
    cursor = driver_of(connection).cursor()
    cursor.row_factory = sqlite3.Row
    return cursor.execute(sql, parameters or {})


def found(connection: Connection, sql: str, parameters: Mapping[str, Any]) -> list[sqlite3.Row]:
    """All rows."""
    return run(connection, sql, parameters).fetchall()


def first(connection: Connection, sql: str, parameters: Mapping[str, Any] | None = None) -> sqlite3.Row | None:
    """The first row, or None; the statement is over, also if there are more."""
    cursor = run(connection, sql, parameters)
    row: sqlite3.Row | None = cursor.fetchone()
    cursor.close()
    return row

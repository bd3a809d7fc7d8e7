"""Where row work is done: DuckDB today, behind a protocol; knows nothing of privacy."""

from __future__ import annotations

from discreet.engines.arrow import arrow_column, exact_integers
from discreet.engines.duckdb import DuckDBEngine
from discreet.engines.engine import Engine, Session
from discreet.engines.sandbox import Sandbox
from discreet.engines.session import DuckDBSession

__all__ = ["DuckDBEngine", "DuckDBSession", "Engine", "Sandbox", "Session", "arrow_column", "exact_integers"]

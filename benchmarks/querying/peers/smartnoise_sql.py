"""SmartNoise SQL on PostgreSQL, where its manual wants it, and on DuckDB, which it does not know.

Settings: ``rows`` a person may keep (sampled), ``clamp`` of a value. On DuckDB it is given a connection that looks like
PostgreSQL's; it samples by ORDER BY RANDOM() in a window, which DuckDB 1.3 still takes and 2.0 refuses. The key of days
is called ``visited``: its grammar does not take ``day``. It charges for each noisy column, so the epsilon of a query is
divided by their number. Keys are kept as found where they are public. The server holds the tables beforehand.
"""

from __future__ import annotations

import warnings
from datetime import datetime
from typing import TYPE_CHECKING, Any

import duckdb
import psycopg2
from snsql import Privacy, from_connection

from querying.peers.harness import Cells, Job, Settings, run

if TYPE_CHECKING:
    from collections.abc import Iterator

warnings.simplefilter("ignore")

STATEMENTS = {
    "a": "SELECT COUNT(*) AS n FROM main.visits",
    "b": "SELECT SUM(spend) AS total FROM main.visits",
    "c": "SELECT category, COUNT(*) AS n FROM main.visits GROUP BY category",
    "d": "SELECT city, AVG(spend) AS mean, SUM(spend) AS total FROM main.visits GROUP BY city",
    "e": "SELECT visited, COUNT(DISTINCT user_id) AS n FROM main.visits GROUP BY visited",
    "g": "SELECT country, COUNT(*) AS n FROM main.visits GROUP BY country",
    "h": "SELECT category, visited, COUNT(*) AS n FROM main.visits GROUP BY category, visited",
}


class Cursor:
    """As much of a PostgreSQL cursor as SmartNoise uses."""

    def __init__(self, cursor: Any) -> None:
        self.cursor = cursor

    def execute(self, sql: str) -> None:
        self.cursor.execute(sql)

    @property
    def description(self) -> Any:
        return self.cursor.description

    def __iter__(self) -> Iterator[Any]:
        return iter(self.cursor.fetchall())

    def fetchall(self) -> list[Any]:
        return list(self)

    def close(self) -> None:
        self.cursor.close()


class Connection:
    """As much of a PostgreSQL connection as SmartNoise uses."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    def cursor(self) -> Cursor:
        return Cursor(self.connection.cursor())

    def commit(self) -> None:
        """Nothing to keep."""

    def rollback(self) -> None:
        """Nothing to undo."""


def word(key: Any) -> str:
    """A key as the questions write it: dates without the time of the day."""
    return key.date().isoformat() if isinstance(key, datetime) else str(key)


def prepare(job: Job) -> Any:
    """From settings to the released cells."""
    question = job["question"]
    keys = {"c": 1, "d": 1, "e": 1, "g": 1, "h": 2}.get(question, 0)

    def on_postgres() -> tuple[str, Any]:
        return f"visits_{job['rows']}", psycopg2.connect(job["postgres"])

    def on_duckdb() -> Connection:
        database = duckdb.connect()
        database.execute(f"CREATE VIEW people AS SELECT * FROM read_parquet('{job['users']}')")
        joined = " JOIN people USING (user_id)" if question == "g" else ""
        database.execute(
            "CREATE VIEW visits AS SELECT * EXCLUDE (day), day AS visited "
            f"FROM read_parquet('{job['visits']}') AS visits{joined}"
        )
        return Connection(database)

    def answer(settings: Settings) -> Cells:
        if question not in STATEMENTS:
            raise NotImplementedError("medians are not supported")
        table_name, connection = on_postgres() if job.get("postgres") else ("visits", on_duckdb())
        columns: dict[str, Any] = {
            "user_id": {"type": "int", "private_id": True},
            "category": {"type": "string"},
            "city": {"type": "string"},
            "country": {"type": "string"},
            "visited": {"type": "datetime"},
            "spend": {"type": "float", "lower": 0.0, "upper": float(settings.get("clamp", 1000.0))},
        }
        table = {
            "rows": job["rows"],
            "max_ids": settings["rows"],
            "sample_max_ids": True,
            "censor_dims": question == "d",
            "clamp_counts": False,
            **columns,
        }
        columns_charged = 2 if question == "d" else 1
        privacy = Privacy(epsilon=job["epsilon"] / columns_charged, delta=job["delta"])
        schema = "public" if job.get("postgres") else "main"
        reader = from_connection(
            connection, privacy=privacy, metadata={"": {schema: {table_name: table}}}, engine="postgres"
        )
        _, *rows = reader.execute(STATEMENTS[question].replace("main.visits", f"{schema}.{table_name}"))
        if job.get("postgres"):
            connection.close()
        return {"|".join(map(word, row[:keys])): [float(value) for value in row[keys:]] for row in rows}

    return answer


if __name__ == "__main__":
    run(prepare, ("smartnoise-sql", "opendp", "duckdb"))

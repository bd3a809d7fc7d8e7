"""The visits table: 100 000 people, any number of rows, always the same for the same number of rows.

    python -m querying.data --rows 1000000        (from the folder benchmarks; the paths are printed)

The law, all draws independent and from one seed:

- a person's activity w ~ lognormal(0, 1); each row belongs to person u with probability w_u / sum(w): at a million rows
  a person has 10 rows in the mean, 6 in the median, the busiest has 285;
- category: 50 keys, uniform;  city: 10 000 keys, Zipf with exponent 1 (the largest holds a tenth of the rows);
- day: the 365 days of 2025; a Saturday or Sunday is 1.4 times as likely as another day, and a sine over the year makes
  midsummer 1.86 times as busy as midwinter;
- spend: in category k (0 to 49) exp(ln 10 + ln 4 * k / 49 + 0.8 * normal), rounded to cents, cut at 1000: the medians
  go from 10 to 40, the means from 14 to 55, one row in 900 lies above 300;
- a second table of people: country (40 keys, probability proportional to 1 / (rank + 3)) and age (16 to 95, near 45).

Rows come in chunks of a million, each with a stream of its own, so a smaller table is the beginning of a larger one.
The files lie in the folder that DISCREET_BENCH_CACHE names, or in benchmarks/.cache.
"""

from __future__ import annotations

import argparse
import os
import sys
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from numpy.typing import NDArray

SEED = 20_250_101
USERS = 100_000
CATEGORIES = [f"category {k:02d}" for k in range(50)]
CITIES = [f"city {k:05d}" for k in range(10_000)]
COUNTRIES = [f"country {k:02d}" for k in range(40)]
DAYS = [date(2025, 1, 1) + timedelta(days=k) for k in range(365)]
LARGEST_SPEND = 1000.0
"""A public fact: the till refuses more. No contestant needs to know it, each may."""

CHUNK_ROWS = 1_000_000
ROW_GROUP_ROWS = 122_880


def cache() -> Path:
    """Where generated tables and the peers' environments are kept; git ignores the default."""
    folder = os.environ.get("DISCREET_BENCH_CACHE")
    return Path(folder) if folder else Path(__file__).resolve().parents[1] / ".cache"


def visits_path(rows: int) -> Path:
    """The table of that many rows; made if it is not there."""
    path = cache() / f"visits-{rows}.parquet"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}.tmp")
        _write_visits(unfinished, rows)
        unfinished.replace(path)
    return path


def users_path() -> Path:
    """The table of people; made if it is not there."""
    path = cache() / "users.parquet"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}.tmp")
        pq.write_table(_users(), unfinished)
        unfinished.replace(path)
    return path


def _stream(*name: int) -> np.random.Generator:
    return np.random.default_rng([SEED, *name])


def _users() -> pa.Table:
    stream = _stream(2)
    country = stream.choice(len(COUNTRIES), size=USERS, p=_normalised(1 / (np.arange(len(COUNTRIES)) + 4.0)))
    age = np.clip(np.rint(stream.normal(45, 16, USERS)), 16, 95).astype(np.int32)
    return pa.table(
        {
            "user_id": pa.array(np.arange(1, USERS + 1, dtype=np.int64)),
            "country": _words(country, COUNTRIES),
            "age": pa.array(age),
        }
    )


def _write_visits(path: Path, rows: int) -> None:
    activity = np.cumsum(_normalised(_stream(0).lognormal(0, 1, USERS)))
    cities = np.cumsum(_normalised(1 / np.arange(1.0, len(CITIES) + 1)))
    turn = np.arange(len(DAYS))
    weekend = np.array([1.4 if day.weekday() >= 5 else 1.0 for day in DAYS])
    days = np.cumsum(_normalised(weekend * (1 - 0.3 * np.cos(2 * np.pi * turn / len(DAYS)))))
    writer: pq.ParquetWriter | None = None
    for chunk in range(-(-rows // CHUNK_ROWS)):
        stream = _stream(1, chunk)
        category = stream.integers(0, len(CATEGORIES), CHUNK_ROWS)
        middle = np.log(10) + np.log(4) * category / (len(CATEGORIES) - 1)
        spend = np.exp(middle + 0.8 * stream.standard_normal(CHUNK_ROWS))
        table = pa.table(
            {
                "user_id": pa.array(_drawn(stream, activity) + 1),
                "category": _words(category, CATEGORIES),
                "city": _words(_drawn(stream, cities), CITIES),
                "day": pa.array(np.datetime64(DAYS[0], "D") + _drawn(stream, days)),
                "spend": pa.array(np.minimum(np.round(spend, 2), LARGEST_SPEND)),
            }
        ).slice(0, rows - chunk * CHUNK_ROWS)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table, row_group_size=ROW_GROUP_ROWS)
    assert writer is not None
    writer.close()


def _normalised(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    return weights / weights.sum()


def _drawn(stream: np.random.Generator, cumulated: NDArray[np.float64]) -> NDArray[np.int64]:
    found = np.searchsorted(cumulated, stream.random(CHUNK_ROWS), side="right")
    return np.minimum(found, len(cumulated) - 1)


def _words(indices: NDArray[np.int64], words: list[str]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(indices.astype(np.int32)), pa.array(words)).cast(pa.string())


def main() -> None:
    """Make the tables that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[CHUNK_ROWS])
    arguments = parser.parse_args()
    if min(arguments.rows) < 1:
        sys.exit("--rows must be at least 1")
    print(users_path())
    for rows in arguments.rows:
        print(visits_path(rows))


if __name__ == "__main__":
    main()

"""Time zones: the clock of a place, against Python's own; summer and winter, and times that no calendar has."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import duckdb
import pyarrow as pa
import pytest

from discreet import Curator
from discreet.errors import QueryRefused
from query.open_shop import BUDGET

START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
TIMES = [START + dt.timedelta(hours=7 * i, minutes=i) for i in range(1200)]


def opened() -> Curator:
    rows = pa.table(
        {
            "u": range(len(TIMES)),
            "at": pa.array(TIMES, pa.timestamp("us", tz="UTC")),
            "local": pa.array([one.replace(tzinfo=None) for one in TIMES], pa.timestamp("us")),
        }
    )
    return Curator.open({"t": rows}, unit="u", budget=BUDGET, ledger=":memory:")


def values(sql: str) -> list[dt.datetime | None]:
    """What an expression gives for each row, in the order of the rows."""
    with opened() as curator:
        asked = curator._desk.take(
            f"SELECT COUNT(*) FROM t GROUP BY {sql}", epsilon=1.0, delta=1e-6, cost=None, call={}
        )
        with curator._data.engine.session() as session:
            rows = session.table(asked.plans[0].block.rows)
    return [row["k0"] for row in sorted(rows.to_pylist(), key=lambda row: row["u"])]


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Pacific/Kiritimati", "UTC"])
def test_a_time_with_a_zone_becomes_that_of_the_clocks_in_a_place(zone: str) -> None:
    try:
        place = ZoneInfo(zone)
    except ZoneInfoNotFoundError:
        pytest.skip("Python has no zones here")
    expected = [one.astimezone(place).replace(tzinfo=None) for one in TIMES]
    assert values(f"at AT TIME ZONE '{zone}'") == expected
    assert values(f"timezone('{zone.lower()}', at)") == expected


def test_a_time_without_a_zone_becomes_one_in_utc_and_can_go_on_from_there() -> None:
    engine = duckdb.connect()
    engine.execute("SET TimeZone = 'UTC'")
    listed = ", ".join(f"TIMESTAMP '{one.replace(tzinfo=None)}'" for one in TIMES)
    for zones in ("AT TIME ZONE 'Europe/Berlin'", "AT TIME ZONE 'Europe/Berlin' AT TIME ZONE 'Asia/Tokyo'"):
        found = engine.execute(f"SELECT CAST(unnest([{listed}]) {zones} AS TIMESTAMP)").fetchall()
        assert values(f"local {zones}") == [one for (one,) in found]
        assert values(f"CAST(at AS TIMESTAMP) {zones}") == [one for (one,) in found]
        assert values(f"strptime(CAST(local AS VARCHAR), '%Y-%m-%d %H:%M:%S') {zones}") == [one for (one,) in found]
    # a key, a column of a subquery and a literal keep what they are
    there = (
        "SELECT COUNT(*) FROM (SELECT u, at AS x FROM t WHERE at > '2024-02-01') GROUP BY x AT TIME ZONE 'Asia/Tokyo'"
    )
    with opened() as curator:
        curator.explain(there, epsilon=1.0)
        curator.explain("SELECT k AT TIME ZONE 'Asia/Tokyo' FROM (SELECT at AS k FROM t GROUP BY at)", epsilon=1.0)
        curator.explain(
            "SELECT COUNT(*) FROM t WHERE at < TIMESTAMP '2024-03-01' AT TIME ZONE 'Asia/Tokyo'", epsilon=1.0
        )


def test_bounds_move_with_the_clock() -> None:
    columns = {"at": {"bounds": (dt.datetime(2024, 1, 1), dt.datetime(2024, 12, 31))}}  # noqa: DTZ001
    rows = pa.table({"u": [1, 2], "at": pa.array(TIMES[:2], pa.timestamp("us", tz="UTC"))})
    with Curator.open({"t": rows}, unit="u", budget=BUDGET, ledger=":memory:", columns=columns) as curator:
        text = "SELECT MAX(at AT TIME ZONE 'Pacific/Kiritimati') FROM t"
        (plan,) = curator._desk.take(text, epsilon=1.0, delta=0.0, cost=None, call={}).plans
    low, high = plan.block.aggregates[0].bounds or (0, 0)
    assert low < TIMES[0].timestamp() * 1e6 < high
    assert high - low < 400 * 86400 * 1e6


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("at AT TIME ZONE 'Europe/Berln'", 'did you mean "Europe/Berlin"'),
        ("at AT TIME ZONE 'CET; DROP'", "there is no time zone"),
        ("at AT TIME ZONE CAST(u AS VARCHAR)", "must be written out"),
        ("u AT TIME ZONE 'UTC'", "a date is needed"),
        ("date_trunc('day', at) AT TIME ZONE 'Europe/Berlin'", "the column itself first"),
        ("(at + INTERVAL 1 HOUR) AT TIME ZONE 'Europe/Berlin'", "the column itself first"),
        ("coalesce(at, local) AT TIME ZONE 'Europe/Berlin'", "the column itself first"),
        ("timezone(at)", "timezone"),
    ],
)
def test_what_is_no_time_or_no_zone_is_refused(sql: str, words: str) -> None:
    with opened() as curator, pytest.raises(QueryRefused) as refused:
        curator.explain(f"SELECT COUNT(*) FROM t GROUP BY {sql}", epsilon=1.0, delta=1e-6)
    assert words in str(refused.value)

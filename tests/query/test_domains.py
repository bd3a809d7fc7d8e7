"""The public values of keys are those that the engine gives, in its own types."""

from __future__ import annotations

import datetime as dt
import math
from itertools import product

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.query.catalog import Catalog, Column, Table
from discreet.query.parse import parse

PERIODS = [
    (dt.date(1899, 12, 30), dt.date(1912, 3, 5)),
    (dt.date(1995, 6, 1), dt.date(2006, 2, 1)),
    (dt.date(2023, 3, 5), dt.date(2023, 9, 1)),
    (dt.date(2000, 1, 1), dt.date(2000, 1, 1)),
    (dt.date(1, 1, 1), dt.date(3, 5, 5)),
]
PARTS = (
    "year", "month", "day", "quarter", "week", "dayofweek", "isodow", "dayofyear", "hour", "decade", "century",
    "isoyear", "monthname", "dayname",
)  # fmt: skip
UNITS = ("day", "week", "month", "quarter", "year", "decade", "century")
OF_DAYS = [
    *(f"date_trunc('{unit}', d)" for unit in UNITS),
    *(f"{part}(d)" for part in PARTS),
    "d",
    "last_day(d)",
    "d + INTERVAL 1 DAY",
    "strftime(d, '%Y-%W')",
    "date_diff('month', d, DATE '2000-01-01')",
    *(f"time_bucket(INTERVAL {width}, d)" for width in ("1 DAY", "10 DAY", "2 WEEK", "5 MONTH", "3 YEAR")),
    "CASE WHEN month(d) > 6 THEN 'second' ELSE 'first' END || year(d)",
]
OF_TIMES = [
    *(f"date_trunc('{unit}', m)" for unit in UNITS),
    *(f"{part}(m)" for part in PARTS),
    "CAST(m AS DATE)",
    "m::DATE + 1",
    "last_day(m)",
    "strftime(m, '%Y-%m')",
    "year(m) * 100 + month(m)",
    "year(CAST(m AS DATE))",
    "dayname(m) || month(m)",
    "CAST(date_trunc('week', m) AS DATE)",
    *(f"time_bucket(INTERVAL '{width}', m)" for width in ("1 day", "10 days", "2 weeks", "1 quarter", "7 months")),
]
OF_NUMBERS = [
    "n // 5", "n % 5", "floor(n / 5)",
    "ceil(x)", "round(x)", "trunc(x)", "floor(x / 5) * 5", "floor(x / 0.1) * 0.1", "n * n",
    "n * 2 + 1", "-n", "n + 0.5",
    "abs(n)", "n / 4", "n / 0", "CASE WHEN n > 5 THEN n END", "coalesce(n, 100)", "n::double",
    "n::text", "sign(n)", "sign(x)", "round(n / 10) * 10", "o", "n > 3", "x IS NULL", "f", "f * 2", "p", "p * 2", "s",
    "width_bucket(n, 0, 30, 7)", "width_bucket(x, -10, 0, 3)", "width_bucket(x, -0.1, 30, 400)",
    "width_bucket(f, 0.1, 1, 2)", "strptime(s, '%Y')",
    "upper(s)", "s || n", "coalesce(s, '?')", "nullif(s, 'a')", "greatest(n, 3)", "CASE s WHEN 'a' THEN 1.5 ELSE n END",
]  # fmt: skip


@pytest.fixture(scope="module", params=PERIODS, ids=[str(first) for first, _ in PERIODS])
def world(request):
    first, last = request.param
    times = (dt.datetime.combine(first, dt.time()), dt.datetime.combine(last, dt.time(23, 59)))
    columns = (
        Column("u", "BIGINT"),
        Column("d", "DATE", bounds=(first, last)),
        Column("m", "TIMESTAMP", bounds=times),
        Column("n", "INTEGER", bounds=(-7, 33)),
        Column("x", "DOUBLE", bounds=(-7.5, 33.2)),
        Column("o", "BOOLEAN"),
        Column("f", "FLOAT", keys=(0.1, 0.2)),
        Column("p", "DECIMAL(6,2)", keys=(0.1, 3.25)),
        Column("s", "VARCHAR", keys=("a", "é")),
    )
    with duckdb.connect() as engine:
        engine.execute(
            f"""CREATE TABLE t AS SELECT 1::BIGINT AS u, DATE '{first}' + i::INT AS d,
            (DATE '{first}' + i::INT)::TIMESTAMP + INTERVAL (i * 7 % 24) HOUR AS m, (-7 + i % 41)::INT AS n,
            (-7.5 + (i % 408) / 10.0)::DOUBLE AS x, i % 2 = 0 AS o, [0.1, 0.2][1 + i % 2]::FLOAT AS f,
            [0.1, 3.25][1 + i % 2]::DECIMAL(6,2) AS p, ['a', 'é'][1 + i % 2] AS s
            FROM range({(last - first).days + 1}) r(i)"""
        )
        yield engine, Catalog({"t": Table("t", columns, "t", "unit", "u")})


def _values(world, key: str):
    engine, catalog = world
    (block,) = parse(f"SELECT {key} AS k, COUNT(*) FROM t GROUP BY k", catalog).blocks
    found = {row[0] for row in engine.execute(f"SELECT DISTINCT k0 FROM ({block.rows})").fetchall()}
    values = block.keys[0].values
    return found, None if values is None else set(values)


@pytest.mark.parametrize("key", OF_DAYS)
def test_every_value_of_a_listed_day_is_public_and_few_others_are(world, key):
    found, values = _values(world, key)
    if values is None:  # before the calendar of Python
        assert min(str(value) for value in found).startswith("0001")
        return
    assert found <= values
    assert values - found <= {"first2023", "second2023"} or key.startswith("CASE")
    assert key.startswith("CASE") or len(values) == len(found)


@pytest.mark.parametrize("key", OF_TIMES)
def test_every_part_of_a_bounded_time_is_public(world, key):
    found, values = _values(world, key)
    assert values is None or found <= values
    assert values is not None or "isoyear" in key or min(str(value) for value in found).startswith("0001")


@pytest.mark.parametrize(
    ("key", "many"),
    [
        ("date_trunc('hour', m)", 28),
        ("date_trunc('minute', m)", 1576),
        ("date_trunc('second', m)", None),
        ("m", None),
        ("time_bucket(INTERVAL 90 MINUTE, m)", 19),
        ("time_bucket(INTERVAL '6 hours', m)", 6),
        ("time_bucket(INTERVAL 7 SECOND, m)", None),
    ],
)
def test_hours_and_minutes_of_a_few_days_are_public(key, many):
    times = (dt.datetime.fromisoformat("2024-02-28T23:45"), dt.datetime.fromisoformat("2024-03-01T02:00:30"))
    columns = (Column("u", "BIGINT"), Column("m", "TIMESTAMP", bounds=times))
    (block,) = parse(
        f"SELECT {key} AS k, COUNT(*) FROM t GROUP BY k", Catalog({"t": Table("t", columns, "t", "unit", "u")})
    ).blocks
    values = block.keys[0].values
    assert (None if values is None else len(values)) == many
    if values is not None:
        assert values[0] <= times[0] < values[1]
        assert values[-1] <= times[1]
        assert len(set(values)) == many


LENGTHS = {
    "microsecond": dt.timedelta(microseconds=5), "millisecond": dt.timedelta(milliseconds=5),
    "second": dt.timedelta(seconds=5), "minute": dt.timedelta(minutes=5), "hour": dt.timedelta(hours=50),
    "day": dt.timedelta(days=400), "week": dt.timedelta(days=400), "month": dt.timedelta(days=1000),
    "quarter": dt.timedelta(days=3000), "year": dt.timedelta(days=40_000), "decade": dt.timedelta(days=90_000),
    "century": dt.timedelta(days=300_000),
}  # fmt: skip
ENGINE = duckdb.connect()
FIRST, LAST = dt.datetime.fromisoformat("0002-01-01"), dt.datetime.fromisoformat("9998-12-31")


@st.composite
def moments(draw, kind: str, near: dt.datetime | None = None, within: dt.timedelta | None = None):
    """A date or a time, often at the beginning of something or at the end."""
    least, most = FIRST, LAST
    if near is not None and within is not None:
        least = max(least, near - within) if near - FIRST > within else FIRST
        most = min(most, near + within) if LAST - near > within else LAST
    found = draw(st.datetimes(least, most))
    if kind == "DATE" or draw(st.booleans()):
        found = found.replace(hour=0, minute=0, second=0, microsecond=0)
    if draw(st.booleans()):
        found = found.replace(month=draw(st.sampled_from((1, 12))), day=draw(st.sampled_from((1, 31))))
    if kind != "DATE" and draw(st.booleans()):
        found -= dt.timedelta(microseconds=1)
    return found


@settings(max_examples=200, deadline=None)
@given(data=st.data(), unit=st.sampled_from(list(LENGTHS)), column=st.sampled_from(("DATE", "TIMESTAMP")))
@pytest.mark.parametrize("order", ["end", "start"])
def test_the_time_between_a_bounded_column_and_a_date_has_the_range_that_the_engine_gives(data, unit, column, order):
    low, high = sorted(data.draw(st.lists(moments(column), min_size=2, max_size=2)))
    if data.draw(st.booleans()):
        low, high = sorted((low, data.draw(moments(column, low, LENGTHS[unit]))))
    if low == high:
        return
    kind = data.draw(st.sampled_from(("DATE", "TIMESTAMP")))
    fixed = data.draw(st.one_of(moments(kind), moments(kind, low, dt.timedelta(days=100))))
    written = {"DATE": f"DATE '{fixed.date()}'", "TIMESTAMP": f"TIMESTAMP '{fixed}'"}
    both = ("c", written[kind]) if order == "end" else (written[kind], "c")
    key = f"{data.draw(st.sampled_from(('date_diff', 'datediff')))}('{unit}', {both[0]}, {both[1]})"
    bounds = (low.date(), high.date()) if column == "DATE" else (low, high)
    catalog = Catalog({"t": Table("t", (Column("u", "BIGINT"), Column("c", column, bounds=bounds)), "t", "unit", "u")})
    (block,) = parse(f"SELECT SUM({key}) FROM t", catalog).blocks
    (grouped,) = parse(f"SELECT {key} AS k, COUNT(*) FROM t GROUP BY k", catalog).blocks
    listed = grouped.keys[0].values
    inside = [low, high, *data.draw(st.lists(st.datetimes(low, high), max_size=20))]
    rows = ", ".join(f"(1, CAST(TIMESTAMP '{one}' AS {column}))" for one in inside)
    ENGINE.execute(f"CREATE OR REPLACE TABLE t AS SELECT * FROM (VALUES {rows}) AS t(u, c)")
    found = [row[0] for row in ENGINE.execute(f"SELECT x0 FROM ({block.rows})").fetchall()]
    least, most = block.aggregates[0].bounds
    exact = all(1700 < one.year < 2200 for one in (low, high, fixed)) and abs(least) < 2**53 and abs(most) < 2**53
    assert least <= min(found)
    assert max(found) <= most
    assert not exact or (least, most) == (min(found), max(found))  # both ends of the column are among the rows
    assert (listed is not None) or most - least >= 1000 - 1 or max(abs(least), abs(most)) > 2**53
    assert listed is None or set(found) <= set(listed)


def test_the_time_between_columns_without_bounds_has_none():
    columns = (Column("u", "BIGINT"), Column("c", "DATE"), Column("d", "DATE", bounds=PERIODS[0]))
    catalog = Catalog({"t": Table("t", columns, "t", "unit", "u")})
    for other in ("DATE '2024-01-01'", "d"):
        (block,) = parse(f"SELECT SUM(date_diff('year', c, {other})) FROM t", catalog).blocks
        assert block.aggregates[0].bounds is None
    (block,) = parse("SELECT SUM(date_diff('year', d, d)) FROM t", catalog).blocks
    assert block.aggregates[0].bounds == (-13.0, 13.0)


@pytest.mark.parametrize("bounds", [None, tuple(map(dt.datetime.fromisoformat, ("1900-01-01", "2020-01-01")))])
def test_days_of_a_time_without_bounds_or_with_wide_ones_are_private(bounds):
    columns = (Column("u", "BIGINT"), Column("m", "TIMESTAMP", bounds=bounds))
    catalog = Catalog({"t": Table("t", columns, "t", "unit", "u")})
    (block,) = parse("SELECT m::DATE AS k, MAX(m::DATE) AS x FROM t GROUP BY k", catalog).blocks
    assert block.keys[0].values is None
    (aggregate,) = block.aggregates
    assert aggregate.bounds is None or not any(map(math.isnan, aggregate.bounds))


@pytest.mark.parametrize("key", OF_NUMBERS)
def test_every_value_of_a_bounded_number_or_a_listed_column_is_public(world, key):
    found, values = _values(world, key)
    assert values is not None
    assert found - {None} <= values


@pytest.mark.parametrize("moved", ["m - INTERVAL 3000 YEAR", "m + INTERVAL 9000 YEAR"])
@pytest.mark.parametrize("key", ["CAST({} AS DATE)", "date_trunc('month', {})", "year({})", "dayofweek({})"])
def test_days_that_no_calendar_has_are_no_error(moved: str, key: str) -> None:
    times = tuple(map(dt.datetime.fromisoformat, ("2024-01-01", "2024-12-31")))
    columns = (Column("u", "BIGINT"), Column("m", "TIMESTAMP", bounds=times))
    catalog = Catalog({"t": Table("t", columns, "t", "unit", "u")})
    (block,) = parse(f"SELECT {key.format(moved)} AS k, COUNT(*) FROM t GROUP BY k", catalog).blocks
    assert len(block.keys[0].values or ()) <= 7


@pytest.mark.parametrize(
    ("key", "listed"),
    [
        ("COALESCE(upper(c), 'unknown')", {"F", "M", "unknown"}),
        ("CASE WHEN c IS NULL THEN 'n' ELSE upper(c) END", {"F", "M", "n"}),
        ("concat(c, 'x')", {"fx", "mx", "x"}),
        ("IF(b IS NULL, 'n', CAST(b AS VARCHAR))", {"true", "false", "n"}),
        ("CAST(b IS NULL AS VARCHAR) || 'x'", {"truex", "falsex"}),
        ("COALESCE(CAST(i AS VARCHAR), '?')", {"1", "2", "3", "?"}),
        ("concat(c, CAST(b AS VARCHAR))", {"ftrue", "ffalse", "mtrue", "mfalse", "true", "false", "f", "m", ""}),
        ("upper(c)", {"F", "M"}),
        ("lower(NULLIF(c, 'f'))", {"m", None}),
    ],
)
def test_what_an_expression_makes_of_null_is_public_too(key, listed):
    columns = (
        Column("u", "BIGINT"),
        Column("c", "VARCHAR", keys=("f", "m")),
        Column("b", "BOOLEAN"),
        Column("i", "BIGINT", bounds=(1, 3)),
    )
    catalog = Catalog({"t": Table("t", columns, "t", "unit", "u")})
    (grouped,) = parse(f"SELECT {key} AS k, COUNT(*) FROM t GROUP BY k", catalog).blocks
    assert set(grouped.keys[0].values) == listed
    (counted,) = parse(f"SELECT COUNT(DISTINCT {key}) FROM t", catalog).blocks
    assert counted.aggregates[0].values == len(listed - {None})
    every = product(("'f'", "'m'", "NULL"), ("true", "false", "NULL"), ("1", "2", "3", "NULL"))
    values = [f"({u}, {c}, {b}, {i})" for u, (c, b, i) in enumerate(every)]
    ENGINE.execute(f"CREATE OR REPLACE TABLE t AS SELECT * FROM (VALUES {', '.join(values)}) AS t(u, c, b, i)")
    found = {row[0] for row in ENGINE.execute(f"SELECT k0 FROM ({grouped.rows})").fetchall()}
    assert found - {None} == listed - {None}


def test_so_many_columns_that_may_be_missing_are_private():
    names = [f"b{i}" for i in range(10)]
    columns = (Column("u", "BIGINT"), *(Column(name, "BOOLEAN") for name in names))
    catalog = Catalog({"t": Table("t", columns, "t", "unit", "u")})
    for used, public in ((4, True), (10, False)):
        key = " || ".join(f"CAST({name} AS VARCHAR)" for name in names[:used])
        (block,) = parse(f"SELECT {key} AS k, COUNT(*) FROM t GROUP BY k", catalog).blocks
        assert (block.keys[0].values is not None) == public

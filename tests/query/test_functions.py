"""Functions of rows: they mean what they mean in DuckDB, where that has a value."""

from __future__ import annotations

import math

import duckdb
import pytest

from discreet.errors import QueryRefused
from discreet.query.catalog import Catalog, Column, Table
from discreet.query.parse import parse

TYPES = {"u": "BIGINT", "x": "DOUBLE", "n": "INTEGER", "s": "VARCHAR", "born": "DATE", "seen": "TIMESTAMP"}
ROWS = [
    "(1, 0.5, 3, 'Çà et là', DATE '1980-02-29', TIMESTAMP '2024-02-28 23:00:00')",
    "(2, -0.25, 12, 'abc', DATE '2024-02-29', TIMESTAMP '2024-02-29 00:00:00')",
    "(3, 1, 1, '', DATE '1999-12-31', TIMESTAMP '2000-01-01 12:00:00')",
    "(4, 0, 0, 'zz', DATE '2030-06-01', TIMESTAMP '1970-01-01 00:00:00')",
    "(5, NULL, NULL, NULL, NULL, NULL)",
]
CATALOG = Catalog({"p": Table("p", tuple(Column(name, kind) for name, kind in TYPES.items()), "people", "unit", "u")})
SAME = [
    "sin(x)", "cos(x)", "tan(x)", "asin(x)", "acos(x)", "atan(x)", "atan2(x, n)", "radians(x)", "degrees(x)",
    "cbrt(x)", "x * pi()", "2 * 6371 * asin(sqrt(sin(radians(x) / 2) ** 2 + cos(radians(x)) * cos(radians(n))))",
    "date_sub('year', born, seen)", "date_sub('month', born, seen)", "date_sub('day', born, seen)",
    "date_sub('week', seen, born)", "datesub('hour', born, seen)", "date_sub('quarter', born, DATE '2024-05-31')",
    "date_sub('decade', born, DATE '2024-05-31')", "ascii(s)", "unicode(s)", "ord(s)",
]  # fmt: skip
TEXTS = ["concat_ws('-', s, n)", "repeat(s, 3)", "translate(s, 'abc', 'xy')", "strip_accents(s)"]


@pytest.fixture(scope="module")
def engine():
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE people ({', '.join(f'{name} {kind}' for name, kind in TYPES.items())})")
        connection.execute(f"INSERT INTO people VALUES {', '.join(ROWS)}")
        yield connection


def _values(engine, sql: str, function: str) -> list[object]:
    """What is measured of an expression, in the order of the units."""
    [block] = parse(f"SELECT {function}({sql}) FROM p", CATALOG).blocks
    [aggregate] = block.aggregates
    found = engine.execute(f"SELECT {aggregate.argument} FROM ({block.rows}) ORDER BY u").fetchall()
    return [value for (value,) in found]


def _key(engine, sql: str) -> list[object]:
    [block] = parse(f"SELECT {sql} AS k, COUNT(*) FROM p GROUP BY k", CATALOG).blocks
    [key] = block.keys
    return [k for (k,) in engine.execute(f"SELECT {key.column} FROM ({block.rows}) ORDER BY u").fetchall()]


def _plain(engine, sql: str) -> list[object]:
    return [value for (value,) in engine.execute(f"SELECT {sql} FROM people ORDER BY u").fetchall()]


@pytest.mark.parametrize("sql", SAME)
def test_numbers_are_those_of_the_engine(engine, sql):
    expected = _plain(engine, sql)
    for value, other in zip(_values(engine, sql, "SUM"), expected, strict=True):
        assert (value is None) == (other is None)
        assert other is None or value == pytest.approx(other, rel=1e-15)


@pytest.mark.parametrize("sql", TEXTS)
def test_texts_are_those_of_the_engine(engine, sql):
    assert _key(engine, sql) == _plain(engine, sql)


@pytest.mark.parametrize("sql", ["extract(year FROM age(seen, born))", "date_part('year', age(seen, born))"])
def test_the_years_of_an_age_are_the_complete_ones(engine, sql):
    """A birthday on 29 February 1980 is not there yet on the evening of 28 February 2024."""
    years = [43, 0, 0, -60, None]
    assert _values(engine, sql, "SUM") == years
    assert _values(engine, "date_sub('year', born, seen)", "SUM") == years


@pytest.mark.parametrize(
    ("sql", "times"),
    [("repeat(s, 1000)", 1000), ("replace(s, 'x', '{0}')", 100), ("regexp_replace(s, '', '{0}', 'g')", 101)],
)
def test_texts_that_would_grow_too_long_are_null(engine, sql, times):
    """Whoever has a long text could otherwise be told by a question that runs out of memory."""
    most = (1 << 24) // times
    [block] = parse(f"SELECT {sql.format('y' * 100)} AS k, COUNT(*) FROM p GROUP BY k", CATALOG).blocks
    texts = f"SELECT 1 AS u, repeat('x', {most + 1}) AS s UNION ALL SELECT 2, repeat('x', {most})"
    found = engine.execute(f"SELECT u, k0 IS NULL FROM ({block.rows.replace('people', f'({texts})')}) ORDER BY u")
    assert found.fetchall() == [(1, True), (2, False)]


def test_days_that_do_not_exist_are_null(engine):
    days = _key(engine, "make_date(2024, n, 30)")
    assert [day and day.isoformat() for day in days] == ["2024-03-30", "2024-12-30", "2024-01-30", None, None]
    days = _key(engine, "make_date(2000 + n, 2, 29)")
    assert [day and day.isoformat() for day in days] == [None, "2012-02-29", None, "2000-02-29", None]


@pytest.mark.parametrize("sql", ["sin(x)", "cos(x * 1e9)", "asin(x)", "acos(x)", "atan(x)", "atan2(x, n)"])
def test_stated_ranges_hold(engine, sql):
    [block] = parse(f"SELECT SUM({sql}) FROM p", CATALOG).blocks
    [aggregate] = block.aggregates
    assert aggregate.bounds is not None
    low, high = aggregate.bounds
    assert all(low <= value <= high for value in _plain(engine, sql) if value is not None)
    assert high - low <= 2 * math.pi


@pytest.mark.parametrize(
    ("born", "end", "expected"),
    [
        (("1980-01-01", "2000-12-31"), "2024-12-31", (23, 44)),
        (("1980-01-02", "2000-06-30"), "2024-01-01", (23, 44)),
        (("2030-01-01", "2030-12-31"), "2024-06-01", (-6, -5)),
        (("2020-01-01", "2030-12-31"), "2024-06-01", (-6, 4)),
    ],
)
def test_complete_years_between_bounds_lie_within_theirs(engine, born, end, expected):
    import datetime as dt

    days = tuple(float((dt.date.fromisoformat(day) - dt.date(1970, 1, 1)).days) for day in born)
    table = Table("p", (Column("u", "BIGINT"), Column("born", "DATE", bounds=days)), "people", "unit", "u")
    [block] = parse(f"SELECT AVG(date_sub('year', born, DATE '{end}')) FROM p", Catalog({"p": table})).blocks
    [aggregate] = block.aggregates
    assert aggregate.bounds == expected
    truth = engine.execute(
        f"SELECT min(y), max(y) FROM (SELECT date_sub('year', CAST(d AS DATE), DATE '{end}') AS y "
        f"FROM range(DATE '{born[0]}', DATE '{born[1]}' + INTERVAL 1 DAY, INTERVAL 1 DAY) t(d))"
    ).fetchone()
    assert expected[0] <= truth[0]
    assert truth[1] <= expected[1]


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("repeat(s, 1001)", "repeat up to 1000 times"),
        ("repeat(s, n)", "must be written out"),
        ("make_date(x, 1, 1)", "the year of make_date must be a whole number"),
        ("date_sub('year', born)", "date_sub takes 3 arguments"),
        ("date_sub('fortnight', born, seen)", "is not a unit of time"),
        ("age(seen, born)", "write date_sub('year', start, end) for complete years"),
        ("extract(year FROM age(born))", "age takes 2 arguments"),
        ("concat_ws(s, s)", "must be written out"),
        ("sin(s)", "a number is needed here"),
    ],
)
def test_what_is_not_understood_is_refused_with_advice(sql, words):
    with pytest.raises(QueryRefused, match=words.replace("(", r"\(").replace(")", r"\)")):
        parse(f"SELECT COUNT({sql}) FROM p", CATALOG)

"""Texts of public lists become whole numbers while rows are read: the same rows in the same groups, in other words."""

from __future__ import annotations

import math
from collections import Counter
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.engines import DuckDBEngine
from discreet.query.by_row import RowTotals, by_public_group, of_groups
from discreet.query.codes import coded
from discreet.query.options import Options
from discreet.query.plan import Aggregate, Block, Key
from discreet.query.private import private_plan
from discreet.query.target import Target

COUNTRY = 'a "b" AS k0 FROM x AS t0'
VALUES = {COUNTRY: ("IT", "", "it", "IT ", "NULL", "Ö"), "part": ("s", "n"), "what": ("x", "IT", "")}
TOWNS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4, 5, 6, None, 8, 8]),
        COUNTRY: ["IT", "it", "", "FR", None, "Ö", "IT", "IT ", "IT "],
        "part": ["n", "s", "n", "s", "n", "s", "n", None, None],
        "q__code k0": ["a"] * 9,
    }
)
NAME = COUNTRY.replace('"', '""')
VISITS = 'temp.main."visits"'
ODD = 'x" * FROM "y'
ODDLY = f'(SELECT DISTINCT ON ("id") * FROM temp.main."{ODD.replace(chr(34), 2 * chr(34))}")'
ONCE = '(SELECT DISTINCT ON ("id") * FROM temp.main."towns")'
PRESENT = f't0."{NAME}" IS NOT NULL'
TWICE = f'{ONCE} AS t0 ON (t2."town" = t0."id") JOIN {ONCE} AS t1 ON (t0."id" = t1."id")'
ROWS = {
    "joined": (
        f'SELECT t0."{NAME}" AS k0 FROM {VISITS} AS t1 JOIN {ONCE} AS t0 ON (t1."town" = t0."id")',
        (COUNTRY,),
        1,
    ),
    "joined, not NULL": (
        f'SELECT t0."{NAME}" AS k0 FROM {VISITS} AS t1 JOIN {ONCE} AS t0 ON (t1."town" = t0."id") WHERE {PRESENT}',
        (COUNTRY,),
        1,
    ),
    "an argument": (
        f'SELECT t0."{NAME}" AS k0, t0."{NAME}" AS x0 FROM {VISITS} AS t1 JOIN {ONCE} AS t0 ON (t1."town" = t0."id")',
        (COUNTRY,),
        1,
    ),
    "joined the other way": (
        f'SELECT t0."part" AS k0 FROM {ONCE} AS t0 JOIN {VISITS} AS t1 ON (t1."town" = t0."id")',
        ("part",),
        1,
    ),
    "two keys of a joined table": (
        f'SELECT t0."part" AS k0, t0."{NAME}" AS k1 FROM {VISITS} AS t1 JOIN {ONCE} AS t0 ON (t1."town" = t0."id")',
        ("part", COUNTRY),
        2,
    ),
    "the same table twice": (
        f'SELECT t0."{NAME}" AS k0, t1."part" AS k1 FROM {VISITS} AS t2 JOIN {TWICE}',
        (COUNTRY, "part"),
        2,
    ),
    "a key of each": (
        f'SELECT t0."what" AS k0, t1."{NAME}" AS k1 FROM {VISITS} AS t0 JOIN {ONCE} AS t1 ON (t0."town" = t1."id")',
        ("what", COUNTRY),
        2,
    ),
    "a table with a name like SQL": (
        f'SELECT t0."{NAME}" AS k0 FROM {VISITS} AS t1 JOIN {ODDLY} AS t0 ON (t1."town" = t0."id")',
        (COUNTRY,),
        1,
    ),
    "one key of one table": (f'SELECT t0."what" AS k0 FROM {VISITS} AS t0', ("what",), 0),
    "one key that is computed": ("SELECT upper(what) AS k0 FROM temp.main.visits", ("what",), 0),
}


def visits(rows: int) -> pa.Table:
    stream = np.random.default_rng(rows)
    what = [["x", "IT", "", "y", None][i] for i in stream.integers(0, 5, rows)]
    town = pa.array(stream.integers(1, 10, rows), pa.int64(), mask=stream.random(rows) < 0.1)
    return pa.table({"what": pa.array(what, pa.string()), "town": town})


@pytest.mark.parametrize("rows", [0, 1, 2000])
@pytest.mark.parametrize("case", ROWS)
def test_groups_have_the_rows_that_have_their_texts(case: str, rows: int) -> None:
    sql, columns, codes = ROWS[case]
    keys = tuple(Key(f"k{i}", "VARCHAR", column, VALUES[column]) for i, column in enumerate(columns))
    block = Block(sql, keys, (Aggregate("count", "a0", "n"),), row_level=True, rows_per_unit=1)
    plan = private_plan(block, Target(epsilon=1, delta=1e-6), Options())
    with DuckDBEngine() as engine:
        engine.register("visits", visits(rows))
        engine.register("towns", TOWNS)
        engine.register(ODD, TOWNS)
        with engine.session() as session:
            read = session.table(sql).to_pylist()
            for ranged in (False, True) if block.plain else (False,):
                made = coded(session, block, ranged=ranged)
                assert len(made.keys) == (codes if ranged else 0)
                assert len(made.late) == (len(keys) == 1 and not made.keys)
                statement = by_public_group(session, plan, RowTotals({"n": "count(*)"}), ranged=ranged)
                assert statement.count("enum_code") == len(made.keys) + len(made.late)
                assert "(SELECT DISTINCT ON" in statement or codes == 0  # the join leaves a row one row all the same
                found = session.numbers(statement, plain=ranged)
                assert found["g"].size <= math.prod(1 + len(VALUES[column]) for column in columns)
                found = of_groups(found)
                counts = Counter(tuple(row[key.column] for key in keys) for row in read)
                places = {values: i for i, values in enumerate(product(*(VALUES[column] for column in columns)))}
                want = sorted((places[values], n) for values, n in counts.items() if values in places)
                assert sorted(zip(found["g"].tolist(), found["n"].tolist(), strict=True)) == want


def test_only_lists_of_different_texts_are_coded(monkeypatch: pytest.MonkeyPatch) -> None:
    sql, columns, _ = ROWS["joined"]
    with DuckDBEngine() as engine, engine.session() as session:
        for kind, values, number in (
            ("VARCHAR", ("a", "b"), 1),
            ("VARCHAR", ("a", None), 0),
            ("VARCHAR", ("a", "a"), 0),
            ("VARCHAR", None, 0),
            ("BIGINT", (1, 2), 0),
            ("BOOLEAN", (True, False), 0),
        ):
            block = Block(sql, (Key("k0", kind, columns[0], values),), (), row_level=True, rows_per_unit=1)
            read = coded(session, block, ranged=True)
            assert len(read.keys) == number
            assert len(coded(session, block, ranged=False).late) == number
            assert (read.rows == sql) == (number == 0)
        monkeypatch.setattr(engine._listings, "_room", 0)
        block = Block(sql, (Key("k0", "VARCHAR", columns[0], ("c",)),), (), row_level=True, rows_per_unit=1)
        assert coded(session, block, ranged=True).rows == sql


@pytest.mark.parametrize("rows", [0, 3, 3000])
def test_distinct_values_are_the_same_by_ranges_of_a_file_and_without(tmp_path: Path, rows: int) -> None:
    stream = np.random.default_rng(rows)
    strange = stream.choice([0.0, -0.0, math.nan, math.inf, -math.inf, 5e-324, 1e300, -7.5], rows)
    columns = {
        "day": pa.array(stream.integers(-3, 9, rows), pa.int32()).cast(pa.date32()),
        "x": pa.array(strange, mask=stream.random(rows) < 0.1),
        "n": pa.array(stream.integers(-(2**62), 2**62, rows), mask=stream.random(rows) < 0.1),
        "what": visits(rows)["what"],
    }
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    key = Key("k0", "DATE", "day", ("1970-01-03", "1970-01-02", "1970-02-01"))
    with DuckDBEngine() as engine:
        relation = engine.register("t", tmp_path / "t.parquet")
        with engine.session() as session:
            for column in ("x", "n", "what", "day"):
                block = Block(
                    f'SELECT t0."day" AS k0, t0."{column}" AS x0 FROM {relation} AS t0',
                    (key,),
                    (Aggregate("count_distinct", "a0", "n", "x0"),),
                    row_level=True,
                    rows_per_unit=1,
                )
                plan = private_plan(block, Target(epsilon=1, delta=1e-6), Options())
                statement = by_public_group(session, plan, RowTotals({"n": "count(DISTINCT r.x0)"}))
                assert block.plain
                found = [session.numbers(statement, plain=plain) for plain in (False, True)]
                pairs = [sorted(zip(one["g"].tolist(), one["n"].tolist(), strict=True)) for one in found]
                assert pairs[0] == pairs[1]
                assert len(pairs[0]) == (2 if rows == 3000 else len(pairs[0]))

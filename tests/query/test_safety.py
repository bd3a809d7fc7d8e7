"""No data can make a planned question raise: every allowed function over values that break careless SQL."""

from __future__ import annotations

import itertools
import random
import re

import duckdb
import pytest

from discreet.errors import QueryRefused
from discreet.query.moments import moments_of
from discreet.query.options import Options
from discreet.query.parse import parse
from discreet.query.private import _bounded
from query import nasty

KINDS = {
    "number": nasty.listed(nasty.NUMBERS),
    "text": nasty.listed(nasty.TEXTS),
    "condition": nasty.listed(nasty.CONDITIONS),
    "time": nasty.listed(nasty.TIMES),
}
COLUMNS = {
    **dict.fromkeys(("i", "b", "h", "ub", "t", "d", "f", "p", "w"), "number"),
    **dict.fromkeys(("s", "z"), "text"),
    "o": "condition",
    **dict.fromkeys(("y", "m", "q"), "time"),
}


@pytest.fixture(scope="module")
def engine():
    with nasty.connection() as connection:
        yield connection


def _uses(kind: str, sql: str) -> list[str]:
    """Questions that use an expression as a key, a condition, a join condition and an argument."""
    uses = [
        f"SELECT {sql} AS k, COUNT(*) FROM n GROUP BY k",
        f"SELECT COUNT({sql}), COUNT(DISTINCT {sql}) FROM n WHERE ({sql}) IS NOT NULL OR o",
        (
            f"SELECT k, COUNT(l), COUNT(DISTINCT m) FROM (SELECT LAG({sql}) OVER (PARTITION BY u ORDER BY s) AS k, "
            f"MIN({sql}) OVER (PARTITION BY u, {sql}) AS l, LAST_VALUE({sql}) OVER (PARTITION BY u ORDER BY {sql} DESC "
            "ROWS BETWEEN 1 PRECEDING AND 3 FOLLOWING) AS m FROM n) GROUP BY k"
        ),
    ]
    if kind == "number":
        uses.append(f"SELECT SUM({sql}), AVG({sql}) FILTER (WHERE o), MEDIAN({sql}), STDDEV({sql}), MAX({sql}) FROM n")
        uses.append(
            "SELECT AVG(a), SUM(b), MAX(c), AVG(d), AVG(e), AVG(f), AVG(g) FROM ("
            f"SELECT u, SUM({sql}) a, AVG({sql}) b, MAX({sql}) c, STDDEV({sql}) d, VAR_POP({sql}) e, MEDIAN({sql}) f, "
            f"COUNT(DISTINCT {sql}) g FROM n GROUP BY u)"
        )
        uses.append(
            f"SELECT SUM(a + a), AVG(a * b), MAX(a - b), SUM(a % b) FROM (SELECT SUM(CAST({sql} AS HUGEINT)) OVER "
            f"(PARTITION BY u ORDER BY i) AS a, FIRST_VALUE({sql}) OVER (PARTITION BY u ORDER BY d) AS b FROM n)"
        )
    if kind == "condition":
        uses.append(f"SELECT COUNT(*) FILTER (WHERE {sql}), SUM(CASE WHEN {sql} THEN d END), count_if({sql}) FROM n")
        uses.append(f"SELECT COUNT(*) FROM (SELECT * FROM n WHERE {sql}) AS l LEFT JOIN n r ON l.u = r.u AND r.i > l.i")
    if kind == "time":
        uses.append(f"SELECT MIN({sql}), MAX({sql}), MEDIAN({sql}) FROM n")
    return uses


def _runs(engine, text: str) -> None:
    """Runs the rows of every block, and checks that types and public values are as stated."""
    for block in parse(text, nasty.CATALOG).blocks:
        engine.execute(f"CREATE OR REPLACE TEMP TABLE x AS {block.rows}")
        types = {name: kind for name, kind, *_ in engine.execute("DESCRIBE x").fetchall()}
        for key in block.keys:
            assert types[key.column] == key.sql_type or types[key.column] == '"NULL"', text
            if key.values is not None:
                found = {row[0] for row in engine.execute(f"SELECT DISTINCT {key.column} FROM x").fetchall()}
                assert {one for one in found if one is not None and one == one} <= set(key.values), text
        aggregates = tuple(_bounded(one, Options()) for one in block.aggregates)
        for one in aggregates:
            if one.argument is not None and one.function != "count_distinct":
                assert types[one.argument] in ("BIGINT", "DOUBLE"), text
            for moment in moments_of(one, aggregates):
                found = engine.execute(f"SELECT {moment.total()} FROM x").fetchone()
                assert found is not None, text
                assert found[0] == int(found[0]), text


@pytest.mark.parametrize("kind", KINDS)
def test_no_allowed_function_raises_on_any_value(engine, kind):
    for sql in KINDS[kind]:
        for text in _uses(kind, sql):
            _runs(engine, text)


ODD_TEXTS = ("", "é", "日本", "😀", "\u0301", "\\", "%", "!é", "%-a", "%-d")
ODD_PATTERNS = (r"\C", r"^\C", r"(\C)", r"\\\C", r"\Q\\E\C", ".", "[^a]", r"\x{e9}", "(?i)É", "(", "()", "")
ODD_NUMBERS = (0, -1, 5, 18, -18, 1_000_000, -1_000_000)
WITH_CONSTANTS = """
substr(s, #)|substr(s, #, #)|left(s, #)|right(s, #)|lpad(s, #, $)|rpad(z, #, $)|split_part(s, $, #)|replace(s, $, $)|
trim(s, $)|s LIKE $|s LIKE $ ESCAPE $|z NOT ILIKE $ ESCAPE $|contains(s, $)|strpos(s, $)|s || $|strftime(m, $)|
regexp_extract(s, ~)|regexp_extract(s || 'é', ~, 1)|regexp_replace(s, ~, $)|regexp_replace(s || 'é', ~, $, 'g')|s ~ ~|
regexp_full_match(z, ~)|round(d, #)|y + #|m - INTERVAL (#) HOUR|y + INTERVAL (#) MONTH|d ** #|b // #|b % #|log(#, d)
"""


@pytest.mark.parametrize("form", nasty.listed(WITH_CONSTANTS))
def test_no_constant_makes_a_function_raise_once_a_row_reaches_it(engine, form):
    """Some constants are refused. What is left stands in CASE, where the engine meets it only if a row is there."""
    choices = {
        "#": [str(number) for number in ODD_NUMBERS],
        "$": [f"'{text}'" for text in ODD_TEXTS],
        "~": [f"'{pattern}'" for pattern in ODD_PATTERNS],
    }
    operator, form = ("s ~ ", form.removeprefix("s ~ ")) if form.startswith("s ~ ") else ("", form)
    pieces = re.split(r"([#$~])", form)
    expressions = []
    for constants in itertools.product(*(choices[piece] for piece in pieces[1::2])):
        text = operator + "".join(part for pair in zip(pieces[::2], [*constants, ""], strict=True) for part in pair)
        try:
            parse(f"SELECT COUNT(CASE WHEN o THEN {text} END) FROM n", nasty.CATALOG)
        except QueryRefused:
            continue
        expressions.append(f"COUNT(CASE WHEN o THEN {text} END)")
    assert expressions
    for start in range(0, len(expressions), 20):
        _runs(engine, f"SELECT {', '.join(expressions[start : start + 20])} FROM n")


CONSTANTS = {
    "number": "2147483647|-2147483648|2147483648|9223372036854775807|-9223372036854775808|18446744073709551615|"
    "170141183460469231731687303715884105727|0|-1|1|32767|-32768|127|-128|65535|1e308|-1e308|5e-324|0.5|1e15|-0.0|"
    "99999999999999999.99|NULL",
    "text": "''|'a'|'12'|'2147483647'|'-9223372036854775808'|'1e400'|'é'|'%'|'nan'|'2020-02-30'|'infinity'|NULL",
    "condition": "TRUE|FALSE|NULL|1 = 1",
    "time": "DATE '0001-01-01'|DATE '9999-12-31'|TIMESTAMP '9999-12-31 23:59:59.999999'|TIMESTAMP '0001-01-01'|"
    "DATE '2020-02-29'|NULL",
}


def _nested(rng: random.Random, kind: str, depth: int) -> str:
    """A random expression: columns are replaced by constants and expressions of their kind."""

    def put(match: re.Match[str]) -> str:
        name, draw = match.group(1), rng.random()
        if draw < 0.25:
            return f"({rng.choice(CONSTANTS[COLUMNS[name]].split('|'))})"
        return f"({_nested(rng, COLUMNS[name], depth - 1)})" if depth and draw < 0.65 else name

    pieces = re.split(r"('(?:[^']|'')*')", rng.choice(KINDS[kind]))
    pattern = rf"\b({'|'.join(COLUMNS)})\b(?!\()"
    return "".join(piece if piece.startswith("'") else re.sub(pattern, put, piece) for piece in pieces)


def _try_nested(engine, *, seed: int, count: int) -> int:
    rng = random.Random(seed)
    done = 0
    for _ in range(count):
        kind = rng.choice(list(KINDS))
        sql = _nested(rng, kind, rng.choice([1, 2, 3]))
        text = rng.choice([*_uses(kind, sql), f"SELECT COUNT(CASE WHEN u = 17 THEN {sql} END) FROM n"])
        try:
            parse(text, nasty.CATALOG)
        except QueryRefused:
            continue
        _runs(engine, text)
        done += 1
    return done


def test_no_nested_expression_raises_on_any_value(engine):
    assert _try_nested(engine, seed=5, count=300) > 200


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_no_deeply_nested_expression_raises_on_any_value(engine, seed):
    assert _try_nested(engine, seed=seed, count=1500) > 1000


ENDS = (
    "2147483647",
    "-2147483648",
    "127",
    "32767",
    "9223372036854775807",
    "-9223372036854775808",
    "5",
    "0",
    "-1",
    "NULL",
)
"""The ends of types, to the engine: a number in SQL is of the narrowest one that holds it."""
WRITTEN = """
n|(SELECT u, b, h, o, s, # AS c FROM n) n|(SELECT DISTINCT u, b, h, o, s, # AS c FROM n) n|
(SELECT u, b, h, o, s, # AS c FROM n UNION ALL SELECT u, b, h, o, s, # AS c FROM n) n|
(SELECT n.u, n.b, n.h, n.o, n.s, q.c FROM n LEFT JOIN (SELECT u, # AS c FROM n) q ON n.u = q.u) n|
(SELECT n.u, n.b, n.h, n.o, n.s, q.c FROM n LEFT JOIN (SELECT u, MAX(#) AS c FROM n GROUP BY u) q ON n.u = q.u) n|
(SELECT u, MAX(b) AS b, MAX(h) AS h, MAX(o) AS o, MAX(s) AS s, MIN(CASE WHEN o THEN # ELSE # END) AS c FROM n
GROUP BY u) n|
(WITH w AS (SELECT u, # AS c FROM n) SELECT n.u, n.b, n.h, n.o, n.s, COALESCE(w.c, #) AS c FROM n LEFT JOIN w
ON n.u = w.u) n
"""
OF_WHOLE_NUMBERS = """
@ + @|@ - @|@ * @|@ // @|@ % @|abs(@)|-@|CASE WHEN o THEN @ ELSE @ END|CASE WHEN o THEN @ END|coalesce(@, @)|
greatest(@, @)|least(@, @)|nullif(@, @)|round(@)|sign(@)|length(s)|CAST(@ AS INT)|CAST(@ AS BIGINT)|
CAST(@ AS HUGEINT)|CAST(@ AS TINYINT)|CAST(@ AS UBIGINT)
"""


def _of_whole_numbers(rng: random.Random, depth: int, columns: list[str]) -> str:
    if depth == 0:
        return rng.choice([*columns, *(f"({end})" for end in ENDS)])
    form = rng.choice(nasty.listed(OF_WHOLE_NUMBERS))
    return re.sub("@", lambda _: f"({_of_whole_numbers(rng, depth - 1, columns)})", form)


def _try_ends(engine, *, seed: int, count: int) -> int:
    """Expressions of whole numbers at the ends of types, also such as were written out in subqueries."""
    rng = random.Random(seed)
    done = 0
    for _ in range(count):
        relation = re.sub("#", lambda _: rng.choice(ENDS), rng.choice(nasty.listed(WRITTEN)))
        columns = ["i", "b", "h"] if relation == "n" else ["b", "h", "c", "c"]
        sql = _of_whole_numbers(rng, rng.choice([1, 2, 3]), columns)
        text = f"SELECT {sql} AS k, SUM({sql}), COUNT(DISTINCT {sql}) FROM {relation} GROUP BY k"
        try:
            [block] = parse(text, nasty.CATALOG).blocks
        except QueryRefused:
            continue
        if all(key.sql_type != "NULL" for key in block.keys):
            _runs(engine, text)
            done += 1
    return done


def test_no_end_of_a_type_makes_whole_numbers_overflow(engine):
    """A type that is not what is stated shows: then the engine would add in a narrower one than was planned."""
    assert _try_ends(engine, seed=1, count=500) > 400


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 6))
def test_no_end_of_a_type_makes_many_whole_numbers_overflow(engine, seed):
    assert _try_ends(engine, seed=seed, count=5000) > 4000


@pytest.mark.parametrize(
    "sql",
    [
        "CASE WHEN u = 17 THEN 2147483647 ELSE 5 END + 1",
        "CASE WHEN u = 17 THEN 2147483647 END * 2",
        "-(CASE WHEN u = 17 THEN -2147483648 ELSE 5 END)",
        "CAST(CASE WHEN u = 17 THEN '-170141183460469231731687303715884105728' ELSE '5' END AS HUGEINT) % -1",
        "CAST(CASE WHEN u = 17 THEN '-9223372036854775808' ELSE '5' END AS BIGINT) * 18446744073709551616",
        "coalesce(CASE WHEN u = 17 THEN 2147483647 END, 5) + 1",
        "nullif(2147483647, CASE WHEN u = 17 THEN 1 ELSE 2147483647 END) + 1",
    ],
)
def test_overflow_does_not_tell_whether_somebody_is_there(engine, sql):
    _runs(engine, f"SELECT SUM({sql}), COUNT({sql}) FROM n WHERE ({sql}) IS NOT NULL")
    with pytest.raises(duckdb.Error):  # the engine itself would tell
        engine.execute(f"SELECT MAX({sql}) FROM nasty")


@pytest.mark.parametrize("threshold", ["-1e308", "0", "1e15", "1e308"])
def test_the_cast_attack_neither_raises_nor_depends_on_the_threshold(engine, threshold):
    # In a system that copies the CAST, this raises if and only if person 17 has a value above the threshold.
    text = f"SELECT SUM(CASE WHEN u = 17 AND d > {threshold} THEN CAST(s AS INT) ELSE 0 END) FROM n"
    _runs(engine, text)
    with pytest.raises(duckdb.Error):  # the data is such that the attack works on the engine itself
        engine.execute("SELECT SUM(CASE WHEN u = 17 AND d > -1e308 THEN CAST(s AS INT) ELSE 0 END) FROM nasty")

"""Groups that no row can be in, by public facts, are not shown: of one public table, or computed from one column."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from discreet import Budget, Curator
from discreet.errors import QueryRefused
from discreet.query import Policy
from discreet.query.policy import ColumnPolicy, TablePolicy
from query.tables import without_noise

PLACES = (("Oslo", "NO", "north"), ("Bergen", "NO", "north"), ("Lima", "PE", "south"), ("Rome", "IT", "north"))
TOWNS = [town for town, _, _ in PLACES]
NUMBER = 6000


def rides() -> pa.Table:
    stream = np.random.default_rng(3)
    moments = np.datetime64("2023-01-01") + stream.integers(0, 365 * 86400, NUMBER).astype("timedelta64[s]")
    towns = [TOWNS[i] for i in stream.integers(0, 3, NUMBER)]  # nobody was in Rome
    return pa.table({"u": np.arange(NUMBER), "town": towns, "started": moments})


RIDES = rides()
TABLES = {
    "rides": TablePolicy(
        RIDES,
        unit="u",
        rows_per_unit=1,
        columns={
            "town": ColumnPolicy(keys_from="towns.town"),
            "started": ColumnPolicy(bounds=("2023-01-01", "2023-12-31 23:59:59")),
        },
    ),
    "towns": TablePolicy(
        pa.table(dict(zip(("town", "land", "part"), map(list, zip(*PLACES, strict=True)), strict=True))),
        public=True,
        columns={
            "town": ColumnPolicy(unique=True),
            "land": ColumnPolicy(keys_from="towns.land"),
            "part": ColumnPolicy(keys_from="towns.part"),
        },
    ),
}


@pytest.fixture
def curator(monkeypatch: pytest.MonkeyPatch) -> Iterator[Curator]:
    without_noise(monkeypatch)
    budget = Budget(epsilon=100.0, delta=1e-6)
    with Curator.open(Policy("d", TABLES), budget=budget, ledger=":memory:") as opened:
        yield opened


def expected(text: str) -> list[tuple[Any, ...]]:
    with duckdb.connect() as engine:
        engine.register("rides", RIDES)
        engine.register("towns", TABLES["towns"].source)
        return engine.execute(text).fetchall()


JOINED = "FROM rides JOIN towns USING (town)"
SAME = {
    "a day and its name": "SELECT dayname(started) AS d, CAST(started AS DATE) AS day, COUNT(*) AS n FROM rides",
    "quarters and months": "SELECT quarter(started) AS q, month(started) AS m, COUNT(*) AS n FROM rides",
    "a year, a month and its name": "SELECT year(started) AS y, date_trunc('month', started) AS m, "
    "monthname(started) AS name, COUNT(*) AS n FROM rides",
    "hours are apart": "SELECT hour(started) AS h, dayname(started) AS d, COUNT(*) AS n FROM rides",
}


@pytest.mark.parametrize("text", SAME.values(), ids=SAME)
def test_keys_of_one_column_give_the_groups_that_the_calendar_has(curator: Curator, text: str) -> None:
    answer = curator.sql(f"{text} GROUP BY ALL ORDER BY ALL", epsilon=1.0)
    assert answer.fetchall() == expected(f"{text} GROUP BY ALL ORDER BY ALL")
    assert answer.intervals().num_rows == len(answer)


@pytest.mark.parametrize(
    ("text", "empty"),
    [
        (f"SELECT part, town, COUNT(*) AS n {JOINED} GROUP BY ALL", [("north", "Rome", 0)]),
        (f"SELECT land, part, COUNT(*) AS n {JOINED} GROUP BY ALL", [("IT", "north", 0)]),
        (
            "SELECT c.land, r.town, COUNT(*) AS n FROM rides r LEFT JOIN towns c ON c.town = r.town GROUP BY ALL",
            [("IT", "Rome", 0)],
        ),
        (
            f"SELECT land, town, n FROM (SELECT part, land, town, COUNT(*) AS n {JOINED} GROUP BY part, land, town)",
            [("IT", "Rome", 0)],
        ),
    ],
)
def test_keys_of_one_public_table_give_its_combinations(
    curator: Curator, text: str, empty: list[tuple[Any, ...]]
) -> None:
    answer = curator.sql(text, epsilon=1.0)
    assert sorted(answer.fetchall()) == sorted([*expected(text), *empty])
    assert any("those combinations are shown that can be" in line for line in answer.report)


def test_numbers_over_groups_take_in_no_group_that_cannot_be(curator: Curator) -> None:
    inner = "SELECT dayname(started) AS d, CAST(started AS DATE) AS day, COUNT(*) AS n FROM rides GROUP BY ALL"
    text = f"SELECT d, AVG(n) AS mean, COUNT(*) AS days FROM ({inner}) GROUP BY d ORDER BY d"
    for row, true in zip(curator.sql(text, epsilon=1.0).fetchall(), expected(text), strict=True):
        assert row == pytest.approx(true)
    lands = (
        f"SELECT part, COUNT(*) AS lands FROM (SELECT part, land, COUNT(*) AS n {JOINED} GROUP BY ALL) GROUP BY part"
    )
    assert sorted(curator.sql(lands, epsilon=1.0).fetchall()) == [("north", 2), ("south", 1)]


def test_keys_that_have_nothing_to_do_with_each_other_give_all_combinations(curator: Curator) -> None:
    answer = curator.sql("SELECT town, dayname(started) AS d, COUNT(*) AS n FROM rides GROUP BY ALL", epsilon=1.0)
    assert len(answer) == 4 * 7
    assert not any("that can be" in line for line in answer.report)


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("town = 'oslo'", "no key that the policy lists for town meets town = 'oslo': did you mean 'Oslo'?"),
        ("town IN ('Paris', 'Bonn')", "no key that the policy lists for town meets town IN ('Paris', 'Bonn')"),
        ("started >= '2024-01-01'", "no value within the bounds of started meets started >= '2024-01-01'"),
        ("u > 3 AND started < DATE '2022-01-01'", "no value within the bounds of started meets started <"),
        ("town = 'Oslo'", ""),
        ("town IS NULL", ""),
        ("town <> 'Oslo' AND started >= '2023-12-31'", ""),
        ("u IS NOT NULL", ""),
    ],
)
def test_conditions_that_no_value_of_the_policy_meets_have_a_caution(
    curator: Curator, condition: str, said: str
) -> None:
    text = f"SELECT COUNT(*) AS n FROM rides WHERE {condition}"
    for cautions in (curator.explain(text, epsilon=1.0).cautions, curator.sql(text, epsilon=1.0).cautions):
        assert any(said in line for line in cautions) if said else not any("by the policy" in line for line in cautions)


def test_keys_that_are_always_missing_together_leave_an_answer(curator: Curator) -> None:
    text = "SELECT NULLIF(town, town) AS a, NULLIF(town, town) || town AS b, COUNT(*) AS n FROM rides GROUP BY ALL"
    assert (None, None, NUMBER) in curator.sql(text, epsilon=1.0).fetchall()


def test_rows_of_nobody_cannot_be_asked_for(curator: Curator) -> None:
    with pytest.raises(QueryRefused, match="rows without a unit are in no answer"):
        curator.sql("SELECT COUNT(*) AS n FROM rides WHERE u IS NULL", epsilon=1.0)


def visited() -> pa.Table:
    """People in four towns, of which the policy lists three, on days of which it lists a year."""
    stream = np.random.default_rng(4)
    places = list(PLACES)
    chosen = [places[i] for i in stream.integers(0, 4, NUMBER)]
    parts = [("north", "south")[i] for i in stream.integers(0, 2, NUMBER)]  # not those of the towns
    moments = np.datetime64("2022-06-01") + stream.integers(0, 1000, NUMBER).astype("timedelta64[D]")
    return pa.table(
        {"u": np.arange(NUMBER), "town": [town for town, _, _ in chosen], "part": parts, "day": moments.astype("M8[D]")}
    )


VISITED = visited()
LISTED = TOWNS[:3]


@pytest.fixture
def loose(monkeypatch: pytest.MonkeyPatch) -> Iterator[Curator]:
    """Rows with values that the policy does not list."""
    without_noise(monkeypatch)
    columns = {
        "town": ColumnPolicy(keys=LISTED),
        "part": ColumnPolicy(keys=("north", "south")),
        "day": ColumnPolicy(bounds=("2023-01-01", "2023-12-31")),
    }
    tables = {"v": TablePolicy(VISITED, unit="u", rows_per_unit=1, columns=columns), "towns": TABLES["towns"]}
    budget = Budget(epsilon=100.0, delta=1e-6)
    with Curator.open(Policy("d", tables), budget=budget, ledger=":memory:") as opened:
        yield opened


@pytest.mark.parametrize(
    "text",
    [
        "SELECT v.town, v.part, COUNT(*) AS n FROM v LEFT JOIN towns c ON v.town = c.town AND v.part = c.part",
        "SELECT town, part, COUNT(*) AS n FROM v LEFT JOIN towns c USING (town, part)",
        "SELECT v.town, v.part, COUNT(*) AS n FROM towns c RIGHT JOIN v ON v.town = c.town AND v.part = c.part",
        "SELECT v.town, v.part, c.land, COUNT(*) AS n FROM v LEFT JOIN towns c ON v.town = c.town AND v.part = c.part",
        "SELECT v.town, c.part, COUNT(*) AS n FROM v JOIN towns c ON v.town = c.town AND v.part = c.part",
        "SELECT town IN ('Oslo', 'Lima') AS a, town = 'Bergen' AS b, COUNT(*) AS n FROM v",
        "SELECT upper(town) AS a, town = 'Oslo' AS b, COUNT(*) AS n FROM v",
        "SELECT town, town = 'Oslo' AS b, COUNT(*) AS n FROM v",
        "SELECT town, upper(town || part) AS b, COUNT(*) AS n FROM v",
        "SELECT month(day) AS m, day > DATE '2023-12-31' AS b, COUNT(*) AS n FROM v",
        "SELECT dayname(day) AS d, dayofyear(day) AS y, COUNT(*) AS n FROM v",
        "SELECT quarter(day) AS q, month(day) AS m, COUNT(*) AS n FROM v",
        "SELECT day, dayname(day) AS d, COUNT(*) AS n FROM v",
        "SELECT year(day) AS y, month(day) AS m, COUNT(*) AS n FROM v",
    ],
)
def test_no_group_that_has_rows_is_taken_for_one_that_cannot_be(loose: Curator, text: str) -> None:
    """As many rows as are in the groups of the engine whose keys are listed."""
    keys = [list(one.values or ()) for one in loose.explain(f"{text} GROUP BY ALL", epsilon=1.0).plans[0].block.keys]
    with duckdb.connect() as engine:
        engine.register("v", VISITED)
        engine.register("towns", TABLES["towns"].source)
        true = {row[:-1]: row[-1] for row in engine.execute(f"{text} GROUP BY ALL").fetchall()}
    true = {
        key: n
        for key, n in true.items()
        if all(one in some or one is None for one, some in zip(key, keys, strict=True))
    }
    found = {row[:-1]: row[-1] for row in loose.sql(f"{text} GROUP BY ALL", epsilon=1.0).fetchall()}
    assert {key: n for key, n in found.items() if n} == {
        key: n for key, n in true.items() if key in found or None not in key
    }


@pytest.mark.parametrize("odd", ["\ue0020\ue003", "\ue0000\ue001", "\uf8ff"])
def test_keys_of_letters_without_a_meaning_are_keys_like_others(monkeypatch: pytest.MonkeyPatch, odd: str) -> None:
    without_noise(monkeypatch)
    rows = pa.table({"u": range(300), "t": [odd] * 200 + ["b"] * 100})
    columns = {"t": ColumnPolicy(keys=(odd, "b"))}
    policy = Policy("d", {"v": TablePolicy(rows, unit="u", rows_per_unit=1, columns=columns)})
    with Curator.open(policy, budget=Budget(epsilon=9.0), ledger=":memory:") as opened:
        text = "SELECT t, upper(t) AS b, COUNT(*) AS n FROM v GROUP BY ALL"
        assert {(odd, odd.upper(), 200), ("b", "B", 100)} <= set(opened.sql(text, epsilon=1.0).fetchall())


def test_a_condition_on_what_is_optional_has_no_caution_and_one_on_numbered_keys_has(loose: Curator) -> None:
    optional = "SELECT COUNT(*) AS n FROM v LEFT JOIN (SELECT u AS w FROM v WHERE town = 'oslo') s ON v.u = s.w"
    without = "SELECT COUNT(*) AS n FROM v WHERE u NOT IN (SELECT u FROM v WHERE town = 'oslo')"
    for text in (optional, without):
        assert not any("by the policy" in line for line in loose.explain(text, epsilon=1.0).cautions)
    rows = pa.table({"u": range(300), "k": [1, 2, 3] * 100})
    policy = Policy("d", {"t": TablePolicy(rows, unit="u", columns={"k": ColumnPolicy(keys=(1, 2, 3))})})
    with Curator.open(policy, budget=Budget(epsilon=9.0), ledger=":memory:") as opened:
        for condition, said in (("k = 99", True), ("k IN (7, 8)", True), ("k = 3", False), ("k <> 99", False)):
            cautions = opened.explain(f"SELECT COUNT(*) AS n FROM t WHERE {condition}", epsilon=1.0).cautions
            assert any(f"no key that the policy lists for k meets {condition}" in line for line in cautions) == said

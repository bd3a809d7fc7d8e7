"""What one unit can change in a whole question, from SQL to the numbers that get noise: sums, ranks, choices and keys.

`test_bounding` tries blocks. Here blocks come from SQL, so that joins, unions, subqueries and declarations that are
wrong are tried with everything that is released about them, on tables and on the same without one unit.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from discreet import Budget, Curator
from discreet.errors import InvalidArgument
from discreet.query import Policy, centring, measuring, sizing, sketch
from discreet.query import keys as key_selection
from discreet.query import run as running
from discreet.query.asked import Asked
from discreet.query.curve import End
from discreet.query.gains import KEPT, gained
from discreet.query.policy import ColumnPolicy, TablePolicy
from discreet.query.private import Private
from discreet.query.ranks import measure as ranks
from discreet.query.remembered import Choice
from discreet.query.surveys import surveys_of
from query.tables import without_noise

UNITS = 5
STRANGE = (np.nan, np.inf, -np.inf, 1e300, -0.0, 0.0)


def table(rows: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    x = np.where(rng.random(rows) < 0.2, rng.choice(STRANGE, rows), rng.normal(5, 20, rows))
    return pa.table(
        {
            "u": pa.array(rng.integers(0, UNITS, rows), mask=rng.random(rows) < 0.05),
            "c": pa.array(rng.choice(["a", "b", "c", "d", ""], rows).tolist(), mask=rng.random(rows) < 0.1),
            "x": pa.array(x, mask=rng.random(rows) < 0.05),
            "n": rng.integers(-5, 9, rows),
            "k": rng.integers(0, 7, rows),
        }
    )


VISITS, CALLS, PEOPLE, EVENTS = table(50, 1), table(25, 2), table(8, 3), table(6, 4)
FACTS = {"k": ColumnPolicy(keys=range(6)), "n": ColumnPolicy(bounds=(-3, 5))}
PLACES = TablePolicy(pa.table({"k": [0, 1, 1, 2, 3], "w": [1.0, 2.0, -3.0, None, 5.0]}), public=True)
NAMES = TablePolicy(pa.table({"k": [0, 1, 2]}), public=True, columns={"k": ColumnPolicy(unique=True)})


def without(unit: int | None, rows: pa.Table) -> pa.Table:
    return rows if unit is None else rows.filter(pc.fill_null(pc.not_equal(rows["u"], unit), True))


def opened(unit: int | None = None, row: int | None = None) -> Curator:
    """The tables, without one unit, or without one row of the table in which every row is one."""
    events = EVENTS if row is None else pa.concat_tables([EVENTS.slice(0, row), EVENTS.slice(row + 1)])
    tables = {
        "visits": TablePolicy(without(unit, VISITS), unit="u", columns=FACTS),
        "calls": TablePolicy(without(unit, CALLS), unit="u"),
        "people": TablePolicy(without(unit, PEOPLE), unit="u", rows_per_unit=1),  # a wrong declaration
        "events": TablePolicy(events, unit="row", columns=FACTS),
        "places": PLACES,
        "names": NAMES,
    }
    policy = Policy("tried", tables)
    return Curator.open(policy, budget=Budget(epsilon=500.0, delta=1e-3), ledger=":memory:", threads=1)


@dataclass
class Seen:
    """Everything that a run hands to a mechanism, by the keys of its group where there are groups."""

    plan: Private
    keys: list[Any] = field(default_factory=list)
    sums: list[tuple[np.ndarray, float, str]] = field(default_factory=list)
    ranks: list[tuple[Any, float]] = field(default_factory=list)
    choices: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)
    sketches: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)
    counted: list[int] = field(default_factory=list)
    kept: list[tuple[np.ndarray, list[Fraction]]] = field(default_factory=list)
    weights: list[np.ndarray] = field(default_factory=list)
    codes: list[Any] = field(default_factory=list)
    selected: dict[Any, int] = field(default_factory=dict)
    copies: int = 1
    by_count: bool = False
    read: int = 0  # bounds that were read off a sketch


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Seen]]:
    """What runs hand to their mechanisms; all noise is 0, all groups are kept, the bound is 2^(9/4)."""
    found: list[Seen] = []
    without_noise(monkeypatch)
    monkeypatch.setattr(running.Run, "secret", 12345)
    noise, rank, keep = running.Run.with_noise, ranks.measure_rank, running.Run.keep

    def spied_noise(self: Any, sums: Any, grid: Any, measure: int, *, quantum: float) -> Any:
        found[-1].sums.append((np.asarray(sums, dtype=float), grid.sensitivity, self.plan.law(measure).kind))
        return noise(self, sums, grid, measure, quantum=quantum)

    def spied_rank(cells: Any, *arguments: Any, bound: float, units: Any, **facts: Any) -> Any:
        found[-1].ranks.append((cells, bound * units.weight))
        return rank(cells, *arguments, bound=bound, units=units, **facts)

    def choice(buckets: Any, units: Any, **_: Any) -> int:
        found[-1].choices.append((np.asarray(buckets, dtype=np.int64), np.asarray(units, dtype=np.int64)))
        return 9

    def spied_kept(counts: Any, *, epsilon: float, wanted: float, **_: Any) -> int:
        found[-1].kept.append((np.array(counts), gained(counts, Fraction(wanted))))
        assert epsilon == found[-1].plan.allocation.choice
        return 4

    def kept(by_count: bool) -> Any:
        def keep_all(weights: Any, *_: Any, groups: int = 1, **__: Any) -> Any:
            found[-1].weights.append(np.asarray(weights))
            found[-1].copies, found[-1].by_count = groups, by_count
            everything = np.ones(weights.size, dtype=bool)
            return everything if by_count else (everything, np.ones(1))

        return keep_all

    def spied_keep(self: Any, codes: Any) -> None:
        named = self.session.table("SELECT * FROM q__codes").to_pylist()
        by_code = {row["code"]: tuple(row[key.column] for key in self.plan.block.keys) for row in named}
        found[-1].codes = [by_code[int(code)] for code in codes]
        keep(self, codes)

    monkeypatch.setattr(running.Run, "with_noise", spied_noise)
    monkeypatch.setattr(running.Run, "keep", spied_keep)
    monkeypatch.setattr(ranks, "measure_rank", spied_rank)

    def sketched(_: Any, buckets: Any, units: Any, *, epsilon: float, **facts: Any) -> Any:
        found[-1].sketches.append((np.asarray(buckets, dtype=np.int64), np.asarray(units, dtype=np.int64)))
        return drawn(buckets, units, epsilon=epsilon, **facts)

    def spied_count(self: Any, kinds: Any, epsilon: float) -> list[float]:
        found[-1].counted.append([int(units.sum()) for units in kinds])
        return counted(self, kinds, epsilon)

    drawn, counted = sketch.Sketch.drawn, running.Run.counted_apart
    monkeypatch.setattr(sketch.Sketch, "drawn", classmethod(sketched))
    monkeypatch.setattr(running.Run, "counted_apart", spied_count)
    rooms = {"choose_bound": (running, sizing), "choose_share": (running,), "choose_middle": (centring,)}
    for room, name in ((room, name) for name, found_in in rooms.items() for room in found_in):
        monkeypatch.setattr(room, name, choice)
    monkeypatch.setattr(running, "choose_kept", spied_kept)
    monkeypatch.setattr(key_selection, "kept_by_weight", kept(False))
    monkeypatch.setattr(key_selection, "kept_by_count", kept(True))
    return found


def told(asked: Asked, digest: str) -> list[dict[str, Any]]:
    """What earlier answers at the same price have told about a choice: three of them, or fewer."""
    for plan in asked.plans:
        for known in plan.known:
            if known.digest == digest:
                look = {"units": 5.0, "size": 3, "looked": 0.1} if plan.looks_at(known.place) else {}
                choice = Choice(9, plan.epsilon_of_choice(known.place), plan.noise_for(known.place), 1.0, **look)
                return [asdict(choice)] * (int(digest, 16) % 4)
    return []


def run(
    curator: Curator,
    text: str,
    found: list[Seen],
    *,
    epsilon: float,
    delta: float,
    remembered: bool = False,
    **call: Any,
) -> list[Seen]:
    asked = curator._desk.take(text, epsilon=epsilon, delta=delta, cost=None, call=call)
    if remembered:
        named = asked.knowing(curator._data.files, lambda names: {})  # the price as if nothing were known, and digests
        asked = asked.knowing(curator._data.files, lambda names: {name: told(named, name) for name in names})
    first = len(found)
    with curator._data.engine.session() as session:
        for plan in asked.plans:
            found.append(Seen(plan))
            measured = measuring.measure(session, plan)
            columns = [
                column.to_pylist() if hasattr(column, "to_pylist") else column for column in measured.keys.values()
            ]
            one = found[-1]
            one.keys = list(zip(*columns, strict=True)) if columns else [()]
            if one.weights:
                keys = one.codes or one.keys
                one.selected = dict(zip(map(str, keys), np.concatenate(one.weights).tolist(), strict=True))
    return found[first:]


def change(one: Seen, other: Seen, numbers: Any) -> np.ndarray:
    """How much the numbers of each group differ; groups that only one of them has are 0 in the other."""
    sides = [dict(zip(map(str, side.keys), numbers(side), strict=True)) for side in (one, other)]
    groups = sorted(sides[0] | sides[1])
    return np.array([sides[0].get(group, 0) - sides[1].get(group, 0) for group in groups], dtype=float)


def weight_moved(one: Seen, other: Seen, i: int) -> np.ndarray:
    """For each group how much weight of a rank is moved in all cells together."""
    sides = [
        {str(key): np.diff(side.ranks[i][0].up_to(g, g + 1)) for g, key in enumerate(side.keys)}
        for side in (one, other)
    ]
    nothing = np.zeros(1)
    return np.array(
        [np.abs(sides[0].get(g, nothing) - sides[1].get(g, nothing)).sum() for g in sides[0] | sides[1]], dtype=float
    )


def check_buckets(one: Seen, other: Seen) -> None:
    """A unit is in one bucket of every choice and sketch, and of one kind where units are counted."""
    copies = (one.plan.block.rows_per_unit or 1) if one.plan.block.row_level else 1
    pairs = [zip(one.choices, other.choices, strict=True), zip(one.sketches, other.sketches, strict=True)]
    for (buckets, units), (fewer_buckets, fewer_units) in itertools.chain(*pairs):
        moved = np.zeros(2000)
        np.add.at(moved, buckets + 1000, units)
        np.subtract.at(moved, fewer_buckets + 1000, fewer_units)
        assert (moved >= 0).all()
        assert moved.sum() <= copies
    for more, less in zip(one.counted, other.counted, strict=True):
        moved = np.array(more) - np.array(less)
        assert (moved >= 0).all()
        assert moved.sum() <= copies


def check(one: Seen, other: Seen) -> float:
    """Nothing differs by more than its mechanism allows; gives the largest part of that which is used."""
    plan, paid = one.plan, one.plan.allocation
    assert len(one.sums) + len(one.ranks) == len(paid.noise)  # no more is run than the cost has parts for
    assert len(one.choices) + len(one.kept) + one.read == paid.choices + paid.tails + paid.spreads + len(paid.pots)
    assert len(one.sketches) == len(paid.pots)
    assert len(one.counted) <= paid.tails + 2 * len(paid.pots)
    assert bool(one.weights) == (paid.key_epsilon + paid.key_noise > 0)
    order = 2 if plan.gaussian else 1
    used = [0.0]
    for i, (_, limit, law) in enumerate(one.sums):
        moved = change(one, other, lambda side, i=i: side.sums[i][0])
        assert np.linalg.norm(moved, ord=order) <= limit
        assert law != "staircase" or np.count_nonzero(moved) <= 1
        used.append(float(np.linalg.norm(moved, ord=order)) / limit)
    for i, (_, limit) in enumerate(one.ranks):
        moved = weight_moved(one, other, i)
        assert np.linalg.norm(moved, ord=order) <= limit
        used.append(float(np.linalg.norm(moved, ord=order)) / limit)
    check_buckets(one, other)
    for (counts, scores), (fewer_counts, fewer_scores) in zip(one.kept, other.kept, strict=True):
        moved = counts - fewer_counts
        assert (moved >= 0).all()
        assert (moved <= np.array([*KEPT.values()])).all()
        window = [more - less for more, less in zip(scores, fewer_scores, strict=True)]
        assert max([*window, 0]) - min([*window, 0]) <= 1
    moved = np.array([one.selected[key] - other.selected.get(key, 0) for key in one.selected], dtype=float)
    if one.by_count:
        assert set(moved) <= {0.0, 1.0}
        assert moved.sum() <= one.copies
    else:
        assert np.linalg.norm(moved) <= one.copies * key_selection.WEIGHT
    return max(used)


UNIT = "SELECT u, SUM(x) AS x, MIN(n) AS n, MAX(k) AS k, MIN(c) AS c FROM {} GROUP BY u"
FROM = (
    "visits AS t",
    "people AS t",
    "visits AS t JOIN calls ON t.u = calls.u",
    "visits AS t LEFT JOIN calls ON t.u = calls.u AND t.k < calls.k",
    "visits AS t LEFT JOIN people USING (u)",
    "people AS t LEFT JOIN people AS p ON t.u = p.u",
    "visits AS t, calls WHERE t.u = calls.u AND calls.n > 0",
    "visits AS t LEFT JOIN places ON t.k > places.k",
    "people AS t JOIN names ON t.k = names.k",
    (
        "(SELECT v.u, CAST(names.k AS VARCHAR) AS c, v.x, v.n, names.k FROM visits AS v JOIN people AS p ON v.u = p.u "
        "LEFT JOIN names ON p.k = names.k) AS t"
    ),
    "(SELECT u, c, x, n, k FROM visits UNION ALL SELECT u, c, x, n, k FROM visits) AS t",
    "(SELECT u, c, x, n, k FROM people UNION ALL SELECT u, 'e', x, n, k FROM people) AS t",
    "(SELECT DISTINCT u, c, x, n, k FROM visits) AS t",
    f"({UNIT.format('visits')}) AS t",
    f"({UNIT.format('visits')} HAVING COUNT(*) > 9 UNION ALL {UNIT.format('calls')}) AS t",
    f"({UNIT.format('visits')}) AS t JOIN (SELECT u AS v, COUNT(*) AS m FROM calls GROUP BY u) AS s ON t.u = s.v",
    "(SELECT * FROM visits QUALIFY ROW_NUMBER() OVER (PARTITION BY u ORDER BY n) <= 2) AS t",
    (
        "(SELECT u, c, LAG(x) OVER (PARTITION BY u ORDER BY n) AS x, RANK() OVER (PARTITION BY u ORDER BY k) AS n, k "
        "FROM visits QUALIFY SUM(k) OVER (PARTITION BY u ORDER BY n ROWS 3 PRECEDING) > 9) AS t JOIN calls ON "
        "t.u = calls.u"
    ),
    "visits AS t WHERE t.u IN (SELECT u FROM calls WHERE n > 2)",
    "people AS t WHERE t.u NOT IN (SELECT u FROM visits WHERE x > 9) OR t.k = 1",
    "visits AS t WHERE NOT EXISTS (SELECT 1 FROM calls JOIN people USING (u) WHERE people.u = t.u AND calls.n > 2)",
    "visits AS t WHERE EXISTS (SELECT 1 FROM places p WHERE p.k = t.k) OR EXISTS (SELECT 1 FROM calls q WHERE q.u=t.u)",
)
BY = ("", "t.c", "t.k", "t.x > 3", "FLOOR(t.x / 10)", "CASE WHEN t.n > 2 THEN 'hi' ELSE t.c END", "t.x")
ASKED = (
    ("COUNT(*)", "SUM(t.x)", "AVG(t.n)"),
    ("COUNT(DISTINCT t.c)", "MEDIAN(t.x)", "COUNT(t.x)"),
    ("VARIANCE(t.n)", "MAX(t.x)", "SUM(t.n) FILTER (WHERE t.c = 'a')"),
    ("COUNT(DISTINCT t.u)", "SUM(t.n)"),
    ("SUM(t.x)", "COUNT(DISTINCT t.u)", "STDDEV(t.x)"),
    ("AVG(t.n)", "STDDEV(t.n)", "AVG(t.x)", "COUNT(t.n)"),
)
CALLS_OF = (
    {},
    {"max_groups": 1},
    {"max_groups": 2, "max_rows": 1},
    {"max_groups": 20, "max_rows": 2},  # more than there are public groups
    {"max_rows": 2},
    {"bounds": (2.0, 3.0)},
)
PRICES = ((1.0, 1e-6), (20.0, 1e-9), (0.1, 1e-5), (3.0, 0.0))


def cases(number: int) -> Iterator[tuple[str, float, float, dict[str, Any]]]:
    """A choice of questions in which every part stands beside many others."""
    rng = np.random.default_rng(number)
    for place in range(number):
        source, by = FROM[place % len(FROM)], BY[rng.integers(len(BY))]
        asked = ", ".join(f"{one} AS q{i}" for i, one in enumerate(ASKED[rng.integers(len(ASKED))]))
        epsilon, delta = PRICES[rng.integers(len(PRICES))]
        text = f"SELECT {asked} FROM {source}" + (f" GROUP BY {by}" if by else "")
        yield text, epsilon, delta, CALLS_OF[rng.integers(len(CALLS_OF))]


@pytest.mark.parametrize("number", [30, pytest.param(400, marks=pytest.mark.slow)])
def test_a_unit_changes_nothing_in_a_question_by_more_than_is_paid_for(seen: list[Seen], number: int) -> None:
    curators = [opened(unit) for unit in (None, *range(UNITS))]
    used = []
    for text, epsilon, delta, call in cases(number):
        try:
            whole = run(curators[0], text, seen, epsilon=epsilon, delta=delta, **call)
        except InvalidArgument:  # groups that are not public need a delta
            assert delta == 0
            continue
        for curator in curators[1:]:
            fewer = run(curator, text, seen, epsilon=epsilon, delta=delta, **call)
            used += [check(one, other) for one, other in zip(whole, fewer, strict=True)]
    assert len(used) > 3 * number
    assert np.mean(np.array(used) > 0.99) > 0.3  # many change all that they may: the claim is not empty


def test_with_bounds_read_off_a_sketch_a_unit_changes_nothing_by_more_than_is_paid_for(
    seen: list[Seen], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everybody is believed to have at most this much; a count of 0 noise, and as many as the alarm allows, agree."""
    monkeypatch.setattr(sizing, "shape_of", lambda _: End(2.0**2.25))
    size = sizing.sized

    def spied(*arguments: Any, **facts: Any) -> Choice:
        chosen = size(*arguments, **facts)
        seen[-1].read += chosen.lost is not None
        return chosen

    monkeypatch.setattr(running, "sized", spied)
    curators = [opened(unit) for unit in (None, *range(UNITS))]
    used, read = [], 0
    for text, epsilon, delta, call in cases(25):
        try:
            whole = run(curators[0], text, seen, epsilon=epsilon, delta=delta, **call)
        except InvalidArgument:  # groups that are not public need a delta
            continue
        read += sum(one.read for one in whole)
        for curator in curators[1:]:
            fewer = run(curator, text, seen, epsilon=epsilon, delta=delta, **call)
            same = [
                (one, other)
                for one, other in zip(whole, fewer, strict=True)
                if one.read == other.read and len(one.counted) == len(other.counted)  # by the same steps
            ]
            used += [check(*pair) for pair in same]
    assert read > 5
    assert np.mean(np.array(used) > 0.99) > 0.2


def test_with_equal_memory_a_unit_changes_nothing_by_more_than_is_paid_for(seen: list[Seen]) -> None:
    curators = [opened(unit) for unit in (None, 0, 3)]
    settled, used = 0, []
    for text, epsilon, delta, call in cases(40):
        if delta == 0:
            continue
        sides = [run(c, text, seen, epsilon=epsilon, delta=delta, remembered=True, **call) for c in curators]
        for one, *others in zip(*sides, strict=True):
            for other in others:
                assert (one.plan.allocation, one.plan.known) == (other.plan.allocation, other.plan.known)
                used.append(check(one, other))
            settled += sum(known.settled for known in one.plan.known)
    assert settled > 10
    assert np.mean(np.array(used) > 0.99) > 0.2


def surveyed(
    curator: Curator, text: str, found: list[Seen], *, epsilon: float, delta: float, **call: Any
) -> list[Seen]:
    """What surveys for a question hand to their mechanisms."""
    asked = curator._desk.take(text, epsilon=epsilon, delta=delta, cost=None, call=call)
    first = len(found)
    with curator._data.engine.session() as session:
        for survey in surveys_of(asked.knowing(curator._data.files, lambda names: {}).plans):
            found.append(Seen(survey.after))
            assert len(survey.made(session)) == len(survey.places)
            # of each bound a sketch, a number of units, a choice and a size
            steps = [len(one) for one in (found[-1].sketches, found[-1].counted, found[-1].choices)]
            assert steps == [len(survey.places), len(survey.places), 2 * len(survey.places)]
    return found[first:]


@pytest.mark.parametrize("number", [60, pytest.param(400, marks=pytest.mark.slow)])
def test_a_unit_or_a_row_is_in_one_bucket_of_a_survey(seen: list[Seen], number: int) -> None:
    curators = [opened(), *(opened(unit) for unit in range(UNITS)), *(opened(row=row) for row in range(3))]
    rng, pairs, moving = np.random.default_rng(number), 0, 0
    for place, (text, epsilon, delta, call) in enumerate(cases(number)):
        if place % 4 == 3:
            text, call = f"SELECT SUM(t.x) AS q0, COUNT(t.x) AS q1 FROM {ROWS[rng.integers(len(ROWS))]}", {}
        try:
            whole, *others = [surveyed(c, text, seen, epsilon=epsilon, delta=delta, **call) for c in curators]
        except InvalidArgument:  # groups that are not public need a delta
            continue
        for fewer in others:
            for one, other in zip(whole, fewer, strict=True):
                check_buckets(one, other)
                assert not any((one.sums, one.ranks, one.kept, one.weights))
                pairs += 1
                moving += any(
                    sum(units) != sum(less) for (_, units), (_, less) in zip(one.choices, other.choices, strict=True)
                )
    assert pairs > number
    assert moving > pairs / 10


TWICE = "(SELECT c, x, n, k FROM events UNION ALL SELECT c, x, n, k FROM events) AS t"
ROWS = (
    "events AS t",
    TWICE,
    "events AS t JOIN names ON t.k = names.k",
    "(SELECT c, x, n, k FROM events UNION ALL SELECT 'e', x, n, k FROM events) AS t",
    f"(SELECT (SELECT CAST(MAX(k) AS VARCHAR) FROM places) AS c, x, n, k FROM {TWICE}) AS t",
)


@pytest.mark.parametrize("number", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_a_row_changes_nothing_in_a_question_by_more_than_is_paid_for(seen: list[Seen], number: int) -> None:
    curators = [opened(row=row) for row in (None, *range(EVENTS.num_rows))]
    rng = np.random.default_rng(number)
    used = []
    for place in range(number):
        asked = ", ".join(f"{one} AS q{i}" for i, one in enumerate(ASKED[rng.integers(3)]))
        by = BY[rng.integers(len(BY))]
        text = f"SELECT {asked} FROM {ROWS[place % len(ROWS)]}" + (f" GROUP BY {by}" if by else "")
        epsilon, delta = PRICES[rng.integers(3)]
        whole = run(curators[0], text, seen, epsilon=epsilon, delta=delta)
        for curator in curators[1:]:
            fewer = run(curator, text, seen, epsilon=epsilon, delta=delta)
            used += [check(one, other) for one, other in zip(whole, fewer, strict=True)]
    assert np.mean(np.array(used) > 0.99) > 0.2

"""Quantiles, MIN and MAX of groups: the grid, the statistic, and the answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import bdtr, log_expit, ndtri_exp

from discreet import Budget, Curator
from discreet.accounting import Cost
from discreet.engines import copies
from discreet.noise import rounded_gaussian
from discreet.noise.choice import FAR, Listed, listed_choices
from discreet.query.measuring import measure
from discreet.query.options import Options
from discreet.query.plan import Aggregate, Key
from discreet.query.private import private_plan
from discreet.query.ranks import bisection, choice
from discreet.query.ranks import ends as ends_of
from discreet.query.ranks import measure as measure_module
from discreet.query.ranks.answer import RankAnswer
from discreet.query.ranks.cells import Cells
from discreet.query.ranks.choice import Levels
from discreet.query.ranks.edges import Edges
from discreet.query.ranks.measure import measure_rank
from discreet.query.ranks.scale import Scale
from discreet.query.ranks.statistic import Statistic
from discreet.query.ranks.units import Units
from discreet.query.target import Target
from query.tables import PUBLIC, block, session_of, visits, without_noise

ALPHA = 1e-9
SCALES = {
    "free": Scale(None, "float"),
    "positive": Scale((0.0, 500.0), "float"),
    "around zero": Scale((-20.0, 300.0), "float"),
    "narrow": Scale((36.0, 42.0), "float"),
    "whole": Scale((0.0, 120.0), "integer"),
    "free whole": Scale(None, "integer"),
    "days": Scale(None, "date"),
    "times": Scale(None, "timestamp"),
}


def ends_at_edges() -> list[tuple[float, float]]:
    """Bounds of which an end is next to the edge of a cell: the engine may round it to the other side."""
    stream, found = np.random.default_rng(5), []
    for largest in [538_143.775, *10.0 ** stream.uniform(-290, 290, 9)]:
        for edge in (1, 2, 10_239):
            end = largest * 2.0**-20 * math.expm1(edge / 512 * math.log(2))
            for _ in range(3):
                end = math.nextafter(end, 0.0)
            for _ in range(7):
                found += [(-largest, end), (-end, largest), (end, largest), (-largest, -end)]
                end = math.nextafter(end, math.inf)
    return found


def test_no_place_is_beyond_the_cells_where_an_end_is_next_to_an_edge() -> None:
    """A place beyond them would be an error, or a row of another group, that depends on the data."""
    off = 0
    bounds = [(-538_143.775, 0.0006952610748354464), *ends_at_edges()]
    for some in range(0, len(bounds), 20):
        scales = [Scale(one, "float") for one in bounds[some : some + 20]]
        values = ("'-inf'::DOUBLE", "'inf'::DOUBLE", "0e0", "-0e0")
        found = duckdb.sql(
            " UNION ALL ".join(
                f"SELECT {i}, CAST({scale.place('x')} AS BIGINT) FROM (SELECT {scale.clamped(value)} AS x)"
                for i, scale in enumerate(scales)
                for value in values
            )
        )
        for i, cell in found.fetchall():
            first, last = scales[i].cells
            assert first <= cell <= last
            off += cell not in [scales[i]._cell(end) for end in (*scales[i].ends, 0.0)]
    assert off  # some are rounded to the other side


@pytest.mark.parametrize("unit", ["u", "row"])
def test_whether_a_question_fails_does_not_depend_on_one_person_at_the_edge_of_a_cell(unit: str) -> None:
    low, high = -538_143.775, 0.0006952610748354464
    sql = f"MEDIAN(LEAST(GREATEST(CASE WHEN name = 'Alice' THEN 1.0 ELSE -5.0 END, {low}), {high!r}))"
    for names in (["Bob"] * 100, ["Bob"] * 99 + ["Alice"]):
        rows = pa.table({"u": range(100), "name": names})
        with Curator.open(rows, name="t", unit=unit, budget=Budget(epsilon=1.0), ledger=":memory:") as curator:
            assert len(curator.sql(f"SELECT {sql} AS m FROM t", epsilon=1e-3)) == 1


@pytest.mark.parametrize("name", SCALES)
def test_every_value_is_in_a_cell_whose_places_give_it_back(name: str) -> None:
    scale = SCALES[name]
    low, high = scale.ends
    inside = np.linspace(max(low, -1e6), min(high, 1e6), 401)
    values = [*inside.tolist(), low, high, -math.inf, math.inf, 0.0, 1e-9]
    rows = ", ".join(f"('{value}'::DOUBLE)" for value in values)
    found = duckdb.sql(
        f"SELECT CAST({scale.place('x')} AS BIGINT) FROM (SELECT {scale.clamped('v')} AS x FROM (VALUES {rows}) t(v))"
    )
    cells = np.array([row[0] for row in found.fetchall()])
    first, last = scale.cells
    assert cells.min() >= first
    assert cells.max() <= last
    wanted = np.clip(values, low, high)
    order = np.argsort(wanted, kind="stable")
    assert np.all(np.diff(cells[order]) >= 0)  # cells increase with values
    reach = np.maximum(np.abs(wanted) * 0.02, 2 * (high - low) / (1 << 20) + 2)
    assert np.all(np.abs(scale.value(cells + 0.5) - wanted) <= reach)


def cells_of(values: np.ndarray, scale: Scale, weight: int, groups: int = 1) -> Cells:
    with duckdb.connect() as engine:
        engine.register("t", pa.table({"v": values}))
        clamped = f"(SELECT {scale.clamped('v')} AS x FROM t)"
        found = engine.sql(f"SELECT CAST({scale.place('x')} AS BIGINT) FROM {clamped}").fetchnumpy()
    cell = next(iter(found.values()))
    group = np.arange(values.size) % groups
    return Cells(groups, group, cell, np.full(values.size, weight), scale)


@pytest.mark.parametrize("keys", [(), (PUBLIC,)], ids=["all", "public"])
@pytest.mark.parametrize("bounds", [(0.0, 500.0), (-3.0, 12.0), None])
def test_rows_counted_here_make_the_cells_that_the_engine_would(
    bounds: tuple[float, float] | None, keys: tuple[Key, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    aggregate = Aggregate("quantile", "a0", "q", "xx", bounds=bounds, probability=0.3)
    plan = private_plan(block(aggregate, keys=keys, row_level=True, rows_per_unit=1), Target(mu=0.5), Options())
    table = visits(50, 500, 3)
    seen: list[Cells] = []

    def keep(cells: Cells, *given: object, **named: object) -> object:
        seen.append(cells)
        return measure_rank(cells, *given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr("discreet.query.ranks.measure.measure_rank", keep)
    for most in (1 << 30, 0):
        monkeypatch.setattr("discreet.query.ranks.measure._TALLIED", most)
        with session_of(table) as session:
            measure(session, plan)
    here, there = seen
    assert np.array_equal(here.total, there.total)
    assert here.total.sum() > 0
    for g in range(here.groups):
        assert np.array_equal(below(here, g), below(there, g))
        assert below(here, g)[-1] == here.total[g]


@pytest.mark.parametrize("gaussian", [True, False])
@pytest.mark.parametrize("probability", [0.1, 0.5, 0.9])
def test_quantiles_of_many_rows_are_close(gaussian: bool, probability: float) -> None:
    values = np.random.default_rng(3).lognormal(3, 1, 4000)
    scale = SCALES["positive"]
    aggregate = Aggregate("quantile", "a0", "q", "x0", probability=probability)
    noise = 2.0 if gaussian else 1.0
    units = Units.of(scale, 1.0, noise, gaussian=gaussian)
    cells = cells_of(values, scale, units.weight)
    answer = measure_rank(cells, aggregate, bound=1.0, units=units, noise=noise, gaussian=gaussian, generator=None)
    exact = np.quantile(values, probability)
    assert answer.values[0] == pytest.approx(exact, rel=0.05)
    low, high = answer.interval(0.999)
    assert low[0] <= exact * 1.01
    assert high[0] >= exact * 0.99


@pytest.mark.parametrize("gaussian", [True, False])
def test_extremes_stay_within_the_values_and_near_their_ends(gaussian: bool) -> None:
    values = np.random.default_rng(4).uniform(50, 100, 5000)
    scale = SCALES["positive"]
    noise = 1.0
    units = Units.of(scale, 1.0, noise, gaussian=gaussian)
    cells = cells_of(values, scale, units.weight)
    for function, low, high in (("max", 94, 101), ("min", 49, 56)):
        aggregate = Aggregate(function, "a0", function, "x0")
        answer = measure_rank(cells, aggregate, bound=1.0, units=units, noise=noise, gaussian=gaussian, generator=None)
        assert low < answer.values[0] < high


@pytest.mark.parametrize("kind", ["date32", "timestamp[us]", "int64", "double"])
def test_without_bounds_extremes_have_the_end_towards_the_answer_and_no_other(kind: str) -> None:
    import pyarrow as pa

    numbers = np.random.default_rng(5).integers(19_700, 20_060, 4000)
    values = {
        "date32": pa.array(numbers.astype("datetime64[D]")),
        "timestamp[us]": pa.array(numbers.astype("datetime64[D]").astype("datetime64[us]")),
    }.get(kind, pa.array(numbers.astype("f8" if kind == "double" else "i8")))
    rows = pa.table({"u": np.arange(4000) // 2, "x": values})
    with Curator.open({"t": rows}, unit="u", budget=Budget(epsilon=10.0), ledger=":memory:") as curator:
        answer = curator.sql("SELECT MIN(x) AS a, MAX(x) AS b FROM t", epsilon=5.0)
    [row] = answer.intervals().to_pylist()
    assert (row["a_low"], row["b_high"]) == (None, None)
    assert row["a_high"] is not None
    assert row["b_low"] is not None
    assert row["a"] <= row["a_high"]
    assert row["b_low"] <= row["b"]


def below(cells: Cells, g: int) -> np.ndarray:
    """The weight of one group below each edge: the same by itself and beside all others."""
    alone, beside = cells.up_to(g, g + 1), cells.up_to(0, cells.groups).reshape(cells.groups, -1)[g]
    assert np.array_equal(alone - alone[0], beside - beside[0])
    return beside - beside[0]


def spy_on_choices(monkeypatch: pytest.MonkeyPatch, saw: Callable[[Any], None]) -> None:
    """Tell the factor of the scores of every choice."""

    def spied(listed: Listed, *, scale: Any, generator: Any) -> np.ndarray:
        for _ in listed.starts[1:]:
            saw(scale)
        return listed_choices(listed, scale=scale, generator=generator)

    for module in (ends_of, choice):
        monkeypatch.setattr(module, "listed_choices", spied)


FACTORS = st.sampled_from([Fraction(1, 1000), Fraction(1, 10), Fraction(3, 2), Fraction(40), Fraction(1, 10**30)])


def check_listed(listed: Listed, every: list[np.ndarray], factor: Fraction) -> None:
    """That the scores are these, and that those that are not listed are as far from the best as they should be."""
    assert len(listed.starts) == len(every) + 1
    for i, scores in enumerate(every):
        some = slice(listed.starts[i], listed.starts[i + 1])
        places, told = listed.places[some], listed.scores[some]
        assert np.array_equal(listed.everything(i), scores)
        assert np.array_equal(scores[places], told)
        assert np.all(np.diff(places) > 0)
        assert (places[0], places[-1]) == (0, scores.size - 1)
        others = np.setdiff1d(np.arange(scores.size), places)
        assert all(factor * (int(told.max()) - int(scores[j])) >= FAR for j in others)


def edges_of(groups: list[tuple[list[int], int]], slope: int) -> Edges:
    """S of groups that rise so at each of their cells, from there."""
    rises = np.concatenate([[0, *rises] for rises, _ in groups])
    return Edges(np.cumsum(rises), slope, np.array([start for _, start in groups]))


@st.composite
def side_by_side(draw: st.DrawFn) -> list[tuple[list[int], int]]:
    """Up to four groups with as many cells each: by how much S rises at them, and from where."""
    cells = draw(st.integers(1, 60))
    rises = st.lists(st.sampled_from([0, 0, 0, 1, 5, 70, 4000]), min_size=cells, max_size=cells)
    return draw(st.lists(st.tuples(rises, st.integers(-9000, 200)), min_size=1, max_size=4))


@given(groups=side_by_side(), slope=st.sampled_from([0, 0, 1, 30]), factor=FACTORS)
def test_cells_that_are_not_looked_at_could_not_have_been_chosen(
    groups: list[tuple[list[int], int]], slope: int, factor: Fraction
) -> None:
    for steps in (1, 3):
        every = []
        for rises, start in groups:
            s = start + steps * np.cumsum([0, *rises])
            against = slope * np.arange(len(rises))
            every.append(np.minimum(np.minimum(-s[:-1], s[1:]), 0) - against)
        listed = choice._Fits(edges_of(groups, steps), against).listed(factor)
        check_listed(listed, every, factor)
    if factor == 40 and all(len(rises) > 9 and min(rises) > 1 for rises, _ in groups):
        assert listed.places.size <= 4 * len(groups)


@given(
    groups=side_by_side(),
    wanted=st.lists(
        st.tuples(
            st.integers(0, 59),
            st.sampled_from([(True, True), (True, False), (False, True)]),
            st.sampled_from([0, 3, 60, 2000]),
        ),
        max_size=4,
    ),
    slope=st.sampled_from([0, 0, 1, 30]),
    factor=FACTORS,
)
def test_intervals_that_are_not_looked_at_could_not_have_been_chosen(
    groups: list[tuple[list[int], int]], wanted: list[tuple[int, tuple[bool, bool], int]], slope: int, factor: Fraction
) -> None:
    cells, every = len(groups[0][0]), []
    asked = [(index % cells, sides, aim) for index, sides, aim in wanted[: len(groups)]]
    for (rises, start), (index, sides, aim) in zip(groups, asked, strict=False):
        s = start + np.cumsum([0, *rises])
        left = np.array([-s[max(index - h, 0)] for h in range(cells)])
        right = np.array([s[min(index + 1 + h, cells)] for h in range(cells)])
        held = np.minimum(left, right) if all(sides) else left[: index + 1] if sides[0] else right[: cells - index]
        every.append(-np.abs(held - aim) - slope * np.arange(held.size))
    around = ends_of._Around(
        edges_of(groups, 1),
        np.arange(len(asked)),
        np.array([index for index, _, _ in asked], dtype=np.int64),
        np.array([sides[0] for _, sides, _ in asked], dtype=bool),
        np.array([sides[1] for _, sides, _ in asked], dtype=bool),
        np.array([aim for _, _, aim in asked], dtype=np.int64),
        lambda _, h: slope * h,
    )
    check_listed(around.listed(factor), every, factor)


@given(
    index=st.integers(0, 30),
    h=st.integers(0, 30),
    kind=st.sampled_from(["down", "up", "wide", "nothing"]),
    beside=st.sampled_from(["down", "up", "wide", "nothing"]),
)
def test_ends_far_away_are_less_preferred_whatever_is_asked_beside(index: int, h: int, kind: str, beside: str) -> None:
    distance, folds = np.arange(31.0) ** 1.5, np.cumsum(np.linspace(0.0, 2.0, 31))
    kinds = {name: np.array([kind == name, beside == name]) for name in ("down", "up", "wide")}
    against = ends_of._Against(Fraction(1, 7), np.array([index, 4]), distance, folds, **kinds)
    low, high = max(index - h, 0), min(index + h, 30)
    away = {
        "down": distance[index] - distance[low],
        "up": distance[high] - distance[index],
        "wide": max(folds[high] - folds[index], folds[index] - folds[low]),
        "nothing": 0.0,
    }[kind]
    assert against(np.array([1, 0, 1]), np.array([2, h, 3]))[1] == round(7 * away)


@pytest.mark.parametrize("many", [0, 1 << 20], ids=["bisection", "choice"])
@pytest.mark.parametrize(("function", "rows"), [("quantile", 100), ("quantile", 20_000), ("max", 900)])
@pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)
def test_all_questions_of_a_group_cost_no_more_than_the_measure(
    function: str, rows: int, scale: Scale, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []
    levels: list[float] = []

    def spied(width: float, size: int, *, generator: object = None) -> np.ndarray:
        asked.append(width)
        return rounded_gaussian(width, size)

    spy_on_choices(monkeypatch, lambda scale: levels.append(float(scale)))
    monkeypatch.setattr(bisection, "rounded_gaussian", spied)
    monkeypatch.setattr(bisection, "_MANY", many)
    noise, bound = 2.5, 3.0
    units = Units.of(scale, bound, noise, gaussian=True)
    cells = cells_of(np.random.default_rng(1).normal(20, 9, rows), scale, units.weight)
    aggregate = Aggregate(function, "a0", "q", "x0", probability=0.75 if function == "quantile" else None)
    measure_rank(cells, aggregate, bound=bound, units=units, noise=noise, gaussian=True, generator=None)
    largest = 0.75 if function == "quantile" else 1.0
    change = largest * bound * units.weight * units.parts  # of S by one unit, over all groups
    first, *others = asked  # the first one is the weight itself
    paid = (bound * units.weight / first) ** 2 + sum((change / width) ** 2 for width in others)
    paid += sum((2 * change * level * math.sqrt(2 * math.pi) / 4) ** 2 for level in levels)
    assert paid <= 1 / noise**2
    assert paid > (0.7 if rows == 100 else 0.99) / noise**2  # of few rows there is no interval to be bought
    assert bool(levels) == (many > 0 and rows < 20_000)
    assert bool(others) != bool(levels)  # a group is found in one way or the other


def test_many_groups_with_many_cells_are_found_by_bisection_which_takes_less_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chosen: list[float] = []
    spy_on_choices(monkeypatch, lambda scale: chosen.append(float(scale)))
    scale = Scale((0.0, 2.0**40), "integer")
    assert scale.span >= 1 << 20
    units = Units.of(scale, 1.0, 2.0, gaussian=True)
    aggregate = Aggregate("quantile", "a0", "q", "x0", probability=0.5)
    for groups in (3, 300):
        chosen.clear()
        cells = cells_of(np.random.default_rng(1).uniform(0, 2.0**40, 3000), scale, units.weight, groups)
        measure_rank(cells, aggregate, bound=1.0, units=units, noise=2000.0, gaussian=True, generator=None)
        assert bool(chosen) == (groups == 3)


@given(logit=st.floats(-300.0, 300.0), level=st.floats(1e-3, 300.0), epsilon=st.floats(0.01, 6.0))
def test_an_exponential_mechanism_is_no_worse_than_gaussian_noise_of_a_multiple_of_its_level(
    logit: float, level: float, epsilon: float
) -> None:
    per_level = math.sqrt(2 * math.pi) / 4
    low, high = (float(ndtri_exp(log_expit(x)) if x < 0 else -ndtri_exp(log_expit(-x))) for x in (logit, logit + level))
    assert high - low <= per_level * level * (1 + 1e-6) + 1e-9
    chosen, noise = Cost.exponential_mechanism(epsilon), Cost.gaussian(1 / (per_level * epsilon))
    for part in (0.0, 0.1, 0.3, 0.6):
        assert chosen.delta(part * epsilon) <= noise.delta(part * epsilon) * (1 + 1e-6) + 1e-9


@pytest.mark.parametrize(
    ("probability", "rows", "least"), [(0.5, 4000, 0.94), (0.5, 400, 0.93), (0.9, 4000, 0.94)], ids=str
)
def test_intervals_of_quantiles_hold_the_quantile_as_often_as_they_say(
    probability: float, rows: int, least: float
) -> None:
    """Of 1500 intervals so few hold with probability 1e-9; those of 75 % do not pass."""
    scale, noise, groups = SCALES["positive"], 3.0, 100
    aggregate = Aggregate("quantile", "a0", "q", "x0", probability=probability)
    units = Units.of(scale, 1.0, noise, gaussian=True)
    hits = {0.95: 0, 0.75: 0}
    draws = 0
    for seed in range(15):
        values = np.random.default_rng(seed).lognormal(3, 1, groups * rows)
        cells = cells_of(values, scale, units.weight, groups=groups)
        answer = measure_rank(cells, aggregate, bound=1.0, units=units, noise=noise, gaussian=True, generator=None)
        exact = np.quantile(values.reshape(rows, groups), probability, axis=0)
        draws += groups
        for confidence in hits:
            low, high = answer.interval(confidence)
            hits[confidence] += int(np.sum((low <= exact) & (high >= exact)))
    assert bdtr(hits[0.95], draws, least) > ALPHA
    assert bdtr(hits[0.75], draws, least) < ALPHA


@pytest.mark.parametrize(("probability", "rows"), [(0.5, 3000), (0.5, 300), (0.9, 3000)], ids=str)
def test_intervals_around_chosen_quantiles_hold_as_often_as_they_say(probability: float, rows: int) -> None:
    """Of 600 intervals so few hold with probability 1e-9; those of a fifth of the width do not pass."""
    scale, groups = SCALES["positive"], 30
    aggregate = Aggregate("quantile", "a0", "q", "x0", probability=probability)
    units = Units.of(scale, 1.0, 1.0, gaussian=False)
    hits, narrow, draws = 0, 0, 0
    for seed in range(20):
        values = np.random.default_rng(seed).lognormal(3, 1, groups * rows)
        cells = cells_of(values, scale, units.weight, groups=groups)
        answer = measure_rank(cells, aggregate, bound=1.0, units=units, noise=1.0, gaussian=False, generator=None)
        exact = np.quantile(values.reshape(rows, groups), probability, axis=0)
        draws += groups
        for times, name in ((1.0, "hits"), (0.2, "narrow")):
            low, high = answer._values_of(*answer._widened(times))
            found = int(np.sum((low <= exact) & (high >= exact)))
            hits, narrow = (hits + found, narrow) if name == "hits" else (hits, narrow + found)
    assert bdtr(hits, draws, 0.94) > ALPHA
    assert bdtr(narrow, draws, 0.94) < ALPHA


def test_intervals_around_chosen_quantiles_fail_by_the_stated_law_and_widen_with_the_confidence() -> None:
    for levels in (Levels.of_epsilon(1.0, extreme=False), Levels.of_mu(1.0, counted=0.02, extreme=False)):
        ratio = levels.around / levels.place
        u = np.random.default_rng(1).exponential(ratio, 10**6)
        for ends in (1, 2):
            y = ends_of._aim(ratio, ends=ends)
            fails = np.mean(np.exp(-y) * -np.expm1(-u) / (2 - np.exp(-y - u)))
            assert 0.038 < fails * ends / 2 < 0.047
    units = Units.of(SCALES["positive"], 1.0, 1.0, gaussian=False)
    cells = cells_of(np.random.default_rng(2).lognormal(3, 1, 5000), SCALES["positive"], units.weight)
    aggregate = Aggregate("quantile", "a0", "q", "x0", probability=0.5)
    answer = measure_rank(cells, aggregate, bound=1.0, units=units, noise=1.0, gaussian=False, generator=None)
    widths = [float(np.ptp(np.log(answer.interval(level)))) for level in (0.5, 0.95, 0.99)]
    assert widths[0] == widths[1]
    assert widths[2] == pytest.approx(5 * widths[1], rel=1e-2)


@pytest.mark.parametrize("weighed", [False, True])
def test_all_choices_of_a_quantile_cost_no_more_than_the_measure(
    weighed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    levels: list[float] = []
    draw = choice.rounded_laplace
    noise, bound, scale = 2.5, 3.0, SCALES["positive"]
    units = Units.of(scale, bound, noise, gaussian=False)
    change = 0.75 * bound * units.weight * units.parts  # of S, and so of every score, by one unit

    def drawn(width: float, size: int, *, generator: object = None) -> np.ndarray:
        levels.append(bound * units.weight / width)
        return draw(width, size)

    spy_on_choices(monkeypatch, lambda scale: levels.append(2 * change * float(scale)))
    monkeypatch.setattr(choice, "rounded_laplace", drawn)
    cells = cells_of(np.random.default_rng(1).normal(20, 9, 90_000), scale, units.weight)
    aggregate = Aggregate("quantile", "a0", "q", "x0", probability=0.75)
    measure_rank(
        cells, aggregate, bound=bound, units=units, noise=noise, gaussian=False, generator=None, weighed=weighed
    )
    assert len(levels) == 3  # the rows, the place, and the interval
    assert 0.99 / noise < sum(levels) <= 1 / noise


def test_a_unit_with_little_weight_in_many_groups_moves_what_is_known_of_their_rows_no_more_than_it_pays_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whole rows would be one more in every group as soon as the little weights of all units come to one."""
    seen: list[tuple[np.ndarray, float]] = []

    class Spy:
        __array_ufunc__ = None

        def __init__(self, scale: float) -> None:
            self.scale = scale

        def __radd__(self, exact: np.ndarray) -> np.ndarray:
            seen.append((exact, self.scale))
            return exact

    monkeypatch.setattr(choice, "rounded_laplace", lambda scale, *_, **__: Spy(scale))
    groups, noise, scale = 100, 2.0, SCALES["positive"]
    units = Units.of(scale, 1.0, noise, gaussian=False)
    each = units.weight // groups
    aggregate = Aggregate("quantile", "a0", "q", "x0", probability=0.5)
    for people in (units.weight // each, units.weight // each + 1):
        cells = Cells(groups, np.arange(groups), np.full(groups, 7), np.full(groups, people * each), scale)
        measure_rank(
            cells, aggregate, bound=1.0, units=units, noise=noise, gaussian=False, generator=None, weighed=True
        )
    (fewer, width), (more, _) = seen
    assert np.abs(more - fewer).sum() / width <= choice._COUNTED / noise


@given(epsilon=st.floats(0.01, 6.0), part=st.floats(0.0, 0.98))
def test_an_exponential_mechanism_is_no_worse_than_laplace_noise_of_its_level(epsilon: float, part: float) -> None:
    chosen, noise = Cost.exponential_mechanism(epsilon), Cost.laplace(1 / epsilon)
    assert chosen.delta(part * epsilon) <= noise.delta(part * epsilon) + 1e-12


@pytest.mark.parametrize("share", [0.45, 0.501, 0.55])
def test_the_median_of_whole_numbers_is_the_number_in_which_half_of_the_rows_are_reached(share: float) -> None:
    scale = Scale((0.0, 120.0), "integer")
    units = Units.of(scale, 1.0, 1.0, gaussian=False)
    values = np.repeat([34.0, 35.0, 36.0], [round(20_000 * share), 10_000, 30_000])[:40_000]
    cells = cells_of(values, scale, units.weight)
    aggregate = Aggregate("quantile", "a0", "q", "x0", probability=0.5)
    answer = measure_rank(cells, aggregate, bound=1.0, units=units, noise=1.0, gaussian=False, generator=None)
    expected = float(np.sort(values)[19_999])
    assert answer.values[0] == expected
    low, high = answer.interval(0.95)
    assert low[0] <= expected <= high[0]


@pytest.mark.parametrize("gaussian", [True, False])
@pytest.mark.parametrize(
    "values",
    [
        np.repeat(np.arange(950.0, 1050.0), 200),  # many rows share the last value, and nobody is behind it
        np.repeat(np.arange(-50.0, 50.0), 200),
        1e6 + 1e4 * np.random.default_rng(5).standard_normal(20_000),
    ],
    ids=["whole", "around zero", "large"],
)
def test_extremes_do_not_lie_in_the_empty_cells_behind_the_values(values: np.ndarray, gaussian: bool) -> None:
    scale = Scale(None, "float" if values.max() > 1e5 else "integer")
    units = Units.of(scale, 1.0, 1.0, gaussian=gaussian)
    cells = cells_of(values, scale, units.weight)
    for function in ("min", "max"):
        aggregate = Aggregate(function, "a0", function, "x0")
        outside = 0
        for _ in range(20):
            answer = measure_rank(
                cells, aggregate, bound=1.0, units=units, noise=1.0, gaussian=gaussian, generator=None
            )
            slack = 0.002 * np.abs(values).max()
            outside += not values.min() - slack <= answer.values[0] <= values.max() + slack
        assert outside <= 8  # each with a few per cent


def test_the_interval_of_a_maximum_begins_at_the_answer_and_ends_at_the_declared_bound() -> None:
    scale = Scale((0.0, 1000.0), "float")
    units = Units.of(scale, 1.0, 1.0, gaussian=True)
    cells = cells_of(np.random.default_rng(4).uniform(50, 100, 5000), scale, units.weight)
    for function in ("max", "min"):
        aggregate = Aggregate(function, "a0", function, "x0")
        answer = measure_rank(cells, aggregate, bound=1.0, units=units, noise=1.0, gaussian=True, generator=None)
        low, high = (end[0] for end in answer.interval(0.95))
        largest = function == "max"
        assert (low, high) == pytest.approx((answer.values[0], 1000.0) if largest else (0.0, answer.values[0]))
        assert (low < 100.0 < high) if largest else (low < 50.0 < high)


def test_without_declared_bounds_nothing_is_said_beyond_a_maximum() -> None:
    units = Units.of(SCALES["free"], 1.0, 1.0, gaussian=True)
    cells = cells_of(np.random.default_rng(4).uniform(50, 100, 5000), SCALES["free"], units.weight)
    aggregate = Aggregate("max", "a0", "max", "x0")
    answer = measure_rank(cells, aggregate, bound=1.0, units=units, noise=1.0, gaussian=True, generator=None)
    low, high = answer.interval(0.95)
    assert low[0] == pytest.approx(answer.values[0])
    assert np.isnan(high[0])


@settings(max_examples=8)
@given(st.integers(0, 2**20), st.sampled_from(["quantile", "max"]), st.sampled_from([0, 2, 6]))
def test_one_unit_moves_the_weights_below_any_place_by_no_more_than_its_bound(
    seed: int, function: str, number: int
) -> None:
    rng = np.random.default_rng(seed)
    with pytest.MonkeyPatch.context() as patch:
        without_noise(patch, bound=number)
        taken: list[Cells] = []
        patch.setattr(
            "discreet.query.ranks.measure.measure_rank",
            lambda cells, *_, **facts: taken.append((cells, facts["bound"], facts["units"])),  # type: ignore[func-returns-value]
        )
        p = 0.5 if function == "quantile" else None
        aggregate = Aggregate(function, "a0", "q", "nx", probability=p, bounds=(0.0, 40.0), kind="integer")
        for target in (Target(mu=0.5), Target(epsilon=1.0)):
            plan = private_plan(block(aggregate, keys=(PUBLIC,)), target, Options())
            table = visits(8, 120, seed)
            unit = int(rng.integers(0, 8))
            import pyarrow.compute as pc

            rest = table.filter(pc.fill_null(pc.not_equal(table["u"], unit), True))
            taken.clear()
            for rows in (table, rest):
                with session_of(rows, threads=1) as session:
                    measure(session, plan)
            (whole, bound, units), (fewer, _, _) = taken  # type: ignore[misc]
            places = rng.integers(whole.first - 1, whole.last + 1, whole.groups)
            change = np.abs(whole.below(places) - fewer.below(places)).astype(float)
            norm = np.linalg.norm(change, ord=2 if plan.gaussian else 1)
            assert norm <= bound * units.weight
            assert function == "quantile" or bound <= math.sqrt(4) * (1 + 1e-9) or not plan.gaussian


@pytest.mark.parametrize("gaussian", [True, False])
@pytest.mark.parametrize("probability", [0.99, 0.95, 0.3, 1 / 3, 0.001])
def test_a_probability_is_the_one_that_was_asked_for(probability: float, gaussian: bool) -> None:
    units = Units.of(SCALES["positive"], 1.0, 1.0, gaussian=gaussian, probability=probability)
    statistic = Statistic.of(Aggregate("quantile", "a0", "q", "x0", probability=probability), units.parts, 0.0)
    assert statistic.b / units.parts == pytest.approx(probability, rel=1e-12)
    assert 512 <= units.parts <= 1024


TAILS = {
    "lognormal": ("positive", lambda rng, size: rng.lognormal(3, 1, size)),
    "lognormal, no bounds": ("free", lambda rng, size: rng.lognormal(3, 1, size)),
    "normal, no bounds": ("free", lambda rng, size: rng.normal(0, 1, size)),
    "uniform": ("positive", lambda rng, size: rng.uniform(0, 100, size)),
    "whole": ("whole", lambda rng, size: rng.binomial(100, 0.4, size).astype(float)),
    "ties": ("free whole", lambda rng, size: np.round(rng.lognormal(3, 1, size))),
}


@pytest.mark.parametrize("gaussian", [True, False])
@pytest.mark.parametrize("kind", TAILS)
def test_intervals_of_tail_quantiles_hold_as_often_as_they_say_and_their_ends_are_apart(
    kind: str, gaussian: bool
) -> None:
    """Of 400 intervals so few hold with probability 1e-9 if nine in ten do; the inner end is near the quantile."""
    name, draw = TAILS[kind]
    scale, groups, rows, probability = SCALES[name], 40, 6000, 0.99
    noise = 3.0 if gaussian else 1.5
    aggregate = Aggregate("quantile", "a0", "q", "x0", probability=probability)
    units = Units.of(scale, 1.0, noise, gaussian=gaussian, probability=probability)
    hits, draws, inner = 0, 0, []
    for seed in range(10):
        values = draw(np.random.default_rng(seed), groups * rows)
        answer = measure_rank(
            cells_of(values, scale, units.weight, groups=groups),
            aggregate,
            bound=1.0,
            units=units,
            noise=noise,
            gaussian=gaussian,
            generator=None,
        )
        sorted_ = np.sort(values.reshape(rows, groups), axis=0)
        exact = sorted_[math.ceil(probability * rows) - 1]
        low, high = answer.interval(0.95)
        width = 0.002 * np.abs(exact)  # of a cell
        hits += int(np.sum((low <= exact + width) & (high >= exact - width)))
        draws += groups
        inner += (sorted_ < low).mean(axis=0).tolist()
    assert bdtr(hits, draws, 0.93) > ALPHA
    assert np.median(inner) > 0.95  # the quantile of that order, and not the first of all values


@pytest.mark.parametrize("gaussian", [True, False])
def test_where_one_side_has_too_few_rows_the_other_end_is_told_all_the_same(gaussian: bool) -> None:
    scale, rows = SCALES["positive"], 4000
    noise = 5.0 if gaussian else 2.0
    for probability, order in ((0.99, slice(None)), (0.01, slice(None, None, -1))):
        aggregate = Aggregate("quantile", "a0", "q", "x0", probability=probability)
        units = Units.of(scale, 1.0, noise, gaussian=gaussian, probability=probability)
        cells = cells_of(np.random.default_rng(1).uniform(100, 200, rows), scale, units.weight)
        found = []
        for _ in range(20):
            answer = measure_rank(
                cells, aggregate, bound=1.0, units=units, noise=noise, gaussian=gaussian, generator=None
            )
            found.append([float(end[0]) for end in answer.interval(0.95)][order])
        inner, outer = np.array(found).T
        exact = 199.0 if probability > 0.5 else 101.0
        assert np.median(outer) == (500.0 if probability > 0.5 else 0.0)
        assert np.sum(inner > exact if probability > 0.5 else inner < exact) <= 6  # each with a few per cent
        assert 105 < np.median(inner) < 198 if probability > 0.5 else 102 < np.median(inner) < 195


def test_s_without_a_slope_still_bounds_the_quantile_on_the_side_where_it_is_clear() -> None:
    scale = SCALES["positive"]
    first, last = (float(cell) for cell in scale.cells)
    ends = [np.array([x]) for x in (first, last + 1)]

    def interval(s_left: float, s_right: float) -> list[float]:
        places = [np.array([x]) for x in (4005.0, 4000.0, 4010.0)]
        noisy = [np.array([x]) for x in (s_left, s_right, 0.0)]
        answer = RankAnswer(scale, *places, *noisy, *ends, np.zeros(1))
        return [float(end[0]) for end in answer.interval(0.95)]

    left, right, middle = (float(scale.value(np.array([x]))[0]) for x in (4000.0, 4010.0, 4005.0))
    assert interval(-4.0, -1.5) == pytest.approx([left, 500.0])
    assert interval(1.5, 4.0) == pytest.approx([0.0, right])
    assert interval(-4.0, -4.0) == pytest.approx([middle, 500.0])  # and the place itself
    assert interval(-1.0, 1.0) == pytest.approx([0.0, 500.0])


def test_groups_that_are_left_out_leave_the_others_as_they_are() -> None:
    scale = SCALES["positive"]
    cells = cells_of(np.random.default_rng(1).lognormal(3, 1, 700), scale, 7, groups=5)
    where = np.array([False, True, False, True, True])
    some = cells.only(where)
    assert some.groups == 3
    assert np.array_equal(some.total, cells.total[where])
    for g, of in enumerate(np.flatnonzero(where)):
        assert np.array_equal(below(some, g), below(cells, int(of)))
    assert cells.only(np.zeros(5, dtype=bool)).groups == 0


def labs(people: int = 4000) -> pa.Table:
    """Several rows of each person in each of five groups."""
    rng = np.random.default_rng(5)
    unit = np.repeat(np.arange(people), rng.poisson(9, people))
    group = np.array(["crp", "hba1c", "ldl", "tsh", "urea"])[rng.integers(0, 5, unit.size)]
    return pa.table({"u": unit, "g": group, "x": np.round(rng.lognormal(1.5, 1.0, unit.size), 2)})


def test_the_largest_of_each_group_is_as_near_as_if_groups_were_asked_one_by_one() -> None:
    table = labs(20_000)
    with Curator.open({"t": table}, unit="u", budget=Budget(epsilon=50.0, delta=0.01), ledger=":memory:") as curator:
        answer = curator.sql("SELECT g, MAX(x) AS m FROM t GROUP BY g", epsilon=1.0, delta=1e-6)
    group, x = table["g"].to_numpy(), table["x"].to_numpy()
    beyond = [int(np.sum(x[group == g] > m)) for g, m in answer.fetchall()]
    assert len(beyond) == 5
    assert max(beyond) < 400  # of 36 000; when all rows of a unit counted, 600 to 1200
    assert answer.cautions == ()


def test_a_limit_on_rows_is_used_for_quantiles_and_no_bound_is_bought() -> None:
    """Of those with many rows all weigh fully, so that the median is right though their values are larger."""
    stream = np.random.default_rng(3)
    rows = np.where(np.arange(20_000) < 2000, 20, 1)
    values = np.repeat(np.where(rows == 20, 50.0, 10.0), rows) + stream.uniform(0, 10, rows.sum())
    table = pa.table({"u": np.repeat(np.arange(rows.size), rows), "x": values})
    budget = Budget(epsilon=50.0, delta=1e-6)
    with Curator.open(
        table, unit="u", name="t", budget=budget, ledger=":memory:", columns={"x": {"bounds": (0, 100)}}
    ) as curator:
        whole = curator.sql("SELECT MEDIAN(x) AS m FROM t", epsilon=1.0, max_rows=20)
        low, high = (whole.intervals(0.95)[f"m_{end}"][0].as_py() for end in ("low", "high"))
        assert whole.bounds == {}
        assert whole.cautions == ()
        assert whole._measured[0].plan.allocation.choices == 0
        assert 49 < whole.fetchall()[0][0] < 53
        assert high - low < 5
        weighed = curator.sql("SELECT MEDIAN(x) AS m FROM t", epsilon=1.0)
        assert weighed.fetchall()[0][0] < 30
        assert "state max_rows" in weighed.cautions[-1]
        once = curator.sql("SELECT MEDIAN(m) AS m FROM (SELECT u, MEDIAN(x) AS m FROM t GROUP BY u)", epsilon=1.0)
        assert once.bounds == {}
        assert once.cautions == ()


def test_quantiles_of_too_few_rows_have_a_caution_and_no_narrow_interval(tmp_path: Path) -> None:
    table, budget = labs(), Budget(epsilon=600.0, delta=0.1)
    facts = {"x": {"bounds": (0, 500)}, "g": {"keys": ["crp", "hba1c", "ldl", "tsh", "urea"]}}
    with Curator.open({"t": table}, unit="u", budget=budget, columns=facts, ledger=tmp_path / "l") as curator:

        def asked(what: str, rest: str = "", epsilon: float = 1.0) -> Any:
            return curator.sql(f"SELECT {what} FROM t {rest}", epsilon=epsilon, delta=1e-6)

        none = [asked("MEDIAN(x) AS m", f"WHERE x < -{i}", 3.0) for i in range(1, 11)]
        assert sum("too few rows" in " ".join(answer.cautions) for answer in none) >= 5
        assert all(f"caution: {answer.cautions[0]}" in answer.show() for answer in none)
        rows = [answer.intervals(0.95).to_pylist()[0] for answer in none]
        assert np.median([row["m_high"] - row["m_low"] for row in rows]) == 500
        grouped = asked("g, MEDIAN(x) AS m", "WHERE x < -1 GROUP BY g")
        assert "of 5 groups: there may be too few rows" in grouped.cautions[1]  # the first is about the condition
        extreme = asked("QUANTILE_CONT(x, 0.999) AS m", epsilon=0.3)
        assert "beyond this quantile" in extreme.cautions[0]
        assert asked("QUANTILE_CONT(x, 0.999) AS m", epsilon=0.3).cautions == extreme.cautions  # kept with the answer
        for answer in (asked("MEDIAN(x) AS m"), asked("g, MEDIAN(x) AS m", "GROUP BY g")):
            [caution] = answer.cautions
            assert "the rows of units with many rows weigh less" in caution
        assert "too few rows" in asked("MAX(x) AS m", "WHERE x < -2").cautions[1]


@given(probability=st.floats(0.0, 1.0), power=st.integers(2, 10))
def test_both_sides_of_a_quantile_count_however_near_to_an_end_it_is(probability: float, power: int) -> None:
    parts = 1 << power
    statistic = Statistic.of(Aggregate("quantile", "a0", "q", "x0", probability=probability), parts, 0.0)
    assert min(statistic.a, statistic.b) >= 1  # else the quantile is the end of the grid, wherever the rows are
    assert statistic.a + statistic.b == parts
    assert abs(statistic.b / parts - probability) <= 1 / parts


def test_an_interval_that_reaches_an_end_of_the_grid_is_open_unless_bounds_are_declared() -> None:
    for name, open_ends in (
        ("free", True),
        ("free whole", True),
        ("positive", False),
        ("whole", False),
        ("days", False),
    ):
        scale = SCALES[name]
        first, last = (float(cell) for cell in scale.cells)
        middle = np.array([(first + last) / 2])
        for left, right in ((first, last + 1), (first + 5, last + 1), (first, last - 5), (first + 5, last - 5)):
            answer = RankAnswer.alone(scale, middle, np.array([left]), np.array([right]))
            low, high = (float(end[0]) for end in answer.interval(0.95))
            assert (low == -math.inf) == (open_ends and left == first)
            assert (high == math.inf) == (open_ends and right == last + 1)
            assert low <= answer.values[0] <= high


@pytest.mark.parametrize("most", [0, 1 << 29])
def test_lines_that_only_some_statements_leave_out_are_weighed_as_they_are_counted(
    most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One unit has 1 line that is whole, and 5000 with half a letter in a column that the median does not read."""
    seen: list[float] = []

    def keep(cells: Cells, *given: Any, bound: float, units: Units, **named: Any) -> object:
        seen.append(int(cells.total[0]) / units.weight / bound)
        return measure_rank(cells, *given, bound=bound, units=units, **named)

    monkeypatch.setattr("discreet.query.ranks.measure.measure_rank", keep)
    monkeypatch.setattr(copies, "_MOST", most)
    lines = [b"%d,a,%d" % (u, u % 10) for u in range(40)] + ['7,""é,7'.encode()] * 5000
    (tmp_path / "t.csv").write_bytes(b"u,c,x\n" + b"\n".join(lines) + b"\n")
    facts = {"x": {"bounds": (0, 10), "type": "DOUBLE"}, "c": {"type": "VARCHAR"}}
    budget = Budget(epsilon=10.0)
    with Curator.open(tmp_path / "t.csv", unit="u", budget=budget, columns=facts, ledger=":memory:") as curator:
        curator.sql("SELECT MEDIAN(x) AS m, COUNT(c) AS n FROM t", epsilon=1.0)
    assert seen[0] <= 40


def test_quantiles_of_one_column_are_found_among_the_same_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str | None] = []
    real = measure_module._Rows.cells

    def spied(self: Any, run: Any, aggregate: Aggregate, *given: Any, **named: Any) -> Cells:
        made.append(aggregate.argument)
        return real(self, run, aggregate, *given, **named)

    monkeypatch.setattr(measure_module._Rows, "cells", spied)
    bounds = (0.0, 50.0)
    aggregates = [
        *(
            Aggregate("quantile", f"a{i}", "q", "xx", bounds=bounds, probability=p)
            for i, p in enumerate((0.1, 0.5, 0.99))
        ),
        Aggregate("quantile", "a3", "q", "nn", bounds=bounds, probability=0.5, kind="integer"),
        Aggregate("max", "a4", "m", "xx", bounds=bounds),
        Aggregate("min", "a5", "m", "xx", bounds=bounds),
    ]
    for keys in ((), (PUBLIC,)):
        made.clear()
        plan = private_plan(block(*aggregates, keys=keys), Target(mu=5.0), Options())
        with session_of(visits(200, 3000, 3)) as session:
            found = measure(session, plan)
        assert made == ["xx", "nn", "xx", "xx"]  # MIN and MAX take another row of each unit
        assert np.all(found.ranks[0].values <= found.ranks[2].values)


def test_the_interval_of_a_median_of_whole_numbers_holds_one_that_is_between_two_of_them() -> None:
    stream = np.random.default_rng(1)
    ages = np.concatenate([stream.integers(20, 52, 399), [51], [52], stream.integers(52, 84, 399)])
    assert np.median(ages) == 51.5
    rows, held = pa.table({"u": range(800), "age": ages}), 0
    budget, columns = Budget(epsilon=500.0), {"age": {"bounds": (18, 90)}}
    with Curator.open(
        rows, unit="u", name="t", budget=budget, ledger=":memory:", columns=columns, rows_per_unit=1
    ) as curator:
        for _ in range(60):
            answer = curator.sql("SELECT MEDIAN(age) AS m FROM t", epsilon=1.0, reuse=False)
            [row] = answer.intervals(0.95).to_pylist()
            held += row["m_low"] <= 51.5 <= row["m_high"]
            assert 18 <= row["m_low"] <= row["m"] <= row["m_high"] <= 90
    assert held > 0.8 * 60


@pytest.mark.parametrize("probability", [0.1, 0.9])
def test_tail_quantiles_without_bounds_have_two_ends_that_hold_where_a_few_hundred_rows_are_beyond(
    probability: float,
) -> None:
    """Of 400 intervals so few hold with probability 1e-9 if nine in ten do; a hundredth may be open."""
    scale, groups, rows, noise = SCALES["free"], 40, 4000, 3.0
    aggregate = Aggregate("quantile", "a0", "q", "x0", probability=probability)
    units = Units.of(scale, 1.0, noise, gaussian=False, probability=probability)
    hits, closed, draws, within = 0, 0, 0, []
    for seed in range(10):
        values = np.random.default_rng(seed).lognormal(8, 1, groups * rows)
        cells = cells_of(values, scale, units.weight, groups=groups)
        answer = measure_rank(cells, aggregate, bound=1.0, units=units, noise=noise, gaussian=False, generator=None)
        exact = np.quantile(values.reshape(rows, groups), probability, axis=0)
        low, high = answer.interval(0.95)
        hits += int(np.sum((low <= exact) & (high >= exact)))
        closed += int(np.sum(np.isfinite(low) & np.isfinite(high)))
        draws += groups
        within += ((values.reshape(rows, groups) > low) & (values.reshape(rows, groups) < high)).mean(axis=0).tolist()
    assert bdtr(hits, draws, 0.94) > ALPHA
    assert bdtr(closed, draws, 0.98) > ALPHA
    assert np.median(within) < 0.05  # they hold few of the rows

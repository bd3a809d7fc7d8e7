"""The demo tells a reader what they see, and what it shows is true."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from cli.calling import good
from discreet import Cost
from discreet.cli.curated import QUESTIONS, exact
from discreet.cli.demo import STOPS, drawn
from discreet.divergence.tradeoff import TradeOff
from discreet.query.example import flights


@pytest.fixture(scope="module")
def tour() -> str:
    return good("demo")


def numbers_after(label: str, text: str) -> list[float]:
    """The numbers on the first line that starts with the label."""
    found = re.search(rf"^ +{re.escape(label)} +(.*)$", text, re.MULTILINE)
    assert found is not None, label
    return [float(word) for word in re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?:e-?\d+)?(?![\w.])", found[1])]


def test_every_stop_has_a_title_and_ends_with_what_it_shows(tour: str) -> None:
    stops = re.split(r"^\d+\. ", tour, flags=re.MULTILINE)[1:]
    assert [stop.splitlines()[0] for stop in stops] == [title for title, _ in STOPS]
    for stop in stops:
        said = stop.strip().splitlines()
        sentence = said[-1] if not said[-1].startswith("That took") else said[-3]
        assert sentence.endswith(".")


def test_lines_are_short_and_plain(tour: str) -> None:
    assert max(map(len, tour.splitlines())) <= 110
    assert "\x1b" not in tour


def test_the_certified_ends_are_those_of_the_library(tour: str) -> None:
    lower, upper = (14_000 * Cost.gaussian(1.1).sampled(256 / 60_000)).bounds(delta=1e-5)
    assert lower - 1e-10 < numbers_after("epsilon is at least", tour)[0] <= lower
    assert upper <= numbers_after("epsilon is at most", tour)[0] < upper + 1e-10


def test_no_accountant_is_below_ours(tour: str) -> None:
    ours = numbers_after("discreet", tour)
    for other in ("basic: epsilons and deltas add up", "advanced composition", "Rényi divergence"):
        assert all(a > b for a, b in zip(numbers_after(other, tour), ours, strict=True))


def test_the_composition_costs_less_than_the_sum(tour: str) -> None:
    together, separate = numbers_after("all of it, composed", tour), numbers_after("(the sum of the lines above)", tour)
    assert together < separate


def test_the_filter_refuses_once_and_goes_on(tour: str) -> None:
    assert len(re.findall(r"gaussian\(noise_multiplier=\d+\) +charged", tour)) == 4
    assert len(re.findall(r"gaussian\(noise_multiplier=5\) +refused: needs mu", tour)) == 1


def test_a_curve_is_drawn_where_its_values_are() -> None:
    lines = drawn(TradeOff.from_guarantee(0.0, 0.5), width=11, height=11)  # max(0, 1/2 - alpha)
    rows = [line[3:] for line in lines[1:12]]
    assert lines[1].startswith("1 |")
    assert lines[11].startswith("0 |")
    for column in range(11):
        row = next(index for index, line in enumerate(rows) if line[column : column + 1] == "*")
        assert row == round(10 * (1 - max(0.0, 0.5 - column / 10)))
    assert [line.index(".") for line in rows[:10]] == list(range(10))


def test_the_audit_tells_half_the_noise_from_all_of_it(tour: str) -> None:
    claimed, measured = numbers_after("the mechanism above", tour)
    assert measured <= claimed == 0.5
    claimed, measured = numbers_after("the same with half the noise", tour)
    assert claimed == 0.5 < measured <= 1.0
    assert len(re.findall(r" passed$| caught$", tour, re.MULTILINE)) == 2


def test_released_counts_are_whole_numbers_with_their_error(tour: str) -> None:
    assert len(re.findall(r"^ +(?:Oslo|Lima|Pune|Nuuk) +\d+ +-?\d+ ± 6$", tour, re.MULTILINE)) == 4


def test_five_questions_are_answered_with_errors_truth_and_what_is_left(tour: str) -> None:
    left = [float(x) for x in re.findall(r"left: epsilon (\d+(?:\.\d+)?) of 4$", tour, re.MULTILINE)]
    assert len(left) == len(QUESTIONS) == 5
    assert left == sorted(left, reverse=True)
    assert (
        len(
            re.findall(
                r"^    (?:EWR|JFK|LGA) +-?\d+ +-?\d+ to -?\d+ +\d+ +-?\d+ +-?\d+ to -?\d+ +\d+$", tour, re.MULTILINE
            )
        )
        == 3
    )


def test_the_truth_of_a_mean_leaves_out_flights_without_a_delay(tmp_path: Path) -> None:
    flights(tmp_path)
    table = pq.read_table(tmp_path / "flights.parquet").to_pydict()
    delays = [
        min(max(delay, -30), 180)
        for delay, plane in zip(table["dep_delay"], table["tailnum"], strict=True)
        if delay is not None and plane is not None
    ]
    assert exact(QUESTIONS[1], tmp_path)[()][0] == pytest.approx(sum(delays) / len(delays))


def test_questions_are_refused_with_advice_and_cost_nothing(tour: str) -> None:
    words = " ".join(tour.split())
    assert "one row for each person (line 1, column 53): aggregate over people" in words
    assert "did you mean 'dep_delay'?" in words
    assert "not enough is left to answer this question at epsilon = 10; nothing was charged. At epsilon" in words
    left = re.findall(r"(\d+(?:\.\d+)?) (?:of 4 |are left as before)", words)
    assert len(left) == 6
    assert left[-1] == left[-2]


def test_the_ledger_has_the_five_charges_one_for_bounds_and_no_other(tour: str) -> None:
    assert len(re.findall(r"^    \d+ +\d\d:\d\d:\d\d +released +0\.\d+ +SELECT ", tour, re.MULTILINE)) == 5
    assert len(re.findall(r"^    5 +\d\d:\d\d:\d\d +released +0\.375 +bounds for everybody, ", tour, re.MULTILINE)) == 1
    assert "verified: 22 entries, 6 charges, 5 stored answers" in tour
    assert "not 2.5, and 0.375 for bounds are in that" in " ".join(tour.split())
    assert tour.count(", and once 0.375 for bounds; left: epsilon") == 1

"""What is said about the error before anything is paid."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

from discreet import Budget, Cost, Curator
from discreet.errors import BudgetExceeded, InvalidArgument
from query.open_shop import opened

BOUND = r"-([\d.]+) to \+([\d.]+) times the bound on one unit that is chosen"


@pytest.mark.filterwarnings("ignore::discreet.errors.VolatileLedger")
def test_an_expected_error_is_a_number_or_a_multiple_of_the_bound_that_is_chosen() -> None:
    data = pa.table({"u": [1, 1, 2], "x": [1.0, 2.0, 3.0]})
    with Curator.open({"t": data}, unit="u", budget=Budget(epsilon=3.0)) as curator:
        text = "SELECT COUNT(*) AS n, COUNT(DISTINCT u) AS p FROM t"
        planned = curator.explain(text, epsilon=1)
        noise = planned.plans[0].noise_of_moment(0)
        assert planned.errors()["n"] is None
        for wrong in (0.0, 1.0, 1.5, float("nan")):
            with pytest.raises(InvalidArgument, match="confidence"):
                planned.errors(wrong)
        found = re.search(rf"count\(\*\): {BOUND}", str(planned))
        assert found is not None
        low, high = map(float, found.groups())
        # one side of an interval of about 89 %, and five scales of the noise more on the other
        assert low == pytest.approx(noise * 2.21, rel=0.01)
        assert high - low == pytest.approx(5 * noise, rel=0.02)
        assert re.search(r"count\(DISTINCT u\): ± [\d.]+$", str(planned), re.MULTILINE)
        example = re.search(r"if it is 10, count\(\*\) is off by -([\d.]+) to \+([\d.]+)$", str(planned), re.MULTILINE)
        assert example is not None
        assert list(map(float, example.groups())) == pytest.approx([10 * low, 10 * high])
        assert "if it is" not in str(curator.explain(text, epsilon=1, max_rows=2))
        of_sum = curator.explain("SELECT SUM(x) FROM t", epsilon=1, bounds=(0, 30))
        assert "if it is 300 (ten rows of 30), sum(x) is off by -" in str(of_sum)


@pytest.mark.filterwarnings("ignore::discreet.errors.VolatileLedger")
def test_a_limit_on_groups_beyond_those_that_there_are_costs_nothing() -> None:
    data = pa.table({"u": [1, 1, 2], "k": [0, 1, 2], "x": [1.0, 2.0, 3.0]})
    columns = {"k": {"keys": range(8)}}
    with Curator.open({"t": data}, unit="u", budget=Budget(epsilon=3.0, delta=1e-6), columns=columns) as curator:
        text = "SELECT k, COUNT(DISTINCT u) AS p, COUNT(*) AS n FROM t GROUP BY k"
        planned = {most: curator.explain(text, epsilon=1, max_groups=most, max_rows=3) for most in (7, 8, 9, 1000)}
        assert planned[7].errors()["n"] < planned[8].errors()["n"]
        for most in (9, 1000):
            assert planned[most].errors() == planned[8].errors()
            assert "counts in at most 8 groups" in str(planned[most])
        for most, explained in planned.items():
            assert any("groups are kept" in rule for rule in explained.report) == (most < 8)


@pytest.mark.filterwarnings("ignore::discreet.errors.VolatileLedger")
def test_errors_go_by_the_columns_of_the_answer_and_parts_of_columns_by_what_they_are() -> None:
    data = pa.table({"u": [1, 1, 2], "x": [1.0, 2.0, 3.0]})
    with Curator.open({"t": data}, unit="u", budget=Budget(epsilon=3.0)) as curator:
        text = "SELECT n, n AS again, p / 2 AS half FROM (SELECT COUNT(*) AS n, COUNT(DISTINCT u) AS p FROM t) s"
        planned = curator.explain(text, epsilon=1, max_rows=2)
        assert list(planned.errors()) == ["n", "again", "count(DISTINCT u)", "half"]
        assert planned.errors()["half"] is None
        assert "computed from these: half" in str(planned)
        assert planned.errors()["n"] == planned.errors()["again"]
        assert "n = again = count(*): ±" in str(planned)
        other = curator.explain("SELECT COUNT(*) FROM t", epsilon=1, max_rows=2)
        assert list(other.errors()) == ["count(*)"]
        assert "  count(*): ±" in str(other)


@pytest.mark.filterwarnings("ignore::discreet.errors.VolatileLedger")
def test_parts_of_the_same_name_are_told_apart() -> None:
    data = pa.table({"u": [1, 1, 2], "x": [1.0, 2.0, 3.0]})
    with Curator.open({"t": data}, unit="u", budget=Budget(epsilon=3.0)) as curator:
        text = "SELECT COUNT(*) * 1.0 / (SELECT COUNT(*) FROM t WHERE x > 1) AS r FROM t"
        errors = curator.explain(text, epsilon=1, max_rows=2).errors()
        assert list(errors) == ["part 1: count(*)", "part 2: count(*)", "r"]
        assert errors["r"] is None
        assert (errors["part 1: count(*)"] or 0) > 0


@pytest.mark.filterwarnings("ignore::discreet.errors.VolatileLedger")
@pytest.mark.parametrize(("epsilon", "law"), [(0.5, "Laplace"), (3.0, "staircase")])
def test_the_noise_is_called_by_its_name(epsilon: float, law: str) -> None:
    data = pa.table({"u": [1, 1, 2], "x": [1.0, 2.0, 3.0]})
    with Curator.open({"t": data}, unit="u", budget=Budget(epsilon=3.0)) as curator:
        planned = str(curator.explain("SELECT COUNT(*) FROM t", epsilon=epsilon))
        assert f"noise  {law}: a unit counts in at most 1 group" in planned


@pytest.mark.parametrize(
    "budget", [Budget(epsilon=3.0, delta=1e-6), Budget(epsilon=3.0), Budget(rho=0.5), Budget(mu=1.0)]
)
def test_what_will_be_left_is_what_is_left_afterwards(budget: Budget) -> None:
    data = pa.table({"u": [1, 1, 2], "x": [1.0, 2.0, 3.0]})
    with Curator.open({"t": data}, unit="u", budget=budget, ledger=":memory:") as curator:
        curator.ledger.limit(curator.policy.name, Budget(epsilon=2.0), analyst="local")
        for price in (0.3, 1e-9):
            planned = curator.explain("SELECT COUNT(*) AS n FROM t", epsilon=price, delta=0.0)
            assert planned.left is not None
            unit, now, after = planned.left
            assert (unit, now) == (budget.unit, curator.remaining)
            assert f"budget  {unit} {budget.left(now)} is left, and {budget.left(after)} after it" in str(planned)
            curator.sql("SELECT COUNT(*) AS n FROM t", epsilon=price, delta=0.0)
            assert curator.remaining == after <= now
        assert curator.explain("SELECT COUNT(*) AS n FROM t", epsilon=0.3, delta=0.0).left is None  # answered before
        assert curator.explain("SELECT COUNT(*) AS n FROM t", epsilon=9.0, delta=0.0).left is None  # refused
        with pytest.raises(BudgetExceeded):
            curator.ledger.remaining(curator.policy.name, after=Cost.pure(9.0))


def test_a_refusal_says_why_more_than_what_is_left_would_fit() -> None:
    why = "as costs add up to less at the budget's delta"
    with opened(budget=Budget(epsilon=4.0, delta=1e-6)) as curator:
        curator.charge(Cost.pure(1.5), reason="a model")
        composed = curator.explain("SELECT city, COUNT(*) AS n FROM visits GROUP BY city", epsilon=3.9).refusal
        pure = curator.explain("SELECT COUNT(*) AS n FROM visits", epsilon=3.9, delta=0).refusal
        assert composed is not None
        assert composed.remaining > curator.remaining
        assert f"That is above the 2.5 that is left, {why}." in str(composed)
        assert pure is not None
        assert pure.remaining <= curator.remaining
        assert why not in str(pure)


@pytest.mark.filterwarnings("ignore::discreet.errors.VolatileLedger")
@pytest.mark.parametrize(
    ("unit", "options"), [("u", {}), ("u", {"max_groups": 1}), ("u", {"max_groups": 4}), ("row", {})]
)
def test_groups_of_the_named_size_are_shown_as_often_as_it_says(unit: str, options: dict[str, int]) -> None:
    groups, budget = 2000, Budget(epsilon=100.0, delta=1e-3)
    text = "SELECT g, COUNT(*) AS n FROM t GROUP BY g"

    def asked(size: int) -> tuple[str, int]:
        """What is said, and how many groups of so many units, each in no other, are shown."""
        data = pa.table({"u": range(groups * size), "g": [i % groups for i in range(groups * size)]})
        with Curator.open({"t": data}, unit=unit, budget=budget) as curator:
            return (
                str(curator.explain(text, epsilon=1, delta=1e-6, **options)),
                len(curator.sql(text, epsilon=1, delta=1e-6, **options).fetchall()),
            )

    said, _ = asked(1)
    found = re.search(r"of groups with (\d+) (\w+) about half are shown, and 95 in 100 of those with (\d+)", said)
    assert found is not None
    half, what, nearly = int(found[1]), found[2], int(found[3])
    assert what == ("rows" if unit == "row" else "units")
    # they are the smallest whole numbers of which this is true; five standard deviations of the number shown, and more
    for size, part, apart in ((half, 0.5, 0.06), (nearly, 0.95, 0.025)):
        assert asked(size)[1] > (part - apart) * groups
        assert asked(size - 1)[1] < (part + apart) * groups

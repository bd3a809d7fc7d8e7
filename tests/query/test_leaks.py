"""What goes wrong in a question never depends on the data: the same on every data set, whoever is in it.

Errors of the engine are the oldest way to read a row through aggregates: divide by zero if user 17 is rich, or cast
their city to a number and let the message print it. Here every question is answered on nasty data, on the same without
one person, and on none at all, or is refused before any data is touched.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from discreet import Budget, Curator
from discreet.errors import QueryRefused
from query.open_shop import charges, nasty, opened

ANSWERED = [
    "SELECT SUM(CASE WHEN user_id = 17 AND spend > 0.5 THEN CAST(city AS INT) ELSE 0 END) AS s FROM visits",
    "SELECT SUM(CASE WHEN user_id = 17 AND spend > 0.5 THEN 1 / 0 ELSE 0 END) AS s FROM visits",
    "SELECT SUM(1.0 / spend) AS a, SUM(big % 0) AS b, AVG(big / (big - big)) AS c FROM visits",
    "SELECT SUM(big * big) AS a, SUM(big + 1) AS b, SUM(-big) AS c, SUM(abs(big)) AS d FROM visits",
    "SELECT SUM(CAST(spend AS TINYINT)) AS a, SUM(CAST(big AS SMALLINT)) AS b FROM visits",
    "SELECT SUM(sqrt(spend)) AS a, SUM(ln(spend)) AS b, SUM(exp(spend)) AS c, SUM(pow(big, 5)) AS d FROM visits",
    "SELECT SUM(CAST(city AS DECIMAL(4, 2))) AS a, SUM(length(city)) AS b FROM visits",
    "SELECT COUNT(*) AS n FROM visits WHERE CAST(city AS DATE) > DATE '2020-01-01'",
    "SELECT COUNT(*) AS n FROM visits WHERE regexp_matches(city, '(a+)+$')",
    "SELECT SUM(day - DATE '2020-01-01') AS n FROM visits",
    "SELECT COUNT(*) AS n FROM visits WHERE date_trunc('month', day) + INTERVAL 9000 YEAR > day",
    "SELECT extract(year FROM day) AS y, COUNT(*) AS n FROM visits GROUP BY y",
    "SELECT VARIANCE(spend) AS a, STDDEV(big) AS b FROM visits",
    "SELECT COUNT(DISTINCT city) AS a, COUNT(DISTINCT big) AS b FROM visits",
    "SELECT upper(city) AS c, COUNT(*) AS n FROM visits GROUP BY c",
    "SELECT COUNT(*) AS n FROM visits WHERE user_id = 17 HAVING COUNT(*) > 0",
    "SELECT SUM(big) / COUNT(big) AS r, 1 / (COUNT(*) - COUNT(*)) AS z FROM visits",
]
REFUSED = [
    "SELECT COUNT(*) AS n FROM visits WHERE regexp_matches(city, pattern)",
    "SELECT COUNT(*) AS n FROM visits WHERE city LIKE pattern",
    "SELECT COUNT(*) AS n FROM visits WHERE substr(city, big, 3) = 'x'",
    "SELECT COUNT(*) AS n FROM visits WHERE repeat(city, 1000000) = 'x'",
    "SELECT SUM(CASE WHEN user_id = 17 THEN error('x') ELSE 0 END) FROM visits",
    "SELECT COUNT(*) FROM visits WHERE city = (SELECT city FROM visits WHERE user_id = 17)",
    "SELECT COUNT(*) AS n FROM visits WHERE random() < 0.5",
    "SELECT SUM(getenv('HOME') = 'x') FROM visits",
]


def curators(share: float) -> list[Curator]:
    whole = nasty()
    without = whole.filter(pc.fill_null(pc.not_equal(whole["user_id"], 17), True))
    budget = Budget(epsilon=200.0, delta=1e-3)
    return [opened(table, budget=budget, bounds_share=share) for table in (whole, without, whole.slice(0, 0))]


@pytest.fixture(scope="module", params=[0.0, 0.5], ids=["alone", "with surveys"])
def neighbours(request: pytest.FixtureRequest) -> list[Curator]:
    return curators(request.param)


@pytest.mark.parametrize("text", ANSWERED)
def test_a_question_that_is_accepted_is_answered_whatever_the_data(text: str, neighbours: list[Curator]) -> None:
    schemas = set()
    for curator in neighbours:
        answer = curator.sql(text, epsilon=1)
        schemas.add(str(answer.to_arrow().schema))
        assert answer.intervals(0.95).num_rows == len(answer)
    assert len(schemas) == 1  # names and types are decided by the question


@pytest.mark.parametrize("text", REFUSED)
def test_what_could_fail_on_some_data_is_refused_without_looking(text: str, neighbours: list[Curator]) -> None:
    messages = set()
    for curator in neighbours:
        before = charges(curator)
        with pytest.raises(QueryRefused) as refused:
            curator.sql(text, epsilon=1)
        messages.add(str(refused.value))
        assert charges(curator) == before
    assert len(messages) == 1


def test_the_number_of_one_person_is_never_shown(neighbours: list[Curator]) -> None:
    text = "SELECT SUM(CASE WHEN user_id = 17 THEN big ELSE 0 END) AS s FROM visits"
    shown = repr(neighbours[0].sql(text, epsilon=0.5))
    assert str(2**63 - 1) not in shown


def test_a_failure_says_nothing_of_the_data_and_stays_paid(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "person 17 lives in Ulm"

    def failing(*_: object) -> None:
        raise ValueError(secret)

    with opened() as curator:
        monkeypatch.setattr("discreet.query.curator.measure", failing)
        with pytest.raises(Exception, match="stays spent") as failed:
            curator.sql("SELECT COUNT(*) FROM visits", epsilon=1)
        assert secret not in str(failed.value)
        assert failed.value.__cause__ is None
        assert failed.value.__context__ is None
        assert charges(curator) == 1
        assert [entry.state for entry in curator.ledger.entries(kind="reserve")] == ["failed"]


def test_rows_of_an_answer_come_in_an_order_that_the_data_does_not_set() -> None:
    table = pa.table({"user_id": range(4000), "city": (["b", "a", "d", "c"] * 1000)})
    cities = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
    orders = set()
    for rows in (table, table.take(list(range(3999, -1, -1)))):
        with opened(rows) as curator:
            orders.add(tuple(row[0] for row in curator.sql(cities, epsilon=5).fetchall()))
    assert orders == {("a", "b", "c", "d")}

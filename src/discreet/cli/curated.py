"""The part of the tour that asks a curator: five questions about real data, refusals, and the ledger."""

from __future__ import annotations

import tempfile
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.cli.number import above
from discreet.cli.prices import meaning
from discreet.cli.show import table

if TYPE_CHECKING:
    from discreet.query import Curator

__all__ = ["QUESTIONS", "STOPS", "Question", "close"]

EPSILON = 0.5
_TEXT = 96


@dataclass(frozen=True)
class Question:
    """A question, and SQL that gives the exact answer for every key: only a demo on public data may show that."""

    text: str
    truth: str


QUESTIONS = (
    Question(
        "SELECT origin, COUNT(*) AS flights, COUNT(DISTINCT tailnum) AS planes "
        "FROM flights GROUP BY origin ORDER BY origin",
        "SELECT origin, COUNT(*), COUNT(DISTINCT tailnum) FROM flights GROUP BY origin",
    ),
    Question(
        "SELECT AVG(dep_delay) AS minutes_late FROM flights",
        "SELECT AVG(least(greatest(dep_delay, -30), 180)) FILTER (WHERE dep_delay IS NOT NULL) FROM flights",
    ),
    Question(
        "SELECT dest, COUNT(*) AS flights FROM flights GROUP BY dest ORDER BY flights DESC LIMIT 4",
        "SELECT dest, COUNT(*) FROM flights GROUP BY dest",
    ),
    Question(
        "SELECT name, COUNT(*) AS flights FROM flights JOIN airlines USING (carrier) "
        "WHERE dep_delay >= 60 GROUP BY name ORDER BY flights DESC LIMIT 4",
        "SELECT name, COUNT(*) FROM flights JOIN airlines USING (carrier) WHERE dep_delay >= 60 GROUP BY name",
    ),
    Question(
        "SELECT AVG(n) AS flights_of_a_plane FROM (SELECT tailnum, COUNT(*) AS n FROM flights GROUP BY tailnum)",
        "SELECT COUNT(*) / COUNT(DISTINCT tailnum) FROM flights",
    ),
)

REFUSED = (
    "SELECT tailnum, COUNT(*) AS n FROM flights GROUP BY tailnum",
    "SELECT origin, AVG(dep_dealy) AS minutes FROM flights GROUP BY origin",
)


@cache
def _opened() -> tuple[Curator, tempfile.TemporaryDirectory[str]]:
    """The curator of the flights, copied to a folder that is removed at the end, ledger and all."""
    from discreet.query import Curator
    from discreet.query.example import flights

    folder = tempfile.TemporaryDirectory(prefix="discreet-demo-")
    return Curator.open(flights(folder.name)), folder


def close() -> None:
    """Remove what the tour has made."""
    if _opened.cache_info().currsize:
        curator, folder = _opened()
        curator.close()
        folder.cleanup()
        _opened.cache_clear()


def exact(question: Question, folder: Path) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """The true numbers by key, of the flights whose plane is known; one row without a key has the key ()."""
    from discreet.engines import DuckDBEngine

    with DuckDBEngine() as engine:
        rows = engine.register("all_flights", folder / "flights.parquet")
        airlines = engine.register("all_airlines", folder / "airlines.csv")
        found = engine.table(
            f"WITH flights AS (FROM {rows} WHERE tailnum IS NOT NULL), airlines AS (FROM {airlines}) {question.truth}"
        )
    grouped = found.num_rows > 1
    return {tuple(row.values())[:grouped]: tuple(row.values())[grouped:] for row in found.to_pylist()}


def _asked() -> Iterator[str]:
    curator, folder = _opened()
    for question in QUESTIONS:
        answer = curator.sql(question.text, epsilon=EPSILON)
        truth = exact(question, Path(folder.name))
        intervals = answer.intervals(0.95).to_pylist()
        numbers = [name for name in answer.columns if f"{name}_low" in intervals[0]]
        keys = [name for name in answer.columns if name not in numbers]
        header = [*keys, *(part for name in numbers for part in (name, "95 % interval", "(truth)"))]
        rows = []
        for row in intervals:
            true = truth[tuple(row[key] for key in keys)]
            cells = [str(row[key]) for key in keys]
            for name, value in zip(numbers, true, strict=True):
                cells += [_number(row[name]), f"{_number(row[f'{name}_low'])} to {_number(row[f'{name}_high'])}"]
                cells.append(_number(value))
            rows.append(cells)
        print("\n".join(textwrap.wrap(question.text, _TEXT, initial_indent="   > ", subsequent_indent="     ")))
        table(["  ", *header], [("  ", *row) for row in rows])
        bounds = answer.surveys.epsilon(0.0)
        once = f", and once {above(bounds, 3)} for bounds" if bounds else ""
        print(f"   price: {answer.target}{once}; left: epsilon {_left(curator)} of {curator.budget.epsilon:g}\n")
    yield (
        "80789 real flights of 3575 planes; a plane stands for a person, and no answer gives away much about all its "
        "flights together. Who counts how much, and which destinations are shown, was decided privately too. The truth "
        "stands here because the data is public: a curator never shows it. One interval of twenty misses it. Delays "
        "are cut at -30 and 180 minutes, as the policy says."
    )
    used = (curator.budget.epsilon or 0.0) - curator.remaining
    yield (
        f"{len(QUESTIONS)} questions at {EPSILON:g} have used up {above(used, 3)}, not {len(QUESTIONS) * EPSILON:g}, "
        f"and {_for_bounds(curator)} for bounds are in that: how much one plane may add to flights by origin was found "
        "before the first question, once for everybody, from the tenth of the budget that is for that. "
        + meaning(curator.budget)
    )


def _refused() -> Iterator[str]:
    from discreet.errors import DiscreetError

    curator, _ = _opened()
    questions = [(text, EPSILON) for text in REFUSED] + [(QUESTIONS[2].text, 10.0)]
    for text, epsilon in questions:
        shown = f"{text}   (at epsilon = {epsilon:g})" if epsilon != EPSILON else text
        print("\n".join(textwrap.wrap(shown, _TEXT, initial_indent="   > ", subsequent_indent="     ")))
        try:
            curator.sql(text, epsilon=epsilon)
        except DiscreetError as error:
            for line in str(error).splitlines():
                print("\n".join(textwrap.wrap(line, _TEXT, initial_indent="   ", subsequent_indent="   ")))
        print()
    again = curator.sql(QUESTIONS[0].text, epsilon=EPSILON)
    yield (
        "What cannot be answered privately is refused before any data is touched, with the place and what to write "
        f"instead, and costs nothing; {_left(curator)} are left as before."
        + (" Asking an old question again is free as well." if again.repeated else "")
    )


def _kept() -> Iterator[str]:
    curator, _ = _opened()
    rows = []
    for entry in curator.ledger.entries(kind="reserve"):
        what = textwrap.shorten(entry.what or "", 56, placeholder=" ...")
        epsilon = "" if entry.cost is None else above(entry.cost.epsilon(curator.budget.delta), 3)
        rows.append([str(entry.id), f"{entry.at:%H:%M:%S}", str(entry.state), epsilon, what])
    table(["  ", "entry", "time", "state", "epsilon", "what"], [("  ", *row) for row in rows])
    report = curator.ledger.verify()
    print(f"   verified: {report.head.count} entries, {report.reservations} charges, {report.answers} stored answers")
    yield (
        "Every charge was on the disk before the data was touched, chained by hashes to the one before it. An edit, a "
        "deletion or another order is found by: discreet ledger verify. Each epsilon is that of a charge alone, at the "
        f"budget's delta of {curator.budget.delta:g}: it is below the price, which was for a smaller delta."
    )


STOPS: Sequence[tuple[str, Callable[[], Iterator[str]]]] = (
    ("Private answers about real flights", _asked),
    ("Questions that are refused", _refused),
    ("The ledger that keeps the budget", _kept),
)


def _for_bounds(curator: Curator) -> str:
    from discreet.ledger.names import BOUNDS

    spent = curator.ledger.spent(curator.policy.name, analyst=BOUNDS)
    return above(spent.epsilon(0.0), 3)


def _left(curator: Curator) -> str:
    return curator.budget.left(curator.remaining, digits=4)


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)

"""Intervals of 95 %, counted: how often they hold the true value, on tables of several kinds.

    python benchmarks/interval_coverage.py [--answers 400] [--people 2000] [--epsilon 1.0] [--only lognormal] [--alone]

Every question is asked many times of one small table, each time of a new curator, with fresh noise and freshly chosen
bounds: one that has answered three times knows its bounds. With --alone each question pays for its own bounds, in place
of a share of the budget. An interval counts for every group that is answered, and
questions by group are asked an eighth as often. Prints one line for each question and a column for each kind of table:
the part of intervals that hold the value of the question itself without privacy, in per cent, and writes
benchmarks/results/coverage.json. The people's numbers of rows are all 1, uniform, lognormal, Pareto or Poisson.
"""

from __future__ import annotations

import argparse
import json
import math
import warnings
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from discreet import Budget, Curator

RESULT = Path(__file__).resolve().parent / "results" / "coverage.json"
GROUPS = [f"g{k}" for k in range(8)]
QUESTIONS = {
    "COUNT(*)": "SELECT COUNT(*) AS n FROM t",
    "SUM": "SELECT SUM(x) AS s FROM t",
    "SUM, centred": "SELECT SUM(y) AS s FROM t",
    "AVG": "SELECT AVG(x) AS m FROM t",
    "STDDEV": "SELECT STDDEV(x) AS m FROM t",
    "people": "SELECT COUNT(DISTINCT u) AS n FROM t",
    "ratio": "SELECT SUM(x) / COUNT(*) AS m FROM t",
    "ratio of people": "SELECT SUM(x) / COUNT(DISTINCT u) AS m FROM t",
    "difference": "SELECT COUNT_IF(x < 20) - COUNT_IF(x >= 20) AS n FROM t",
    "rounded": "SELECT ROUND(COUNT(*) / 1000.0, 1) AS n FROM t",
    "COUNT(*) by group": "SELECT g, COUNT(*) AS n FROM t GROUP BY g",
    "SUM by group": "SELECT g, SUM(x) AS s FROM t GROUP BY g",
    "AVG by group": "SELECT g, AVG(x) AS m FROM t GROUP BY g",
    "VARIANCE by group": "SELECT g, VARIANCE(x) AS m FROM t GROUP BY g",
    "ratio by group": "SELECT g, SUM(x) / COUNT(DISTINCT u) AS m FROM t GROUP BY g",
    "difference by group": "SELECT g, COUNT_IF(x < 20) - COUNT_IF(x >= 20) AS n FROM t GROUP BY g",
    "median": "SELECT MEDIAN(x) AS m FROM t",
    "0.9": "SELECT QUANTILE_CONT(x, 0.9) AS m FROM t",
    "median by group": "SELECT g, MEDIAN(x) AS m FROM t GROUP BY g",
    "0.9 by group": "SELECT g, QUANTILE_CONT(x, 0.9) AS m FROM t GROUP BY g",
    "MAX by group": "SELECT g, MAX(x) AS m FROM t GROUP BY g",
    "sum over groups": "SELECT SUM(n) AS t FROM (SELECT g, COUNT(*) AS n FROM t GROUP BY g) y",
    "largest group": "SELECT MAX(n) AS t FROM (SELECT g, COUNT(*) AS n FROM t GROUP BY g) y",
    "share of a group": "SELECT g, COUNT(*) / SUM(COUNT(*)) OVER () AS t FROM t GROUP BY g",
    "ratio of tables": "SELECT (SELECT COUNT(*) FROM t WHERE x < 20) / (SELECT COUNT(*) FROM t) AS t",
    "union": "SELECT 'a' AS k, COUNT(*) AS n FROM t WHERE x < 20 UNION ALL SELECT 'b', COUNT(*) FROM t WHERE x >= 20",
}
KINDS = ("one row", "uniform", "lognormal", "pareto", "poisson")


def table(kind: str, people: int) -> pa.Table:
    """Rows of people: a group and a number each, neither of which has to do with how many rows there are."""
    stream = np.random.default_rng([people, KINDS.index(kind)])
    rows = {
        "one row": lambda: np.ones(people),
        "uniform": lambda: stream.integers(1, 21, people),
        "lognormal": lambda: np.ceil(6 * stream.lognormal(0, 1, people)),
        "pareto": lambda: np.ceil(5 * (1 + stream.pareto(2, people))),
        "poisson": lambda: stream.poisson(8, people),
    }[kind]().astype(int)
    unit = np.repeat(np.arange(people), rows)
    x = np.minimum(np.round(20 * stream.lognormal(0, 0.8, unit.size), 2), 1000.0)
    group = stream.integers(0, len(GROUPS), unit.size)
    y = stream.integers(18, 91, unit.size)
    return pa.table({"u": unit, "g": np.array(GROUPS)[group], "x": x, "y": y})


def covered(data: pa.Table, sql: str, true: dict[Any, float], *, epsilon: float, answers: int, alone: bool) -> float:
    """The part of intervals that hold the truth; NaN if there are none."""
    hits = []
    facts: dict[str, Any] = {"unit": "u", "budget": Budget(epsilon=100.0, delta=0.1), "ledger": ":memory:"}
    facts |= {"bounds_share": 0} if alone else {}
    columns = {"x": {"bounds": (0, 1000)}, "y": {"bounds": (18, 90)}, "g": {"keys": GROUPS}}
    for _ in range(max(1, answers // len(GROUPS)) if sql.startswith("SELECT g") else answers):
        with Curator.open({"t": data}, columns=columns, **facts) as curator:
            answer = curator.sql(sql, epsilon=epsilon, delta=1e-6)
        for row in answer.intervals(0.95).to_pylist():
            *key, name = answer.columns
            low, high = row.get(f"{name}_low"), row.get(f"{name}_high")
            if low is not None or high is not None:
                truth = true[row[key[0]] if key else None]
                hits.append((-math.inf if low is None else low) <= truth <= (math.inf if high is None else high))
    return float(np.mean(hits)) if hits else math.nan


def main() -> None:
    """Ask everything of every table and print the shares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=int, default=400)
    parser.add_argument("--people", type=int, default=2000)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--only", nargs="*", default=list(KINDS), choices=KINDS)
    parser.add_argument("--questions", nargs="*", default=list(QUESTIONS), choices=list(QUESTIONS))
    parser.add_argument("--alone", action="store_true", help="bounds by each question")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # the ledger ends with the process, on purpose
    found: dict[str, dict[str, float]] = {name: {} for name in arguments.questions}
    print(f"{'':20}" + "".join(f"{kind:>12}" for kind in arguments.only))
    for name in arguments.questions:
        sql = QUESTIONS[name]
        print(f"{name:20}", end="", flush=True)
        for kind in arguments.only:
            data = table(kind, arguments.people)
            exact = duckdb.connect()
            exact.register("t", data)
            true = {row[0] if len(row) > 1 else None: float(row[-1]) for row in exact.execute(sql).fetchall()}
            said = {"epsilon": arguments.epsilon, "answers": arguments.answers, "alone": arguments.alone}
            part = covered(data, sql, true, **said)
            found[name][kind] = part
            print(f"{100 * part:12.1f}", end="", flush=True)
        print(flush=True)
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps({"arguments": vars(arguments), "covered": found}, indent=1) + "\n")
    print(f"written to {RESULT.relative_to(RESULT.parents[2])}")


if __name__ == "__main__":
    main()

"""What a first answer loads: only what it needs."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

if TYPE_CHECKING:
    from pathlib import Path

UNNEEDED = {"scipy", "numba", "pandas", "polars", "matplotlib", "sklearn", "torch", "yaml"}
QUESTIONS = [
    "SELECT COUNT(*) AS n FROM visits",
    "SELECT city, COUNT(*) AS n, AVG(spend) AS mean, SUM(spend) AS total FROM visits GROUP BY city",
    "SELECT day, COUNT(DISTINCT person) AS n FROM visits GROUP BY day",
    "SELECT day, MEDIAN(spend) AS middle FROM visits GROUP BY day",
]
POLICY = """
name = "visits"
ledger = "ledger.db"

[budget]
epsilon = 3.0
delta = 1e-5

[tables.visits]
source = "visits.parquet"
unit = "{unit}"

[tables.visits.columns]
day.keys = [0, 1, 2, 3, 4, 5, 6]
spend.bounds = [0.0, 100.0]
"""
CODE = """
import json, sys
from discreet import Curator
answer = Curator.open("policy.toml").sql(sys.argv[1], epsilon=1.0, delta=1e-6)
answer.to_arrow(), answer.intervals(0.95)
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def loaded_by(question: str, unit: str, folder: Path) -> set[str]:
    """The packages that a fresh process holds after it has answered."""
    rows = range(2000)
    columns = {
        "person": [row // 4 for row in rows],
        "day": [row % 7 for row in rows],
        "city": [f"city {row % 5}" for row in rows],
        "spend": [float(row % 100) for row in rows],
    }
    pq.write_table(pa.table(columns), folder / "visits.parquet")
    (folder / "policy.toml").write_text(POLICY.format(unit=unit))
    done = subprocess.run(
        [sys.executable, "-c", CODE, question], capture_output=True, text=True, check=True, cwd=folder
    )
    return set(json.loads(done.stdout))


@pytest.mark.parametrize("unit", ["person", "row"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_first_answer_with_its_intervals_loads_no_package_that_it_does_not_need(
    question: str, unit: str, tmp_path: Path
) -> None:
    loaded = loaded_by(question, unit, tmp_path)
    assert {"discreet", "duckdb", "numpy"} <= loaded
    assert loaded.isdisjoint(UNNEEDED)


def test_a_frame_that_cannot_be_made_says_what_to_install(tmp_path: Path) -> None:
    pq.write_table(pa.table({"u": [1, 2]}), tmp_path / "t.parquet")
    code = f"""
import sys

class Missing:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in ("pandas", "polars"):
            raise ImportError(name)

sys.meta_path.insert(0, Missing())
from discreet import Budget, Curator, DiscreetError
answer = Curator.open({str(tmp_path / "t.parquet")!r}, unit="u", budget=Budget(epsilon=1.0)).sql(
    "SELECT COUNT(*) FROM t", epsilon=0.5
)
for frame in (answer.to_pandas, answer.to_polars):
    try:
        frame()
    except DiscreetError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    wanted = "this needs {0}, which is not installed: run pip install {0}, or pip install 'discreet[frames]'."
    assert done.stdout.splitlines() == [wanted.format("pandas"), wanted.format("polars")]

"""Private SQL, measured: this package beside DuckDB without privacy, the one-statement floor, and the peers.

    python benchmarks/query.py [--rows 1000000 10000000] [--only abc] [--repeats 5] [--runs 9] [--timeout 900]

Every contestant answers every question in a process of its own: wall seconds of one answer (median), process start to
the first answer, peak memory, and the error: the median over groups of |answer - truth| / |truth|, median of the runs.
Prints the tables and writes benchmarks/results/query.json. The tables are made once (querying/data.py).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

from querying.data import CATEGORIES, COUNTRIES, DAYS, users_path, visits_path
from querying.judging import Cells, relative_errors, truth
from querying.questions import QUESTIONS, Question
from querying.running import own

HERE = Path(__file__).resolve().parent
RESULT = HERE / "results" / "query.json"
EPSILON, DELTA = 1.0, 1e-6
DISTRIBUTIONS = ("discreet", "duckdb", "pyarrow", "numpy", "sqlglot")


def job(question: Question, *, rows: int, repeats: int, runs: int) -> dict[str, Any]:
    """What a child is told."""
    return {
        "question": question.name,
        "rows": rows,
        "visits": str(visits_path(rows)),
        "users": str(users_path()),
        "epsilon": EPSILON,
        "delta": DELTA,
        "repeats": repeats,
        "runs": runs,
        "categories": CATEGORIES,
        "countries": COUNTRIES,
        "days": [day.isoformat() for day in DAYS],
    }


def judged(question: Question, true: Cells, report: dict[str, Any]) -> dict[str, Any]:
    """The report with errors in the place of answers."""
    answers = [a["answer"] for a in report.pop("answers", [])]
    if "failure" in report or not answers:
        return report
    errors = [relative_errors(question, true, answer) for answer in answers]
    return {
        **report,
        "median_s": median(report["seconds"]),
        "errors": {name: median(e[name] for e in errors) for name in question.values},
        "released": median(len(answer) for answer in answers),
    }


def shown(report: dict[str, Any]) -> list[str]:
    """The cells of one line of the table."""
    if "failure" in report:
        return [report["failure"], "", "", "", ""]
    return [
        f"{1000 * report['median_s']:.1f} ms",
        f"{report['cold_s']:.2f} s" if "cold_s" in report else "",
        f"{report['peak_mb']:.0f} MB",
        ", ".join(f"{100 * e:.3g} %" for e in report["errors"].values()),
        f"{report['released']:g}",
    ]


def main() -> None:
    """Ask everybody, print the tables, write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--only", default="abcdefgh", help="the letters of the questions to ask")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--runs", type=int, default=9, help="answers over which the error is taken")
    parser.add_argument("--timeout", type=float, default=900.0, help="wall seconds for one contestant and question")
    arguments = parser.parse_args()

    reports: list[dict[str, Any]] = []
    widths = (9, 3, 12, 12, 8, 9, 20, 9)
    heads = ("rows", "", "contestant", "time", "cold", "memory", "median error", "released")
    print("  ".join(c.rjust(w) for c, w in zip(heads, widths, strict=True)))
    for rows in arguments.rows:
        for question in (q for q in QUESTIONS if q.name in arguments.only):
            asked = job(question, rows=rows, repeats=arguments.repeats, runs=arguments.runs)
            true = truth(question, visits_path(rows), users_path())
            print(f"-- {question.name}: {question.described}", flush=True)
            for name in ("raw", "floor"):
                report = judged(question, true, own(name, asked, timeout_s=arguments.timeout))
                reports.append({"rows": rows, "question": question.name, "contestant": name, **report})
                cells = [str(rows), question.name, name, *shown(report)]
                print("  ".join(c.rjust(w) for c, w in zip(cells, widths, strict=True)), flush=True)

    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps({"made": _made(), "rows": reports}, indent=1) + "\n")
    print(f"written to {RESULT.relative_to(HERE.parent)}")


def _made() -> dict[str, object]:
    versions = {}
    for distribution in DISTRIBUTIONS:
        try:
            versions[distribution] = version(distribution)
        except PackageNotFoundError:
            versions[distribution] = None
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "versions": versions,
    }


if __name__ == "__main__":
    main()

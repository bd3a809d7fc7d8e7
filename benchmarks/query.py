"""Private SQL, measured: this package beside DuckDB without privacy, the one-statement floor, and the peers.

    python benchmarks/query.py [--rows 1000000 10000000] [--only abc] [--ours-only | --peers opendp tumult] [--quick]
                               [--repeats 5] [--rounds 1] [--runs 9] [--timeout 900] [--tune PEER]

    python benchmarks/query.py --rows 1000000 10000000 --ours-only      # all that is judged without peers, in minutes

Every contestant answers every question in a process of its own: wall seconds of one answer (median), process start to
the first answer, peak memory, and the error: the median over groups of |answer - truth| / |truth|, median of the runs.
Prints a line for each, then tables of times, first answers, errors and memory, with the ratios that matter, and
writes benchmarks/results/query.json, where the results of several runs come together. The tables of visits and the
peers' environments are made once (querying/data.py, querying/peers/environments.py).
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
from querying.judging import Cells, covered, relative_errors, truth
from querying.peers.environments import PEERS, Peer, interpreter
from querying.postgres import serving
from querying.questions import QUESTIONS, Question
from querying.running import in_turn, reported
from querying.settings import TUNED, grid
from querying.tables import line, summary

HERE = Path(__file__).resolve().parent
RESULT = HERE / "results" / "query.json"
EPSILON, DELTA = 1.0, 1e-6
DISTRIBUTIONS = ("discreet", "duckdb", "pyarrow", "numpy", "sqlglot", "SQLAlchemy")
OWN = ("raw", "raw anew", "floor", "discreet by row", "discreet", "discreet alone", "discreet later")
SCALAR_RUNS = 3
"""A question with one number is asked this many times as often: its error has no groups to be taken over."""

FEWER_ABOVE, FEW_RUNS = 5_000_000, 3
"""Tables with more rows are asked this often, so that the whole takes minutes."""


def job(question: Question, *, rows: int, repeats: int, runs: int) -> dict[str, Any]:
    """What a child is told."""
    return {
        "question": question.name,
        "rows": rows,
        "visits": str(visits_path(rows).resolve()),
        "users": str(users_path().resolve()),
        "epsilon": EPSILON,
        "delta": DELTA,
        "repeats": repeats,
        "runs": _runs(question, rows, runs),
        "categories": CATEGORIES,
        "countries": COUNTRIES,
        "days": [day.isoformat() for day in DAYS],
    }


def _runs(question: Question, rows: int, runs: int) -> int:
    if rows > FEWER_ABOVE:
        return min(runs, FEW_RUNS)
    return runs if question.keys else SCALAR_RUNS * runs


def judged(question: Question, true: Cells, report: dict[str, Any]) -> dict[str, Any]:
    """The report with errors in the place of answers."""
    runs = report.pop("answers", [])
    if "failure" in report or not runs:
        return report
    errors = [relative_errors(question, true, run["answer"]) for run in runs]
    found = {
        **report,
        "median_s": median(report["seconds"]),
        **({"median_cpu_s": median(report["cpu_seconds"])} if "cpu_seconds" in report else {}),
        "errors": {name: median(e[name] for e in errors) for name in question.values},
        "released": median(len(run["answer"]) for run in runs),
    }
    if "first_s" in runs[0]:
        found["first_s"] = median(run["first_s"] for run in runs)
    if "intervals" in runs[0]:
        found["coverage"] = covered(question, true, [run["intervals"] for run in runs])
    return found


def asked_peer(peer: Peer, told: dict[str, Any], settings: list[dict[str, Any]], timeout_s: float) -> dict[str, Any]:
    """The peer's report on each of the settings, or how it failed."""
    python = interpreter(peer)
    if isinstance(python, str):
        return {"failure": python}
    with serving(told["rows"] if peer.name == "smartnoise" else None) as server:
        if peer.name == "smartnoise" and server is None:
            return {"failure": "PostgreSQL is not installed"}
        return reported(
            [str(python), "-m", f"querying.peers.{peer.script}"],
            {**told, "settings": settings, "enough_s": timeout_s / 3, "postgres": server},
            timeout_s=timeout_s,
        )


def flat(report: dict[str, Any]) -> dict[str, Any]:
    """The report on a single setting, as the package's own contestants write it."""
    results = report.pop("results", [])
    return {**report, **results[0]} if results else report


def tuned(peer: Peer, told: dict[str, Any], question: Question, true: Cells, timeout_s: float) -> None:
    """Print the peer's errors on the grid around its settings."""
    report = asked_peer(peer, told, grid(TUNED[peer.name][question.name]), timeout_s)
    if "failure" in report:
        print(report["failure"], flush=True)
    for result in report.get("results", []):
        found = judged(question, true, result)
        errors = found.get("failure") or ", ".join(f"{100 * e:.3g} %" for e in found["errors"].values())
        print(
            f"{peer.name} {question.name}  {errors}  released {found.get('released')}  {found['settings']}", flush=True
        )


def main() -> None:
    """Ask everybody, print the tables, write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--only", default="abcdefgh", help="the letters of the questions to ask")
    parser.add_argument("--ours-only", action="store_true", help="leave the peers out")
    parser.add_argument("--peers", nargs="*", default=[p.name for p in PEERS], help="the peers to ask")
    parser.add_argument("--own", nargs="*", default=list(OWN), help=f"those of the package: {', '.join(OWN)}")
    parser.add_argument("--quick", action="store_true", help="one run and repeat, no peers")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=1, help="how often the package's own go one after the other")
    parser.add_argument("--runs", type=int, default=9, help="answers over which the error is taken")
    parser.add_argument("--peer-runs", type=int, default=3, help="the same for peers")
    parser.add_argument("--timeout", type=float, default=900.0, help="wall seconds for one contestant and question")
    parser.add_argument("--tune", choices=list(TUNED), help="search a peer's bounds instead of measuring")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.repeats = arguments.runs = arguments.peer_runs = 1
    peers = [p for p in PEERS if p.name in arguments.peers and not (arguments.ours_only or arguments.quick)]
    questions = [q for q in QUESTIONS if q.name in arguments.only]
    arguments.own = [name for name in OWN if name in arguments.own]

    if arguments.tune:
        peer = next(p for p in PEERS if p.name == arguments.tune)
        for rows in arguments.rows:
            for question in questions:
                true = truth(question, visits_path(rows), users_path())
                told = job(question, rows=rows, repeats=1, runs=arguments.peer_runs)
                tuned(peer, told, question, true, arguments.timeout)
        return

    reports: list[dict[str, Any]] = []
    print(line("rows", "", "contestant", {}))
    for rows in arguments.rows:
        for question in questions:
            true = truth(question, visits_path(rows), users_path())
            print(f"-- {question.name}: {question.described}", flush=True)
            told = job(question, rows=rows, repeats=arguments.repeats, runs=arguments.runs)
            ours = in_turn(arguments.own, told, rounds=arguments.rounds, timeout_s=arguments.timeout)
            for name in [*arguments.own, *(p.name for p in peers)]:
                if name in OWN:
                    report = ours[name]
                else:
                    told = job(question, rows=rows, repeats=1, runs=arguments.peer_runs)
                    peer = next(p for p in peers if p.name == name)
                    settings = TUNED[name][question.name]
                    report = flat(asked_peer(peer, told, [settings], arguments.timeout))
                report = judged(question, true, report)
                what = {"rows": rows, "question": question.name, "contestant": name, **_when()}
                reports.append({**what, **report})
                print(line(str(rows), question.name, name, report), flush=True)
                stored(reports)
    kept = stored(reports)
    for rows in sorted({r["rows"] for r in kept}):
        print(summary([r for r in kept if r["rows"] == rows], rows))
    print(f"written to {RESULT.relative_to(HERE.parent)}, beside what was measured before")


def stored(reports: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Write the reports over older ones on the same question; gives all that are kept, in the order of the tables."""
    older = json.loads(RESULT.read_text())["rows"] if RESULT.exists() else []
    kept = {(r["rows"], r["question"], r["contestant"]): r for r in [*older, *reports]}
    order = [*OWN, *(p.name for p in PEERS)]
    ordered = sorted(kept.values(), key=lambda r: (r["rows"], r["question"], order.index(r["contestant"])))
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps({"made": _made(), "rows": ordered}, indent=1) + "\n")
    return ordered


def _when() -> dict[str, Any]:
    return {"at": datetime.now(UTC).isoformat(timespec="seconds"), "load": os.getloadavg()[0]}


def _made() -> dict[str, object]:
    versions = {}
    for distribution in DISTRIBUTIONS:
        try:
            versions[distribution] = version(distribution)
        except PackageNotFoundError:
            versions[distribution] = None
    return {
        **_when(),
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "versions": versions,
    }


if __name__ == "__main__":
    main()

"""epsilon, measured: this package beside dp-accounting, prv-accountant and opacus.

    python benchmarks/accounting.py [--ours-only] [--quick] [--repeats 5] [--timeout 180] [--only NAME]

Every contestant answers every question in a process of its own (CPU seconds, peak memory). The error is relative to the
stored high-precision reference; "VIOLATED" marks a claimed upper bound below the truth or a lower bound above it.
Prints one table, writes benchmarks/results/accounting.json, and exits with 1 if a bound of this package is violated.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from decimal import Decimal
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

from accountants.contestants import CONTESTANTS, ESTIMATES
from accountants.questions import QUICK, Question, described, questions

HERE = Path(__file__).resolve().parent
RESULT = HERE / "results" / "accounting.json"
COLUMNS = ("question", "contestant", "answer", "error", "width", "CPU ms", "peak MB", "")
DISTRIBUTIONS = ("discreet", "dp-accounting", "prv-accountant", "opacus", "numpy", "scipy", "torch")


def asked(contestant: str, question: Question, *, repeats: int, timeout_s: float) -> dict[str, Any]:
    """The child's report, or how it failed."""
    command = [sys.executable, "-m", "accountants.child", contestant, question.name, "--repeats", str(repeats)]
    environment = {**os.environ, "PYTHONPATH": str(HERE), "PYTHONWARNINGS": "ignore"}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=timeout_s, env=environment, cwd=HERE, check=False
        )
    except subprocess.TimeoutExpired:
        return {"failure": f"> {timeout_s:g} s"}
    if done.returncode:
        return {"failure": f"exit {done.returncode}", "stderr": done.stderr[-2000:]}
    report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return report


def judged(contestant: str, question: Question, report: dict[str, Any]) -> dict[str, Any]:
    """Errors and violations against the truth; comparisons are exact."""
    value, lower, truth = report.get("value"), report.get("lower"), question.truth
    if value is None:
        return report
    if not math.isfinite(value):
        return {**report, "failure": str(value)}
    claims = contestant not in ESTIMATES
    wrong = claims and (Decimal(value) < truth or (lower is not None and Decimal(lower) > truth))
    judgement: dict[str, Any] = {"relative_error": float(Decimal(value) / truth - 1), "violated": wrong}
    if lower is not None:
        judgement["relative_width"] = float((Decimal(value) - Decimal(lower)) / truth)
    return {**report, **judgement, "median_cpu_ms": 1000 * median(report["cpu_s"])}


def shown(contestant: str, question: Question, report: dict[str, Any]) -> list[str]:
    """One line of the table."""
    peak = f"{report['peak_mb']:.0f}" if "peak_mb" in report else ""
    if "failure" in report:
        return [question.name, contestant, report["failure"], "", "", "", peak, ""]
    note = "VIOLATED" if report["violated"] else "estimate" if contestant in ESTIMATES else ""
    return [
        question.name,
        contestant,
        f"{report['value']:.9g}",
        f"{report['relative_error']:+.1e}",
        f"{report['relative_width']:.1e}" if "relative_width" in report else "",
        f"{report['median_cpu_ms']:.1f}",
        peak,
        note,
    ]


def main() -> None:
    """Ask everybody, print the table, write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours-only", action="store_true", help="leave the other libraries out")
    parser.add_argument("--quick", action="store_true", help="five questions, one repeat")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--timeout", type=float, default=180.0, help="wall seconds for one answer")
    parser.add_argument("--only", help="contestants whose name contains this")
    arguments = parser.parse_args()

    chosen = [q for q in questions() if not arguments.quick or q.name in QUICK]
    names = ["discreet"]
    if not arguments.ours_only:
        installed = {d for d in dict.fromkeys(d for d, _ in CONTESTANTS.values()) if _installed(d)}
        names = [name for name, (distribution, _) in CONTESTANTS.items() if distribution in installed]
    names = [n for n in names if arguments.only is None or arguments.only in n]
    repeats = 1 if arguments.quick else arguments.repeats

    reports: list[dict[str, Any]] = []
    widths = (24, 18, 14, 9, 8, 9, 7, 8)
    line = lambda cells: "  ".join(
        c.ljust(w) if k < 2 else c.rjust(w) for k, (c, w) in enumerate(zip(cells, widths, strict=True))
    ).rstrip()
    print(line(COLUMNS))
    for question in chosen:
        print(f"-- {question.name}: {described(question)}; truth {float(question.truth):.12g}", flush=True)
        for name in names:
            report = judged(name, question, asked(name, question, repeats=repeats, timeout_s=arguments.timeout))
            reports.append({"question": question.name, "contestant": name, "truth": str(question.truth), **report})
            print(line(shown(name, question, report)), flush=True)
    for name in names:
        print(summary(name, [r for r in reports if r["contestant"] == name]))

    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps({"made": _made(), "rows": reports}, indent=1) + "\n")
    print(f"written to {RESULT.relative_to(HERE.parent)}")
    if any(r.get("violated") for r in reports if r["contestant"] == "discreet"):
        sys.exit("a certified bound of discreet is violated")


def summary(name: str, reports: list[dict[str, Any]]) -> str:
    """One sentence for one contestant."""
    answers = [r for r in reports if "failure" not in r]
    violated = sum(r["violated"] for r in answers)
    imports = [r["import_cpu_s"] for r in reports if "import_cpu_s" in r]
    ordinary = [r["median_cpu_ms"] for r in answers if r["question"].startswith("ordinary")]
    text = f"{name}: {len(answers)} of {len(reports)} answered, {violated} bounds violated"
    if ordinary:
        text += f"; ordinary settings median {median(ordinary):.0f} ms, worst {max(ordinary):.0f} ms"
    if imports:
        text += f"; import {median(imports):.2f} s"
    return text


def _installed(distribution: str) -> bool:
    if distribution == "discreet":
        return True
    try:
        version(distribution)
    except PackageNotFoundError:
        print(f"{distribution} is not installed: left out")
        return False
    return True


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

"""Integer noise, measured: this package beside OpenDP, diffprivlib and Tumult Core in one run.

    python benchmarks/noise.py [--ours-only] [--quick] [--timeout 600] [--only NAME]

Every contestant runs in a process of its own. Prints three tables (draws per second in arrays; microseconds of a single
draw; the rank correlation of its time with the noise), writes benchmarks/results/noise.json, and exits with 1 if this
package misses a figure that it promises (see `missed`).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from samplers.contestants import CONTESTANTS

HERE = Path(__file__).resolve().parent
RESULT = HERE / "results" / "noise.json"
DISTRIBUTIONS = ("discreet", "numpy", "cryptography", "numba", "opendp", "diffprivlib", "tmlt.core", "scikit-learn")


def measured(name: str, *, quick: bool, timeout_s: float) -> dict[str, Any]:
    """The child's rows, or why there are none."""
    distribution = CONTESTANTS[name][0]
    if not _version(distribution):
        return {"failure": f"{distribution} is not installed"}
    command = [sys.executable, "-m", "samplers.child", name, *(["--quick"] if quick else [])]
    path = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONWARNINGS": "ignore"}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=timeout_s, env=environment, cwd=HERE, check=False
        )
    except subprocess.TimeoutExpired:
        return {"failure": f"> {timeout_s:g} s"}
    if done.returncode:
        return {"failure": (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1]}
    return {"rows": json.loads(done.stdout.splitlines()[-1])}


def missed(name: str, row: dict[str, Any]) -> str | None:
    """What this package promises and this row does not keep."""
    if not name.startswith("discreet"):
        return None
    if "single_us" in row:
        slow = "single draw > 20 µs" if row["single_us"] > 20 else None
        return "|correlation| > 0.03" if abs(row["correlation"]) > 0.03 else slow
    promised = 0.8e6 if row["scale"] > 1000 else 50e6 if "kernel" in name else 5e6
    return None if row["per_s"] >= promised else f"< {promised / 1e6:g} M draws/s"


def main() -> None:
    """Ask everybody, print the tables, write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours-only", action="store_true", help="leave the other libraries out")
    parser.add_argument("--quick", action="store_true", help="short batches, one run")
    parser.add_argument("--timeout", type=float, default=600.0, help="wall seconds for one contestant")
    parser.add_argument("--only", help="contestants whose name contains this")
    arguments = parser.parse_args()

    names = [n for n in CONTESTANTS if not arguments.ours_only or n.startswith("discreet")]
    names = [n for n in names if arguments.only is None or arguments.only in n]
    reports = {}
    for name in names:
        reports[name] = measured(name, quick=arguments.quick, timeout_s=arguments.timeout)
        if "failure" in reports[name]:
            print(f"{name}: left out: {reports[name]['failure']}", flush=True)
    ran = {name: report["rows"] for name, report in reports.items() if "rows" in report}

    for title, field, text in (
        ("million draws per CPU second, in arrays", "per_s", lambda row: f"{row['per_s'] / 1e6:.4g}"),
        ("µs of a single draw, median of 8000", "single_us", lambda row: f"{row['single_us']:.1f}"),
        ("rank correlation of time and |noise|", "correlation", lambda row: f"{row['correlation']:+.3f}"),
    ):
        print(f"\n{title}")
        table(ran, field, text)
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps({"made": _made(), "contestants": reports}, indent=1) + "\n")
    print(f"\nwritten to {RESULT.relative_to(HERE.parent)}")
    misses = [(name, row, what) for name, rows in ran.items() for row in rows if (what := missed(name, row))]
    for name, row, what in misses:
        print(f"missed: {name}, {row['law']} {row['scale']}: {what}")
    if misses:
        sys.exit(1)


def table(ran: dict[str, list[dict[str, Any]]], field: str, text: Any) -> None:
    """One line for each law and scale, one column for each contestant."""
    cells = {(row["law"], row["scale"], name): text(row) for name, rows in ran.items() for row in rows if field in row}
    print("  " + "law, scale".ljust(26) + "".join(f"{name:>22}" for name in ran))
    for law, scale in dict.fromkeys((law, scale) for law, scale, _ in cells):
        line = "".join(f"{cells.get((law, scale, name), ''):>22}" for name in ran)
        print(f"  {f'{law}, {scale:g}':<26}{line}")


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _made() -> dict[str, object]:
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "versions": {distribution: _version(distribution) for distribution in DISTRIBUTIONS},
    }


if __name__ == "__main__":
    main()

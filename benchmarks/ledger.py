"""How long a charge takes: in a fresh process, in a running one, and after many thousand others.

    python benchmarks/ledger.py [--entries 20000] [--repeats 15]

Prints one table and writes benchmarks/results/ledger.json; exits with 1 if a charge in a running process takes more
than 3 ms of CPU, or more than 1.5 times as long after many entries as at first. Beside the times stands what a bare
write to the disk costs: a charge waits for one, an answer for two.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

from discreet import Budget, Cost, Ledger

RESULT = Path(__file__).parent / "results" / "ledger.json"
LIMIT_S, LIMIT_RATIO = 0.003, 1.5
BUDGET = Budget(epsilon=500.0, delta=1e-6)
FRESH = """
import json, sys, time
from discreet import Budget, Cost, Ledger
cost = Cost.discrete_laplace(1000.0)
times = {}
def timed(name, call):
    wall, cpu = time.perf_counter(), time.process_time()
    value = call()
    times[name] = (time.perf_counter() - wall, time.process_time() - cpu)
    return value
ledger = timed("open", lambda: Ledger.open(sys.argv[1]))
entry = timed("reserve", lambda: ledger.reserve("d", cost, what="SELECT 1", fingerprint="f"))
timed("complete", lambda: ledger.complete(entry, b"x" * 500))
print(json.dumps(times))
"""


def fresh(path: Path, repeats: int) -> dict[str, tuple[float, float]]:
    """Median wall and CPU seconds of the three steps, each repeat in a process of its own."""
    runs = []
    for _ in range(repeats + 1):
        done = subprocess.run([sys.executable, "-c", FRESH, str(path)], capture_output=True, text=True, check=True)
        runs.append(json.loads(done.stdout))
    return {
        f"{step}, fresh process": (median(run[step][0] for run in runs[1:]), median(run[step][1] for run in runs[1:]))
        for step in ("open", "reserve", "complete")
    }


def charged(ledger: Ledger, count: int, *, complete: bool) -> tuple[float, float]:
    """Median wall and CPU seconds of charges in this process."""
    cost, walls, cpus = Cost.discrete_laplace(1000.0), [], []
    for _ in range(count):
        wall, cpu = time.perf_counter(), time.process_time()
        entry = ledger.reserve("d", cost, what="SELECT 1", fingerprint="f")
        if complete:
            ledger.complete(entry, b"x" * 500)
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return median(walls), median(cpus)


def written(folder: Path, count: int) -> tuple[float, float]:
    """Median wall and CPU seconds of writing a page to the disk."""
    walls = []
    with (folder / "page").open("wb", buffering=0) as file:
        for _ in range(count):
            begin = time.perf_counter()
            file.write(b"x" * 4096)
            os.fsync(file.fileno())
            walls.append(time.perf_counter() - begin)
    return median(walls), 0.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--entries", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ledger = Ledger.open(folder / "ledger.db")
        ledger.establish("d", BUDGET)
        times: dict[str, tuple[float, float]] = {"a page to the disk": written(folder, 100)}
        times |= fresh(folder / "ledger.db", options.repeats)
        charged(ledger, 20, complete=False)
        times["reserve"] = first = charged(ledger, 200, complete=False)
        times["reserve and complete"] = charged(ledger, 200, complete=True)
        charged(ledger, options.entries, complete=False)
        times[f"reserve, {options.entries} later"] = last = charged(ledger, 200, complete=False)
        begin, cpu = time.perf_counter(), time.process_time()
        report = ledger.verify()
        times[f"verify {report.head.count} entries"] = (time.perf_counter() - begin, time.process_time() - cpu)
        ledger.close()
        size = (folder / "ledger.db").stat().st_size / report.reservations

    print(f"{'step':<32}{'wall':>12}{'CPU':>12}")
    for step, (wall, cpu) in times.items():
        print(f"{step:<32}{1000 * wall:>9.2f} ms{1000 * cpu:>9.2f} ms")
    print(f"{size:.0f} bytes a charge")
    found: dict[str, Any] = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"python": platform.python_version(), "system": platform.platform(), "cpus": os.cpu_count()},
        "versions": {name: version(name) for name in ("discreet", "sqlalchemy")},
        "entries": options.entries,
        "times_s": {step: {"wall": wall, "cpu": cpu} for step, (wall, cpu) in times.items()},
        "bytes_per_charge": size,
    }
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    return int(last[1] > LIMIT_S or last[1] > LIMIT_RATIO * first[1])


if __name__ == "__main__":
    sys.exit(main())

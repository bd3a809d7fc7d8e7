"""How long importing takes, relative to NumPy; each repeat in a fresh interpreter, the candidates taking turns.

    python benchmarks/import_time.py [--repeats 15]

Prints one table, writes benchmarks/results/import_time.json, and exits with 1 if `import discreet` takes more than 1.5
times as long as `import numpy`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from statistics import median

RESULT = Path(__file__).parent / "results" / "import_time.json"
REFERENCE = "import numpy"
JUDGED = "import discreet"
LIMIT = 1.5
STATEMENTS = [REFERENCE, JUDGED, "from discreet import Cost", "from discreet import Curator", "import scipy.special"]
PROBE = """
import sys, time
wall, cpu = time.perf_counter(), time.process_time()
exec(sys.argv[1])
print(time.perf_counter() - wall, time.process_time() - cpu, len(sys.modules))
"""


def measure(statement: str) -> tuple[float, float, int]:
    """Wall seconds, CPU seconds and number of loaded modules after the statement, in a fresh interpreter."""
    done = subprocess.run([sys.executable, "-c", PROBE, statement], capture_output=True, text=True, check=True)
    wall, cpu, modules = done.stdout.split()
    return float(wall), float(cpu), int(modules)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=15)
    repeats = parser.parse_args().repeats

    for statement in STATEMENTS:
        measure(statement)  # files into the cache, bytecode onto the disk
    runs = {statement: [] for statement in STATEMENTS}
    for _ in range(repeats):
        for statement in STATEMENTS:
            runs[statement].append(measure(statement))

    reference = median(wall for wall, _, _ in runs[REFERENCE])
    rows = [
        {
            "statement": statement,
            "wall_s": median(wall for wall, _, _ in samples),
            "wall_least_s": min(wall for wall, _, _ in samples),
            "cpu_s": median(cpu for _, cpu, _ in samples),
            "modules": samples[0][2],
            "ratio_to_numpy": median(wall for wall, _, _ in samples) / reference,
        }
        for statement, samples in runs.items()
    ]

    print(f"{'statement':<28}{'median':>10}{'least':>10}{'cpu':>10}{'modules':>9}{'÷ numpy':>9}")
    for row in rows:
        times = "".join(f"{1000 * row[name]:>7.1f} ms" for name in ("wall_s", "wall_least_s", "cpu_s"))
        print(f"{row['statement']:<28}{times}{row['modules']:>9}{row['ratio_to_numpy']:>9.2f}")

    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(
        json.dumps(
            {
                "benchmark": "import_time",
                "when": datetime.now(UTC).isoformat(timespec="seconds"),
                "parameters": {"repeats": repeats, "limit": LIMIT},
                "versions": {
                    "python": platform.python_version(),
                    **{name: version(name) for name in ("discreet", "numpy", "scipy")},
                },
                "machine": {"system": platform.system(), "architecture": platform.machine(), "cores": os.cpu_count()},
                "rows": rows,
            },
            indent=2,
        )
        + "\n",
        encoding="utf-8",
    )
    ratio = next(row["ratio_to_numpy"] for row in rows if row["statement"] == JUDGED)
    print(f"{JUDGED}: {ratio:.2f} times {REFERENCE}, {'within' if ratio <= LIMIT else 'OVER'} the limit of {LIMIT}")
    return 0 if ratio <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())

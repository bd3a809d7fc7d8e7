"""Write the stored tables: ``python tests/reference/generate.py [table ...] [--again]``.

Rows already stored are kept unless ``--again`` is given; every row is written as soon as it is known. The whole run
takes about an hour on one core.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from flint import arb

from reference import truth
from reference.quadrature import PRECISION, use_precision
from reference.rows import CALIBRATIONS, TABLES, Row

DIGITS = 22


def computed(row: Row) -> dict[str, object]:
    """The row as it is stored; what was found is a string of twenty-two digits, sixteen for many mechanisms."""
    start = time.process_time()
    many = len(row.mechanisms) > truth.MANY
    use_precision(128 if many else PRECISION)
    if row.delta is not None:
        found, value = "epsilon", truth.epsilon(row.mechanisms, delta=row.delta)
        given: dict[str, float] = {"delta": row.delta}
    elif row.epsilon is not None:
        found, value = "delta", truth.delta(row.mechanisms, epsilon=row.epsilon)
        given = {"epsilon": row.epsilon}
    else:
        raise ValueError(f"{row.name} gives neither epsilon nor delta")
    sides = {"remove": value.remove, "add": value.add, "larger": value.larger}
    digits = {side: _shown(number, 16 if many else DIGITS) for side, number in sides.items()}
    seconds = round(time.process_time() - start, 1)
    return {"name": row.name, "mechanisms": row.mechanisms, "given": given, found: digits, "cpu_seconds": seconds}


def calibrate() -> None:
    """Optimal noise multipliers; the secant stops within 1e-9, so its last step leaves about 1e-18."""
    found: list[dict[str, object]] = []
    for target in CALIBRATIONS:
        sigma = truth.noise_multiplier(
            rate=target["rate"],
            count=int(target["count"]),
            epsilon=target["epsilon"],
            target=target["delta"],
            start=target["rate"] * math.sqrt(target["count"] * 2 * math.log(1 / target["delta"])) / target["epsilon"],
        )
        found.append({**target, "noise_multiplier": sigma.str(18, radius=False)})
        print(f"calibration: {found[-1]}", flush=True)
    write(Path(__file__).with_name("calibration.json"), found)


def write(path: Path, rows: list[dict[str, object]]) -> None:
    """One row a line, so that a changed row is a changed line."""
    path.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")


def _shown(number: arb | None, digits: int) -> str | None:
    return None if number is None else number.mid().str(digits, radius=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", default=[*TABLES, "calibration"])
    parser.add_argument("--again", action="store_true", help="compute rows anew that are already stored")
    arguments = parser.parse_args()
    for name in arguments.tables:
        if name == "calibration":
            calibrate()
            continue
        path = Path(__file__).with_name(f"{name}.json")
        stored = {r["name"]: r for r in json.loads(path.read_text())} if path.exists() else {}
        for row in TABLES[name]:
            if row.name in stored and not arguments.again:
                continue
            try:
                stored[row.name] = computed(row)
            except ArithmeticError as problem:
                print(f"{name}: {row.name}: left out, {problem}", flush=True)
                continue
            print(f"{name}: {row.name}: {stored[row.name]}", flush=True)
            kept = [stored[r.name] for r in TABLES[name] if r.name in stored]
            write(path, kept)


if __name__ == "__main__":
    main()

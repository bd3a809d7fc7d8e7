"""Write the stored tables: ``python tests/reference/generate.py [table ...] [--again]``.

Rows already stored are kept unless ``--again`` is given; every row is written as soon as it is known. The whole run
takes about an hour on one core.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from flint import arb

from reference import truth
from reference.rows import TABLES, Row

DIGITS = 22


def computed(row: Row) -> dict[str, object]:
    """The row as it is stored; numbers that were found are strings of twenty-two digits."""
    start = time.process_time()
    if row.delta is not None:
        found, value = "epsilon", truth.epsilon(row.mechanisms, delta=row.delta)
        given: dict[str, float] = {"delta": row.delta}
    elif row.epsilon is not None:
        found, value = "delta", truth.delta(row.mechanisms, epsilon=row.epsilon)
        given = {"epsilon": row.epsilon}
    else:
        raise ValueError(f"{row.name} gives neither epsilon nor delta")
    digits = {"remove": _shown(value.remove), "add": _shown(value.add), "larger": _shown(value.larger)}
    seconds = round(time.process_time() - start, 1)
    return {"name": row.name, "mechanisms": row.mechanisms, "given": given, found: digits, "cpu_seconds": seconds}


def _shown(value: arb) -> str:
    return value.mid().str(DIGITS, radius=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", default=list(TABLES))
    parser.add_argument("--again", action="store_true", help="compute rows anew that are already stored")
    arguments = parser.parse_args()
    for name in arguments.tables or TABLES:
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
            path.write_text("[\n" + ",\n".join(json.dumps(r) for r in kept) + "\n]\n")


if __name__ == "__main__":
    main()

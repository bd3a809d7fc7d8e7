"""One contestant in a process of its own: what it measures goes to standard output as JSON.

    python -m samplers.child NAME [--quick]

Rates are draws per second of CPU time, the best of several batches. Single draws are timed by the clock on the wall:
the median of 8000, and Spearman's correlation of their times with the sizes of the noise (median of several runs).
"""

from __future__ import annotations

import argparse
import json
import time
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import spearmanr

from samplers.contestants import CONTESTANTS

if TYPE_CHECKING:
    from collections.abc import Callable

LAWS = ("laplace", "gaussian", "rounded laplace", "rounded gaussian")
SCALES = (1, 10, 100, 1_000, 10_000, 1_000_000, 1_000_000_000)
SINGLE_SCALES = (1, 10, 1_000, 1_000_000)
SINGLE_DRAWS = 8_000


def rate(draw: Callable[[int], Any], batch: int, seconds: float) -> float:
    """Draws per second of CPU time: the best batch."""
    draw(batch)  # makes tables, compiles
    best, spent, rounds = 0.0, 0.0, 0
    while rounds < 3 or (spent < seconds and rounds < 50):
        start = time.process_time()
        draw(batch)
        took = max(time.process_time() - start, 1e-9)
        best, spent, rounds = max(best, batch / took), spent + took, rounds + 1
        if took > 4 * seconds:
            break
    return best


def timed(draw: Callable[[], int], draws: int) -> tuple[float, float]:
    """Median microseconds of a single draw, and the rank correlation of time and size."""
    for _ in range(200):
        draw()
    clock = time.perf_counter_ns
    times, sizes = np.empty(draws), np.empty(draws)
    for i in range(draws):
        start = clock()
        value = draw()
        times[i], sizes[i] = clock() - start, abs(value)
    return float(np.median(times)) / 1000, float(spearmanr(times, sizes).statistic)


def main() -> None:
    """Measure one contestant."""
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    contestant = CONTESTANTS[arguments.name][1]()
    seconds, runs = (0.1, 1) if arguments.quick else (0.5, 5)

    rows: list[dict[str, Any]] = []
    singles: dict[tuple[str, int], tuple[Callable[[], int], list[tuple[float, float]]]] = {}
    for law in LAWS:
        for scale in SCALES:
            many = contestant.many(law, scale)
            if many is not None:
                rows.append({"law": law, "scale": scale, "per_s": rate(many, contestant.batch, seconds)})
        for scale in SINGLE_SCALES:
            one = contestant.one(law, scale)
            if one is not None:
                singles[law, scale] = one, []
    for _ in range(
        runs
    ):  # one after the other, so that a busy minute of the machine does not spoil all runs of one law
        for one, found in singles.values():
            if not found or found[0][0] < 100:
                found.append(timed(one, SINGLE_DRAWS))
    for (law, scale), (_, found) in singles.items():
        correlations = [correlation for _, correlation in found]
        row = {
            "single_us": min(us for us, _ in found),
            "correlation": median(correlations),
            "correlations": correlations,
        }
        rows.append({"law": law, "scale": scale, **row})
    print(json.dumps(rows))


if __name__ == "__main__":
    main()

"""The last iterate beside composition: the published setting of shifted interpolation, and the solver's speed.

    python benchmarks/last_iterate.py [--repeats 5]

Regularised logistic regression on 60,000 records in 40 fixed batches of 1,500, taken in turn: a step size of 0.05 and a
regulariser of 0.002 or 0.004, so that steps contract by 0.9999 or 0.9998; gradient sensitivity / (batch noise) = 2/3;
delta = 1e-5, as in the tables on regularised logistic regression of [Bok et al. 2024]. Beside the cost of the last
iterate stand its closed form as published, the best Rényi bound before it, composition of the same fixed batches, and
Poisson batches of the same mean size with all states released. The published closed form and the Rényi bound are
evaluated here, in double precision. Prints two tables and writes benchmarks/results/last_iterate.json.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import time
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet import Cost, last_iterate
from discreet.accounting.iteration.program import solve

if TYPE_CHECKING:
    from collections.abc import Callable

RESULT = Path(__file__).resolve().parent / "results" / "last_iterate.json"
RECORDS, BATCH, STEP, RATIO, DELTA = 60_000, 1_500, 0.05, 2 / 3, 1e-5
BATCHES = RECORDS // BATCH
EPOCHS = (50, 100, 200)
REGULARISERS = (0.002, 0.004)


def published(c: float, epochs: int) -> float:
    """mu of [Bok et al. 2024] for cyclic batches and strongly convex losses."""
    ratio = (1 - c ** (BATCHES * (epochs - 1))) / (1 + c ** (BATCHES * (epochs - 1)))
    return RATIO * math.sqrt(1 + c ** (2 * BATCHES - 2) * (1 - c * c) / (1 - c**BATCHES) ** 2 * ratio)


def renyi_before(c: float, epochs: int) -> float:
    """rho of the Rényi bound that the paper compares with, as in its published code."""
    part = c ** (BATCHES - 2) * (1 - c * c) / (1 - c**BATCHES) ** 2 * (1 - c ** (BATCHES * (epochs - 1)))
    return RATIO**2 / 2 * (1 + part)


def rows() -> list[dict[str, Any]]:
    found = []
    for regulariser in REGULARISERS:
        for epochs in EPOCHS:
            start = time.process_time()
            cost = last_iterate.cyclic(
                n=RECORDS,
                batch=BATCH,
                epochs=epochs,
                lipschitz=1.0,
                sensitivity=1.0,
                smoothness=1.0,
                strong_convexity=regulariser,
                step=STEP,
                noise=1 / (RATIO * BATCH),
            )
            epsilon = cost.epsilon(DELTA)
            spent = time.process_time() - start
            closed = published(1 - STEP * regulariser, epochs)
            found.append(
                {
                    "lambda": regulariser,
                    "epochs": epochs,
                    "mu": cost.gdp(),
                    "epsilon": epsilon,
                    "published_closed_form": Cost.gaussian_dp(closed).epsilon(DELTA),
                    "renyi": Cost.concentrated(renyi_before(1 - STEP * regulariser, epochs)).epsilon(DELTA),
                    "composition": (epochs * Cost.gaussian_dp(RATIO)).epsilon(DELTA),
                    "poisson_batches": (epochs * BATCHES * Cost.gaussian(1 / RATIO).sampled(1 / BATCHES)).epsilon(
                        DELTA
                    ),
                    "milliseconds": 1000 * spent,
                }
            )
    return found


def timed(work: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return median(times)


def speeds(repeats: int) -> list[dict[str, Any]]:
    steps = 10**6
    ones = np.ones(steps)
    draw = np.random.default_rng(1)
    factor, noise = 1 - 1e-5 * draw.random(steps), 0.5 + draw.random(steps)
    push = draw.random(steps) * (draw.random(steps) < 0.1)
    touches = np.flatnonzero(push) + 1
    members = np.concatenate([draw.permutation(10**6) + 1 for _ in range(2)]).reshape(-1, 100)
    people = last_iterate.pnsgd_by_position(n=10**6, lipschitz=1, smoothness=1, step=1, noise=4)
    work: dict[str, Callable[[], object]] = {
        "program, 10^6 equal steps, all with the record": lambda: solve(0.9999 * ones, ones, ones),
        "program, 10^6 random steps, a tenth with the record": lambda: solve(factor, noise, push),
        "program, the same on a bounded set": lambda: solve(factor, noise, push, diameter=50.0),
        "cost of 10^6 different steps, and its epsilon": lambda: last_iterate.process(
            steps=steps, step=noise, noise=noise, lipschitz=1, smoothness=1, strong_convexity=1e-5, touches=touches
        ).epsilon(1e-6),
        "epsilon of 10^6 people": lambda: people.epsilon(1e-6),
        "mu of 10^6 people, 100 passes, bounded set": lambda: last_iterate.multi_epoch_pnsgd_by_position(
            n=10**6, epochs=100, lipschitz=1, smoothness=1, step=1, noise=4, diameter=5.0
        ),
        "mu of 10^6 people, 2 passes shuffled in public": lambda: last_iterate.process_by_person(
            members=members, batch=100, lipschitz=1, smoothness=1, step=1, noise=0.1
        ),
    }
    return [{"what": name, "seconds": timed(call, repeats)} for name, call in work.items()]


def installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "source"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    table, clock = rows(), speeds(repeats)
    print("lambda  epochs  last iterate  closed form  Rényi before  composition  Poisson, released   mu      ms")
    for row in table:
        print(
            f"{row['lambda']:<6}  {row['epochs']:>6}  {row['epsilon']:>12.4f}  {row['published_closed_form']:>11.4f}  "
            f"{row['renyi']:>12.4f}  {row['composition']:>11.4f}  {row['poisson_batches']:>17.4f}  {row['mu']:>6.4f}  "
            f"{row['milliseconds']:>5.1f}"
        )
    print()
    for row in clock:
        print(f"{row['what']:<52} {row['seconds']:.2f} s of CPU")
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(
        json.dumps(
            {
                "when": datetime.now(UTC).isoformat(timespec="seconds"),
                "machine": platform.machine(),
                "python": platform.python_version(),
                "versions": {name: installed(name) for name in ("discreet", "numpy", "scipy")},
                "delta": DELTA,
                "table": table,
                "speed": clock,
            },
            indent=1,
        ),
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()

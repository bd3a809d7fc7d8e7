"""Which penalty for noisy sums of products: ours, AdaSSP's with its eigenvalue bought, or read off for nothing.

    python benchmarks/least_squares_penalty.py [--repeats 20]

All three get the same goal (delta = 1e-5, add-remove) and the same bounds. [Wang 2018] adds one ridge to all
directions, so large that the noisy matrix is safe, less the smallest eigenvalue, which is bought with a third of the
budget. "read off" takes it from the noisy matrix instead, less a bound of the noise, and halves the budget.
Diamonds: R^2 on held-out rows. Synthetic: 10 columns whose variances fall from 1 to 1e-4, all of which matter alike;
the excess of the mean squared error over least squares, relative to that of zero weights. Prints one table and writes
benchmarks/results/least_squares_penalty.json.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from datasets import diamonds

from discreet.learning import Facts, Goal, Problem, Squared
from discreet.learning.convex import SufficientStatistics
from discreet.learning.convex.moments import SecondMoment, SlopeSum
from discreet.mechanisms import Gaussian

if TYPE_CHECKING:
    from collections.abc import Callable

RESULT = Path(__file__).parent / "results" / "least_squares_penalty.json"
DELTA, RISK = 1e-5, 0.05
"""AdaSSP holds with probability 1 - RISK."""


def bound_of_noise(matrix: SecondMoment) -> float:
    """What the noise's eigenvalues stay below with probability 1 - RISK, as in [Wang 2018]."""
    d = matrix.features
    return matrix.deviations[0] * math.sqrt(d * math.log(2 * d * d / RISK))


def ours(problem: Problem, goal: Goal) -> np.ndarray:
    return SufficientStatistics().plan(problem.facts, goal).run(problem).weights


def adassp(problem: Problem, goal: Goal, *, bought: bool) -> np.ndarray:
    facts = problem.facts
    shares = goal.divided(1 / 3, 1 / 3, 1 / 3) if bought else goal.divided(0.5, 0.5)
    moment = SecondMoment(facts.lattice, facts.features, shares[0])
    products = SlopeSum(facts.lattice, facts.features, facts.loss.most, shares[1])
    matrix = moment.release(problem.rows)
    vector = products.release(problem.rows, problem.targets)
    safe = bound_of_noise(moment)
    if bought:
        noise = Gaussian(noise_multiplier=1 / shares[2].gaussian, sensitivity=facts.row_norm**2)
        table = problem.rows.values()
        least = float(np.linalg.eigvalsh(table.T @ table)[0])
        least = float(noise.release(least)) - math.sqrt(noise.variance * 2 * math.log(1 / RISK))
    else:
        least = float(np.linalg.eigvalsh(matrix)[0]) - safe
    ridge = max(0.0, safe - max(0.0, least))
    return np.linalg.solve(matrix + ridge * np.eye(facts.features), vector)


METHODS: dict[str, Callable[[Problem, Goal], np.ndarray]] = {
    "ours": ours,
    "AdaSSP": lambda problem, goal: adassp(problem, goal, bought=True),
    "AdaSSP, read off": lambda problem, goal: adassp(problem, goal, bought=False),
}


def on_diamonds() -> tuple[Problem, Callable[[np.ndarray], float]]:
    data = diamonds()
    low, high = math.log(326.0), math.log(18_823.0)

    def scaled(targets: np.ndarray) -> np.ndarray:
        prices = 326.0 + (targets + 1) / 2 * (18_823.0 - 326.0)
        return (np.log(prices) - (low + high) / 2) / ((high - low) / 2)

    def wide(rows: np.ndarray) -> np.ndarray:
        return np.column_stack([rows, np.ones(len(rows))])

    facts = Facts(loss=Squared(1.0), features=data.train.shape[1] + 1, row_norm=math.hypot(data.row_norm, 1.0))
    truth, test = scaled(data.test_targets), wide(data.test)
    spread = float(np.var(truth))
    return Problem.of(
        facts, wide(data.train), scaled(data.train_targets)
    ), lambda w: 1 - float(np.mean((truth - test @ w) ** 2)) / spread


def ill_conditioned(n: int) -> tuple[Problem, Callable[[np.ndarray], float]]:
    rng = np.random.default_rng(n)
    d = 10
    turn = np.linalg.qr(rng.standard_normal((d, d)))[0]
    deviations = np.geomspace(1.0, 1e-2, d)
    rows = rng.standard_normal((n, d)) * deviations @ turn.T / (2 * np.linalg.norm(deviations))
    rows /= np.maximum(1.0, np.linalg.norm(rows, axis=1))[:, None]
    targets = rows @ turn @ (1 / deviations) * 0.15
    targets = np.clip(targets + 0.1 * rng.standard_normal(n), -1, 1)
    facts = Facts(loss=Squared(1.0), features=d, row_norm=1.0)
    problem = Problem.of(facts, rows, targets)
    best = np.linalg.lstsq(rows, targets, rcond=None)[0]
    return problem, lambda w: float(np.mean((rows @ (w - best)) ** 2) / np.mean((rows @ best) ** 2))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20)
    repeats = parser.parse_args().repeats
    tasks = {
        "diamonds, R^2": on_diamonds(),
        **{f"synthetic n={n}": ill_conditioned(n) for n in (2000, 20_000, 200_000)},
    }
    print(f"{'data':<22} {'epsilon':>7} " + " ".join(f"{name:>24}" for name in METHODS))
    results = []
    for name, (problem, score) in tasks.items():
        for epsilon in (0.1, 0.3, 1.0, 3.0):
            goal = Goal(epsilon=epsilon, delta=DELTA)
            scores = {method: [score(fit(problem, goal)) for _ in range(repeats)] for method, fit in METHODS.items()}
            error = {method: float(np.std(found)) / math.sqrt(repeats) for method, found in scores.items()}
            cells = " ".join(f"{np.mean(found):>13.4f} ± {error[m]:<8.2g}" for m, found in scores.items())
            print(f"{name:<22} {epsilon:>7g} {cells}", flush=True)
            results.append({"data": name, "epsilon": epsilon, "scores": scores})
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(
        json.dumps(
            {
                "when": datetime.now(UTC).isoformat(timespec="seconds"),
                "machine": platform.platform(),
                "versions": {package: version(package) for package in ("discreet", "numpy")},
                "repeats": repeats,
                "results": results,
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    main()

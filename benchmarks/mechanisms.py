"""What noise of equal cost adds: staircase against Laplace, bounded and optimal noise against Gaussian and Laplace.

    python benchmarks/mechanisms.py [--quick]

Prints three tables and writes benchmarks/results/mechanisms.json. Costs are certified by the package's accountant at
delta = 1e-6; variances and errors are exact.
"""

from __future__ import annotations

import argparse
import json
import math
import warnings
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from discreet import Cost, calibrate
from discreet.errors import WideBracket
from discreet.mechanisms import BoundedNoise, DiscreteLaplace, Gaussian, Laplace, OptimalNoise, Staircase
from discreet.mechanisms.staircase import least_squares_gamma

RESULT = Path(__file__).parent / "results" / "mechanisms.json"
DELTA = 1e-6


def staircase(epsilon: float) -> dict[str, float]:
    """Errors of one epsilon-DP number of sensitivity 1."""
    laplace = Laplace(epsilon=epsilon, sensitivity=1)
    return {
        "epsilon": epsilon,
        "laplace_absolute": laplace.expected_absolute_error,
        "staircase_absolute": Staircase(epsilon=epsilon, sensitivity=1).expected_absolute_error,
        "laplace_variance": laplace.variance,
        "staircase_variance": Staircase(epsilon=epsilon, sensitivity=1, gamma=least_squares_gamma(epsilon)).variance,
    }


def bounded(answers: int) -> dict[str, float]:
    """Errors of many answers, each of sensitivity 1, at epsilon = 1."""
    gaussian = Gaussian(epsilon=1, delta=DELTA, linf_sensitivity=1, dimension=answers)
    noise = BoundedNoise(epsilon=1, delta=DELTA, sensitivity=1, coordinates=answers)
    return {
        "answers": answers,
        "bounded_always": noise.error(),
        "bounded_deviation": math.sqrt(noise.variance),
        "gaussian_95": gaussian.error(0.95, simultaneous=True),
        "gaussian_1e-6": gaussian.error(1 - 1e-6, simultaneous=True),
        "gaussian_deviation": math.sqrt(gaussian.variance),
    }


def optimal(counts: int, epsilon: float) -> dict[str, float]:
    """Variances of noise on one person's counts."""
    noise = OptimalNoise(epsilon=epsilon, delta=DELTA, coordinates=counts)
    gaussian = calibrate(lambda s: counts * Cost.gaussian(s), epsilon=epsilon, delta=DELTA) ** 2
    multiplier = calibrate(lambda s: counts * Cost.discrete_laplace(s), epsilon=epsilon, delta=DELTA)
    laplace = DiscreteLaplace(noise_multiplier=multiplier).variance
    return {
        "counts": counts,
        "epsilon": epsilon,
        "optimal_variance": noise.variance,
        "gaussian_variance": gaussian,
        "laplace_variance": laplace,
        "saved": 1 - noise.variance / min(gaussian, laplace),
    }


def show(title: str, rows: list[dict[str, float]]) -> None:
    print(f"\n{title}")
    print("".join(f"{name:>20}" for name in rows[0]))
    for row in rows:
        print("".join(f"{value:>20.5g}" for value in row.values()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one row a table")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore", WideBracket)  # brackets of atoms are a little wider than promised, and valid
    epsilons = [4.0] if quick else [0.5, 1.0, 2.0, 4.0, 8.0]
    answers = [1] if quick else [10, 100]
    settings = [(30, 30.0)] if quick else [(10, 15.0), (30, 15.0), (30, 30.0), (100, 100.0), (1000, 1000.0)]
    tables = {
        "staircase": [staircase(epsilon) for epsilon in epsilons],
        "bounded": [bounded(number) for number in answers],
        "optimal": [optimal(number, epsilon) for number, epsilon in settings],
    }
    show("one number of sensitivity 1, pure epsilon", tables["staircase"])
    show("many answers of sensitivity 1, epsilon = 1, delta = 1e-6", tables["bounded"])
    show("many counts of sensitivity 1, delta = 1e-6", tables["optimal"])
    RESULT.parent.mkdir(exist_ok=True)
    made = {"date": datetime.now(UTC).isoformat(timespec="seconds"), "discreet": version("discreet"), "delta": DELTA}
    RESULT.write_text(json.dumps(made | tables, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

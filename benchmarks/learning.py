"""Private classification on real data: every solver of this package beside scikit-learn and diffprivlib, in one run.

    python benchmarks/learning.py [--data adult credit ...] [--epsilon 0.1 0.5 1 2] [--seeds 10] [--ours-only] [--quick]

Accuracy on rows that were held out (the official split of Adult, a fixed one elsewhere), mean and standard error over
fits with fresh noise; CPU seconds of one fit, median. One setting for all data sets and all epsilon: that of the
estimator's defaults. Public are the bounds of the columns, the bound on the norm of a row that follows from the way
columns are encoded, and the classes (`datasets.py`); nothing else is known, and nothing is taken from the data unpaid.
delta is 1e-5, or 0 where it says "pure"; neighbours differ by the presence of a record, for diffprivlib by its values.

The defaults of the solvers were chosen by accuracies on the held-out rows of adult, credit and digits, without paying:
figures on these flatter them (digits at epsilon = 1: .90 here, .88 on other folds). See docs/benchmarks.md.

`exact`: CPU time of a fit by exact sums and exact noise, and of the same fit in floats with NumPy's noise.

Prints one table for each data set, writes benchmarks/results/learning.json, where runs on several data sets come
together, and exits with 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from datasets import ALL, DataSet

from discreet.learning import Facts, Goal, LinearSVC, Logistic, LogisticRegression, Problem
from discreet.learning.convex import PreconditionedDescent

RESULT = Path(__file__).resolve().parent / "results" / "learning.json"
DISTRIBUTIONS = ("discreet", "scikit-learn", "diffprivlib", "numpy", "scipy")
DELTA = 1e-5
BARS = {
    ("adult", "auto", 0.1): 0.830,
    ("adult", "auto", 0.5): 0.844,
    ("adult", "auto", 1.0): 0.846,
    ("adult", "auto, pure", 0.1): 0.708,
    ("adult", "auto, pure", 0.5): 0.711,
    ("adult", "auto, pure", 1.0): 0.815,
    ("adult", "auto, pure", 2.0): 0.840,
    ("credit", "auto", 0.5): 0.80,
    ("digits", "auto", 1.0): 0.88,
    ("digits", "auto, hinge", 1.0): 0.85,
}
SLOWEST, SLOWEST_EXACT = 2.0, 2.0
"""CPU time of a fit on Adult in units of scikit-learn's; of an exact fit in units of the same in floats."""

Fit = Callable[[DataSet, float], Any]


def ours(solver: str, delta: float = DELTA, model: Any = LogisticRegression) -> Fit:
    """This package's estimator; what is not stated is not known."""

    def fit(data: DataSet, epsilon: float) -> Any:
        return model(
            epsilon=epsilon,
            delta=delta,
            bounds=list(zip(*data.bounds, strict=True)),
            row_norm=data.row_norm,
            classes=list(data.classes or ()),
            n_records="private" if solver == "descent" else None,
            solver=solver,
        ).fit(data.train, data.train_targets)

    return fit


def plain(data: DataSet, epsilon: float) -> Any:
    """scikit-learn, without privacy."""
    from sklearn.linear_model import LogisticRegression as Plain

    del epsilon
    return Plain(max_iter=1000).fit(data.train, data.train_targets)


def peer(data: DataSet, epsilon: float) -> Any:
    """diffprivlib, which is told the norm of a row."""
    from diffprivlib.models import LogisticRegression as Peer

    return Peer(epsilon=epsilon, data_norm=data.row_norm, max_iter=1000).fit(data.train, data.train_targets)


OURS: dict[str, Fit] = {
    "auto": ours("auto"),
    "auto, hinge": ours("auto", model=LinearSVC),
    "objective": ours("objective"),
    "descent": ours("descent"),
    "output": ours("output"),
    "auto, pure": ours("auto", 0.0),
    "output, pure": ours("output", 0.0),
}


def measured(fit: Fit, data: DataSet, epsilon: float, *, seeds: int) -> dict[str, float]:
    """Accuracy and CPU time over fits with fresh noise."""
    scores, seconds = [], []
    for _ in range(seeds):
        start = time.process_time()
        model = fit(data, epsilon)
        seconds.append(time.process_time() - start)
        scores.append(float(model.score(data.test, data.test_targets)))
    error = float(np.std(scores, ddof=1) / seeds**0.5) if seeds > 1 else 0.0
    return {"accuracy": float(np.mean(scores)), "error": error, "seconds": median(seconds)}


def in_floats(data: DataSet, plan: Any, rng: np.random.Generator) -> np.ndarray:
    """What `plan.run` does, in floats: no lattice, no exact sums, NumPy's noise. Not private."""
    rows = np.hstack([data.train, np.ones((len(data.train), 1))])
    rows *= np.minimum(1, plan.facts.row_norm / np.linalg.norm(rows, axis=1))[:, None]
    noise, loss = plan.noise, plan.facts.loss
    wobble = rng.normal(0, noise["products"], (rows.shape[1], rows.shape[1]))
    inverse = plan.preconditioner(rows.T @ rows + (wobble + wobble.T) / 2**0.5)
    weights, total = np.zeros(plan.facts.shape), np.zeros(plan.facts.shape)
    for step in range(plan.steps):
        gradient = rows.T @ loss.slopes(rows @ weights, data.train_targets)
        weights = weights - inverse @ (gradient + rng.normal(0, noise["gradient"], weights.shape))
        total += weights * (2 * (step + 1) > plan.steps)
    return total


def slowdown(data: DataSet, *, repeats: int) -> dict[str, float]:
    """CPU seconds of exact and of ordinary arithmetic, taken in turns, from the table to the weights."""
    facts = Facts(loss=Logistic(), features=data.train.shape[1] + 1, row_norm=(data.row_norm**2 + 1) ** 0.5)
    plan = PreconditionedDescent().plan(facts, Goal(epsilon=1.0, delta=DELTA))
    rng, taken = np.random.default_rng(), {"exact": [], "floats": []}
    for _ in range(repeats + 1):
        start = time.process_time()
        rows = np.hstack([data.train, np.ones((len(data.train), 1))])
        plan.run(Problem.of(facts, rows, data.train_targets))
        middle = time.process_time()
        in_floats(data, plan, rng)
        taken["exact"].append(middle - start)
        taken["floats"].append(time.process_time() - middle)
    exact, floats = (median(taken[name][1:]) for name in ("exact", "floats"))
    return {"exact": exact, "floats": floats, "ratio": exact / floats}


def versions() -> dict[str, str]:
    found = {}
    for name in DISTRIBUTIONS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["adult", "credit", "digits", "breast cancer"], choices=list(ALL))
    parser.add_argument("--epsilon", nargs="+", type=float, default=[0.1, 0.5, 1.0, 2.0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--ours-only", action="store_true")
    parser.add_argument("--quick", action="store_true", help="three seeds")
    asked = parser.parse_args()
    seeds = 3 if asked.quick else asked.seeds
    warnings.simplefilter("ignore")

    contestants = dict(OURS)
    if not asked.ours_only:
        try:
            import_module("diffprivlib.models")
            contestants["diffprivlib, pure"] = peer
        except ImportError as reason:
            print(f"diffprivlib is left out: {reason}")
    rows: list[dict[str, Any]] = []
    missed: list[str] = []
    for name in asked.data:
        try:
            data = ALL[name]()
        except FileNotFoundError as reason:
            print(f"{name} is left out: {reason}")
            missed.append(f"{name} is not here")
            continue
        reference = measured(plain, data, 0.0, seeds=3)
        rows.append({"data": name, "solver": "scikit-learn, not private", "epsilon": None, **reference})
        print(f"\n{name}: {len(data.train)} rows, {len(data.columns)} columns; not private {reference['accuracy']:.4f}")
        print(f"{'accuracy at epsilon =':22}" + "".join(f"{epsilon:>17g}" for epsilon in asked.epsilon) + "   time")
        for title, fit in contestants.items():
            cells = []
            for epsilon in asked.epsilon:
                result = measured(fit, data, epsilon, seeds=seeds)
                ratio = result["seconds"] / reference["seconds"]
                rows.append({"data": name, "solver": title, "epsilon": epsilon, **result, "ratio": ratio})
                cells.append(f"{result['accuracy']:8.4f} ± {result['error']:.4f}")
                bar = BARS.get((name, title, epsilon))
                if bar is not None and result["accuracy"] < bar:
                    missed.append(f"{name}, {title}, epsilon {epsilon:g}: {result['accuracy']:.4f} < {bar}")
            print(f"{title:22}" + "".join(f"{cell:>17}" for cell in cells) + f"   {ratio:.2f}x", flush=True)
            if name == "adult" and title == "auto" and ratio > SLOWEST:
                missed.append(f"a fit takes {ratio:.2f} times as long as scikit-learn's")
    speed = slowdown(ALL["adult"](), repeats=seeds) if "adult" in asked.data else None
    if speed:
        print(f"\nexact sums and noise: {speed['exact']:.3f} s, floats: {speed['floats']:.3f} s, {speed['ratio']:.2f}x")
        if speed["ratio"] > SLOWEST_EXACT:
            missed.append(f"exactness costs a factor of {speed['ratio']:.2f}")
    RESULT.parent.mkdir(exist_ok=True)
    earlier = json.loads(RESULT.read_text()) if RESULT.exists() else {"rows": [], "exact": None}
    rows = [row for row in earlier["rows"] if row["data"] not in asked.data] + rows
    RESULT.write_text(
        json.dumps(
            {
                "when": datetime.now(UTC).isoformat(timespec="seconds"),
                "machine": platform.platform(),
                "versions": versions(),
                "delta": DELTA,
                "seeds": seeds,
                "rows": rows,
                "exact": speed or earlier["exact"],
            },
            indent=1,
        )
    )
    print("\n".join(f"MISSED {line}" for line in missed) or "all bars met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

"""Hidden iterates beside their rivals: excess loss against the number of records, and the speed of one pass.

    python benchmarks/pnsgd.py [--repeats 10] [--quick]

Table 1 of [Feldman et al. 2018] brought to life. Rows are Gaussian, shortened to norm 1; labels follow a logistic
model, so that the best weights are known; the excess is the mean of loss(w) - loss(best) on 100 000 fresh records.
epsilon = 1, delta = 1e-6, one record replaced, one pass for everybody but gradient descent. Noisy SGD accounts for
every state and releases their average; for k tasks its noise grows by sqrt(k). The second table is the time of one pass
over 10^6 records of 100 features with exact noise and with NumPy's, in the same run. Prints tables, draws
docs/assets/pnsgd_excess.png and pnsgd_people.png, and writes benchmarks/results/pnsgd.json.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import time
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.learning import Facts, Goal, Logistic, Problem
from discreet.learning.convex import PNSGD, NoisyGradientDescent, OutputPerturbation, SkipPNSGD, StopPNSGD, hidden

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Reals = NDArray[np.float64]

ROOT = Path(__file__).resolve().parent
RESULT = ROOT / "results" / "pnsgd.json"
ASSETS = ROOT.parent / "docs" / "assets"
EPSILON, DELTA, FEATURES, RADIUS, TASKS = 1.0, 1e-6, 20, 5.0, 20
GOAL = Goal(epsilon=EPSILON, delta=DELTA, adjacency="replace-one")
PUBLIC = 0.05
"""The share of records that are public, where some are."""


def drawn(n: int, truth: Reals, rng: np.random.Generator) -> tuple[Reals, Reals]:
    rows = rng.standard_normal((n, FEATURES)) / math.sqrt(FEATURES)
    rows /= np.maximum(1.0, np.linalg.norm(rows, axis=1))[:, None]
    return rows, (rng.random(n) < 1 / (1 + np.exp(-rows @ truth))).astype(float)


def facts_of(n: int, alpha: float = 0.0) -> Facts:
    return Facts(loss=Logistic(), features=FEATURES, row_norm=1.0, records=n, alpha=alpha, adjacency=GOAL.adjacency)


def noisy_sgd(rows: Reals, labels: Reals, rng: np.random.Generator, *, tasks: int) -> Reals:
    """One pass, every state accounted for, the average released; float noise, as no rival's is exact."""
    n = len(rows)
    ratio = GOAL.gaussian / math.sqrt(tasks)
    batch = max(1, round(2 * math.sqrt(FEATURES) / ratio))
    sigma, steps = 2 / (batch * ratio), n // batch
    step = min(4.0, RADIUS / (math.hypot(1, sigma * math.sqrt(FEATURES)) * math.sqrt(max(1, steps))))
    w, total = np.zeros(FEATURES), np.zeros(FEATURES)
    for t in range(steps):
        part = slice(t * batch, (t + 1) * batch)
        slopes = 1 / (1 + np.exp(-rows[part] @ w)) - labels[part]
        w = w - step * (rows[part].T @ slopes / batch + sigma * rng.standard_normal(FEATURES))
        w *= min(1.0, RADIUS / max(1e-300, float(np.linalg.norm(w))))
        total += w
    return total / max(1, steps)


def public_alone(rows: Reals, labels: Reals) -> Reals:
    """The public records without the others: ridge regression by Newton's method, no noise."""
    public = max(1, round(PUBLIC * len(rows)))
    rows, labels = rows[-public:], labels[-public:]
    w = np.zeros(FEATURES)
    for _ in range(30):
        chance = 1 / (1 + np.exp(-rows @ w))
        curvature = (rows.T * (chance * (1 - chance))) @ rows + np.eye(FEATURES)
        w = w - np.linalg.solve(curvature, rows.T @ (chance - labels) + w)
    return w


Method = "Callable[[Reals, Reals, np.random.Generator], Reals]"


def methods(n: int) -> dict[str, Method]:
    public = max(1, round(PUBLIC * n))
    facts = facts_of(n)
    plans = {
        "PNSGD": PNSGD(batch=None, radius=RADIUS).plan(facts, GOAL),
        "Skip-PNSGD": SkipPNSGD(batch=None, radius=RADIUS).plan(facts, GOAL),
        f"PNSGD, {PUBLIC:.0%} public": PNSGD(batch=None, radius=RADIUS, public=public).plan(facts, GOAL),
        f"Skip-PNSGD, {PUBLIC:.0%} public": SkipPNSGD(batch=None, radius=RADIUS, public=public).plan(facts, GOAL),
        "noisy gradient descent": NoisyGradientDescent(radius=RADIUS).plan(facts, GOAL),
    }
    found: dict[str, Method] = {
        "noisy SGD, composition": lambda x, y, rng: noisy_sgd(x, y, rng, tasks=1),
        f"noisy SGD, {TASKS} tasks": lambda x, y, rng: noisy_sgd(x, y, rng, tasks=TASKS),
        f"the {PUBLIC:.0%} public alone": lambda x, y, rng: public_alone(x, y),  # noqa: ARG005
    }
    # the ridge at which its bias and the effect of its noise on a smooth loss are equal
    curved = facts_of(n, alpha=(n * FEATURES / (GOAL.gaussian * RADIUS) ** 2) ** (1 / 3))
    output = OutputPerturbation(radius=RADIUS).plan(curved, GOAL)
    found["output perturbation"] = lambda x, y, rng: output.run(Problem.of(curved, x, y)).weights  # noqa: ARG005
    for name, plan in plans.items():
        found[name] = lambda x, y, rng, plan=plan: plan.run(Problem.of(facts, x, y)).weights  # noqa: ARG005
    tasks = StopPNSGD(batch=None, radius=RADIUS, tasks=TASKS).plan(facts, GOAL)
    one = replace(tasks, tasks=1)  # each of the tasks is as good as the others
    found[f"Stop-PNSGD, {TASKS} tasks"] = lambda x, y, rng: one.run(Problem.of(facts, x, y)).weights  # noqa: ARG005
    return found


def excesses(sizes: list[int], repeats: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(2)
    truth = rng.standard_normal(FEATURES)
    truth *= 4 / np.linalg.norm(truth)
    test, answers = drawn(100_000, truth, rng)
    loss = Logistic()
    best = loss.values(test @ truth, answers)
    table = []
    for n in sizes:
        for name, method in methods(n).items():
            found = []
            for _ in range(repeats):
                rows, labels = drawn(n, truth, rng)
                found.append(float(np.mean(loss.values(test @ method(rows, labels, rng), answers) - best)))
            table.append(
                {"n": n, "method": name, "excess": float(np.mean(found)), "error": float(np.std(found) / repeats**0.5)}
            )
            print(f"{n:>8}  {name:<28} {table[-1]['excess']:.4f} +- {table[-1]['error']:.4f}", flush=True)
    return table


def speeds(n: int, features: int) -> dict[str, float]:
    """CPU seconds of one pass: with exact noise, with NumPy's normal, and without noise; the first compiles."""
    rng = np.random.default_rng(3)
    facts = Facts(loss=Logistic(), features=features, row_norm=1.0, records=n, adjacency=GOAL.adjacency)
    plan = PNSGD().plan(facts, GOAL)
    problem = Problem.of(facts, rng.standard_normal((n, features)) / math.sqrt(features), rng.integers(0, 2, n))
    exact = hidden.rounded_gaussian

    def insecure(scale: float, size: tuple[int, int], **_: object) -> NDArray[np.int64]:
        return np.rint(scale * rng.standard_normal(size)).astype(np.int64)

    def nothing(_: float, size: tuple[int, int], **__: object) -> NDArray[np.int64]:
        return np.zeros(size, dtype=np.int64)

    others = {"exact noise": exact, "NumPy's noise": insecure, "no noise": nothing}
    times: dict[str, list[float]] = {name: [] for name in others}
    plan.run(problem)
    for _ in range(5):
        for name, noise in others.items():
            hidden.rounded_gaussian = noise  # type: ignore[assignment]
            start = time.process_time()
            plan.run(problem)
            times[name].append(time.process_time() - start)
    hidden.rounded_gaussian = exact
    return {name: median(values) for name, values in times.items()}


def draw(table: list[dict[str, Any]]) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(7.5, 4.6), layout="constrained")
    names = list(dict.fromkeys(row["method"] for row in table))
    for name in names:
        rows = [row for row in table if row["method"] == name]
        style = "--" if "tasks" in name else "-"
        ax.errorbar(
            [row["n"] for row in rows], [row["excess"] for row in rows], [row["error"] for row in rows],
            label=name, linestyle=style, marker="o", markersize=3, capsize=2,
        )  # fmt: skip
    ax.set(xscale="log", yscale="log", xlabel="records", ylabel="excess loss", title="epsilon = 1, 20 features")
    ax.legend(fontsize=8)
    figure.savefig(ASSETS / "pnsgd_excess.png", dpi=110)
    plt.close(figure)

    figure, ax = plt.subplots(figsize=(7.5, 4.0), layout="constrained")
    facts = facts_of(10_000)
    for name, solver in {
        "PNSGD": PNSGD(),
        "PNSGD, 500 public records at the end": PNSGD(public=500),
        "Skip-PNSGD, 500 public": SkipPNSGD(public=500),
        "Stop-PNSGD": StopPNSGD(),
    }.items():
        epsilon = solver.plan(facts, GOAL).personal_costs.epsilon(DELTA)
        ax.plot(np.arange(1, len(epsilon) + 1), epsilon, label=name)
    ax.set(yscale="log", ylim=(3e-3, 1.5), xlabel="position of the record", ylabel="epsilon at delta = 1e-6")
    ax.legend()
    figure.savefig(ASSETS / "pnsgd_people.png", dpi=110)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--quick", action="store_true", help="few records, no large pass")
    options = parser.parse_args()
    sizes = [1_000, 4_000] if options.quick else [1_000, 3_162, 10_000, 31_623, 100_000, 316_228]
    table = excesses(sizes, options.repeats)
    clock = speeds(20_000, 50) if options.quick else speeds(10**6, 100)
    for name, seconds in clock.items():
        print(f"one pass, {name:<14} {seconds:.2f} s of CPU")
    if options.quick:
        return
    draw(table)
    RESULT.parent.mkdir(exist_ok=True)
    record = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in ("numpy", "numba")},
        "epsilon": EPSILON,
        "delta": DELTA,
        "excess": table,
        "seconds": clock,
    }
    RESULT.write_text(json.dumps(record, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()

"""Amplified costs, measured: samples of every kind and shuffled reports, beside dp-accounting where it offers them.

    python benchmarks/amplification.py [--ours-only] [--repeats 5] [--only NAME]

Every contestant answers every question in a process of its own (CPU seconds; the import is not counted). dp-accounting
runs with its default grid of 1e-4 and with a finer one. "BELOW" marks an answer under our certified lower bound. Prints
one table, writes benchmarks/results/amplification.json, and exits with 1 if that happens.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).resolve().parent
RESULT = HERE / "results" / "amplification.json"
GRIDS = {"dp-accounting 1e-4": 1e-4, "dp-accounting 1e-5": 1e-5}
DELTA = 1e-5


def _ours() -> dict[str, Callable[[], Any]]:
    sys.path.insert(0, str(HERE.parent / "src"))
    from discreet import Cost

    replace = "replace-one"
    return {
        "Gaussian, Poisson": lambda: 1_000 * Cost.gaussian(1.0).sampled(0.01),
        "Gaussian, Poisson, large rate": lambda: 100 * Cost.gaussian(4.0).sampled(0.3),
        "Laplace, Poisson": lambda: 100 * Cost.laplace(1.0).sampled(0.05),
        "Laplace, Poisson, many": lambda: 10_000 * Cost.laplace(2.0).sampled(0.01),
        "randomized response, Poisson": lambda: 100 * Cost.randomized_response(1.0).sampled(0.05),
        "Gaussian, Poisson, replaced": lambda: 1_000 * Cost.gaussian(1.0).sampled(0.01, adjacency=replace),
        "two releases on one sample": lambda: 100 * (Cost.laplace(2.0) + Cost.gaussian(2.0)).sampled(0.05),
        "Gaussian, fixed size": lambda: (
            1_000 * Cost.gaussian(1.0, adjacency=replace).sampled(0.01, scheme="without_replacement")
        ),
        "Gaussian, balls in bins": lambda: 10 * Cost.gaussian(1.0).sampled(0.01, scheme="balls_in_bins"),
        "Rényi curve, Poisson": lambda: 1_000 * Cost.concentrated(0.5).sampled(0.01),
        "10^4 reports of 1, shuffled": lambda: Cost.pure(1.0, adjacency=replace).shuffled(10_000),
        "10^9 reports of 4, shuffled": lambda: Cost.pure(4.0, adjacency=replace).shuffled(10**9),
    }


def _theirs(grid: float) -> dict[str, Callable[[], float]]:
    import dp_accounting
    from dp_accounting.pld import privacy_loss_distribution as pld

    def read(one: Any, steps: int) -> float:
        return float(one.self_compose(steps).get_epsilon_for_delta(DELTA))

    def response() -> float:
        rate, high = 0.05, math.e / (math.e + 1)
        without = {0: math.log(1 - high), 1: math.log(high)}
        mixed = {0: rate * high + (1 - rate) * (1 - high), 1: rate * (1 - high) + (1 - rate) * high}
        one = pld.from_two_probability_mass_functions(
            without, {k: math.log(v) for k, v in mixed.items()}, value_discretization_interval=grid
        )
        return read(one, 100)

    fine: dict[str, Any] = {"value_discretization_interval": grid}
    both = {**fine, "neighboring_relation": dp_accounting.NeighboringRelation.REPLACE_ONE}
    return {
        "Gaussian, Poisson": lambda: read(pld.from_gaussian_mechanism(1.0, sampling_prob=0.01, **fine), 1_000),
        "Gaussian, Poisson, large rate": lambda: read(pld.from_gaussian_mechanism(4.0, sampling_prob=0.3, **fine), 100),
        "Laplace, Poisson": lambda: read(pld.from_laplace_mechanism(1.0, sampling_prob=0.05, **fine), 100),
        "Laplace, Poisson, many": lambda: read(pld.from_laplace_mechanism(2.0, sampling_prob=0.01, **fine), 10_000),
        "randomized response, Poisson": response,
        "Gaussian, Poisson, replaced": lambda: read(
            pld.from_gaussian_mechanism(1.0, sampling_prob=0.01, **both), 1_000
        ),
    }


def child(contestant: str, question: str, repeats: int) -> None:
    """One contestant, one question: prints a line of JSON."""
    offered: dict[str, Callable[[], Any]] = _ours() if contestant == "discreet" else _theirs(GRIDS[contestant])
    if question not in offered:
        print(json.dumps({"failure": "not offered"}))
        return
    if contestant == "discreet":
        from discreet.accounting import evaluate, sampling  # noqa: F401 - imports are not counted
    times, answer = [], None
    for _ in range(repeats):
        start = time.process_time()
        found = offered[question]()
        values = list(found.bounds(delta=DELTA)) if contestant == "discreet" else [found]
        times.append(time.process_time() - start)
        answer = answer or values
        if times[-1] > 2.0:
            break
    # what a first answer costs, tables made for it included, and what a further one costs
    print(json.dumps({"answer": answer, "first_cpu_s": times[0], "median_cpu_s": median(times)}))


def asked(contestant: str, question: str, repeats: int) -> dict[str, Any]:
    command = [sys.executable, "-W", "ignore", __file__, "--child", contestant, question, "--repeats", str(repeats)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        return {"failure": f"exit {done.returncode}", "stderr": done.stderr[-2000:]}
    report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return report


def main() -> None:
    """Ask everybody, print the table, write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours-only", action="store_true", help="leave dp-accounting out")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", default="", help="questions whose name contains this")
    parser.add_argument("--child", nargs=2, metavar=("CONTESTANT", "QUESTION"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(*arguments.child, arguments.repeats)
        return
    others = [] if arguments.ours_only or not _version("dp-accounting") else list(GRIDS)
    rows, wrong = [], False
    print(f"{'question':32}{'contestant':20}{'lower':>12}{'epsilon':>12}{'first ms':>10}{'median ms':>11}  beside ours")
    for question in [name for name in _ours() if arguments.only in name]:
        ours = asked("discreet", question, arguments.repeats)
        for name in ["discreet", *others]:
            report = ours if name == "discreet" else asked(name, question, arguments.repeats)
            rows.append({"question": question, "contestant": name, "delta": DELTA, **report})
            if "answer" not in report:
                if report["failure"] != "not offered" or name == others[0]:
                    print(f"{question:32}{name:20}{report['failure']:>24}")
                continue
            lower, upper = (report["answer"] * 2)[:2] if name != "discreet" else report["answer"]
            note = ""
            if name != "discreet":
                excess, ratio = upper / ours["answer"][1] - 1, report["median_cpu_s"] / ours["median_cpu_s"]
                is_below = upper < ours["answer"][0]
                wrong |= is_below
                note = f"{excess:+.1e}, {ratio:.0f} times the CPU{', BELOW' if is_below else ''}"
            shown = f"{lower:12.7f}" if name == "discreet" else " " * 12
            times = f"{1000 * report['first_cpu_s']:10.0f}{1000 * report['median_cpu_s']:11.1f}"
            print(f"{question:32}{name:20}{shown}{upper:12.7f}{times}  {note}", flush=True)
    RESULT.parent.mkdir(exist_ok=True)
    made = {"python": platform.python_version(), **{d: _version(d) for d in ("dp-accounting", "numpy", "scipy")}}
    RESULT.write_text(json.dumps({"made": made, "rows": rows}, indent=1) + "\n")
    print(f"written to {RESULT.relative_to(HERE.parent)}")
    if wrong:
        sys.exit("an answer that claims to be an upper bound lies below our certified lower bound")


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


if __name__ == "__main__":
    main()

"""Two attacks on noise, run on us and on the peers: low bits of the answers, and the time that an answer takes.

    python benchmarks/attacks.py [--draws 40000] [--calls 8000] [--ours-only]

Prints one table, writes benchmarks/results/attacks.json, and exits with 1 if an attack works on discreet.

- Low bits: `discreet.audit.check` on neighbouring inputs 0 and 1. `P(event)` is a certified lower bound of the
  probability, on one of the inputs, of the most telling event of the low bits, and `on the other` an upper bound of its
  probability on the neighbour. `ε claimed` and `ε shown` are what the library says and what the counts prove.
- Time: Spearman's correlation of the time of a single call with the size of its noise. 0 is silence; with 8000 calls
  chance alone gives up to 0.03.

A library that is not installed is left out, and the table says so.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import sys
import time
import warnings
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet import Cost
from discreet.audit import check
from discreet.mechanisms import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace

if TYPE_CHECKING:
    from collections.abc import Callable

RESULT = Path(__file__).parent / "results" / "attacks.json"
SILENT = 0.05
INTEGER_SCALE = 100.0


@dataclass(frozen=True)
class Contestant:
    """One way to release a number, the cost it claims, and the inputs 0 and 1 as it wants them."""

    library: str
    name: str
    release: Callable[[Any], Any]
    cost: Cost
    inputs: tuple[Any, Any] = (0.0, 1.0)
    releases: Callable[[Any, int], Any] | None = None

    @property
    def ours(self) -> bool:
        return self.library == "discreet"


def ours() -> list[Contestant]:
    made: list[tuple[str, Any, tuple[Any, Any]]] = [
        ("Laplace", Laplace(epsilon=1, sensitivity=1), (0.0, 1.0)),
        ("Gaussian", Gaussian(noise_multiplier=1, sensitivity=1), (0.0, 1.0)),
        ("integer Laplace", DiscreteLaplace(scale=INTEGER_SCALE), (0, 1)),
        ("integer Gaussian", DiscreteGaussian(noise_multiplier=INTEGER_SCALE), (0, 1)),
    ]
    return [Contestant("discreet", name, m.release, m.cost, inputs, m.releases) for name, m, inputs in made]


def textbook() -> list[Contestant]:
    rng = np.random.default_rng()
    return [
        Contestant("NumPy", "Laplace", lambda v: v + rng.laplace(0, 1.0), Cost.laplace(1.0)),
        Contestant("NumPy", "Gaussian", lambda v: v + rng.normal(0, 1.0), Cost.gaussian(1.0)),
        Contestant(
            "NumPy", "Gaussian, sum of four", lambda v: v + float(rng.normal(0, 0.5, 4).sum()), Cost.gaussian(1.0)
        ),
    ]


def diffprivlib() -> list[Contestant]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from diffprivlib import mechanisms as m

    gaussian = m.GaussianAnalytic(epsilon=4.377178, delta=1e-5, sensitivity=1)  # sigma = 1
    steps = m.GaussianDiscrete(epsilon=0.0314, delta=1e-5, sensitivity=1)
    return [
        Contestant("diffprivlib", "Laplace", m.Laplace(epsilon=1, sensitivity=1).randomise, Cost.pure(1.0)),
        Contestant("diffprivlib", "Gaussian", gaussian.randomise, Cost.approximate(4.377178, 1e-5)),
        Contestant("diffprivlib", "Staircase", m.Staircase(epsilon=1, sensitivity=1).randomise, Cost.pure(1.0)),
        Contestant(
            "diffprivlib",
            "integer Laplace",
            m.Geometric(epsilon=1 / INTEGER_SCALE, sensitivity=1).randomise,
            Cost.pure(1 / INTEGER_SCALE),
            (0, 1),
        ),
        Contestant("diffprivlib", "integer Gaussian", steps.randomise, Cost.approximate(0.0314, 1e-5), (0, 1)),
    ]


def opendp() -> list[Contestant]:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    reals = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    whole = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    return [
        Contestant("OpenDP", "Laplace", dp.m.make_laplace(*reals, scale=1.0), Cost.pure(1.0)),
        Contestant("OpenDP", "Gaussian", dp.m.make_gaussian(*reals, scale=1.0), Cost.gaussian(1.0)),
        Contestant(
            "OpenDP",
            "integer Laplace",
            dp.m.make_laplace(*whole, scale=INTEGER_SCALE),
            Cost.pure(1 / INTEGER_SCALE),
            (0, 1),
        ),
        Contestant(
            "OpenDP",
            "integer Gaussian",
            dp.m.make_gaussian(*whole, scale=INTEGER_SCALE),
            Cost.gaussian(INTEGER_SCALE),
            (0, 1),
        ),
    ]


def spearman(left: Any, right: Any) -> float:
    """The correlation of the ranks, ties sharing theirs."""

    def ranks(values: Any) -> Any:
        _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
        return (np.cumsum(counts) - (counts - 1) / 2)[inverse]

    return float(np.corrcoef(ranks(left), ranks(right))[0, 1])


def timing(contestant: Contestant, calls: int) -> tuple[float, float]:
    """Spearman's correlation of time and size of the noise, and the median time in microseconds."""
    zero, release = contestant.inputs[0], contestant.release
    for _ in range(300):
        release(zero)
    times, noise = np.empty(calls, dtype=np.int64), np.empty(calls)
    gc.disable()
    for call in range(calls):
        start = time.perf_counter_ns()
        answer = release(zero)
        times[call] = time.perf_counter_ns() - start
        noise[call] = abs(answer)
    gc.enable()
    return spearman(times, noise), float(np.median(times)) / 1000


def measured(contestant: Contestant, draws: int, calls: int) -> dict[str, Any]:
    report = check(
        release=contestant.release,
        releases=contestant.releases,
        cost=contestant.cost,
        inputs=contestant.inputs,
        draws=draws,
    )
    findings = {finding.check: finding for finding in report.findings}
    bits = findings["low bits"]
    correlation, microseconds = timing(contestant, calls)
    return {
        "library": contestant.library,
        "mechanism": contestant.name,
        "passed": report.passed,
        "epsilon_claimed": report.epsilon_claimed,
        "epsilon_shown": report.epsilon_measured,
        "delta": report.delta,
        "bits": bits.verdict,
        "event": bits.evidence.event if bits.evidence and bits.verdict == "failed" else None,
        "at_least": bits.evidence.at_least if bits.evidence else None,
        "at_most": bits.evidence.at_most if bits.evidence else None,
        "spearman": correlation,
        "microseconds": microseconds,
    }


def show(row: dict[str, Any]) -> str:
    broken = row["bits"] == "failed"
    bits = f"{row['at_least']:>9.3f}{row['at_most']:>14.5f}" if broken else f"{'none':>9}{'':>14}"
    levels = f"{row['epsilon_claimed']:>11.3g}{row['epsilon_shown']:>9.3g}"
    timed = f"{row['spearman']:>11.3f}{row['microseconds']:>9.1f} µs"
    return f"{row['library']:<13}{row['mechanism']:<24}{bits}{levels}{timed}"


def installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=40_000)
    parser.add_argument("--calls", type=int, default=8000)
    parser.add_argument("--ours-only", action="store_true")
    options = parser.parse_args()

    peers: list[Callable[[], list[Contestant]]] = [] if options.ours_only else [textbook, diffprivlib, opendp]
    contestants, skipped = ours(), {}
    for peer in peers:
        try:
            contestants += peer()
        except ImportError as error:
            skipped[peer.__name__] = str(error)

    print(f"{'library':<13}{'mechanism':<24}{'P(event)':>9}{'on the other':>14}{'ε claimed':>11}{'ε shown':>9}", end="")
    print(f"{'Spearman':>11}{'call':>12}")
    rows = []
    for contestant in contestants:
        rows.append(measured(contestant, options.draws, options.calls))
        print(show(rows[-1]), flush=True)
    for name, reason in skipped.items():
        print(f"{name}: left out, {reason}")

    RESULT.parent.mkdir(exist_ok=True)
    versions = {name: installed(name) for name in ("discreet", "numpy", "scipy", "diffprivlib", "opendp")}
    RESULT.write_text(
        json.dumps(
            {
                "benchmark": "attacks",
                "when": datetime.now(UTC).isoformat(timespec="seconds"),
                "parameters": {"draws": options.draws, "calls": options.calls, "limit": SILENT},
                "versions": {"python": platform.python_version(), **versions},
                "machine": {"system": platform.system(), "architecture": platform.machine(), "cores": os.cpu_count()},
                "skipped": skipped,
                "rows": rows,
            },
            indent=2,
        )
        + "\n",
        encoding="utf-8",
    )
    mine = [row for row in rows if row["library"] == "discreet"]
    broken = [row["mechanism"] for row in mine if not row["passed"] or abs(row["spearman"]) > SILENT]
    print(f"discreet: {'BROKEN: ' + ', '.join(broken) if broken else 'no attack works'}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())

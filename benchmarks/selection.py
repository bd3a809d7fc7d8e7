"""Private choices per second: this package beside OpenDP, the same law, the same scores, the same run.

    python benchmarks/selection.py [--ours-only] [--quick] [--seconds 0.5] [--repeats 5]

Every contestant chooses among n candidates with weights e^{score / 2} (Gumbel noise of scale 2), by permute-and-flip
(exponential noise of scale 2), or the ten best. Rates are the median of repeats in CPU seconds of this process. The
quality beside them is the mean distance of the chosen score to the best: equal laws have equal quality, up to the
statistical error that is shown. Prints one table and writes benchmarks/results/selection.json.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from discreet.noise import exponential_choice, noisy_top, permute_and_flip

RESULT = Path(__file__).resolve().parent / "results" / "selection.json"
DISTRIBUTIONS = ("discreet", "opendp", "numpy", "cryptography")
SIZES = (10, 1000, 100_000)
HALF = 0.5
Choose = Callable[[], Any]


def scores_of(n: int) -> np.ndarray:
    """Scores like those of counts of items: a few good ones, many bad ones."""
    return np.round(20 / np.sqrt(np.arange(1, n + 1)) + 3 * np.sin(np.arange(n)), 3)


def ours(scores: np.ndarray) -> dict[str, Choose]:
    """This package's choices."""
    return {
        "exponential mechanism": lambda: exponential_choice(scores, scale=HALF),
        "permute-and-flip": lambda: permute_and_flip(scores, scale=HALF),
        "top 10": lambda: noisy_top(scores, min(10, len(scores)), scale=HALF)[0],
    }


def opendp(scores: np.ndarray) -> dict[str, Choose]:
    """OpenDP's noisy maximum: Gumbel noise under zCDP, exponential noise under pure privacy."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.linf_distance(T=float)
    gumbel = dp.m.make_noisy_max(*space, dp.zero_concentrated_divergence(), 1 / HALF)
    exponential = dp.m.make_noisy_max(*space, dp.max_divergence(), 1 / HALF)
    top = dp.m.make_noisy_top_k(*space, dp.zero_concentrated_divergence(), min(10, len(scores)), 1 / HALF)
    values = scores.tolist()
    return {
        "exponential mechanism": lambda: gumbel(values),
        "permute-and-flip": lambda: exponential(values),
        "top 10": lambda: top(values)[0],
    }


CONTESTANTS = {"discreet": ours, "opendp": opendp}


def measured(choose: Choose, scores: np.ndarray, *, seconds: float, repeats: int) -> dict[str, float]:
    """Choices per CPU second, and how far they stay below the best score on average."""
    best, gaps, rates = scores.max(), [], []
    choose()
    for _ in range(repeats):
        chosen = []
        start = time.process_time()
        while (spent := time.process_time() - start) < seconds:
            chosen.append(choose())
        rates.append(len(chosen) / spent)
        gaps += [float(best - scores[i]) for i in chosen]
    error = float(np.std(gaps) / math.sqrt(len(gaps)))
    return {"per_second": median(rates), "mean_gap": float(np.mean(gaps)), "standard_error": error}


def installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours-only", action="store_true")
    parser.add_argument("--quick", action="store_true", help="short repeats, nothing written")
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    seconds, repeats = (0.05, 3) if options.quick else (options.seconds, options.repeats)
    rows: list[dict[str, Any]] = []
    print(f"{'candidates':>10}  {'law':22} {'contestant':10} {'choices/s':>12} {'mean gap':>10} {'± error':>9}")
    for n in SIZES:
        scores = scores_of(n)
        for law in ours(scores):
            for name, make in CONTESTANTS.items():
                if options.ours_only and name != "discreet":
                    continue
                row = measured(make(scores)[law], scores, seconds=seconds, repeats=repeats)
                rows.append({"candidates": n, "law": law, "contestant": name, **row})
                gap, error = row["mean_gap"], row["standard_error"]
                print(f"{n:10d}  {law:22} {name:10} {row['per_second']:12,.0f} {gap:10.3f} {error:9.3f}")
    if not options.quick:
        report = {
            "when": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": f"{platform.machine()}, {platform.system()}, Python {platform.python_version()}",
            "versions": {name: installed(name) for name in DISTRIBUTIONS},
            "parameters": {"scale of the noise": 1 / HALF, "seconds": seconds, "repeats": repeats},
            "rows": rows,
        }
        RESULT.parent.mkdir(exist_ok=True)
        RESULT.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

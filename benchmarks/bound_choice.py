"""Bounds that are chosen privately, against bounds tuned on the true data: errors by the exact law of choice and noise.

    python benchmarks/bound_choice.py [--draws 8] [--visits visits-1000000.parquet]

One number (a count or a sum) is asked of tables of several kinds. Its error is noise in proportion to the bound, plus
what the bound cuts off. For every bound that may be chosen its probability is computed, not drawn, and the median error
is that of the mixture. The tuned bound is the one of least median error with Laplace noise and all of epsilon: its
choice is not paid for. Prints the quotient of the two for each table and epsilon, a geometric mean over draws of the
table, and how often an interval of 95 % holds: for a first answer, and for those after the third, whose bound is the
median of what three have told and costs nothing. Writes benchmarks/results/bound_choice.json. With --groups the people
have one of so many groups each.
"""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from discreet.query.allocation import Allocation, allocate
from discreet.query.choices import STEPS, bound_of, preference, tolerated, units_above
from discreet.query.laws import LAPLACE, Law, staircase_law
from discreet.query.losses import SURELY, excess, usual
from discreet.query.remembered import Choice
from discreet.query.target import Target

if TYPE_CHECKING:
    from collections.abc import Callable

RESULT = Path(__file__).resolve().parent / "results" / "bound_choice.json"
Sizes = NDArray[np.float64]
BOUNDS = np.array([bound_of(i) for i in range(40 * STEPS)])
EPSILONS = (0.3, 1.0, 3.0)


def tables(stream: np.random.Generator) -> dict[str, Callable[[], Sizes]]:
    """What people have, by kind of table."""
    return {
        "one each, 1000": lambda: np.ones(1000),
        "ten each, 10 000": lambda: np.full(10_000, 10.0),
        "uniform on 1 to 20, 300": lambda: stream.integers(1, 21, 300).astype(float),
        "Poisson, 10 000": lambda: stream.poisson(10, 10_000).astype(float),
        "exponential, 30 000": lambda: np.ceil(stream.exponential(20, 30_000)),
        "lognormal of spread 1/2, 10 000": lambda: np.ceil(20 * stream.lognormal(0, 0.5, 10_000)),
        "lognormal of spread 1, 200": lambda: np.ceil(20 * stream.lognormal(0, 1, 200)),
        "lognormal of spread 1, 10 000": lambda: np.ceil(20 * stream.lognormal(0, 1, 10_000)),
        "Pareto of exponent 3, 10 000": lambda: np.ceil(5 * (1 + stream.pareto(3, 10_000))),
        "Pareto of exponent 2, 10 000": lambda: np.ceil(5 * (1 + stream.pareto(2, 10_000))),
        "Pareto of exponent 1.2, 100 000": lambda: np.ceil(5 * (1 + stream.pareto(1.2, 100_000))),
        "nothing for 99 in 100, 10 000": lambda: np.where(
            stream.random(10_000) < 0.01, stream.integers(1, 20, 10_000), 0
        ).astype(float),
    }


def lost(sizes: Sizes, bounds: Sizes) -> Sizes:
    """What each bound cuts off."""
    ordered = np.sort(sizes)
    sums = np.concatenate([[0], np.cumsum(ordered)])
    within = np.searchsorted(ordered, bounds, side="right")
    return np.asarray(sums[-1] - sums[within] - bounds * (ordered.size - within))


def above(sizes: Sizes) -> Sizes:
    """How many people exceed each candidate."""
    return np.asarray(sizes.size - np.searchsorted(np.sort(sizes), BOUNDS * (1 + 1e-12), side="right"), dtype=float)


def chosen(sizes: Sizes, plan: Allocation, groups: int) -> Sizes:
    """The probability of each candidate by permute-and-flip: the largest score plus exponential noise."""
    allowed = plan.noise[0] * units_above(groups, single=True)
    scores = -plan.choice * np.maximum(0, above(sizes) - tolerated(allowed))
    sure = sizes.size - SURELY / plan.tail  # with the noise of the count left out
    scores -= preference(plan.choice, allowed, units=sure) * math.log(2) / STEPS * np.arange(BOUNDS.size)
    near = np.flatnonzero(scores > scores.max() - 30)
    gaps = scores.max() - scores[near]
    # P(i) = integral over the winning value v above all scores of e^{-(v - s_i)} prod over others of 1 - e^{-(v - s_j)}
    step = 12 / 4000
    value = (np.arange(4000) + 0.5)[:, None] * step + gaps[None, :]
    below = np.log1p(-np.exp(-value))
    logs = logsumexp(below.sum(axis=1, keepdims=True) - below - value, axis=0)
    found = np.zeros(BOUNDS.size)
    found[near] = np.exp(logs - logsumexp(logs))
    return found


def tail(law: Law, x: Sizes) -> Sizes:
    """P(noise > x) for noise of scale 1."""
    half = law.beyond(np.abs(x)) / 2
    return np.where(x >= 0, half, 1 - half)


def median_error(weights: Sizes, losses: Sizes, scales: Sizes, law: Law) -> float:
    """The median of |noise - loss| over bounds of these weights."""
    low, high = 0.0, float((losses + 20 * scales)[weights > 1e-9].max())
    for _ in range(60):
        middle = (low + high) / 2
        inside = tail(law, (losses - middle) / scales) - tail(law, (losses + middle) / scales)
        low, high = (middle, high) if float((weights * inside).sum()) < 0.5 else (low, middle)
    return high


def tuned(sizes: Sizes, epsilon: float, groups: int) -> float:
    """The least median error of a bound that is known in advance."""
    large = np.quantile(sizes, np.clip(1 - groups * np.array([0, 1, 2, 3, 4, 6, 8, 12, 16, 32, 64]) / sizes.size, 0, 1))
    bounds = np.unique(np.concatenate([large[large > 0], BOUNDS[sizes.max() * 1.2 >= BOUNDS]]))
    losses = lost(sizes, bounds) / groups
    one = np.ones(1)
    return min(median_error(one, losses[i : i + 1], bounds[i : i + 1] / epsilon, LAPLACE) for i in range(bounds.size))


def planned(epsilon: float, groups: int, *, known: bool) -> tuple[Allocation, Law]:
    """The division of epsilon and the law of the noise, before anything is known and after."""
    plan = allocate(
        Target(epsilon=epsilon),
        gaussian=False,
        choices=0 if known else 1,
        keys=False,
        weights=(1.0,),
        groups=groups,
        alone=True,
        tails=0 if known else 1,
    )
    return plan, staircase_law(1 / plan.noise[0]) if plan.stairs else LAPLACE


def median_of_three(weights: Sizes) -> Sizes:
    """The law of the median of three independent choices."""
    below = np.minimum(np.cumsum(weights), 1.0)
    return np.diff(3 * below**2 - 2 * below**3, prepend=0.0)


def look(sizes: Sizes, plan: Allocation, stream: np.random.Generator) -> tuple[float, int]:
    """The number of people with its noise, and the candidate that a tenth exceeds, good to 2 / epsilon."""
    rank = 0.9 + stream.laplace(0, 2 / plan.tail) / sizes.size
    tenth = max(0.5, float(np.quantile(sizes, min(max(rank, 0.0), 1.0))))
    return sizes.size + stream.laplace(0, 1 / plan.tail), math.ceil(math.log2(tenth) * STEPS)


def measured(sizes: Sizes, epsilon: float, groups: int, stream: np.random.Generator) -> list[float]:
    """Of the first answer and of later ones: the error as a multiple of the tuned one's, how often 95 % hold."""
    bought, _ = planned(epsilon, groups, known=False)
    losses, best = lost(sizes, BOUNDS) / groups, tuned(sizes, epsilon, groups)
    choice = chosen(sizes, bought, groups)
    found = []
    for known, weights in ((False, choice), (True, median_of_three(choice))):
        plan, law = planned(epsilon, groups, known=known)
        scales = BOUNDS * plan.noise[0]
        looks = [look(sizes, bought, stream) for _ in range(3 if known else 1)]
        told = Choice(
            0,
            bought.choice,
            bought.noise[0],
            bought.noise[0] * units_above(groups, single=True),
            units=float(np.median([units for units, _ in looks])),
            size=int(np.median([size for _, size in looks])),
            looked=bought.tail,
        )
        more = np.array(
            [excess(replace(told, number=number), plan.noise[0], groups=groups) for number in range(BOUNDS.size)]
        )
        allowance = usual(groups, gaussian=False) * more
        reach = law.reach(allowance, 0.95)
        held = tail(law, losses / scales - reach - allowance) - tail(law, losses / scales + reach)
        found += [median_error(weights, losses, scales, law) / best, float((weights * held).sum())]
    return found


def main() -> None:
    """Compute everything and print a line for each table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument("--groups", type=int, default=1)
    parser.add_argument("--visits", type=Path, default=None, help="the table of visits that benchmarks/query.py wrote")
    arguments = parser.parse_args()
    stream = np.random.default_rng(7)
    kinds = tables(stream)
    if arguments.visits is not None:
        import duckdb

        for name, what in (("visits, rows", "count(*)"), ("visits, spend", "sum(spend)")):
            sql = f"SELECT CAST({what} AS DOUBLE) FROM '{arguments.visits}' GROUP BY user_id"
            found = np.array([row[0] for row in duckdb.execute(sql).fetchall()])
            kinds[name] = lambda found=found: found  # type: ignore[misc]
    results: dict[str, dict[str, list[float]]] = {}
    print(f"{'':34}" + "".join(f"  epsilon {epsilon:<4} holds later holds " for epsilon in EPSILONS))
    for name, draw in kinds.items():
        results[name] = {}
        line = f"{name:34}"
        for epsilon in EPSILONS:
            found = [measured(draw(), epsilon, arguments.groups, stream) for _ in range(arguments.draws)]
            each = np.array(found)
            errors, held = np.exp(np.log(each[:, ::2]).mean(axis=0)), each[:, 1::2].mean(axis=0)
            results[name][str(epsilon)] = [errors[0], held[0], errors[1], held[1]]
            line += "".join(f"{error:7.2f}{100 * part:5.1f} %" for error, part in zip(errors, held, strict=True)) + "  "
        print(line, flush=True)
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps({"draws": arguments.draws, "groups": arguments.groups, "found": results}) + "\n")
    print(f"written to {RESULT.relative_to(RESULT.parents[2])}")


if __name__ == "__main__":
    main()

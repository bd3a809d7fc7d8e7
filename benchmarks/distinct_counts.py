"""COUNT(DISTINCT x) of people with many values: errors and coverage on tables of several kinds, by two rules.

    python benchmarks/distinct_counts.py [--answers 400] [--epsilon 0.3 1 3] [--only own shared]

*sizes* chooses how many values of a person are kept so that few people have more, as other bounds are chosen, and every
person keeps those that come first in one order of all values. *gains* is what is in use: as many as it takes to count
nearly all values (`discreet.query.gains`), each person in an order of their own. Choices, noise (Laplace or Gaussian),
intervals and the division of epsilon are those of the package. Prints the median error (of an answer by group: the
median over groups), the median width of intervals of 95 % and the share of them that hold, and writes
benchmarks/results/distinct_counts.json. No answer knows a bound of another.
"""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.noise import rounded_gaussian, rounded_laplace
from discreet.query.allocation import allocate
from discreet.query.choices import STEPS, bound_of, choose_bound, units_above
from discreet.query.gains import KEPT, choose_kept, gains_wanted, kept_of, times_lost
from discreet.query.laws import GAUSSIAN, LAPLACE, NoisySum
from discreet.query.losses import allowance
from discreet.query.target import Target

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

RESULT = Path(__file__).resolve().parent / "results" / "distinct_counts.json"
Numbers = Any


@dataclass(frozen=True)
class Table:
    """Pairs of a person and a value, each once; the group of every value; how many groups there are."""

    people: NDArray[np.int64]
    values: NDArray[np.int64]
    group: NDArray[np.int64]
    groups: int = 1

    @classmethod
    def of(cls, rows: Numbers, values: Numbers, stream: np.random.Generator, groups: int = 1) -> Table:
        """People with so many rows each, a value in every row, and groups that have to do with neither."""
        people = np.repeat(np.arange(len(rows)), rows)
        pairs = np.stack([people, stream.integers(0, groups, people.size), values(people.size)], axis=1)
        pairs = np.unique(pairs, axis=0)
        found, value = np.unique(pairs[:, 1:], axis=0, return_inverse=True)
        return cls(pairs[:, 0], value.ravel(), found[:, 0], groups)


def tables(stream: np.random.Generator) -> dict[str, Callable[[], Table]]:
    """The kinds of tables."""

    def rows(people: int, usual: float, spread: float) -> Numbers:
        return np.ceil(usual * stream.lognormal(0, spread, people)).astype(int)

    def zipf(number: int, power: float) -> Callable[[int], Numbers]:
        weights = np.arange(1, number + 1) ** -power
        return lambda size: stream.choice(number, size, p=weights / weights.sum())

    def uniform(number: int) -> Callable[[int], Numbers]:
        return lambda size: stream.integers(0, number, size)

    def some_own(share: float) -> Callable[[int], Numbers]:
        return lambda size: np.where(stream.random(size) < share, 10**6 + np.arange(size), uniform(300)(size))

    def pareto(people: int) -> Numbers:
        return np.ceil(5 * (1 + stream.pareto(2, people))).astype(int)

    made: dict[str, tuple[Callable[[], Numbers], Callable[[int], Numbers], int]] = {
        "10 shared, 20 000 people": (lambda: stream.integers(1, 6, 20_000), uniform(10), 1),
        "720 shared, 20 000 people": (lambda: rows(20_000, 3, 0.8), zipf(720, 0.8), 1),
        "3000 shared, 10 000 people": (lambda: rows(10_000, 10, 0.8), uniform(3000), 1),
        "3000 shared, 1000 people": (lambda: rows(1000, 10, 0.8), uniform(3000), 1),
        "words by Zipf, 5000 people": (lambda: rows(5000, 10, 1.0), zipf(50_000, 1.0), 1),
        "one in 50 own, 20 000 people": (lambda: rows(20_000, 5, 0.7), some_own(0.02), 1),
        "half own, 3000 people": (lambda: rows(3000, 8, 0.7), some_own(0.5), 1),
        "one each of 1000, 5000 people": (lambda: np.ones(5000, dtype=int), uniform(1000), 1),
        "one own each, 5000 people": (lambda: np.ones(5000, dtype=int), np.arange, 1),
        "own, lognormal, 2000 people": (lambda: rows(2000, 6, 1.0), np.arange, 1),
        "own, ten each, 10 000 people": (lambda: np.full(10_000, 10), np.arange, 1),
        "own, Pareto 2, 5000 people": (lambda: pareto(5000), np.arange, 1),
        "own, 100 for one in 100": (lambda: np.where(stream.random(10_000) < 0.01, 100, 1), np.arange, 1),
        "4 groups, 700 shared": (lambda: rows(20_000, 5, 0.8), zipf(700, 0.8), 4),
        "12 groups, 700 shared": (lambda: rows(20_000, 5, 0.8), zipf(700, 0.8), 12),
        "12 groups, own, lognormal": (lambda: rows(5000, 6, 1.0), np.arange, 12),
        "100 groups, 10 shared": (lambda: rows(20_000, 5, 0.8), uniform(10), 100),
        "100 groups, own, lognormal": (lambda: rows(50_000, 6, 1.0), np.arange, 100),
    }
    return {
        name: (lambda rows=rows, values=values, groups=groups: Table.of(rows(), values, stream, groups))  # type: ignore[misc]
        for name, (rows, values, groups) in made.items()
    }


def first_kept(table: Table, lots: Numbers) -> Numbers:
    """For every value the smallest m with which somebody keeps it."""
    order = np.lexsort((lots, table.people))
    people = table.people[order]
    starts = np.concatenate([[0], np.flatnonzero(np.diff(people)) + 1])
    places = np.arange(people.size) - np.repeat(starts, np.diff(np.concatenate([starts, [people.size]]))) + 1
    found = np.full(table.group.size, np.iinfo(np.int64).max)
    np.minimum.at(found, table.values[order], places)
    return found


def answers(table: Table, rule: str, epsilon: float, times: int, stream: np.random.Generator) -> dict[str, float]:
    """What so many answers are like."""
    gaussian, groups = table.groups > 5, table.groups
    plan = allocate(
        Target(epsilon=epsilon, delta=1e-6 if gaussian else 0.0),
        gaussian=gaussian,
        choices=1,
        keys=False,
        weights=(1.0,),
        groups=groups,
    )
    noise, price = plan.noise[0], plan.choice
    truth = np.bincount(table.group, minlength=groups).astype(float)
    sizes = np.bincount(table.people)
    buckets, units = np.unique(np.ceil(np.log2(sizes[sizes > 0]) * STEPS).astype(int), return_counts=True)
    errors, widths, held, bounds = [], [], [], []
    for again in range(times):
        if again % 20 == 0:  # a secret of its own takes most of the time
            own = rule == "gains"
            lots = stream.random(table.people.size) if own else stream.random(table.group.size)[table.values]
            kept = first_kept(table, lots)
            counts = [int((kept <= m).sum()) for m in KEPT.values()]
        if rule == "gains":
            wanted = gains_wanted(noise, groups=groups)
            number = choose_kept(counts, epsilon=price, wanted=wanted, bounded=gaussian)
            bound = kept_of(number, epsilon=price, wanted=wanted)
            times = times_lost(number, epsilon=price, wanted=wanted)
        else:
            allowed = noise * units_above(groups, single=groups == 1)
            facts: Any = {"epsilon": price, "allowed": allowed, "smallest": 1.0, "bounded": gaussian}
            bound, times = math.ceil(bound_of(choose_bound(buckets, units, **facts))), 1.0
        left = np.bincount(table.group[kept <= bound], minlength=groups)
        drawn = (rounded_gaussian if gaussian else rounded_laplace)(noise * bound, groups)
        noisy = NoisySum((left + drawn).astype(float), noise * bound, GAUSSIAN if gaussian else LAPLACE)
        low, high = replace(noisy, lost=allowance(noisy, sign=1, skew=times)).interval(0.95)
        low, high = np.maximum(np.floor(low), 0), np.maximum(np.ceil(high), 0)
        errors.append(float(np.median(np.abs(np.maximum(noisy.values, 0) - truth))))
        widths.append(float(np.median(high - low)))
        held.append(float(np.mean((low <= truth) & (truth <= high))))
        bounds.append(bound)
    return {
        "bound": float(np.median(bounds)),
        "error": float(np.median(errors)),
        "width": float(np.median(widths)),
        "held": 100 * float(np.mean(held)),
    }


def main() -> None:
    """Ask every table by both rules."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=int, default=400)
    parser.add_argument("--epsilon", type=float, nargs="*", default=[0.3, 1.0, 3.0])
    parser.add_argument("--only", nargs="*", default=[""], help="kinds whose name has one of these words in it")
    arguments = parser.parse_args()
    stream = np.random.default_rng(11)
    found: dict[str, dict[str, Any]] = {}
    print(f"{'':32}{'epsilon':>8}{'truth':>9}" + "".join(f"{rule:>8}: error width held" for rule in ("sizes", "gains")))
    for name, make in tables(stream).items():
        if not any(word in name for word in arguments.only):
            continue
        table = make()
        for epsilon in arguments.epsilon:
            line = f"{name:32}{epsilon:8g}{table.group.size / table.groups:9.0f}"
            for rule in ("sizes", "gains"):
                one = answers(table, rule, epsilon, arguments.answers, stream)
                found.setdefault(f"{name}, epsilon = {epsilon:g}", {})[rule] = one
                line += f"  m {one['bound']:4.0f} {one['error']:8.1f} {one['width']:7.0f} {one['held']:4.0f}"
            print(line, flush=True)
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps({"arguments": vars(arguments), "answers": found}, indent=1) + "\n")
    print(f"written to {RESULT.relative_to(RESULT.parents[2])}")


if __name__ == "__main__":
    main()

"""Counts by many public groups: errors beside those of the best bound, and how often intervals of 95 % hold.

    python benchmarks/group_bounds.py [--answers 12] [--epsilon 1.0] [--only spread]

People have numbers of rows that are lognormal, Pareto or equal, spread over all groups or in few groups each. For every
answer the number of people, the groups of a person and a quantile of their sizes are looked at with the noise of these
looks, a bound is chosen by its law, and Gaussian noise is added, all as `discreet.query` does it, on arrays instead of
SQL. Prints for each table the median error over groups as a multiple of that of the best bound, which is tuned on the
true data and costs nothing, of half of the answers and of all but a tenth, the part of intervals that hold, and their
median width as a multiple of that of the noise alone; writes benchmarks/results/group_bounds.json.
"""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from discreet.query.allocation import Allocation, allocate
from discreet.query.choices import (
    STEPS,
    bound_of,
    choose_bound,
    choose_share,
    lean,
    most_above,
    number_of,
    spread_above,
    units_above,
)
from discreet.query.laws import GAUSSIAN, NoisySum
from discreet.query.losses import SURELY, allowance, looked_share, shortfall, tells
from discreet.query.target import Target

RESULT = Path(__file__).resolve().parent / "results" / "group_bounds.json"
Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Table:
    """So many people with so many rows on average, in all of the groups or in `each` of them."""

    people: int
    rows: float
    groups: int
    law: str = "lognormal"
    each: int | None = None

    @property
    def name(self) -> str:
        """In words."""
        where = "spread" if self.each is None else f"in {self.each}"
        return f"{self.law}, {where}, {self.people} x {self.rows:g}, {self.groups} groups"

    @cached_property
    def entries(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Numbers]:
        """Person, group and number of rows, wherever a person has some."""
        stream = np.random.default_rng([self.people, self.groups, len(self.law)])
        activity = {
            "lognormal": lambda: stream.lognormal(-0.5, 1, self.people),
            "Pareto 3": lambda: (1 + stream.pareto(3, self.people)) / 1.5,
            "Pareto 2": lambda: (1 + stream.pareto(2, self.people)) / 2,
            "uniform": lambda: stream.integers(1, 21, self.people) / 10.5,
        }[self.law]()
        rows = np.maximum(1, stream.poisson(self.rows * activity))
        popular = stream.lognormal(0, 0.4, self.groups).cumsum()
        person = np.repeat(np.arange(self.people), rows if self.each is None else self.each)
        group = np.searchsorted(popular, popular[-1] * stream.random(person.size))
        weight = np.ones(person.size) if self.each is None else np.ceil(rows / self.each)[person]
        pairs, place = np.unique(person * self.groups + group, return_inverse=True)
        return pairs // self.groups, pairs % self.groups, np.bincount(place, weights=weight)

    @cached_property
    def norms(self) -> Numbers:
        """The norm of each person's numbers."""
        person, _, rows = self.entries
        return np.sqrt(np.bincount(person, weights=rows**2, minlength=self.people))

    @cached_property
    def spreads(self) -> Numbers:
        """The sum of each person's numbers, over their norm."""
        person, _, rows = self.entries
        return np.asarray(np.bincount(person, weights=rows, minlength=self.people) / np.maximum(self.norms, 1.0))

    def sums(self, bound: float = math.inf) -> Numbers:
        """The sums of all groups, of people cut to a bound."""
        person, group, rows = self.entries
        kept = np.minimum(1.0, bound / np.maximum(self.norms, 1e-9))
        return np.bincount(group, weights=rows * kept[person], minlength=self.groups)


TABLES = (
    *(Table(300, 20, groups) for groups in (8, 50)),
    *(Table(2000, 10, groups) for groups in (8, 50, 365)),
    *(Table(20_000, rows, groups) for groups in (50, 365, 2000) for rows in (10, 100)),
    Table(20_000, 100, 18_250),
    Table(100_000, 10, 18_250),
    *(Table(20_000, 20, groups, each=each) for groups in (50, 365, 2000) for each in (1, 3)),
    *(Table(20_000, 20, groups, law) for law in ("uniform", "Pareto 3", "Pareto 2") for groups in (50, 365, 2000)),
)


def counted(sizes: Numbers) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Buckets of sizes, and how many people are in each."""
    return np.unique([number_of(size) for size in sizes], return_counts=True)


def answered(table: Table, plan: Allocation, stream: np.random.Generator) -> tuple[NoisySum, float]:
    """Sums with noise and the allowance for what is cut off, and the bound."""
    noise, people = plan.noise[0], table.people + stream.laplace(0, 1 / plan.tail)
    found = choose_share(
        *counted(table.spreads),
        epsilon=plan.tail,
        share=0.9,
        below=number_of(math.sqrt(table.groups)),
        power=lean(people, epsilon=plan.tail),
    )
    looked = bound_of(found) if tells(people, looked=plan.tail) else None
    allowed = noise * units_above(table.groups, single=False, looked=looked)
    allowed = min(allowed, most_above(people, epsilon=plan.choice))
    sizes = counted(table.norms)
    sure = people - SURELY / plan.tail
    number = choose_bound(*sizes, epsilon=plan.choice, allowed=allowed, smallest=1.0, sure=sure, reach=1e3)
    share = looked_share(people, above=allowed + 1 / plan.choice)
    size = bound_of(choose_share(*sizes, epsilon=plan.tail, share=share, below=number))
    bound = bound_of(number)
    more = shortfall(
        bound,
        size=size,
        units=people,
        allowed=allowed,
        chosen=plan.choice,
        looked=plan.tail,
        spread=spread_above(table.groups, single=False, looked=looked),
        noise=noise,
        groups=table.groups,
    )
    values = table.sums(bound) + stream.normal(0, noise * bound, table.groups)
    noisy = NoisySum(values, noise * bound, GAUSSIAN)
    return NoisySum(values, noisy.scale, GAUSSIAN, allowance(noisy, sign=1, skew=more)), bound


def best(table: Table, noise: float, stream: np.random.Generator) -> float:
    """The least median error of a bound that is known."""
    true, last = table.sums(), number_of(float(table.norms.max()))
    draws = stream.normal(0, noise, (max(1, 4000 // table.groups), table.groups))
    errors = []
    for number in range(max(-STEPS, last - 9 * STEPS), last + 1):
        lost = true - table.sums(bound_of(number))
        errors.append(float(np.median(np.abs(draws * bound_of(number) - lost))))
    return min(errors)


def main() -> None:
    """Answer from every table and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=int, default=12)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--only", default="", help="a part of the names of tables")
    arguments = parser.parse_args()
    plan = allocate(
        Target(epsilon=arguments.epsilon, delta=1e-6),
        gaussian=True,
        choices=1,
        keys=False,
        weights=(1.0,),
        tails=(0,),
        spreads=1,
    )
    stream, results = np.random.default_rng(3), {}
    print(f"{'':52}{'error':>8}{'tenth':>8}{'holds':>8}{'width':>8}")
    for table in (table for table in TABLES if arguments.only in table.name):
        least, true, found = best(table, plan.noise[0], stream), table.sums(), []
        for _ in range(arguments.answers):
            noisy, _ = answered(table, plan, stream)
            low, high = noisy.interval(0.95)
            error = float(np.median(np.abs(noisy.values - true))) / least
            width = float(np.median(high - low)) / (2 * noisy.half_width(0.95))
            found.append((error, float(np.mean((low <= true) & (true <= high))), width))
        errors, held, widths = np.array(found).T
        error, tenth = (float(part) for part in np.quantile(errors, (0.5, 0.9)))
        holds, width = float(held.mean()), float(widths.mean())
        results[table.name] = [error, tenth, holds, width]
        print(f"{table.name:52}{error:8.2f}{tenth:8.2f}{100 * holds:7.1f} %{width:7.2f}", flush=True)
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps({"arguments": vars(arguments), "found": results}) + "\n")
    print(f"written to {RESULT.relative_to(RESULT.parents[2])}")


if __name__ == "__main__":
    main()

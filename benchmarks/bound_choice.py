"""Bounds that are found privately, against bounds tuned on the true data: the error of one number, on many tables.

    python benchmarks/bound_choice.py [--draws 6] [--choices 60] [--epsilons 0.3 1 3] [--groups 1] [--only visits]
                                      [--visits visits-1000000.parquet] [--surveyed]
    python benchmarks/bound_choice.py --law --only "visits, rows" --draws 60

One number (a count or a sum) is asked of tables of several kinds. Its error is noise in proportion to the bound, plus
what the bound cuts off. Bounds are found by the package's own code, again and again; given a bound, the law of the
error is known, and the median error is that of the mixture. The tuned bound is the one of least median error with
Laplace noise and all of epsilon: its choice is not paid for. Prints the quotient of the two for each table and epsilon,
a geometric mean over draws of the table, and how often an interval of 95 % holds: for a first answer, and for those
after the third, whose bound costs nothing; and in which part of the first answers the bound was read off a sketch.
Writes benchmarks/results/bound_choice.json. With --groups the people have one of so many groups each.

With --surveyed the bounds are found for everybody, for as much as the question costs, which is not counted here:
prints that quotient, how often intervals hold, and how far they reach to the side on which something may be cut off, in
scales of the noise.

With --law the same quotient is that of somebody who knows the law of the sizes and not the table: one bound for all
draws, the best one, with a part of what it cuts off on average added, that is not paid for, and for 14.5 % of epsilon.
"""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet import Budget, Curator
from discreet.query.choices import FINE, STEPS, bound_of
from discreet.query.laws import LAPLACE, Law, staircase_law
from discreet.query.losses import added, blurred, excess, usual
from discreet.query.policy import ColumnPolicy, Policy, TablePolicy
from discreet.query.remembered import ENOUGH, Known
from discreet.query.run import Run
from discreet.query.surveys import Surveying, surveys_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from discreet.query.private import Private
    from discreet.query.remembered import Choice

RESULT = Path(__file__).resolve().parent / "results" / "bound_choice.json"
Sizes = NDArray[np.float64]
PEOPLE, ROWS = 100_000, 1_000_000
QUANTA = 2**16
"""Of a unit of money: so fine are sums of fractions counted."""


def tables(stream: np.random.Generator) -> dict[str, Callable[[], Sizes]]:
    """What people have, by kind of table."""

    def visits() -> Sizes:
        activity = stream.lognormal(0, 1, PEOPLE)
        found = stream.poisson(activity / activity.sum() * ROWS).astype(float)
        return found[found > 0]

    def spend() -> Sizes:
        rows = visits().astype(int)
        person = np.repeat(np.arange(rows.size), rows)
        middle = np.log(10) + np.log(4) * stream.integers(0, 50, person.size) / 49
        each = np.minimum(np.exp(middle + 0.8 * stream.standard_normal(person.size)), 1000)
        return np.bincount(person, each) * QUANTA

    def rounded(sizes: Sizes) -> Sizes:
        return np.ceil(sizes)

    def mixed(share: float, people: int) -> Sizes:
        times = np.where(stream.random(people) < share, 30, 1)
        return rounded(times * 10 * stream.lognormal(0, 0.4, people))

    def crowd(robots: int) -> Sizes:
        people, others = 10 * stream.lognormal(0, 0.7, 100_000), 3000 * stream.lognormal(0, 0.3, robots)
        return rounded(np.concatenate([people, others]))

    return {
        "visits, rows": visits,
        "visits, spend": spend,
        "one each, 1000": lambda: np.ones(1000),
        "ten each, 10 000": lambda: np.full(10_000, 10.0),
        "uniform on 1 to 20, 300": lambda: stream.integers(1, 21, 300).astype(float),
        "uniform on 1 to 20, 20 000": lambda: stream.integers(1, 21, 20_000).astype(float),
        "Poisson, 10 000": lambda: stream.poisson(10, 10_000).astype(float),
        "normal, 20 000": lambda: np.maximum(np.rint(stream.normal(50, 10, 20_000)), 0),
        "geometric, 50 000": lambda: stream.geometric(0.5, 50_000).astype(float),
        "exponential, 3000": lambda: rounded(stream.exponential(20, 3_000)),
        "exponential, 30 000": lambda: rounded(stream.exponential(20, 30_000)),
        "lognormal of spread 1/2, 10 000": lambda: rounded(20 * stream.lognormal(0, 0.5, 10_000)),
        "lognormal of spread 1, 200": lambda: rounded(20 * stream.lognormal(0, 1, 200)),
        "lognormal of spread 1, 2000": lambda: rounded(20 * stream.lognormal(0, 1, 2_000)),
        "lognormal of spread 1, 10 000": lambda: rounded(20 * stream.lognormal(0, 1, 10_000)),
        "lognormal of spread 1, 100 000": lambda: rounded(20 * stream.lognormal(0, 1, 100_000)),
        "lognormal of spread 3/2, 100 000": lambda: rounded(20 * stream.lognormal(0, 1.5, 100_000)),
        "Pareto of exponent 3, 10 000": lambda: rounded(5 * (1 + stream.pareto(3, 10_000))),
        "Pareto of exponent 2, 10 000": lambda: rounded(5 * (1 + stream.pareto(2, 10_000))),
        "Pareto of exponent 1.2, 100 000": lambda: rounded(5 * (1 + stream.pareto(1.2, 100_000))),
        "nothing for 99 in 100, 10 000": lambda: np.where(
            stream.random(10_000) < 0.01, stream.integers(1, 20, 10_000), 0
        ).astype(float),
        "19 998 with one, 30 with two": lambda: np.repeat([1.0, 2.0], [19_998, 30]),
        "Zipf of exponent 2 cut at 300, 50 000": lambda: np.minimum(stream.zipf(2, 50_000), 300).astype(float),
        "lognormal of spread 1 cut at 300, 30 000": lambda: np.minimum(
            rounded(20 * stream.lognormal(0, 1, 30_000)), 300
        ),
        "lognormal of spread 2, 100 000": lambda: rounded(20 * stream.lognormal(0, 2, 100_000)),
        "10 times as much for 1 in 500, 30 000": lambda: rounded(
            10 * np.where(stream.random(30_000) < 0.002, 10, 1) * stream.lognormal(0, 0.5, 30_000)
        ),
        "cut at 100, 50 000": lambda: np.minimum(rounded(20 * stream.lognormal(0, 1, 50_000)), 100),
        "30 times as much for 1 in 100, 50 000": lambda: mixed(0.01, 50_000),
        "30 times as much for 1 in 500, 50 000": lambda: mixed(0.002, 50_000),
        "60 robots among 100 000": lambda: crowd(60),
        "150 robots among 100 000": lambda: crowd(150),
        "twelve each, 30 of 5000 have 600": lambda: np.repeat([12.0, 600.0], [4970, 30]),
        "twelve each, 60 of 50 000 have 600": lambda: np.repeat([12.0, 600.0], [49_940, 60]),
        "uniform on 1 to 20, 40 of 20 000 have 600": lambda: np.concatenate(
            [stream.integers(1, 21, 19_960).astype(float), np.full(40, 600.0)]
        ),
    }


@dataclass(frozen=True)
class Bound:
    """A bound that was found: the multiplier of the noise beside it, its law, the allowance, and what is added."""

    size: float
    multiplier: float
    law: Law
    allowance: float
    added: float


def lost(sizes: Sizes, bounds: Sizes) -> Sizes:
    """What each bound cuts off."""
    ordered = np.sort(sizes)
    sums = np.concatenate([[0], np.cumsum(ordered)])
    within = np.searchsorted(ordered, bounds, side="right")
    return np.asarray(sums[-1] - sums[within] - bounds * (ordered.size - within))


def tail(law: Law, x: Sizes) -> Sizes:
    """P(noise > x) for noise of scale 1."""
    half = law.beyond(np.abs(x)) / 2
    return np.where(x >= 0, half, 1 - half)


def median_error(losses: Sizes, scales: Sizes, laws: list[Law]) -> float:
    """The median of |noise - loss| over equally likely bounds."""
    low, high = 0.0, float((np.abs(losses) + 20 * scales).max())
    kinds = {law: np.array([one == law for one in laws]) for law in set(laws)}
    for _ in range(50):
        middle = (low + high) / 2
        inside = 0.0
        for law, here in kinds.items():
            ends = [tail(law, (losses[here] + sign * middle) / scales[here]) for sign in (-1, 1)]
            inside += float((ends[0] - ends[1]).sum())
        low, high = (middle, high) if inside < 0.5 * losses.size else (low, middle)
    return high


def tuned(sizes: Sizes, epsilon: float, groups: int) -> float:
    """The least median error of a bound that is known in advance."""
    ranks = groups * np.array([0, 1, 2, 3, 4, 6, 8, 12, 16, 32, 64])
    large = np.quantile(sizes, np.clip(1 - ranks / sizes.size, 0, 1))
    grid = 2.0 ** (np.arange(math.ceil(4 * math.log2(max(sizes.max(), 2)) + 2)) / 4)
    bounds = np.unique(np.concatenate([large[large > 0], grid[sizes.max() * 1.2 >= grid]]))
    losses = lost(sizes, bounds) / groups
    return min(median_error(losses[i : i + 1], bounds[i : i + 1] / epsilon, [LAPLACE]) for i in range(bounds.size))


class Asked:
    """A question whose bound is to be found: COUNT(*), of one group for each person where there are several."""

    def __init__(self, epsilon: float, groups: int) -> None:
        rows, people = pa.table({"u": [0], "x": [1.0]}), pa.table({"u": [0], "g": [0]})
        self.groups, self.epsilon = groups, epsilon
        tables = {
            "t": TablePolicy(rows, unit="u"),
            "p": TablePolicy(people, unit="u", rows_per_unit=1, columns={"g": ColumnPolicy(keys=tuple(range(groups)))}),
        }
        self.curator = Curator.open(Policy("bounds", tables, budget=Budget(epsilon=100.0)), ledger=":memory:")
        self.text = "SELECT COUNT(*) FROM t"
        if groups > 1:
            self.text = "SELECT g, COUNT(*) FROM t JOIN p USING (u) GROUP BY g"

    def plan(self) -> Private:
        """The plan of somebody who knows nothing."""
        [plan] = self.curator._desk.take(self.text, epsilon=self.epsilon, delta=None, cost=None, call={}).plans
        return plan

    def found(self, sizes: dict[str, Any]) -> tuple[Choice, Bound]:
        """A bound that is bought."""
        run = Run(None, self.plan(), None)  # type: ignore[arg-type]
        run.choose("moment 0", lambda: sizes, smallest=1.0)
        run.spare()
        return run.told[0][1], self.bound(run.used["moment 0"], run.plan)

    def surveyed(self, sizes: dict[str, Any]) -> Bound:
        """A bound that is found for everybody, from a share of the budget."""
        [survey] = surveys_of([self.plan()])
        run = Surveying(survey, None)  # type: ignore[arg-type]
        run.choose("moment 0", lambda: sizes, smallest=1.0)
        return self.bound(run.told[0][1], survey.after)

    def later(self, told: list[Choice]) -> Bound:
        """The bound of somebody who was told these."""
        plan = self.plan()
        known = tuple(replace(one, earlier=tuple(told[:ENOUGH])) for one in plan.known)
        paid = plan.allocation
        spared = paid.spared({0: paid.counted + paid.sketched + paid.later})
        settled = replace(plan, allocation=replace(spared, pots=()), known=known)
        return self.bound(Known("moment 0", "", tuple(told[:ENOUGH])).with_new(), settled)

    def bound(self, used: Choice, plan: Private) -> Bound:
        """What a choice is to a plan."""
        noise = plan.noise_for("moment 0")
        allowance = usual(self.groups, gaussian=False) * excess(used, noise, groups=self.groups)
        part = added(used.allowed, groups=self.groups, blur=blurred(used.seen)) if used.steep else 0.0
        made_up = part * (used.lost or 0.0)
        return Bound(bound_of(used.number), noise, plan.law(0), allowance, made_up)


def judged(sizes: Sizes, bounds: list[Bound], best: float, groups: int) -> list[float]:
    """The median error as a multiple of the best, and how often intervals of 95 % hold."""
    size = np.array([bound.size for bound in bounds])
    scales = size * np.array([bound.multiplier for bound in bounds])
    made_up, laws = np.array([bound.added for bound in bounds]), [bound.law for bound in bounds]
    losses = (lost(sizes, size) - made_up * size) / groups
    held = []
    for bound, loss, scale in zip(bounds, losses, scales, strict=True):
        allowance = bound.allowance - bound.added / bound.multiplier / groups
        reach = bound.law.reach(np.array([allowance]), 0.95)[0]
        ends = np.array([loss / scale - reach - allowance, loss / scale + reach])
        held.append(float(np.diff(-tail(bound.law, ends))[0]))
    return [median_error(losses, scales, laws) / best, float(np.mean(held))]


def counted(sizes: Sizes) -> dict[str, Any]:
    """How many units have each size, as the engine counts them."""
    fine = np.where(sizes > 0.5, np.ceil(np.log2(np.maximum(sizes, 0.5)) * STEPS * FINE - 1e-9), -STEPS * FINE)
    values, counts = np.unique(fine.astype(np.int64), return_counts=True)
    return {"f": values, "n": counts}


def measured_surveys(sizes: Sizes, asked: Asked, choices: int) -> list[float]:
    """The error as a multiple of the tuned one's, how often 95 % hold, and how far an interval reaches up."""
    found = counted(sizes)
    bounds = [asked.surveyed(found) for _ in range(choices)]
    reach = float(np.median([bound.law.reach(np.array([bound.allowance]), 0.95)[0] for bound in bounds]))
    allowed = float(np.median([bound.allowance for bound in bounds]))
    return [*judged(sizes, bounds, tuned(sizes, asked.epsilon, asked.groups), asked.groups), reach + allowed]


def measured(sizes: Sizes, asked: Asked, choices: int) -> list[float]:
    """Of the first answer and of later ones: the error as a multiple of the tuned one's, how often 95 % hold."""
    found = counted(sizes)
    bought = [asked.found(found) for _ in range(choices)]
    told = [choice for choice, _ in bought]
    later = [asked.later(told[i:] + told[:i]) for i in range(choices)]
    best = tuned(sizes, asked.epsilon, asked.groups)
    curved = float(np.mean([choice.lost is not None for choice in told]))
    first = judged(sizes, [bound for _, bound in bought], best, asked.groups)
    return [*first, *judged(sizes, later, best, asked.groups), curved]


def by_law(drawn: list[Sizes], epsilon: float, *, paid: float) -> tuple[float, float]:
    """The quotient for the best bound for all of these tables and the best part to be added, and that bound."""
    best = [tuned(sizes, epsilon, 1) for sizes in drawn]
    epsilon *= 1 - paid
    largest = np.sort(np.concatenate(drawn))[::-1]
    law = staircase_law(epsilon) if epsilon >= math.log(2) else LAPLACE
    found = []
    for bound in {float(largest[round(above * len(drawn))]) for above in (0.5, 1, 1.5, 2, 3, 4, 6, 8, 12, 16, 24)}:
        losses, scale = [lost(sizes, np.array([bound])) for sizes in drawn], np.array([bound / epsilon])
        for part in (0.0, 0.3, 0.5, 0.8, 1.0):
            more = part * float(np.mean(losses))
            errors = [median_error(one - more, scale, [law]) for one in losses]
            found.append((float(np.exp(np.mean(np.log(errors)))), bound))
    error, bound = min(found)
    return error / float(np.exp(np.mean(np.log(best)))), bound


def main() -> None:
    """Compute everything and print a line for each table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=6)
    parser.add_argument("--choices", type=int, default=60)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.3, 1.0, 3.0])
    parser.add_argument("--groups", type=int, default=1)
    parser.add_argument("--only", default="", help="tables whose names begin so")
    parser.add_argument("--visits", type=Path, default=None, help="the table of visits that benchmarks/query.py wrote")
    parser.add_argument("--surveyed", action="store_true", help="bounds that are found once for everybody")
    parser.add_argument("--law", action="store_true", help="what somebody reaches who knows the law and not the table")
    arguments = parser.parse_args()
    stream = np.random.default_rng(7)
    kinds = {name: draw for name, draw in tables(stream).items() if name.startswith(arguments.only)}
    if arguments.visits is not None:
        import duckdb

        for name, what in (("that table, rows", "count(*)"), ("that table, spend", f"sum(spend) * {QUANTA}")):
            sql = f"SELECT CAST({what} AS DOUBLE) FROM '{arguments.visits}' GROUP BY user_id"
            found = np.array([row[0] for row in duckdb.execute(sql).fetchall()])
            kinds[name] = lambda found=found: found  # type: ignore[misc]
    if arguments.law:
        for name, draw in kinds.items():
            drawn = [draw() for _ in range(arguments.draws)]
            for epsilon in arguments.epsilons:
                told = [by_law(drawn, epsilon, paid=paid) for paid in (0.0, 0.145)]
                parts = ", ".join(f"{quotient:.2f} (bound {bound:g})" for quotient, bound in told)
                print(f"{name:38}  epsilon {epsilon:<4} {parts}", flush=True)
        return
    asked = {epsilon: Asked(epsilon, arguments.groups) for epsilon in arguments.epsilons}
    if arguments.surveyed:
        print(f"{'':38}" + "".join(f"  epsilon {epsilon:<4} holds   reach" for epsilon in arguments.epsilons))
        for name, draw in kinds.items():
            drawn = [draw() for _ in range(arguments.draws)]
            line = f"{name:38}"
            for one in asked.values():
                each = np.array([measured_surveys(sizes, one, arguments.choices) for sizes in drawn])
                error, held, reach = np.exp(np.log(each).mean(axis=0))
                line += f"{error:8.2f}{100 * held:12.1f}{reach:8.1f}"
            print(line, flush=True)
        return
    results: dict[str, dict[str, list[float]]] = {}
    heads = "".join(f"  epsilon {epsilon:<4} holds  later holds curve" for epsilon in arguments.epsilons)
    print(f"{'':38}{heads}")
    for name, draw in kinds.items():
        results[name] = {}
        line = f"{name:38}"
        drawn = [draw() for _ in range(arguments.draws)]
        for epsilon in arguments.epsilons:
            each = np.array([measured(sizes, asked[epsilon], arguments.choices) for sizes in drawn])
            errors, held = np.exp(np.log(each[:, :4:2]).mean(axis=0)), each[:, 1:4:2].mean(axis=0)
            curved = float(each[:, 4].mean())
            results[name][str(epsilon)] = [errors[0], held[0], errors[1], held[1], curved]
            line += "".join(f"{error:8.2f}{100 * part:6.1f}" for error, part in zip(errors, held, strict=True))
            line += f"{curved:6.2f}"
        print(line, flush=True)
    RESULT.parent.mkdir(exist_ok=True)
    told = {"draws": arguments.draws, "choices": arguments.choices, "groups": arguments.groups}
    RESULT.write_text(json.dumps({**told, "found": results}) + "\n")
    print(f"written to {RESULT.relative_to(RESULT.parents[2])}")


if __name__ == "__main__":
    main()

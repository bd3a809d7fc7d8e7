r"""COUNT(DISTINCT x) of a block.

Every unit keeps at most m of its pairs of a group and a value, those that come first in an order of its own; how many
is chosen privately (`gains`). **Claim.** A unit more changes the numbers of all groups by at most m together, so by a
vector of l1 norm, and of l2 norm, of at most m. *Proof.* The order depends on the unit's own rows and on a secret that
has nothing to do with the data, so that others keep the same pairs; the unit adds at most m to them, each to one group.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from discreet.query.bounding import Grid, lottery
from discreet.query.by_row import RowTotals, by_public_group
from discreet.query.gains import KEPT, kept_of, times_lost

if TYPE_CHECKING:
    from discreet.engines import Session
    from discreet.query.laws import NoisySum
    from discreet.query.plan import Aggregate
    from discreet.query.private import Private
    from discreet.query.run import Run

__all__ = ["measure_distinct"]

_WIDEST = 2.0**39
"""Noise is drawn up to 10^12: where so little is paid, a unit keeps fewer distinct values."""

_MOST_KEPT = 1 << 31
"""No unit keeps more."""


def measure_distinct(run: Run, i: int) -> NoisySum:
    """COUNT(DISTINCT x): the pairs that somebody keeps, in each group, with noise."""
    plan, session, times = run.plan, run.session, 1.0
    if plan.block.row_level:
        bound = float(plan.block.rows_per_unit or 1)
        statement = _distinct_of_rows(run, f"r.{plan.distincts[i].argument}")
        found = session.numbers(statement, plain=plan.block.plain)
    else:
        most = _most_kept(run, i)
        _number_pairs(run, i)
        chosen = run.choose_kept(f"distinct {i}", partial(_counted, session), largest=most)
        facts = {"epsilon": chosen.epsilon, "wanted": chosen.allowed}
        number = int(chosen.number)
        bound = min(float(kept_of(number, **facts)), most)
        times = times_lost(number, **facts) if most > 1 else 1.0
        run.bounds[plan.bound_of_distinct(i)] = bound
        found = session.numbers(f"SELECT g, count(*) AS n FROM q__pairs WHERE k <= {int(bound)} GROUP BY g")
    full = run.placed(found["g"], found["n"])
    measure = len(plan.moments) + len(plan.ranks) + i
    noisy = run.with_noise(full, Grid(bound, 0), measure, quantum=1.0)  # a count is never in coarser steps
    return noisy if plan.block.row_level else run.cut(noisy, f"distinct {i}", sign=1, times=times)


def most_pairs(plan: Private, distinct: Aggregate) -> float:
    """The largest number of pairs of a group and a value that a unit can have, by what is public."""
    groups = math.inf if plan.groups is None else plan.groups
    if plan.public:
        groups = min(groups, max(1, plan.cells))
    rows = math.inf if plan.options.max_rows is None else plan.options.max_rows
    each = min(rows, math.inf if distinct.values is None else distinct.values)
    all_rows = math.inf if plan.block.rows_per_unit is None else plan.block.rows_per_unit
    return min(all_rows, groups * each if each else 0)


def _distinct_of_rows(run: Run, argument: str) -> str:
    if run.plan.public:
        return by_public_group(run.session, run.plan, RowTotals({"n": f"count(DISTINCT {argument})"}))
    source, place = run.rows_by_place()
    return f"SELECT {place} AS g, count(DISTINCT {argument}) AS n FROM {source} GROUP BY {place}"


def _most_kept(run: Run, i: int) -> float:
    """No unit keeps more: there can be no more pairs, or noise could not be drawn."""
    widest = int(_WIDEST / run.plan.noise_of_distinct(i))
    return float(max(1, min(_MOST_KEPT, widest, most_pairs(run.plan, run.plan.distincts[i]))))


def _number_pairs(run: Run, i: int) -> None:
    """The table `pairs`: every pair of a group and a value, and k: who keeps that many keeps it, of somebody's pairs.

    A unit's pairs are numbered from 1 in the order of a lottery, which is a hash of the unit, the keys of the group,
    the value and a secret number; pairs with the same hash in order of values and groups. What others have does not
    matter for it: it can change the number of a group, but not which of two comes first.
    """
    argument = f"r.{run.plan.distincts[i].argument}"
    source, group = run.rows_by_place()
    lot = lottery(f"r.u, {run.rows.lot}, {argument}", run.secret)
    run.session.execute(
        "CREATE OR REPLACE TEMP TABLE q__pairs AS SELECT g, x, min(k) AS k FROM (SELECT g, x, row_number() OVER "
        f"(PARTITION BY u ORDER BY lot, x, g) AS k FROM (SELECT r.u AS u, {group} AS g, {argument} AS x, "
        f"min({lot}) AS lot FROM {source} WHERE {argument} IS NOT NULL GROUP BY ALL)) GROUP BY g, x"
    )


def _counted(session: Session) -> list[int]:
    """D(m) for every candidate: how many pairs somebody has among their first m."""
    found = session.numbers("SELECT k, count(*) AS n FROM q__pairs GROUP BY k ORDER BY k")
    totals = np.concatenate([[0], np.cumsum(found["n"].astype(np.int64))])
    return [int(totals[place]) for place in np.searchsorted(found["k"], list(KEPT.values()), side="right")]

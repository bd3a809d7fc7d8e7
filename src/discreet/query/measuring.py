"""Answering one block: the engine sums, private choices fix the bounds, exact noise is added."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from discreet.query.centring import choose_centres, with_centres
from discreet.query.distinct import measure_distinct
from discreet.query.ranks.measure import measure_ranks
from discreet.query.run import Run
from discreet.query.sums import measure_moments

if TYPE_CHECKING:
    from discreet.accounting import Cost
    from discreet.engines import Session
    from discreet.noise import Generator
    from discreet.query.laws import NoisySum
    from discreet.query.private import Private
    from discreet.query.ranks.answer import RankAnswer
    from discreet.query.remembered import Choice
    from discreet.query.run import Seen

__all__ = ["Measured", "measure"]


@dataclass(frozen=True)
class Measured:
    """The noisy numbers of a block: keys of its groups, moments, ranks and distinct counts, and the bounds used.

    `told` are the choices that were bought for it, each with its digest. `doubts` says by number of a moment why an
    interval of it may be too short, as far as released numbers tell. `paid` is what it cost, if that was read from
    the ledger: the plan may know more by now.
    """

    plan: Private
    keys: dict[str, Any]
    groups: int
    moments: tuple[NoisySum, ...]
    ranks: tuple[RankAnswer, ...]
    distincts: tuple[NoisySum, ...]
    bounds: dict[str, float] = field(default_factory=dict)
    told: tuple[tuple[str, Choice], ...] = ()
    paid: Cost | None = None
    doubts: dict[int, str] = field(default_factory=dict)

    def allowing(self, times: float) -> Measured:
        """The same numbers, with so many times the allowance for what chosen bounds cut off."""
        if times == 1:
            return self
        moments, distincts = (
            tuple(replace(noisy, lost=times * noisy.lost) for noisy in sums) for sums in (self.moments, self.distincts)
        )
        return replace(self, moments=moments, distincts=distincts)

    @property
    def cost(self) -> Cost:
        """What was paid for it."""
        return self.plan.cost if self.paid is None else self.paid


def measure(
    session: Session, plan: Private, generator: Generator | None = None, *, seen: Seen | None = None
) -> Measured:
    """Run a block: everything about rows in the engine, noise here.

    `seen` is what the same files have shown to a survey that was paid before.
    Quantiles weigh a unit's rows by how many of them were found before. So they have to be the same rows.
    """
    read = plan
    if plan.ranks and not plan.block.row_level and not (plan.block.repeatable and session.steady):
        session.execute(f"CREATE OR REPLACE TEMP TABLE q__rows AS {plan.block.rows}")
        read = replace(plan, block=replace(plan.block, rows="SELECT * FROM q__rows"))
    run = Run(session, read, generator, seen)
    if plan.uncentred:
        centres = choose_centres(run)
        run.plan, plan = with_centres(read, centres), with_centres(plan, centres)
    moments = measure_moments(run)
    ranks = measure_ranks(run) if plan.ranks else ()
    distincts = tuple(measure_distinct(run, i) for i in range(len(plan.distincts)))
    doubts = {
        int(place.partition(" ")[2]): reason for place, reason in run.doubts.items() if place.startswith("moment")
    }
    told = tuple(run.told)
    return Measured(plan, run.keys(), run.size, moments, ranks, distincts, run.bounds, told, doubts=doubts)

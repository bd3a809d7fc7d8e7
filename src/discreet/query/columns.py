"""What each column of an answer is: a key, a number with noise, or something computed from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from discreet.query.moments import moments_of
from discreet.query.projection import key_columns

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.query.laws import NoisySum
    from discreet.query.measuring import Measured
    from discreet.query.plan import Aggregate, Question

__all__ = ["AnswerColumn", "columns_of"]


@dataclass(frozen=True)
class AnswerColumn:
    """One column of an answer.

    `role` is "key" for what rows were grouped by, "released" for an aggregate as it was released, "computed" for what
    the question makes of these, and "public" where no row of people was read. Of a released one `aggregate` says which,
    `noise` is the law of its noise ("laplace", "staircase", "gaussian", or "exponential mechanism" of a quantile) with
    this `scale` (a Gaussian's standard deviation), and `bound` is the norm of what one unit adds to all groups at most:
    the sum of absolute values, or of Gaussian noise the root of the sum of squares. Both are in units of the column,
    and None where there is no single number, as of an average. `interval` says whether `intervals` has ends for it.
    """

    name: str
    type: str
    role: str
    aggregate: str | None = None
    noise: str | None = None
    scale: float | None = None
    bound: float | None = None
    interval: bool = False


def columns_of(
    question: Question, measured: tuple[Measured, ...], table: pa.Table, *, ends: set[str]
) -> tuple[AnswerColumn, ...]:
    """The columns of the table that answers a question; those named in `ends` have intervals."""
    shown = {output.name: output for output in question.outputs}
    keys = key_columns(question.after)
    found = []
    for field in table.schema:
        output = shown[field.name]
        if output.block is None or output.column is None:
            role = "public" if not measured else "key" if field.name in keys else "computed"
            found.append(AnswerColumn(field.name, str(field.type), role, interval=field.name in ends))
            continue
        block = measured[output.block]
        aggregate = next(one for one in block.plan.block.aggregates if one.column == output.column)
        noisy, bound = _single(block, aggregate)
        found.append(
            AnswerColumn(
                field.name,
                str(field.type),
                "released",
                aggregate=aggregate.label,
                noise=_law(block, aggregate, noisy),
                scale=None if noisy is None else float(noisy.scale),
                bound=bound,
                interval=field.name in ends,
            )
        )
    return tuple(found)


def _single(block: Measured, aggregate: Aggregate) -> tuple[NoisySum | None, float | None]:
    """The one noisy number that an aggregate is, and the bound on a unit; None if it is none, or several."""
    plan = block.plan
    if aggregate in plan.distincts:
        i = plan.distincts.index(aggregate)
        return block.distincts[i], block.bounds.get(plan.bound_of_distinct(i))
    moments = moments_of(aggregate, plan.block.aggregates)
    if len(moments) != 1:
        return None, None
    i = plan.moments.index(moments[0])
    return block.moments[i], block.bounds.get(plan.bound_of_moment(i))


def _law(block: Measured, aggregate: Aggregate, noisy: NoisySum | None) -> str:
    if noisy is not None:
        return noisy.law.kind
    if block.plan.gaussian:
        return "gaussian"
    return "exponential mechanism" if aggregate in block.plan.ranks else "laplace"

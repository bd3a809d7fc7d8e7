"""`discreet account calibrate`: the number that meets a target."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.costs import one_mechanism, refuse_strays, stored
from discreet.cli.expression import CONSTRUCTORS, Expression
from discreet.cli.number import above, below, number
from discreet.cli.options import (
    Adjacency,
    Batch,
    Costs,
    Delta,
    Epochs,
    Epsilon,
    Files,
    Json,
    Rate,
    Records,
    Scheme,
    Steps,
    choice,
)
from discreet.cli.reading import bracket, described, read
from discreet.cli.schedule import Schedule
from discreet.cli.show import as_json, facts
from discreet.cli.usage import WrongUsage
from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from discreet.accounting import Cost

__all__ = ["SOLVABLE", "calibrate"]

SOLVABLE = tuple(name for name in CONSTRUCTORS if name not in ("approximate", "renyi", "from_pair", "zero"))
"""The mechanisms with one parameter to solve for."""

Mechanism = Annotated[
    str | None,
    typer.Option(
        "--mechanism",
        metavar="NAME",
        callback=choice(*SOLVABLE),
        help=f"The mechanism whose parameter is wanted: {', '.join(SOLVABLE)}.",
    ),
]
UnknownCosts = Annotated[
    list[str] | None,
    typer.Option(
        "--cost",
        metavar="EXPRESSION",
        help='A cost as text with x for the number wanted, such as "100 * laplace(x)". Repeatable.',
    ),
]
Low = Annotated[
    float | None, typer.Option("--low", parser=number, metavar="NUMBER", help="The smallest value to consider.")
]
High = Annotated[
    float | None, typer.Option("--high", parser=number, metavar="NUMBER", help="The largest value to consider.")
]


def calibrate(
    *,
    epsilon: Epsilon,
    delta: Delta,
    mechanism: Mechanism = None,
    rate: Rate = None,
    steps: Steps = None,
    epochs: Epochs = None,
    batch: Batch = None,
    records: Records = None,
    scheme: Scheme = "poisson",
    cost: UnknownCosts = None,
    file: Files = None,
    adjacency: Adjacency = "add-remove",
    low: Low = None,
    high: High = None,
    json: Json = False,
) -> None:
    """The best number x whose certified epsilon meets a target.

    The smallest x if the cost falls with it (noise), the largest if it grows (a rate, a count of steps). Where only
    whole numbers fit, x is one. All costs named are parts of one composition.
    """
    from discreet.accounting.calibration import calibrate as solve

    schedule = Schedule.of(rate=rate, steps=steps, epochs=epochs, batch=batch, records=records, scheme=scheme)
    make = _unknown_cost(mechanism=mechanism, schedule=schedule, expressions=cost, files=file, adjacency=adjacency)
    whole = _is_count(make)
    value = solve(make, epsilon=epsilon, delta=delta, low=low, high=high, integer=whole)
    total = make(value)
    result = read(total, delta=delta)
    schedule.announce(json=json)
    if json:
        as_json(
            {
                "command": "account calibrate",
                "value": value,
                "target": {"epsilon": float(epsilon), "delta": float(delta)},
                "epsilon": result.upper,
                "delta": float(delta),
                **result.fields(),
                **schedule.fields(),
                "adjacency": total.adjacency,
                "description": described(total),
                "cost": total.to_dict(),
            }
        )
        return
    facts(
        [
            ("x", str(value) if whole else _shown(make, value, epsilon=epsilon, delta=delta)),
            ("target", f"epsilon = {epsilon:g} at delta = {delta:g}"),
            ("reached", f"epsilon in {bracket(result)}"),
            ("cost", described(total)),
            ("adjacency", total.adjacency),
        ]
    )


def _shown(make: Callable[[float], Cost], value: float, *, epsilon: float, delta: float) -> str:
    """Ten digits of x that still meet the target, so that the number can be copied; all digits if no ten do."""
    for text in (above(value), below(value)):
        try:
            if make(float(text)).epsilon(delta) <= epsilon:
                return text
        except InvalidArgument:  # a rate above 1, say
            continue
    return repr(value)


def _is_count(make: Callable[[float], Cost]) -> bool:
    """Whether x stands where only whole numbers fit, as in x * cost."""
    try:
        make(math.sqrt(0.5))
    except InvalidArgument as error:
        return error.argument in ("count", "options", "sensitivity", "size")
    return False


def _unknown_cost(
    *,
    mechanism: str | None,
    schedule: Schedule,
    expressions: Costs,
    files: Files,
    adjacency: str,
) -> Callable[[float], Cost]:
    """The composition as a function of x."""
    texts = [Expression(text, adjacency) for text in expressions or ()]
    known = [stored(name) for name in files or ()]
    shorthand = None
    if mechanism is not None:
        shorthand = one_mechanism(mechanism, schedule, adjacency)
    else:
        refuse_strays(schedule)
    if not (shorthand or any(text.has_unknown for text in texts)):
        raise WrongUsage(
            'nothing to solve for: give --mechanism, or a --cost with x for the number wanted, as in "laplace(x)"'
        )

    def make(x: float) -> Cost:
        parts = [text.cost(x) for text in texts] + known
        return sum(parts, start=shorthand(x)) if shorthand else sum(parts[1:], start=parts[0])

    return make

"""`discreet account epsilon` and `discreet account delta`: one certified reading."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.costs import Selection
from discreet.cli.number import above
from discreet.cli.options import (
    Adjacency,
    Batch,
    Costs,
    Delta,
    Epochs,
    Epsilon,
    Files,
    GaussianNoise,
    Json,
    LaplaceNoise,
    Method,
    Rate,
    Records,
    Scheme,
    Steps,
)
from discreet.cli.reading import Result, bracket, described, read, width
from discreet.cli.schedule import Schedule
from discreet.cli.show import as_json, facts

if TYPE_CHECKING:
    from discreet.accounting import Cost
    from discreet.accounting.explanation import Explanation

__all__ = ["delta", "epsilon"]

Explain = Annotated[
    bool, typer.Option("--explain", help="Say in words who computed it, how sure it is, and what it means.")
]


def epsilon(
    *,
    delta: Delta,
    gaussian: GaussianNoise = None,
    laplace: LaplaceNoise = None,
    rate: Rate = None,
    steps: Steps = None,
    epochs: Epochs = None,
    batch: Batch = None,
    records: Records = None,
    scheme: Scheme = "poisson",
    cost: Costs = None,
    file: Files = None,
    adjacency: Adjacency = "add-remove",
    method: Method = "auto",
    explain: Explain = False,
    json: Json = False,
) -> None:
    """The smallest epsilon at a delta, between two certified ends.

    All costs named are parts of one composition.
    """
    schedule = Schedule.of(rate=rate, steps=steps, epochs=epochs, batch=batch, records=records, scheme=scheme)
    total = Selection(gaussian, laplace, schedule, cost, file, adjacency).composed()
    result = read(total, delta=delta, method=method)
    words = in_words(total, result, delta=delta) if explain else None
    show(total, result, given=("delta", delta), words=words, schedule=schedule, json=json)


def delta(
    *,
    epsilon: Epsilon,
    gaussian: GaussianNoise = None,
    laplace: LaplaceNoise = None,
    rate: Rate = None,
    steps: Steps = None,
    epochs: Epochs = None,
    batch: Batch = None,
    records: Records = None,
    scheme: Scheme = "poisson",
    cost: Costs = None,
    file: Files = None,
    adjacency: Adjacency = "add-remove",
    method: Method = "auto",
    explain: Explain = False,
    json: Json = False,
) -> None:
    """The smallest delta at an epsilon, between two certified ends.

    All costs named are parts of one composition.
    """
    schedule = Schedule.of(rate=rate, steps=steps, epochs=epochs, batch=batch, records=records, scheme=scheme)
    total = Selection(gaussian, laplace, schedule, cost, file, adjacency).composed()
    result = read(total, epsilon=epsilon, method=method)
    words = in_words(total, result, epsilon=epsilon) if explain else None
    show(total, result, given=("epsilon", epsilon), words=words, schedule=schedule, json=json)


def in_words(cost: Cost, result: Result, *, delta: float | None = None, epsilon: float | None = None) -> Explanation:
    """The reading explained, by whichever method it was made."""
    from discreet.accounting.explanation import explain

    return explain(cost, result.reading, delta=delta, epsilon=epsilon)


def show(
    cost: Cost,
    result: Result,
    *,
    given: tuple[str, float],
    words: Explanation | None,
    schedule: Schedule,
    json: bool,
) -> None:
    """Print one reading."""
    name, value = given
    schedule.announce(json=json)
    if json:
        as_json(
            {
                "command": f"account {result.quantity}",
                name: float(value),
                result.quantity: result.upper,
                **result.fields(),
                **schedule.fields(),
                **({} if words is None else {"explanation": dataclasses.asdict(words)}),
                "adjacency": cost.adjacency,
                "description": described(cost),
                "cost": cost.to_dict(),
            }
        )
    elif words is not None:
        print(words)
    else:
        facts(
            [
                (result.quantity, f"{above(result.upper)} at {name} = {value:g}; the true value is not larger"),
                ("bracket", f"{bracket(result)}, relative width {width(result)}"),
                ("method", f"{result.reading.method}: {result.reading.reason}"),
                ("cost", described(cost)),
                ("adjacency", cost.adjacency),
            ]
        )
    for warning in result.warnings:
        typer.echo(f"Warning: {warning}", err=True)

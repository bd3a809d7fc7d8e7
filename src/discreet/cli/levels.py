"""`discreet account epsilon` and `discreet account delta`: one certified reading."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from discreet.cli.costs import Selection
from discreet.cli.number import above
from discreet.cli.options import (
    Adjacency,
    Costs,
    Delta,
    Epsilon,
    Files,
    GaussianNoise,
    Json,
    LaplaceNoise,
    Method,
    Rate,
    Steps,
)
from discreet.cli.reading import Result, bracket, described, read, width
from discreet.cli.show import as_json, facts

if TYPE_CHECKING:
    from discreet.accounting import Cost

__all__ = ["delta", "epsilon"]


def epsilon(
    *,
    delta: Delta,
    gaussian: GaussianNoise = None,
    laplace: LaplaceNoise = None,
    rate: Rate = None,
    steps: Steps = None,
    cost: Costs = None,
    file: Files = None,
    adjacency: Adjacency = "add-remove",
    method: Method = "auto",
    json: Json = False,
) -> None:
    """The smallest epsilon at a delta, between two certified ends.

    All costs named are parts of one composition.
    """
    total = Selection(gaussian, laplace, rate, steps, cost, file, adjacency).composed()
    show(total, read(total, delta=delta, method=method), given=("delta", delta), json=json)


def delta(
    *,
    epsilon: Epsilon,
    gaussian: GaussianNoise = None,
    laplace: LaplaceNoise = None,
    rate: Rate = None,
    steps: Steps = None,
    cost: Costs = None,
    file: Files = None,
    adjacency: Adjacency = "add-remove",
    method: Method = "auto",
    json: Json = False,
) -> None:
    """The smallest delta at an epsilon, between two certified ends.

    All costs named are parts of one composition.
    """
    total = Selection(gaussian, laplace, rate, steps, cost, file, adjacency).composed()
    show(total, read(total, epsilon=epsilon, method=method), given=("epsilon", epsilon), json=json)


def show(cost: Cost, result: Result, *, given: tuple[str, float], json: bool) -> None:
    """Print one reading."""
    name, value = given
    if json:
        as_json(
            {
                "command": f"account {result.quantity}",
                name: float(value),
                result.quantity: result.upper,
                **result.fields(),
                "adjacency": cost.adjacency,
                "description": described(cost),
                "cost": cost.to_dict(),
            }
        )
    else:
        facts(
            [
                (result.quantity, f"{above(result.upper)} at {name} = {value:g}; the true value is not larger"),
                ("bracket", f"{bracket(result)}, relative width {width(result)}"),
                ("method", f"{result.method}: {result.reason}"),
                ("cost", described(cost)),
                ("adjacency", cost.adjacency),
            ]
        )
    for warning in result.warnings:
        typer.echo(f"Warning: {warning}", err=True)

"""`discreet account compare`: several costs, or several accountants, in one table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from discreet.cli.costs import Named, Selection
from discreet.cli.number import above, below, number
from discreet.cli.options import (
    METHODS,
    Adjacency,
    Batch,
    Costs,
    Epochs,
    Files,
    GaussianNoise,
    Json,
    LaplaceNoise,
    Rate,
    Records,
    Scheme,
    Steps,
    choice,
)
from discreet.cli.reading import Result, described, read, width
from discreet.cli.schedule import Schedule
from discreet.cli.show import as_json, table
from discreet.cli.usage import WrongUsage
from discreet.errors import CertificateError, DiscreetError, InvalidArgument

__all__ = ["compare"]

ACCOUNTANTS = ("auto", "renyi", "concentrated", "advanced", "classic")
"""What one cost alone is read by, unless `--method` says otherwise."""

DeltaOrNone = Annotated[
    float | None, typer.Option("--delta", parser=number, metavar="DELTA", help="Compare epsilon at this delta.")
]
EpsilonOrNone = Annotated[
    float | None, typer.Option("--epsilon", parser=number, metavar="EPSILON", help="Compare delta at this epsilon.")
]
Methods = Annotated[
    list[str] | None,
    typer.Option(
        "--method",
        metavar="NAME",
        help=f"An accountant: {', '.join(METHODS)}. Repeatable. By default auto; for one cost alone, those that "
        "people use by hand as well.",
    ),
]


@dataclass(frozen=True)
class Row:
    """One cost read by one accountant, or why it could not be."""

    named: Named
    method: str
    outcome: Result | DiscreetError

    def cells(self) -> list[str]:
        """What the table shows."""
        name, outcome = self.named.name, self.outcome
        if isinstance(outcome, DiscreetError):
            return [name, self.method, "-", "-", "-", "-"]
        used = f"auto: {outcome.reading.method}" if self.method == "auto" else outcome.reading.method
        lower, upper = below(outcome.lower), above(outcome.upper)
        return [name, used, lower, upper, width(outcome), f"{outcome.milliseconds:.1f}"]

    def refusal(self) -> str:
        """Why there is no result; without the name of the accountant, so that several can share a line."""
        error = self.outcome
        return error.advice if isinstance(error, InvalidArgument) and error.argument == "method" else str(error)

    def fields(self) -> dict[str, Any]:
        """The stable keys of `--json`."""
        row = {
            "name": self.named.name,
            "asked": self.method,
            "adjacency": self.named.cost.adjacency,
            "description": described(self.named.cost),
            "cost": self.named.cost.to_dict(),
        }
        if isinstance(self.outcome, DiscreetError):
            return {**row, "error": {"kind": type(self.outcome).__name__, "message": str(self.outcome)}}
        return {**row, **self.outcome.fields()}


def compare(
    *,
    delta: DeltaOrNone = None,
    epsilon: EpsilonOrNone = None,
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
    method: Methods = None,
    json: Json = False,
) -> None:
    """Several costs, or several accountants on the same cost, in one table.

    Every cost named is a row of its own. Both ends of each row are certified; an accountant that cannot read a cost
    says why below the table.
    """
    if (delta is None) == (epsilon is None):
        raise WrongUsage("give one of --delta and --epsilon")
    quantity, given, value = ("epsilon", "delta", delta) if epsilon is None else ("delta", "epsilon", epsilon)
    schedule = Schedule.of(rate=rate, steps=steps, epochs=epochs, batch=batch, records=records, scheme=scheme)
    named = Selection(gaussian, laplace, schedule, cost, file, adjacency).each()
    choice(*METHODS)(method)
    methods = method or (ACCOUNTANTS if len(named) == 1 else ("auto",))
    rows = [_row(each, name, delta, epsilon) for each in named for name in methods]
    schedule.announce(json=json)
    refused = [row for row in rows if isinstance(row.outcome, DiscreetError)]
    if json:
        found = [row.fields() for row in rows]
        head = {"command": "account compare", "quantity": quantity, given: float(value or 0)}
        as_json({**head, "rows": found, **schedule.fields()})
    else:
        header = ["cost", "method", f"{quantity} >=", f"{quantity} <=", "width", "ms"]
        table(header, [row.cells() for row in rows], right=(2, 3, 4, 5))
        reasons: dict[str, list[str]] = {}
        for row in refused:
            asked = reasons.setdefault(row.refusal(), [])
            asked += [row.method] if row.method not in asked else []
        for reason, asked in reasons.items():
            print(f"- {', '.join(asked)}: {reason}")
    for row in rows:
        if isinstance(row.outcome, Result):
            for warning in row.outcome.warnings:
                typer.echo(f"Warning: {row.named.name}: {warning}", err=True)
    if len(refused) == len(rows):
        raise typer.Exit(1)


def _row(named: Named, method: str, delta: float | None, epsilon: float | None) -> Row:
    try:
        return Row(named, method, read(named.cost, delta=delta, epsilon=epsilon, method=method))
    except CertificateError as error:
        return Row(named, method, error)
    except InvalidArgument as error:
        if error.argument in ("delta", "epsilon"):  # wrong for every row
            raise
        return Row(named, method, error)

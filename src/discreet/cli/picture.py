"""`discreet account plot`: a picture of one or several costs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.costs import Selection
from discreet.cli.options import (
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
from discreet.cli.reading import described
from discreet.cli.schedule import Schedule
from discreet.cli.show import as_json, facts
from discreet.cli.usage import WrongUsage

__all__ = ["KINDS", "plot"]

KINDS = ("tradeoff", "profile", "loss")
FORMATS = (".png", ".pdf", ".svg")

Kind = Annotated[
    str,
    typer.Option(
        "--kind",
        metavar="NAME",
        callback=choice(*KINDS),
        show_default=False,
        help="tradeoff (the default): missed detections against false alarms; profile: delta against epsilon; "
        "loss: the distribution of the privacy loss.",
    ),
]
Output = Annotated[
    Path,
    typer.Option(
        "--output",
        "--out",
        "-o",
        metavar="FILE",
        help="Where the picture goes: a file ending in .png, .pdf or .svg.",
    ),
]


def plot(
    *,
    output: Output,
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
    kind: Kind = "tradeoff",
    json: Json = False,
) -> None:
    """A picture of one or several costs; needs pip install 'discreet[plots]'.

    Every cost named is a curve of its own.
    """
    if output.suffix.lower() not in FORMATS:
        raise WrongUsage(f"the ending of '{output}' names no format; use one of {', '.join(FORMATS)}")
    schedule = Schedule.of(rate=rate, steps=steps, epochs=epochs, batch=batch, records=records, scheme=scheme)
    named = Selection(gaussian, laplace, schedule, cost, file, adjacency).each()
    os.environ.setdefault("MPLBACKEND", "Agg")  # drawn to a file: no window system is needed
    from discreet import plots

    plots.compare({each.name: each.cost for each in named}, show=kind, path=output)
    schedule.announce(json=json)
    if json:
        curves = [
            {"name": each.name, "description": described(each.cost), "cost": each.cost.to_dict()} for each in named
        ]
        as_json({"command": "account plot", "output": str(output), "kind": kind, "curves": curves, **schedule.fields()})
    else:
        facts([("written", str(output)), *(("curve", each.name) for each in named)])

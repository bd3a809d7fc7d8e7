"""`discreet account plot`: a picture of one or several costs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from discreet.cli.costs import Selection
from discreet.cli.options import (
    Adjacency,
    Costs,
    Files,
    GaussianNoise,
    Json,
    LaplaceNoise,
    Rate,
    Steps,
    choice,
)
from discreet.cli.reading import described
from discreet.cli.show import as_json, facts

__all__ = ["KINDS", "plot"]

KINDS = ("tradeoff", "profile", "loss")

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
Output = Annotated[Path, typer.Option("--output", metavar="FILE", help="Where the picture goes, such as curve.png.")]


def plot(
    *,
    output: Output,
    gaussian: GaussianNoise = None,
    laplace: LaplaceNoise = None,
    rate: Rate = None,
    steps: Steps = None,
    cost: Costs = None,
    file: Files = None,
    adjacency: Adjacency = "add-remove",
    kind: Kind = "tradeoff",
    json: Json = False,
) -> None:
    """A picture of one or several costs; needs pip install 'discreet[plots]'.

    Every cost named is a curve of its own.
    """
    named = Selection(gaussian, laplace, rate, steps, cost, file, adjacency).each()
    os.environ.setdefault("MPLBACKEND", "Agg")  # drawn to a file: no window system is needed
    axes: Any = None
    for each in named:
        curve = getattr(each.cost, kind)()
        axes = curve.plot(ax=axes, label=each.name)
    axes.figure.savefig(output)
    if json:
        curves = [
            {"name": each.name, "description": described(each.cost), "cost": each.cost.to_dict()} for each in named
        ]
        as_json({"command": "account plot", "output": str(output), "kind": kind, "curves": curves})
    else:
        facts([("written", str(output)), *(("curve", each.name) for each in named)])
